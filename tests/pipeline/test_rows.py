"""A verdict as a row of the store: every column has what its name says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import DEFAULT_POLICY, Policy
from stopcause.pipeline import rows
from stopcause.pipeline.keeper import Keeper
from tests.pipeline.test_keeper import NOW, T0, line
from tests.support import strategies

if TYPE_CHECKING:
    from stopcause.store.rows import VerdictRow


def test_a_row_has_what_the_records_say() -> None:
    started: dict[str, Any] = {"agent": "a", "service": "s", "parent_run_id": "p", "framework": "f", "adapter": "start"}
    stopped: dict[str, Any] = {
        "agent_version": "2",
        "environment": "prod",
        "adapter": "stop",
        "adapter_version": "3",
        "thread_id": "t",
        "duration_s": 1.5,
        "steps": 4,
        "step_unit": "step",
        "limits": [{"name": "max", "kind": "steps", "limit": 4, "unit": "step"}],
        "conditions": [{"name": "max", "kind": "steps", "fired": True, "limit": 4, "observed": 4}],
        "stop_cause": "step_limit",
        "tool_calls": 0,
        "usage": {"input_tokens": 5, "output_tokens": 6, "cost_usd": 0.25},
        "tool_errors": {"recovered": 2},
    }
    with Keeper.open(None, DEFAULT_POLICY, NOW) as keeper:
        keeper.accept([line("run.started", **started), line(after_s=9, **stopped)], NOW)
        row: VerdictRow = keeper.store.rows()[0]
    assert row[:5] == ("r1", 1, T0, 1, 1)
    assert (row.agent, row.agent_version, row.service, row.environment) == ("a", "2", "s", "prod")
    assert (row.parent_run_id, row.thread_id, row.framework) == ("p", "t", "f")
    assert (row.adapter, row.adapter_version, row.model) == ("stop", "3", None)
    assert (row.verdict, row.reason, row.rule, row.stop_cause) == (
        "BOUNDED_STOP",
        "step_limit",
        "bounded_stop",
        "step_limit",
    )
    assert (row.detail, row.findings, row.retry, row.settled) == ("max", ("recovered_tool_errors=2",), "safe", True)
    assert (row.started_at, row.stopped_at, row.duration_s) == (T0, T0 + timedelta(seconds=9), 1.5)
    assert (row.steps, row.step_limit, row.tool_calls) == (4, 4.0, 0)
    assert (row.input_tokens, row.output_tokens, row.cost_usd) == (5, 6, 0.25)
    assert (row.policy_digest, row.as_of) == (DEFAULT_POLICY.digest, NOW)


@given(strategies.records("r1"), strategies.policies, strategies.nows)
def test_what_a_row_takes_over_keeps_its_name(values: list[dict[str, Any]], policy: Policy, now: datetime) -> None:
    for run in fold.group(strategies.read(values)).values():
        facts = fold.facts_of(run, run.latest, policy, now)
        verdict, stop = engine.judge(facts), facts.stop
        row = rows.verdict_row(facts, verdict, now)
        assert (row.fingerprint, row.contract, row.last_at) == (verdict.group, facts.contract_name, facts.last_at)
        assert (row.started_at, row.opened_at, row.sign, row.revision) == (facts.started_at, now, 1, 1)
        for name in {*row._fields} & {*verdict._fields} - {"findings"}:
            assert getattr(row, name) == getattr(verdict, name)
        for name in rows._OF_IDENTITY:
            said = [getattr(each, name) for each in (stop, facts.start) if each]
            assert getattr(row, name) == next(filter(None, said), None)
        for name in (*rows._OF_STOP, *rows._OF_USAGE):
            owner = stop.usage if stop and name in rows._OF_USAGE else stop
            assert getattr(row, name) == (getattr(owner, name) if owner else None)
