"""No change of policy gives a run another verdict that `policy_touch` did not say it can touch."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import Policy, Subject, policy_from_mapping
from stopcause.classifier.verdict import Verdict
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.policy_diff import _LATEST, Question, _sketch, _Survey, stretches
from stopcause.pipeline.policy_touch import Sketch, Touch, changed_sections, sketch_of
from stopcause.pipeline.rows import verdict_row
from stopcause.receipts import codec
from stopcause.receipts.vocabulary import StopCause
from stopcause.store.queries import text
from stopcause.store.rows import VerdictRow
from tests.support import strategies as sts
from tests.support.laws import tried_on

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
    {"agents": [], "contracts": {"outcome": {"settle": "20m"}}},
    {"contracts": {}},
    {"contracts": {"c": {"checks": [{"kind": "count"}]}}},
    {"contracts": {"c": {"checks": [{"kind": "exists"}], "settle": "1s"}}},
    {"contracts": {"c": {"checks": [{"kind": "exists"}], "issuers": ["human:*"]}}},
    {"contracts": {"c": {"checks": [{"kind": "exists"}], "min_strength": "human"}, "outcome": {"settle": "20m"}}},
    {"routes": []},
    {"routes": [{"match": {"model": "m*"}, "owner": "team:a", "due": "20m"}, *_BASE["routes"]]},
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


NEAR = st.integers(60, 1000).map(lambda offset: sts.START + timedelta(seconds=offset))


@st.composite
def vouched(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A run that finished, and somebody's look at it; the kind of run that contracts are about."""
    head = {"schema": "stopcause/1", "run_id": "r1", "agent": "agent", "attempt": 1}
    own = draw(sts.some(contract=st.sampled_from(["outcome", "c", "strict"])))
    stop = {"kind": "run.stopped", "stop_cause": "natural", "at": sts.at(60), "boundary": "call", **own}
    look = {
        "outcome_id": "o1",
        "check": draw(st.sampled_from(["exists", "count"])),
        "strength": draw(st.sampled_from(["accepted", "read_back", "human"])),
        "polarity": draw(st.sampled_from(["confirmed", "confirmed", "refuted"])),
        "issuer": {"type": draw(st.sampled_from(["destination", "human"])), "id": "system"},
        "observed_at": sts.at(draw(st.integers(-20, 90))),
    }
    seen = [{"kind": "outcome.recorded", "at": sts.at(95), "outcome": look}] if draw(st.booleans()) else []
    return [
        {"kind": "run.started", "at": sts.at(0), **head, **own},
        {**stop, **head},
        *({**each, **head} for each in seen),
    ]


@st.composite
def paused(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A run that stopped to wait, and most often the answer; the kind of run that routes are about."""
    head = {"schema": "stopcause/1", "run_id": "r1", "attempt": 1}
    approval = {
        "approval_id": "a1",
        "kind": "tool_call",
        "resume_token": "t",
        **draw(
            sts.some(
                tool=st.sampled_from(["pay", "mail"]),
                owner=st.just("team:own"),
                expires_at=sts.times,
                deadline=sts.times,
            )
        ),
    }
    seen = {"boundary": draw(st.sampled_from([None, "call", "platform"])), "agent": "agent"}
    stop = {"kind": "run.stopped", "stop_cause": "approval_pending", "at": sts.at(60), **seen, **head}
    word = {"approval_id": "a1", "state": "decided", "decision": draw(st.sampled_from(["approved", "denied"]))}
    answer = {"kind": "approval.updated", "at": sts.at(draw(st.integers(61, 300))), "approval": word, **head}
    other = {**stop, "stop_cause": draw(sts.words(StopCause)), "boundary": "call", "environment": "prod"}
    ends = [[], [answer], [answer], [other], [{"kind": "run.died", "reason": "killed", "at": sts.at(70), **head}]]
    return [{**stop, "approvals": [approval]}, *draw(st.sampled_from(ends))]


@st.composite
def timed(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A run that stopped for something that a policy has a word on, some time after it last got anywhere."""
    causes = ["time_limit", "time_limit", "quota", "guardrail", "output_cap", "refusal", "content_filter"]
    progress = {"made": True, "last_at": sts.at(draw(st.integers(0, 60)))}
    head = {"schema": "stopcause/1", "run_id": "r1", "agent": "agent", "kind": "run.stopped", "at": sts.at(60)}
    return [{**head, "stop_cause": draw(st.sampled_from(causes)), "progress": progress}]


@st.composite
def worlds(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Runs that say where they are, and approvals that a child asked for."""
    values: list[dict[str, Any]] = draw(st.one_of(sts.worlds(), vouched(), vouched(), paused(), paused(), timed()))
    where = draw(st.sampled_from([None, "prod", "b"]))
    for value in values:
        if value["kind"] in ("run.started", "run.stopped"):
            value.setdefault("environment", where)
            value["model"] = "m1"
        for approval in [value["approval"]] if "approval" in value else value.get("approvals", ()):
            approval |= {"raised_by": draw(st.sampled_from([None, "child"]))}
    return values


def sketch_of_row(row: VerdictRow, touch: Touch) -> Sketch:
    """What `policy_sketch.sql` makes of a row."""
    subject = Subject(*(getattr(row, name) for name in Subject._fields[:7]))
    waits = tuple((each.kind, each.tool) for each in row.waits if each.resolution in (None, "over", "expired"))
    newest = max(row.last_at, row.stopped_at or row.last_at)
    return Sketch(subject, row.contract, row.stop_cause, waits, newest + touch.longest_settle > row.as_of)


def told(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.verdict, verdict.reason, verdict.missing, verdict.retry, verdict.settled


@tried_on(400)
@given(worlds(), st.lists(random_policies, max_size=2), st.integers(0, len(POOL)), st.one_of(sts.nows, NEAR))
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
                assert touch.sections(sketch_of_row(verdict_row(seen, engine.judge(seen), now), touch))


@tried_on(40)
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


def test_a_row_that_does_not_say_who_it_is_counts_as_touched() -> None:
    head = {"schema": "stopcause/1", "run_id": "r1"}
    approval = {"approval_id": "a1", "kind": "tool_call", "resume_token": "t"}
    stop = {**head, "kind": "run.stopped", "stop_cause": "approval_pending", "at": sts.at(60), "boundary": "platform"}
    died = {**head, "kind": "run.died", "reason": "killed", "at": sts.at(70)}
    (run,) = fold.group(sts.read([{**stop, "model": "m1", "approvals": [approval]}, died])).values()
    old = policy_from_mapping({"routes": [{"owner": "team:ops"}]})
    new = policy_from_mapping(
        {"routes": [{"match": {"model": "m*"}, "owner": "team:ops", "due": "20m"}, {"owner": "team:ops"}]}
    )
    now = sts.START + timedelta(seconds=100)
    facts, others = (fold.facts_of(run, 1, policy, now) for policy in (old, new))
    touch, row = Touch(old, new), verdict_row(facts, engine.judge(facts), now)

    assert row.model is None
    assert told(engine.judge(facts)) != told(engine.judge(others))
    assert touch.sections(sketch_of_row(row, touch)) == ("routes",)
