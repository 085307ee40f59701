"""`stopcause report`: named questions about what is stored."""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause import cli_shared as shared
from stopcause.errors import ReportError
from stopcause.render import completion
from stopcause.render.caller import Hint
from stopcause.render.door import Command, complain
from stopcause.render.options import SheetFormat, StorePath, Utc

if TYPE_CHECKING:  # what commands import for themselves
    from stopcause.render.report import Card, Found
    from stopcause.render.screen import Screen

_SHOWN = 40  # rows, on a terminal

Sheet = Annotated[
    SheetFormat | None, typer.Option("--format", "-o", help="If not a table on a terminal, jsonl in a pipe.")
]


def report(  # noqa: PLR0913 - one argument an option
    *,
    name: Annotated[str | None, typer.Argument(metavar="NAME", hidden=True, autocompletion=completion.reports)] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="AGE", help="How far back: 30m, 24h, 7d, all.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent's.")] = None,
    environment: Annotated[str | None, typer.Option("--environment", metavar="NAME", help="Only of this one.")] = None,
    limit: Annotated[str | None, typer.Option("--limit", metavar="ROWS", help="At most so many rows.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="What only this report takes.")
    ] = None,
    about: Annotated[bool, typer.Option("--about", help="What it takes, and what its columns mean.")] = False,
    store: StorePath = None,
    output: Sheet = None,
    utc: Utc = False,
) -> None:
    """Answer a named question; without a name, list the questions.

    Names of reports and columns stay as they are: scripts may rely on them.
    """
    from stopcause.pipeline import report as reports

    screen = shared.screen_for("jsonl" if output is SheetFormat.CSV else output, store, utc=utc)
    if name is None:
        _show_list(screen, [reports.told(card) for card in reports.cards()])
        return
    card = reports.card_of(name)
    if about:
        _show_about(screen, reports.told(card))
        return
    named = {"since": since, "agent": agent, "environment": environment, "limit": limit}
    asked = _joined({key: value for key, value in named.items() if value is not None}, parameter or ())
    if utc and card.parameter("zone"):
        asked.setdefault("zone", "UTC")
    reports.understood(card, asked)  # before anything is read
    with shared.reading(store, screen) as (keeper, now):
        if card.parameter("grace"):
            asked.setdefault("grace", reports.spelled(keeper.policy.defaults.unrouted_grace))
        found = reports.found(reports.run_report(keeper.store, name, asked, now))
    _show(screen, found, as_csv=output is SheetFormat.CSV, most=None if "limit" in asked else _SHOWN)


def _joined(asked: dict[str, str], pairs: Sequence[str]) -> dict[str, str]:
    """The options, and what `-p` adds to them."""
    joined = dict(asked)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ReportError("-p takes a name, an equals sign and a value, as -p zone=Europe/Berlin.")
        if name in joined:
            raise ReportError(f"{name} is given twice." if name in asked else "One parameter of -p is given twice.")
        joined[name] = value
    return joined


def _show(screen: Screen, found: Found, *, as_csv: bool, most: int | None) -> None:
    """Print rows; what is left out, and what to do where there are none, is said in every form."""
    from stopcause.render import report as forms
    from stopcause.render.screen import write

    if as_csv:
        write(forms.report_csv(found))
    else:
        screen.show(lambda pen: forms.report_screen(found, pen, most=most), lambda: forms.report_objects(found))
    if found.more:
        complain(forms.more_note(found))
    if not found.rows and not screen.is_table:
        complain(found.card.empty)
    screen.hint(_about(found.card.name), Hint(("report",), "every report"))
    screen.fresh(found.window)


def _show_list(screen: Screen, cards: Sequence[Card]) -> None:
    from stopcause.render import report as forms

    screen.show(lambda _pen: forms.list_screen(cards), lambda: forms.card_objects(cards))
    screen.hint(
        Hint(("report",), "what needs somebody", "attention"),
        Hint(("report", "--since", "7d", "-o", "csv"), "for a spreadsheet", "costs"),
        _about("verdicts-by-day"),
    )


def _show_about(screen: Screen, card: Card) -> None:
    from stopcause.render import report as forms

    screen.show(lambda _pen: forms.about_screen(card), lambda: forms.card_objects([card]))


def _about(name: str) -> Hint:
    return Hint(("report", "--about"), "what it takes, what its columns mean", name)


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    program.command(cls=Command, rich_help_panel=shared.STORED)(report)
