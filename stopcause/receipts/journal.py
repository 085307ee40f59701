"""The journal: an append-only folder of NDJSON segments, one writer, acknowledged when it is on the disk.

    journal/00000001.ndjson   the segments: see `segments`, which also reads them
    journal/journal.lock      held by the writer, with its process id in it
    journal/torn.ndjson       last lines that a crash cut off; they were never acknowledged

A hook's spool has files of the same format, one a process (`spool`). Here: the one writer, its lock, retention.
Not here: what a line says (`codec`). Lines are bytes without a newline, and come back as they were given.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Self

from stopcause.errors import StoreError, StoreInUseError
from stopcause.receipts import segments, thinning
from stopcause.receipts.segments import Position, read

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Journal", "Position", "read"]  # who writes a journal reads it back: one name for both

LOCK_NAME = "journal.lock"
TORN_NAME = "torn.ndjson"
SEGMENT_BYTES = 64 * 1024 * 1024

_BLOCK = 64 * 1024  # bytes a step back from the end asks for
_MODE = 0o640  # a sidecar of the same group may ship a journal; nobody else reads it
_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
_writers: weakref.WeakSet[Journal] = weakref.WeakSet()


class Journal:
    """A journal that is open for appending. One process holds it, and one thread appends.

    Args:
        folder: Made where it does not exist.
        segment_bytes: A group that would make a segment larger begins a new one. A group is never split.

    Raises:
        StoreInUseError: Another writer holds the folder; the message names its process.
        StoreFullError: The disk has no room for the first segment.
        StoreVersionError: A newer stopcause wrote the last segment.
        StoreError: The folder cannot be used; the message says why.
    """

    def __init__(self, folder: str | os.PathLike[str], *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = Path(folder)
        self.torn = 0  # last lines that this opening moved to torn.ndjson: 0 or 1
        self._segment_bytes = segment_bytes
        self._pid = os.getpid()
        self._fd = self._lock = -1
        self._unclean = self._unlisted = False
        with segments.reporting(self.folder):
            _make_folder(self.folder)
            self._lock = _take_lock(self.folder)
            self._open()
        _writers.add(self)

    @property
    def end(self) -> Position:
        """The place after the last acknowledged line: who has read up to it has read all there was."""
        return self._end

    def append(self, lines: Iterable[bytes]) -> Position:
        """Writes a group with one write and one sync. The return is the acknowledgement.

        Args:
            lines: Without newlines; none at all is no write.

        Returns:
            The place after the last line.

        Raises:
            ValueError: A line has a newline in it; nothing is written.
            StoreFullError: The disk took no more; nothing of the group stays, and a later append may succeed.
            StoreError: The disk failed, or this journal is closed or another process's; nothing of the group stays.
        """
        data, count = _joined(lines)
        self._check_usable()
        if not count:
            return self._end
        try:
            self._make_room(len(data))
            self._put(data)
        except OSError as error:
            # A sync that failed is not tried again: the kernel may have dropped the pages, and then says yes.
            with contextlib.suppress(OSError):
                self._cut()
            raise segments.refused(self.folder, error) from error
        return self._end

    def remove_before(self, position: Position) -> int:
        """Removes the whole segments that lie before a position, never the current one.

        Returns:
            How many it removed.

        Raises:
            StoreError: A segment cannot be removed, or this journal is closed or another process's.
        """
        self._check_usable()
        keep = min(position.segment, self._segment)
        with segments.reporting(self.folder):
            gone = [n for n in segments.numbers(self.folder) if n < keep]
            for number in gone:  # the oldest first: a crash in between leaves no hole
                segments.path_of(self.folder, number).unlink()
            _sync_folder(self.folder)
        return len(gone)

    def begin_segment(self) -> Position:
        """Begins the next segment where the current one has lines: then all of them are in segments that grow no more.

        Returns:
            The place of the first line to come. A position at the old end still reads on from there.

        Raises:
            StoreFullError: The disk took no more; the current segment stays.
            StoreError: The disk failed, or this journal is closed or another process's.
        """
        self._check_usable()
        with segments.reporting(self.folder):
            if self._unclean:
                self._cut()
            if self._size > self._body:
                self._begin(self._segment + 1)
                _sync_folder(self.folder)
                self._unlisted = False
                self._end = Position(self._segment, self._size)
        return self._end

    def thin(self, stays: Callable[[Sequence[bytes]], Sequence[bool]]) -> thinning.Thinned:
        """Writes each segment but the current one anew without the lines that are to go; the others stay in order.

        A segment is the old one or the new one, whenever this is broken off. Positions inside a segment that lost lines
        are good no more.

        Args:
            stays: For some lines, which of them stay.

        Raises:
            StoreFullError: The disk took no more; segments that were not reached are as they were.
            StoreError: A segment cannot be read or written, or this journal is closed or another process's.
        """
        self._check_usable()
        gone = thinning.Thinned(0, 0, 0)
        with segments.reporting(self.folder):
            for number in segments.numbers(self.folder):
                if number < self._segment:
                    gone = gone.plus(thinning.thin_segment(self.folder, number, stays))
            _sync_folder(self.folder)
            empty = thinning.first_with_lines(self.folder)
        removed = self.remove_before(Position(empty, 0))
        return gone._replace(segments=removed)

    def close(self) -> None:
        """Lets go of the folder. A second call does nothing; in a forked child it leaves the parent's lock alone."""
        if self._fd < 0:
            return
        if self._unclean and os.getpid() == self._pid:
            with contextlib.suppress(OSError):
                self._cut()
        self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self) -> None:
        """Goes to the last good byte and makes it the end; lets go of the lock where that fails."""
        try:
            numbers = segments.numbers(self.folder)
            if numbers:
                self._open_last(numbers[-1])
            else:
                self._begin(1)
            _sync_folder(self.folder)
        except BaseException:
            self._let_go()
            raise
        self._unlisted = False
        self._end = Position(self._segment, self._size)

    def _open_last(self, number: int) -> None:
        """Takes up the newest segment, without the line that a crash cut off."""
        path = segments.path_of(self.folder, number)
        self._fd = os.open(path, os.O_RDWR)
        self._segment, self._body = number, segments.check_header(self._fd, path, number)
        size = os.fstat(self._fd).st_size
        self._size = _last_line_end(self._fd, size)
        if self._size < size:
            _set_aside(self.folder, os.pread(self._fd, size - self._size, self._size))
            self._cut()
            self.torn = 1
        os.fsync(self._fd)  # a killed writer's last lines may be in memory only, and `end` counts them

    def _begin(self, number: int) -> None:
        """Makes the next segment and moves into it. It gets its name last: nobody ever sees one without its header."""
        path = segments.path_of(self.folder, number)
        fresh = path.with_suffix(".new")
        fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, _MODE)
        try:
            body = _write(fd, segments.header_of(number), 0)
            os.fsync(fd)
            fresh.rename(path)
        except BaseException:
            os.close(fd)
            fresh.unlink(missing_ok=True)
            raise
        old, self._fd = self._fd, fd
        self._segment, self._body, self._size, self._unlisted = number, body, body, True
        if old >= 0:
            os.close(old)

    def _make_room(self, count: int) -> None:
        """Everything that has to hold before `count` bytes may be written."""
        if self._unclean:
            self._cut()
        if self._size > self._body and self._size + count > self._segment_bytes:
            self._begin(self._segment + 1)
        if self._unlisted:
            _sync_folder(self.folder)
            self._unlisted = False

    def _put(self, data: bytes) -> None:
        """Writes and syncs. Unclean until both are done, so that no interruption leaves half a group behind."""
        self._unclean = True
        count = _write(self._fd, data, self._size)
        _sync(self._fd)
        self._size += count
        self._end = Position(self._segment, self._size)
        self._unclean = False

    def _cut(self) -> None:
        os.ftruncate(self._fd, self._size)
        self._unclean = False

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self.folder}: this journal is process {self._pid}'s, which forked this one. "
                "Open one in another folder here."
            )
        if self._fd < 0:
            raise StoreError(f"{self.folder}: this journal is closed. Open it again.")

    def _let_go(self) -> None:
        """Closes what is open; the lock file stays, because removing it would let two writers lock two files."""
        fds, self._fd, self._lock = (self._fd, self._lock), -1, -1
        if fds[1] >= 0 and os.getpid() == self._pid:
            _drop_lock(fds[1])
        for fd in fds:
            if fd >= 0:
                os.close(fd)


def _joined(lines: Iterable[bytes]) -> tuple[bytes, int]:
    """A group as the bytes of one write, and its number of lines."""
    group = [*lines, b""]
    data = b"\n".join(group)
    if data.count(b"\n") != len(group) - 1:
        raise ValueError("a line of a journal has a newline in it")
    return data, len(group) - 1


def _write(fd: int, data: bytes, offset: int) -> int:
    """Writes all of it. A disk that is full takes a part first; only the next call says why."""
    done = os.pwrite(fd, data, offset)
    while done < len(data):
        done += os.pwrite(fd, memoryview(data)[done:], offset + done)
    return done


def _last_line_end(fd: int, size: int) -> int:
    """The offset after the last newline, looked for from the end: a torn line is short, a segment is not."""
    end = size
    while end > 0:
        begin = max(0, end - _BLOCK)
        found = os.pread(fd, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _set_aside(folder: Path, tail: bytes) -> None:
    """Keeps a torn line; durable before it is cut off, so that a crash in between doubles it and never loses it."""
    fd = os.open(folder / TORN_NAME, os.O_RDWR | os.O_CREAT, _MODE)
    try:
        _write(fd, tail + b"\n", os.fstat(fd).st_size)
        os.fsync(fd)
    finally:
        os.close(fd)
    _sync_folder(folder)


def _make_folder(folder: Path) -> None:
    """Makes a folder and the folders above it, each durably."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable; syncing a file does not."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _take_lock(folder: Path) -> int:
    if sys.platform == "win32":
        raise StoreError(f"{folder}: a journal needs file locks that Windows does not have. Use Linux, macOS or WSL.")
    fd = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, _MODE)
    try:
        _claim(fd, folder)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _claim(fd: int, folder: Path) -> None:
    """Locks the file and writes the process id into it, for whoever comes second."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "of unknown number"
        raise StoreInUseError(
            f"{folder}: process {holder} is writing this journal. Stop it, or use another folder here."
        ) from None
    with contextlib.suppress(OSError):  # a full disk keeps the lock, and loses only this note
        os.ftruncate(fd, 0)
        _write(fd, b"%d\n" % os.getpid(), 0)


def _drop_lock(fd: int) -> None:
    """Unlocks for all copies of `fd`: a forked child may still have one."""
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        fcntl.flock(fd, fcntl.LOCK_UN)


def _forget_writers() -> None:
    """A forked child closes its copies: one that outlives its parent would keep the journal locked."""
    for journal in list(_writers):
        journal._let_go()  # noqa: SLF001 (this module's own)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_writers)
