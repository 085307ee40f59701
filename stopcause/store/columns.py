"""Rows of Python values to Arrow columns, and back. One place for the types that a store's columns have.

Arrow batches are the only way rows go in: `executemany` is some 150 times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from stopcause.store.rows import RecordRow, VerdictRow

_TIME = pa.timestamp("us")  # UTC; naive values do not occur
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT = pa.string()
_TEXTS = pa.list_(_TEXT)
_NOT_TEXT: dict[str, pa.DataType] = {
    **dict.fromkeys(
        ("attempt", "revision", "sign", "steps", "tool_calls", "input_tokens", "output_tokens"), pa.int64()
    ),
    **dict.fromkeys(("opened_at", "judge_again_at", "as_of", "started_at", "stopped_at", "last_at", "event_at"), _TIME),
    **dict.fromkeys(("duration_s", "step_limit", "cost_usd"), pa.float64()),
    **dict.fromkeys(("evidence", "findings", "missing"), _TEXTS),
    "settled": pa.bool_(),
}


class _Table(NamedTuple):
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]


def _table(names: tuple[str, ...]) -> _Table:
    return _Table(names, tuple(_NOT_TEXT.get(name, _TEXT) for name in names))


RECORDS = _table(RecordRow._fields)
VERDICTS = _table(VerdictRow._fields)
_TIMES_OF_VERDICTS = tuple(i for i, kind in enumerate(VERDICTS.types) if kind == _TIME)
_TEXTS_OF_VERDICTS = tuple(i for i, kind in enumerate(VERDICTS.types) if kind == _TEXTS)


def arrow_table(rows: Sequence[RecordRow] | Sequence[VerdictRow], shape: _Table) -> pa.Table:
    """The rows as a table, column by column; there must be at least one."""
    columns = zip(*rows, strict=True)
    arrays = [_array(column, kind) for column, kind in zip(columns, shape.types, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(shape.names))


def _array(column: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    return _times(column) if kind == _TIME else pa.array(column, kind)


def _times(column: Sequence[datetime | None]) -> pa.Array[Any]:
    """Times by way of what lies between them and the epoch: Arrow asks every aware time for its offset, in Python."""
    since = [None if moment is None else moment - _EPOCH for moment in column]
    return pa.array(since, pa.duration("us")).view(_TIME)


def run_ids_table(run_ids: Iterable[str]) -> pa.Table:
    """One column `run_id`."""
    return pa.table({"run_id": pa.array(list(run_ids), _TEXT)})


def keys_table(keys: Sequence[tuple[str, datetime]]) -> pa.Table:
    """Columns `i`, `record_id`, `event_at`: keys of records, numbered from 0."""
    ids, times = zip(*keys, strict=True)
    return pa.table({"i": pa.array(range(len(keys))), "record_id": pa.array(ids, _TEXT), "event_at": _times(times)})


def utc(value: datetime | None) -> datetime | None:
    """A time as the engine gives it back, aware again."""
    return None if value is None else value.replace(tzinfo=UTC)


def verdict_row_reader(names: Sequence[str]) -> Callable[[tuple[Any, ...]], VerdictRow]:
    """A function that makes a `VerdictRow` of a fetched row whose columns have these names, in any order."""
    pick = itemgetter(*(names.index(name) for name in VERDICTS.names))

    def read(fetched: tuple[Any, ...]) -> VerdictRow:
        values = list(pick(fetched))
        for i in _TIMES_OF_VERDICTS:
            values[i] = utc(values[i])
        for i in _TEXTS_OF_VERDICTS:
            values[i] = tuple(values[i])
        return VerdictRow._make(values)

    return read
