"""Thread verdicts: the order of the four, what is open, and which end of a run stands."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from stopcause.agui.values import UNNAMED, Begun, Input, Raised, RunSeen, Thread
from stopcause.agui.verdicts import Judged, ThreadVerdict, judge_thread
from stopcause.agui.words import Ending, State
from stopcause.classifier import engine
from stopcause.classifier.policy import DEFAULT_POLICY, Policy, policy_from_mapping
from stopcause.classifier.verdict import Missing, VerdictName
from stopcause.receipts import codec
from tests.agui.seen import NOON, THREAD, asked, gives_up, run, told_of, yes

HOUR = timedelta(hours=1)
ROUTED = asked("i-1", "tc-1", owner="team:ops", due=NOON + 2 * HOUR)
ASKS = run("r1", asks=(ROUTED,))


def verdict_of(
    *runs: RunSeen, now: datetime = NOON + HOUR, policy: Policy = DEFAULT_POLICY
) -> tuple[list[Judged], ThreadVerdict]:
    ledger, told = told_of(runs)
    return judge_thread(ledger.threads[THREAD], told, policy, now)


# The four, in their order ---------------------------------------------------------------------------------------------


def test_going_round_comes_before_a_call_without_leave() -> None:
    asks = tuple(run(f"r{number}", asks=(ROUTED, asked("i-2", "tc-2"))) for number in (1, 2, 3))
    bypassing = run("r4", Ending.ERROR, results=("tc-2",))

    _, before = verdict_of(*asks, bypassing)
    _, single = verdict_of(asks[0], bypassing)

    assert (before.verdict, before.reason) == (VerdictName.STUCK, "loop_guard")
    assert (single.verdict, single.reason) == (VerdictName.UNCERTAIN, "approval_bypassed")
    assert [each.interrupt_id for each in before.open] == ["i-1"]


def test_a_call_without_leave_comes_before_what_is_open() -> None:
    _, thread = verdict_of(run("r1", asks=(ROUTED, asked("i-2", "tc-2"))), run("r2", Ending.ERROR, results=("tc-2",)))

    assert (thread.verdict, [each.interrupt_id for each in thread.open]) == (VerdictName.UNCERTAIN, ["i-1"])


def test_what_is_open_comes_before_how_the_latest_run_ended() -> None:
    judged, thread = verdict_of(ASKS, run("r2", Ending.ERROR))

    assert [each.verdict and each.verdict.verdict for each in judged] == [VerdictName.WAITING, VerdictName.FAILED]
    assert (thread.verdict, thread.reason, thread.run_id) == (VerdictName.WAITING, "tool_call", "r2")


def test_where_nothing_is_open_the_latest_run_says_how_it_ended() -> None:
    _, thread = verdict_of(ASKS, run("r2", Ending.SUCCESS, yes("i-1")), run("r3", Ending.CANCELLED))

    assert (thread.verdict, thread.reason, thread.run_id) == (VerdictName.BOUNDED_STOP, "caller_abort", "r3")


@pytest.mark.parametrize(("idle", "verdict"), [(299, VerdictName.UNCERTAIN), (300, VerdictName.STUCK)])
def test_a_stream_that_fell_silent_before_it_broke_off_is_stuck(idle: int, verdict: VerdictName) -> None:
    ended = NOON + timedelta(seconds=idle)
    silent = run("r1", Ending.TRUNCATED, began_at=NOON, ended_at=ended, last_event_at=NOON, idle_s=float(idle))

    _, thread = verdict_of(silent)

    assert thread.verdict is verdict


def test_a_run_that_nobody_gives_an_id_is_judged_like_any_other() -> None:
    judged, thread = verdict_of(run(UNNAMED, Ending.REJECTED), run(UNNAMED, Ending.REJECTED, knows_input=False))

    assert [each.verdict and each.verdict.verdict for each in judged] == [VerdictName.UNCERTAIN]
    assert (thread.verdict, thread.reason) == (VerdictName.UNCERTAIN, "stream_rejected")


def test_a_thread_of_which_no_record_was_kept_is_nobody_s() -> None:
    raised = (Raised("r1", asked("i-1")),)
    _, thread = judge_thread(Thread(THREAD, "r1", raised), [], DEFAULT_POLICY, NOON)

    assert (thread.verdict, thread.reason, thread.run_id) == (VerdictName.WAITING_UNROUTED, "owner", None)
    assert thread.open[0].missing == (Missing.OWNER, Missing.DEADLINE)


# What is open ---------------------------------------------------------------------------------------------------------


def test_what_is_lost_lacks_something_to_resume_it_by() -> None:
    _, thread = verdict_of(ASKS, run("r2"))

    (wait,) = thread.open
    assert (wait.state, wait.missing, wait.resume_token) == (State.LOST, (Missing.RESUME_TOKEN,), None)
    assert (wait.owner, wait.deadline, wait.tool) == ("team:ops", NOON + 2 * HOUR, None)


def test_a_store_knows_that_nothing_resumes_what_is_lost() -> None:
    ledger, told = told_of([ASKS, run("r2")])
    records = [codec.read_value(draft) for each in told for draft in each.drafts]

    verdicts = {each.run_id: each for each in engine.judge_all(records, DEFAULT_POLICY, NOON)}  # type: ignore[arg-type]

    assert ledger.threads[THREAD].raised[0].state is State.LOST
    assert verdicts["r1"].verdict is VerdictName.WAITING_UNROUTED
    assert verdicts["r1"].missing == (Missing.RESUMABLE_TARGET,)


def test_an_open_wait_names_its_paused_state() -> None:
    _, thread = verdict_of(ASKS)

    (wait,) = thread.open
    assert (wait.run_id, wait.resume_token, wait.missing) == ("r1", "t1/r1/i-1", ())
    assert wait.requested_at == ASKS.ended_at


@pytest.mark.parametrize("on_expiry", ["STUCK", "BOUNDED_STOP"])
def test_the_policy_says_whether_an_expiry_was_planned_for(on_expiry: str) -> None:
    policy = policy_from_mapping({"routes": [{"owner": "team:ops", "on_expiry": on_expiry}]})
    asks = run("r1", asks=(asked("i-1", expires_at=NOON + timedelta(minutes=30)),))

    _, thread = verdict_of(asks, policy=policy)

    assert (thread.verdict, thread.reason) == (VerdictName(on_expiry), "approval_expired")


def test_an_answer_under_way_is_not_open() -> None:
    ledger, told = told_of([ASKS])
    answering = run("r2", Ending.SUCCESS, yes("i-1"))
    ledger.begun(Begun(THREAD, "r2", answering.mode, answering.input, NOON))

    _, thread = judge_thread(ledger.threads[THREAD], told, DEFAULT_POLICY, NOON + HOUR)

    assert thread.open == ()


# Runs -----------------------------------------------------------------------------------------------------------------


def test_a_run_that_only_asks_again_answers_nothing() -> None:
    judged, _ = verdict_of(ASKS, run("r2", asks=(ROUTED,)))

    assert [each.verdict and each.verdict.reason for each in judged] == ["tool_call", "tool_call"]


def test_a_run_is_one_row_and_its_last_end_stands() -> None:
    late = run("r1", Ending.ERROR, asks=(ROUTED,), is_late=True)

    judged, thread = verdict_of(ASKS, late)

    assert [(each.run, each.verdict and each.verdict.verdict) for each in judged] == [(late, VerdictName.FAILED)]
    assert thread.verdict is VerdictName.WAITING


def test_a_refusal_before_it_takes_nothing_from_what_a_run_asked() -> None:
    judged, thread = verdict_of(run("r1", Ending.REFUSED), ASKS)

    assert [each.verdict and each.verdict.verdict for each in judged] == [VerdictName.WAITING]
    assert [each.interrupt_id for each in thread.open] == ["i-1"]


def test_a_run_that_is_restated_ended_as_it_did() -> None:
    judged, thread = verdict_of(ASKS, run("r2", Ending.ERROR), ASKS._replace(input=None, ending=Ending.SUCCESS))

    assert judged[0].run == ASKS
    assert judged[0].verdict is not None
    assert judged[0].verdict.verdict is VerdictName.WAITING
    assert (thread.verdict, thread.run_id) == (VerdictName.WAITING, "r2")


def test_a_record_that_the_wire_does_not_take_is_mended_and_judged() -> None:
    strange = ASKS._replace(steps=-1, receipt={"limits": "none", "model_calls": "three"})

    judged, thread = verdict_of(strange)

    assert [each.verdict and each.verdict.verdict for each in judged] == [VerdictName.WAITING]
    assert thread.verdict is VerdictName.WAITING


def test_threads_findings_are_those_of_its_runs_once() -> None:
    _, thread = verdict_of(ASKS, run("r2", Ending.ERROR), run("r3", Ending.ERROR))

    assert [each.name for each in thread.findings] == ["SILENT_CONTINUE"]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"owner": "team:ops", "due": NOON + 2 * HOUR}, {}),
        ({"due": NOON + 2 * HOUR}, {"UNROUTED": ("i-1",)}),
        ({"owner": "team:ops"}, {}),  # without a deadline: said where it was asked
        ({"owner": "team:ops", "due": NOON}, {"OVERDUE": ("i-1",)}),
        ({"due": NOON}, {"UNROUTED": ("i-1",), "OVERDUE": ("i-1",)}),
        ({"expires_at": NOON}, {}),  # it is over: nobody may answer any more
    ],
)
def test_what_a_wait_lacks_is_a_finding_of_its_thread(more: dict[str, Any], found: dict[str, tuple[str, ...]]) -> None:
    _, thread = verdict_of(run("r1", asks=(asked("i-1", "tc-1", **more),)))

    assert {each.name: each.ids for each in thread.findings} == found


def test_nobody_can_answer_what_is_no_longer_asked_for() -> None:
    _, thread = verdict_of(ASKS, run("r2"))

    assert {each.name: each.ids for each in thread.findings}["UNROUTED"] == ("i-1",)


def test_ids_that_name_a_person_are_hashed_alike_everywhere() -> None:
    name = "someone@example.org"
    asks = run("r1", asks=(asked(name, owner=name),), thread=name)
    ledger, told = told_of([asks, run("r2", Ending.ERROR, gives_up(name), thread=name)])

    _, thread = judge_thread(ledger.threads[name], told, DEFAULT_POLICY, NOON)

    assert name not in str(thread)
    assert thread.open[0].missing == (Missing.DEADLINE,)


def test_an_answer_by_the_old_channel_is_an_answer() -> None:
    given = Input(THREAD, "r2", legacy_answers=(yes(""),))

    judged, _ = verdict_of(ASKS, run("r2", input=given))

    assert [each.verdict and each.verdict.reason for each in judged] == ["answered", "no_contract"]
