"""What was taken in of a spool, as lines and as objects. Values are handed in field by field."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.render.lines import as_line
from stopcause.render.pen import count
from stopcause.render.screen import Screen, write

_WORTH_A_WORD = 3  # rounds in vain, one after the other


class FromSpool(NamedTuple):
    """What came of a spool."""

    records: int
    lost: Sequence[str]
    cut: int
    removed: int
    set_aside: int
    rejected_files: Sequence[Path]
    unreadable: Sequence[OSError]


def spool_complaints(spool: Path, taken: FromSpool) -> list[str]:
    """What somebody has to know: lines that were no records, and files that this user may not read."""
    lines = [f"{spool}: {count(taken.set_aside, 'line')} of no record set aside"] * bool(taken.set_aside)
    lines += [f"set aside in {path}" for path in taken.rejected_files]
    return lines + [f"{each.filename}: {each.strerror}; what is in it stays there" for each in taken.unreadable]


def round_object(at: datetime, taken: FromSpool, judged: int) -> dict[str, Any]:
    """One round of `ingest --follow`, for a pipe."""
    return {
        "at": at,
        "records": taken.records,
        "lost": list(taken.lost),
        "cut": taken.cut,
        "files_removed": taken.removed,
        "set_aside": taken.set_aside,
        "rejected_files": [str(path) for path in taken.rejected_files],
        "judged": judged,
    }


def summary_line(records: int, lost: int, at: datetime | None = None) -> str:
    """What `ingest --follow` has done; with when it looked last, until it ends."""
    said = count(records, "new record") + (f", {count(lost, 'run')} lost with their process" if lost else "")
    return f"{said}; looked at {at.astimezone():%H:%M:%S}" if at else f"{said}."


class FollowScreen:
    """What `ingest --follow` prints: one line that stands, or in a pipe an object a round; each complaint once."""

    def __init__(self, spool: Path, screen: Screen, complain: Callable[[str], None]) -> None:
        self._spool, self._screen, self._complain = spool, screen, complain
        self._records = self._lost = self._in_vain = 0
        self._said: set[str] = set()

    def begin(self, store: Path) -> None:
        """Nothing has come yet."""
        if self._screen.is_table:
            self._complain(f"Taking {self._spool} into {store}, until Ctrl-C or SIGTERM ends it.")

    def show(self, at: datetime, taken: FromSpool, judged: int) -> None:
        """A round that came to its end."""
        self._in_vain = 0
        self._records += taken.records
        self._lost += len(taken.lost)
        for line in spool_complaints(self._spool, taken):
            if line not in self._said:
                self._said.add(line)
                self._say(line)
        if not self._screen.is_table and (taken.records or taken.set_aside or judged):
            write([as_line(round_object(at, taken, judged))])
        elif self._screen.is_table and sys.stderr.isatty():
            sys.stderr.write(f"\r{summary_line(self._records, self._lost, at)}\x1b[K")
            sys.stderr.flush()

    def wait(self, trouble: str) -> None:
        """A round that could not be; that a command has the store for a moment is not worth a word."""
        self._in_vain += 1
        if self._in_vain == _WORTH_A_WORD:
            self._say(f"{trouble} Trying again until then.")

    def end(self) -> None:
        """It was ended, and has done all that it had begun."""
        if self._screen.is_table:
            self._wipe()
            write([summary_line(self._records, self._lost)])

    def _say(self, line: str) -> None:
        self._wipe()
        self._complain(f"stopcause: {line}")

    @staticmethod
    def _wipe() -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
