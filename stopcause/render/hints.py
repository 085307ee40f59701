"""Commands that can be pasted: the program as it was started, the store in use, at most three a screen.

A line that would be wider than the screen goes on behind a backslash, which a shell takes back.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stopcause.render.pen import WIDTH, cells

MOST = 3
_MODULE = "__main__.py"


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


def shown_path(path: Path, here: Path, home: Path | None = None) -> str:
    """A path as short as a shell understands it: from here, from home, else whole. Quoted where it has to be."""
    for base, head in ((here, ""), (home, "~/")):
        if base is not None and path.is_absolute() and path.is_relative_to(base):
            rest = shlex.quote(str(path.relative_to(base)))
            return f"{head}{rest}"
    return shlex.quote(str(path))


def program_name(argv0: str, python: str, here: Path, found: str | None) -> str:
    """The program as the reader started it, so that a hint works when it is pasted where they are.

    Args:
        argv0: `sys.argv[0]`.
        python: `sys.executable`, for `python -m stopcause`.
        here: The working folder.
        found: What the shell finds under the program's bare name, if anything.
    """
    if Path(argv0).name == _MODULE:
        return f"{shown_path(Path(python), here)} -m {Path(argv0).parent.name}"
    path = Path(argv0)
    if not path.is_absolute():
        return shlex.quote(argv0)
    if path.is_relative_to(here):  # `make demo` finds it on a path that the reader's shell may not have
        return shown_path(path, here)
    return path.name if found == argv0 else shlex.quote(argv0)
