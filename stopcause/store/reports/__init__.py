"""Named reports: a `.sql` file each, with a card in the comments at its top. Here cards are read, nothing is run.

A card says the name, title, question and reader of a report, and on lines of their own its parameters (name, type,
default, meaning) and columns (name, kind, heading, meaning). What many reports take, `since`, `agent`, `environment`
and `limit`, is told once here: a report takes those that its text names. Names are an interface: others script
against them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

REQUIRED: Final = "required"
_SUFFIX = ".sql"
_USED = re.compile(r"\$([a-z_]+)")


class Parameter(NamedTuple):
    """What a report can be asked with. `default` None: it may be left out; `REQUIRED`: it may not.

    `type` is one of span, duration, text, count, number, zone, run and thread.
    """

    name: str
    type: str
    default: str | None
    meaning: str


class Column(NamedTuple):
    """A column of a report. `heading` None: it is not on screens, which have 80 columns.

    `kind` says unit and looks: text, id, words (a list), verdict, flag, count, number, share (0 to 1), seconds,
    dollars, day, time, moment (with seconds); ago and due are times that screens show as an age.
    """

    name: str
    kind: str
    heading: str | None
    meaning: str


class Card(NamedTuple):
    """What there is to know of a report. `empty` says what to do where it has no row; `text` is the whole file."""

    name: str
    title: str
    question: str
    reader: str
    empty: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    text: str

    def parameter(self, name: str) -> Parameter | None:
        """The parameter that is called so."""
        return next((each for each in self.parameters if each.name == name), None)


SHARED: Final = (
    Parameter("since", "span", "24h", "how far back: 30m, 24h, 7d or all; counts runs by when they opened"),
    Parameter("agent", "text", None, "only this agent's"),
    Parameter("environment", "text", None, "only of this environment"),
    Parameter("limit", "count", "1000", "at most so many rows"),
)


@cache
def names() -> tuple[str, ...]:
    """The names of all reports, in the order of the alphabet."""
    found = (each.name for each in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


@cache
def card(name: str) -> Card:
    """The card of a report of `names()`."""
    text = (files(__name__) / f"{name}{_SUFFIX}").read_text(encoding="utf-8")
    said = [_said(line) for line in text.splitlines() if re.match(r"-- [a-z]+: ", line)]
    once = dict(each for each in said if each[0] not in ("parameter", "column"))
    own = [_parameter(value) for key, value in said if key == "parameter"]
    return Card(
        name=once["name"],
        title=once["title"],
        question=once["question"],
        reader=once["for"],
        empty=once["empty"],
        parameters=(*own, *_shared(text, once)),
        columns=tuple(_column(value) for key, value in said if key == "column"),
        text=text,
    )


def used(text: str) -> frozenset[str]:
    """The names that a text wants bound: the engine takes no others."""
    code = "\n".join(line.partition("--")[0] for line in text.splitlines())
    return frozenset(_USED.findall(code))


def _said(line: str) -> tuple[str, str]:
    key, _, value = line.removeprefix("-- ").partition(": ")
    return key, value


def _shared(text: str, once: dict[str, str]) -> list[Parameter]:
    wanted = used(text)
    return [each._replace(default=once.get(each.name, each.default)) for each in SHARED if each.name in wanted]


def _parameter(value: str) -> Parameter:
    name, kind, default, meaning = value.split(" | ", 3)
    return Parameter(name, kind, default, meaning)


def _column(value: str) -> Column:
    name, kind, heading, meaning = value.split(" | ", 3)
    return Column(name, kind, None if heading == "-" else heading, meaning)
