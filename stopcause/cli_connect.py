"""`stopcause connect`: the few lines that add a hook to an application."""
# ruff: noqa: PLC0415 - help takes 0.1 s; what a command needs is imported inside it

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from stopcause import cli_shared as shared
from stopcause.render import completion
from stopcause.render.caller import Hint
from stopcause.render.door import Command


def connect(
    framework: Annotated[
        str | None, typer.Argument(metavar="FRAMEWORK", hidden=True, autocompletion=completion.frameworks)
    ] = None,
) -> None:
    """Print the few lines that make your agent leave receipts.

    Without a FRAMEWORK, list those that there are. In a pipe it is the code alone.
    """
    from stopcause.render import connect as forms
    from stopcause.render.screen import write

    screen = shared.screen_for(None)
    if framework is None:
        write(forms.frameworks())
        return
    lines = forms.lines_of(framework)
    write(forms.connect_screen(lines) if screen.is_table else lines.code)
    screen.hint(*(_spooled() if lines.is_spooled else _written(Path(forms.RECORDS))))


def _spooled() -> Iterator[Hint]:
    yield Hint(("runs",), "what ran, and why each of them stopped")
    yield Hint(("runs", "--attention"), "what needs somebody")
    yield Hint(("waiting",), "what waits for an answer")


def _written(records: Path) -> Iterator[Hint]:
    yield Hint(("explain",), "why the first run in it stopped", records)
    yield Hint(("classify",), "a verdict on each", records)
    yield Hint(("ingest",), "keep them, and ask about them", records)


def add_to(program: typer.Typer) -> None:
    """Registers this command."""
    program.command(cls=Command, rich_help_panel=shared.START)(connect)
