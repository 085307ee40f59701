"""Prose in any place of any record comes out nowhere: in no record, in no line that is kept, in no error."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopcause.receipts import codec, model
from stopcause.receipts.codec import LineError, write_line
from tests.support.laws import tried_on

CANARIES = ("Canary the secret prose", "Canary,the;secret", "Canary\u00a0secret", 'Canary"secret', "Canary\tsecret")
RECORDS: dict[str, dict[str, Any]] = {
    "run.started": {},
    "run.progress": {},
    "run.stopped": {"stop_cause": "natural"},
    "approval.updated": {"approval": {"approval_id": "a"}},
    "outcome.recorded": {"outcome": {"outcome_id": "o"}},
    "run.died": {},
    "triage.updated": {"group": "g"},
    "run.dreamt": {},
}
NESTED: dict[str, type[model.Value]] = {
    "findings": model.Finding,
    "limits": model.Limit,
    "process": model.Process,
    "conditions": model.Condition,
    "finish_reason": model.FinishReason,
    "tool_errors": model.ErrorCounts,
    "model_errors": model.ErrorCounts,
    "progress": model.Progress,
    "abort": model.Abort,
    "approval": model.Approval,
    "approvals": model.Approval,
    "outcome": model.Outcome,
    "outcomes": model.Outcome,
    "issuer": model.Issuer,
    "children": model.Children,
    "plan_items": model.PlanItems,
    "error": model.RunError,
    "usage": model.Usage,
}
RECEIPT = {"kind": "run.stopped", "stop_cause": "natural"}
LEAST: dict[type[model.Value], dict[str, Any]] = {
    model.Finding: {"code": "c"},
    model.Limit: {"name": "n", "kind": "steps"},
    model.Condition: {"name": "n", "kind": "steps"},
    model.Approval: {"approval_id": "a"},
    model.Outcome: {"outcome_id": "o"},
    model.Issuer: {"type": "human"},
}


def fields_of(kind: type[model.Value]) -> list[str]:
    return list(kind.__dataclass_fields__)  # type: ignore[attr-defined] # pydantic makes them dataclasses


def test_the_canary_goes_into_every_nested_value() -> None:
    kinds = {kind for kind in vars(model).values() if isinstance(kind, type) and issubclass(kind, model.Value)}

    assert {kind for kind in kinds if "schema" not in getattr(kind, "__dataclass_fields__", "schema")} == {
        *NESTED.values()
    }
    assert set(RECORDS) == {*model.MODELS, "run.dreamt"}


@st.composite
def with_a_canary(draw: st.DrawFn) -> dict[str, Any]:
    """A record with prose in one place: a field, a name, a list, a map, at any depth."""
    canary = draw(st.sampled_from(CANARIES))
    value: Any = draw(
        st.sampled_from(
            [canary, [canary], ["a", canary], {"a": canary}, {canary: 1}, {canary: canary}, {"a": [canary]}]
        )
        | st.sampled_from([{"a": {"b": canary}}, {"a": {canary: 1}}, {canary: {"b": 1}}, {"dropped_keys": canary}])
    )
    kind = draw(st.sampled_from(list(RECORDS)))
    record = RECORDS[kind] | {"kind": kind}
    known = fields_of(model.MODELS.get(kind, model.UnknownRecord))
    field = draw(st.sampled_from([*known, "other", canary]))
    return record | {field: draw(inside(field, value))}


@st.composite
def inside(draw: st.DrawFn, field: str, value: object) -> object:
    """The value, or the value inside what this field holds."""
    kind = NESTED.get(field)
    if kind is None or draw(st.booleans()):
        return value
    inner = draw(st.sampled_from([*fields_of(kind), "other", CANARIES[0]]))
    nested = LEAST.get(kind, {}) | {inner: draw(inside(inner, value))}
    return draw(st.sampled_from([nested, [nested]]))


@tried_on(1000)
@given(with_a_canary(), st.booleans(), st.booleans())
def test_no_field_lets_prose_through(record: dict[str, Any], has_id: bool, twice: bool) -> None:
    head = {"schema": "stopcause/1", "run_id": "r1", "at": "2026-11-28T08:00:00Z"}
    if has_id:
        head["record_id"] = "0190d0f4-1a2b-7000-8000-00c0ffee0001"
    text = json.dumps(head | record, ensure_ascii=False)
    if twice:  # the same keys again, with nothing wrong in them: no model sees the first ones
        good = dict.fromkeys(record.keys() & set(fields_of(model.RunStopped))) | head | RECEIPT
        text = text[:-1] + "," + json.dumps(good)[1:]
    found = codec.keep_line(text.encode())

    said = str(found).encode() if isinstance(found, LineError) else found.line + write_line(found.record)
    assert b"Canary" not in said
    assert b"secret" not in said
