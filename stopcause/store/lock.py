"""The sidecar lock `<store>.lock`: one process owns a store for as long as it holds this, and says in it who it is.

DuckDB's own lock is a POSIX one, which any close of the file in the same process drops. This one is an `flock`, which
belongs to the open file. Here: taking, saying who holds it, letting go. Not here: the store itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from stopcause.errors import StoreError, StoreInUseError

if sys.platform != "win32":
    import fcntl

_MODE = 0o640
_MAX_BYTES = 4096


class Holder(NamedTuple):
    """Who owns a store: its process, since when (RFC 3339), and where it answers (None: nowhere yet)."""

    pid: int
    started: str
    endpoint: str | None


class StoreLock:
    """The lock of one store, held from here to `release`.

    Args:
        store: The database file; its folder must exist.

    Raises:
        StoreInUseError: Another process holds it; the message names it and says what to do.
        StoreError: The lock file cannot be made, or this system has no file locks.
    """

    def __init__(self, store: Path) -> None:
        if sys.platform == "win32":
            raise StoreError(f"{store}: a store needs file locks that Windows does not have. Use Linux, macOS or WSL.")
        self.path = lock_path(store)
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, _MODE)
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}. See to it, or use another: --store PATH") from error
        try:
            self._claim(store)
        except BaseException:
            os.close(self._fd)
            raise
        self._pid = os.getpid()

    def release(self) -> None:
        """Lets go. A second call does nothing; a forked child closes its copy and leaves the lock to its parent."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if os.getpid() == self._pid:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)

    def _claim(self, store: Path) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise in_use(store, read_holder(store)) from None
        except OSError as error:
            raise StoreError(
                f"{self.path}: no locks here ({error.strerror}). Use a local disk: --store PATH"
            ) from error
        mine = Holder(os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), None)
        with contextlib.suppress(OSError):  # a full disk keeps the lock, and loses only this note
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(mine._asdict()).encode() + b"\n", 0)


def lock_path(store: Path) -> Path:
    """Where the lock of a store is: beside it."""
    return store.with_name(store.name + ".lock")


def read_holder(store: Path) -> Holder | None:
    """What the lock file says; None where it says nothing. It does not tell whether the lock is still held."""
    try:
        said = json.loads(lock_path(store).read_bytes()[:_MAX_BYTES])
        return Holder(int(said["pid"]), str(said["started"]), said.get("endpoint"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def in_use(store: Path, holder: Holder | None) -> StoreInUseError:
    """The error of whoever comes second."""
    who = f"process {holder.pid} (since {holder.started})" if holder else "another process"
    way_out = f"stop process {holder.pid}" if holder else "stop that process"
    return StoreInUseError(f"{store} is in use by {who}. Wait for it, {way_out}, or use another: --store PATH")
