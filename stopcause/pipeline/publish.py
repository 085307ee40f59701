"""Rows of the store as telemetry: what is judged as events, what is settled as sums. What may leave is named here.

An event has only the fields below, each of them an identifier, a word of a closed list or a number. No resume token, no
label, no subject, no owner of a wait. Not here: how it is sent (`telemetry.otlp_out`).
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from stopcause.classifier import terminals
from stopcause.classifier.verdict import VerdictName
from stopcause.receipts import codec, model
from stopcause.receipts.attributes import error_type
from stopcause.store import columns
from stopcause.store.columns import naive
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.queries import text
from stopcause.store.rows import VerdictRow
from stopcause.telemetry import names
from stopcause.telemetry.names import Attribute, Label
from stopcause.telemetry.values import Answer, Event, Scalar, Series, Signal, Source

EVENTS_OF_A_REQUEST: Final = 500  # about 0.4 MB; gRPC receivers take 4 MB
MOST_HELD: Final = 50_000  # events, of some 3 kB each
MOST_AGENTS: Final = 200
MOST_SERIES: Final = 1900  # the SDK folds what is above 2000, in an order that we do not have in hand
_ROWS_AT_ONCE = 20_000
_DAY_ONE = datetime(1, 1, 1, tzinfo=UTC)
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "stopcause/instance")
_CODE = re.compile(r"[a-z][a-z0-9_.]{0,40}")
_QUIET = "no_contract"

# Attributes that are a field of the row as it is.
_OF_ROW: Final[Mapping[Attribute, str]] = {
    Attribute.RUN_ID: "run_id",
    Attribute.RUN_ATTEMPT: "attempt",
    Attribute.VERDICT: "verdict",
    Attribute.REASON: "reason",
    Attribute.RULE: "rule",
    Attribute.REVISION: "revision",
    Attribute.SETTLED: "settled",
    Attribute.MISSING: "missing",
    Attribute.GROUP: "fingerprint",
    Attribute.RETRY: "retry",
    Attribute.CAUSE: "stop_cause",
    Attribute.STEPS: "steps",
    Attribute.STEP_LIMIT: "step_limit",
    Attribute.TOOL_CALLS: "tool_calls",
    Attribute.DURATION: "duration_s",
    Attribute.RUN_SERVICE: "service",
    Attribute.CONTRACT: "contract",
    Attribute.STAGE: "stage",
    Attribute.OWNER: "owner",
    Attribute.POLICY_VERSION: "policy_version",
    Attribute.POLICY_DIGEST: "policy_digest",
    Attribute.CLASSIFIER: "classifier_version",
    Attribute.AGENT: "agent",
    Attribute.AGENT_VERSION: "agent_version",
    Attribute.CONVERSATION: "thread_id",
    Attribute.ENVIRONMENT: "environment",
}


class _Before(NamedTuple):
    """The verdict that a run had; `verdict` None while it ran."""

    verdict: str | None
    reason: str | None


_Stops = Mapping[tuple[str, int], Sequence[model.RunStopped]]


def source_of(store: DuckStore, version: str) -> Source:
    """Who sends for this store: the same in every export, another once its sums begin anew.

    They do when the store is made anew from its journal, and when runs were forgotten.
    """
    made = store.ask(text("sums_begin")).rows[0][0].replace(tzinfo=UTC)
    return Source(str(uuid.uuid5(_NAMESPACE, made.isoformat())), version, made)


# Events ---------------------------------------------------------------------------------------------------------------


def events(store: DuckStore, since: datetime | None) -> Iterator[list[Event]]:
    """The current verdict on the latest attempt of each run, as requests of up to `EVENTS_OF_A_REQUEST`.

    Args:
        store: Where they are.
        since: Only verdicts that were given at or after this time, however old the run; None is all.
    """
    batch: list[Event] = []
    for event in _events(store, since or _DAY_ONE):
        batch.append(event)
        if len(batch) == EVENTS_OF_A_REQUEST:
            yield batch
            batch = []
    if batch:
        yield batch


def _events(store: DuckStore, since: datetime) -> Iterator[Event]:
    asked = {"since": naive(since)}
    for first, last in _spans(store.ask(text("judged_hours"), asked).rows):
        span = {"first": first, "last": last}
        answer = store.ask(text("judged_since"), {**asked, **span})
        stops = _stops(store.ask(text("stop_lines"), span).rows)
        read, before = columns.verdict_row_reader(answer.names), answer.names.index("previous_verdict")
        for fetched in answer.rows:
            row = read(fetched)
            yield event_of(row, _Before(*fetched[before : before + 2]), stops.get((row.run_id, row.attempt), ()))


def _spans(hours: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """First and last hour of each part of at most `_ROWS_AT_ONCE` rows, but for one fuller hour."""
    first, size = None, 0
    last = 0
    for hour, rows in hours:
        if first is not None and size + rows > _ROWS_AT_ONCE:
            yield first, last
            first, size = None, 0
        first, last, size = hour if first is None else first, hour, size + rows
    if first is not None:
        yield first, last


def _stops(rows: Iterable[tuple[str, int, str]]) -> _Stops:
    found: dict[tuple[str, int], list[model.RunStopped]] = defaultdict(list)
    for run_id, attempt, line in rows:
        record = codec.read_line(line.encode())
        if isinstance(record, model.RunStopped):
            found[run_id, attempt].append(record)
    return found


def event_of(row: VerdictRow, before: _Before, stops: Sequence[model.RunStopped]) -> Event:
    """A verdict as an event. The first one came about when the run stopped, a later one when it changed."""
    told = terminals.choose(sorted(stops, key=lambda stop: (stop.at, stop.record_id or ""))).told
    first = row.revision == 1
    return Event(
        name=names.JUDGED,
        at=(row.stopped_at or row.last_at) if first else row.as_of,
        observed_at=row.as_of,
        severity=_severity(row),
        body=f"{row.verdict} {row.reason}: {row.agent or 'an agent without a name'}",
        attributes=_attributes(row, before, told),
        trace_id=told.trace_id if told else None,
        span_id=told.span_id if told else None,
        sampled=bool(told and told.sampled),
    )


def _severity(row: VerdictRow) -> str:
    """What nobody enforces, and what nobody asked for, wakes nobody."""
    quiet = row.stage != "enforce" or row.reason == _QUIET
    return "INFO" if quiet else names.SEVERITY[VerdictName(str(row.verdict))]


def _attributes(row: VerdictRow, before: _Before, told: model.RunStopped | None) -> dict[str, Scalar]:
    made: dict[Attribute, Any] = {name: getattr(row, field) for name, field in _OF_ROW.items()}
    made |= {
        Attribute.EVENT: names.JUDGED,
        Attribute.OPERATION: "invoke_agent",
        Attribute.VERDICT_ID: f"{row.run_id}/{row.attempt}/{row.revision}",
        Attribute.EVIDENCE: _codes(row.evidence, ":"),
        Attribute.FINDINGS: _codes(row.findings, "="),
        Attribute.PREVIOUS: before.verdict,
        Attribute.PREVIOUS_REASON: before.reason,
        Attribute.ERROR_TYPE: error_type(told) if told else None,
    }
    return {str(name): value for name, value in made.items() if value not in (None, ())}


def _codes(said: Sequence[str], mark: str) -> tuple[str, ...]:
    """What stands before the mark, where it is one of our codes: what stands behind it is an id or a place."""
    heads = dict.fromkeys(each.partition(mark)[0] for each in said)
    return tuple(head for head in heads if _CODE.fullmatch(head))


# Sums -----------------------------------------------------------------------------------------------------------------


def counts(store: DuckStore) -> list[Series]:
    """The sums of `names.RUNS` over all history, each run once, by the verdict with which it first settled.

    A later verdict does not take the first one back, so a sum never falls. What is above a limit on agents or series is
    folded together in the order in which it first came: so a series never moves once it was sent.
    """
    answer = store.ask(text("settled_runs"))
    places = [answer.names.index(str(label)) for label in Label]
    runs = answer.names.index("runs")
    found = [(tuple(row[place] for place in places), int(row[runs])) for row in answer.rows]
    return _within_limits(found)


_Labels = tuple[str | None, ...]


def _within_limits(found: Sequence[tuple[_Labels, int]]) -> list[Series]:
    agent = list(Label).index(Label.AGENT)
    known = set(list(dict.fromkeys(labels[agent] for labels, _ in found))[:MOST_AGENTS])
    sums: dict[tuple[_Labels, bool], int] = defaultdict(int)
    for labels, runs in found:
        fits = labels[agent] in known
        named = labels if fits else (*labels[:agent], names.OTHER_AGENTS, *labels[agent + 1 :])
        key = (named, not fits)
        full = key not in sums and len(sums) >= MOST_SERIES
        sums[((None,) * len(Label), True) if full else key] += runs
    return [_series(labels, runs, overflow=overflow) for (labels, overflow), runs in sums.items()]


def _series(labels: _Labels, runs: int, *, overflow: bool) -> Series:
    said: dict[str, str | bool] = {str(n): v for n, v in zip(Label, labels, strict=True) if v is not None}
    return Series(names.RUNS.name, {**said, names.OVERFLOW: True} if overflow else said, runs)


# Sending --------------------------------------------------------------------------------------------------------------


class Sends(Protocol):
    """What `telemetry.otlp_out.Sender` does. Its module loads the SDK, which a dry run does without."""

    def send_events(self, events: Sequence[Event]) -> Answer:
        """One request."""

    def send_counts(self, series: Sequence[Series], now: datetime) -> Answer:
        """One request."""


class Tally:
    """Adds up what became of each request of one signal. After one of which nothing was taken it sends no more."""

    def __init__(self) -> None:
        self.size = self.taken = 0
        self.faults: dict[str, None] = {}
        self.answered = True  # by anybody, as far as we know
        self._going = True

    def send(self, size: int, send: Callable[[], Answer]) -> None:
        """Sends a request of `size`, or only counts it."""
        self.size += size
        if not self._going:
            return
        answer = send()
        self.taken += answer.taken
        self.answered = answer.answered
        self._going = answer.taken > 0 or not answer.fault
        if answer.fault:
            self.faults[answer.fault] = None


class Outgoing(NamedTuple):
    """What is to be sent; None is a signal that is turned off. `held`: it is all here, and the store may be closed."""

    events: Iterable[list[Event]] | None
    series: list[Series] | None
    held: bool = True


def outgoing(store: DuckStore, since: datetime | None, off: Collection[Signal] = ()) -> Outgoing:
    """What `events` and `counts` give. Where it is not too much it is held whole: others need the store meanwhile."""
    series = None if Signal.METRICS in off else counts(store)
    if Signal.LOGS in off:
        return Outgoing(None, series)
    hours = store.ask(text("judged_hours"), {"since": naive(since or _DAY_ONE)}).rows
    few = sum(rows for _, rows in hours) <= MOST_HELD
    found = events(store, since)
    return Outgoing(list(found) if few else found, series, held=few)


def publish(content: Outgoing, sender: Sends, now: datetime) -> tuple[Tally, Tally]:
    """Sends events, then sums; the sums not where the events found nobody.

    Returns:
        What became of the events, and of the series.
    """
    events, series = Tally(), Tally()
    for batch in content.events or ():
        events.send(len(batch), partial(sender.send_events, batch))
    if sums := content.series:
        if events.answered:
            series.send(len(sums), partial(sender.send_counts, sums, now))
        else:
            series.size = len(sums)
    return events, series
