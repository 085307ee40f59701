"""The answer to free SQL: a table where it fits, else a record after the other; CSV; and what there is to ask about.

Values are whatever a query made of them: letters that would move the cursor are shown as what they are.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from stopcause.render.csv_lines import csv_lines, safe
from stopcause.render.pen import WIDTH, Pen, cells, count, cut, fit

_CELL = 40  # what a cell takes at most
_NARROW = 12  # what it keeps where there is little room
_VALUE = 4000  # letters of a value in a record
_GAP = 2
_SMALL = 1e-3
_SECONDS = len("2026-11-28 08:00:00")
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "UINTEGER", "UBIGINT")


class Sheet(NamedTuple):
    """Rows of any shape; `more` says that there are others."""

    names: list[str]
    types: list[str]
    rows: list[list[Any]]
    more: bool


class Told(NamedTuple):
    """A column and what it means."""

    table: str
    name: str
    type: str
    meaning: str


# Rows -----------------------------------------------------------------------------------------------------------------


def sheet_screen(sheet: Sheet, width: int, pen: Pen) -> list[str]:
    """The rows as a table, or one under the other where a table would be wider than the terminal."""
    texts = [[_shown(value, kind) for value, kind in zip(row, sheet.types, strict=True)] for row in sheet.rows]
    has_lines = any("\n" in text for row in texts for text in row)
    widths = None if has_lines else _widths(sheet.names, texts, width)
    if widths is None:
        return _records(sheet.names, texts, width, pen)
    right = [kind.startswith(_NUMBERS) for kind in sheet.types]
    lines = [_line(sheet.names, widths, right), *(_line(row, widths, right) for row in texts)]
    return lines if texts else [*lines, "No row."]


def sheet_note(sheet: Sheet, most: int) -> str:
    """How much of it that is."""
    number = count(len(sheet.rows), "row")
    if not sheet.more:
        return f"{number}. Times are UTC." if sheet.rows else ""
    if len(sheet.rows) < most:
        return f"{number}, and there are more: the answer got too large. Ask for fewer columns, or for less of them."
    return f"{number}, and there are more: --limit {10 * most} shows them, a WHERE makes them fewer."


def sheet_objects(sheet: Sheet) -> Iterator[dict[str, Any]]:
    """Each row by the names of its columns; a name that comes twice is numbered."""
    names = _unique(sheet.names)
    for row in sheet.rows:
        yield dict(zip(names, row, strict=True))


def sheet_json(sheet: Sheet) -> Iterator[str]:
    """Each row as a line of JSON, in which no letter moves a cursor."""
    for each in sheet_objects(sheet):
        line = json.dumps(each, ensure_ascii=False, separators=(",", ":"))
        yield _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def sheet_csv(sheet: Sheet) -> Iterable[str]:
    """The same for a spreadsheet; a text that it would take for a formula begins with an apostrophe."""
    return csv_lines([_csv_cell(value) for value in row] for row in (sheet.names, *sheet.rows))


def _csv_cell(value: object) -> str:
    if value is None or isinstance(value, bool | int | float):
        return "" if value is None else json.dumps(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return safe(_HIDDEN.sub(_escaped, text))


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name}_{seen[name] - 1}")
    return made


def _shown(value: Any, kind: str) -> str:  # noqa: ANN401 - whatever a column holds
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if 0 < abs(value) < _SMALL else f"{value:.4f}".rstrip("0").rstrip(".")
    if isinstance(value, str):
        text = value.replace("T", " ")[:_SECONDS] if kind.startswith("TIMESTAMP") else value.rstrip("\n")
    else:
        text = json.dumps(value, ensure_ascii=False)
    return "\n".join(_HIDDEN.sub(_escaped, line) for line in text.split("\n"))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - two digits


def _widths(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """A width for each column, so that all of them fit; None where they would become too narrow to read."""
    needs = [min(max(map(cells, column)), _CELL) for column in zip(names, *rows, strict=True)]
    over = sum(needs) + _GAP * (len(needs) - 1) - width
    cuttable = [i for i, name in enumerate(names) if not name.endswith("_id")]  # an id has to be pasted
    while over > 0:
        widest = max(cuttable, key=lambda i: needs[i], default=None)
        if widest is None or needs[widest] <= _NARROW:
            return None
        needs[widest] -= 1
        over -= 1
    return needs


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    said = [
        " " * (width - cells(cut(text, width))) + cut(text, width) if is_right else fit(text, width)
        for text, width, is_right in zip(map(_one_line, row), widths, right, strict=True)
    ]
    return (" " * _GAP).join(said).rstrip()


def _one_line(text: str) -> str:
    return _HIDDEN.sub(_escaped, text)


def _records(names: Sequence[str], rows: Sequence[Sequence[str]], width: int, pen: Pen) -> list[str]:
    """A row after the other, a column a line; a value that is longer goes on below itself."""
    column = min(max((cells(name) for name in names), default=0), _CELL)
    room = max(width - column - _GAP, _NARROW)
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        lines.append(pen.dim(f"- row {number}"))
        for name, text in zip(names, row, strict=True):
            first, *others = _parts(text, room)
            lines.append(f"{fit(_one_line(name), column)}{' ' * _GAP}{first}".rstrip())
            lines += [" " * (column + _GAP) + part for part in others]
    return lines or ["No row."]


def _parts(text: str, room: int) -> list[str]:
    """A value in lines: a plan of the engine is a drawing and stays as it is drawn."""
    if "\n" in text:
        return [cut(line, room) for line in cut(text, _VALUE).split("\n")]
    return textwrap.wrap(cut(text, _VALUE), room, break_on_hyphens=False) or [""]


# What there is to ask about -------------------------------------------------------------------------------------------


def schema_screen(tables: Iterable[tuple[str, str]], columns: Sequence[Told], pen: Pen) -> list[str]:
    """Each table with its columns, their types and what they mean."""
    lines: list[str] = []
    for table, meaning in tables:
        lines += [""] if lines else []
        lines += _labelled(pen.bold(table), len(table), len(table) + _GAP, meaning)
        own = [column for column in columns if column.table == table]
        name = max((len(column.name) for column in own), default=0)
        kind = max((len(_short(column.type)) for column in own), default=0)
        for column in own:
            head = f"  {column.name:<{name}}  {_short(column.type):<{kind}}"
            lines += _labelled(head, len(head), len(head) + _GAP, column.meaning)
    return lines


def _labelled(head: str, length: int, indent: int, text: str) -> list[str]:
    wrapped = textwrap.wrap(text, WIDTH - indent, break_on_hyphens=False) or [""]
    return [head + " " * (indent - length) + wrapped[0], *(" " * indent + line for line in wrapped[1:])]


def _short(kind: str) -> str:
    """A type in a word: what a structure holds its meaning says."""
    return "STRUCT[]" if kind.startswith("STRUCT") and kind.endswith("[]") else kind


def examples_screen(examples: Iterable[tuple[str, str]], pen: Pen) -> list[str]:
    """Queries that can be pasted into an editor, each under what it answers."""
    lines: list[str] = []
    for about, sql in examples:
        lines += [*([""] if lines else []), pen.dim(f"-- {about}"), *f"{sql};".split("\n")]
    return lines
