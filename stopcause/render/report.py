"""Named reports as a screen, as JSON lines, as CSV; the list of them, and what there is to know of one.

What a column is called and how it looks its card says, which `pipeline.report` hands in with the rows. Here nothing is
computed but how a value is written.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Any, Final, NamedTuple

from stopcause.classifier.verdict import VerdictName
from stopcause.render.csv_lines import csv_lines, safe
from stopcause.render.pen import (
    WIDTH,
    Pen,
    age,
    cells,
    count,
    cut,
    fit,
    paragraph,
    pasted,
    short_age,
    short_names,
    utc_text,
)
from stopcause.render.views import Window

_GAP: Final = 2
_ID_ROOM: Final = 11  # an id is shown whole where it has room, else by its end, which commands take as well
_FLOOR: Final = 6  # what a text keeps where there is little room
_AS_OF: Final = 31  # the end of a first line: the time and its offset
_DIGITS: Final = {"share": 6, "seconds": 3, "dollars": 6, "number": 3}
_TEXTS: Final = frozenset({"text", "words"})
_RIGHT: Final = frozenset({"count", "share", "seconds", "dollars", "number", "ago", "due"})
_CENT: Final = 0.01
_BRIEF: Final = timedelta(seconds=10)  # below that tenths of a second are shown


class Parameter(NamedTuple):
    """What a report can be asked with."""

    name: str
    type: str
    default: str | None
    required: bool
    meaning: str


class Column(NamedTuple):
    """A column of a report; without a heading it is not on screens."""

    name: str
    kind: str
    heading: str | None
    meaning: str


class Card(NamedTuple):
    """What there is to know of a report."""

    name: str
    title: str
    question: str
    reader: str
    empty: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]


class Found(NamedTuple):
    """What a report found. `more`: there are rows beyond the limit. `has_window`: it looks back only so far.

    `subject`: the run or thread that it is about.
    """

    card: Card
    rows: Sequence[tuple[Any, ...]]
    window: Window
    has_window: bool
    more: bool
    subject: str | None = None


# The screen -----------------------------------------------------------------------------------------------------------


def report_screen(found: Found, pen: Pen, *, most: int | None = None) -> list[str]:
    """What it covers, the first `most` rows, and how many there are. Where there is none, what to do next."""
    head = [_head(found, pen), ""]
    if not found.rows:
        return head + textwrap.wrap(found.card.empty, WIDTH, break_on_hyphens=False)
    shown = found.rows if most is None else found.rows[:most]
    lines = head + _table(found.card.columns, shown, found.window, pen)
    if len(shown) < len(found.rows):
        lines += ["", f"Shown: the first {len(shown)} of {len(found.rows)}; --limit {len(found.rows)} has every one"]
    return lines


def more_note(found: Found) -> str:
    """What stderr says where the limit left rows out, whatever the form."""
    return f"These are the first {count(len(found.rows), 'row')}; there are more: --limit {10 * len(found.rows)}"


def _head(found: Found, pen: Pen) -> str:
    span, window = "", found.window
    if found.has_window:
        of_records = " of records" if window.by_newest else ""
        span = f", last {window.span}{of_records}" if window.span else ", all"
    about = f" {pasted(found.subject)}" if found.subject else ""
    return f"{cut(found.card.title + about + span, WIDTH - _AS_OF)}. As of {pen.time(window.now)}"


def _table(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], window: Window, pen: Pen) -> list[str]:
    shown = [(place, column) for place, column in enumerate(columns) if column.heading is not None]
    texts = [_texts(column.kind, [row[place] for row in rows], window, pen) for place, column in shown]
    needs = [max(cells(str(column.heading)), *map(cells, text)) for (_, column), text in zip(shown, texts, strict=True)]
    kinds = [column.kind for _, column in shown]
    widths = _widths(needs, kinds)
    lines = [_line([str(column.heading) for _, column in shown], kinds, widths)]
    for number, row in enumerate(rows):
        line = _line([text[number] for text in texts], kinds, widths)
        lines.append(_coloured(line, [row[place] for place, _ in shown], kinds, widths, pen))
    return lines


def _widths(needs: Sequence[int], kinds: Sequence[str]) -> list[int]:
    """What each column needs; where that is too much, the widest texts give way first."""
    widths = list(needs)
    can_give = [i for i, kind in enumerate(kinds) if kind in _TEXTS]
    over = sum(widths) + _GAP * (len(widths) - 1) - WIDTH
    while over > 0 and can_give:
        widest = max(can_give, key=lambda i: widths[i])
        if widths[widest] <= _FLOOR:
            break
        widths[widest] -= 1
        over -= 1
    return widths


def _line(texts: Sequence[str], kinds: Sequence[str], widths: Sequence[int]) -> str:
    cells_of = [
        " " * (width - cells(text)) + cut(text, width) if kind in _RIGHT else fit(text, width)
        for text, kind, width in zip(texts, kinds, widths, strict=True)
    ]
    return (" " * _GAP).join(cells_of).rstrip()


def _coloured(line: str, row: Sequence[Any], kinds: Sequence[str], widths: Sequence[int], pen: Pen) -> str:
    """The same line with its verdict in its colour, which takes no cell."""
    if not pen.colour or "verdict" not in kinds:
        return line
    place = kinds.index("verdict")
    begin = sum(widths[:place]) + _GAP * place
    plain, dyed = _verdict(row[place], Pen()), _verdict(row[place], pen)
    at = _index_of_cell(line, begin)
    return line[:at] + dyed + line[at + len(plain) :]


def _index_of_cell(line: str, cell: int) -> int:
    """Where in a line a cell begins: some letters take two of them."""
    return next((i for i in range(len(line)) if cells(line[:i]) >= cell), len(line))


def _verdict(value: str | None, pen: Pen) -> str:
    return pen.verdict(VerdictName(value) if value else None)


def _texts(kind: str, values: Sequence[Any], window: Window, pen: Pen) -> list[str]:
    """How the values of a column are written on a screen."""
    if kind == "verdict":
        return [_verdict(value, Pen()) for value in values]
    if kind == "id":
        names = short_names([value for value in values if value is not None], _ID_ROOM)
        return ["-" if value is None else names[value] for value in values]
    if kind in ("time", "moment"):
        return _times(values, window, pen, seconds=kind == "moment")
    write = _WRITERS[kind]
    return ["-" if value is None else write(value, window) for value in values]


def _times(values: Sequence[datetime | None], window: Window, pen: Pen, *, seconds: bool) -> list[str]:
    """Times in the zone of the first line; where the clock was put forward or back since, each says its offset."""
    local = [None if value is None else value.astimezone(pen.zone) for value in values]
    offsets = {value.utcoffset() for value in local if value} | {window.now.astimezone(pen.zone).utcoffset()}
    size = 14 if seconds else 11
    texts = ["-" if value is None else f"{value:%m-%d %H:%M:%S}"[:size] for value in local]
    if len(offsets) == 1:
        return texts
    return [
        text if value is None else f"{text} {value:%z}"[: size + 6] for text, value in zip(texts, local, strict=True)
    ]


def _due(at: datetime, window: Window) -> str:
    return f"in {short_age(at - window.now)}" if at > window.now else f"{short_age(window.now - at)} late"


def _seconds(value: float, _window: Window) -> str:
    span = timedelta(seconds=value)
    return f"{value:.1f}s" if span < _BRIEF else age(span)


def _dollars(value: float, _window: Window) -> str:
    return f"{value:.2f}" if abs(value) >= _CENT or not value else f"{value:.4f}"


_WRITERS: Mapping[str, Callable[[Any, Window], str]] = {
    "text": lambda value, _: str(value),
    "words": lambda value, _: ", ".join(value) or "-",
    "flag": lambda value, _: "yes" if value else "no",
    "count": lambda value, _: str(value),
    "number": lambda value, _: f"{value:.1f}",
    "share": lambda value, _: f"{100 * value:.1f}%",
    "seconds": _seconds,
    "dollars": _dollars,
    "day": lambda value, _: value.isoformat(),
    "ago": lambda value, window: short_age(window.now - value),
    "due": _due,
}


# For programs ---------------------------------------------------------------------------------------------------------


def report_objects(found: Found) -> Iterator[dict[str, Any]]:
    """Each row by the names of its columns: times in UTC, numbers rounded as far as they mean something."""
    columns = found.card.columns
    for row in found.rows:
        yield {column.name: _plain(value, column.kind) for column, value in zip(columns, row, strict=True)}


def report_csv(found: Found) -> Iterable[str]:
    """The same for a spreadsheet, lists with a space between their words, nothing where there is no value."""
    head = [column.name for column in found.card.columns]
    return csv_lines(chain([head], ([_cell(value) for value in each.values()] for each in report_objects(found))))


def _plain(value: Any, kind: str) -> Any:  # noqa: ANN401 - whatever a column holds
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, date):
        return value.isoformat()
    return round(value, _DIGITS[kind]) if kind in _DIGITS and value is not None else value


def _cell(value: Any) -> str:  # noqa: ANN401 - as above
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = " ".join(value) if isinstance(value, list) else str(value)
    return safe(text)


# Cards ----------------------------------------------------------------------------------------------------------------


def list_screen(cards: Sequence[Card]) -> list[str]:
    """The reports by name, each with what it answers."""
    width = max(len(card.name) for card in cards) + _GAP
    return [line for card in cards for line in paragraph(card.name, card.question, width)]


def about_screen(card: Card) -> list[str]:
    """A report's card: what it answers and for whom, what it can be asked with, what its columns mean."""
    lines = [*textwrap.wrap(f"{card.title}: {card.question} For the {card.reader}.", WIDTH), ""]
    names = [each.name for each in card.parameters] + [each.name for each in card.columns]
    width = max(map(len, names)) + 2 * _GAP
    for each in card.parameters:
        default = " (required)" if each.required else f" ({each.default})" if each.default else ""
        lines += paragraph(f"  {each.name}", f"{each.type}{default}: {each.meaning}", width + _GAP)
    lines.append("")
    for column in card.columns:
        lines += paragraph(f"  {column.name}", column.meaning, width + _GAP)
    return lines


def card_objects(cards: Sequence[Card]) -> Iterator[dict[str, Any]]:
    """The cards for a program."""
    for card in cards:
        known = {"name": card.name, "title": card.title, "question": card.question, "for": card.reader}
        columns = [{"name": each.name, "kind": each.kind, "meaning": each.meaning} for each in card.columns]
        yield {**known, "parameters": [each._asdict() for each in card.parameters], "columns": columns}
