"""The doctor on what is in a store: lost records, open runs, clocks, silence, bounds."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from stopcause.classifier import rules
from stopcause.pipeline.doctor import visit
from stopcause.pipeline.keeper import journal_folder
from stopcause.receipts.journal import Journal
from stopcause.render.caller import Hint
from stopcause.render.doctor import State
from tests.support.visits import LIMIT, NOW, check, keep, line, visited, well

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return well(tmp_path / "s.duckdb")


def test_records_that_writers_lost_are_bad(store: Path) -> None:
    keep(store, line(run_id="r2", seq=5, dropped=7))

    found = check(store, "gaps")

    assert (found.state, found.do) == (State.BAD, Hint(("explain",), "", "r2"))
    assert "writers lost 7 records" in found.said


def test_holes_in_the_numbers_of_a_run_are_bad_and_another_writer_makes_none(store: Path) -> None:
    keep(store, line(run_id="r2", seq=1, adapter="a"), line("run.progress", "r2", seq=40, sign="output", adapter="b"))
    assert check(store, "gaps").state is State.OK
    keep(store, line("run.progress", "r2", seq=4, sign="output", adapter="a"))

    found = check(store, "gaps")

    assert found.state is State.BAD
    assert "2 numbers missing between the records of 1 run" in found.said


def test_lines_are_read_only_of_so_many_records(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(store, line(run_id="r2", ago_s=5 * 3600, dropped=7))
    monkeypatch.setattr("stopcause.pipeline.doctor._MOST_LINES", 2)

    found = check(store, "gaps")

    assert "of the last 6h" in found.said or "the last 6h" in found.said


def test_runs_without_an_end_are_said(store: Path) -> None:
    keep(store, line("run.started", "r2", 7200, lease_s=60, limits=LIMIT), line("run.started", "r3", limits=LIMIT))

    found = check(store, "open")

    assert found.state is State.LOOK
    assert "1 run without an end beyond the lease, 1 run without an end or a lease" in found.said


def test_a_lease_that_runs_is_none_of_them_until_it_is_over(store: Path) -> None:
    keep(store, line("run.started", "r2", 10, lease_s=60, limits=LIMIT))

    assert check(store, "open").state is State.OK
    later = visit(store, store.parent, None, NOW + timedelta(minutes=2))  # and nobody has settled the store
    assert next(each for each in later.checks if each.name == "open").state is State.LOOK


def test_kinds_and_lines_of_a_newer_version_are_said(store: Path) -> None:
    keep(store, line("run.dreamt", "r2"))
    kinds = check(store, "kinds")
    with Journal(journal_folder(store)) as newer:
        newer.append([b'{"schema":"stopcause/9","kind":"run.slept","run_id":"r1"}'])
    keep(store)
    both = check(store, "kinds")

    assert "1 record of kinds that this version does not know" in kinds.said
    assert "1 line of the journal's end that this version cannot read" in both.said
    assert both.state is State.LOOK


def test_a_record_of_the_future_is_bad(store: Path) -> None:
    keep(store, line(run_id="r2", ago_s=-7200))

    found = check(store, "clock")

    assert (found.state, found.do) == (State.BAD, Hint(("explain",), "", "r2"))
    assert "1 record of the future, up to 2h ahead" in found.said


def made_at(ago_s: float) -> str:
    """A record id as a writer makes it: UUIDv7."""
    milliseconds = int((NOW - timedelta(seconds=ago_s)).timestamp() * 1000)
    return f"{milliseconds >> 16:08x}-{milliseconds & 0xFFFF:04x}-7000-8000-000000000000"


def test_a_clock_that_went_back_is_said(store: Path) -> None:
    keep(
        store,
        line("run.progress", "r2", 100, sign="output", record_id=made_at(100)),
        line("run.progress", "r2", 103, sign="output", record_id=made_at(95)),  # within clock_skew
    )
    assert check(store, "clock").state is State.OK
    keep(store, line(run_id="r2", ago_s=300, record_id=made_at(90)))

    found = check(store, "clock")

    assert (found.state, found.do) == (State.LOOK, Hint(("explain",), "", "r2"))
    assert "1 time a writer's clock went back" in found.said


def test_records_that_were_old_when_they_came_are_said(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    keep(path, line(ago_s=3 * 86400))

    assert "the newest record was 3d old when it came" in check(path, "clock").said


def test_a_service_that_is_silent_is_named_and_one_that_sleeps_at_night_is_not(store: Path) -> None:
    minute, day = 60, 86400
    often = [line(run_id=f"o{i}", ago_s=2 * 3600 + i * 10 * minute, service="often") for i in range(40)]
    nightly = [
        line(run_id=f"n{i}.{k}", ago_s=day - 3600 + i * day + k * minute, service="nightly")
        for i in range(6)
        for k in range(30)
    ]
    keep(store, *often, *nightly)

    found = check(store, "silent")

    assert found.state is State.LOOK
    assert found.said.startswith("no record of often 2h:")
    assert found.do == Hint(("report",), "", "silent-services")
    assert "nightly" not in found.said


def test_runs_without_a_bound_are_said(store: Path) -> None:
    keep(store, line(run_id="r2", limits=None))

    assert "1 run of 1 agent declared no limit" in check(store, "bounds").said


def test_runs_that_could_not_be_judged_are_bad(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def match(facts: Any, _gone: object) -> None:  # noqa: ANN401
        if facts.run_id == "r2":
            raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(rules, "RULES", (rules.RULES[0]._replace(match=match), *rules.RULES))
        keep(store, line(run_id="r2"), line("run.dreamt", "r3"))

    found = check(store, "judging")

    assert (found.state, found.do) == (State.BAD, Hint(("explain",), "", "r2"))


def test_verdicts_of_another_policy_are_said(store: Path) -> None:
    policy = store.parent / "policy.toml"
    policy.write_text('[policy]\nid = "prod"\nversion = "2"\n', "utf-8")

    found = {each.name: each for each in visited(store, policy).checks}

    assert "prod 2, digest " in found["policy"].said
    assert found["verdicts"].state is State.LOOK
    assert "1 verdict by another policy" in found["verdicts"].said


def test_a_policy_that_cannot_be_used_is_bad_and_costs_no_other_check(store: Path) -> None:
    policy = store.parent / "policy.toml"
    policy.write_text("[policy\n", "utf-8")

    found = {each.name: each for each in visited(store, policy).checks}

    assert (found["policy"].state, found["policy"].do) == (State.BAD, Hint(("policy", "check")))
    assert {"gaps", "clock", "bounds"} <= found.keys()
    assert next(each.state for each in visited(store, store.parent / "gone.toml").checks if each.name == "policy") is (
        State.BAD
    )
