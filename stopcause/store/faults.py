"""What the engine says when it fails, as errors of ours. Its own texts can quote values, so they do not pass."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb

from stopcause.errors import StoreError, StoreFullError, StoreInUseError
from stopcause.store.lock import in_use, read_holder

_FULL = ("No space left on device", "File too large", "Disk quota exceeded", "ENOSPC", "max_temp_directory_size")
_HOLDER = re.compile(r"\(PID (\d+)\)")


@contextlib.contextmanager
def translated(path: Path | None) -> Iterator[None]:
    """Raises a `StoreError` in place of an error of the engine on this store."""
    try:
        yield
    except duckdb.Error as error:
        raise _ours(error, path) from error


def _ours(error: duckdb.Error, path: Path | None) -> StoreError:
    said, store = str(error), path or "the store in memory"
    if any(words in said for words in _FULL):
        return StoreFullError(
            f"{store}: the disk took no more. Nothing acknowledged is lost. Free space there, then run again."
        )
    if path is not None and "Could not set lock" in said:
        return _held(path, said)
    if "not a valid DuckDB database" in said:
        return StoreError(f"{store} is no DuckDB file; nothing was changed. Use another: --store PATH")
    if isinstance(error, duckdb.OutOfMemoryException):
        return StoreError(f"{store}: the engine has too little memory for this. Nothing was changed. Ask for less.")
    return StoreError(
        f"{store}: the engine failed ({type(error).__name__}). Run it again. If that fails too, move {store} away: "
        "it is made again from the journal beside it."
    )


def _held(path: Path, said: str) -> StoreInUseError:
    """Somebody opened the file without our lock: another tool. The engine names its process."""
    found = _HOLDER.search(said)
    if found is None:
        return in_use(path, read_holder(path))
    return StoreInUseError(
        f"{path} is open in process {found[1]}, which is no stopcause. Stop process {found[1]}, or use another: "
        "--store PATH"
    )
