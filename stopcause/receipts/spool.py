"""The spool: one file a process, that grows by whole lines and is locked for as long as the process lives.

    spool/py-<pid>-<random>.ndjson         first line {"journal":"stopcause/1","segment":1}, then one record a line
    spool/unlocked-<pid>-<random>.ndjson   the same where there are no file locks: nothing proves that its process died

A file gets its name when it is locked already, so a `py-` file with a free lock is a dead process's. Where a file has
grown large, or somebody took it away, the process goes on in a new one. That one begins with the start records of the
runs that are open, byte for byte (they are known by their ids, so nothing counts twice); then the old one ends with
{"journal":"stopcause/1","next":2}. So each file tells by itself which of its runs were open when it ended.

Here: the one writer, and what its lines say about open runs. Not here: who takes records in (`stopcause.pipeline`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stopcause import settings
from stopcause.receipts import segments

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

log = logging.getLogger("stopcause")

SUFFIX = ".ndjson"
DRAFT = ".new"  # a file that is not ready; readers pass over it
LOCKED, UNLOCKED = "py-", "unlocked-"
FILE_BYTES = 8 * 1024 * 1024
MOST_BYTES = 1024 * 1024 * 1024  # of the folder; an agent must not fill the disk where nobody takes its records in

_PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
_MARK = b'{"journal":"stopcause/'
_GOES_ON = _MARK + b'1","next":%d}'
_LOOK_AGAIN_S = 5.0  # whether there is room again
_MOST_OPEN = 20_000  # start records that are held, about 1 kB each; of runs beyond these the lease decides
# How our own writer's lines begin; the few that it had to mend have other orders of keys.
_HEAD = re.compile(
    rb'\{"schema":"stopcause/1","kind":"([a-z.]+)","record_id":"[^"]*","run_id":"([^"\\]*)","attempt":(\d+)[,}]'
)
_BEGIN_OR_END = b'"kind":"run.st'
_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Spool:
    """The default sink. Lines are durable when `write` returns. Made where it does not exist: folder, file.

    Args:
        folder: Where; None is what the settings say when a file is begun.
        file_bytes: A file that has grown so large is followed by another.
        most_bytes: Where the folder has so much, no file is begun: what comes then is given up, until there is room.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        file_bytes: int = FILE_BYTES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._chosen = folder
        self._file_bytes = file_bytes
        self._most_bytes = most_bytes
        self._is_full = False
        self._look_at = 0.0  # by the monotonic clock: when to see again whether there is room
        self._file: _File | None = None
        self._runs = OpenRuns()

    @property
    def folder(self) -> Path:
        """Where its file is."""
        return Path(self._chosen) if self._chosen is not None else settings.spool_dir()

    @property
    def path(self) -> Path | None:
        """Its file; None before the first line."""
        return self._file.path if self._file else None

    def write(self, lines: Sequence[bytes]) -> int:
        """One write a line, one sync for all. After an error nothing of these lines stays; they can be given again.

        Returns:
            How many were given up because the folder is full: none or all.

        Raises:
            OSError: The disk took no more, or the folder cannot be written.
        """
        if self._file is not None and self._file.pid != os.getpid():
            self.close()  # forked: the file and its runs are the parent's
        for _ in range(2):
            file = self._ready()
            if file is None:
                return len(lines)
            file.append(lines)
            if file.is_there():  # else somebody took it away meanwhile, perhaps before these lines were in it
                break
        for line in lines:
            self._runs.see(line)
        return 0

    def close(self) -> None:
        """Lets go of the file and of its lock; in a forked child the lock stays the parent's."""
        file, self._file = self._file, None
        self._runs = OpenRuns()
        if file is not None:
            file.close()

    def _ready(self) -> _File | None:
        """The file that takes the next lines; None where the folder has no room for another."""
        old = self._file
        if old is not None and old.is_there() and old.grown < self._file_bytes:
            return old
        if self._has_no_room():
            return None
        new = _File(self.folder, old.number + 1 if old else 1, self._runs.starts)
        if old is not None:
            try:
                old.append([_GOES_ON % new.number])  # until this is durable, the runs are open in both
            except BaseException:
                new.discard()
                raise
            old.close()
        self._file = new
        return new

    def _has_no_room(self) -> bool:
        """Looked for where a file is to be begun; while the folder is full, again every few seconds."""
        now = time.monotonic()
        if not self._is_full or now >= self._look_at:
            was_full, self._look_at = self._is_full, now + _LOOK_AGAIN_S
            self._is_full = _size_of(self.folder) >= self._most_bytes
            if self._is_full and not was_full:
                log.warning(
                    "stopcause: the spool %s has reached its %d MB, so records are dropped until it is taken in "
                    "(`stopcause ingest --follow`)",
                    self.folder,
                    self._most_bytes // 2**20,
                )
        return self._is_full


def _size_of(folder: Path) -> int:
    """The bytes of what is in a folder; one that is not there has none."""
    try:
        with os.scandir(folder) as entries:
            return sum(_bytes_of(entry) for entry in entries)
    except FileNotFoundError:
        return 0


def _bytes_of(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:  # it was taken in meanwhile
        return 0


class _File:
    """One file, locked. The lock is there before the name is."""

    def __init__(self, folder: Path, number: int, first: Iterable[bytes]) -> None:
        self.pid = os.getpid()
        self.number = number
        self._whole: int | None = None  # the size to go back to, while a group is not written whole
        folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
        stem = f"{self.pid}-{secrets.token_hex(6)}"
        self.path = folder / f".{stem}{DRAFT}"
        self._fd = os.open(self.path, _FLAGS, _PRIVATE_FILE)
        try:
            word = LOCKED if _lock(self._fd, self.path) else UNLOCKED
            self.append([segments.header_of(number)[:-1], *first])
            self._body = os.fstat(self._fd).st_size
            self._become(folder / f"{word}{stem}{SUFFIX}")
        except BaseException:
            self.discard()
            raise

    def _become(self, path: Path) -> None:
        if sys.platform == "win32":  # an open file keeps its name there
            os.close(self._fd)
            self._fd = -1
        self.path.rename(path)
        self.path = path
        if sys.platform == "win32":
            self._fd = os.open(path, _FLAGS & ~(os.O_CREAT | os.O_EXCL))
        _sync_folder(path.parent)

    @property
    def grown(self) -> int:
        """Bytes that were written since it began."""
        return os.fstat(self._fd).st_size - self._body

    def is_there(self) -> bool:
        """Whether its name still leads to it."""
        try:
            return os.path.samestat(os.fstat(self._fd), self.path.stat())
        except OSError:
            return False

    def append(self, lines: Iterable[bytes]) -> None:
        """All of these lines, durably, or none. Whoever reads meanwhile may see some before they go away again."""
        self._cut()
        self._whole = os.fstat(self._fd).st_size
        try:
            for line in lines:
                _write(self._fd, line + b"\n")
            _sync(self._fd)  # one that failed is not tried again: the kernel may have dropped the pages
        except BaseException:
            with contextlib.suppress(OSError):  # the next call tries again, before it writes
                self._cut()
            raise
        self._whole = None

    def _cut(self) -> None:
        if self._whole is not None:
            os.ftruncate(self._fd, self._whole)
            self._whole = None

    def close(self) -> None:
        """Lets go; unlocks first, because a forked child may have a copy for a moment yet."""
        if self.pid == os.getpid():
            with contextlib.suppress(OSError):
                self._cut()
            _unlock(self._fd)
        os.close(self._fd)

    def discard(self) -> None:
        """Takes it away again."""
        self.path.unlink(missing_ok=True)
        os.close(self._fd)


class OpenRun(NamedTuple):
    """A run, and which execution of it."""

    run_id: str
    attempt: int


class OpenRuns:
    """Of the lines of one file, which runs have begun in it and not ended."""

    def __init__(self) -> None:
        self._starts: dict[OpenRun, bytes] = {}

    @property
    def runs(self) -> list[OpenRun]:
        """These runs, in the order in which they began."""
        return list(self._starts)

    @property
    def starts(self) -> list[bytes]:
        """Their start records as they were written."""
        return list(self._starts.values())

    def see(self, line: bytes) -> None:
        """The next line."""
        if is_mark(line):
            if b'"next":' in line:  # whatever is open goes on in the next file
                self._starts.clear()
        elif found := _told(line):
            kind, run = found
            self._starts.pop(run, None)
            if kind == "run.started":
                self._starts[run] = line
                if len(self._starts) > _MOST_OPEN:
                    del self._starts[next(iter(self._starts))]


def is_mark(line: bytes) -> bool:
    """Whether a line is the first or last of a file, and no record."""
    return line.startswith(_MARK)


def _told(line: bytes) -> tuple[str, OpenRun] | None:
    """Which run begins or ends by this line. It costs 1 us for lines as ours begin, else those of two kinds 10 us."""
    if _BEGIN_OR_END not in line:
        return None
    if found := _HEAD.match(line):
        kind, run_id, attempt = found.groups()
        return kind.decode(), OpenRun(run_id.decode(), int(attempt))
    try:
        said = json.loads(line)
        return str(said["kind"]), OpenRun(str(said["run_id"]), int(said.get("attempt", 1)))
    except (ValueError, KeyError, TypeError):  # no record: whoever takes the file in says what it is
        return None


def _write(fd: int, data: bytes) -> None:
    """All of it. A disk that is full takes a part first; only the next call says why."""
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, memoryview(data)[done:])


def _lock(fd: int, path: Path) -> bool:
    """Whether this system and this file system have locks; some take every lock and hold none, so that is tried."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        other = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(other)
    return False


def _unlock(fd: int) -> None:
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # there was none
            fcntl.flock(fd, fcntl.LOCK_UN)


def _sync_folder(folder: Path) -> None:
    """Makes the file's name durable, where a folder can be synced at all."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
