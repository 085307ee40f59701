"""A store of any size: a day of generated runs goes through the pipeline, and the engine repeats it day after day.

Ids are as random as real ones and times move on, so that sizes and reports are what a real store has. Of runs that
still wait only every fiftieth is repeated: on a real platform somebody answers in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

import duckdb

from bench import records
from stopcause.classifier.policy import policy_from_mapping
from stopcause.pipeline.keeper import Keeper

POLICY = policy_from_mapping(records.POLICY)
_BATCH = 5_000  # lines that are accepted at once: so few that late outcomes supersede verdicts
_RECORD_TIMES = ("event_at", "opened_at")
_VERDICT_TIMES = ("opened_at", "judge_again_at", "as_of", "started_at", "stopped_at", "last_at")
_WAIT_TIMES = ("since", "due", "expires_at", "ended_at")
_WAIT_REST = ("approval_id", "kind", "tool", "owner", "resolution", "missing")


def fill(path: Path, runs: int) -> int:
    """A day of so many runs, taken in by the pipeline and settled; gives how many records that were."""
    lines, count = records.lines(runs), 0
    with Keeper.open(path, POLICY, records.START) as keeper:
        for batch in _batches(lines):
            count += keeper.accept(batch, records.START + records.DAY).accepted
        keeper.settle(records.NOW)
    return count


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    lines = iter(lines)
    while batch := list(islice(lines, _BATCH)):
        yield batch


def repeat(path: Path, days: int, *, with_records: bool) -> datetime:
    """The first day of the store over again until there are so many; gives the time that the last of them ends.

    The journal is not repeated, so this store is for reading only; without records, the last day has them all the same.
    """
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET preserve_insertion_order = true").fetchall()
        for table in ("records", "verdicts"):
            connection.execute(f"CREATE TEMP TABLE first_{table} AS FROM {table}").fetchall()
        for day in range(1, days):
            connection.execute(_again("verdicts", _VERDICT_TIMES), {"day": day}).fetchall()
            if with_records or day == days - 1:
                connection.execute(_again("records", _RECORD_TIMES), {"day": day}).fetchall()
        connection.execute("CHECKPOINT").fetchall()
    return records.NOW + (days - 1) * records.DAY


def _again(table: str, times: tuple[str, ...]) -> str:
    """The first day's rows of a table as those of another day: new ids, later times, the same otherwise."""
    changed = {name: f"{name} + to_days($day)" for name in times} | {"run_id": _NEW_ID, "hour": "hour + 24 * $day"}
    if table == "records":
        changed |= {"record_id": "uuid()", "line": f"replace(line, run_id, {_NEW_ID})"}
        keep = "true"
    else:
        changed |= {"thread_id": "'thread-' || substr(md5(run_id || $day), 1, 7)", "waits": _LATER_WAITS}
        keep = "coalesce(verdict NOT LIKE 'WAITING%', true) OR hash(run_id, $day) % 50 = 0"
    replaced = ", ".join(f"{value} AS {name}" for name, value in changed.items())
    return f"INSERT INTO {table} BY NAME SELECT * REPLACE ({replaced}) FROM first_{table} WHERE {keep}"  # noqa: S608


_DIGEST = "md5(run_id || $day)"
_STAMP = "format('{:012x}', epoch_ms(opened_at + to_days($day)))"
_NEW_ID = (
    f"(substr({_STAMP}, 1, 8) || '-' || substr({_STAMP}, 9, 4) || '-7' || substr({_DIGEST}, 1, 3) || '-8' || "
    f"substr({_DIGEST}, 4, 3) || '-' || substr({_DIGEST}, 7, 12))"
)
_LATER_WAITS = "list_transform(waits, lambda w: struct_pack({}))".format(
    ", ".join(
        [f"{name} := w.{name} + to_days($day)" for name in _WAIT_TIMES] + [f"{name} := w.{name}" for name in _WAIT_REST]
    )
)
