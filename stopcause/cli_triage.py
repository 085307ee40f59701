"""`stopcause triage` and `stopcause outcome`: what people say about a group, or saw at a destination."""

from __future__ import annotations

import typer


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    del program
