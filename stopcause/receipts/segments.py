"""The segments of a journal: their names, their header, the places in them, and how they are read.

    journal/00000001.ndjson   first line {"journal":"stopcause/1","segment":1}, then one record a line
    journal/00000002.ndjson   the last segment is the one that grows

Reading takes no lock: a segment only ever grows, and is removed whole. Here also: what is said where the disk or a
segment is not as it should be. Not here: who may write (`journal`), and what a line says (`codec`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stopcause.errors import StoreError, StoreFullError, StoreVersionError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_CHUNK = 1024 * 1024  # bytes a read asks for
_OURS = b'{"journal":"stopcause/'  # how a header begins, of whatever version
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Position(NamedTuple):
    """The place after a line: the segment's number and the byte offset in it. Positions order as lines were written."""

    segment: int
    offset: int


_FAR = Position(sys.maxsize, 0)


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
    with reporting(Path(folder)):
        for line, position in _lines(Path(folder), start):
            if position > stop:
                return
            yield line, position
            left -= len(line) + 1
            if left <= 0 or position == stop:
                return


def _lines(folder: Path, start: Position | None) -> Iterator[tuple[bytes, Position]]:
    """All lines after a position, segment by segment."""
    segment, offset = start or (next(iter(numbers(folder)), 0), 0)
    while segment:
        fd = _open_to_read(folder, segment)
        try:
            begin = _check_start(fd, path_of(folder, segment), Position(segment, offset))
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
                raise _lost(path_of(folder, segment), "ends inside a line, and is not the last one")
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
    after = path_of(folder, segment + 1)
    later = not after.exists() and any(n > segment for n in numbers(folder))
    if after.exists():  # looked for again: a writer may have begun it since
        return segment + 1
    if later:
        raise _lost(after, "is missing")
    return 0


def _open_to_read(folder: Path, segment: int) -> int:
    path = path_of(folder, segment)
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise _lost(path, "is missing") from None


def _check_start(fd: int, path: Path, start: Position) -> Position:
    """Where to begin to read; a position at which no line ends was written by a journal that lost bytes since."""
    body = check_header(fd, path, start.segment)
    if not start.offset:
        return Position(start.segment, body)
    if start.offset < body or os.pread(fd, 1, start.offset - 1) != b"\n":
        raise _lost(path, f"has no line that ends at byte {start.offset}")
    return start


def check_header(fd: int, path: Path, segment: int) -> int:
    """The length of the header in bytes; raises where it is not this segment's."""
    expected = header_of(segment)
    begin = os.pread(fd, len(expected), 0)
    if begin == expected:
        return len(expected)
    if begin.startswith(_OURS) and not begin.startswith(_OURS + b'1"'):
        raise StoreVersionError(f"A newer stopcause wrote {path}. Upgrade stopcause, then run again.")
    raise _lost(path, "does not begin with its header")


def header_of(segment: int) -> bytes:
    """The first line of a segment, with its newline."""
    return _OURS + b'1","segment":%d}\n' % segment


def numbers(folder: Path) -> list[int]:
    """The segments of a folder in order."""
    stems = (path.stem for path in folder.iterdir() if path.suffix == ".ndjson")
    found = (int(stem) for stem in stems if stem.isascii() and stem.isdigit() and f"{int(stem):08d}" == stem)
    return sorted(n for n in found if n > 0)


def path_of(folder: Path, segment: int) -> Path:
    """Where a segment is."""
    return folder / f"{segment:08d}.ndjson"


def _lost(path: Path, fault: str) -> StoreError:
    return StoreError(f"Journal segment {path} {fault}: bytes are lost. Bring it back from a copy, then run again.")


def refused(folder: Path, error: OSError) -> StoreError:
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
def reporting(folder: Path) -> Iterator[None]:
    """Turns what the system says about a folder into an error of ours."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise refused(folder, error) from error
        raise StoreError(f"{folder}: {error.strerror}. See to that folder, then run again.") from error
