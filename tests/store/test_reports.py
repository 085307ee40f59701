"""Every report beside the same numbers from plain Python: one row after the other, no sums of signs, no SQL.

Quick over 3,000 runs; over a million under the marker `kill`, because that takes minutes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from stopcause.pipeline.report import run_report
from stopcause.store import reports
from stopcause.store.duckdb_store import DuckStore
from tests.support import verdict_rows
from tests.support.by_hand import ALSO, BY_HAND, DAY_ONE, VERDICTS, Asked, Expected, Rows, by_day, new_groups
from tests.support.verdict_rows import NOW

_TIMELINES = ("run-timeline", "thread-timeline")  # these read records: tests/pipeline/test_report.py


class Held(NamedTuple):
    """A store, and the current rows of what is in it."""

    store: DuckStore
    rows: Rows


def fill(store: DuckStore, runs: int, changed: float = 1.0) -> Held:
    kept: Rows = []
    for chunk in verdict_rows.chunks(runs, changed=changed):
        store.commit([], chunk)
        kept += verdict_rows.latest(chunk)
    return Held(store, kept)


@pytest.fixture(scope="module")
def held() -> Iterator[Held]:
    with DuckStore.open(None) as store:
        yield fill(store, 3000)


def rows_of(held: Held, name: str, **asked: str) -> Expected:
    return run_report(held.store, name, {"limit": "1000000", **asked}, NOW).rows


def same(found: Any, expected: Any) -> bool:  # noqa: ANN401 - whatever a column holds
    if isinstance(expected, float) and isinstance(found, float | int):
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    return type(found) is type(expected) and bool(found == expected)


def assert_same(name: str, found: Expected, expected: Expected) -> None:
    for number, (one, other) in enumerate(zip(found, expected, strict=False)):
        wrong = [
            (column.name, mine, by_hand)
            for column, mine, by_hand in zip(reports.card(name).columns, one, other, strict=True)
            if not same(mine, by_hand)
        ]
        assert not wrong, f"{name}, row {number}: {wrong}"
    assert len(found) == len(expected), name


def understood(name: str, asked: Mapping[str, str]) -> Asked:
    parameter = reports.card(name).parameter("since")
    words = asked.get("since", parameter.default if parameter else "all") or ""
    unit = {"m": 60, "h": 3600, "d": 86400}.get(words[-1], 0)
    since = DAY_ONE if words == "all" else NOW - timedelta(seconds=int(words[:-1]) * unit)
    return Asked(since, asked.get("agent"), asked.get("environment"))


def check(held: Held, name: str, asked: Mapping[str, str]) -> int:
    expected = BY_HAND[name](held.rows, understood(name, asked))
    assert_same(name, rows_of(held, name, **asked, **ALSO.get(name, {})), expected)
    return len(expected)


# What must hold -------------------------------------------------------------------------------------------------------


def test_every_report_is_tried_by_hand() -> None:
    assert {*BY_HAND, *_TIMELINES} == set(reports.names())


@pytest.mark.parametrize("name", BY_HAND)
def test_a_report_says_what_plain_python_says(held: Held, name: str) -> None:
    windows = ({}, {"since": "90m"}, {"since": "7d"}, {"since": "all"}) if takes_since(name) else ({},)
    for window in windows:
        for more in ({}, {"agent": "agent-1"}, {"environment": "prod"}, {"agent": "agent-2", "environment": "staging"}):
            check(held, name, {**window, **more})
        assert check(held, name, {**window, "agent": "named-later"}) == 0
    assert check(held, name, {"since": "all"} if takes_since(name) and name != "attention" else {})


def takes_since(name: str) -> bool:
    return reports.card(name).parameter("since") is not None


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0", "2.0.0", "9.9.9"])
def test_groups_of_a_version_that_is_named(held: Held, version: str) -> None:
    for since in ("7d", "all"):
        asked = understood("new-groups", {"since": since})
        found = rows_of(held, "new-groups", since=since, version=version)
        assert_same("new-groups", found, new_groups(held.rows, asked, version))


@pytest.mark.parametrize(
    "zone",
    [
        *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe"),
        *("America/Havana", "Pacific/Apia", "America/St_Johns", "Pacific/Chatham", "Africa/Casablanca"),
    ],
)
def test_days_of_a_zone(held: Held, zone: str) -> None:
    for since in ("36h", "14d", "all"):
        expected = by_day(held.rows, understood("verdicts-by-day", {"since": since}), zone)
        assert_same("verdicts-by-day", rows_of(held, "verdicts-by-day", since=since, zone=zone), expected)


def test_a_day_on_which_the_clock_changes_has_23_or_25_hours() -> None:
    hours = [datetime(2026, 3, 28, tzinfo=UTC) + timedelta(hours=n) for n in range(24 * 3)]
    hours += [datetime(2026, 10, 24, tzinfo=UTC) + timedelta(hours=n) for n in range(24 * 3)]
    row = next(iter(verdict_rows.chunks(1, changed=0)))[0]
    with DuckStore.open(None) as store:
        store.commit([], [row._replace(run_id=f"r{n}", opened_at=at, last_at=at) for n, at in enumerate(hours)])
        found = run_report(store, "verdicts-by-day", {"since": "all", "zone": "Europe/Berlin"}, NOW).rows
    counted = {day.isoformat(): runs for day, runs, *_ in found}
    assert counted == {
        "2026-03-28": 23,
        "2026-03-29": 23,
        "2026-03-30": 24,
        "2026-03-31": 2,
        "2026-10-24": 22,
        "2026-10-25": 25,
        "2026-10-26": 24,
        "2026-10-27": 1,
    }


@pytest.mark.parametrize("name", ["verdicts-by-hour", "verdicts-by-day", "stop-causes", "waiting", "on-bound-missing"])
def test_the_agents_together_are_all(held: Held, name: str) -> None:
    """With the runs of no agent, which no filter names."""
    agents = {row.agent for row in held.rows}
    key, runs = (1, None) if name == "waiting" else (0, 4 if name == "on-bound-missing" else 1)

    def counted(rows: Expected) -> Counter[Any]:
        total: Counter[Any] = Counter()
        for row in rows:
            total[row[key] if name != "on-bound-missing" else row[1:3]] += 1 if runs is None else row[runs]
        return total

    parts = sum((counted(rows_of(held, name, agent=agent)) for agent in agents if agent), Counter[Any]())
    nameless = Held(held.store, [row for row in held.rows if row.agent is None])
    by_hand = counted(BY_HAND[name](nameless.rows, understood(name, {})))
    assert parts + by_hand == counted(rows_of(held, name))


def test_the_four_mixes_name_verdicts_in_one_way() -> None:
    names = ("verdicts-by-hour", "verdicts-by-day", "verdicts-by-agent", "verdicts-by-version")
    assert len({reports.card(name).columns[-9:] for name in names}) == 1
    assert [column.name for column in reports.card(names[0]).columns[-9:]] == [
        (name or "running").lower() for name in VERDICTS
    ]


def test_a_burst_and_nights_are_usual_but_a_silence_is_not() -> None:
    """A service with a burst each morning is silent until the next; after three days without one it is told."""
    row = next(iter(verdict_rows.chunks(1, changed=0)))[0]

    def told(silent_days: int) -> Expected:
        mornings = [NOW - timedelta(days=silent_days + n) for n in range(7)]
        bursts = [(day, morning + timedelta(seconds=n)) for day, morning in enumerate(mornings) for n in range(50)]
        made = [
            row._replace(run_id=f"{day}-{n}", service="nightly", opened_at=at, last_at=at)
            for n, (day, at) in enumerate(bursts)
        ]
        few = [made[0]._replace(run_id=f"few{n}", service="few") for n in range(3)]
        with DuckStore.open(None) as store:
            store.commit([], made + few)
            return run_report(store, "silent-services", {}, NOW).rows

    assert told(2) == []
    ((service, _last, usual, times, longest, runs),) = told(4)
    assert (service, usual, longest, runs) == ("nightly", 86400.0, 86400.0, 350)
    assert 3.9 < times < 4.1


def test_a_wait_needs_nobody_until_its_grace_is_over() -> None:
    row = next(iter(verdict_rows.chunks(1, changed=0)))[0]._replace(verdict="WAITING_UNROUTED", reason="owner")
    ages = {"young": 60, "old": 180, "ahead": -60}  # a clock that runs ahead grants no time
    made = [
        row._replace(run_id=name, fingerprint=name, opened_at=at, stopped_at=at, last_at=at)
        for name, at in ((name, NOW - timedelta(seconds=old)) for name, old in ages.items())
    ]
    with DuckStore.open(None) as store:
        store.commit([], made)
        found = {grace: rows_of(Held(store, made), "attention", grace=grace) for grace in ("2m", "0s", "1h")}
    assert {grace: {each[1] for each in rows} for grace, rows in found.items()} == {
        "2m": {"old", "ahead"},
        "0s": {"young", "old", "ahead"},
        "1h": {"ahead"},
    }


# Cards ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", reports.names())
def test_a_card_fits_its_text(name: str) -> None:
    card = reports.card(name)
    named = {each.name for each in card.parameters}
    derived = {"hour", "now", "day_starts", "day_names", "whole_hours"}
    assert card.name == name
    assert reports.used(card.text) - derived == named - {"zone"}
    assert len({each.name for each in card.columns}) == len(card.columns)
    assert all(each.meaning for each in card.parameters)
    assert all(each.meaning for each in card.columns)


def test_parameters_are_used_and_not_commented() -> None:
    assert reports.used("-- $none\nSELECT $one, '$' -- $two\nFROM t WHERE a = $one AND b = $three_x") == {
        "one",
        "three_x",
    }


@pytest.mark.kill
def test_a_million_runs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same over a million runs, in a store on disk with little memory."""
    path = tmp_path_factory.mktemp("large") / "s.duckdb"
    with DuckStore.open(path, memory_limit="600MB") as store:
        large = fill(store, 1_000_000, changed=0.1)
        for name in BY_HAND:
            assert check(large, name, {})
            if takes_since(name):
                check(large, name, {"since": "7d", "agent": "agent-1"})
