"""Rows of Python values to Arrow columns, and back. One place for the types that a store's columns have.

Arrow batches are the only way rows go in: `executemany` is some 150 times slower.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from stopcause.store.rows import RecordRow, StoredWait, VerdictRow

_TIME = pa.timestamp("us")  # UTC; naive values do not occur
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT = pa.string()
_TEXTS = pa.list_(_TEXT)
_NOT_TEXT: dict[str, pa.DataType] = {
    **dict.fromkeys(
        ("attempt", "revision", "sign", "steps", "tool_calls", "input_tokens", "output_tokens"), pa.int64()
    ),
    **dict.fromkeys(("opened_at", "judge_again_at", "as_of", "started_at", "stopped_at", "last_at", "event_at"), _TIME),
    **dict.fromkeys(("since", "due", "expires_at", "ended_at"), _TIME),
    **dict.fromkeys(("duration_s", "step_limit", "cost_usd", "token_limit", "cost_limit", "time_limit"), pa.float64()),
    **dict.fromkeys(("evidence", "findings", "missing"), _TEXTS),
    **dict.fromkeys(("settled", "is_latest", "has_on_bound"), pa.bool_()),
}
_WAIT = pa.struct([(name, _NOT_TEXT.get(name, _TEXT)) for name in StoredWait._fields])
_NOT_TEXT["waits"] = _WAITS = pa.list_(_WAIT)


class _Table(NamedTuple):
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]


def _table(names: tuple[str, ...]) -> _Table:
    return _Table(names, tuple(_NOT_TEXT.get(name, _TEXT) for name in names))


RECORDS = _table(RecordRow._fields)
VERDICTS = _table(VerdictRow._fields)
_TIMES_OF_VERDICTS = tuple(i for i, kind in enumerate(VERDICTS.types) if kind == _TIME)
_TEXTS_OF_VERDICTS = tuple(i for i, kind in enumerate(VERDICTS.types) if kind == _TEXTS)
_WAITS_OF_VERDICTS = VERDICTS.names.index("waits")


def arrow_table(rows: Sequence[RecordRow] | Sequence[VerdictRow], shape: _Table) -> pa.Table:
    """The rows as a table, column by column; there must be at least one."""
    columns = zip(*rows, strict=True)
    arrays = [_array(column, kind) for column, kind in zip(columns, shape.types, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(shape.names))


def _array(column: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    if kind == _WAITS:
        return _waits(column)
    return _times(column) if kind == _TIME else pa.array(column, kind)


def _waits(column: Sequence[tuple[StoredWait, ...]]) -> pa.Array[Any]:
    """Lists of waits, field by field: Arrow takes a struct in one piece only as a dictionary."""
    ends = list(itertools.accumulate(map(len, column), initial=0))
    fields = list(zip(*itertools.chain.from_iterable(column), strict=True)) or [()] * len(_WAIT)
    arrays = [_array(values, kind.type) for values, kind in zip(fields, _WAIT, strict=True)]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.StructArray.from_arrays(arrays, fields=list(_WAIT)))


def _times(column: Sequence[datetime | None]) -> pa.Array[Any]:
    """Times by way of what lies between them and the epoch: Arrow asks every aware time for its offset, in Python."""
    since = [None if moment is None else moment - _EPOCH for moment in column]
    return pa.array(since, pa.duration("us")).view(_TIME)


def _stored_wait(fetched: dict[str, Any]) -> StoredWait:
    times = {name: utc(fetched[name]) for name in ("since", "due", "expires_at", "ended_at")}
    return StoredWait(**fetched | times | {"missing": tuple(fetched["missing"])})


def run_ids_table(run_ids: Iterable[str]) -> pa.Table:
    """One column `run_id`."""
    return pa.table({"run_id": pa.array(list(run_ids), _TEXT)})


def numbered_runs_table(run_ids: Sequence[str | None]) -> pa.Table:
    """Columns `i`, `run_id`: names of runs, numbered from 0."""
    return pa.table({"i": pa.array(range(len(run_ids))), "run_id": pa.array(run_ids, _TEXT)})


def keys_table(keys: Sequence[tuple[str, datetime]]) -> pa.Table:
    """Columns `i`, `record_id`, `event_at`: keys of records, numbered from 0."""
    ids, times = zip(*keys, strict=True)
    return pa.table({"i": pa.array(range(len(keys))), "record_id": pa.array(ids, _TEXT), "event_at": _times(times)})


def naive(moment: datetime) -> datetime:
    """A time as the engine keeps it: UTC, and it does not say so."""
    return moment.astimezone(UTC).replace(tzinfo=None)


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
        values[_WAITS_OF_VERDICTS] = tuple(map(_stored_wait, values[_WAITS_OF_VERDICTS] or ()))
        return VerdictRow._make(values)

    return read
