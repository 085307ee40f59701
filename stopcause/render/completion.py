"""What the Tab key offers: names of verdicts, reports, frameworks and runs. Fast; neither engine nor lock is touched.

A run's name comes from the end of the journal, which reading leaves alone: the newest runs are those that are asked
for. Groups are not offered: only the store knows them. Shells call these through typer.
"""
# ruff: noqa: PLC0415 - as in `options`: help does not wait

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import typer

from stopcause import settings
from stopcause.errors import InputError

_REPORTS = Path(__file__).parents[1] / "store" / "reports"
_TAIL = 64 * 1024  # bytes of the journal's end
_MOST = 20
_RUN = re.compile(rb'"run_id":"([^"\\]+)"')


def verdicts(incomplete: str) -> list[str]:
    """A list of verdicts with one more name at its end: `STUCK,FA` gives `STUCK,FAILED`; small letters stay small."""
    from stopcause.classifier.verdict import VerdictName

    before, comma, begun = incomplete.rpartition(",")
    named = {name.strip().upper() for name in before.split(",")}
    names = [str(name) for name in (*VerdictName, "RUNNING") if name not in named]
    fitting = [name for name in names if name.startswith(begun.upper())]
    return [f"{before}{comma}{name.lower() if begun.islower() else name}" for name in fitting]


def reports(incomplete: str) -> list[str]:
    """The names of reports."""
    return sorted(path.stem for path in _REPORTS.glob("*.sql") if path.stem.startswith(incomplete))


def frameworks(incomplete: str) -> list[str]:
    """The names of frameworks that there is a hook for."""
    from stopcause.render import connect

    return [name for name in connect.frameworks() if name.startswith(incomplete)]


def runs(context: typer.Context, incomplete: str) -> list[str]:
    """The newest runs of the store that the command line names, the newest first."""
    try:
        tail = _journal_tail(settings.store_path(context.params.get("store")))
    except (InputError, OSError):
        return []  # a line that cannot be completed is no place for an error
    newest = dict.fromkeys(found.decode(errors="ignore") for found in reversed(_RUN.findall(tail)))
    return [name for name in newest if name.startswith(incomplete)][:_MOST]


def _journal_tail(store: Path) -> bytes:
    """The end of the newest segment of the journal beside a store."""
    from stopcause.receipts import segments

    folder = store.with_name(store.name + ".journal")
    if not folder.is_dir() or not (numbers := segments.numbers(folder)):
        return b""
    with segments.path_of(folder, numbers[-1]).open("rb") as file:
        with contextlib.suppress(OSError):  # it is shorter than that
            file.seek(-_TAIL, os.SEEK_END)
        return file.read(_TAIL)
