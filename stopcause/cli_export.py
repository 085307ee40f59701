"""`stopcause export`: the store for other tools, as Parquet, as a snapshot."""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from stopcause import cli_shared as shared
from stopcause.render.caller import Hint
from stopcause.render.door import Command, Group
from stopcause.render.options import Output, StorePath

export_app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Hand the store to other tools: Parquet, a DuckDB file, OTLP.",
)


@export_app.command("snapshot", cls=Command)
def snapshot(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Write a DuckDB file that other tools open, also older ones.

    It has the verdicts and the view `runs`; no lines, no resume tokens, no texts of policies. FILE is replaced in one
    step: who has it open keeps what they have.
    """
    from stopcause import __version__
    from stopcause.classifier.verdict import CLASSIFIER_VERSION
    from stopcause.render import keep
    from stopcause.store.snapshot import check_target, write_snapshot

    check_target(file)
    screen = shared.screen_for(output, store)
    with shared.reading(store, screen) as (keeper, now):
        keeper.store.close_engine()
        made = write_snapshot(_path_of(keeper.store.path), file, now, (__version__, CLASSIFIER_VERSION))
    copied = keep.Copied(file, made.bytes, made.records, made.runs, made.newest_at)
    screen.show(lambda _pen: keep.copied_screen("Snapshot in", copied, now), lambda: [keep.copied_object(copied)])


@export_app.command("parquet", cls=Command)
def parquet(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", hidden=True)],
    *,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DAY", help="Runs that opened from this UTC day on: DATE or 7d.")
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="DAY", help="Runs that opened before it; 0d is today.")
    ] = None,
    resume_tokens: Annotated[
        bool, typer.Option("--resume-tokens", help="Keep resume tokens in the lines, for another store.")
    ] = False,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Write an archive by day: every record with its line, and what holds of each attempt.

    FOLDER must be new. `ingest FOLDER` takes it in again, whole or not at all.
    """
    from stopcause import __version__
    from stopcause.classifier.verdict import CLASSIFIER_VERSION
    from stopcause.render import keep
    from stopcause.store import archive

    archive.check_target(folder)
    screen = shared.screen_for(output, store)
    span = archive.Span(_day(since), _day(before))
    with shared.reading(store, screen) as (keeper, now):
        about = (now, __version__, CLASSIFIER_VERSION)
        made = archive.write_archive(keeper.store, folder, span, about, tokens=resume_tokens)
    shown = keep.Archived(
        folder,
        sum(entry.bytes for entry in made.files),
        len(made.files),
        made.days,
        made.records.rows,
        made.verdicts.rows,
        made.records.digest,
        made.verdicts.digest,
        made.resume_tokens,
        made.tokens_taken_out,
    )
    screen.show(lambda _pen: keep.archived_screen(shown), lambda: [keep.archived_object(shown)])
    screen.hint(Hint(("ingest",), "takes it in again", folder))


def _day(said: str | None) -> datetime | None:
    from stopcause.pipeline.retention import first_day

    return None if said is None else first_day(said, shared.clock())


def _path_of(path: Path | None) -> Path:
    """The file of a store that commands opened; it always has one."""
    if path is None:
        raise TypeError("a store in memory")
    return path


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    program.add_typer(export_app, name="export", rich_help_panel=shared.KEPT)
