"""A snapshot: a DuckDB file of its own for other tools, which DuckDB 1.2 and later read.

    verdicts   every revision, as in the store (sum over `sign` counts current rows)
    runs       the view of what holds now
    policies   digest, id, version and first use of each policy
    snapshot   one row: when it was taken, of how much

No lines, no resume tokens, no texts of policies. Whoever has the old file open keeps it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb

from stopcause.errors import InputError
from stopcause.store import beside, offline
from stopcause.store.queries import text

_MAGIC = b"DUCK"
_MAGIC_AT = 8


class Snapshot(NamedTuple):
    """What is in a snapshot; `bytes` is the file's size."""

    records: int
    runs: int
    newest_at: datetime | None
    bytes: int


def write_snapshot(store: Path, target: Path, taken_at: datetime, versions: tuple[str, str]) -> Snapshot:
    """Writes the snapshot of a store that is at rest, and puts it in the place of `target` in one step.

    Args:
        store: The store's file; the caller holds its lock, and its engine is closed.
        target: A file that is not there yet, or an earlier snapshot.
        taken_at: The present time.
        versions: Of stopcause, and of the classifier.

    Raises:
        InputError: There is something else at `target`.
        StoreFullError: The disk took no more; `target` is as it was.
        StoreError: The engine failed; `target` is as it was.
    """
    check_target(target)
    with beside.written(target) as draft:
        with offline.attached(store, scratch=draft.with_name(draft.name + ".tmp"), target=draft) as connection:
            about = _fill(connection, taken_at.astimezone(UTC).replace(tzinfo=None), versions)
        size = draft.stat().st_size
    records, runs, newest = about
    return Snapshot(records, runs, newest and newest.replace(tzinfo=UTC), size)


def check_target(target: Path) -> None:
    """Refuses to take the place of anything but an earlier snapshot.

    Raises:
        InputError: There is something else.
    """
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file, as {target / 'stopcause-snapshot.duckdb'}")
    if target.with_name(target.name + ".journal").exists() or target.with_name(target.name + ".lock").exists():
        raise InputError(f"{target} is a store. Name another file for the snapshot.")
    if target.exists() and not _is_snapshot(target):
        raise InputError(f"{target} is there already, and is no snapshot. Name another file, or take it away.")


def _is_snapshot(path: Path) -> bool:
    """Whether it says so itself: a store, or anybody's database, has no table of that name, or has records."""
    with beside.reporting(path), path.open("rb") as file:
        if file.read(_MAGIC_AT + len(_MAGIC))[_MAGIC_AT:] != _MAGIC:
            return False
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    except duckdb.Error:
        return False
    return "snapshot" in tables and "records" not in tables


def _fill(
    connection: duckdb.DuckDBPyConnection, taken_at: datetime, versions: tuple[str, str]
) -> tuple[int, int, datetime | None]:
    connection.execute(text("snapshot")).fetchall()
    asked = {"taken_at": taken_at, "stopcause": versions[0], "classifier": versions[1]}
    connection.execute(text("snapshot_about"), asked).fetchall()
    view = "SELECT sql FROM duckdb_views() WHERE database_name = 'live' AND view_name = 'runs'"
    (definition,) = connection.execute(view).fetchall()[0]
    connection.execute("USE fresh").fetchall()
    connection.execute(definition).fetchall()  # with plain names: the file may be called anything
    connection.execute("CHECKPOINT fresh").fetchall()
    row: tuple[int, int, datetime | None] = connection.execute(
        "SELECT records, runs, newest_record_at FROM fresh.snapshot"
    ).fetchall()[0]
    connection.execute("USE memory").fetchall()
    connection.execute("DETACH fresh").fetchall()
    return row
