"""The hand that screens are written with: widths, colours, ages and times. 80 columns, whatever the terminal has.

A pen knows whether there is colour and which zone times are in. Letter, colour and word say the same thing, so that
nobody has to see the colour.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from stopcause.classifier.verdict import VerdictName

WIDTH = 80
ID_TAIL = 6  # a UUIDv7 starts with the clock: its end tells runs apart
RUNNING = "RUNNING"
_PASTED = 40
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_MARKS = {
    VerdictName.FAILED: ("F", "31"),
    VerdictName.WAITING: ("W", "36"),
    VerdictName.WAITING_UNROUTED: ("R", "35"),
    VerdictName.STUCK: ("S", "33"),
    VerdictName.BOUNDED_STOP: ("B", "34"),
    VerdictName.VERIFIED_COMPLETE: ("V", "32"),
    VerdictName.FALSE_COMPLETE: ("C", "91"),
    VerdictName.UNCERTAIN: ("U", "95"),
    None: (">", "2"),
}
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class Pen(NamedTuple):
    """How to write: `zone` None is the local one."""

    colour: bool = False
    zone: tzinfo | None = None

    def verdict(self, name: VerdictName | None, width: int = 0) -> str:
        """A verdict as letter and word, padded to `width` cells."""
        letter, code = _MARKS[name]
        return self._dye(f"{letter} {name or RUNNING}", code, width)

    def mark(self, name: VerdictName | None) -> str:
        """The letter alone, for a column of letters."""
        letter, code = _MARKS[name]
        return self._dye(letter, code, 0)

    def dim(self, text: str) -> str:
        """Text that is there for who looks for it."""
        return self._dye(text, "2", 0)

    def bold(self, text: str) -> str:
        """Text that is looked for first."""
        return self._dye(text, "1", 0)

    def _dye(self, text: str, code: str, width: int) -> str:
        padding = " " * (width - cells(text))
        return f"\x1b[{code}m{text}\x1b[0m{padding}" if self.colour else text + padding

    def time(self, at: datetime, *, seconds: bool = False) -> str:
        """A full time with its offset; for once per screen."""
        local = at.astimezone(self.zone)
        offset = f"{local:%z}"
        return f"{local:%Y-%m-%d %H:%M:%S}"[: 19 if seconds else 16] + f" {offset[:3]}:{offset[3:5]}"

    def clock(self, at: datetime, *, seconds: bool = False) -> str:
        """The time of a day that the screen has named."""
        return f"{at.astimezone(self.zone):%H:%M:%S}"[: 8 if seconds else 5]


def cells(text: str) -> int:
    """How many columns a terminal gives `text`: names may have letters that take two, or none of their own."""
    if text.isascii():
        return len(text)
    return sum(_cell(letter) for letter in text)


def _cell(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int) -> str:
    """`text` in at most `width` cells; an ellipsis says that there is more."""
    if cells(text) <= width:
        return text
    kept, room = "", width - 1
    for letter in text:
        room -= _cell(letter)
        if room < 0:
            break
        kept += letter
    return kept + "…"


def fit(text: str, width: int) -> str:
    """`text` in exactly `width` cells."""
    shown = cut(text, width)
    return shown + " " * (width - cells(shown))


def tail(identifier: str | None, length: int = ID_TAIL) -> str:
    """The end of a long id. A short one stays whole."""
    name = identifier or "-"
    return name if len(name) <= length + 2 else name[-length:]


def short_names(identifiers: Collection[str], room: int) -> dict[str, str]:
    """A name for each run of a list, in at most `room` cells: its id, or the end of one that is longer.

    An end has six letters, or as many more as make it that run's alone; it never looks like an option.
    """
    unique = set(identifiers)
    left = {each for each in unique if cells(each) > room or each.startswith("-")}
    names = {each: each for each in unique - left}
    for length in range(ID_TAIL, room):
        ends = Counter(each[-length:] for each in unique) if left else Counter[str]()
        alone = {each for each in left if ends[each[-length:]] == 1 and not each[-length:].startswith("-")}
        names |= {each: each[-length:] for each in alone}
        left -= alone
    return names | {each: each[-room:].lstrip("-") for each in left}


def pasted(identifier: str) -> str:
    """A run's name for a command: whole, but for a UUID, whose end is enough, and what no line has room for."""
    if _UUID.fullmatch(identifier):
        return identifier[-ID_TAIL:]
    return identifier[-_PASTED:]


def whole_or_tail(identifier: str, width: int) -> str:
    """An id that has to be pasted: whole where it fits, else its end."""
    return identifier if len(identifier) <= width else "…" + identifier[1 - width :]


def age(span: timedelta) -> str:
    """`12s`, `41m`, `3h 12m`, `26h`, `5d`."""
    seconds = max(int(span.total_seconds()), 0)
    hours, rest = divmod(seconds, _HOUR)
    if _HOUR <= seconds < _DAY and rest >= _MINUTE:
        return f"{hours}h {rest // _MINUTE}m"
    return short_age(span)


def short_age(span: timedelta) -> str:
    """The same in four cells at most."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds < _MINUTE:
        return f"{seconds}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m"
    return f"{seconds // _HOUR}h" if seconds < 3 * _DAY else f"{seconds // _DAY}d"


def count(number: int, one: str, many: str = "") -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def paragraph(head: str, text: str, indent: int) -> list[str]:
    """A labelled paragraph: the label in a column of its own, the text wrapped beside it; not at a no-break space."""
    wrapped = textwrap.wrap(text, WIDTH - indent, break_on_hyphens=False) or [""]
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]
    return [f"{head:<{indent}}{lines[0]}".rstrip(), *(" " * indent + line for line in lines[1:])]


def shared_widths(needs: Sequence[int], floors: Sequence[int], order: Sequence[int]) -> list[int]:
    """Column widths that add up to the floors: what one column does not need goes to those that do, in `order`."""
    widths = [min(need, floor) for need, floor in zip(needs, floors, strict=True)]
    spare = sum(floors) - sum(widths)
    for column in order:
        more = min(spare, needs[column] - widths[column])
        widths[column] += more
        spare -= more
    widths[-1] += spare
    return widths


def utc_text(at: datetime | None) -> str | None:
    """A time as JSON has it: UTC with Z."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
