"""Agent Framework: one invocation of an agent. What its requests, model calls, tools and answer say.

Names of tools are those of tools that the agent has: a name that a model made up is nowhere taken.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, is_cancelled, provider_cause
from stopcause.receipts.hooks.agent_framework import causes
from stopcause.receipts.hooks.agent_framework.budget import Budget
from stopcause.receipts.hooks.agent_framework.call import Call
from stopcause.receipts.hooks.agent_framework.contents import (
    Answer,
    Asked,
    answers_in,
    asked_for,
    contents_of,
    tool_names,
)
from stopcause.receipts.identifiers import is_personal
from stopcause.receipts.vocabulary import ApprovalKind, Boundary, Finish, StopCause

if TYPE_CHECKING:
    from contextvars import Token

    from stopcause.receipts.hooks.agent_framework.budget import Fired
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run

# The invocation whose loop is at work; None inside its model and its tools, whose own calls are not the loop's.
loop_call: ContextVar[AgentCall | None] = ContextVar("stopcause_agent_framework_loop", default=None)

_CONTINUATION = "continuation"


def begin(
    hook: Hook, agent: Foreign, waiting: Waiting[Asked], messages: object, given: Mapping[str, Any]
) -> AgentCall | None:
    """An invocation of `run`, with its messages and the keyword arguments that it was called with."""
    run = hook.begin()
    if run is None:
        return None
    call = AgentCall(hook, run, agent, waiting)
    with hook.guard("describe"):
        call.describe(messages, given)
    return call.begin()


class AgentCall(Call):
    """One invocation of an agent."""

    budget: Budget | None = None
    tools: frozenset[str] = frozenset()
    session: str | None = None
    is_kept = False  # whether the session's id leads to its state
    is_terminated = False  # by a middleware; the caller sees an ordinary answer
    is_structured = False
    stops_on_unknown = False
    model_fault: BaseException | None = None
    _failed_models = 0
    _requests = 0
    _token_of_response: object = None
    _loop_token: Token[AgentCall | None] | None = None

    def __init__(self, hook: Hook, run: Run, agent: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run, agent, waiting)
        self.answer = Answer()

    def __enter__(self) -> Self:
        self._loop_token = loop_call.set(self)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._loop_token is not None:
            with contextlib.suppress(ValueError):  # a stream may be finalised in another context
                loop_call.reset(self._loop_token)

    # How it begins ----------------------------------------------------------------------------------------------------

    def describe(self, messages: object, given: Mapping[str, Any]) -> None:
        """What is known before it begins."""
        run, read = self.run, self.hook.read
        run.agent = run.agent or read(run, self.owner, "name", str)
        if not self.hook.is_tested:
            return
        run.step_unit = "model_call"
        run.steps = run.steps or 0
        session = given.get("session")
        self.session = None if session is None else read(run, session, "session_id", str)
        self.is_kept = session is not None and _is_kept(self.owner, session)
        run.thread_id = run.thread_id or self.session
        self.place = self.session or id(self.owner)
        last = messages[-1] if isinstance(messages, list | tuple) and messages else messages
        self.resume(self.place, dict(answers_in(messages)), {each for each, _ in answers_in(last)})
        self._continue(given.get("options"))

    def _continue(self, options: object) -> None:
        """A response that a service goes on with in the background is asked for again by its token."""
        token = _named(options.get("continuation_token")) if isinstance(options, Mapping) else None
        asked = None if token is None else self.waiting.of(_CONTINUATION, token)
        if asked is not None:
            self.run.resumed(asked.run_id, {asked.approval_id: "answered"})

    # The loop ---------------------------------------------------------------------------------------------------------

    def requested(self, client: Foreign, options: object, client_kwargs: object) -> None:
        """The agent hands over to the function loop of its client."""
        run, given = self.run, options if isinstance(options, Mapping) else {}
        configuration = getattr(client, "function_invocation_configuration", None)
        self.tools = tool_names(given)
        self.is_structured = given.get("response_format") is not None
        run.provider = run.provider or self.hook.read(run, client, "OTEL_PROVIDER_NAME", str)
        run.output_cap = given.get("max_tokens")
        run.labels = run.labels or given.get("metadata")
        self._requests += 1
        if isinstance(configuration, Mapping) and configuration.get("enabled", True):
            self.stops_on_unknown = configuration.get("terminate_on_unknown_calls") is True
            self._bound(Budget(configuration, given, client_kwargs))

    def _bound(self, budget: Budget) -> None:
        """The bounds are those of one request: where a middleware asks again, they begin anew and bound no run."""
        self.budget = budget
        if self._requests > 1:
            self._begin_anew()
            return
        for name, limit in budget.limits.items():
            self.run.limit(name, causes.BOUNDS[name].kind, limit, unit=causes.BOUNDS[name].unit)

    def _begin_anew(self) -> None:
        """A middleware lets it go on: a bound of one request is none of the run, and what fired has not ended it."""
        run = self.run
        run.limits = tuple(each for each in run.limits if each[0] not in causes.BOUNDS)
        if run.forced_wrapup:
            run.forced_wrapup = None
            run.said = tuple(each for each in run.said if each.rank is not Rank.SIGNAL)
            run.conditions = tuple(each for each in run.conditions if each[0] not in causes.BOUNDS)
            run.tool_errors_recovered += run.tool_errors_terminal
            run.tool_errors_terminal = 0

    def looped(self, rounds: int, limit: int) -> None:
        """The framework's own loop around an agent has gone as often as it may; its condition was not asked again."""
        self.run.limits = tuple(each for each in self.run.limits if each[0] not in causes.BOUNDS)
        self.run.bounded(StopCause.STEP_LIMIT, causes.LOOP, "custom", limit=limit, observed=rounds)

    def round_trip(self, options: object) -> None:
        """The loop asks the model: where the tools were taken away for it, a bound has fired."""
        run = self.run
        run.steps = (run.steps or 0) + 1
        run.finish = run.finish_raw = None
        self.is_terminated = False
        fired = None if self.budget is None else self.budget.asked(options)
        if fired is not None:
            self._wrap_up(fired)

    def _wrap_up(self, fired: Fired) -> None:
        """A bound has fired, and what comes now looks like an end. Of a time, the receipt has its own."""
        run, bound = self.run, causes.BOUNDS[fired.name]
        kind = bound.kind if self._requests == 1 else "custom"  # not to be compared with the steps of all requests
        observed = None if bound.kind == "time" else fired.observed
        run.forced_wrapup = True
        run.bounded(bound.cause, fired.name, kind, limit=fired.limit, observed=observed)
        if bound.cause is StopCause.TOOL_FAILURE:
            run.tool_errors_terminal, run.tool_errors_recovered = 1, max(run.tool_errors_recovered - 1, 0)

    # Its model --------------------------------------------------------------------------------------------------------

    def model_answered(self) -> None:
        """The model came back."""
        self.run.model_calls = (self.run.model_calls or 0) + 1
        self.run.model_errors_recovered += self._failed_models
        self._failed_models, self.model_fault = 0, None

    def model_said(self, told: Foreign) -> None:
        """Its finish reason and its name, as a response or an update of one has them."""
        run = self.run
        if isinstance(model := getattr(told, "model", None), str):
            run.model = model
        reason = getattr(told, "finish_reason", None)
        if isinstance(reason, str):
            run.finish, run.finish_raw = causes.FINISHES.get(reason, Finish.OTHER), reason

    def spent(self, usage: object) -> None:
        """What it counts as used."""
        if isinstance(usage, Mapping):
            self.run.add_usage(usage.get("input_token_count"), usage.get("output_token_count"))

    def model_failed(self, error: BaseException) -> None:
        """The model, or its provider, raised."""
        if isinstance(error, Exception):
            self.model_fault = error
            self._failed_models += 1

    # Its tools --------------------------------------------------------------------------------------------------------

    def tool_begins(self, asked: Foreign, tools: object) -> None:
        """The framework runs a call. One to a tool that there is not counts for its bounds alone."""
        self.run.in_flight_tools += 1
        name = (getattr(asked, "function_call", None) or asked).name
        if isinstance(tools, Mapping) and name in tools:
            self.run.tool_calls = (self.run.tool_calls or 0) + 1

    def tool_over(self) -> None:
        """It came back, or an exception left it."""
        self.run.in_flight_tools = max(self.run.in_flight_tools - 1, 0)

    def tool_returned(self, call: Foreign, result: Foreign) -> None:
        """What came of it. An error is told to the model; whether there is one is read, not what it says."""
        if getattr(result, "type", None) != "function_result":
            return
        is_error = result.exception is not None
        if self.budget is not None:
            self.budget.ran(is_error=is_error)
        if is_error:
            self.run.tool_errors_recovered += 1
        else:
            self.run.progress("tool_result")
        if call.type == "function_approval_response" and call.id is not None:
            self.executed(str(call.id))

    # The end ----------------------------------------------------------------------------------------------------------

    def item(self, item: Foreign) -> None:
        """An update of its answer."""
        if self.hook.is_tested:
            self._read(getattr(item, "contents", None) or (), getattr(item, "continuation_token", None))

    def _read(self, contents: Any, token: object) -> None:  # noqa: ANN401 - the framework's own
        for content in contents:
            self.answer.add(content)
        self._token_of_response = token

    def ended(self) -> None:
        """Its stream is over, and its updates were all of the answer."""
        self.returned(None)

    def read_result(self, result: Foreign) -> None:
        """What it waits for, else what a middleware made of it. `None` in place of an answer is a middleware's too."""
        if result is not None:
            self._read(contents_of(result.messages), result.continuation_token)
        run, answer = self.run, self.answer
        run.output_shape = answer.shape(is_structured=self.is_structured)
        for approval_id, asked in tuple(self.answered.items()):
            if answer.has_hosted_result and not asked.is_local:
                self.executed(approval_id)
        for approval_id, content in answer.requests.items():
            self._ask(approval_id, content)
        if self._token_of_response is not None:
            self._go_on(self._token_of_response)
        if self.is_terminated and not answer.requests:
            run.say(StopCause.GUARDRAIL, Rank.SIGNAL, Boundary.CALLBACK, reason=causes.TERMINATED)
        elif answer.pending:
            run.pending_tool_calls = answer.pending

    def _ask(self, approval_id: str, content: Foreign) -> None:
        """A request to the caller, who keeps the session that names its state, if that is a name by which it is kept.

        An agent that is a tool, or in a workflow, has a session that the caller does not see: there it names the state
        only where what is around it keeps that. Without a session, an approval of a call on this side cannot be given
        in 1.23 (`_tools.py`, `disable_approval_response_binding`); in 1.0 the messages alone are enough.
        """
        asked = asked_for(approval_id, content, self.tools)
        is_seen = self.outer is None or self.outer.keeps_children
        is_named = is_seen and self.is_kept and self.session is not None and not is_personal(self.session)
        is_lost = (
            self.session is None and asked.kind == ApprovalKind.TOOL_CALL and asked.is_local and self._is_binding()
        )
        self.wait(asked, resume_token=self.session if is_named else None, resumable=False if is_lost else None)

    def _is_binding(self) -> bool:
        from agent_framework import _tools

        configuration = getattr(getattr(self.owner, "client", None), "function_invocation_configuration", None) or {}
        is_known = hasattr(_tools, "_bind_approval_responses_to_pending_requests")
        return is_known and not configuration.get("disable_approval_response_binding", False)

    def _go_on(self, token: object) -> None:
        """The service goes on in the background, and keeps what the token names."""
        named = _named(token)
        asked = Asked(f"{self.run.run_id}/{_CONTINUATION}", ApprovalKind.EXTERNAL, run_id=self.run.run_id)
        self.run.waiting(
            asked.approval_id,
            asked.kind,
            resume_token=named,
            resumable=None if named is None else True,
        )
        if named is not None:
            self.waiting.add(_CONTINUATION, named, asked)

    def failed(self, error: BaseException) -> None:
        """As for every invocation; and whether a model's error ended it."""
        if not self.is_over and self._failed_models:
            self.run.model_errors_terminal = 1 if self.model_fault in chain_of(error) else 0
        super().failed(error)

    def is_first_end(self) -> bool:
        """Whether it is over only now. An exception that is kept keeps every frame that it left."""
        self.model_fault = None
        return super().is_first_end()

    def cause(self, error: BaseException) -> StopCause | None:
        """By its class, or because it came from the model; else a call to a tool that there is not."""
        known = super().cause(error)
        if known is not None or is_cancelled(error) or not isinstance(error, Exception):
            return known
        if self.model_fault is not None and self.model_fault in chain_of(error):
            return provider_cause(error) or StopCause.MODEL_FAILURE
        return StopCause.MALFORMED_CALL if self.stops_on_unknown and type(error) is KeyError else None


def _is_kept(owner: Foreign, session: Foreign) -> bool:
    """Whether the session's id leads to its state: the service has it, a history is stored, or the program named it.

    An id that the framework made up names what only this process has. Source: `AgentSession.__init__` (`uuid4`).
    """
    stores = (type(each).__name__ for each in getattr(owner, "context_providers", None) or ())
    is_stored = any(name.endswith("HistoryProvider") and not name.startswith("InMemory") for name in stores)
    if is_stored or getattr(session, "service_session_id", None) is not None:
        return True
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        return uuid.UUID(session.session_id).version != 4  # noqa: PLR2004 - as the framework makes them
    return True


def _named(token: object) -> str | None:
    """The response that a continuation token names, as OpenAI's has it; other providers' are not read."""
    named = token.get("response_id") if isinstance(token, Mapping) else None
    return named if isinstance(named, str) else None
