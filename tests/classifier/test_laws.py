"""What holds for every run, whatever its records say."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import Policy
from stopcause.classifier.rules import RULES
from stopcause.classifier.verdict import Verdict, VerdictName
from stopcause.receipts import codec, model
from tests.support.laws import tried_on
from tests.support.strategies import at, closed_runs, nows, policies, read, records, runs, worlds

CASES = tried_on(300)
WAITS = (VerdictName.WAITING, VerdictName.WAITING_UNROUTED)
REASONS = {rule.verdict: set(rule.reasons) for rule in RULES}


def judge(values: list[dict[str, Any]], policy: Policy, now: datetime, run_id: str = "r1") -> Verdict:
    folded = fold.group(read(values))
    return engine.judge_run(folded[run_id], policy, now, engine.resumers_of(folded[run_id], folded.values()))


def content(verdict: Verdict) -> tuple[object, ...]:
    """All of a verdict but when it was asked for."""
    return tuple(verdict._replace(as_of=None))  # type: ignore[arg-type]


@CASES
@given(runs, policies, nows)
def test_every_run_has_exactly_one_verdict_with_a_reason_of_its_card(
    values: list[dict[str, Any]], policy: Policy, now: datetime
) -> None:
    verdict = judge(values, policy, now)

    if verdict.verdict is None:
        assert verdict.reason == "running"
    else:
        allowed = REASONS[verdict.verdict]
        if verdict.verdict in (VerdictName.FAILED, VerdictName.BOUNDED_STOP):
            allowed = allowed | {"guardrail", "output_cap", "content_filter", "refusal", "quota"}
        assert verdict.reason in allowed
    assert verdict.evidence
    assert verdict.record_ids


@CASES
@given(worlds(), policies, nows, st.randoms(use_true_random=False))
def test_neither_arrival_order_nor_repetition_matters(
    values: list[dict[str, Any]], policy: Policy, now: datetime, random: Random
) -> None:
    shuffled = values + random.choices(values, k=2)
    random.shuffle(shuffled)

    assert content(judge(values, policy, now)) == content(judge(shuffled, policy, now))


@CASES
@given(worlds(), policies, nows, st.integers(min_value=1, max_value=5000))
def test_no_verdict_changes_before_its_time(
    values: list[dict[str, Any]], policy: Policy, now: datetime, later: int
) -> None:
    verdict = judge(values, policy, now)
    due = verdict.judge_again_at
    moments = [now + timedelta(seconds=later)] + ([due - timedelta(microseconds=1)] if due else [])

    for moment in moments:
        if moment > now and (due is None or moment < due):
            assert content(judge(values, policy, moment)) == content(verdict)


@CASES
@given(worlds(), policies, nows)
def test_what_is_not_settled_has_something_to_wait_for(
    values: list[dict[str, Any]], policy: Policy, now: datetime
) -> None:
    verdict = judge(values, policy, now)

    assert verdict.settled or verdict.judge_again_at or verdict.verdict in WAITS


@CASES
@given(closed_runs, policies, nows)
def test_a_confirmed_independent_receipt_never_lowers(
    values: list[dict[str, Any]], policy: Policy, now: datetime
) -> None:
    receipt = {
        "schema": "stopcause/1",
        "kind": "outcome.recorded",
        "run_id": "r1",
        "at": at(0),
        "outcome": {
            "outcome_id": "fresh",
            "strength": "human",
            "polarity": "confirmed",
            "issuer": {"type": "human", "id": "x"},
            "observed_at": at(900),
        },
    }

    before, after = judge(values, policy, now), judge([*values, receipt], policy, now)

    assert after.verdict in (before.verdict, VerdictName.VERIFIED_COMPLETE)


@CASES
@given(closed_runs, policies, nows)
def test_a_self_claim_never_raises(values: list[dict[str, Any]], policy: Policy, now: datetime) -> None:
    claim = {
        "schema": "stopcause/1",
        "kind": "outcome.recorded",
        "run_id": "r1",
        "at": at(0),
        "outcome": {
            "outcome_id": "claim",
            "strength": "human",
            "polarity": "confirmed",
            "issuer": {"type": "run", "id": "r1"},
            "observed_at": at(900),
        },
    }

    before, after = judge(values, policy, now), judge([*values, claim], policy, now)

    assert after.verdict is before.verdict


@CASES
@given(closed_runs, policies, nows, st.sampled_from(["pending", "unsafe", "after", "finish", "overrun"]))
def test_a_contradiction_never_makes_a_run_complete(
    values: list[dict[str, Any]], policy: Policy, now: datetime, kind: str
) -> None:
    added: dict[str, dict[str, Any]] = {
        "pending": {"pending_tool_calls": 2},
        "unsafe": {"unsafe_steps": 1},
        "after": {"effects_after_stop": 1},
        "finish": {"finish_reason": {"normalized": "unknown"}},
        "overrun": {"steps": 9, "step_unit": "step", "limits": values[0].get("limits") or LIMITS},
    }
    contradicted = [value | added[kind] if value["kind"] == "run.stopped" else value for value in values]

    if judge(values, policy, now).verdict is not VerdictName.VERIFIED_COMPLETE:
        assert judge(contradicted, policy, now).verdict is not VerdictName.VERIFIED_COMPLETE


LIMITS = [{"name": "max", "kind": "steps", "limit": 2, "unit": "step", "scope": "run"}]


@CASES
@given(runs, policies, nows)
def test_the_rules_are_tried_in_order_and_the_trace_ends_with_the_one_that_decided(
    values: list[dict[str, Any]], policy: Policy, now: datetime
) -> None:
    run = fold.group(read(values))["r1"]
    verdict = engine.judge_run(run, policy, now)

    tried = engine.trace(fold.facts_of(run, run.latest, policy, now))

    if verdict.verdict is None:
        assert tried == ()
    else:
        assert [each.rule for each in tried] == list(RULES[: len(tried)])
        assert [each.matched for each in tried] == [False] * (len(tried) - 1) + [True]
        assert tried[-1].rule.verdict is verdict.verdict


def test_the_published_order_holds() -> None:
    assert [rule.verdict for rule in RULES] == list(VerdictName)


@CASES
@given(records("r1", terminal=True), records("r2"), policies, nows)
def test_a_resumption_never_opens_a_wait(
    values: list[dict[str, Any]], resuming: list[dict[str, Any]], policy: Policy, now: datetime
) -> None:
    linked = [
        value | {"resumes_run_id": "r1"} if value["kind"] in ("run.started", "run.stopped") else value
        for value in resuming
    ]
    before, after = judge(values, policy, now), judge([*values, *linked], policy, now)

    if after.verdict in WAITS and before.verdict not in WAITS:
        assert after.reason == "answered"


@CASES
@given(runs)
def test_records_survive_the_wire(values: list[dict[str, Any]]) -> None:
    for record in read(values):
        again = codec.read_line(codec.write_line(record))

        assert isinstance(again, model.Value)
        assert again == record
