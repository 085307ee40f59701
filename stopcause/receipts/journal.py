"""The journal: an append-only folder of NDJSON segments, one writer, acknowledged when it is on the disk.

    journal/00000001.ndjson   first line {"journal":"stopcause/1","segment":1}, then one record a line
    journal/00000002.ndjson   the last segment is the one that grows
    journal/journal.lock      held by the writer, with its process id in it
    journal/torn.ndjson       last lines that a crash cut off; they were never acknowledged

A hook's spool and the service's journal are both this. Here: writing, reading on, retention.
Not here: what a line says (`codec`). Lines are bytes without a newline, and come back as they were given.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from stopcause.errors import StoreError, StoreFullError, StoreInUseError, StoreVersionError

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

LOCK_NAME = "journal.lock"
TORN_NAME = "torn.ndjson"
SEGMENT_BYTES = 64 * 1024 * 1024

_CHUNK = 1024 * 1024  # bytes a read asks for
_BLOCK = 64 * 1024  # bytes a step back from the end asks for
_OURS = b'{"journal":"stopcause/'  # how a header begins, of whatever version
_MODE = 0o640  # a sidecar of the same group may ship a spool; nobody else reads it
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Position(NamedTuple):
    """The place after a line: the segment's number and the byte offset in it. Positions order as lines were written."""

    segment: int
    offset: int


_FAR = Position(sys.maxsize, 0)
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
        with _reporting(self.folder):
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
            raise _refused(self.folder, error) from error
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
        with _reporting(self.folder):
            gone = [n for n in _numbers(self.folder) if n < keep]
            for number in gone:  # the oldest first: a crash in between leaves no hole
                _path(self.folder, number).unlink()
            _sync_folder(self.folder)
        return len(gone)

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
            numbers = _numbers(self.folder)
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
        path = _path(self.folder, number)
        self._fd = os.open(path, os.O_RDWR)
        self._segment, self._body = number, _check_header(self._fd, path, number)
        size = os.fstat(self._fd).st_size
        self._size = _last_line_end(self._fd, size)
        if self._size < size:
            _set_aside(self.folder, os.pread(self._fd, size - self._size, self._size))
            self._cut()
            self.torn = 1
        os.fsync(self._fd)  # a killed writer's last lines may be in memory only, and `end` counts them

    def _begin(self, number: int) -> None:
        """Makes the next segment and moves into it. It gets its name last: nobody ever sees one without its header."""
        path = _path(self.folder, number)
        fresh = path.with_suffix(".new")
        fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, _MODE)
        try:
            body = _write(fd, _header(number), 0)
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


def read(
    folder: str | os.PathLike[str],
    start: Position | None = None,
    *,
    stop: Position = _FAR,
    max_bytes: int = sys.maxsize,
) -> Iterator[tuple[bytes, Position]]:
    """Reads complete lines across segments, also while a writer appends. A torn last line is left out.

    A group that is being written is seen before it is acknowledged, and goes away again where the disk refuses it.
    The writer's own process therefore reads with `stop=journal.end`.

    Args:
        folder: A journal's.
        start: A position that a line or an append gave; None is the oldest line that is kept.
        stop: Nothing after this position is read.
        max_bytes: Ends with the line that reaches this many bytes: one batch. At least one line is read.

    Yields:
        A line without its newline, and the place after it.

    Raises:
        StoreError: Bytes are lost: a segment is missing, its header is wrong, or no line ends at `start`.
        StoreVersionError: A newer stopcause wrote a segment.
    """
    left = max_bytes
    with _reporting(Path(folder)):
        for line, position in _lines(Path(folder), start):
            if position > stop:
                return
            yield line, position
            left -= len(line) + 1
            if left <= 0 or position == stop:
                return


def _lines(folder: Path, start: Position | None) -> Iterator[tuple[bytes, Position]]:
    """All lines after a position, segment by segment."""
    segment, offset = start or (next(iter(_numbers(folder)), 0), 0)
    while segment:
        fd = _open_to_read(folder, segment)
        try:
            begin = _check_start(fd, _path(folder, segment), Position(segment, offset))
            segment, offset = (yield from _rest(fd, folder, begin)), 0
        finally:
            os.close(fd)


def _rest(fd: int, folder: Path, start: Position) -> Generator[tuple[bytes, Position], None, int]:
    """The lines of one segment after a position; returns the number of the next segment, 0 where there is none.

    Only what is read after the next segment was seen is all there is: until then a writer may append here.
    """
    segment, offset = start
    following = 0
    while True:
        lines = _whole_lines(fd, offset)
        for line in lines:
            offset += len(line) + 1
            yield line, Position(segment, offset)
        if lines:
            continue
        if following:
            if os.fstat(fd).st_size != offset:
                raise _lost(_path(folder, segment), "ends inside a line, and is not the last one")
            return following
        following = _following(folder, segment)
        if not following:
            return 0


def _whole_lines(fd: int, offset: int) -> list[bytes]:
    """The complete lines of one chunk, or of a larger one where a line is longer than it."""
    size = _CHUNK
    while True:
        chunk = os.pread(fd, size, offset)
        if b"\n" in chunk:
            return chunk.split(b"\n")[:-1]
        if len(chunk) < size:
            return []
        size *= 2


def _following(folder: Path, segment: int) -> int:
    """The number after `segment`, 0 where it is the last one."""
    after = _path(folder, segment + 1)
    later = not after.exists() and any(n > segment for n in _numbers(folder))
    if after.exists():  # looked for again: a writer may have begun it since
        return segment + 1
    if later:
        raise _lost(after, "is missing")
    return 0


def _open_to_read(folder: Path, segment: int) -> int:
    path = _path(folder, segment)
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise _lost(path, "is missing") from None


def _check_start(fd: int, path: Path, start: Position) -> Position:
    """Where to begin to read; a position at which no line ends was written by a journal that lost bytes since."""
    body = _check_header(fd, path, start.segment)
    if not start.offset:
        return Position(start.segment, body)
    if start.offset < body or os.pread(fd, 1, start.offset - 1) != b"\n":
        raise _lost(path, f"has no line that ends at byte {start.offset}")
    return start


def _check_header(fd: int, path: Path, segment: int) -> int:
    """The length of the header in bytes; raises where it is not this segment's."""
    header = _header(segment)
    begin = os.pread(fd, len(header), 0)
    if begin == header:
        return len(header)
    if begin.startswith(_OURS) and not begin.startswith(_OURS + b'1"'):
        raise StoreVersionError(f"A newer stopcause wrote {path}. Upgrade stopcause, then run again.")
    raise _lost(path, "does not begin with its header")


def _header(segment: int) -> bytes:
    return _OURS + b'1","segment":%d}\n' % segment


def _numbers(folder: Path) -> list[int]:
    """The segments of a folder in order."""
    stems = (path.stem for path in folder.iterdir() if path.suffix == ".ndjson")
    numbers = (int(stem) for stem in stems if stem.isascii() and stem.isdigit() and f"{int(stem):08d}" == stem)
    return sorted(n for n in numbers if n > 0)


def _path(folder: Path, segment: int) -> Path:
    return folder / f"{segment:08d}.ndjson"


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


def _lost(path: Path, fault: str) -> StoreError:
    return StoreError(f"Journal segment {path} {fault}: bytes are lost. Bring it back from a copy, then run again.")


def _refused(folder: Path, error: OSError) -> StoreError:
    """What an append that failed says: the disk is full, or it is broken."""
    if error.errno in _FULL:
        return StoreFullError(
            f"{folder}: the disk took no more ({error.strerror}). Nothing acknowledged is lost. "
            "Free space there, then run again."
        )
    return StoreError(
        f"{folder}: the disk failed ({error.strerror}). This group is not acknowledged; nothing acknowledged is lost. "
        "See to that disk, then run again."
    )


@contextlib.contextmanager
def _reporting(folder: Path) -> Iterator[None]:
    """Turns what the system says about a folder into an error of ours."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _refused(folder, error) from error
        raise StoreError(f"{folder}: {error.strerror}. See to that folder, then run again.") from error


def _forget_writers() -> None:
    """A forked child closes its copies: one that outlives its parent would keep the journal locked."""
    for journal in list(_writers):
        journal._let_go()  # noqa: SLF001 (this module's own)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_writers)
