"""A store's file at rest: no engine of ours is open on it, and its lock is held by who calls this.

Opening a live file a second time in one process drops the engine's lock on it. So what needs the file (a backup, a
snapshot) first closes the engine (`DuckStore.close_engine`) and then works here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import duckdb

from stopcause.errors import StoreError
from stopcause.store import digest, faults
from stopcause.store.engine import MEMORY_LIMIT, config_of, shut_off


class FileDigest(dict[str, digest.TableDigest]):
    """The digests of a store's tables by name."""

    @property
    def text(self) -> str:
        """One digest of them all."""
        return digest.whole([self[name] for name in digest.TABLES])


@contextlib.contextmanager
def attached(store: Path, *, scratch: Path, target: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine with a store's file as `live`, for reading, and perhaps a new file as `fresh`; shut off from all else.

    Args:
        store: The file.
        scratch: A folder for what does not fit in memory; made where it is needed.
        target: A file that is not there yet. It gets a format that DuckDB 1.2 and later read.

    Raises:
        StoreFullError: The disk took no more.
        StoreError: The engine failed.
    """
    check_there(store)
    with faults.translated(target or store):
        connection = duckdb.connect(":memory:", config=config_of(scratch, MEMORY_LIMIT))
        try:
            connection.execute(f"ATTACH {_literal(store)} AS live (READ_ONLY)").fetchall()
            if target:
                connection.execute(f"ATTACH {_literal(target)} AS fresh (STORAGE_VERSION 'v1.2.0')").fetchall()
            shut_off(connection)
            yield connection
        finally:
            connection.close()


def check_there(store: Path) -> None:
    """Raises where a store's file was deleted while it was open: it was readable then, and nowhere else."""
    if not store.exists():
        raise StoreError(
            f"{store} was deleted while this ran. Run it again: it is made anew from the journal beside it."
        )


def file_digest(store: Path, columns: dict[str, list[str]] | None = None) -> FileDigest:
    """What the rows of a store's file say.

    Args:
        store: The file.
        columns: By table, the columns to look at; None is all that it has.
    """
    with attached(store, scratch=store.with_name(store.name + ".tmp")) as connection:
        return FileDigest(
            {
                name: digest.table_digest(connection, f"live.{name}", columns[name] if columns else None)
                for name in digest.TABLES
            }
        )


def columns_of(store: Path) -> dict[str, list[str]]:
    """The names of the columns of a store's tables, sorted."""
    with attached(store, scratch=store.with_name(store.name + ".tmp")) as connection:
        return {name: sorted(connection.sql(f"FROM live.{name} LIMIT 0").columns) for name in digest.TABLES}


def steps_of(store: Path) -> list[str]:
    """The names of the steps that gave a store's file its shape, oldest first."""
    with attached(store, scratch=store.with_name(store.name + ".tmp")) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM live.schema_migrations ORDER BY 1").fetchall()]


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
