"""Google ADK: what every invocation has: its place in the context, where its state is kept, and what it waits for.

ADK asks the program with calls that it makes itself (`adk_request_confirmation`, `adk_request_credential`,
`adk_request_input`), or leaves a call of a long-running tool open; the answer is a function response with that call's
id. Not here: what events and callbacks mean (`call`).
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from stopcause.receipts.hooks import call
from stopcause.receipts.hooks.google_adk import causes
from stopcause.receipts.identifiers import is_identifier, is_personal
from stopcause.receipts.vocabulary import ApprovalKind, Decision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from contextvars import Token

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.google_adk.call import RunnerCall
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run

open_call: ContextVar[RunnerCall | None] = ContextVar("stopcause_google_adk_call", default=None)

_KINDS = {
    causes.REQUEST_CONFIRMATION: ApprovalKind.TOOL_CALL,
    causes.REQUEST_CREDENTIAL: ApprovalKind.SIGN_IN,
    causes.REQUEST_INPUT: ApprovalKind.INPUT_REQUIRED,
}


class Asked(NamedTuple):
    """What is waited for. `tool_call_id`: the call that is gated; `run_id`: the run that waits."""

    kind: str
    tool_call_id: str | None = None
    run_id: str | None = None


class Call(call.Call):
    """One invocation. As a context manager, it is current while an event of its stream is being made."""

    place: object = None  # what keeps its state
    session: str | None = None
    invocation: str | None = None
    metadata: dict[str, Any] | None = None  # of the program's own, for this run
    _unknown: AbstractSet[str] = frozenset()  # what is answered, and was not asked in this process
    is_kept: bool | None = None  # whether the state outlives the process; None: it does not, but the session lives on

    def __init__(self, hook: Hook, run: Run, runner: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run)
        self.runner = runner
        self.tools: dict[str, str] = {}  # of calls, the names of the tools that they found
        self.asked: dict[str, Asked] = {}
        self.answered: dict[str, Asked] = {}
        self._payloads: dict[str, dict[str, Any]] = {}
        self._waiting = waiting
        self._outer_token: Token[RunnerCall | None] | None = None

    def __enter__(self) -> Self:
        self._outer_token = open_call.set(self)  # type: ignore[arg-type]  # there is one class made from this
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._outer_token is not None:
            with contextlib.suppress(ValueError):  # a generator may be finalised in another context
                open_call.reset(self._outer_token)

    # Where it lives ---------------------------------------------------------------------------------------------------

    def lives(self, user: object, session: object) -> None:
        """Its session, and whether that outlives the process. The session of an agent that is a tool does not live on.

        Source: `tools/agent_tool.py`, which makes a session for each call and forgets it.
        """
        service = self.runner.session_service
        is_in_memory = is_a(service, "InMemorySessionService") or self._is_in_memory(service)
        self.session = session if isinstance(session, str) else None
        self.run.thread_id = self.run.thread_id or self.session
        self.place = (id(service) if is_in_memory else self.runner.app_name, user, session)
        if is_a(self.runner.artifact_service, "ForwardingArtifactService"):
            self.is_kept = False
        elif not is_in_memory:
            self.is_kept = True

    def _is_in_memory(self, service: Foreign) -> bool:
        """Whether it is a database of SQLite's that is no file."""
        if not is_a(service, "DatabaseSessionService"):
            return False
        driver = self.hook.read(self.run, service, "db_engine.url.drivername", str) or ""
        name = self.hook.read(self.run, service, "db_engine.url.database", str)
        return driver.startswith("sqlite") and name in (None, "", ":memory:")

    @property
    def resume_token(self) -> str | None:
        """What names the paused state: the session, and the invocation in it, which a resumable app asks for."""
        if not self.is_kept or self.session is None:
            return None
        if is_personal(self.session) or not is_identifier(self.session):
            self.run.find("refused_value", f"{self.hook.adapter}:session_id")
            return None
        return f"{self.session}/{self.invocation}"

    # Waits ------------------------------------------------------------------------------------------------------------

    def asks(self, function_call: Foreign) -> None:
        """A call that only the program can answer. Of ADK's own, the call that it is about is the gated one."""
        self.asked[function_call.id] = _asked(function_call)
        if self.run.config.approval_keys:
            self._payloads[function_call.id] = _payload(function_call)

    def withdraw(self, call_id: str) -> None:
        """Its tool did not begin anything: nobody will answer."""
        asked = self.asked.get(call_id)
        if asked is not None and asked.kind == ApprovalKind.EXTERNAL:
            del self.asked[call_id]

    def wait(self) -> None:
        """It stops for what it asked."""
        token = self.resume_token
        for approval_id, asked in self.asked.items():
            self.run.waiting(
                approval_id, asked.kind, tool=self.tools.get(asked.tool_call_id or approval_id),
                tool_call_id=asked.tool_call_id, resume_token=token, resumable=self.is_kept,
                metadata={**(self.metadata or {}), **self._payloads.get(approval_id, {})},
            )  # fmt: skip
            self._waiting.add(self.place, approval_id, asked._replace(run_id=self.run.run_id))

    def resume(self, message: object) -> None:
        """Its input answers what was asked. Whether a confirmation was a yes is seen when ADK has read it."""
        parts = getattr(message, "parts", None) or ()
        responses = {each.id: each for part in parts if (each := part.function_response) is not None and each.id}
        found = {each: asked for each in responses if (asked := self._waiting.of(self.place, each)) is not None}
        self.answered = found
        self._unknown = responses.keys() - found.keys()
        if responses:
            answers = {each: _decision(response, is_known=each in found) for each, response in responses.items()}
            self.run.resumed(next((asked.run_id for asked in found.values()), None), answers)

    def recall(self, events: Sequence[Foreign]) -> None:
        """What another process asked: its calls are in the session, and with them what they gate."""
        for event in reversed(events) if self._unknown else ():
            for function_call in event.get_function_calls():
                if function_call.id in self._unknown and function_call.name in _KINDS:
                    self.answered[function_call.id] = _asked(function_call)

    def taken(self) -> None:
        """The framework took the answers: another run cannot bring them again."""
        self._waiting.forget(self.place, self.answered)

    def cut_off(self) -> None:
        """It failed: a call that was let through and has not run waits as before, and may be answered again."""
        for approval_id, asked in self.answered.items():
            if asked.kind == ApprovalKind.TOOL_CALL:
                self._waiting.add(self.place, approval_id, asked)

    def decided(self, context: Foreign, *, is_confirmed: bool) -> None:
        """ADK has read what was decided on a call. Of a denied one there is nothing more to come."""
        for approval_id in self._answers_for(context):
            self.run.decided(approval_id, Decision.APPROVED if is_confirmed else Decision.DENIED)
            if not is_confirmed:
                del self.answered[approval_id]

    def executed(self, context: Foreign) -> None:
        """A call that was waited for has run."""
        for approval_id in self._answers_for(context):
            self.run.executed(approval_id)
            del self.answered[approval_id]

    def _answers_for(self, context: Foreign) -> list[str]:
        return [
            approval_id
            for approval_id, asked in self.answered.items()
            if asked.kind in (ApprovalKind.TOOL_CALL, ApprovalKind.SIGN_IN)
            and (asked.tool_call_id == context.function_call_id or approval_id == asked_by_node(context))
        ]


def asked_by_node(context: Foreign) -> str | None:
    """The id with which a tool that is a node of a workflow asks for a yes; 2.0 has no such."""
    path = getattr(context, "node_path", None)
    return f"{causes.NODE_CONFIRMATION}{path}" if path else None


def _decision(response: Foreign, *, is_known: bool) -> str | None:
    """Whether it was a yes is seen later, where it is known which call it is about; a no is one anywhere."""
    if response.name != causes.REQUEST_CONFIRMATION and not response.id.startswith(causes.NODE_CONFIRMATION):
        return Decision.ANSWERED
    told = response.response
    is_denied = isinstance(told, dict) and told.get("confirmed") is False
    return Decision.DENIED if is_denied and not is_known else None


def _asked(function_call: Foreign) -> Asked:
    if function_call.name == causes.REQUEST_INPUT and function_call.id.startswith(causes.NODE_CONFIRMATION):
        return Asked(ApprovalKind.TOOL_CALL)
    kind = _KINDS.get(function_call.name)
    return Asked(ApprovalKind.EXTERNAL, function_call.id) if kind is None else Asked(kind, _gated(function_call))


def _gated(function_call: Foreign) -> str | None:
    """The id of the call that ADK's own call is about, as ADK wrote it there (`flows/llm_flows/functions.py`)."""
    args: Mapping[str, Any] = function_call.args or {}
    original = args.get("originalFunctionCall")
    found = original.get("id") if isinstance(original, dict) else args.get("functionCallId")
    return found if isinstance(found, str) else None


def _payload(function_call: Foreign) -> dict[str, Any]:
    """What the tool put beside its question, for whoever answers; only allowed keys of it are ever looked at."""
    asked = (function_call.args or {}).get("toolConfirmation")
    payload = asked.get("payload") if isinstance(asked, dict) else None
    return payload if isinstance(payload, dict) else {}


def is_a(owner: object, name: str) -> bool:
    """Whether an object is of a class of ADK's, without importing it."""
    return any(kind.__name__ == name and kind.__module__.startswith("google.adk.") for kind in type(owner).__mro__)
