"""Opening a store's file: its shape is brought forward, and what an older version wrote is kept beside it before.

    stopcause.duckdb.before-0002   the store as it was before step 0002, made once

Older versions cannot read a store after a step. With this copy in its place they can: the journal has what came since.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from stopcause.errors import StoreError, StoreVersionError
from stopcause.store import beside, engine
from stopcause.store.migrations import MIGRATIONS, Migration, migrate, pending


def opened(path: Path | None, memory_limit: str, threads: int | None) -> duckdb.DuckDBPyConnection:
    """An engine on a store of this version's shape. The store's lock is the caller's.

    Raises:
        StoreVersionError: A newer stopcause wrote it; the message names the copy to go back to, where there is one.
        StoreFullError: The disk has no room for the copy; nothing was changed.
        StoreError: It is a file of something else; nothing was changed.
    """
    connection = engine.connect(path, memory_limit, threads)
    try:
        if path and (step := _changing(connection)):
            connection.execute("CHECKPOINT").fetchall()
            connection.close()
            keep(path, step)
            connection = engine.connect(path, memory_limit, threads)
        migrate(connection)
    except StoreVersionError as error:
        connection.close()
        raise _with_way_back(error, path) from None
    except BaseException:
        connection.close()
        raise
    return connection


def copies(store: Path) -> list[Path]:
    """The copies that `keep` made beside a store, oldest first; what else has such a name is somebody's own."""
    made = (_copy_of(store, step.name) for step in MIGRATIONS)
    return [each for each in made if each.is_file()]


def keep(store: Path, step: Migration) -> None:
    """Copies a store that is at rest, once."""
    log = store.with_name(store.name + ".wal")
    if log.exists():
        raise StoreError(f"{log}: the engine did not write this into {store}. Nothing was changed. Run it again.")
    if not (copy := _copy_of(store, step.name)).exists():
        beside.copy(store, copy)


def _changing(connection: duckdb.DuckDBPyConnection) -> Migration | None:
    """The first step that changes rows that are there; None where none does."""
    missing = pending(connection)
    if not missing or missing[0].name == "0001_tables":
        return None
    return missing[0] if connection.execute("SELECT 1 FROM records LIMIT 1").fetchall() else None


def _copy_of(store: Path, step: str) -> Path:
    return store.with_name(f"{store.name}.before-{step.partition('_')[0]}")


def _with_way_back(error: StoreVersionError, path: Path | None) -> StoreVersionError:
    if path is None or not (copy := _copy_of(path, error.step)).exists():
        return error
    return StoreVersionError(
        f"{error} Or go back to the store from before the upgrade: mv {copy} {path} (what was taken in since is read "
        "again from the journal)",
        error.step,
    )
