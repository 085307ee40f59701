"""`stopcause doctor` and `stopcause sql`: is the store well, and any question that no report answers."""
# ruff: noqa: PLC0415 - help takes 0.1 s; duckdb would add 0.3 s to it

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause import cli_shared as shared
from stopcause import settings
from stopcause.errors import InputError
from stopcause.render.caller import Hint
from stopcause.render.door import Command, complain
from stopcause.render.options import Output, SheetFormat, StorePath, Utc

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.render.screen import Screen
    from stopcause.render.sql import Sheet

_MOST_ROWS = 1_000_000
_LONGEST_WAIT = 24 * 3600  # seconds


def doctor(
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the first record, and say what it is.")] = False,
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="How long to wait: 30s, 10m.")] = "10m",
    store: StorePath = None,
    output: Output = None,
    utc: Utc = False,
) -> None:
    """Say whether the store is well, and what to do where it is not.

    Looks at the store, its journal, the spool, disk, versions, gaps and clocks, and changes nothing. Exit code 1 where
    something is bad, or where no record came in time.
    """
    path, spool, seconds = settings.store_path(store), settings.spool_dir(), _seconds(timeout, _LONGEST_WAIT)
    screen = shared.screen_for(output, store, utc=utc)
    if wait:
        _wait(screen, path, spool, seconds, timeout)
        return
    from stopcause.pipeline.doctor import visit
    from stopcause.render.doctor import visit_objects, visit_screen

    found = visit(path, spool, settings.policy_path(path), shared.clock())
    screen.show(lambda pen: visit_screen(found, screen.caller, pen), lambda: visit_objects(found, screen.caller))
    shared.exit_unless(found.is_well)


def _wait(screen: Screen, path: Path, spool: Path, seconds: float, said: str) -> None:
    from stopcause.pipeline.doctor_wait import wait_for_record
    from stopcause.render.doctor import arrived_object, arrived_screen
    from stopcause.render.pen import pasted

    if screen.is_table:
        complain(f"Waiting for a record in {path} or {spool}, at most {said}. Ctrl-C ends it.")
    found = wait_for_record(path, spool, seconds)
    if found is None:
        complain(f"No record came in {said}. See what the store says: `doctor`; or send one: `ingest FILE`.")
        raise typer.Exit(1)
    screen.show(lambda pen: arrived_screen(found, shared.clock(), pen), lambda: [arrived_object(found)])
    if found.where == "spool":
        screen.hint(Hint(("runs",), "takes it in, and says why it stopped"), Hint(("doctor",), "see that all is well"))
    else:
        explain = [Hint(("explain",), "what became of it", pasted(found.run_id))] if found.run_id else []
        screen.hint(*explain, Hint(("runs", "--attention"), "what needs somebody"))


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY|-|.schema|.examples", hidden=True)],
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="When to stop it: 10s; at most 5m.")
    ] = "10s",
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=_MOST_ROWS, help="Rows to show at most.")
    ] = 1000,
    store: StorePath = None,
    output: Annotated[
        SheetFormat | None, typer.Option("--format", "-o", help="If not a table on a terminal, jsonl in a pipe.")
    ] = None,
) -> None:
    """Ask the store anything, in SQL that reads.

    One SELECT, EXPLAIN, DESCRIBE, SHOW or SUMMARIZE; - reads it from standard input. It runs in a process of its own,
    without files or network, and is stopped when its time is over. .schema shows tables and columns, .examples queries.
    """
    from stopcause.render.sql import Sheet, sheet_note
    from stopcause.store import sandbox

    seconds = _seconds(timeout, sandbox.MOST_SECONDS)
    screen = shared.screen_for("jsonl" if output is SheetFormat.CSV else output, store)
    if query.startswith("."):
        _show_words(query, screen)
        return
    text = _standard_text() if query == "-" else query
    with shared.reading(store, screen) as (keeper, _now):
        if keeper.store.path is None:
            raise InputError("a store in memory is gone when it is closed; name a file: --store PATH")
        keeper.store.close_engine()  # and the lock stays: nobody writes while the query reads
        sheet = Sheet(*sandbox.ask(keeper.store.path, text, sandbox.Limits(seconds, limit)))
    _show_sheet(sheet, screen, output)
    if (screen.is_table or sheet.more) and (note := sheet_note(sheet, limit)):
        complain(note)
    shared.exit_unless(not sheet.more or len(sheet.rows) >= limit)  # cut off by its size, not by what was asked for


def _show_sheet(sheet: Sheet, screen: Screen, output: SheetFormat | None) -> None:
    from stopcause.render import sql as sheets
    from stopcause.render.screen import write

    if output is SheetFormat.CSV:
        write(sheets.sheet_csv(sheet))
    elif screen.is_table:
        write(sheets.sheet_screen(sheet, shutil.get_terminal_size().columns, screen.pen))
    else:
        write(sheets.sheet_json(sheet))


def _show_words(name: str, screen: Screen) -> None:
    """The words that are no SQL."""
    from stopcause.render import sql as sheets
    from stopcause.store import meanings

    if name == ".schema":
        columns = [sheets.Told(*column) for column in meanings.columns()]
        tables = meanings.TABLES.items()
        screen.show(
            lambda pen: sheets.schema_screen(tables, columns, pen), lambda: (each._asdict() for each in columns)
        )
    elif name == ".examples":
        found = meanings.examples()
        screen.show(lambda pen: sheets.examples_screen(found, pen), lambda: (each._asdict() for each in found))
    else:
        raise typer.BadParameter(f"{name!r} is neither SQL nor .schema nor .examples", param_hint="QUERY")


def _standard_text() -> str:
    try:
        return shared.standard_input("sql").read().decode()
    except UnicodeDecodeError:
        raise InputError("what is piped in is no UTF-8 text; write the SQL in UTF-8") from None


def _seconds(text: str, most: int) -> float:
    from stopcause.classifier.policy import parse_duration

    try:
        seconds = parse_duration(text).total_seconds()
    except ValueError:
        raise typer.BadParameter("write 10s or 2m", param_hint="--timeout") from None
    if not 0 < seconds <= most:
        raise typer.BadParameter(f"give more than 0s and at most {most // 60}m", param_hint="--timeout")
    return seconds


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    for command in (doctor, sql):
        program.command(cls=Command, rich_help_panel=shared.KEPT)(command)
