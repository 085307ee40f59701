"""Where a command's answer goes: a table for people, JSON lines for pipes, and what is said beside it.

The answer is stdout's. Hints, freshness and complaints are stderr's, and only people get hints.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

from stopcause import settings
from stopcause.errors import InputError
from stopcause.render import lines
from stopcause.render.caller import Hint, this_program
from stopcause.render.hints import Caller, hint_lines
from stopcause.render.pen import Pen, age
from stopcause.render.views import Window


class Screen(NamedTuple):
    """How one call of a command prints."""

    is_table: bool
    pen: Pen
    caller: Caller

    def show(self, table: Callable[[Pen], Iterable[str]], objects: Callable[[], Iterable[dict[str, Any]]]) -> None:
        """Print the answer in the one form or the other; the other is not made."""
        write(table(self.pen) if self.is_table else map(lines.as_line, objects()))

    def hint(self, *hints: Hint) -> None:
        """Print commands that can be pasted, each with what it is good for."""
        if self.is_table and hints:
            say(["", *hint_lines(self.caller, hints)])

    def fresh(self, window: Window) -> None:
        """Print how fresh the answer is."""
        if self.is_table and window.newest_at is not None:
            say([f"Newest record {age(window.now - window.newest_at)} ago."])


def screen(chosen: str | None, *, utc: bool = False, store: Path | None = None) -> Screen:
    """The screen of this process: a table where it is asked for, or where stdout is a terminal."""
    is_table = chosen != "jsonl" if chosen else sys.stdout.isatty()
    return Screen(is_table, Pen(has_colour(), UTC if utc else None), caller(store))


def has_colour() -> bool:
    """Whether stdout is a terminal whose owner did not ask for no colour."""
    return sys.stdout.isatty() and not settings.setting("NO_COLOR") and os.environ.get("TERM") != "dumb"


def caller(store: Path | None = None) -> Caller:
    """How this process was started, and the store that hints have to name: one that is not the default."""
    return Caller(this_program(), store if store is not None and store != _usual_store() else None)


def _usual_store() -> Path | None:
    """The store that a command reads when none is named; None where there is no such place."""
    with contextlib.suppress(InputError):
        return settings.store_path()
    return None


def write(text: Iterable[str]) -> None:
    """Lines for stdout, as they come: there may be more of them than the memory holds."""
    sys.stdout.writelines(f"{line}\n" for line in text)
    sys.stdout.flush()


def say(text: Sequence[str]) -> None:
    """Lines for stderr."""
    sys.stderr.write("".join(f"{line}\n" for line in text))
    sys.stderr.flush()


@contextlib.contextmanager
def progress() -> Iterator[Callable[[int, int | None], None] | None]:
    """How far a long read is, in bytes done and in all; on a terminal's stderr, and taken away at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        yield _report
    finally:
        sys.stderr.write("\r\x1b[K")


def _report(done: int, total: int | None) -> None:
    share = f" of {total / 1e6:.1f} MB, {100 * done // total} %" if total else " MB"
    sys.stderr.write(f"\r{done / 1e6:.1f}{share}\x1b[K")
    sys.stderr.flush()
