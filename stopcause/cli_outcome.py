"""`stopcause outcome`: a person looked at the destination, and says what is there."""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic and duckdb would add 0.3 s to it

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stopcause import cli_shared as shared
from stopcause.receipts.vocabulary import Polarity
from stopcause.render.caller import Hint
from stopcause.render.door import Command, Group, complain
from stopcause.render.options import Output, StorePath

_USER = "user:"

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Say what you saw at the destination of a run.",
)


def _identifier(parameter: typer.CallbackParam, text: str | None) -> str | None:
    """A word that a record can hold; told before anything is read, and never repeated: it may be more than a word."""
    from stopcause.receipts import identifiers

    option = parameter.opts[0]
    if text is not None and not identifiers.is_identifier(text):
        raise typer.BadParameter(f"write {identifiers.IDENTIFIER_WORDS}", param_hint=option)
    if text is not None and identifiers.is_personal(text):
        raise typer.BadParameter("looks like an address, a number or a key; write a code", param_hint=option)
    return text


def _person(parameter: typer.CallbackParam, text: str | None) -> str | None:
    from stopcause.receipts import identifiers

    if text is not None and not (identifiers.is_identifier(text) and text.startswith(_USER) and text != _USER):
        words = identifiers.IDENTIFIER_WORDS
        raise typer.BadParameter(f"a person says this: write user:NAME, {words}", param_hint=parameter.opts[0])
    return text


Run = Annotated[str, typer.Argument(metavar="RUN", hidden=True)]
ContractName = Annotated[
    str, typer.Option("--contract", metavar="NAME", callback=_identifier, help="What it is about.")
]
Reason = Annotated[
    str, typer.Option("--reason", metavar="CODE", callback=_identifier, help="How you know, in one word: invoice_seen.")
]
Check = Annotated[
    str | None,
    typer.Option("--check", metavar="NAME", callback=_identifier, help="Only this check of it; without, all of them."),
]
Subject = Annotated[
    str | None, typer.Option("--subject", metavar="DIGEST", callback=_identifier, help="The target that you looked at.")
]
Actor = Annotated[
    str | None, typer.Option("--actor", metavar="user:NAME", callback=_person, help="Who says so; else your login.")
]
Ticket = Annotated[
    str | None, typer.Option("--ticket", metavar="ID", callback=_identifier, help="Where there is more about it.")
]


@app.command("confirm", cls=Command)
def confirm(  # noqa: PLR0913 - one argument an option
    run: Run,
    *,
    contract: ContractName,
    reason: Reason,
    check: Check = None,
    subject: Subject = None,
    actor: Actor = None,
    ticket: Ticket = None,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """You looked, and the work is there.

    RUN is an id, or the head or end of one. Your word is a record: it is weighed as the contract says, and can be
    overruled by a later look.
    """
    _say(run, (Polarity.CONFIRMED, contract, reason, shared.actor_of(actor), check, subject, ticket), store, output)


@app.command("refute", cls=Command)
def refute(  # noqa: PLR0913 - one argument an option
    run: Run,
    *,
    contract: ContractName,
    reason: Reason,
    check: Check = None,
    subject: Subject = None,
    actor: Actor = None,
    ticket: Ticket = None,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """You looked, and the work is not there.

    RUN is an id, or the head or end of one. Your word is a record: it is weighed as the contract says, and can be
    overruled by a later look.
    """
    _say(run, (Polarity.REFUTED, contract, reason, shared.actor_of(actor), check, subject, ticket), store, output)


_Said = tuple[Polarity, str, str, str, str | None, str | None, str | None]


def _say(run: str, said: _Said, store: Path | None, output: str | None) -> None:
    from stopcause.pipeline.outcomes_by_hand import Saying, record_by_hand
    from stopcause.render import outcome as screens

    screen = shared.screen_for(output, store)
    with shared.reading(store, screen, run) as (keeper, now):
        told = record_by_hand(keeper, run, Saying(*said), now)
    for note in told.notes:
        complain(f"Note: {note}.")
    screen.show(lambda pen: screens.told_screen(told, pen), lambda: [screens.told_object(told)])
    screen.hint(Hint(("explain",), "what its verdict rests on", told.run_id))


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    program.add_typer(app, name="outcome", rich_help_panel=shared.TOLD)
