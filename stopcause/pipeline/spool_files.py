"""The files of a spool as they are found: whose process lives, what a store has of them, where the last line ends.

A `py-` file whose lock is free belongs to a dead process. All others (the hook for Node, systems without file locks)
say nothing about theirs: they go when no process has the number in their name, nothing has come for an hour, and all
is taken in. Their writers notice that and begin anew. Here: one file at a time. Not here: what is done with its records
(`spool`).

    spool/NAME.ndjson.taken   {"<store>": [bytes taken in, size then]}: only a hint, so it is neither synced nor locked
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from stopcause import settings
from stopcause.errors import InputError
from stopcause.pipeline.ingest_sources import LongLine, lines_of
from stopcause.pipeline.keeper import journal_folder
from stopcause.receipts import segments
from stopcause.receipts.spool import DRAFT, LOCKED, SUFFIX

if sys.platform != "win32":
    import fcntl

TAKEN = ".taken"
QUIET_S = 3600.0  # a number in a name may be another container's process, which cannot be seen from here
_BLOCK = 64 * 1024
_HEADER = len(segments.header_of(1))
_UNFINISHED_S = 60.0  # a process gives its file a name within a moment, unless it died
_PRIVATE_FILE = 0o600


class Hint(NamedTuple):
    """How far a store had taken a file in, and how large it was then."""

    taken: int = 0
    size: int = -1


class Stretch:
    """The bytes of a file from one offset to another. Where the disk fails they end, and the file is broken."""

    def __init__(self, file: SpoolFile, start: int, end: int) -> None:
        self.file, self.at, self._end = file, start, end

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        try:
            chunk = os.pread(self.file.fd, min(size, self._end - self.at), self.at)
        except OSError:
            self.file.is_broken = True
            return b""
        self.at += len(chunk)
        return chunk


class SpoolFile:
    """An open file of a spool, and what can be said of it. In a `with`; a dead process's stays locked until its end.

    Args:
        path: Which; opening it raises OSError.
        store: The store whose records are to come; None is none in particular.
    """

    def __init__(self, path: Path, store: Path | None) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)  # nobody may lead us to a file outside
        self.is_broken = False
        self.is_locked = path.name.startswith(LOCKED)
        self.is_dead = self.is_locked and self._lock() and self._is_there()
        found = os.fstat(self.fd)
        self.size, self.changed_at = found.st_size, found.st_mtime
        self._store = store_key(store) if store else ""
        self._hints = read_hints(path)
        self.hint = self._usable(self._hints.get(self._store, Hint()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)

    @property
    def is_gone(self) -> bool:
        """Whether this file can go once it is taken in: nobody writes it any more, as far as can be known."""
        if self.is_locked:
            return self.is_dead
        pid = pid_of(self.path)
        return pid is not None and not is_running(pid) and time.time() - self.changed_at > QUIET_S

    @property
    def has_news(self) -> bool:
        """Whether it is worth a store's opening."""
        is_more = self.size != self.hint.size and self.size > _HEADER
        return is_more or (self.is_gone and os.access(self.path.parent, os.W_OK))

    def line_end(self) -> int:
        """The offset after the last whole line that is not taken in yet."""
        end = self.size
        while end > self.hint.taken:
            begin = max(self.hint.taken, end - _BLOCK)
            found = os.pread(self.fd, end - begin, begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
        return end

    def lines(self, start: int, end: int) -> Iterator[bytes]:
        """The lines between two offsets, but for those that are too long to be records."""
        for line in lines_of(Stretch(self, start, end), _uncounted):
            if not isinstance(line, LongLine):
                yield line

    def note(self, taken: int) -> None:
        """Keeps how far this store is. Where that fails, the same lines are read again, which changes nothing."""
        hint = Hint(taken, self.size)
        if hint == self.hint:
            return
        with contextlib.suppress(OSError):
            write_hints(self.path, {**self._hints, self._store: hint})

    def remove(self) -> bool:
        """Takes it away, unless somebody has written to it after all, or this user may not."""
        try:
            if os.fstat(self.fd).st_size == self.size:
                self.path.unlink()
                taken_path(self.path).unlink(missing_ok=True)
                return True
        except OSError:
            self.note(self.size)
        return False

    def _lock(self) -> bool:
        """Whether its lock was free; then it is ours. A lock of a system that has none proves nothing."""
        if sys.platform == "win32":
            return False
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _is_there(self) -> bool:
        """Whether another store has not taken it away just before."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.fstat(self.fd), self.path.stat())
        return False

    def _usable(self, hint: Hint) -> Hint:
        """A hint, unless no line of this file ends there: a disk refused what was read, and it was cut back."""
        ends_there = 0 < hint.taken <= self.size and os.pread(self.fd, 1, hint.taken - 1) == b"\n"
        return hint if ends_there else Hint()


def _uncounted(_count: int) -> None:
    """Nobody watches."""


def files_of(spool: Path) -> list[Path]:
    """The files of a spool, those that were written to last at the end.

    Raises:
        OSError: The folder may not be read. That there is none is no error.
    """
    found: list[tuple[int, Path]] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(spool) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # taken in by another store meanwhile
                    found.append((entry.stat().st_mtime_ns, Path(entry.path)))
    return [path for _, path in sorted(found)]


def opened(paths: Iterable[Path], store: Path | None) -> Iterator[SpoolFile | OSError]:
    """These files one after the other, each open until the next; or why this user may not."""
    for path in paths:
        try:
            file = SpoolFile(path, store)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield error
            continue
        with file:
            yield file


def is_usual(store: Path) -> bool:
    """Whether it is the store that commands read when none is named: the only one that takes the spool in unasked.

    Whoever looks at another, a copy perhaps, must not draw away what the living report.
    """
    with contextlib.suppress(InputError):  # there is no usual place here
        return settings.store_path().resolve() == store.resolve()
    return False


def has_records(spool: Path) -> bool:
    """Whether there is anything to take in, for a store that is not there yet."""
    with contextlib.suppress(OSError):
        return any(path.stat().st_size > _HEADER for path in files_of(spool))
    return False


def has_news(spool: Path, store: Path) -> bool:
    """Whether there is anything that this store has not seen."""
    with contextlib.suppress(OSError):
        return any(isinstance(each, SpoolFile) and each.has_news for each in opened(files_of(spool), store))
    return False


def sweep(spool: Path) -> None:
    """Takes away hints without a file, and files that a process began and died over."""
    with contextlib.suppress(OSError), os.scandir(spool) as entries:
        for entry in entries:
            path = Path(entry.path)
            is_orphan = entry.name.endswith(SUFFIX + TAKEN) and not path.with_suffix("").exists()
            if is_orphan or (entry.name.endswith(DRAFT) and entry.stat().st_mtime < time.time() - _UNFINISHED_S):
                path.unlink(missing_ok=True)


def taken_path(path: Path) -> Path:
    """Where it is noted how far a file is taken in."""
    return path.with_name(path.name + TAKEN)


def store_key(store: Path) -> str:
    """Tells a store from others, also from one that was made anew in its place: it has none of those records."""
    folder = journal_folder(store)
    try:
        found = folder.stat()
    except OSError:
        return ""
    told = f"{folder.resolve()} {found.st_dev} {found.st_ino}"
    return hashlib.blake2b(os.fsencode(told), digest_size=8).hexdigest()


def read_hints(path: Path) -> dict[str, Hint]:
    """What is noted of a file; nothing, where that cannot be read."""
    try:
        noted = json.loads(taken_path(path).read_bytes())
        return {str(store): Hint(int(taken), int(size)) for store, (taken, size) in noted.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write_hints(path: Path, hints: dict[str, Hint]) -> None:
    """Notes it, all at once: a reader finds the old or the new."""
    place = taken_path(path)
    draft = place.with_name(f".{place.name}.{os.getpid()}{DRAFT}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE_FILE)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        json.dump(hints, file)
    draft.replace(place)


def pid_of(path: Path) -> int | None:
    """The process in a name: `ai-sdk-712-9f3a1c2e.ndjson`."""
    word = path.stem.rpartition("-")[0].rpartition("-")[2]
    return int(word) if word.isascii() and word.isdigit() else None


def is_running(pid: int) -> bool:
    """Whether a process has this number here."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
