"""The few lines that add a hook to an application: which frameworks there are, and how their lines are shown.

A framework is a file in docs/connect, and nothing else: its name is the framework's, its first line is a comment with
the command that installs the hook, the rest runs as it stands. A JavaScript one writes to `RECORDS`, a Python one into
the spool, which reading commands take in. Tests run the same files.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from stopcause.errors import NotFoundError
from stopcause.receipts.hooks import SPECS
from stopcause.resources import data_folder

RECORDS: Final = "receipts.ndjson"  # what the lines of a JavaScript framework write to


class Lines(NamedTuple):
    """What is printed for a framework.

    Attributes:
        install: The command that installs its hook.
        code: The whole file, for a pipe.
        shown: The lines without the first, for a terminal, which says it in words.
        is_spooled: Whether its records go into the spool, rather than to `RECORDS`.
        page: Where it says what the hook sees, what a wait is, and what is not seen.
    """

    install: str
    code: tuple[str, ...]
    shown: tuple[str, ...]
    is_spooled: bool
    page: str


def frameworks() -> list[str]:
    """Their names, sorted."""
    return sorted(_files())


def lines_of(framework: str) -> Lines:
    """The lines of a framework.

    Raises:
        NotFoundError: There is no such framework; the message names those that there are.
    """
    files = _files()
    found = {_plain(name): path for name, path in files.items()}.get(_plain(framework))
    if found is None:
        near = difflib.get_close_matches(framework.lower(), list(files), n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise NotFoundError(f"No hook for {framework!r}. {hint}There is one for: {', '.join(frameworks())}.")
    first, *rest = found.read_text("utf-8").splitlines()
    is_python = found.suffix == ".py"
    is_hook = found.stem.replace("-", "_") in {spec.name for spec in SPECS}
    page = f"docs/frameworks/{found.stem}.md" if is_hook else f"docs/{found.stem}.md"
    return Lines(first.lstrip("/# "), (first, *rest), tuple(rest), is_python, page)


def connect_screen(lines: Lines) -> Iterator[str]:
    """What a terminal shows: where to begin, the code, and where its records go."""
    yield from (f"First: {lines.install}", "", *lines.shown, "", _where(lines))
    yield f"Limits, waits, and what it cannot see: {lines.page}"


def _where(lines: Lines) -> str:
    if lines.is_spooled:
        return "Its records go to the spool; every command that reads takes them in."
    return f"Its records go to {RECORDS}, one a line."


def _files() -> dict[str, Path]:
    return {path.stem: path for path in data_folder("docs/connect").iterdir() if path.suffix in (".js", ".py")}


def _plain(name: str) -> str:
    """As people write it: `AG-UI`, `agui`, `pydantic_ai`."""
    return name.lower().replace("_", "").replace("-", "")
