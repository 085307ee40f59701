"""Reports through the real pipeline: lines in, waits and timelines out; what is refused; never a resume token."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.classifier.policy import policy_from_mapping
from stopcause.errors import NotFoundError, ReportError
from stopcause.pipeline import report
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.report import Table, run_report
from stopcause.render import report as forms
from stopcause.render.pen import Pen
from stopcause.store import reports

T0 = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)
NOW = T0 + timedelta(hours=3)
CANARY = "CANARY-resume-me"
POLICY = policy_from_mapping(
    {
        "agents": [{"match": {"agent": "refund-*"}, "stage": "enforce", "owner": "team:pay"}],
        "routes": [{"match": {"tool": "refund_issue"}, "owner": "team:treasury", "due": "30m"}],
    }
)


def line(kind: str, run_id: str, after_s: float, **fields: object) -> bytes:
    at = (T0 + timedelta(seconds=after_s)).isoformat()
    said = {"schema": "stopcause/1", "kind": kind, "run_id": run_id, "at": at, **fields}
    return json.dumps(said).encode()


def approval(name: str, **fields: object) -> dict[str, object]:
    return {"approval_id": name, "resume_token": f"{CANARY}-{name}", **fields}


def waits() -> list[bytes]:
    """A routed wait that is overdue, one of which nobody is named, one that was answered, one that is months old."""
    who = {"agent": "refund-agent", "thread_id": "thread-31c8f4", "stop_cause": "approval_pending"}
    routed = approval("a-routed", kind="tool_call", tool="refund_issue")
    old = datetime(2026, 3, 1, tzinfo=UTC) - T0
    return [
        line("run.stopped", "r-routed", 0, **who, approvals=[routed]),
        line("run.stopped", "r-bare", 60, agent="chat-agent", stop_cause="input_pending", approvals=[approval("a-b")]),
        line("run.stopped", "r-asked", 120, **who, approvals=[approval("a-asked", owner="team:x", tool="ledger_post")]),
        line("approval.updated", "r-asked", 180, approval=approval("a-asked", state="decided", decision="approved")),
        line("run.started", "r-again", 200, resumes_run_id="r-asked", answers=["a-asked"], thread_id="thread-31c8f4"),
        line("run.stopped", "r-again", 260, stop_cause="natural", thread_id="thread-31c8f4", steps=2),
        line("run.stopped", "r-old", old.total_seconds(), agent="chat-agent", stop_cause="external_pending"),
    ]


@pytest.fixture(scope="module")
def keeper() -> Iterator[Keeper]:
    with Keeper.open(None, POLICY, NOW) as opened:
        assert not opened.accept(waits(), NOW).errors
        opened.settle(NOW)
        yield opened


def run(keeper: Keeper, name: str, **asked: str) -> Table:
    return run_report(keeper.store, name, asked, NOW)


def objects(table: Table) -> list[dict[str, Any]]:
    return [dict(zip([each.name for each in table.columns], row, strict=True)) for row in table.rows]


# Waits ----------------------------------------------------------------------------------------------------------------


def test_what_waits_is_listed_however_old_and_what_is_answered_is_not(keeper: Keeper) -> None:
    found = {each["run_id"]: each for each in objects(run(keeper, "waiting"))}

    assert set(found) == {"r-routed", "r-bare", "r-old"}
    assert found["r-routed"]["owner"] == "team:treasury"
    assert found["r-routed"]["due"] == T0 + timedelta(minutes=30)
    assert found["r-routed"]["missing"] == ["overdue"]
    assert found["r-bare"]["missing"] == ["owner", "deadline"]
    assert found["r-old"]["age_s"] == (NOW - datetime(2026, 3, 1, tzinfo=UTC)).total_seconds()
    assert found["r-old"]["approval_id"] is None


def test_waiting_agrees_with_the_keeper(keeper: Keeper) -> None:
    listed = [(facts.run_id, wait.approval_id) for facts, _ in keeper.waits(NOW) for wait in facts.waits]
    assert sorted(map(str, listed)) == sorted(
        str((each["run_id"], each["approval_id"])) for each in objects(run(keeper, "waiting"))
    )


def test_what_is_overdue_says_how_late(keeper: Keeper) -> None:
    (found,) = objects(run(keeper, "overdue"))
    assert (found["approval_id"], found["late_s"], found["owner"]) == ("a-routed", 9000.0, "team:treasury")


def test_a_wait_is_timed_to_its_decision(keeper: Keeper) -> None:
    found = {each["resolution"]: each for each in objects(run(keeper, "wait-times", since="all"))}
    assert {name: each["waits"] for name, each in found.items()} == {"open": 3, "answered": 1}
    assert found["answered"]["p50_s"] == 60.0


# Timelines ------------------------------------------------------------------------------------------------------------


def test_the_timeline_of_a_run_is_found_by_the_end_of_its_name(keeper: Keeper) -> None:
    table = run(keeper, "run-timeline", run="asked")
    assert table.asked["run"] == "r-asked"
    assert [(each["kind"], each["what"], each["about"]) for each in objects(table)] == [
        ("run.stopped", "approval_pending", "a-asked"),
        ("approval.updated", "approved", "a-asked"),
    ]


def test_the_timeline_of_a_thread_goes_through_its_runs(keeper: Keeper) -> None:
    table = run(keeper, "thread-timeline", thread="31c8f4")
    assert [(each["run_id"], each["kind"]) for each in objects(table)] == [
        ("r-routed", "run.stopped"),
        ("r-asked", "run.stopped"),
        ("r-asked", "approval.updated"),
        ("r-again", "run.started"),
        ("r-again", "run.stopped"),
    ]
    assert objects(table)[3]["what"] == "resumes=r-asked"


def test_a_timeline_says_what_each_kind_of_record_says() -> None:
    issuer = {"type": "destination", "id": "billing-db"}
    outcome = {"outcome_id": "o1", "contract": "invoice", "check": "exists", "polarity": "refuted", "issuer": issuer}
    lines = [
        line("run.started", "r", 0, agent="a", agent_version="2.4.1", seq=1),
        line("run.progress", "r", 5, sign="tool_result", seq=3),
        line("run.progress", "r", 9, sign="heartbeat", seq=2),  # by a clock that jumped: `seq` says the order
        line("run.stopped", "r", 10, stop_cause="tool_failure", error={"type": "TimeoutError", "tool": "pay"}, seq=4),
        line("outcome.recorded", "r", 20, outcome={**outcome, "strength": "read_back"}, seq=5),
        line("run.died", "r", 30, attempt=2, exit_code=137),
    ]
    with Keeper.open(None, POLICY, NOW) as keeper:
        keeper.accept(lines[::-1], NOW)
        found = objects(run(keeper, "run-timeline", run="r"))
    assert [(each["attempt"], each["kind"], each["what"], each["about"], each["by"]) for each in found] == [
        (1, "run.started", None, "a/2.4.1", None),
        (1, "run.progress", "heartbeat", None, None),
        (1, "run.progress", "tool_result", None, None),
        (1, "run.stopped", "tool_failure", "pay/TimeoutError", None),
        (1, "outcome.recorded", "refuted/read_back", "invoice/exists", "destination:billing-db"),
        (2, "run.died", "exit_code=137", None, None),
    ]


@pytest.mark.parametrize(
    ("name", "asked"), [("run-timeline", {"run": "nobody"}), ("thread-timeline", {"thread": "nobody"})]
)
def test_a_run_or_thread_that_is_not_there_is_told(keeper: Keeper, name: str, asked: dict[str, str]) -> None:
    with pytest.raises(NotFoundError, match=r"No (run|thread) "):
        run(keeper, name, **asked)


def test_a_thread_that_several_names_begin_like_is_told() -> None:
    lines = [line("run.stopped", f"r{n}", 0, stop_cause="natural", thread_id=f"t-{n}") for n in range(2)]
    with Keeper.open(None, POLICY, NOW) as keeper:
        keeper.accept(lines, NOW)
        with pytest.raises(NotFoundError, match="Several threads"):
            run(keeper, "thread-timeline", thread="t-")
        assert len(run(keeper, "thread-timeline", thread="t-1").rows) == 1


# What must hold of all ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", reports.names())
def test_no_report_prints_a_resume_token(keeper: Keeper, name: str) -> None:
    asked = {"run-timeline": {"run": "r-routed"}, "thread-timeline": {"thread": "thread-31c8f4"}}.get(name, {})
    table = run(keeper, name, **asked)
    found = report.found(table)
    printed = [*forms.report_screen(found, Pen()), *forms.report_csv(found), *map(str, forms.report_objects(found))]
    assert CANARY not in "".join(printed)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert [each.name for each in table.columns] == keeper.store.ask(*_as_asked(keeper, name, asked)).names


def _as_asked(keeper: Keeper, name: str, asked: dict[str, str]) -> tuple[str, dict[str, Any]]:
    card = reports.card(name)
    values = report.understood(card, asked)
    covered = report._window(card, values, NOW, None)
    bound = report._bound(keeper.store, values, covered)
    return card.text, {each: bound[each] for each in reports.used(card.text)}


def test_the_three_forms_have_the_same_rows(keeper: Keeper) -> None:
    found = report.found(run(keeper, "waiting"))
    lines = list(forms.report_objects(found))
    head, *sheet = [line.removesuffix("\r") for line in forms.report_csv(found)]
    screen = forms.report_screen(found, Pen(zone=UTC))[3:]

    assert head.split(",") == list(lines[0])
    assert [row.split(",")[1] for row in sheet] == [each["run_id"] for each in lines]
    assert [row.split()[0] for row in screen] == [each["run_id"] for each in lines]


def test_times_are_aware_and_in_utc(keeper: Keeper) -> None:
    for each in objects(run(keeper, "waiting")):
        assert each["waits_since"].tzinfo is UTC


def test_the_limit_says_that_there_are_more(keeper: Keeper) -> None:
    first = run(keeper, "waiting", limit="2")
    assert (len(first.rows), first.more) == (2, True)
    assert first.rows == run(keeper, "waiting").rows[:2]
    assert not run(keeper, "waiting", limit="3").more


def test_a_window_ends_at_the_newest_run_where_that_is_older() -> None:
    with Keeper.open(None, POLICY, NOW) as keeper:
        keeper.accept([line("run.stopped", "r1", -86400, stop_cause="natural")], NOW)
        said = {"schema": "stopcause/1", "kind": "triage.updated", "group": "abc", "at": T0.isoformat()}
        assert keeper.accept([json.dumps(said).encode()], NOW).accepted == 1  # people said something since
        table = run(keeper, "verdicts-by-agent", since="1h")
    assert (table.window.by_newest, len(table.rows)) == (True, 1)
    assert table.window.newest_at == T0 - timedelta(days=1)


def test_a_clock_that_runs_ahead_does_not_move_the_window() -> None:
    lines = [line("run.stopped", f"r{n}", after, stop_cause="natural") for n, after in enumerate((0, 10**6))]
    with Keeper.open(None, POLICY, NOW) as keeper:
        keeper.accept(lines, NOW)
        assert run(keeper, "stop-causes", since="1h").window.since == T0 - timedelta(hours=1)


def test_an_empty_store_has_empty_reports() -> None:
    with Keeper.open(None, POLICY, NOW) as keeper:
        for card in report.cards():
            if not any(each.default == reports.REQUIRED for each in card.parameters):
                table = run(keeper, card.name)
                assert table.rows == []
                assert card.empty in " ".join(forms.report_screen(report.found(table), Pen()))


# Parameters -----------------------------------------------------------------------------------------------------------


class Untouched:
    """A store that must not be asked anything."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was read before the parameters were checked")


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("waiting", {"since": "24h"}, "no parameter of that name. It takes agent, environment, limit"),
        ("costs", {"sinc": "24h"}, "Did you mean since"),
        ("costs", {"since": "0"}, "since is zero; give 30m, 24h, 7d or all"),
        ("costs", {"since": "0h"}, "since is a number with a unit; give"),
        ("costs", {"since": ""}, "since is empty"),
        ("costs", {"since": "-5m"}, "since is a number with a unit"),
        ("costs", {"since": "99999d"}, "since is a number with a unit"),
        ("costs", {"limit": "-1"}, "limit is a number below zero; give a whole number from 1 to 1000000"),
        ("costs", {"limit": "0"}, "limit is zero"),
        ("costs", {"limit": "ten"}, "limit is a text of 3 letters"),
        ("costs", {"limit": "1.5"}, "limit is a number with a fraction"),
        ("costs", {"limit": "9" * 5000}, "limit is a whole number"),
        ("costs", {"agent": "a b"}, "agent is a text of 3 letters; give a name without spaces"),
        ("costs", {"agent": ""}, "agent is empty"),
        ("verdicts-by-day", {"zone": "Mars/Base"}, "zone is a text of 9 letters; give local, UTC, or a name"),
        ("verdicts-by-day", {"zone": "Europe"}, "zone is a text of 6 letters"),
        ("verdicts-by-day", {"zone": "../../etc/passwd"}, "zone is a text of 16 letters"),
        ("verdicts-by-day", {"zone": "Europe/Berlin\x00"}, "zone is a text"),
        ("silent-services", {"times": "0"}, "times is zero; give a number above 0"),
        ("silent-services", {"times": "nan"}, "times is a text of 3 letters"),
        ("attention", {"grace": "2"}, "grace is a whole number; give 0s, 30s, 5m"),
        ("run-timeline", {}, "run is missing: the run"),
        ("run-timeline", {"run": ""}, "run is empty"),
        ("thread-timeline", {"agent": "a"}, "It takes thread, limit"),
    ],
)
def test_a_wrong_parameter_is_told_before_anything_is_read(name: str, asked: dict[str, str], said: str) -> None:
    with pytest.raises(ReportError) as told:
        run_report(Untouched(), name, asked, NOW)  # type: ignore[arg-type]
    assert said in str(told.value)
    for value in asked.values():
        assert len(value) < 4 or value not in str(told.value).partition(";")[0]


@pytest.mark.parametrize(("name", "near"), [("waitng", "waiting"), ("verdict-by-hour", "verdicts-by-hour")])
def test_an_unknown_report_is_told_with_what_is_near(name: str, near: str) -> None:
    with pytest.raises(NotFoundError, match=f"Did you mean {near}"):
        report.card_of(name)


@given(st.text(max_size=30))
def test_no_text_is_an_error_of_another_kind(text: str) -> None:
    for name in ("verdicts-by-day", "silent-services", "attention", "run-timeline"):
        card = reports.card(name)
        for parameter in card.parameters:
            try:
                report.understood(
                    card, {"run": "r", parameter.name: text} if name == "run-timeline" else {parameter.name: text}
                )
            except ReportError as error:
                assert str(error).startswith(parameter.name)  # noqa: PT017 - most texts are refused, some are not


def test_parameters_are_bound_and_not_pasted(keeper: Keeper) -> None:
    for text in ("'", "';DROP", "$since", '"', "%"):
        assert run(keeper, "verdicts-by-agent", agent=text, since="all").rows == []
    assert run(keeper, "verdicts-by-agent", since="all").rows


# Days -----------------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(
        ["Europe/Berlin", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "Asia/Kolkata", "America/Havana"]
    ),
    st.datetimes(datetime(1990, 1, 1), datetime(2035, 1, 1)),  # noqa: DTZ001 - hypothesis draws naive ones
    st.integers(0, 10**7),
)
def test_every_moment_is_in_the_day_that_its_zone_says(zone: str, naive: datetime, seconds: int) -> None:
    info, at = ZoneInfo(zone), naive.replace(tzinfo=UTC)
    starts = report.day_starts(at, at + timedelta(seconds=seconds), info)
    for moment in (at, at + timedelta(seconds=seconds)):
        assert starts[max(start for start in starts if start <= moment)] == moment.astimezone(info).date()


def test_a_day_that_a_zone_left_out_is_left_out() -> None:
    first = datetime(2011, 12, 29, 12, tzinfo=UTC)
    days = report.day_starts(first, first + timedelta(days=2), ZoneInfo("Pacific/Apia"))
    assert date(2011, 12, 30) not in days.values()


def test_local_days_are_those_of_the_machine(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours ahead
    time.tzset()
    try:
        local = run(keeper, "verdicts-by-day", since="12h").rows
    finally:
        monkeypatch.undo()
        time.tzset()
    assert local == run(keeper, "verdicts-by-day", since="12h", zone="Pacific/Kiritimati").rows
    assert [row[0] for row in local] == [date(2026, 11, 28)]
