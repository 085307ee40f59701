"""CrewAI: what every run has, be it of a crew, an agent or a flow: its place in the context, its events, its waits.

CrewAI calls the handlers of its event bus in threads, in no order and often late. What is noted here is noted on the
thread that emits, and belongs to the run whose context it is emitted in: CrewAI copies the context into every thread
that it starts. Not here: what a crew, an agent or a flow says of itself (`runs`); when an agent asks its model
or waits for a person (`turns`).
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, is_cancelled, provider_cause
from stopcause.receipts.hooks import call
from stopcause.receipts.hooks.crewai import causes
from stopcause.receipts.vocabulary import ApprovalKind, Boundary, Finish, Sign, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Token

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.crewai.turns import Turn
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run

open_call: ContextVar[Call | None] = ContextVar("stopcause_crewai_call", default=None)
open_turn: ContextVar[Turn | None] = ContextVar("stopcause_crewai_turn", default=None)
is_guarding: ContextVar[bool] = ContextVar("stopcause_crewai_guarding", default=False)

# As providers call their counts; CrewAI hands them on as they are (`UsageMetrics.from_provider_dict`).
_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "inputTokens")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "outputTokens")


class Asked(NamedTuple):
    """A run that waits. `inner`: the run inside that asked, and its own approval."""

    run_id: str
    inner: tuple[str, str] | None = None


class Forced(NamedTuple):
    """That an agent was told to answer with what it had, and the bound that it had reached."""

    limit: int | None


class Call(call.Call):
    """One run. As a context manager, it is current while the framework's own code works."""

    def __init__(self, hook: Hook, run: Run, owner: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run)
        self.owner = owner
        self.waiting = waiting
        self.outer = open_call.get()
        self.has_begun = False  # whether the framework took the input
        self.forced: Forced | None = None
        self.is_done_by_tool = False
        self.is_guardrail_passed = True  # what the last guardrail said
        self.last_tool: str | None = None  # of those that the agent has
        self.max_iter: int | None = None  # of the agent that was asked last
        self.model_fault: BaseException | None = None
        self.child_fault: tuple[BaseException, StopCause] | None = None
        self._failed_models = 0
        self._is_unknown_tool = False  # whether this turn's call was of a tool that there is not
        self.turns = 0  # how often an agent asked its model
        self.asked: str | None = None  # the last approval that this run itself asked for
        self.child_wait: tuple[BaseException, tuple[str, str]] | None = None  # of a run inside, by what it left with
        self._asked = 0
        self._asks: dict[str, str] = {}  # what is asked now, by the event that asks
        self._outer_token: Token[Call | None] | None = None

    def __enter__(self) -> Self:
        self._outer_token = open_call.set(self)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        is_guarding.set(False)  # a guardrail that raises is not told to have come back, in some versions
        if self._outer_token is not None:
            with contextlib.suppress(ValueError):  # finalised in another context, which is gone with its variable
                open_call.reset(self._outer_token)

    def describe(self, inputs: Mapping[str, Any]) -> None:
        """What is known before it begins."""

    # Events -----------------------------------------------------------------------------------------------------------

    def event(self, source: Foreign, event: Foreign) -> None:
        """An event of the framework's. What comes when the run is over is not its any more."""
        note = self.events.get(type(event).__name__)
        if note is not None and not self.is_over and causes.is_crewais(type(event).__module__):
            note(self, source, event)

    def _begun(self, _source: Foreign, _event: Foreign) -> None:
        self.has_begun = True

    def _answered(self, _source: Foreign, event: Foreign) -> None:
        """A model answered. Only an agent's own turn tells why it stopped: guardrails and converters ask as well."""
        run, turn = self.run, open_turn.get()
        run.model_calls = (run.model_calls or 0) + 1
        usage = event.usage
        if isinstance(usage, dict):
            run.add_usage(_first(usage, _INPUT), _first(usage, _OUTPUT))
        if turn is not None:
            turn.is_told = True
            self._finished(getattr(event, "finish_reason", None))

    def _finished(self, reason: object) -> None:
        run = self.run
        if not isinstance(reason, str) or not reason:
            run.finish = run.finish_raw = None  # what an earlier turn said does not hold for this one
            return
        known = causes.FINISHES.get(reason.lower())
        if known is None:
            run.find("vocabulary_new", reason)
        run.finish, run.finish_raw = known or Finish.OTHER, reason

    def _tool_began(self, _source: Foreign, _event: Foreign) -> None:
        self.run.in_flight_tools += 1

    def _tool_came_back(self, source: Foreign, event: Foreign) -> None:
        """It returned, or says that it did not do its work. A tool that there is not was not called."""
        tool = self._tool_is_over(source, event)
        if tool is None or getattr(event, "failure", None) is not None:
            self.run.tool_errors_recovered += 1
        else:
            self.run.progress(Sign.TOOL_RESULT)
            self.is_done_by_tool = getattr(tool, "result_as_answer", False) is True

    def _tool_failed(self, source: Foreign, event: Foreign) -> None:
        """It raised. The model is told; an error of a tool ends a run only where a policy says so."""
        self._tool_is_over(source, event)
        self.run.tool_errors_recovered += 1

    def _tool_unknown(self, _source: Foreign, _event: Foreign) -> None:
        """The model called a tool that there is not. CrewAI looks for it several times, and says so each time."""
        self.run.tool_errors_recovered += not self._is_unknown_tool
        self._is_unknown_tool = True

    def _tool_is_over(self, source: Foreign, event: Foreign) -> Foreign | None:
        run, tool = self.run, _tool_of(source, event.tool_name)
        run.in_flight_tools = max(run.in_flight_tools - 1, 0)
        if tool is not None:
            run.tool_calls = (run.tool_calls or 0) + 1
            self.last_tool = tool.name
        return tool

    def _checks(self, _source: Foreign, event: Foreign) -> None:
        """A guardrail begins to look. One that is a text asks a model, by an agent of CrewAI's own: that is no run."""
        is_guarding.set(event.guardrail_type in ("llm", "hallucination"))

    def _checked(self, _source: Foreign, event: Foreign) -> None:
        """A guardrail looked at an answer. One that it refuses is thrown away, and so is how the answer came."""
        is_guarding.set(False)
        self.is_guardrail_passed = event.success is True
        if not self.is_guardrail_passed:
            self.forced, self.is_done_by_tool = None, False

    def _task_done(self, _source: Foreign, _event: Foreign) -> None:
        self.run.progress(Sign.STATE_CHANGE)

    def _method_done(self, source: Foreign, _event: Foreign) -> None:
        if source is self.owner:
            self.run.steps = (self.run.steps or 0) + 1
            self.run.progress(Sign.STATE_CHANGE)

    def _asks_person(self, _source: Foreign, event: Foreign) -> None:
        """A flow's method blocks until somebody has answered."""
        kind = ApprovalKind.CONFIRMATION if getattr(event, "emit", None) else ApprovalKind.INPUT_REQUIRED
        self._asks[_key(event)] = self.ask(kind)

    def _person_answered(self, _source: Foreign, event: Foreign) -> None:
        """Whether anything came: `ask` gives None where its time was over, and the flow goes on with that."""
        approval_id = self._asks.pop(_key(event), None)
        if approval_id is not None:
            given = getattr(event, "response", getattr(event, "feedback", None))
            self.run.decided(approval_id, "cancelled" if given is None else "answered")

    events: Mapping[str, Callable[[Any, Any, Any], None]] = {
        "TaskStartedEvent": _begun,
        "LiteAgentExecutionStartedEvent": _begun,
        "FlowStartedEvent": _begun,
        "MethodExecutionStartedEvent": _begun,
        "LLMCallCompletedEvent": _answered,
        "ToolUsageStartedEvent": _tool_began,
        "ToolUsageFinishedEvent": _tool_came_back,
        "ToolUsageErrorEvent": _tool_failed,
        "ToolSelectionErrorEvent": _tool_unknown,
        "LLMGuardrailStartedEvent": _checks,
        "LLMGuardrailCompletedEvent": _checked,
        "TaskCompletedEvent": _task_done,
        "MethodExecutionFinishedEvent": _method_done,
        "HumanFeedbackRequestedEvent": _asks_person,
        "HumanFeedbackReceivedEvent": _person_answered,
        "FlowInputRequestedEvent": _asks_person,
        "FlowInputReceivedEvent": _person_answered,
    }

    # Turns of an agent ------------------------------------------------------------------------------------------------

    def turn_begins(self, turn: Turn) -> None:
        """An agent asks its model."""
        self.turns += 1
        self.is_done_by_tool = self._is_unknown_tool = False
        limit = getattr(turn.executor, "max_iter", getattr(turn.executor, "max_iterations", None))
        if type(limit) is int:
            self.max_iter = limit

    def turn_ends(self, turn: Turn, error: BaseException | None) -> None:
        """It has an answer, or none. A model of the host's own class may tell nothing on the bus."""
        run = self.run
        if error is not None:
            self.model_fault = error
            self._failed_models += isinstance(error, Exception)
            return
        run.model_errors_recovered += self._failed_models
        self._failed_models = 0
        if not turn.is_told:
            run.model_calls = (run.model_calls or 0) + 1
        if turn.is_forced:
            self.forced = Forced(self.max_iter)
        else:
            run.steps = (run.steps or 0) + 1

    # Waits inside of a run that goes on -------------------------------------------------------------------------------

    def ask(self, kind: ApprovalKind) -> str:
        """A person is asked, and the run blocks. Only this process can take the answer: there is no resume token."""
        self._asked += 1
        approval_id = f"{self.run.run_id}/feedback-{self._asked}"
        self.run.waiting(approval_id, kind, boundary=Boundary.CALLBACK, at_once=True)
        self.asked = approval_id
        return approval_id

    # How it ends; the first word counts -------------------------------------------------------------------------------

    def say_how(self) -> None:
        """What stands behind an end that looks ordinary: a bound, or a tool that ends the work."""
        if self.forced is not None:
            self.run.forced_wrapup = True
            self.say_bound(self.forced.limit)
        elif self.is_done_by_tool:
            self.run.say(StopCause.EXPLICIT_DONE, Rank.SIGNAL, Boundary.CALLBACK, reason=causes.ENDED_BY_TOOL)

    def say_bound(self, limit: int | None) -> None:
        """`max_iter` fired. It bounds an agent's work on one task: steps of all tasks cannot be held against it."""
        self.run.bounded(StopCause.STEP_LIMIT, "max_iter", "custom", limit=limit, observed=limit)

    def failed(self, error: BaseException) -> None:
        """An exception leaves it. A run around it that the exception leaves too says the same."""
        if not self.is_over:
            cause = self.cause(error)
            if self.outer is not None:
                self.outer.child_fault = None if cause is None else (error, cause)
                if cause is StopCause.INPUT_PENDING and self.asked is not None:
                    self.outer.child_wait = (error, (self.run.run_id, self.asked))
            if cause is not None:
                self.stopped_by(error, cause)
        super().failed(error)

    def stopped_by(self, error: BaseException, cause: StopCause) -> None:
        """What there is to say beside the cause of an exception."""
        if cause is not StopCause.GUARDRAIL and self._failed_models and _has(error, self.model_fault):
            self.run.model_errors_terminal = 1
        if causes.is_tool_failure(error):
            self._failed_by_tool(cause)

    def _failed_by_tool(self, cause: StopCause) -> None:
        """Its policy says that the run ends with it; that one was counted as recovered."""
        run = self.run
        if cause is StopCause.TOOL_FAILURE and run.tool_errors_recovered:
            run.tool_errors_recovered, run.tool_errors_terminal = run.tool_errors_recovered - 1, 1
        self.tool = self.last_tool

    def is_first_end(self) -> bool:
        """Whether it is over only now. An exception that is kept keeps every frame that it left."""
        is_first = super().is_first_end()
        if is_first:
            self.child_fault = self.child_wait = self.model_fault = None
        return is_first

    def cause(self, error: BaseException) -> StopCause | None:
        """By what a run inside says, by its class and place; else by where it came from: the input, or the model."""
        if is_cancelled(error):
            return None
        if self.child_fault is not None and isinstance(error, Exception) and _has(error, self.child_fault[0]):
            return self.child_fault[1]
        known = causes.cause_of(error)
        if not self.hook.is_tested or not isinstance(error, Exception):
            return known  # an interrupt is no fault of the model that was being asked
        if known is not None:
            return None if known is StopCause.GUARDRAIL and self._is_faulty_guardrail(error) else known
        if _has(error, self.model_fault):
            return provider_cause(error) or StopCause.MODEL_FAILURE
        is_refused = not self.has_begun and isinstance(error, TypeError | ValueError | KeyError)
        return StopCause.INPUT_REJECTED if is_refused and causes.is_crewais(causes.origin_of(error).module) else None

    def _is_faulty_guardrail(self, error: BaseException) -> bool:
        """A guardrail that passes and gives nothing leaves by the place of one that refuses: a fault of the host's."""
        return "guardrail" in causes.origin_of(error).function and self.is_guardrail_passed


def _has(error: BaseException, part: BaseException | None) -> bool:
    """Whether one exception is in another's chain. Their `==` is somebody else's."""
    return any(link is part for link in chain_of(error))


def _tool_of(source: Foreign, name: object) -> Foreign | None:
    """The tool that an event is about, where the agent that emits it has one of that name."""
    tools = (*(getattr(source, "tools", None) or ()), *(getattr(source, "original_tools", None) or ()))
    return next((tool for tool in tools if _plain(getattr(tool, "name", None)) == _plain(name)), None)


def _plain(name: object) -> str:
    """A tool's name without what CrewAI changes in it (`sanitize_tool_name`)."""
    return "".join(each for each in str(name).lower() if each.isalnum())


def _key(event: Foreign) -> str:
    return f"{type(event).__name__[:10]}:{event.method_name}"


def _first(usage: Mapping[str, Any], names: tuple[str, ...]) -> object:
    return next((usage[name] for name in names if usage.get(name) is not None), None)
