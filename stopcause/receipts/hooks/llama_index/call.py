"""LlamaIndex: one run of a workflow, from the ticks and commands of its control loop.

The loop is a reducer: a tick says what happened (a step returned, an event came, the time is over), and commands what
follows of it (run a step, publish, end). Agents are workflows whose steps hand on events of their own classes; what
those mean is in `agent`. Events carry content: only their classes, and names that the program gave, are
read here.
"""

from __future__ import annotations

import contextlib
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, is_cancelled, provider_cause
from stopcause.receipts.hooks import call
from stopcause.receipts.hooks.llama_index import causes
from stopcause.receipts.hooks.llama_index.causes import is_a
from stopcause.receipts.hooks.llama_index.waits import Waits
from stopcause.receipts.vocabulary import Boundary, OutputShape, Sign, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Token

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.llama_index.waits import Kept
    from stopcause.receipts.run import Run

open_call: ContextVar[WorkflowCall | None] = ContextVar("stopcause_llama_index_call", default=None)


class WorkflowCall(call.Call):
    """One run of a workflow. As a context manager, it is current in its control loop and in the steps of that."""

    step_unit = "workflow_step"

    def __init__(self, hook: Hook, run: Run, workflow: Foreign, kept: Kept | None = None) -> None:
        super().__init__(hook, run)
        self.workflow = workflow
        self.waits = Waits(run)
        self.outer = open_call.get()
        self.child_fault: tuple[BaseException, StopCause] | None = None
        self.returned_by: object = None  # the event that the step which returned the result was given
        self._kept = kept
        self._runner: Foreign = None
        self._timed_out: float | None = None
        self._failed: tuple[BaseException, object] | None = None
        self._failed_models = 0
        self._open_chats = 0
        self._outer_token: Token[WorkflowCall | None] | None = None

    def __enter__(self) -> Self:
        self._outer_token = open_call.set(self)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._outer_token is not None:
            with contextlib.suppress(ValueError):  # as for the run's own place in the context
                open_call.reset(self._outer_token)

    # It begins --------------------------------------------------------------------------------------------------------

    def describe(self, start_event: Foreign, *, is_continued: bool) -> None:
        """What is known before it begins.

        Args:
            start_event: What it is begun with, if the program made one.
            is_continued: Whether it was given a context: an agent's limit may then be an older one.
        """
        run = self.run
        run.step_unit = self.step_unit
        run.steps = run.steps or 0
        run.agent = run.agent or self.name
        seconds = self.hook.read(run, self.workflow, "_timeout", (int, float))
        if seconds is not None:
            run.limit("timeout", "time", seconds, unit="second")
        if self._kept is not None:
            run.resumed(self._kept.run_id, self._kept.answers)
        self.bound(start_event, is_continued=is_continued)

    @property
    def name(self) -> str | None:
        """What the program calls it."""
        given = getattr(self.workflow, "_workflow_name", None)
        return given if isinstance(given, str) else type(self.workflow).__name__

    def bound(self, start_event: Foreign, *, is_continued: bool) -> None:
        """Bounds of its own; a workflow has none but its time."""

    def is_for(self, runner: Foreign) -> bool:
        """Whether this control loop, which begins, is its own: it has been made for this workflow and has none."""
        return self._runner is None and not self.is_over and runner.workflow is self.workflow

    def takes(self, runner: Foreign, start_event: Foreign) -> None:
        """Its control loop begins."""
        self._runner = runner
        if self.hook.is_tested:
            self._read_state(runner)
            if start_event is None and not _is_busy(runner.state):
                self.idle()  # a state that was kept in a wait: the loop says nothing until something comes

    def _read_state(self, runner: Foreign) -> None:
        """Of a state that was kept: the time that it has used, and what it waits for."""
        seconds = self.hook.read(self.run, runner, "workflow._timeout", (int, float))
        if seconds is not None:
            used = getattr(runner.state, "elapsed_alive", 0.0)  # not in 2.10, where each run has the whole time
            self.waits.dies_at = time.time() + seconds - used
        waiters = [waiter for step in runner.state.workers.values() for waiter in step.collected_waiters]
        self.waits.taken_up(self._kept, waiters)

    def is_of(self, runner: Foreign) -> bool:
        """Whether what this control loop does is this run's."""
        return self._runner is runner and not self.is_over and self.hook.is_tested

    # Ticks ------------------------------------------------------------------------------------------------------------

    def tick(self, tick: Foreign) -> None:
        """Something happened; the loop has not looked at it yet."""
        note = self.ticks.get(type(tick).__name__)
        if note is not None:
            note(self, tick)

    def _stepped(self, tick: Foreign) -> None:
        for result in tick.result:
            kind = type(result)
            if is_a(kind, "StepWorkerResult"):
                self.step_returned(tick.event, result.result)
            elif is_a(kind, "StepWorkerFailed"):
                self._step_failed(tick.event, result.exception)
            elif is_a(kind, "AddWaiter"):
                self.waits.waited(result, self.tool_of(tick.event))

    def step_returned(self, event: Foreign, result: Foreign) -> None:
        """A step has handed on an event, or the result."""
        if is_a(type(result), "StopEvent"):
            self.returned_by = event
        elif is_a(type(result), "InputRequiredEvent"):
            self.waits.asked(result)
        elif result is not None:
            self.made_progress(event)

    def made_progress(self, _event: Foreign) -> None:
        """A step of a plain workflow is work that is done."""
        self.run.progress(Sign.STATE_CHANGE)

    def _step_failed(self, event: Foreign, error: BaseException) -> None:
        """It may be tried again, or be caught by a step that the program has for that."""
        self._failed = (error, event)
        self._failed_models += causes.is_models(error)

    def tool_of(self, event: Foreign) -> tuple[str | None, str | None]:  # noqa: ARG002 - an agent's has one
        """The tool that a step runs, and the id of its call."""
        return None, None

    def _came(self, tick: Foreign) -> None:
        if is_a(type(tick.event), "HumanResponseEvent"):
            self.waits.answered(None)

    def _is_late(self, tick: Foreign) -> None:
        self._timed_out = tick.timeout

    ticks: Mapping[str, Callable[[Any, Any], None]] = {
        "TickStepResult": _stepped,
        "TickAddEvent": _came,
        "TickTimeout": _is_late,
    }

    # Commands ---------------------------------------------------------------------------------------------------------

    def command(self, command: Foreign) -> None:
        """What the loop does next."""
        note = self.commands.get(type(command).__name__)
        if note is not None:
            note(self, command)

    def _runs(self, command: Foreign) -> None:
        self.waits.moves()
        self.step_begins(command.event)
        step = getattr(command, "step_id", None) or command.step_name  # 2.26, 2.10
        worker = self._runner.state.workers.get(step)
        for waiter in worker.collected_waiters if worker is not None else ():
            if waiter.resolved_event is not None:
                self.waits.answered(waiter.waiter_id)
            elif getattr(waiter, "timed_out", False):  # 2.10 has no such timer
                self.waits.gave_up(waiter.waiter_id)

    def step_begins(self, _event: Foreign) -> None:
        """A step is one execution of a step function: retried, or called again after its wait, it is another one."""
        self.run.steps = (self.run.steps or 0) + 1

    def _publishes(self, command: Foreign) -> None:
        if type(command.event).__name__ == "WorkflowIdleEvent":
            self.idle()

    def _will_give_up(self, command: Foreign) -> None:
        self.waits.expires(command.waiter_id, command.timeout)

    def _goes_on(self, _: Foreign) -> None:
        self._timed_out = None

    commands: Mapping[str, Callable[[Any, Any], None]] = {
        "CommandRunWorker": _runs,
        "CommandPublishEvent": _publishes,
        "CommandScheduleWaiterTimeout": _will_give_up,
        "CommandScheduleTimeout": _goes_on,  # a timer that rang too early
    }

    def idle(self) -> None:
        """Nothing moves; what it waits for comes from outside."""
        accepted = [kind for step in self._runner.state.config.steps.values() for kind in step.accepted_events]
        self.waits.idle(accepts_human=any(is_a(kind, "HumanResponseEvent") for kind in accepted))

    def is_idle(self) -> bool:
        """Whether nothing moves. For 2.10, which has no event for that: asked before its loop waits."""
        return bool(self._runner.queue.empty() and not _is_busy(self._runner.state))

    # Models -----------------------------------------------------------------------------------------------------------

    def model_event(self, event: Foreign) -> None:
        """An event of the framework's instrumentation. A chat may ask for a completion inside: that is one call."""
        kind = type(event).__name__
        if kind == "LLMChatStartEvent":
            self._open_chats += 1
        elif kind == "LLMChatEndEvent":
            self._open_chats = max(self._open_chats - 1, 0)
            self._answered(event)
        elif kind == "LLMCompletionEndEvent" and not self._open_chats:
            self._answered(event)

    def _answered(self, event: Foreign) -> None:
        run = self.run
        run.model_calls = (run.model_calls or 0) + 1
        run.add_usage(*causes.usage_of(getattr(event.response, "raw", None)))

    # The end ----------------------------------------------------------------------------------------------------------

    def read_result(self, result: Foreign) -> None:
        """By the event that ended it, and the step that made it."""
        run = self.run
        run.model_errors_recovered += self._failed_models
        if type(result).__name__ == causes.IDLE_RELEASED:
            self._released()
            return
        self.waits.left_over()
        value = result.result if type(result).__name__ == "StopEvent" else result
        run.output_shape = _shape(value)

    def _released(self) -> None:
        """A server lets go of a run that waits. Its store has the state."""
        self.waits.idle(accepts_human=True)
        self.waits.outlives()
        cause = self.waits.cause or StopCause.EXTERNAL_PENDING
        self.run.say(cause, Rank.SIGNAL, Boundary.CALLBACK, reason="idle_released")

    def failed(self, error: BaseException) -> None:
        """An exception leaves it. The run of the step around it, if any, learns why, so that it says the same."""
        if not self.is_over:
            cause = self.cause(error)
            if self.outer is not None and cause is not None:
                self.outer.child_fault = (error, cause)
            if causes.is_models(error):
                self.run.model_errors_terminal = 1
                self._failed_models -= 1
            self.run.model_errors_recovered += max(self._failed_models, 0)
        super().failed(error)

    def cause(self, error: BaseException) -> StopCause | None:
        """What an exception means: by what the loop said before, then by its class, then by where it came from."""
        if self._timed_out is not None and type(error).__name__ == "WorkflowTimeoutError":
            self.run.bounded(StopCause.TIME_LIMIT, "timeout", "time", limit=self._timed_out)
            return self.waits.cause or StopCause.TIME_LIMIT
        if self.waits.is_kept and self._is_cancel(error):
            return self.waits.cause
        if self.child_fault is not None and self.child_fault[0] is error:
            return self.child_fault[1]
        if not isinstance(error, Exception) or not self.hook.is_tested:
            return causes.cause_of(error)
        if self._runner is None:
            return causes.refusal_of(error)
        return causes.cause_of(error) or self.step_cause(error)

    def _is_cancel(self, error: BaseException) -> bool:
        """A program that has kept the paused state ends the run that waits: it goes on elsewhere, or later."""
        return is_cancelled(error) or type(error).__name__ == "WorkflowCancelledByUser"

    def step_cause(self, error: BaseException) -> StopCause | None:
        """What the error of a step means that was not tried again."""
        if self.waits.has_expired and isinstance(error, TimeoutError):
            return StopCause.APPROVAL_EXPIRED
        if causes.is_models(error):
            return provider_cause(error) or StopCause.MODEL_FAILURE
        return None

    def failed_event(self, error: BaseException) -> object:
        """The event that the step was given whose error this is."""
        if self._failed is not None and any(link is self._failed[0] for link in chain_of(error)):
            return self._failed[1]
        return None

    def is_first_end(self) -> bool:
        """Whether it is over only now. Contexts that are copied while it runs are kept by timers: they keep this."""
        is_first = super().is_first_end()
        if is_first:
            self.child_fault = self._failed = self.returned_by = None
            self._runner = self.workflow = self.outer = None
        return is_first


def _is_busy(state: Foreign) -> bool:
    """Whether a step runs or is due (`_broker_busy` of 2.26, which 2.10 has not)."""
    return (
        bool(getattr(state, "deliveries", None))
        or any(step.queue or step.in_progress for step in state.workers.values())
        or any(_is_busy(child) for child in getattr(state, "children", {}).values())
    )


def _shape(value: object) -> OutputShape | None:
    """By its type: what it holds is not read, but whether there is anything."""
    if value is None or value == "":
        return OutputShape.NONE
    return OutputShape.TEXT if isinstance(value, str) else OutputShape.STRUCTURED
