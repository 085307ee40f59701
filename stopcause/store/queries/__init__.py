"""SQL texts that are longer than two lines, one file each, read by name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def text(name: str) -> str:
    """The text of `queries/NAME.sql`."""
    return (files(__name__) / f"{name}.sql").read_text(encoding="utf-8")
