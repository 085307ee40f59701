"""Runs that stay open: they wait without stopping, or an engine outside keeps them and another process goes on."""

from __future__ import annotations

import gc
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import stopcause
from stopcause.receipts import capture, model
from stopcause.receipts.causes import Rank
from stopcause.receipts.run import Run, current
from stopcause.receipts.testing import Recorded, recorded
from stopcause.receipts.vocabulary import Boundary, StopCause
from tests.support.captured import verdict_of
from tests.support.spooled import left, started, stopped, taken_in, verdicts

BEGAN_NS = 1_764_000_000_000_000_000


def approvals(receipts: Recorded) -> list[model.Approval]:
    return [each.approval for each in receipts.records if isinstance(each, model.ApprovalUpdated)]


# Waits of a run that goes on ------------------------------------------------------------------------------------------


def test_a_wait_is_on_record_while_the_run_is_open() -> None:
    with recorded(route={"owner": "team:a", "due_s": 60}) as receipts, stopcause.run("a") as run:
        run.waiting("q-1", "input_required", resume_token="w-1", at_once=True)
        (asked,) = approvals(receipts)

        assert (asked.state, asked.owner, asked.resume_token) == ("routed", "team:a", "w-1")
        assert asked.deadline is not None
        assert verdict_of(receipts) == ("WAITING", "input_required")


@pytest.mark.parametrize(
    ("decision", "verdict"),
    [("approved", ("FALSE_COMPLETE", "no_contract")), ("denied", ("FALSE_COMPLETE", "denied"))],
)
def test_what_became_of_it_is_on_record_at_once(receipts: Recorded, decision: str, verdict: tuple[str, str]) -> None:
    with stopcause.run("a") as run:
        run.waiting("q-1", "tool_call", tool="pay", at_once=True)
        run.decided("q-1", decision)
        if decision == "approved":
            run.executed("q-1")
        told = approvals(receipts)

        assert [(each.state, each.decision, each.executed) for each in told[:2]] == [
            ("requested", None, None),
            ("decided", decision, None),
        ]
        assert [each.executed for each in told[2:]] == [True] * (decision == "approved")
    assert receipts.stopped.stop_cause == "natural"
    assert verdict_of(receipts) == verdict
    assert [each.seq for each in receipts.records] == list(range(1, len(receipts.records) + 1))


def test_a_wait_that_nobody_answered_in_time_is_expired(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.waiting("q-1", at_once=True)
        run.expired("q-1")
        run.say(StopCause.APPROVAL_EXPIRED, Rank.SIGNAL, Boundary.CALLBACK)

    assert [each.state for each in approvals(receipts)] == ["requested", "expired"]
    assert verdict_of(receipts) == ("BOUNDED_STOP", "approval_expired")


def test_a_run_that_goes_on_after_it_expired_does_not_wait(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.waiting("q-1", at_once=True)
        run.expired("q-1")

    assert receipts.stopped.stop_cause == "natural"


def test_what_is_no_wait_of_its_own_cannot_expire(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.expired("q-1")

    assert [(each.code, each.where) for each in receipts.stopped.findings or ()] == [("refused_value", "expired")]


def test_a_wait_without_an_id_keeps_the_one_that_it_was_given(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.waiting("q-1")
        run.waiting(at_once=True)
        run.waiting("q-1", "input_required")  # said again: it goes to the end
        (asked,) = approvals(receipts)

    assert {each.approval_id for each in receipts.stopped.approvals or ()} == {"q-1", asked.approval_id}


@pytest.mark.parametrize("asked_ns", ["yesterday", 1.5, True, -1, 10**30])
def test_a_moment_that_is_none_costs_only_itself(receipts: Recorded, asked_ns: Any) -> None:  # noqa: ANN401 - wrong ones
    with stopcause.run("a") as run:
        run.waiting("q-1", at_once=True, asked_ns=asked_ns)

    assert [each.approval_id for each in approvals(receipts)] == ["q-1"]
    assert receipts.stopped.stop_cause == "approval_pending"
    assert receipts.stopped.findings == (model.Finding(code="refused_value", where="waiting.asked_ns"),)


def test_a_wait_that_is_not_at_once_has_no_record_of_its_own(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.waiting("q-1")
        run.decided("q-1", "approved")

    assert approvals(receipts) == []


def test_a_finding_of_an_open_run_is_on_record_at_once(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.note("task_failed", "ValueError")
        sign = receipts.records[-1]

        assert isinstance(sign, model.RunProgress)
        assert [(each.code, each.where) for each in sign.findings or ()] == [("task_failed", "ValueError")]


def test_after_its_receipt_a_run_asks_and_notes_nothing(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        pass
    run.waiting("q-1", at_once=True)
    run.note("task_failed")

    assert [type(each) for each in receipts.records] == [model.RunStarted, model.RunStopped]
    assert verdict_of(receipts) == ("FALSE_COMPLETE", "no_contract")


def test_what_ran_was_another_run_s_than_the_one_that_is_resumed(receipts: Recorded) -> None:
    with stopcause.run("a", resumes="r-2") as run:
        run.executed("q-1", "r-1")
        run.executed("q-2")

    told = [each for each in receipts.records if isinstance(each, model.ApprovalUpdated)]
    assert [(each.run_id, each.approval.approval_id) for each in told] == [("r-1", "q-1"), ("r-2", "q-2")]


# Durable runs ---------------------------------------------------------------------------------------------------------


def durable(run_id: str) -> Run:
    run = capture.begin("stopcause.engine", "engine", "1.0", "a")
    run.identify(run_id)
    run.is_durable = True
    return run


def test_a_durable_run_names_no_process_and_no_order(receipts: Recorded) -> None:
    run = durable("w-1").start()
    run.end()
    start, stop = receipts.records

    assert isinstance(start, model.RunStarted)
    assert (start.process, start.lease_s, start.seq, stop.seq) == (None, 300, None, None)


def test_another_process_ends_what_one_began(receipts: Recorded) -> None:
    run = durable("w-1").go_on_here(BEGAN_NS)
    run.end()
    (stop,) = receipts.records

    assert isinstance(stop, model.RunStopped)
    assert stop.started_at == datetime.fromtimestamp(BEGAN_NS / 1e9, UTC)
    assert stop.duration_s == pytest.approx((stop.at - stop.started_at).total_seconds(), abs=0.001)
    assert stop.findings is None


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_durable_run_gives_signs_of_life_while_a_process_has_it(is_ours: bool) -> None:
    with recorded(lease_s=0.3) as found:
        run = durable("w-1")
        run = run.start() if is_ours else run.go_on_here(BEGAN_NS)
        time.sleep(0.5)
        signs = [each.sign for each in found.records if isinstance(each, model.RunProgress)]
        del run
        gc.collect()
        time.sleep(0.15)
        before = len(found.records)
        time.sleep(0.3)

        assert "heartbeat" in signs
        assert len(found.records) == before  # whoever had it has let it go: it lives on, elsewhere


def test_the_death_of_a_process_is_not_that_of_a_durable_run(tmp_path: Path) -> None:
    store, spool = tmp_path / "s.duckdb", tmp_path / "spool"
    here, engine_s = started("r-1"), json.loads(started("r-2"))
    del engine_s["process"]
    left(spool, here, json.dumps(engine_s).encode(), stopped("r-3"))
    taken_in(store, spool)

    assert verdicts(store) == {
        "r-1": "FAILED process_lost",
        "r-2": "RUNNING running",
        "r-3": "FALSE_COMPLETE no_contract",
    }


def test_what_an_engine_runs_again_is_not_recorded_again(receipts: Recorded) -> None:
    run = durable("w-1").start()
    run.writer = None
    token = current.set(run)
    inner = capture.begin("stopcause.other", "other", "1.0", "b").start()
    inner.end()
    current.reset(token)

    assert [each.run_id for each in receipts.records if isinstance(each, model.RunStarted)] == ["w-1"]
    assert len(receipts.records) == 1
