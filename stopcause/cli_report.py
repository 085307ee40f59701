"""`stopcause report`: named questions about what is stored."""

from __future__ import annotations

import typer


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    del program
