"""Runs as hypothesis makes them: every kind of record, most fields, times that agree and times that do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from stopcause.classifier.policy import Policy, policy_from_mapping
from stopcause.receipts import codec, model, vocabulary

START = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)
POLICIES = tuple(
    policy_from_mapping(content)
    for content in (
        None,
        {
            "agents": [{"match": {"agent": "*"}, "contract": "outcome"}],
            "contracts": {"outcome": {"issuers": ["destination:system", "human:*"]}},
        },
        {
            "agents": [{"match": {"environment": "prod"}, "contract": "strict"}],
            "contracts": {"strict": {"min_strength": "human", "settle": "30s", "checks": [{"kind": "exists"}]}},
            "routes": [
                {"match": {"tool": "pay"}, "owner": "team:pay", "due": "5m", "on_expiry": "BOUNDED_STOP"},
                {"match": {"kind": "*"}, "owner": "team:ops"},
            ],
            "verdicts": {"guardrail": "FAILED", "quota": "BOUNDED_STOP"},
            "defaults": {"stuck_after": "10s", "resume_due": "20s"},
        },
    )
)

seconds = st.integers(min_value=-10, max_value=900)
maybe = st.none()


def words(words_of: type[vocabulary.Word]) -> st.SearchStrategy[str]:
    """Any word of a closed list."""
    return st.sampled_from([str(word) for word in words_of])


def at(offset: int) -> str:
    """The time that many seconds after the start, on the wire."""
    return (START + timedelta(seconds=offset)).isoformat()


times = seconds.map(at)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping in which every field may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


small = st.integers(min_value=0, max_value=3)
approvals = st.builds(
    lambda base, more: base | more,
    st.fixed_dictionaries({"approval_id": st.sampled_from(["a1", "a2"])}),
    some(
        state=words(vocabulary.ApprovalState),
        kind=words(vocabulary.ApprovalKind),
        tool=st.sampled_from(["pay", "mail"]),
        tool_call_id=st.sampled_from(["c1", "c2"]),
        owner=st.just("team:ops"),
        deadline=times,
        expires_at=times,
        resume_token=st.just("tok"),
        resumable=st.booleans(),
        decision=words(vocabulary.Decision),
        decided_at=times,
        actor=st.sampled_from(["user:x", "bot:x"]),
        executed=st.booleans(),
    ),
)
outcomes = st.builds(
    lambda base, more: base | more,
    st.fixed_dictionaries({"outcome_id": st.sampled_from(["o1", "o2", "o3"])}),
    some(
        contract=st.sampled_from(["outcome", "other"]),
        check=st.sampled_from(["exists", "count"]),
        strength=words(vocabulary.Strength),
        polarity=words(vocabulary.Polarity),
        issuer=st.builds(
            lambda kind: {"type": kind, "id": "system"},
            words(vocabulary.IssuerType),
        ),
        subject=st.sampled_from(["sha256:aa", "sha256:bb"]),
        observed_at=times,
        pre_state=words(vocabulary.PreState),
        effect_key=st.sampled_from(["e1", "e2", "c1"]),
    ),
)
stops = some(
    started_at=times,
    conditions=st.lists(
        st.builds(
            lambda kind, fired, limit, observed: {
                "name": kind,
                "kind": kind,
                "fired": fired,
                "limit": limit,
                "observed": observed,
            },
            words(vocabulary.LimitKind),
            st.booleans(),
            small,
            small,
        ),
        max_size=2,
    ),
    limits=st.just([{"name": "max", "kind": "steps", "limit": 2, "unit": "step", "scope": "run"}]),
    finish_reason=some(normalized=words(vocabulary.Finish), raw=st.just("x")),
    steps=small,
    step_unit=st.just("step"),
    tool_calls=small,
    pending_tool_calls=small,
    tool_errors=some(terminal=small, recovered=small),
    unsafe_steps=small,
    progress=some(made=st.booleans(), last_at=times, in_flight_tools=small),
    abort=some(requested_at=times, observed_at=times, actor=st.just("user")),
    approvals=st.lists(approvals, max_size=2),
    outcomes=st.lists(outcomes, max_size=1),
    children=some(open=small, failed=small, waiting=small),
    error=some(type=st.just("ToolError")),
    forced_wrapup=st.booleans(),
    output_shape=words(vocabulary.OutputShape),
    effects_after_stop=small,
    reason_code=st.sampled_from(["x", "outcome_type_unknown"]),
    contract=st.just("outcome"),
    subject=st.just("sha256:aa"),
)
starts = some(
    lease_s=st.sampled_from([30, 300]),
    contract=st.just("outcome"),
    limits=st.just([{"name": "max", "kind": "steps", "limit": 2, "unit": "step", "scope": "run"}]),
)


@st.composite
def records(draw: st.DrawFn, run_id: str = "r1", *, terminal: bool | None = None) -> list[dict[str, Any]]:
    """The records of one run, as wire values. `terminal` True: at least one receipt; False: no receipt and no death."""
    made = [{"kind": "run.started", **draw(starts)}] if draw(st.booleans()) or terminal is False else []
    kinds = ["progress", "approval", "outcome"] + ([] if terminal is False else ["stop", "stop", "died"])
    chosen = draw(st.lists(st.sampled_from(kinds), max_size=4))
    made += [draw(_record(kind)) for kind in (["stop"] if terminal else []) + chosen]
    made = made or [draw(_record("stop"))]
    sequenced = draw(st.booleans())
    clock = sorted(draw(st.lists(seconds, min_size=len(made), max_size=len(made))))
    for number, (record, offset) in enumerate(zip(made, clock, strict=True)):
        record |= {"schema": "stopcause/1", "run_id": run_id, "at": at(offset), "agent": "agent"}
        if record["kind"] not in ("run.started", "run.stopped"):
            del record["agent"]
        if sequenced:
            record["seq"] = number
    return made


def _record(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    boundary = some(boundary=words(vocabulary.Boundary))
    return {
        "stop": st.builds(
            lambda cause, rest, where: {"kind": "run.stopped", "stop_cause": cause, **rest, **where},
            words(vocabulary.StopCause),
            stops,
            boundary,
        ),
        "progress": st.builds(lambda sign: {"kind": "run.progress", "sign": sign}, words(vocabulary.Sign)),
        "approval": st.builds(lambda each: {"kind": "approval.updated", "approval": each}, approvals),
        "outcome": st.builds(
            lambda each, where: {"kind": "outcome.recorded", "outcome": each, **where}, outcomes, boundary
        ),
        "died": st.builds(lambda reason: {"kind": "run.died", "reason": reason}, words(vocabulary.DeathReason)),
    }[kind]


def read(values: list[dict[str, Any]]) -> list[model.RunRecord]:
    """Wire values as records; the strategies make no bad ones."""
    read_back = [codec.read_value(value) for value in values]
    assert not [each for each in read_back if isinstance(each, codec.LineError)]
    return [each for each in read_back if isinstance(each, model.RunRecord)]


policies: st.SearchStrategy[Policy] = st.sampled_from(POLICIES)
nows = st.integers(min_value=0, max_value=2000).map(lambda offset: START + timedelta(seconds=offset))

_GOOD_STOP = {
    "kind": "run.stopped",
    "stop_cause": "natural",
    "steps": 2,
    "step_unit": "step",
    "tool_calls": 1,
    "pending_tool_calls": 0,
    "boundary": "call",
    "finish_reason": {"raw": "stop", "normalized": "stop"},
}
_VOUCHED = {
    "outcome_id": "o1",
    "strength": "human",
    "polarity": "confirmed",
    "check": "exists",
    "issuer": {"type": "human", "id": "x"},
    "observed_at": at(90),
}


@st.composite
def finishes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A run that finished and that a person vouches for, with a fault or two."""
    clock = iter(sorted(draw(st.lists(st.integers(0, 60), min_size=6, max_size=6))))
    faults = draw(stops)
    kept = draw(st.sets(st.sampled_from(sorted(faults)), max_size=2)) if faults else set()
    stop = _GOOD_STOP | {name: faults[name] for name in kept}
    made: list[dict[str, Any]] = [{"kind": "run.started", **draw(starts)}, stop]
    if draw(st.booleans()):
        made.append({"kind": "outcome.recorded", "outcome": _VOUCHED | draw(st.one_of(st.just({}), outcomes))})
    if draw(st.booleans()):
        made.append(draw(_record(draw(st.sampled_from(["progress", "approval", "outcome", "stop", "died"])))))
    head = {"schema": "stopcause/1", "run_id": "r1"}
    return [record | head | {"at": at(next(clock))} for record in made]


runs = st.one_of(records(), finishes(), finishes())
closed_runs = st.one_of(records(terminal=True), finishes(), finishes())


@st.composite
def worlds(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A run r1 with up to three attempts, and up to two others that may take it up. Times agree with nothing."""
    values = [value | {"attempt": draw(st.sampled_from([1, 1, 2, 3]))} for value in draw(runs)]
    for name in ("r2", "r3")[: draw(st.integers(0, 2))]:
        for value in draw(records(name)):
            value["attempt"] = draw(st.sampled_from([1, 1, 2]))
            if value["kind"] in ("run.started", "run.stopped") and draw(st.booleans()):
                value["resumes_run_id"] = "r1"
                value["answers"] = draw(st.sampled_from([None, ["a1"], ["a2"], ["a1", "a2"], []]))
            values.append(value)
    return [value | {"at": draw(times)} if draw(st.booleans()) else value for value in values]
