"""The spool: one file a process, that grows by whole lines and is locked for as long as the process lives.

    spool/py-<pid>-<started>-<random>.ndjson    first line {"journal":"stopcause/1","segment":1}, then one record a line

Format of a line and of the first line are the journal's. Here: the one writer. Not here: who takes the records in
(`stopcause.pipeline`).
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stopcause import settings
from stopcause.receipts import segments

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Sequence

_PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600
_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Spool:
    """The default sink. Lines are durable when `write` returns."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._chosen = folder
        self._fd = -1

    @property
    def folder(self) -> Path:
        """Where its file is."""
        return Path(self._chosen) if self._chosen is not None else settings.spool_dir()

    def write(self, lines: Sequence[bytes]) -> None:
        """One write a line, one sync for all.

        Raises:
            OSError: The disk took no more, or the folder cannot be written.
        """
        if self._fd < 0:
            self._open()
        for line in lines:
            os.write(self._fd, line + b"\n")
        _sync(self._fd)

    def close(self) -> None:
        """Lets go of the file and of its lock."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _open(self) -> None:
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
        path = folder / f"py-{os.getpid()}-{secrets.token_hex(6)}.ndjson"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, _PRIVATE_FILE)
        if sys.platform != "win32":
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, segments.header_of(1))
        self._fd = fd
