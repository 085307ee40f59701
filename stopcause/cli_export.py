"""`stopcause export`: the store for other tools, as Parquet, as a snapshot, over OTLP."""

from __future__ import annotations

import typer


def add_to(program: typer.Typer) -> None:
    """Registers these commands."""
    del program
