"""How the engine is set up: its limits, and shut off from everything but its own files."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb

MEMORY_LIMIT = "25%"  # of the machine's; a settings row may replace it
CHECKPOINT_AFTER = "128MB"  # of its log, in place of 16: each time, what does not fill a row group is written again

Config = dict[str, str | bool | int | float | list[str]]


def config_of(scratch: Path | None, memory_limit: str, threads: int | None = None) -> Config:
    """What only can be said when the engine starts. Without `scratch` nothing of it ever reaches a disk."""
    return {
        "memory_limit": memory_limit,
        "temp_directory": str(scratch or ""),
        "threads": threads or _processors(),
        "checkpoint_threshold": CHECKPOINT_AFTER,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }


def shut_off(connection: duckdb.DuckDBPyConnection) -> None:
    """Locks the engine into the files that it has open. These options only exist once it is."""
    for setting in ("GLOBAL TimeZone = 'UTC'", "enable_external_access = false", "lock_configuration = true"):
        connection.execute(f"SET {setting}").fetchall()


def connect(path: Path | None, memory_limit: str, threads: int | None) -> duckdb.DuckDBPyConnection:
    """The engine on a store's file, or in memory."""
    scratch = path.with_name(path.name + ".tmp") if path else None
    connection = duckdb.connect(str(path or ":memory:"), config=config_of(scratch, memory_limit, threads))
    try:
        shut_off(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _processors() -> int:
    """How many this process may use, which in a container is not how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
