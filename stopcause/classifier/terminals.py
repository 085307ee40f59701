"""More than one record says that an attempt ended: which one stands. Ranked by who saw it, never by who came last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stopcause.receipts import model, vocabulary
from stopcause.receipts.vocabulary import Boundary, DeathReason, StopCause

Ended = model.RunStopped | model.RunDied

_RANK = {
    Boundary.OPERATOR: 1,
    Boundary.CALL: 2,
    Boundary.EXCEPTION: 2,
    Boundary.CALLBACK: 3,
    Boundary.EVENT_STREAM: 3,
    None: 3,
    Boundary.SPAN: 4,
    Boundary.SWEEPER: 6,
    Boundary.PLATFORM: 7,
}
_PROVEN_DEATH = 5
_PROVEN = frozenset({DeathReason.OOM_KILLED, DeathReason.EVICTED, DeathReason.KILLED})
_BARE_EXIT = 7  # crashed, lost, or unsaid: an exit code proves little in either direction
_GUESSES = frozenset({Boundary.SWEEPER, Boundary.PLATFORM})


class Terminal(NamedTuple):
    """The record that stands: a receipt, a death, or neither where they are disputed or there is none.

    `told` is the best receipt, whether it stands or not: it still says who the run is. `outranked` are the causes of
    the others.
    """

    stop: model.RunStopped | None = None
    died: model.RunDied | None = None
    disputed: bool = False
    told: model.RunStopped | None = None
    outranked: tuple[str, ...] = ()
    disputing: tuple[str, ...] = ()  # `cause@boundary` of each that disagrees


NOTHING = Terminal()


def choose(records: Sequence[Ended]) -> Terminal:
    """The terminal that stands among the records of one attempt, which come in the attempt's order."""
    if not records:
        return NOTHING
    if len(records) == 1:
        return _standing(records[0])
    heard = _without_overtaken(records)
    best = min(map(_rank, heard))
    standing = _without_absorbed([record for record in heard if _rank(record) == best])
    told = next((each for each in (*standing, *sorted(heard, key=_rank)) if _is_receipt(each)), None)
    outranked = tuple(_cause(record) for record in records if not any(record is each for each in standing))
    disputed = len({_content(record) for record in standing}) > 1
    chosen = Terminal(disputed=True, disputing=_told(standing)) if disputed else _standing(standing[0])
    return chosen._replace(told=told if isinstance(told, model.RunStopped) else None, outranked=outranked)


def _told(records: Sequence[Ended]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{_cause(record)}@{record.boundary or 'unsaid'}" for record in records))


def _standing(record: Ended) -> Terminal:
    return Terminal(died=record) if isinstance(record, model.RunDied) else Terminal(stop=record, told=record)


def _is_receipt(record: Ended) -> bool:
    return isinstance(record, model.RunStopped)


def _rank(record: Ended) -> int:
    if isinstance(record, model.RunDied):
        return _PROVEN_DEATH if record.reason in _PROVEN else _BARE_EXIT
    # An observed abort of any actor; a sweeper or platform that only names one has seen nothing.
    seen = record.boundary not in _GUESSES or (record.abort is not None and record.abort.observed_at is not None)
    return _RANK[Boundary.OPERATOR if seen and is_observed_abort(record) else record.boundary]


def is_observed_abort(stop: model.RunStopped) -> bool:
    """An abort cause counts as observed, unless the receipt says that it was only asked for."""
    abort = stop.abort
    only_asked = abort is not None and abort.requested_at is not None and abort.observed_at is None
    return stop.stop_cause in vocabulary.ABORTED and not only_asked


def without_superseded(records: list[model.RunRecord]) -> list[model.RunRecord]:
    """Spans are read again as more of them arrive: of one adapter's receipts from spans only the newest is a fact."""
    newest: dict[str | None, model.RunRecord] = {record.adapter: record for record in records if _is_derived(record)}
    if not newest:
        return records
    return [record for record in records if not _is_derived(record) or newest[record.adapter] is record]


def _is_derived(record: model.RunRecord) -> bool:
    return isinstance(record, model.RunStopped) and record.boundary is Boundary.SPAN


def _without_overtaken(records: Sequence[Ended]) -> list[Ended]:
    """Who watches an event stream may write an end down, and then see an error: it overtakes a wait and an abort too.

    AG-UI 1.0, events/lifecycle: a late RUN_ERROR fails the run, whatever RUN_FINISHED had said.
    """
    return [
        record
        for number, record in enumerate(records)
        if not any(_overtakes(later, record) for later in records[number + 1 :])
    ]


def _overtakes(later: Ended, record: Ended) -> bool:
    if isinstance(later, model.RunDied) or isinstance(record, model.RunDied):
        return False
    is_one_stream = later.boundary is record.boundary is Boundary.EVENT_STREAM and later.adapter == record.adapter
    return is_one_stream and _reports_error(later) and record.stop_cause not in vocabulary.FAILED


def _reports_error(stop: model.RunStopped) -> bool:
    """A failure, of which a stream may give no code; or another end that an error brought, as a time-out does."""
    is_quiet = stop.error is None or stop.stop_cause in vocabulary.FINISHED | vocabulary.WAITING
    return stop.stop_cause in vocabulary.FAILED or not is_quiet


def _without_absorbed(records: list[Ended]) -> list[Ended]:
    """An error absorbs a later finish; on an event stream a late error also supersedes the finish before it."""
    errors = [number for number, record in enumerate(records) if _is_error(record)]
    if not errors:
        return records
    streamed = all(record.boundary is Boundary.EVENT_STREAM for record in records)
    return [
        record
        for number, record in enumerate(records)
        if not _is_finish(record) or (number < errors[0] and not streamed)
    ]


def _is_error(record: Ended) -> bool:
    return isinstance(record, model.RunDied) or record.stop_cause in vocabulary.FAILED


def _is_finish(record: Ended) -> bool:
    return isinstance(record, model.RunStopped) and record.stop_cause in vocabulary.FINISHED


def _cause(record: Ended) -> str:
    return record.stop_cause if isinstance(record, model.RunStopped) else StopCause.PROCESS_LOST


def _content(record: Ended) -> tuple[str, str | None]:
    """Two terminals of one rank with the same content are one, told twice."""
    return _cause(record), record.reason_code if isinstance(record, model.RunStopped) else None
