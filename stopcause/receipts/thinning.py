"""Taking lines out of a journal's closed segments: a segment is written anew beside itself and named in one step.

The lines that stay keep their order and their segment, so a store that is made again from the journal is the same one.
Here: one segment. Not here: who may do it (`journal`), and which lines go.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stopcause.receipts import segments
from stopcause.receipts.segments import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_LINES = 20_000  # looked at in one go
_MODE = 0o640


class Thinned(NamedTuple):
    """What went: lines, their bytes, and segments that had no other lines."""

    lines: int
    bytes: int
    segments: int

    def plus(self, other: Thinned) -> Thinned:
        """Both together."""
        return Thinned(*map(sum, zip(self, other, strict=True)))


def thin_segment(folder: Path, number: int, stays: Callable[[Sequence[bytes]], Sequence[bool]]) -> Thinned:
    """Takes the lines out of one segment that grows no more; where all of them stay it is not touched."""
    flags = bytearray()
    for lines in _chunks(folder, number):
        flags += bytes(stays(lines))
    if all(flags):
        return Thinned(0, 0, 0)
    path = segments.path_of(folder, number)
    before = path.stat().st_size
    _write(path, number, itertools.compress(_lines(folder, number), flags))
    return Thinned(flags.count(0), before - path.stat().st_size, 0)


def first_with_lines(folder: Path) -> int:
    """The number of the first segment that has a line, else of the last one."""
    number = 0
    for number in segments.numbers(folder):
        if next(_lines(folder, number), None) is not None:
            break
    return number


def _write(path: Path, number: int, lines: Iterator[bytes]) -> None:
    fresh = path.with_suffix(".new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "wb") as file:
            file.write(segments.header_of(number))
            file.writelines(line + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _chunks(folder: Path, number: int) -> Iterator[list[bytes]]:
    lines = _lines(folder, number)
    while chunk := list(itertools.islice(lines, _LINES)):
        yield chunk


def _lines(folder: Path, number: int) -> Iterator[bytes]:
    """The lines of this segment alone."""
    reading = segments.read(folder, Position(number, 0), stop=Position(number, sys.maxsize))
    return (line for line, _ in reading)
