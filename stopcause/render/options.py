"""The options that several commands share, and how their values are read.

What is no verdict, no time, is told before anything is read. Light on purpose: help reads this.
"""
# ruff: noqa: PLC0415 - as in `cli`: help does not wait for pydantic

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause.render import completion

if TYPE_CHECKING:
    from stopcause.classifier.verdict import VerdictName


class Format(StrEnum):
    """How to print a list."""

    TABLE = "table"
    JSONL = "jsonl"


class NoteFormat(StrEnum):
    """How to print one run."""

    TABLE = "table"
    JSONL = "jsonl"
    MD = "md"


class SheetFormat(StrEnum):
    """How to print rows of any shape."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


def _checked(context: typer.Context, parameter: typer.CallbackParam, text: str | None) -> str | None:
    """A list of verdicts that are none is told before anything is read."""
    del context
    verdicts_of(text, parameter.opts[0])
    return text


StorePath = Annotated[
    Path | None, typer.Option("--store", metavar="PATH", help="The store; else STOPCAUSE_STORE, else yours.")
]
PolicyPath = Annotated[
    Path | None, typer.Option("--policy", metavar="PATH", help="A policy file, or a folder of them.")
]
Output = Annotated[Format | None, typer.Option("--format", "-o", help="If not a table on a terminal, jsonl in a pipe.")]
NoteOutput = Annotated[NoteFormat | None, typer.Option("--format", "-o", help="md is a note for an incident channel.")]
Utc = Annotated[bool, typer.Option("--utc", help="Times in UTC instead of the local zone.")]
_VERDICT_LIST = {"metavar": "VERDICT,...", "callback": _checked, "autocompletion": completion.verdicts}
Verdicts = Annotated[str | None, typer.Option("--verdict", help="Only runs with these.", **_VERDICT_LIST)]
FailOn = Annotated[str | None, typer.Option("--fail-on", help="Exit 1 if a run has one of these.", **_VERDICT_LIST)]
Now = Annotated[str | None, typer.Option("--now", metavar="TIME", help="Judge as of this time: 2026-11-28T08:00:00Z.")]


def time_of(text: str | None) -> datetime | None:
    """The time that `--now` names."""
    from stopcause.receipts.model import parse_time

    try:
        return parse_time(text) if text else None
    except ValueError:
        raise typer.BadParameter("give a time with offset, as 2026-11-28T08:00:00Z", param_hint="--now") from None


def verdicts_of(text: str | None, option: str = "") -> tuple[VerdictName | None, ...]:
    """A list of verdicts; RUNNING is a run that has none yet."""
    from stopcause.classifier.verdict import VerdictName

    known: dict[str, VerdictName | None] = {**{str(name): name for name in VerdictName}, "RUNNING": None}
    words = [word.strip().upper() for word in text.split(",")] if text else []
    if unknown := [word for word in words if word not in known]:
        raise typer.BadParameter(f"no verdict is called {unknown[0]!r}; one of {', '.join(known)}", param_hint=option)
    return tuple(known[word] for word in words)
