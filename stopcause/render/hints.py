"""Commands that can be pasted: the program as it was started, the store in use, at most three a screen.

A line that would be wider than the screen goes on behind a backslash, which a shell takes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stopcause.render.pen import WIDTH, cells

MOST = 3


class Hint(NamedTuple):
    """A command without the program, and what it is good for. `stored`: it reads the store in use."""

    command: str
    about: str = ""
    stored: bool = True


class Caller(NamedTuple):
    """How the reader calls stopcause: the program, and what names the store where it is not the default one."""

    program: str
    store: str | None = None

    def command(self, hint: Hint) -> str:
        """The hint as it can be pasted."""
        store = f" --store {self.store}" if self.store and hint.stored else ""
        return f"{self.program} {hint.command}{store}"


def hint_lines(caller: Caller, hints: Sequence[Hint]) -> list[str]:
    """The last lines of a screen; what a command is for stands beside it where there is room."""
    commands = [caller.command(hint) for hint in hints[:MOST]]
    column = max((len(command) for command in commands), default=0)
    beside = [f"  {command:<{column}}  {hint.about}".rstrip() for command, hint in zip(commands, hints, strict=False)]
    if all(cells(line) <= WIDTH for line in beside):
        return beside
    return [line for command in commands for line in _folded(command)]


def _folded(command: str) -> list[str]:
    head, option, store = command.partition(" --store ")
    if not option or len(command) + 2 <= WIDTH:
        return [f"  {command}"]
    return [f"  {head} \\", f"    {option.strip()} {store}"]
