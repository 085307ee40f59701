"""Groups: the verdicts of one fingerprint, counted by the store; whether one is new or escalating, and how it differs.

Here: the questions to the store, one SQL text each, and the arithmetic of the marks. Not here: what people said of a
group (`triage`), which groups need somebody (`attention`), and the layout.

A time after now and the policy's `clock_skew` comes from a clock that ran ahead. Such a run is in its group, and makes
it neither new nor escalating nor regressed: otherwise it would do so on every day until that time comes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

from stopcause.classifier.policy import Policy
from stopcause.errors import NotFoundError
from stopcause.pipeline.keeper import Keeper
from stopcause.render.views import Difference
from stopcause.store.columns import naive, utc, verdict_row_reader
from stopcause.store.duckdb_store import Answer
from stopcause.store.queries import text
from stopcause.store.rows import VerdictRow

MEMORY: Final = timedelta(days=30)  # how far back a group is looked for: one that was quiet for so long is new again
USUAL_WINDOWS: Final = 7  # so many equally long windows before the one that is looked at make up the usual rate
ESCALATES: Final = 3.0  # times its usual rate: from here on a group is escalating
LEAST: Final = 5  # runs in the window: fewer are no escalation, whatever the factor
OFTEN: Final = 0.5  # of the share of runs that have a value: how much larger it is in the group where it differs
LUCK: Final = 0.01  # how likely such a share may be by chance
MOST_DIFFERENCES: Final = 3
NAME: Final = re.compile(r"[0-9a-f]{4,12}")
DAY_ONE: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAME_LENGTHS = (4, 6, 12)
_PAGE = 5_000  # rows that are read at once
_LISTED = 5  # candidates for an ambiguous name
_T = TypeVar("_T", bound=tuple[Any, ...])


class Found(NamedTuple):
    """A group as a list finds it: what its newest run says, and counts. `pile`: what becomes of it (the SQL says).

    `timely`: those of its runs that opened in the window that marks are about. `due`: the first moment at which one of
    its waits is due. `again_at`: when the last of its verdicts may change by itself.
    """

    fingerprint: str
    pile: str
    size: int
    timely: int
    first_at: datetime
    last_at: datetime
    again_at: datetime | None
    due: datetime | None
    verdict: str
    reason: str
    stop_cause: str | None
    agent: str | None
    environment: str | None
    owner: str | None
    stage: str
    rule: str
    detail: str | None
    missing: tuple[str, ...]
    run_id: str


class Facts(NamedTuple):
    """A group over all of its runs, however old. `owner` is the policy's, `run_id` its newest run."""

    fingerprint: str
    verdict: str
    reason: str
    agent: str | None
    environment: str | None
    detail: str | None
    owner: str | None
    run_id: str
    size: int
    first_at: datetime
    last_at: datetime
    due: datetime | None


class Totals(NamedTuple):
    """What a list covers."""

    runs: int
    agents: int
    environments: tuple[str, ...]


class Asked(NamedTuple):
    """Which runs a list is about. `marked`: from when on, and `span`: how long, runs count for their group's marks."""

    since: datetime
    marked: datetime
    span: timedelta
    now: datetime
    verdicts: tuple[str, ...] = ()
    agent: str | None = None


class Rate(NamedTuple):
    """How a group did before the window: whether the memory has it, and how many runs a window usually has."""

    known: bool
    usual: float | None  # None: there is no whole window of history to compare with


# What there is --------------------------------------------------------------------------------------------------------


def latest(now: datetime, policy: Policy) -> datetime:
    """The last moment that a clock which runs right can have said by now."""
    return now + policy.defaults.clock_skew


def totals(keeper: Keeper, asked: Asked) -> Totals:
    """How many runs and agents a list covers, and in which environments."""
    ((runs, agents, environments),) = _ask(keeper, "window_totals", _chosen(asked)).rows
    return Totals(runs, agents if runs else 0, tuple(sorted(environments)))


def older(keeper: Keeper, asked: Asked) -> int:
    """How many runs needed somebody before the list, as far back as groups are remembered."""
    first = hour(asked.now - MEMORY)
    return int(_ask(keeper, "older_attention", _chosen(asked) | {"first_hour": first}).rows[0][0])


def found(keeper: Keeper, asked: Asked) -> list[Found]:
    """The groups of a list that may need somebody, and those of every open wait without a route."""
    now = asked.now
    times = {
        "now": naive(now),
        "until": naive(latest(now, keeper.policy)),
        "graced": naive(now - keeper.policy.defaults.unrouted_grace),
        "marked": naive(asked.marked),
    }
    return _values(Found, _ask(keeper, "attention_groups", _chosen(asked) | times))


def rows_of(keeper: Keeper, groups: Collection[str], since: datetime) -> Iterator[VerdictRow]:
    """The current rows of these groups since a time, the newest first, and of waits without a route however old.

    They come a page at a time: there may be more of them than the memory holds.
    """
    asked = {"groups": list(groups), "hour": hour(since), "since": naive(since)}
    places = [place for (place,) in _ask(keeper, "places_of_groups", asked).rows]
    for first in range(0, len(places), _PAGE):
        answer = _ask(keeper, "rows_at", {"places": places[first : first + _PAGE]})
        read = verdict_row_reader(answer.names)
        yield from map(read, answer.rows)


def facts_of(keeper: Keeper, groups: Collection[str], now: datetime) -> dict[str, Facts]:
    """What these groups are, by fingerprint; one that has no run any more is left out."""
    asked = {"groups": list(groups), "until": naive(latest(now, keeper.policy))}
    return {each.fingerprint: each for each in _values(Facts, _ask(keeper, "groups_facts", asked))}


def named(keeper: Keeper, name: str, now: datetime) -> str:
    """The fingerprint of the group that is called so: by its end, as lists print it.

    Raises:
        NotFoundError: There is none, or several are; the message lists them.
    """
    if not (rows := called(keeper, name, now)):
        ended = "A group ends when its runs get other verdicts."
        raise NotFoundError(f"No group is called {name!r}. `runs --attention --all` lists them. {ended}")
    return only(rows, name)


def called(keeper: Keeper, name: str, now: datetime) -> list[tuple[Any, ...]]:
    """The groups (fingerprint, verdict, agent) that end so: of the last day, else of the last month, else of ever."""
    for since in (now - timedelta(days=1), now - MEMORY, DAY_ONE) if NAME.fullmatch(name) else ():
        if rows := _ask(keeper, "groups_called", {"name": name, "hour": hour(since)}).rows:
            return rows
    return []


def only(rows: Sequence[tuple[Any, ...]], name: str) -> str:
    """The fingerprint of the only one of them.

    Raises:
        NotFoundError: There are several; the message lists them.
    """
    if len(rows) > 1:
        raise NotFoundError(f"{name} is not one group: {_candidates(rows)}. Give more of its name.")
    return str(rows[0][0])


def _candidates(rows: Sequence[tuple[Any, ...]]) -> str:
    fingerprints = [row[0] for row in rows]
    said = [f"{short_name(print_, fingerprints)} ({verdict}, {agent})" for print_, verdict, agent in rows[:_LISTED]]
    return ", ".join(said) + (" and more" if len(rows) > _LISTED else "")


def short_name(fingerprint: str, others: Iterable[str]) -> str:
    """The end of a fingerprint, as long as it takes to be its alone: 4, 6 or 12 letters."""
    unlike = [each for each in others if each != fingerprint]
    ends = (fingerprint[-length:] for length in _NAME_LENGTHS)
    return next((end for end in ends if not any(each.endswith(end) for each in unlike)), fingerprint)


def short_names(fingerprints: Collection[str]) -> dict[str, str]:
    """The same for each of many."""
    names: dict[str, str] = {}
    left = set(fingerprints)
    for length in _NAME_LENGTHS:
        ends: dict[str, list[str]] = {}
        for each in fingerprints:
            ends.setdefault(each[-length:], []).append(each)
        alone = {each: each[-length:] for each in left if len(ends[each[-length:]]) == 1}
        names |= alone
        left -= alone.keys()
    return names | {each: each for each in left}


# Marks ----------------------------------------------------------------------------------------------------------------


def rates(keeper: Keeper, groups: Collection[str], asked: Asked) -> dict[str, Rate] | None:
    """How each group did before the window; None where the store has nothing from before it, so that none is new."""
    since, span = asked.marked, asked.span
    memory, usual = since - MEMORY, since - USUAL_WINDOWS * span
    before = {"last_hour": hour(since), "memory": naive(memory), "since": naive(since)}
    ((is_anything, first),) = _ask(keeper, "oldest_run", before).rows
    if not is_anything:
        return None
    more = {"groups": list(groups), "hour": hour(memory), "usual": naive(max(usual, memory))}
    seen = {row[0]: row[1:] for row in _ask(keeper, "groups_before", before | more).rows}
    oldest = utc(first)
    windows = (since - max(oldest, usual, memory)) / span if oldest else 0.0
    return {each: _rate(seen.get(each), windows) for each in groups}


def _rate(seen: tuple[int, int] | None, windows: float) -> Rate:
    """What was quiet in all of the windows had at most one run in them."""
    return Rate(seen is not None, max(seen[1], 1) / windows if seen and windows >= 1 else None)


def escalation(count: int, usual: float | None) -> float | None:
    """How many times its usual rate a group has, where that is an escalation."""
    if usual is None or count < LEAST or count < ESCALATES * usual:
        return None
    return count / usual


# How it differs -------------------------------------------------------------------------------------------------------


def differences(keeper: Keeper, group: Facts, now: datetime) -> tuple[Difference, ...]:
    """What the runs of a group have far more often than the agent's other runs of the same time, the clearest first.

    The time is the group's own, at least its last day and at most `MEMORY`. Labels are not in the store's columns.
    """
    last = min(group.last_at, now)
    first = max(min(group.first_at, last - timedelta(days=1)) - timedelta(hours=1), last - MEMORY)
    asked = {
        "fingerprint": group.fingerprint,
        "agent": group.agent,
        "first": naive(first),
        "last": naive(last),
        "hour": hour(first),
        "last_hour": hour(last),
    }
    counted = _ask(keeper, "group_differs", asked).rows
    _field, _value, inside, outside = next(row for row in counted if row[0] is None)
    told = [Difference(row[0], row[1], row[2], inside, row[3], outside) for row in counted if row[0] and row[1]]
    clear = [each for each in told if _is_clear(each)]
    return tuple(sorted(clear, key=lambda each: (-_gap(each), each.field))[:MOST_DIFFERENCES])


def _gap(each: Difference) -> float:
    return each.inside / each.of_inside - each.outside / each.of_outside


def _is_clear(each: Difference) -> bool:
    """Whether the share is much larger, and by no chance so (Chernoff's bound; one run of each is added outside)."""
    if not each.of_inside or not each.of_outside or _gap(each) < OFTEN:
        return False
    share, other = each.inside / each.of_inside, (each.outside + 1) / (each.of_outside + 2)
    if share <= other:
        return False
    odds = share * math.log(share / other)
    if share < 1:
        odds += (1 - share) * math.log((1 - share) / (1 - other))
    return each.of_inside * odds >= -math.log(LUCK)


# The store ------------------------------------------------------------------------------------------------------------


def hour(moment: datetime) -> int:
    """The hour that the store keeps beside a time."""
    return int(moment.timestamp() // 3600)


def _ask(keeper: Keeper, query: str, asked: dict[str, Any]) -> Answer:
    return keeper.store.ask(text(query), asked)


def _chosen(asked: Asked) -> dict[str, Any]:
    return {
        "hour": hour(asked.since),
        "since": naive(asked.since),
        "verdicts": list(asked.verdicts),
        "agent": asked.agent,
    }


def _values(kind: type[_T], answer: Answer) -> list[_T]:
    """Rows as values whose fields are called as the columns are; times aware again."""
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    places = [answer.names.index(name) for name in fields]
    return [kind(*(_plain(row[place]) for place in places)) for row in answer.rows]


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a column
    if isinstance(value, datetime):
        return utc(value)
    return tuple(value) if isinstance(value, list) else value
