"""More than one record says that an attempt ended: which one stands. Ranked by who saw it, never by who came last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stopcause.receipts import model, vocabulary
from stopcause.receipts.vocabulary import Boundary, DeathReason

Record = model.RunStopped | model.RunDied

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
_PROVEN_DEATH, _BARE_EXIT = 5, 7
_PROVEN = frozenset({DeathReason.OOM_KILLED, DeathReason.EVICTED, DeathReason.KILLED})


class Terminal(NamedTuple):
    """The record that stands: a receipt, a death, or neither. `outranked` are the causes of the others."""

    stop: model.RunStopped | None = None
    died: model.RunDied | None = None
    disputed: bool = False
    outranked: tuple[str, ...] = ()


NOTHING = Terminal()


def choose(records: Sequence[Record]) -> Terminal:
    """The terminal that stands among the records of one attempt, which come in the attempt's order."""
    if len(records) < 2:  # noqa: PLR2004 - nothing to choose
        return _standing(records[0]) if records else NOTHING
    derived = _newest_derivations(records)
    best = min(map(_rank, derived))
    ranked = [record for record in derived if _rank(record) == best]
    standing = _without_absorbed(ranked)
    outranked = tuple(_cause(record) for record in records if not any(record is each for each in standing))
    if len({_content(record) for record in standing}) > 1:
        return Terminal(disputed=True, outranked=outranked)
    return _standing(standing[0])._replace(outranked=outranked)


def _standing(record: Record) -> Terminal:
    return Terminal(died=record) if isinstance(record, model.RunDied) else Terminal(stop=record)


def _rank(record: Record) -> int:
    if isinstance(record, model.RunDied):
        return _PROVEN_DEATH if record.reason in _PROVEN else _BARE_EXIT
    return _RANK[Boundary.OPERATOR if is_observed_abort(record) else record.boundary]


def is_observed_abort(stop: model.RunStopped) -> bool:
    """An abort cause counts as observed, unless the receipt says that it was only asked for."""
    abort = stop.abort
    only_asked = abort is not None and abort.requested_at is not None and abort.observed_at is None
    return stop.stop_cause in vocabulary.ABORTED and not only_asked


def _newest_derivations(records: Sequence[Record]) -> list[Record]:
    """Spans are read again as more of them arrive: of one adapter's derivations the newest stands."""
    newest: dict[str | None, Record] = {r.adapter: r for r in records if _is_span(r)}
    return [record for record in records if not _is_span(record) or newest[record.adapter] is record]


def _is_span(record: Record) -> bool:
    return isinstance(record, model.RunStopped) and record.boundary is Boundary.SPAN


def _without_absorbed(records: list[Record]) -> list[Record]:
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


def _is_error(record: Record) -> bool:
    return isinstance(record, model.RunDied) or record.stop_cause in vocabulary.FAILED


def _is_finish(record: Record) -> bool:
    return isinstance(record, model.RunStopped) and record.stop_cause in vocabulary.FINISHED


def _cause(record: Record) -> str:
    return record.stop_cause if isinstance(record, model.RunStopped) else vocabulary.StopCause.PROCESS_LOST


def _content(record: Record) -> tuple[str, str | None]:
    """Two terminals of one rank with the same content are one, told twice."""
    if isinstance(record, model.RunDied):
        return vocabulary.StopCause.PROCESS_LOST, None
    return record.stop_cause, record.reason_code
