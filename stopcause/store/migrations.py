"""The shape of a store, as numbered steps. A step that was released is never edited; a change is a new step.

Applied steps are kept by name in `schema_migrations`. Each runs in a transaction of its own, and is checkpointed at
once: replaying DDL from the write-ahead log is where storage engines have their bugs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import duckdb

from stopcause.errors import StoreError, StoreVersionError
from stopcause.store.queries import text

_LEDGER = "CREATE TABLE IF NOT EXISTS schema_migrations (name VARCHAR, applied_at TIMESTAMP)"
_NOTE = "INSERT INTO schema_migrations VALUES ($name, now() AT TIME ZONE 'UTC')"


class Migration(NamedTuple):
    """One step: its name, which sorts after all names before it, and what it does on an open transaction."""

    name: str
    apply: Callable[[duckdb.DuckDBPyConnection], None]


def _tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(text("migration_0001")).fetchall()


def _reported(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(text("migration_0002")).fetchall()


MIGRATIONS: Sequence[Migration] = (Migration("0001_tables", _tables), Migration("0002_reported", _reported))


def migrate(connection: duckdb.DuckDBPyConnection, steps: Sequence[Migration] = MIGRATIONS) -> tuple[str, ...]:
    """Brings a store to this version's shape.

    Returns:
        The names of the steps that it applied; none where the store is up to date.

    Raises:
        StoreVersionError: A newer stopcause wrote the store. Nothing was changed.
        StoreError: The file is a database of something else. Nothing was changed.
    """
    missing = pending(connection, steps)
    for step in missing:
        _run(connection, step)
    return tuple(step.name for step in missing)


def pending(connection: duckdb.DuckDBPyConnection, steps: Sequence[Migration] = MIGRATIONS) -> list[Migration]:
    """The steps that a store lacks, oldest first. Raises what `migrate` raises."""
    applied = _applied(connection)
    _check_known(applied, steps)
    return [step for step in steps if step.name not in applied]


def _applied(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of the applied steps, oldest first."""
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if "schema_migrations" in tables:
        return sorted(name for (name,) in connection.execute("SELECT name FROM schema_migrations").fetchall())
    if tables:
        raise StoreError("This is a DuckDB file of something else; nothing was changed. Use another: --store PATH")
    return []


def _check_known(applied: Sequence[str], steps: Sequence[Migration]) -> None:
    known = {step.name for step in steps}
    if unknown := [name for name in applied if name not in known]:
        raise StoreVersionError(
            f"A newer stopcause wrote this store: it is at {unknown[-1]}, this version knows {steps[-1].name}. "
            "Nothing was changed. Upgrade: pip install -U 'stopcause[server]'",
            unknown[0],
        )


def _run(connection: duckdb.DuckDBPyConnection, step: Migration) -> None:
    connection.execute("BEGIN").fetchall()
    try:
        connection.execute(_LEDGER).fetchall()
        step.apply(connection)
        connection.execute(_NOTE, {"name": step.name}).fetchall()
        connection.execute("COMMIT").fetchall()
    except BaseException:
        connection.execute("ROLLBACK").fetchall()
        raise
    connection.execute("CHECKPOINT").fetchall()
