"""What `doctor` found: a line for each check, what to do where one is not well, and a word on the whole.

The checks are made in `pipeline.doctor`; the values that it fills stand here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.render.caller import Hint, path_words
from stopcause.render.hints import Caller
from stopcause.render.pen import WIDTH, Pen, age, count, utc_text

_STATE, _NAME = 6, 11
_COLOURS = {"ok": "32", "look": "33", "bad": "31"}


class State(StrEnum):
    """How a check went: `look` is for a person to decide, `bad` loses something or stops something."""

    OK = "ok"
    LOOK = "look"
    BAD = "bad"


class Check(NamedTuple):
    """One check. `do` is a command of ours, or one of the shell's as it is pasted; none where all is well."""

    name: str
    state: State
    said: str
    do: Hint | str | None = None


class Visit(NamedTuple):
    """All checks of one call, and what they looked at."""

    store: Path
    spool: Path
    now: datetime
    checks: tuple[Check, ...]

    @property
    def is_well(self) -> bool:
        """Whether nothing is bad."""
        return all(check.state is not State.BAD for check in self.checks)


class Arrived(NamedTuple):
    """A record that somebody wrote. `where`: journal, or spool while no command took it in."""

    where: str
    folder: Path
    kind: str
    run_id: str | None
    agent: str | None
    adapter: str | None
    at: datetime


def visit_screen(visit: Visit, caller: Caller, pen: Pen) -> list[str]:
    """What was looked at, each check, and the verdict on the store."""
    looked = f"Looked at {path_words(visit.store)}, its journal, and the spool at {path_words(visit.spool)}."
    head = textwrap.wrap(looked, WIDTH, break_long_words=False, break_on_hyphens=False)
    lines = [*head, f"As of {pen.time(visit.now)}", ""]
    for check in visit.checks:
        lines += _check_lines(check, caller, pen)
    return [*lines, "", _verdict(visit.checks)]


def visit_objects(visit: Visit, caller: Caller) -> Iterator[dict[str, Any]]:
    """The same for a program."""
    for check in visit.checks:
        yield {"check": check.name, "state": check.state, "said": check.said, "do": _command(check, caller)}


def _check_lines(check: Check, caller: Caller, pen: Pen) -> list[str]:
    state = f"{check.state:<{_STATE}}"
    if pen.colour:
        state = f"\x1b[{_COLOURS[check.state]}m{check.state}\x1b[0m{' ' * (_STATE - len(check.state))}"
    indent = " " * (_STATE + _NAME)
    first, *others = textwrap.wrap(check.said, WIDTH - len(indent), break_on_hyphens=False) or [""]
    lines = [f"{state}{check.name:<{_NAME}}{first}", *(indent + line for line in others)]
    command = _command(check, caller)
    return [*lines, f"{indent}{command}"] if command else lines


def _command(check: Check, caller: Caller) -> str | None:
    return caller.command(check.do) if isinstance(check.do, Hint) else check.do


def _verdict(checks: Sequence[Check]) -> str:
    bad = [check.name for check in checks if check.state is State.BAD]
    look = [check.name for check in checks if check.state is State.LOOK]
    said = [f"Bad: {', '.join(bad)}."] if bad else []
    said += [f"{'Also look' if bad else 'Nothing is bad. Look'} at {', '.join(look)}."] if look else []
    return " ".join(said) or f"The store is well: {count(len(checks), 'check')}, nothing to do."


def arrived_screen(found: Arrived, now: datetime, pen: Pen) -> list[str]:
    """The first record: what it is, of whom, and where it is."""
    who = found.agent or "an agent without a name"
    lines = [f"A record is there: {found.kind} of {pen.bold(who)}, {age(now - found.at)} old."]
    lines += [f"  run      {found.run_id}"] if found.run_id else []
    lines += [f"  adapter  {found.adapter or 'not said'}", f"  at       {pen.time(found.at, seconds=True)}"]
    if found.where == "spool":
        lines.append(f"  in       the spool {path_words(found.folder)}; no command took it in yet")
    return lines


def arrived_object(found: Arrived) -> dict[str, Any]:
    """The same for a program."""
    return {**found._asdict(), "folder": str(found.folder), "at": utc_text(found.at)}
