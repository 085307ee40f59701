"""The published order, pair by pair: one receipt that would fit two rules gets the verdict of the first."""

from __future__ import annotations

import pytest

from stopcause.classifier import engine
from stopcause.classifier.policy import policy_from_mapping
from stopcause.classifier.verdict import Verdict
from stopcause.receipts import codec, model

NOW = model.parse_time("2026-11-28T09:00:00Z")
ROUTED = {
    "approval_id": "a1",
    "kind": "tool_call",
    "owner": "team:ops",
    "deadline": "2026-11-28T10:00:00Z",
    "resume_token": "tok",
}
UNROUTED = {"approval_id": "a2", "kind": "tool_call"}
OVER = {"approval_id": "a3", "kind": "tool_call", "expires_at": "2026-11-28T08:30:00Z"}
VOUCHED = {
    "outcome_id": "o1",
    "polarity": "confirmed",
    "strength": "read_back",
    "issuer": {"type": "destination", "id": "system"},
    "observed_at": "2026-11-28T08:00:40Z",
}
FIRED = {"name": "max", "kind": "steps", "fired": True, "limit": 4, "observed": 4}


def verdict(cause: str, *, outcome: bool = False, **fields: object) -> Verdict:
    head = {"schema": "stopcause/1", "run_id": "r1"}
    stop = head | {"kind": "run.stopped", "at": "2026-11-28T08:00:30Z", "stop_cause": cause} | fields
    receipt = head | {"kind": "outcome.recorded", "at": "2026-11-28T08:00:45Z", "outcome": VOUCHED}
    records = [codec.read_value(value) for value in ([stop, receipt] if outcome else [stop])]
    read = [record for record in records if not isinstance(record, codec.LineError)]
    assert len(read) == len(records)
    return next(engine.judge_all(read, policy_from_mapping(None), NOW))


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("FAILED", "WAITING", verdict("tool_failure", approvals=[ROUTED])),
        ("FAILED", "WAITING_UNROUTED", verdict("tool_failure", approvals=[UNROUTED])),
        ("FAILED", "STUCK", verdict("tool_failure", approvals=[OVER])),
        ("FAILED", "BOUNDED_STOP", verdict("tool_failure", conditions=[FIRED], steps=4)),
        ("FAILED", "VERIFIED_COMPLETE", verdict("tool_failure", outcome=True)),
        ("WAITING", "STUCK", verdict("time_limit", approvals=[ROUTED])),
        ("WAITING", "STUCK", verdict("approval_pending", approvals=[ROUTED, OVER])),
        ("WAITING", "BOUNDED_STOP", verdict("step_limit", approvals=[ROUTED], conditions=[FIRED], steps=4)),
        ("WAITING", "VERIFIED_COMPLETE", verdict("natural", approvals=[ROUTED], outcome=True)),
        ("WAITING", "FALSE_COMPLETE", verdict("natural", approvals=[ROUTED])),
        ("WAITING_UNROUTED", "WAITING", verdict("approval_pending", approvals=[ROUTED, UNROUTED])),
        ("WAITING_UNROUTED", "STUCK", verdict("loop_guard", approvals=[UNROUTED])),
        ("WAITING_UNROUTED", "BOUNDED_STOP", verdict("step_limit", approvals=[UNROUTED])),
        ("WAITING_UNROUTED", "VERIFIED_COMPLETE", verdict("natural", children={"waiting": 1}, outcome=True)),
        ("STUCK", "BOUNDED_STOP", verdict("time_limit", conditions=[FIRED], steps=4)),
        ("STUCK", "VERIFIED_COMPLETE", verdict("time_limit", outcome=True)),
        ("STUCK", "FALSE_COMPLETE", verdict("natural", approvals=[OVER])),
        ("BOUNDED_STOP", "VERIFIED_COMPLETE", verdict("step_limit", outcome=True)),
        ("BOUNDED_STOP", "VERIFIED_COMPLETE", verdict("user_abort", outcome=True)),
        ("VERIFIED_COMPLETE", "FALSE_COMPLETE", verdict("natural", outcome=True)),
        ("FALSE_COMPLETE", "UNCERTAIN", verdict("natural")),
        ("UNCERTAIN", "VERIFIED_COMPLETE", verdict("natural", outcome=True, pending_tool_calls=1)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_rule_that_fits_wins(first: str, second: str, found: Verdict) -> None:
    assert found.verdict == first, f"and not {second}"


def test_prose_that_sounds_sure_changes_nothing() -> None:
    assert verdict("natural", output_shape="text") == verdict("natural")._replace(
        record_ids=verdict("natural", output_shape="text").record_ids
    )
