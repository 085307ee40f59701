"""`stopcause doctor` and `stopcause sql`: is the store well, and any question that no report answers."""

from __future__ import annotations

import typer


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    del program
