"""A named report: its parameters are checked, its text is run, its values come back typed.

Whatever is wrong with a parameter is said before anything is read, by the parameter's name, the shape of what was
given, and what is allowed. Not here: what a report asks (`store.reports`), and how it looks.
"""

from __future__ import annotations

import difflib
import math
import re
import zoneinfo
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple

from stopcause.classifier.policy import DEFAULT_POLICY, parse_duration
from stopcause.errors import NotFoundError, ReportError
from stopcause.pipeline.attention import window
from stopcause.render import report as views
from stopcause.render.views import Window
from stopcause.store import reports
from stopcause.store.columns import naive, utc
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.reports import REQUIRED, Card, Column, Parameter

ALL: Final = "all"  # of `since`
LOCAL: Final = "local"  # of a zone
_MOST: Final = 1_000_000
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_S = 3600
_THREADS = """SELECT DISTINCT thread_id, thread_id = $name FROM verdicts
WHERE thread_id = $name OR starts_with(thread_id, $name) OR ends_with(thread_id, $name) ORDER BY 2 DESC, 1 LIMIT 2"""


class Table(NamedTuple):
    """What a report found. `rows` has a value for each of `columns`; times are aware, in UTC.

    `asked`: the parameters as they were understood. `window`: what it covers; its `span` is empty where a report has no
    window or covers everything. `more`: there are rows beyond the limit.
    """

    card: Card
    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]
    window: Window
    asked: Mapping[str, Any]
    more: bool


class Zone(NamedTuple):
    """A time zone by its name; `info` None is the local one."""

    name: str
    info: tzinfo | None


def cards() -> list[Card]:
    """All reports, in the order of the alphabet."""
    return [reports.card(name) for name in reports.names()]


def card_of(name: str) -> Card:
    """The report of that name.

    Raises:
        NotFoundError: There is none; says which is near.
    """
    if name in reports.names():
        return reports.card(name)
    near = difflib.get_close_matches(name, reports.names(), 3, 0.5)
    ask = f" Did you mean {' or '.join(near)}?" if near else ""
    raise NotFoundError(f"No report has that name.{ask} `report` lists them.")


def run_report(store: DuckStore, name: str, parameters: Mapping[str, str], now: datetime) -> Table:
    """Runs a report on a store that has been settled as of `now`.

    Args:
        store: An open store.
        name: The report's.
        parameters: By name, as text: what a command line or an address has. What is left out has its default.
        now: The time that ages count to, aware.

    Raises:
        NotFoundError: No report has that name, or no run or thread that a parameter names.
        ReportError: A parameter is unknown, missing, or not what it has to be.
        StoreError: The store failed.
    """
    card = card_of(name)
    asked = _resolved(store, card, understood(card, parameters))
    covered = _window(card, asked, now, store.newest_at(now + DEFAULT_POLICY.defaults.clock_skew))
    bound = _bound(store, asked, covered)
    found = store.ask(card.text, {each: bound[each] for each in reports.used(card.text)})
    limit = asked["limit"]
    rows = [tuple(map(_aware, row)) for row in found.rows[:limit]]
    return Table(card, card.columns, rows, covered, asked, more=len(found.rows) > limit)


# Parameters -----------------------------------------------------------------------------------------------------------


def understood(card: Card, given: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a report as values; each one that it takes is there.

    Raises:
        ReportError: One is unknown, missing, or not what it has to be.
    """
    for name in given:
        if card.parameter(name) is None:
            raise ReportError(_unknown(card, name))
    return {each.name: _value(each, given.get(each.name)) for each in card.parameters}


def _unknown(card: Card, name: str) -> str:
    known = [each.name for each in card.parameters]
    near = difflib.get_close_matches(name, known, 1)
    ask = f" Did you mean {near[0]}?" if near else ""
    return f"Report {card.name} has no parameter of that name.{ask} It takes {', '.join(known)}."


def _value(parameter: Parameter, given: str | None) -> Any:  # noqa: ANN401 - whatever its type makes of it
    text = parameter.default if given is None else given
    if text is None:
        return None
    if given is None and text == REQUIRED:
        give = f"Give {_ALLOWED[parameter.type]}: -p {parameter.name}=NAME"
        raise ReportError(f"{parameter.name} is missing: {parameter.meaning}. {give}")
    try:
        return _READERS[parameter.type](text)
    except ValueError:
        raise ReportError(f"{parameter.name} is {_shape(text)}; give {_ALLOWED[parameter.type]}.") from None


def _shape(text: str) -> str:
    """What was given, without saying it."""
    if not text.strip():
        return "empty"
    if re.fullmatch(r"[+-]?[0-9]+", text):
        value = int(text) if len(text) < 20 else _MOST + 1  # noqa: PLR2004 - longer than any number that fits
        return "a number below zero" if value < 0 else "zero" if value == 0 else "a whole number"
    if re.fullmatch(r"[+-]?[0-9]*\.[0-9]+", text):
        return "a number with a fraction"
    if re.fullmatch(r"[+-]?[0-9]+\s*[a-zA-Z]+", text):
        return "a number with a unit"
    return f"a text of {len(text)} letters" if len(text) > 1 else "a single letter"


def _span(text: str) -> timedelta | None:
    """How far back; None is all."""
    if text == ALL:
        return None
    span = parse_duration(text)
    if not span:
        raise ValueError(text)
    return span


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text) or not 1 <= int(text) <= _MOST:
        raise ValueError(text)
    return int(text)


def _number(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or not math.isfinite(float(text)) or not float(text):
        raise ValueError(text)
    return float(text)


def _text(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(text)
    return text


def _zone(text: str) -> Zone:
    if text == LOCAL:
        return Zone(text, None)
    try:
        return Zone(text, zoneinfo.ZoneInfo(text))
    except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):  # a folder of zones is an OSError
        raise ValueError(text) from None


_READERS: Mapping[str, Callable[[str], Any]] = {
    "span": _span,
    "duration": parse_duration,
    "count": _count,
    "number": _number,
    "text": _text,
    "run": _text,
    "thread": _text,
    "zone": _zone,
}
_ALLOWED: Mapping[str, str] = {
    "span": f"30m, 24h, 7d or {ALL}",
    "duration": "0s, 30s, 5m, 4h or 2d",
    "count": f"a whole number from 1 to {_MOST}",
    "number": "a number above 0",
    "text": "a name without spaces, of at most 200 letters",
    "run": "a run's name, or the only beginning or end of it",
    "thread": "a thread's name, or the only beginning or end of it",
    "zone": f"{LOCAL}, UTC, or a name of the IANA list as Europe/Berlin or Asia/Kolkata",
}


# What is bound --------------------------------------------------------------------------------------------------------


def _window(card: Card, asked: Mapping[str, Any], now: datetime, newest_at: datetime | None) -> Window:
    """What the report covers; from the epoch on where it covers everything."""
    span = asked.get("since") if card.parameter("since") else None
    if span is None:
        return Window(now=now, span="", since=_EPOCH, newest_at=newest_at)
    return window(now, span, spelled(span), newest_at)


def spelled(span: timedelta) -> str:
    """A duration as a parameter takes it: 24h, 7d; not `1d`, which a screen would have to say as one day."""
    seconds = int(span.total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % length == 0 and (unit != "d" or seconds > length):
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _resolved(store: DuckStore, card: Card, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the whole names of the run and the thread that are meant."""
    whole = dict(asked)
    for each in card.parameters:
        if each.type == "run":
            whole[each.name] = store.find_run(asked[each.name])
        elif each.type == "thread":
            whole[each.name] = _thread(store, asked[each.name])
    return whole


def _bound(store: DuckStore, asked: Mapping[str, Any], covered: Window) -> dict[str, Any]:
    """Every name that a text may use, with its value; one row more than asked for says that there are more."""
    since = max(covered.since, _EPOCH)
    bound = {name: value for name, value in asked.items() if not isinstance(value, Zone)}
    bound |= {
        "since": naive(since),
        "hour": int(since.timestamp() // _HOUR_S),
        "now": naive(covered.now),
        "limit": asked["limit"] + 1,
    }
    for value in asked.values():
        if isinstance(value, Zone):
            bound |= _days(store, bound, value)
    return bound


def _thread(store: DuckStore, name: str) -> str:
    found = store.ask(_THREADS, {"name": name}).rows
    if not found:
        raise NotFoundError("No thread has that name, or begins or ends with it. `runs --all -o jsonl` has thread ids.")
    if len(found) > 1 and not found[0][1]:
        raise NotFoundError("Several threads begin or end with that name. Give more of it.")
    return str(found[0][0])


def _days(store: DuckStore, bound: Mapping[str, Any], zone: Zone) -> dict[str, Any]:
    """The days of a zone that runs of the window opened on, by their beginnings in UTC."""
    hours = store.ask("SELECT min(hour), max(hour) FROM verdicts WHERE hour >= $hour", {"hour": bound["hour"]}).rows
    first, last = (_hour(hour if hour is not None else bound["hour"]) for hour in hours[0])
    begins = day_starts(first, last + timedelta(hours=1), zone.info)
    starts = [naive(each) for each in begins]
    return {
        "day_starts": starts,
        "day_names": list(begins.values()),
        "whole_hours": not any(each.minute or each.second for each in starts),
    }


def _hour(number: int) -> datetime:
    return _EPOCH + timedelta(hours=number)


def day_starts(first: datetime, last: datetime, zone: tzinfo | None) -> dict[datetime, date]:
    """When each day of a zone begins, in UTC, from the day of `first` to that of `last`; zone None is the local one.

    A day that begins in a gap of the clock begins when the gap does. A day that a zone left out is left out.
    """
    day, end = first.astimezone(zone).date(), last.astimezone(zone).date()
    found: dict[datetime, date] = {}
    while day <= end:
        midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
        found[midnight.astimezone(UTC)] = day
        day += timedelta(days=1)
    return found


def _aware(value: Any) -> Any:  # noqa: ANN401 - whatever a column holds
    return utc(value) if isinstance(value, datetime) else value


# For `render` ---------------------------------------------------------------------------------------------------------


def told(card: Card) -> views.Card:
    """A card as screens take it: without the text that the engine runs."""
    parameters = tuple(
        views.Parameter(name, kind, None if default == REQUIRED else default, default == REQUIRED, meaning)
        for name, kind, default, meaning in card.parameters
    )
    columns = tuple(views.Column(*each) for each in card.columns)
    return views.Card(*card[:5], parameters=parameters, columns=columns)


def found(table: Table) -> views.Found:
    """What a report found, as screens take it."""
    has_window = table.card.parameter("since") is not None
    subject = next((table.asked[each.name] for each in table.card.parameters if each.type in ("run", "thread")), None)
    return views.Found(told(table.card), table.rows, table.window, has_window, table.more, subject)
