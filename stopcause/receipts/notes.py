"""What is noted of one run while it goes on, on the agent's thread.

Nothing is worked out here: numbers are counted, and values are kept as they come. Times as text, dicts and checks are
made behind (`records`, `mending`). No method raises into the host, none blocks, and none holds on to an object of the
agent's beyond the call. Tools may run in threads beside each other: what they count and add is one step of the
interpreter, `self.x += value` with nothing called in between. Not here: how a run begins and ends (`run`).
"""

from __future__ import annotations

import functools
import inspect
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from stopcause.receipts.causes import Rank, Said
from stopcause.receipts.faults import fault_of, is_cancelled, is_time_out, provider_cause
from stopcause.receipts.vocabulary import (
    ABORTED,
    Boundary,
    Decision,
    Finish,
    FinishSource,
    OutputShape,
    Scope,
    Sign,
    StopCause,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stopcause.receipts.configuration import Configuration
    from stopcause.receipts.faults import Fault
    from stopcause.receipts.replayed import Replayed
    from stopcause.receipts.writer import Writer

log = logging.getLogger("stopcause")

_F = TypeVar("_F", bound="Callable[..., Any]")

_PROGRESS_NS = 10_000_000_000  # at most one progress record in this time, by the wire format
MOST_NOTED = 1_000  # of anything that is kept in a list: a receipt has to fit a line


def harmless(method: _F) -> _F:
    """For what the host calls: an argument that cannot be used costs itself and a finding, never an exception.

    One that there is not, a misspelt one say, does not cost the others, and is said in the log.
    """
    names = inspect.signature(method).parameters.keys()

    @functools.wraps(method)
    def called(self: Notes, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the method
        try:
            if unknown := kwargs.keys() - names:
                kwargs = {name: value for name, value in kwargs.items() if name in names}
                self.say_unknown(method.__name__, unknown)
            return method(self, *args, **kwargs)
        except Exception:  # noqa: BLE001 - whatever an argument of the wrong type makes of it
            self.find("refused_value", method.__name__)
            return None

    return called  # type: ignore[return-value]  # the same signature


class Notes:
    """What a run knows of itself. Attributes are for hooks, methods for the host and for hooks.

    What stays None is absent from the receipt. The defaults are the class's: a run pays only for what it uses.
    """

    # What a hook may set or count.
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
    resumes_attempt: int = 1
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
    is_untested: bool = False  # of a version whose ends are not known: that it came back says nothing
    is_durable: bool = False  # an engine outside keeps it and may go on with it in another process
    replayed: Replayed | None = None  # where an engine runs the code again that this run's children are part of
    abort_requested_ns: int | None = None

    # How it stands. For `records` and `writer`.
    answers: tuple[tuple[str, Decision | None], ...] = ()
    ran: tuple[str, ...] = ()  # approvals whose gated call ran in this run
    said: tuple[Said, ...] = ()
    limits: tuple[tuple[Any, ...], ...] = ()
    conditions: tuple[tuple[Any, ...], ...] = ()
    waits: tuple[dict[str, Any], ...] = ()
    findings: tuple[tuple[str, str | None], ...] = ()
    made_progress: bool | None = None
    progress_ns: int | None = None
    children_open: int = 0
    children_failed: int = 0
    started_ns: int = 0
    started_mono: int = 0
    stopped_ns: int = 0
    stopped_mono: int = 0
    result: Any = None  # only where a validator wants it, and only until it has looked
    seq: int = 0  # the writer's: order inside the run
    is_started: bool = False
    is_closed: bool = False

    _recorded_ns: int = 0

    writer: Writer | Replayed | None  # None: nothing is recorded
    config: Configuration

    def say(  # noqa: PLR0913 - what can be said
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
        """One layer's word on why it stops. Cheap: closing picks one, and what comes after is late.

        The same cause of the same rank again says nothing new, and would only make a long run's list longer.
        """
        known = cause if type(cause) is StopCause else word_of(StopCause, cause)
        if known is None:
            self.find("refused_value", "stop_cause")
        elif not self.is_closed and not (self.said and self._is_said(known, rank)):
            fault = None if error is None else self._fault(error, tool)
            word = Said(rank, known, boundary, reason, fault, aborted)
            self.said += (word,)

    def _is_said(self, cause: StopCause, rank: Rank) -> bool:
        return any(each.rank == rank and each.cause is cause for each in self.said)

    def _fault(self, error: BaseException, tool: str | None) -> Fault | None:
        try:
            return fault_of(error, tool)
        except Exception:  # noqa: BLE001 - no exception, or one whose own attributes raise
            self.find("refused_value", "error")
            return None

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
        try:
            self._raised(error, boundary, cause, reason, tool)
        except Exception:  # noqa: BLE001 - an exception like no other: that it left the loop is all that is known
            self.say(StopCause.HOST_ERROR, Rank.RAISED, boundary, reason=reason)

    def _raised(
        self, error: BaseException, boundary: Boundary, cause: StopCause | None, reason: str | None, tool: str | None
    ) -> None:
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

    @harmless
    def stop(self, cause: str, *, reason: str | None = None, error: BaseException | None = None) -> None:
        """Names why it stops. The program's own word counts before every other; the run ends with its block.

        A word that is no cause is `unknown`: it must not pass for an end that nobody said.
        """
        known = word_of(StopCause, cause)
        if known is None:
            self.find("refused_value", "stop.cause")
            log.warning("stopcause: stop() takes a stop cause, one of: %s", ", ".join(StopCause))
            self.say(StopCause.UNKNOWN, Rank.HOST, Boundary.CALL, reason="cause_unknown", error=error)
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
        **unknown: object,
    ) -> None:
        """One completed step, with what it used. `finish` is a word of `Finish`; others say nothing."""
        if unknown:
            self.say_unknown("step", unknown)
        if type(model_calls) is not int:
            model_calls = self._refuse("model_calls")
        if type(tool_calls) is not int:
            tool_calls = self._refuse("tool_calls")
        try:  # here and not by `harmless`: this is the one method that is called often
            self.steps = (self.steps or 0) + 1
            self.model_calls = (self.model_calls or 0) + model_calls
            self.tool_calls = (self.tool_calls or 0) + tool_calls
        except Exception:  # noqa: BLE001 - whatever the host has set them to
            self._refuse("step")
        if input_tokens or output_tokens:
            self.add_usage(input_tokens, output_tokens)
        if cost_usd:
            self._add_cost(cost_usd)
        if finish is not None:
            self._finished(finish)

    def _refuse(self, name: str) -> int:
        """Finds what cannot be counted; nothing is counted for it."""
        self.find("refused_value", name)
        return 0

    def _add_cost(self, cost_usd: object) -> None:
        if type(cost_usd) is float or type(cost_usd) is int:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd
        else:
            self._refuse("cost_usd")

    @harmless
    def _finished(self, finish: str) -> None:
        """The last word counts. A text that is no word of the list is a reason that says nothing."""
        if isinstance(finish, str):
            self.finish, self.finish_raw = word_of(Finish, finish) or Finish.OTHER, finish
        else:
            self.find("refused_value", "finish")

    @harmless
    def add_usage(self, input_tokens: object, output_tokens: object) -> None:
        """Adds tokens; what is no count is left out and found."""
        if type(input_tokens) is int and input_tokens >= 0:
            self.input_tokens = (self.input_tokens or 0) + input_tokens
        elif input_tokens is not None:
            self._refuse("usage.input_tokens")
        if type(output_tokens) is int and output_tokens >= 0:
            self.output_tokens = (self.output_tokens or 0) + output_tokens
        elif output_tokens is not None:
            self._refuse("usage.output_tokens")

    @harmless
    def limit(self, name: str, kind: str, limit: float, *, unit: str | None = None, scope: str = Scope.ATTEMPT) -> None:
        """A bound that was set before the run. `kind` is a word of `LimitKind`."""
        if len(self.limits) < MOST_NOTED and not any(each[0] == name for each in self.limits):
            self.limits += ((name, kind, limit, unit, scope),)

    @harmless
    def condition(
        self, name: str, kind: str, *, fired: bool | None, limit: float | None = None, observed: float | None = None
    ) -> None:
        """A stop condition as it was evaluated at the boundary; of one that is said again, the last word counts."""
        if any(each[0] == name for each in self.conditions):
            self.conditions = tuple(each for each in self.conditions if each[0] != name)
        if len(self.conditions) < MOST_NOTED:
            self.conditions += ((name, kind, fired, limit, observed),)

    @harmless
    def bounded(
        self, cause: str, name: str, kind: str, *, limit: float | None = None, observed: float | None = None
    ) -> None:
        """The framework says that a bound ended it: the condition, and the cause that it stands for."""
        self.condition(name, kind, fired=True, limit=limit, observed=observed)
        known = word_of(StopCause, cause)
        if known is None:
            self.find("refused_value", "bounded.cause")
        else:
            self.say(known, Rank.SIGNAL, Boundary.CALLBACK)

    @harmless
    def progress(self, sign: str = Sign.STATE_CHANGE) -> None:
        """It got somewhere. Noted each time, recorded at most once in ten seconds; that renews the lease."""
        if word_of(Sign, sign) is None:
            self.find("refused_value", "progress.sign")
            return
        now = time.time_ns()
        if sign not in (Sign.HEARTBEAT, Sign.OUTPUT):
            self.made_progress, self.progress_ns = True, now
        if self.writer is not None and now - self._recorded_ns >= _PROGRESS_NS and self.is_started:
            self._recorded_ns = now
            self.writer.progressed(self, now, sign)

    @harmless
    def outcome(  # noqa: PLR0913 - the fields of an outcome
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

    def say_unknown(self, method: str, names: Iterable[str]) -> None:
        """A program used parameters that a method does not have: they are found, and named to whoever wrote it."""
        for name in names:
            self.find("refused_value", f"{method}.{name}")
            log.warning("stopcause: %s() has no %s; the rest of the call holds", method, name)

    @property
    def is_open(self) -> bool:
        """Whether it has begun and has no receipt yet: after it nothing more is told of the run itself."""
        return self.is_started and not self.is_closed

    def find(self, code: str, where: str | None) -> None:
        """Something that the writer itself noticed: a code and a place, once each."""
        if (code, where) not in self.findings and len(self.findings) < MOST_NOTED:
            self.findings += ((code, where),)

    @harmless
    def note(self, code: str, where: str | None = None) -> None:
        """The same of a run that is open and may stay so: recorded at once, and again in its receipt."""
        self.find(code, where)
        if self.writer is not None and self.is_open:
            self.writer.noted(self, code, where, time.time_ns())


_OUTCOME_FIELDS = (
    "outcome_id", "contract", "check", "polarity", "strength", "subject", "effect_key", "pre_state",
)  # fmt: skip


def word_of(words: Any, value: object) -> Any:  # noqa: ANN401 - a closed list and one of its words
    """The word of a closed list that a value is, or None."""
    try:
        return None if value is None else words(value)
    except ValueError:
        return None
