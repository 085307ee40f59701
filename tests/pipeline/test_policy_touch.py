"""No change of policy gives a run another verdict that `policy_touch` did not say it can touch."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import Policy, Subject, policy_from_mapping
from stopcause.classifier.verdict import Verdict
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.policy_diff import _LATEST, Question, _sketch, _Survey, stretches
from stopcause.pipeline.policy_touch import Sketch, Touch, changed_sections, sketch_of
from stopcause.receipts import codec
from stopcause.store.queries import text
from tests.support import strategies as sts

names = st.sampled_from(["outcome", "strict", "other"])
spans = st.sampled_from(["1s", "30s", "5m", "20m"])
keys = st.dictionaries(
    st.sampled_from(["agent", "environment", "agent_version", "framework"]),
    st.sampled_from(["*", "a*", "agent", "prod", "b"]),
    max_size=2,
)
entries = st.builds(
    lambda match, more: {"match": match, **more},
    keys,
    sts.some(
        contract=names,
        stage=st.sampled_from(["observe", "enforce"]),
        owner=st.sampled_from(["team:a", "team:b"]),
        on_bound=st.just("runbook:x"),
    ),
)
routes = st.builds(
    lambda match, more: {"match": match, **more},
    st.dictionaries(
        st.sampled_from(["kind", "tool", "raised_by", "agent"]),
        st.sampled_from(["*", "pay", "tool_call", "agent", "m*"]),
        max_size=2,
    ),
    sts.some(
        owner=st.sampled_from(["team:a", "team:b"]),
        due=spans,
        escalate=st.just("team:c"),
        on_expiry=st.sampled_from(["STUCK", "BOUNDED_STOP"]),
    ),
)
contracts = sts.some(
    min_strength=st.sampled_from(["accepted", "read_back", "human"]),
    issuers=st.lists(st.sampled_from(["destination:*", "human:*", "validator:system"]), max_size=2),
    settle=spans,
    checks=st.lists(
        st.sampled_from([{"kind": "exists"}, {"kind": "count"}]), max_size=2, unique_by=lambda c: c["kind"]
    ),
)
contents = sts.some(
    agents=st.lists(entries, max_size=3),
    routes=st.lists(routes, max_size=2),
    contracts=st.dictionaries(names, contracts, max_size=2),
    verdicts=st.dictionaries(
        st.sampled_from(["guardrail", "output_cap", "content_filter", "refusal", "quota"]),
        st.sampled_from(["FAILED", "BOUNDED_STOP"]),
        max_size=2,
    ),
    defaults=st.dictionaries(st.sampled_from(["stuck_after", "resume_due", "settle", "clock_skew"]), spans, max_size=2),
)


random_policies = contents.map(policy_from_mapping)
_BASE: dict[str, Any] = {
    "agents": [{"match": {"environment": "prod"}, "contract": "strict"}, {"match": {"agent": "a*"}, "contract": "c"}],
    "contracts": {"c": {"checks": [{"kind": "exists"}]}, "strict": {"min_strength": "human", "settle": "30s"}},
    "routes": [{"match": {"tool": "pay"}, "owner": "team:pay", "due": "5m"}, {"owner": "team:ops"}],
}
_CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"agents": []},
    {"agents": [{"match": {"agent": "a*"}}]},
    {"agents": [{"match": {"agent": "a*"}, "contract": "outcome"}]},
    {"agents": [{"match": {"agent": "a*"}, "contract": "c", "stage": "enforce", "owner": "team:a"}]},
    {"agents": [], "contracts": {"outcome": {"min_strength": "human"}}},
    {"contracts": {}},
    {"contracts": {"c": {"checks": [{"kind": "count"}]}}},
    {"contracts": {"c": {"checks": [{"kind": "exists"}], "settle": "1s"}}},
    {"contracts": {"c": {"checks": [{"kind": "exists"}], "issuers": ["human:*"]}}},
    {"contracts": {"c": {"checks": [{"kind": "exists"}], "min_strength": "human"}, "outcome": {"settle": "20m"}}},
    {"routes": []},
    {"routes": [{"match": {"raised_by": "child"}, "owner": "team:a", "due": "1s"}]},
    {"routes": [{"match": {"kind": "tool_call", "environment": "prod"}, "owner": "team:a", "due": "20m"}]},
    {"routes": [{"match": {"tool": "pay"}, "owner": "team:pay", "on_expiry": "BOUNDED_STOP"}]},
    {"verdicts": {"guardrail": "FAILED", "quota": "BOUNDED_STOP"}},
    {"verdicts": {"output_cap": "FAILED", "refusal": "BOUNDED_STOP", "content_filter": "BOUNDED_STOP"}},
    {"defaults": {"stuck_after": "20s"}},
    {"defaults": {"resume_due": "1s"}},
    {"defaults": {"settle": "1s"}},
    {"defaults": {"settle": "20m"}},
    {"defaults": {"clock_skew": "1m"}},
)
POOL = tuple(policy_from_mapping(_BASE | change) for change in _CHANGES)


@st.composite
def worlds(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Runs that say where they are, and approvals that a child asked for; some stop for what a policy can move."""
    values = draw(sts.worlds())
    where = draw(st.sampled_from([None, "prod", "b"]))
    moved = draw(st.sampled_from([None, None, "quota", "guardrail", "output_cap", "refusal", "time_limit"]))
    for value in values:
        if value["kind"] in ("run.started", "run.stopped"):
            value |= {"environment": where}
        if value["kind"] == "run.stopped" and moved:
            value |= {"stop_cause": moved}
        for approval in [value["approval"]] if "approval" in value else value.get("approvals", ()):
            approval |= {"raised_by": draw(st.sampled_from([None, "child"]))}
    return values


def told(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.verdict, verdict.reason, verdict.missing, verdict.retry, verdict.settled


@settings(max_examples=400)
@given(worlds(), st.lists(random_policies, max_size=2), st.integers(0, len(POOL)), sts.nows)
def test_a_run_that_is_not_touched_keeps_its_verdict(
    world: list[dict[str, Any]], others: list[Policy], of_rows: int, now: datetime
) -> None:
    policies = (*POOL, *others)
    in_force = POOL[of_rows] if of_rows < len(POOL) else None
    runs = fold.group(sts.read(world))
    for run in runs.values():
        resumers = engine.resumers_of(run, runs.values())
        facts = [fold.facts_of(run, run.latest, policy, now, resumers) for policy in policies]
        verdicts = [told(engine.judge(each)) for each in facts]
        for one, other in itertools.permutations(range(len(policies)), 2):
            if verdicts[one] != verdicts[other]:
                touch = Touch(policies[one], policies[other], in_force)
                seen = facts[of_rows] if in_force else facts[one]
                assert touch.sections(sketch_of(seen, touch.longest_settle))


@settings(max_examples=40)
@given(worlds(), st.tuples(random_policies, random_policies), st.sampled_from(POOL), sts.nows)
def test_the_store_sketches_a_run_as_its_facts_do(
    world: list[dict[str, Any]], pair: tuple[Policy, Policy], in_force: Policy, now: datetime
) -> None:
    lines = [codec.value_line(value) for value in world]
    with Keeper.open(None, in_force, now) as keeper:
        keeper.accept(lines, now)
        survey = _Survey(keeper.store, Question(*pair, now, in_force), None)
        rows: dict[str, Any] = {}
        touch = Touch(*pair, in_force)
        for stretch in stretches(keeper.store, survey._since):
            where = {
                "first": stretch.first,
                "last": stretch.last,
                "since": survey._since,
                "until": _LATEST,
            }
            for run_id, _sign, *said, _key in keeper.store.ask(
                text("policy_sketch"), {**where, "fresh": survey._fresh}
            ).rows:
                rows[run_id] = _sketch(said)
        runs = fold.group(read for read in map(codec.read_line, lines) if not isinstance(read, codec.LineError))
        for run in runs.values():
            facts = fold.facts_of(run, run.latest, in_force, now, engine.resumers_of(run, runs.values()))
            expected = sketch_of(facts, touch.longest_settle)
            got = rows[run.run_id]
            assert (got.cause, got.recent, set(got.waits)) == (expected.cause, expected.recent, set(expected.waits))
            if expected.sure:
                assert got == expected._replace(waits=got.waits)


AGENT = Subject(agent="invoice-1")


def test_a_check_that_looks_elsewhere_touches_no_run() -> None:
    def policy(url: str) -> Policy:
        check = {"kind": "record", "url_env": url}
        return policy_from_mapping(
            {"agents": [{"contract": "c"}], "contracts": {"c": {"checks": [check]}}, "policy": {"version": url}}
        )

    one, other = policy("ONE"), policy("TWO")

    assert changed_sections(one, other) == ("contracts.c",)
    assert Touch(one, other).sections(Sketch(AGENT, "c", "natural", (), recent=True)) == ()


@pytest.mark.parametrize(
    ("content", "sections"),
    [
        ({"agents": [{"match": {"agent": "invoice-*"}, "contract": "c"}]}, ("agents[0]",)),
        ({"agents": [{"match": {"agent": "other"}, "contract": "c"}]}, ()),
        ({"agents": [{"match": {"agent": "*"}, "stage": "enforce"}]}, ()),
        ({"verdicts": {"quota": "BOUNDED_STOP"}}, ()),
        ({"defaults": {"stuck_after": "1s"}}, ()),
        ({"defaults": {"clock_skew": "1s"}}, ("defaults.clock_skew",)),
        ({"routes": [{"owner": "team:a"}]}, ()),
    ],
)
def test_each_section_touches_what_it_says(content: dict[str, Any], sections: tuple[str, ...]) -> None:
    touch = Touch(policy_from_mapping(None), policy_from_mapping(content))

    assert touch.sections(Sketch(AGENT, None, "natural", (), recent=False)) == sections
