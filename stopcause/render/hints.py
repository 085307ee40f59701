"""Commands that can be pasted: the program as it was started, the store in use, at most three a screen.

A hint is a list of arguments. Here, and nowhere else, they are quoted and joined. A line that would be wider than the
screen goes on behind a backslash, which a shell takes back.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stopcause.render.caller import Argument, Hint, path_words
from stopcause.render.pen import WIDTH, cells

MOST = 3


class Caller(NamedTuple):
    """How the reader calls stopcause: the program, and the store where it is not the default one."""

    program: str
    store: Path | None = None

    def command(self, hint: Hint) -> str:
        """The hint as it can be pasted."""
        return " ".join(self.parts(hint))

    def parts(self, hint: Hint) -> list[str]:
        """The same in parts that stay on one line each: the command and what it is about, then each option."""
        of = [] if hint.of is None else [_quoted(hint.of)]
        if of and of[0].lstrip("'").startswith("-"):  # not an option: behind all that are
            return [*_parts(self.program, [*hint.words, *self._named_store(hint)]), f"-- {of[0]}"]
        first, *others = hint.words
        return _parts(" ".join([self.program, _quoted(first), *of]), [*others, *self._named_store(hint)])

    def _named_store(self, hint: Hint) -> list[Argument]:
        return ["--store", self.store] if self.store is not None and hint.stored else []


def _parts(head: str, words: Sequence[Argument]) -> list[str]:
    parts = [head]
    for word in map(_quoted, words):
        if word.startswith("--"):
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    return parts


def _quoted(argument: Argument) -> str:
    """An argument as a shell takes it back: a path as short as it stays true, anything else as it is."""
    return path_words(argument) if isinstance(argument, Path) else shlex.quote(argument)


def hint_lines(caller: Caller, hints: Sequence[Hint]) -> list[str]:
    """The last lines of a screen; what a command is for stands beside it where there is room."""
    commands = [caller.command(hint) for hint in hints[:MOST]]
    column = max((cells(command) for command in commands), default=0)
    beside = [
        f"  {command}{' ' * (column - cells(command))}  {hint.about}".rstrip()
        for command, hint in zip(commands, hints, strict=False)
    ]
    if all(cells(line) <= WIDTH for line in beside):
        return beside
    return [line for hint in hints[:MOST] for line in _folded(caller.parts(hint))]


def _folded(parts: Sequence[str]) -> list[str]:
    """A part goes onto a line of its own where there is no room for it, and for the backslash behind it."""
    lines = [f"  {parts[0]}"]
    for number, part in enumerate(parts[1:], 2):
        room = WIDTH if number == len(parts) else WIDTH - 2
        if cells(lines[-1]) + 1 + cells(part) <= room:
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"    {part}")
    return lines
