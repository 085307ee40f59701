"""smolagents: one run of an agent. What the items of its loop, its calls of tools and its exceptions say.

Names of tools are those of tools that the agent has: a name that a model made up is nowhere taken.
"""

from __future__ import annotations

import contextlib
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, is_cancelled
from stopcause.receipts.hooks import call
from stopcause.receipts.hooks.smolagents import causes
from stopcause.receipts.vocabulary import Boundary, Finish, OutputShape, StopCause

if TYPE_CHECKING:
    from contextvars import Token

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

open_call: ContextVar[AgentCall | None] = ContextVar("stopcause_smolagents_call", default=None)

_UNIT = "action_step"


class AgentCall(call.Call):
    """One run of an agent. As a context manager, it is current while an item of its loop is being made."""

    is_answered = False  # whether the last step gave the final answer, and no check refused it
    _last: Foreign = None  # the step that was counted: the last one is handed out twice. Numbers are the agent's own,
    # of which two runs at once share one
    _max_steps: int | None = None
    _planning_fault: BaseException | None = None
    _outer_token: Token[AgentCall | None] | None = None

    def __init__(self, hook: Hook, run: Run, agent: Foreign) -> None:
        super().__init__(hook, run)
        self.agent = agent

    def __enter__(self) -> Self:
        self._outer_token = open_call.set(self)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._outer_token is not None:
            with contextlib.suppress(ValueError):  # a generator may be finalised in another context
                open_call.reset(self._outer_token)

    def describe(self, max_steps: object) -> None:
        """What is known before it begins."""
        run = self.run
        run.step_unit, run.steps = _UNIT, run.steps or 0
        run.model = run.model or getattr(self.agent.model, "model_id", None)  # a model of the host's may have none
        if type(max_steps) is int:
            self._max_steps = max_steps
            run.limit("max_steps", "steps", max_steps, unit=_UNIT)

    # Items ------------------------------------------------------------------------------------------------------------

    def item(self, item: Foreign) -> None:
        """Steps, what code came to, and the final answer."""
        kind = type(item).__name__
        if kind == "FinalAnswerStep":
            self.returned(item)
        elif not self.hook.is_tested:
            return
        elif kind == "ActionStep":
            self._acted(item)
        elif kind == "PlanningStep":
            self._spent(item)
            self.run.model_calls = (self.run.model_calls or 0) + 1
        elif kind == "ActionOutput" and hasattr(self.agent, "python_executor"):
            self.run.progress("tool_result")  # its code ran to the end; calls of tools are seen one by one

    def _acted(self, step: Foreign) -> None:
        """A step that is over. One whose model failed has no answer, and none whose code cannot be read has a call."""
        if step is self._last:
            return
        self._last = step
        self.run.steps = (self.run.steps or 0) + 1
        self.is_answered = self._read(step, "is_final_answer", bool) is True
        self._spent(step)
        message: Foreign = self._read(step, "model_output_message", object)
        if message is not None:
            self._said(message)
        if hasattr(self.agent, "python_executor"):
            self.run.tool_calls = (self.run.tool_calls or 0) + len(self._read(step, "tool_calls", list) or ())
        kind = causes.class_of(self._read(step, "error", object))
        self.run.model_errors_recovered += kind in causes.MODEL_ERRORS
        self.run.tool_errors_recovered += kind in causes.CODE_ERRORS

    def _spent(self, step: Foreign) -> None:
        usage = self._read(step, "token_usage", object)
        if usage is not None:
            given = (self._read(usage, name, int) for name in ("input_tokens", "output_tokens"))
            self.run.add_usage(*given)

    def _said(self, message: Foreign) -> None:
        """An answer of the model, with the provider's finish reason where the raw answer is kept."""
        run, reason = self.run, causes.finish_of(self._read(message, "raw", object))
        run.model_calls = (run.model_calls or 0) + 1
        run.finish_raw = reason
        run.finish = None if reason is None else causes.FINISHES.get(reason, Finish.OTHER)
        if run.finish is Finish.OTHER:
            run.find("vocabulary_new", reason)

    def _read(self, owner: Foreign, name: str, kind: Any) -> Any:  # noqa: ANN401 - what is there, of that kind
        return self.hook.read(self.run, owner, name, kind)

    # Calls of tools, in whichever thread ------------------------------------------------------------------------------

    def tool_began(self, name: str) -> bool:
        """Whether the agent has such a tool, or manages such an agent, and it does not only say that all is done."""
        tool = self.agent.tools.get(name) or self.agent.managed_agents.get(name)
        counts = tool is not None and type(tool).__name__ != "FinalAnswerTool"
        if counts:
            self.run.tool_calls = (self.run.tool_calls or 0) + 1
            self.run.in_flight_tools += 1
        return counts

    def tool_ended(self, error: BaseException | None, *, counts: bool) -> None:
        """A call came back, or failed: the model is told, an error of a tool never ends a run."""
        self.run.in_flight_tools -= counts
        if isinstance(error, Exception):
            self.run.tool_errors_recovered += 1
        elif error is None and counts:
            self.run.progress("tool_result")

    # The end ----------------------------------------------------------------------------------------------------------

    def planning_failed(self, error: BaseException) -> None:
        """An exception left a planning step: the model's, unless a prompt template of the host's is wrong."""
        if isinstance(error, Exception) and not any(_is_template(link) for link in chain_of(error)):
            self._planning_fault = error

    def read_result(self, result: Foreign) -> None:
        """The final answer. Where no step gave it, the loop was at its limit and the model had to answer once more."""
        output = result.output
        is_text = isinstance(output, str)
        self.run.output_shape = OutputShape.TEXT if is_text else OutputShape.STRUCTURED
        if output is None or (is_text and not output):
            self.run.output_shape = OutputShape.NONE
        if self._waits:
            self.run.abort_requested_ns = None
        if self.is_answered:
            self.run.say(StopCause.EXPLICIT_DONE, Rank.SIGNAL, Boundary.CALLBACK)
        else:
            self._was_forced(output)

    def _was_forced(self, output: Foreign) -> None:
        """The forced answer is a step more, the last in the agent's memory.

        Where its model fails, the framework makes an answer of that: a list of parts, for which nothing was spent.
        """
        run, observed = self.run, self.run.steps
        run.bounded(StopCause.STEP_LIMIT, "max_steps", "steps", limit=self._max_steps, observed=observed)
        run.forced_wrapup, run.steps = True, (observed or 0) + 1
        run.finish = run.finish_raw = None  # of an answer before this one
        last = next(iter(self.agent.memory.steps[-1:]), None)
        if causes.class_of(getattr(last, "error", None)) != "AgentMaxStepsError":
            last = None  # the program has changed the memory
        if isinstance(output, list) and getattr(last, "token_usage", None) is None:
            run.model_errors_terminal += 1
            run.output_shape = OutputShape.NONE
        else:
            run.model_calls = (run.model_calls or 0) + 1
        if last is not None:
            self._spent(last)

    def cause(self, error: BaseException) -> StopCause | None:
        """By its class; an interruption by the agent's own switch. Out of a planning step errors come as they are."""
        if error is self._planning_fault:
            return causes.model_cause(error)
        return None if is_cancelled(error) else causes.cause_of(error, is_interrupted=self._is_interrupted)

    @property
    def _is_interrupted(self) -> bool:
        return self.hook.read(self.run, self.agent, "interrupt_switch", bool) is True

    def interrupted(self) -> None:
        """Somebody asks it to stop before its next step."""
        if not self.is_over and self.run.abort_requested_ns is None:
            self.run.abort_requested_ns = time.time_ns()

    @property
    def _waits(self) -> bool:
        """Whether something that it asked for is open. Then it is interrupted to wait, and nobody aborted it."""
        return any("state" not in wait for wait in self.run.waits)

    def failed(self, error: BaseException) -> None:
        """An exception leaves it. A loop that waits is stopped by interrupting it: then the wait is the cause."""
        if self._waits and self.hook.is_tested and self.cause(error) is StopCause.USER_ABORT:
            self.run.abort_requested_ns = None
            self.came_back(None)
        else:
            super().failed(error)


def begin(hook: Hook, agent: Foreign, given: dict[str, Any]) -> AgentCall | None:
    """A run of an agent, with the arguments of `_run_stream` by their names."""
    run = hook.begin(getattr(agent, "name", None) or type(agent).__name__)
    if run is None:
        return None
    made = AgentCall(hook, run, agent)
    if hook.is_tested:
        with hook.guard("describe"):
            made.describe(given.get("max_steps"))
    return made.begin()


def _is_template(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "jinja2"
