"""`stopcause agui`: what AG-UI streams say about why runs stopped, and whether a resume may be sent."""

from __future__ import annotations

import typer

from stopcause.render.door import Group

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read AG-UI streams: why runs stopped, what threads wait for, which resume may be sent.",
)
