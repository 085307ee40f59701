"""The door of every command: help that teaches, errors in one line, quiet ends. Built on typer's own classes.

typer's click is private to it, so its types have no name here.
"""
# ruff: noqa: ANN401

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from stopcause.errors import PolicyError, StopcauseError
from stopcause.render.caller import this_program
from stopcause.render.examples import EXAMPLES

# The panels of the help, in their order: typer puts groups of commands behind all single ones.
PANELS = (
    "Start here",
    "Your runs",
    "What you say",
    "Files, nothing is kept",
    "The store",
    "Reference",
)
_WIDTH = 80
_WHOLE = 200  # a narrow terminal wraps what a command does; nothing is cut
_INTERRUPTED, _PIPE_CLOSED = 130, 141  # what a shell expects of a program that Ctrl-C or a closed pipe ended


def open_streams() -> None:
    """Makes output safe: a closed stream goes nowhere, and a letter that the terminal does not have is no error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with `>&-`
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


class Command(TyperCommand):
    """A command whose help ends with examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples of this command."""
        _write_examples(ctx, formatter)


class Group(TyperGroup):
    """Commands in groups, each on one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's name for it
        """A section for each `rich_help_panel`, in the order of `PANELS`; others behind, as they come."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None)
            panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append(
                (name, command.get_short_help_str(_WHOLE))
            )
        for panel, rows in sorted(panels.items(), key=lambda panel: _place(panel[0])):
            with formatter.section(panel):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples of this group."""
        _write_examples(ctx, formatter)


def _place(panel: str) -> int:
    return PANELS.index(panel) if panel in PANELS else len(PANELS)


def _write_examples(ctx: Any, formatter: Any) -> None:
    name = " ".join(_path(ctx))
    program = this_program()
    rows = [(f"  {program} {command}", about) for command, about in EXAMPLES.get(name, ())]
    column = max((len(command) for command, _about in rows), default=0)
    beside = all(column + 2 + len(about) <= _WIDTH for _command, about in rows)
    if rows:
        formatter.write_paragraph()
        formatter.write("Examples:\n")
    for command, about in rows:
        formatter.write(f"{command:<{column}}  {about}\n" if beside else f"{command}\n      {about}\n")


def _path(ctx: Any) -> list[str]:
    """The names of the commands on the way here, without the program's."""
    return [*_path(ctx.parent), ctx.info_name] if ctx.parent else []


class Door(Group):
    """Errors of ours become one line; Ctrl-C and a closed pipe end quietly."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """The same for help and the version, which are printed before any command is known."""
        try:
            return super().main(*args, **extra)
        except OSError as error:
            sys.exit(_failed(error))

    def invoke(self, ctx: Any) -> Any:
        """Runs a command, and turns what went wrong into an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except StopcauseError as error:
            _complain(error)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            raise _interrupted(ctx) from None
        except ValueError as error:
            if "KeyboardInterrupt" not in str(error):  # pydantic wraps a Ctrl-C that meets it while it writes
                raise
            raise _interrupted(ctx) from None
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(_PIPE_CLOSED) from None
        except OSError as error:
            raise typer.Exit(_failed(error)) from None
        return result


def _interrupted(ctx: Any) -> typer.Exit:
    if ctx.invoked_subcommand == "ingest":
        complain("stopcause: interrupted; what was taken in so far is kept. Run it again: nothing is counted twice.")
    return typer.Exit(_INTERRUPTED)


def _failed(error: OSError) -> int:
    """Says in the system's own word what it refused: a disk that is full, a folder that may not be written."""
    _drop_output()
    _complain(StopcauseError(f"{error.filename or 'output'}: {error.strerror or error}"))
    return StopcauseError.exit_code


def _drop_output() -> None:
    """Lets go of what could not be written, or the interpreter complains at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: StopcauseError) -> None:
    problems = error.problems if isinstance(error, PolicyError) else ()
    for message in [f"{each.place}: {each.message}" for each in problems] or [str(error)]:
        complain(f"stopcause: {message}")


def complain(text: str) -> None:
    """A line for stderr; a terminal gets it broken between words, where it is longer than that is wide."""
    lines = [text]
    if sys.stderr.isatty():
        width = max(shutil.get_terminal_size().columns, _WIDTH // 2)
        lines = textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    for line in lines:
        typer.echo(line, err=True)
