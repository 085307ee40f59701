"""One run while it goes on: what is noted of it on the agent's thread, and how it ends.

Nothing is worked out here: numbers are counted, values are kept as they come, and two entries go to the writer's queue.
Ids, times as text, dicts and checks are made behind (`records`, `writer`). No method raises into the host, none blocks,
and none holds on to an object of the agent's beyond the call. What a hook may set is public; the host's own words are
the methods.
"""

from __future__ import annotations

import contextlib
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from opentelemetry import trace

from stopcause.receipts import ids
from stopcause.receipts.causes import Rank, Said, pick
from stopcause.receipts.faults import fault_of, is_cancelled, is_time_out, provider_cause
from stopcause.receipts.vocabulary import (
    ABORTED,
    FAILED,
    WAITING,
    ApprovalKind,
    Boundary,
    Decision,
    Finish,
    FinishSource,
    LimitKind,
    OutputShape,
    Scope,
    Sign,
    StopCause,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextvars import Token
    from datetime import datetime
    from types import TracebackType

    from stopcause.receipts.configuration import Configuration
    from stopcause.receipts.writer import Writer

_PROGRESS_NS = 10_000_000_000  # at most one progress record in this time, by the wire format
_MOST_NOTED = 1_000  # of anything that is kept in a list: a receipt has to fit a line

current: ContextVar[Run | None] = ContextVar("stopcause_run", default=None)


class Run:
    """One run of an agent. `capture.run` makes it, a hook through `capture.begin`.

    Used as a sync or async context manager, it starts and stops with the block. Of the attributes, a hook sets what its
    framework tells; what stays None is absent from the receipt.
    """

    # What a hook may set or count. Class attributes: a run that does not use them pays nothing.
    adapter: str = "stopcause"
    framework: str | None = None
    framework_version: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    model: str | None = None
    provider: str | None = None
    labels: Mapping[str, str] | None = None
    thread_id: str | None = None
    parent_run_id: str | None = None
    resumes_run_id: str | None = None
    contract: str | None = None
    subject: str | None = None
    step_unit: str = "step"
    steps: int | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    pending_tool_calls: int | None = None
    tool_errors_terminal: int = 0
    tool_errors_recovered: int = 0
    model_errors_terminal: int = 0
    model_errors_recovered: int = 0
    unsafe_steps: int | None = None
    in_flight_tools: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    output_cap: int | None = None
    cost_usd: float | None = None
    finish: Finish | None = None
    finish_raw: str | None = None
    finish_source: FinishSource = FinishSource.PROVIDER
    forced_wrapup: bool | None = None
    output_shape: OutputShape | None = None
    closed_by: str | None = None
    is_driven: bool = True  # whether something moves it on; a stream that nobody reads is not driven
    abort_requested_ns: int | None = None

    # How it stands. For `records` and `writer`.
    answers: tuple[tuple[str, Decision | None], ...] = ()
    said: tuple[Said, ...] = ()
    limits: tuple[tuple[Any, ...], ...] = ()
    conditions: tuple[tuple[Any, ...], ...] = ()
    waits: tuple[dict[str, Any], ...] = ()
    findings: tuple[tuple[str, str | None], ...] = ()
    made_progress: bool | None = None
    progress_ns: int | None = None
    children_open: int = 0
    children_failed: int = 0
    children_waiting: int = 0
    started_ns: int = 0
    started_mono: int = 0
    stopped_ns: int = 0
    stopped_mono: int = 0
    result: Any = None  # only where a validator wants it, and only until it has looked
    seq: int = 0  # the writer's: order inside the run
    is_started: bool = False
    is_closed: bool = False

    _run_id: str | None = None
    _adopted: bool = False
    _is_adopting: bool = False
    _parent: Run | None = None
    _token: Token[Run | None] | None = None
    _recorded_ns: int = 0
    _span: trace.Span | None = None

    def __init__(
        self, writer: Writer | None, config: Configuration, agent: str | None = None, attempt: int = 1
    ) -> None:
        self.writer = writer  # None: nothing is recorded
        self.config = config
        self.agent = agent
        self.attempt = attempt
        self.epoch = writer.epoch if writer else 0

    @property
    def run_id(self) -> str:
        """Its id, a UUID in order of time unless the host gave one. Made when it is first asked for."""
        made = self._run_id
        if made is None:
            # One atomic step: the host's thread and the writer's may both ask first.
            made = self.__dict__.setdefault("_run_id", ids.new_id(self.started_ns or time.time_ns()))
        return made

    # Its life ---------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """It begins. Once; what the start record says is taken from it as it is then, a moment later."""
        if self.is_started:
            return self
        self.is_started = True
        self.started_ns = time.time_ns()
        self.started_mono = time.monotonic_ns()
        span = trace.get_current_span()
        if span is not trace.INVALID_SPAN:
            self._span = span
        if self._parent is not None:
            self._parent.children_open += 1
        if self.writer is not None:
            self.writer.started(self)
        return self

    def close(self) -> None:
        """It is over. Once; what was said until here decides. A run that a fork copied is the parent's to close."""
        if self.is_closed or not self.is_started:
            return
        self.is_closed = True
        self.stopped_ns = time.time_ns()
        self.stopped_mono = time.monotonic_ns()
        if self._parent is not None:
            self._tell_parent(self._parent)
        if self._span is not None:
            self._mark(self._span)
        if self.writer is not None:
            self.writer.stopped(self)

    def end(
        self,
        error: BaseException | None = None,
        *,
        boundary: Boundary = Boundary.CALL,
        cause: StopCause | None = None,
        reason: str | None = None,
        result: Any = None,  # noqa: ANN401 - the framework's own; only a validator of the host's ever sees it
    ) -> None:
        """A layer's end: it came back, or an exception left it. Closes the run unless the host's block holds it.

        Args:
            error: What left the loop.
            boundary: Where that was seen.
            cause: What the hook's map makes of the exception; None asks the common one.
            reason: A code beside it.
            result: What the loop returned; kept only where a validator wants it.
        """
        if self.config.validators and result is not None:
            self.result = result
        if error is None:
            self.say(StopCause.NATURAL, Rank.RETURNED, boundary)
        else:
            self.raised(error, boundary=boundary, cause=cause, reason=reason)
        if self._is_adopting:
            self._is_adopting = False
        else:
            self.close()

    def __enter__(self) -> Self:
        self._token = current.set(self)
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._is_adopting = False
        try:
            if error is None:
                self.say(StopCause.NATURAL, Rank.RETURNED, Boundary.CALL)
            else:
                self._left_block(error)
            self.close()
        finally:
            self.leave()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def leave(self) -> None:
        """Gives the context back. A generator that is finalised elsewhere cannot; its context is gone with it."""
        token, self._token = self._token, None
        if token is not None:
            with contextlib.suppress(ValueError):
                current.reset(token)

    def _left_block(self, error: BaseException) -> None:
        """An exception that left the host's block. What a hook made of the same one stands, but for a time limit:

        only out here can a cancellation be told from a timer.
        """
        if is_time_out(error):
            self.said = tuple(each for each in self.said if each.rank is not Rank.RAISED)
            self.raised(error)
        elif not any(each.rank is Rank.RAISED for each in self.said):
            self.raised(error)

    # What is said of it -----------------------------------------------------------------------------------------------

    def say(
        self,
        cause: StopCause,
        rank: Rank,
        boundary: Boundary,
        *,
        reason: str | None = None,
        error: BaseException | None = None,
        tool: str | None = None,
        aborted: bool = False,
    ) -> None:
        """One layer's word on why it stops. Cheap, and as often as wanted: closing picks one."""
        if len(self.said) < _MOST_NOTED:
            fault = None if error is None else fault_of(error, tool)
            self.said += (Said(rank, cause, boundary, reason, fault, aborted),)

    def raised(
        self,
        error: BaseException,
        *,
        boundary: Boundary = Boundary.EXCEPTION,
        cause: StopCause | None = None,
        reason: str | None = None,
        tool: str | None = None,
    ) -> None:
        """An exception left the loop. `cause` is the hook's word on its class; without one the common map is asked."""
        if isinstance(error, GeneratorExit):
            self.say(StopCause.CALLER_ABORT, Rank.LEFT, boundary, reason="reader_left", aborted=True)
        elif cause is not None:
            self.say(cause, Rank.RAISED, boundary, reason=reason, error=error, tool=tool, aborted=cause in ABORTED)
        elif is_cancelled(error):
            self.say(StopCause.CALLER_ABORT, Rank.RAISED, boundary, reason=reason or "cancelled", aborted=True)
        elif is_time_out(error):
            self.say(StopCause.TIME_LIMIT, Rank.RAISED, boundary, reason=reason, error=error)
        elif isinstance(error, KeyboardInterrupt):
            self.say(StopCause.USER_ABORT, Rank.RAISED, boundary, reason="keyboard_interrupt", aborted=True)
        elif isinstance(error, SystemExit):
            self.say(StopCause.PLATFORM_ABORT, Rank.RAISED, boundary, reason="system_exit", aborted=True)
        else:
            failed = provider_cause(error) or StopCause.HOST_ERROR
            self.say(failed, Rank.RAISED, boundary, reason=reason, error=error, tool=tool)

    def stop(self, cause: str, *, reason: str | None = None, error: BaseException | None = None) -> None:
        """Names why it stops. The program's own word counts before every other; the run ends with its block."""
        known = _word(StopCause, cause)
        if known is None:
            self.find("refused_value", "stop.cause")
        else:
            self.say(known, Rank.HOST, Boundary.CALL, reason=reason, error=error, aborted=known in ABORTED)

    def step(
        self,
        *,
        tool_calls: int = 0,
        model_calls: int = 1,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost_usd: float = 0.0,
        finish: str | None = None,
    ) -> None:
        """One completed step, with what it used."""
        self.steps = (self.steps or 0) + 1
        self.model_calls = (self.model_calls or 0) + model_calls
        self.tool_calls = (self.tool_calls or 0) + tool_calls
        if input_tokens or output_tokens:
            self.add_usage(input_tokens, output_tokens)
        if cost_usd:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd
        if finish is not None:
            self.finish, self.finish_raw = _word(Finish, finish) or Finish.OTHER, finish

    def add_usage(self, input_tokens: object, output_tokens: object) -> None:
        """Adds tokens; what is no count is left out and found."""
        for name, value in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
            if type(value) is int and value >= 0:
                setattr(self, name, (getattr(self, name) or 0) + value)
            elif value is not None:
                self.find("refused_value", f"usage.{name}")

    def limit(self, name: str, kind: str, limit: float, *, unit: str | None = None, scope: str = Scope.ATTEMPT) -> None:
        """A bound that was set before the run. `kind` is a word of `LimitKind`."""
        if len(self.limits) < _MOST_NOTED and not any(each[0] == name for each in self.limits):
            self.limits += ((name, kind, limit, unit, scope),)

    def condition(
        self, name: str, kind: str, *, fired: bool | None, limit: float | None = None, observed: float | None = None
    ) -> None:
        """A stop condition as it was evaluated at the boundary; of one that is said again, the last word counts."""
        kept = tuple(each for each in self.conditions if each[0] != name)
        if len(kept) < _MOST_NOTED:
            self.conditions = (*kept, (name, kind, fired, limit, observed))

    def bounded(self, cause: StopCause, name: str, kind: str, *, limit: float | None, observed: float | None) -> None:
        """The framework says that a bound ended it: the condition, and the cause that it stands for."""
        self.condition(name, kind, fired=True, limit=limit, observed=observed)
        self.say(cause, Rank.SIGNAL, Boundary.CALLBACK)

    def progress(self, sign: str = Sign.STATE_CHANGE) -> None:
        """It got somewhere. Noted each time, recorded at most once in ten seconds; that renews the lease."""
        now = time.time_ns()
        if sign != Sign.HEARTBEAT and sign != Sign.OUTPUT:
            self.made_progress, self.progress_ns = True, now
        if self.writer is not None and now - self._recorded_ns >= _PROGRESS_NS and self.is_started:
            self._recorded_ns = now
            self.writer.progressed(self, now, sign)

    def waiting(
        self,
        approval_id: str | None = None,
        kind: str = ApprovalKind.TOOL_CALL,
        *,
        tool: str | None = None,
        tool_call_id: str | None = None,
        raised_by: str | None = None,
        owner: str | None = None,
        deadline: datetime | None = None,
        expires_at: datetime | None = None,
        resume_token: str | None = None,
        resumable: bool | None = None,
        boundary: Boundary = Boundary.CALL,
        metadata: object = None,
    ) -> None:
        """It stops to wait for something that only the outside can give.

        Args:
            approval_id: What the answer will name. Without one it is numbered, so that the wait is not lost.
            kind: A word of `ApprovalKind`.
            tool: The tool that is gated; one that the agent has.
            tool_call_id: The call that is gated.
            raised_by: The child that asked.
            owner: Who answers; without one the configured route says.
            deadline: Until when, softly.
            expires_at: Until when, at all.
            resume_token: What names the paused state; never a bearer secret.
            resumable: Whether the run can be resumed; observed, not hoped.
            boundary: Where it was seen.
            metadata: The framework's own; only the keys that `configure(approval_keys=...)` names are read.
        """
        if len(self.waits) < _MOST_NOTED:
            wait = {
                "approval_id": approval_id,
                "kind": kind,
                "tool": tool,
                "tool_call_id": tool_call_id,
                "raised_by": raised_by,
                "owner": owner,
                "deadline": deadline,
                "expires_at": expires_at,
                "resume_token": resume_token,
                "resumable": resumable,
                "at_ns": time.time_ns(),
            }
            if self.config.approval_keys:
                wait |= _allowed(self.config.approval_keys, metadata)
            self.waits += (wait,)
        else:
            self.find("approvals_cut", None)
        self.say(_WAIT_CAUSES.get(kind, StopCause.APPROVAL_PENDING), Rank.SIGNAL, boundary)

    def resumed(self, run_id: str | None = None, answers: Mapping[str, str | None] | Iterable[str] = ()) -> None:
        """It resumes a run that waited. `answers`: the approval ids that it answers, with the decisions if known."""
        if run_id is not None:
            self.resumes_run_id = run_id
        pairs = answers.items() if hasattr(answers, "items") else ((each, None) for each in answers)
        for approval_id, decision in pairs:
            if len(self.answers) < _MOST_NOTED:
                self.answers += ((approval_id, _word(Decision, decision)),)

    def executed(self, approval_id: str) -> None:
        """The call that an approval gated has run, in this run, which resumes the one that waited."""
        if self.writer is not None:
            self.writer.executed(self, approval_id, time.time_ns())

    def outcome(
        self,
        outcome_id: str,
        *,
        contract: str | None = None,
        check: str | None = None,
        polarity: str = "confirmed",
        strength: str | None = None,
        subject: str | None = None,
        effect_key: str | None = None,
        pre_state: str | None = None,
    ) -> None:
        """What this process saw at the destination; recorded at once. It counts where the contract lists the issuer."""
        if self.writer is not None:
            given = locals()
            fields = {name: given[name] for name in _OUTCOME_FIELDS if given[name] is not None}
            self.writer.outcome(self, fields, time.time_ns())

    def child(self, agent: str | None = None, **facts: Any) -> Run:  # noqa: ANN401 - attributes of a run
        """A run that this one starts. Use it as a context manager."""
        made = Run(self.writer, self.config, agent)
        made._be_child_of(self)
        for name, value in facts.items():
            setattr(made, name, value)
        return made

    def find(self, code: str, where: str | None) -> None:
        """Something that the writer itself noticed: a code and a place, once each."""
        if (code, where) not in self.findings and len(self.findings) < _MOST_NOTED:
            self.findings += ((code, where),)

    # For capture ------------------------------------------------------------------------------------------------------

    def adopt(self) -> bool:
        """Whether a framework's run may be this run: the first that begins while the host's block is open."""
        if self._adopted or self.is_closed or not self.is_started or self._token is None:
            return False
        self._adopted = self._is_adopting = True
        return True

    def went_on(self) -> None:
        """The host began another framework run: what left the first one did not end this run."""
        kept = tuple(each for each in self.said if each.rank in (Rank.HOST, Rank.RETURNED))
        if len(kept) < len(self.said) and not self._is_adopting:
            self.said = kept
            self.find("went_on", None)

    def _be_child_of(self, parent: Run) -> None:
        self._parent = parent
        self.parent_run_id = parent.run_id
        self.thread_id = self.thread_id or parent.thread_id

    def _tell_parent(self, parent: Run) -> None:
        self._parent = None  # a chain of runs that start runs would hold all of them
        parent.children_open -= 1
        cause = pick(self.said).cause
        parent.children_failed += cause in FAILED
        parent.children_waiting += cause in WAITING

    def _mark(self, span: trace.Span) -> None:
        """Cause, steps and reason on the span that was open when it began; never its status."""
        with contextlib.suppress(Exception):
            if span.is_recording():
                said = pick(self.said)
                span.set_attribute("stopcause.stop.cause", said.cause)
                if said.reason:
                    span.set_attribute("stopcause.stop.reason", said.reason)
                if self.steps is not None:
                    span.set_attribute("stopcause.step.count", self.steps)

    @property
    def span_context(self) -> trace.SpanContext | None:
        """Where it is in its trace."""
        return None if self._span is None else self._span.get_span_context()


_WAIT_CAUSES: dict[str, StopCause] = {
    ApprovalKind.INPUT_REQUIRED: StopCause.INPUT_PENDING,
    ApprovalKind.EXTERNAL: StopCause.EXTERNAL_PENDING,
}
_OUTCOME_FIELDS = (
    "outcome_id", "contract", "check", "polarity", "strength", "subject", "effect_key", "pre_state",
)  # fmt: skip


def _word(words: Any, value: object) -> Any:  # noqa: ANN401 - a closed list and one of its words
    try:
        return None if value is None else words(value)
    except ValueError:
        return None


def _allowed(keys: Mapping[str, str], metadata: object) -> dict[str, Any]:
    """What the host allowed out of a framework's metadata: values by the names of ours, nothing else."""
    if not isinstance(metadata, dict):
        return {}
    found = {name: metadata.get(key) for name, key in keys.items()}
    return {name: value for name, value in found.items() if value is not None}
