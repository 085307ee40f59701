"""What a verdict carries beside its name: what decided, what else was seen, when it can change, whether to retry."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import Policy, policy_from_mapping
from stopcause.classifier.verdict import Verdict
from stopcause.receipts import codec, model

NOW = model.parse_time("2026-11-28T08:05:00Z")
CONTRACT = policy_from_mapping(
    {"agents": [{"match": {"agent": "inv"}, "contract": "c"}], "contracts": {"c": {"issuers": ["destination:*"]}}}
)
NO_POLICY = policy_from_mapping(None)
ROUTED = {
    "approval_id": "a1",
    "kind": "tool_call",
    "owner": "team:ops",
    "deadline": "2026-11-28T10:00:00Z",
    "resume_token": "tok",
}
OUTCOME = {
    "outcome_id": "o1",
    "polarity": "confirmed",
    "strength": "read_back",
    "issuer": {"type": "destination", "id": "db"},
}


UNDECIDED = {
    "schema": "stopcause/1",
    "kind": "approval.updated",
    "run_id": "r1",
    "at": "2026-11-28T08:00:05Z",
    "approval": {"approval_id": "a", "executed": True},
}


def record(kind: str, second: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - wire values
    at = f"2026-11-28T08:{second // 60:02}:{second % 60:02}Z"
    return {"schema": "stopcause/1", "kind": kind, "run_id": "r1", "at": at} | fields


def stop(cause: str, second: int = 30, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return record("run.stopped", second, stop_cause=cause, agent="inv") | fields


def judge(*values: dict[str, Any], policy: Policy = NO_POLICY) -> Verdict:
    read = [codec.read_value(value) for value in values]
    records = [each for each in read if not isinstance(each, codec.LineError)]
    assert len(records) == len(read)
    runs = fold.group(records)
    return engine.judge_run(runs["r1"], policy, NOW, engine.resumers_of(runs["r1"], runs.values()))


def codes(verdict: Verdict) -> list[str]:
    return [finding.code for finding in verdict.findings]


@pytest.mark.parametrize(
    ("verdict", "evidence"),
    [
        (judge(stop("natural", children={"open": 1})), ("stop_cause", "children")),
        (judge(stop("natural", output_shape="none")), ("stop_cause", "output_shape")),
        (judge(stop("natural", approvals=[{"approval_id": "a", "decision": "denied"}])), ("stop_cause", "approval:a")),
        (judge(stop("natural", unsafe_steps=1)), ("unsafe_steps", "finish_reason", "tool_calls")),
        (judge(stop("time_limit"), record("run.progress", 20, sign="artifact")), ("stop_cause", "run.progress")),
        (judge(stop("natural", forced_wrapup=True, conditions=[{"name": "n", "kind": "steps", "fired": True}])),
         ("stop_cause", "forced_wrapup")),
    ],
)  # fmt: skip
def test_evidence_names_the_fields_that_decided(verdict: Verdict, evidence: tuple[str, ...]) -> None:
    assert verdict.evidence == evidence


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (judge(stop("guardrail", approvals=[{"approval_id": "a", "executed": True}])), "approval_bypassed"),
        (judge(stop("natural", pending_tool_calls=1, approvals=[ROUTED])), "pending_tool_calls"),
        (judge(stop("natural", boundary="call"), stop("step_limit", 31, boundary="call", approvals=[ROUTED])),
         "two_terminals"),
        (judge(stop("tool_failure", effects_after_stop=1)), "effect_after_stop"),
        (judge(record("run.started", 0, lease_s=600), UNDECIDED),
         "approval_bypassed"),
    ],
)  # fmt: skip
def test_a_contradiction_that_does_not_decide_is_a_finding(verdict: Verdict, code: str) -> None:
    assert verdict.reason != code
    assert code in codes(verdict)


@pytest.mark.parametrize(
    ("conditions", "verdict", "reason"),
    [
        ([{"name": "loop", "kind": "custom", "fired": True, "limit": 2}], "BOUNDED_STOP", "step_limit"),
        (
            [{"name": "loop", "kind": "custom", "fired": True, "limit": 2, "observed": 1}],
            "UNCERTAIN",
            "limit_not_reached",
        ),
        ([{"name": "enough", "kind": "custom", "fired": True}], "UNCERTAIN", "limit_not_reached"),  # counts nothing
        (
            [{"name": "loop", "kind": "custom", "fired": True, "limit": 2}, {"name": "s", "kind": "steps"}],
            "UNCERTAIN",
            "limit_not_reached",
        ),
    ],
)
def test_a_bound_that_counts_something_else_stands_only_in_its_own_place(
    conditions: list[dict[str, Any]], verdict: str, reason: str
) -> None:
    limits = [{"name": "s", "kind": "steps", "limit": 40}]
    judged = judge(stop("step_limit", steps=4, limits=limits, conditions=conditions))

    assert (judged.verdict, judged.reason) == (verdict, reason)


@pytest.mark.parametrize("strength", ["accepted", "read_back"])
def test_a_run_under_contract_is_not_settled_while_a_receipt_may_come(strength: str) -> None:
    weak = record("outcome.recorded", 40, outcome=OUTCOME | {"strength": strength, "pre_state": "same"})
    verdict = judge(stop("natural"), weak, policy=CONTRACT)

    assert verdict.verdict == "FALSE_COMPLETE"
    assert not verdict.settled
    assert verdict.judge_again_at == model.parse_time("2026-11-28T08:10:30Z")
    assert judge(stop("natural")).settled


def test_a_settle_time_of_zero_is_one() -> None:
    policy = policy_from_mapping({"contracts": {"c": {"settle": "0s"}}})

    assert judge(stop("natural", contract="c"), policy=policy).reason == "receipt_missing"


def test_a_disputed_run_still_says_who_it_is() -> None:
    verdict = judge(
        stop("natural", boundary="call", environment="prod", thread_id="t1"),
        stop("step_limit", 31, boundary="call", environment="prod", thread_id="t1"),
    )

    assert (verdict.verdict, verdict.reason) == ("UNCERTAIN", "two_terminals")
    assert (verdict.agent, verdict.environment, verdict.thread_id) == ("inv", "prod", "t1")


def test_the_run_that_covers_the_approval_is_the_one_that_resolved_it() -> None:
    waits = stop("approval_pending", approvals=[ROUTED])
    other = record("run.started", 50, resumes_run_id="r1", answers=["zzz"]) | {"run_id": "r2"}
    covers = record("run.started", 60, resumes_run_id="r1", answers=["a1"]) | {"run_id": "r3"}

    for values in ((waits, other, covers), (covers, other, waits)):
        verdict = judge(*values)
        assert (verdict.reason, verdict.resolved_by, verdict.retry) == ("answered", "r3", "no")


def test_what_a_resuming_run_asks_again_waits_there() -> None:
    both = stop("approval_pending", approvals=[ROUTED, ROUTED | {"approval_id": "a2"}])
    again = stop(
        "approval_pending", 60, resumes_run_id="r1", answers=["a1"], approvals=[ROUTED | {"approval_id": "a2"}]
    )
    done = again | {"stop_cause": "natural", "approvals": [ROUTED | {"approval_id": "a2", "state": "decided"}]}

    assert judge(both, again | {"run_id": "r2"}).resolved_by == "r2"
    assert judge(both, done | {"run_id": "r2"}).reason == "tool_call"


@pytest.mark.parametrize(
    ("verdict", "retry"),
    [
        (judge(stop("approval_pending", approvals=[ROUTED])), "resume"),
        (judge(stop("natural"), record("outcome.recorded", 40, outcome=OUTCOME)), "no"),
        (judge(record("run.started", 0, lease_s=600)), "no"),
        (judge(stop("quota", tool_calls=3)), "later"),
        (judge(stop("model_failure", tool_calls=0)), "safe"),
        (judge(stop("model_failure", tool_calls=1)), "check_first"),
        (judge(stop("model_failure")), "check_first"),
        (judge(stop("model_failure", tool_calls=0, effects_after_stop=1)), "no"),
        (judge(stop("host_error", tool_calls=3), stop("model_failure", 60, tool_calls=0, attempt=2)), "check_first"),
    ],
)
def test_retry_says_what_can_break(verdict: Verdict, retry: str) -> None:
    assert verdict.retry == retry


def test_what_an_engine_cut_off_waits_no_more() -> None:
    """Its time is over: nobody can answer what it had asked."""
    asked = record("approval.updated", 5, approval=ROUTED)
    cut_off = stop("time_limit", boundary="platform", abort={"observed_at": "2026-11-28T08:00:30Z"})

    assert judge(asked, stop("time_limit")).verdict == "WAITING"
    assert judge(asked, cut_off).verdict == "STUCK"


def test_silence_is_only_known_of_a_stream_that_was_seen_to_give_signs() -> None:
    """A start and a tool's result say nothing of the bytes that came after them."""
    start = record("run.started", 0, boundary="event_stream")
    ends = stop("stream_truncated", 600, boundary="event_stream", progress={"made": True, "last_at": start["at"]})
    sign = record("run.progress", 1, sign="output")

    assert judge(start, ends).verdict == "UNCERTAIN"
    assert judge(start, sign, ends).verdict == "STUCK"


@pytest.mark.parametrize(("cause", "verdict"), [("natural", "WAITING"), ("self_reported_failure", "FAILED")])
def test_only_an_end_that_an_error_brought_overtakes_a_wait(cause: str, verdict: str) -> None:
    """A finish that names an error beside it contradicts itself: it takes no question back."""
    asks = stop("approval_pending", 10, boundary="event_stream", approvals=[ROUTED])
    goes_on = stop(cause, 20, boundary="event_stream", error={"code": "x"})

    assert judge(asks, goes_on).verdict == verdict


def test_opposite_decisions_are_a_finding_and_the_later_one_holds() -> None:
    def decided(second: int, decision: str, actor: str) -> dict[str, Any]:
        word = {"approval_id": "a1", "state": "decided", "decision": decision, "actor": actor}
        return record("approval.updated", second, approval=word)

    waits = stop("approval_pending", approvals=[ROUTED])
    verdict = judge(waits, decided(40, "approved", "user:ann"), decided(50, "denied", "user:bob"))

    assert (verdict.verdict, verdict.reason) == ("BOUNDED_STOP", "approval_denied")
    assert ("decision_overruled", "approval:a1") in verdict.findings


def test_groups_tell_failed_tools_apart_and_agree_on_the_same() -> None:
    def failed(tool: str, run_id: str) -> Verdict:
        return judge(stop("tool_failure", error={"type": "ToolError", "tool": tool}, model=run_id))

    assert failed("pay", "m1").group == failed("pay", "m2").group != failed("mail", "m1").group


def test_a_clock_that_is_ahead_of_ours_is_a_finding_and_the_record_is_kept() -> None:
    verdict = judge(stop("natural", 1800))

    assert "clock_ahead" in codes(verdict)
    assert verdict.judge_again_at == model.parse_time("2026-11-28T08:30:00Z") - timedelta(seconds=5)


def test_four_thousand_runs_are_judged_one_after_the_other() -> None:
    values = [stop("natural") | {"run_id": f"r{number}"} for number in range(4000)]
    read = [codec.read_value(value) for value in values]

    verdicts = list(engine.judge_all((each for each in read if not isinstance(each, codec.LineError)), NO_POLICY, NOW))

    assert len(verdicts) == 4000
