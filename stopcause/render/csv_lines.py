"""CSV for spreadsheets, as RFC 4180 has it: lines end with CRLF, and no text is one that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_lines(rows: Iterable[Iterable[str]]) -> Iterable[str]:
    """A line for each row, without its last newline: `screen.write` ends every line with one."""
    for row in rows:
        text = io.StringIO()
        csv.writer(text, lineterminator="\r").writerow(row)
        yield text.getvalue()


def safe(text: str) -> str:
    """A text that begins like a formula, behind an apostrophe."""
    return f"'{text}" if text.startswith(_FORMULA) else text
