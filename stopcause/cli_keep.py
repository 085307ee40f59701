"""`stopcause backup`, `restore` and `forget`: copies of a store, and its end by the day."""

from __future__ import annotations

import typer


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    del program
