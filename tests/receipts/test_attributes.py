"""Names that others' dashboards rest on, and what of a receipt stands under them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stopcause.receipts import attributes, codec, model
from stopcause.receipts.attributes import Attribute
from stopcause.telemetry import names

BORROWED = {
    "deployment.environment.name",
    "error.type",
    "gen_ai.agent.name",
    "gen_ai.agent.version",
    "gen_ai.conversation.id",
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "log.record.uid",
}
WORKED_OUT = {
    Attribute.EVENT,
    Attribute.RECORD,
    Attribute.FIRED,
    Attribute.WAITS,
    Attribute.FOUND,
    Attribute.OPERATION,
    Attribute.ERROR_TYPE,
}
HEAD = {
    "schema": "stopcause/1",
    "record_id": "0190d0f4-1a2b-7000-8000-00c0ffee0001",
    "run_id": "r1",
    "at": "2026-11-28T08:00:00Z",
}


def fields_of(kind: type[model.Value]) -> set[str]:
    return {*kind.__dataclass_fields__}  # type: ignore[attr-defined] # pydantic makes them dataclasses


def attributes_of(**fields: Any) -> dict[str, attributes.Value]:  # noqa: ANN401 - any JSON
    line = json.dumps(HEAD | {"kind": "run.stopped", "stop_cause": "natural"} | fields).encode()
    record = codec.read_line(line)
    assert not isinstance(record, codec.LineError), record
    return attributes.attributes_of(record, line)


@pytest.mark.parametrize("name", Attribute)
def test_a_name_is_ours_or_one_that_opentelemetry_has(name: Attribute) -> None:
    assert name.startswith("stopcause.") or name in BORROWED
    assert re.fullmatch(r"[a-z]+([._][a-z]+)+", name)
    assert name.meaning
    assert not any(word in name for word in names.REDACTED)


def test_no_name_is_also_the_head_of_another() -> None:
    every = {*Attribute, *names.Attribute}

    assert not [(one, other) for one in every for other in every if other.startswith(f"{one}.")]


def test_one_name_has_one_meaning() -> None:
    mine = {str(name): name.meaning for name in Attribute}

    assert all(mine.get(str(name), name.meaning) == name.meaning for name in names.Attribute)


@pytest.mark.parametrize("name", [name for name in Attribute if name not in WORKED_OUT])
def test_its_place_is_a_field_of_the_receipt(name: Attribute) -> None:
    first, _, rest = name.place.partition(".")

    assert first in fields_of(model.RunStopped)
    assert not rest or rest in fields_of({"finish_reason": model.FinishReason, "usage": model.Usage}[first])


def test_the_page_names_every_one_with_its_meaning() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sinks.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]

    assert [row for row in rows if "." in row.split("`")[1]] == [f"| `{name}` | {name.meaning} |" for name in Attribute]


WHOLE: dict[str, Any] = dict(  # noqa: C408 - as keyword arguments
    agent="invoice-agent", agent_version="7", thread_id="t1", service="billing", environment="prod", model="m-1",
    provider="p", attempt=2, stop_cause="step_limit", reason_code="max_steps", boundary="callback",
    subsequent_causes=["natural", "tool_failure"], steps=20, step_unit="step", model_calls=20, tool_calls=19,
    pending_tool_calls=1, duration_s=1.5, forced_wrapup=True, contract="c", loop_policy="l", parent_run_id="r0",
    resumes_run_id="r-1", adapter="stopcause.langgraph", adapter_version="0.1.0", framework="langgraph",
    framework_version="1.2.24", dropped=3, finish_reason={"raw": "length", "normalized": "length"},
    usage={"input_tokens": 10, "output_tokens": 0, "cost_usd": 0.25},
    error={"type": "builtins.ValueError"}, findings=[{"code": "a", "where": "x"}, {"code": "a"}, {"code": "b"}],
    conditions=[
        {"name": "steps", "kind": "steps", "fired": True, "limit": 20},
        {"name": "time", "kind": "time", "fired": False},
    ],
    approvals=[{"approval_id": "a1", "owner": "team:pay", "resume_token": "token-1"}],
)  # fmt: skip
ATTRIBUTES = {
    "stopcause.event": "stopcause.run.stopped",
    "log.record.uid": "0190d0f4-1a2b-7000-8000-00c0ffee0001",
    "stopcause.run.id": "r1",
    "stopcause.run.attempt": 2,
    "stopcause.stop.cause": "step_limit",
    "stopcause.stop.reason": "max_steps",
    "stopcause.stop.later": ("natural", "tool_failure"),
    "stopcause.stop.fired": ("steps",),
    "stopcause.stop.boundary": "callback",
    "stopcause.stop.finish": "length",
    "stopcause.stop.forced_wrapup": True,
    "stopcause.step.count": 20,
    "stopcause.step.unit": "step",
    "stopcause.model.calls": 20,
    "stopcause.tool.calls": 19,
    "stopcause.tool.pending": 1,
    "stopcause.wait.count": 1,
    "stopcause.run.duration": 1.5,
    "stopcause.run.parent": "r0",
    "stopcause.run.resumes": "r-1",
    "stopcause.run.service": "billing",
    "stopcause.contract": "c",
    "stopcause.loop_policy": "l",
    "stopcause.cost.usd": 0.25,
    "stopcause.dropped": 3,
    "stopcause.receipt.findings": ("a", "b"),
    "stopcause.adapter.name": "stopcause.langgraph",
    "stopcause.adapter.version": "0.1.0",
    "stopcause.framework.name": "langgraph",
    "stopcause.framework.version": "1.2.24",
    "gen_ai.agent.name": "invoice-agent",
    "gen_ai.agent.version": "7",
    "gen_ai.conversation.id": "t1",
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.request.model": "m-1",
    "gen_ai.provider.name": "p",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 0,
    "error.type": "builtins.ValueError",
    "deployment.environment.name": "prod",
}


def test_a_whole_receipt() -> None:
    made = attributes_of(**WHOLE)
    record = made.pop("stopcause.record")
    assert isinstance(record, str)
    assert "token-1" in record
    assert made == ATTRIBUTES
    assert {*made, "stopcause.record"} == {str(name) for name in Attribute}
    assert {type(value) for value in made.values()} <= {str, bool, int, float, tuple}, "plain values, no enums"


def test_what_a_receipt_does_not_say_is_absent() -> None:
    assert {*attributes_of()} == {
        "stopcause.event", "log.record.uid", "stopcause.record", "stopcause.run.id", "stopcause.run.attempt",
        "stopcause.stop.cause", "gen_ai.operation.name",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("run.started", {"agent": "a", "environment": "prod"}),
        ("run.progress", {"sign": "heartbeat", "steps": 3}),
        ("approval.updated", {"approval": {"approval_id": "a1", "owner": "team:pay"}}),
        ("outcome.recorded", {"outcome": {"outcome_id": "o1"}}),
        ("run.died", {"reason": "lost"}),
    ],
)
def test_another_record_says_whose_it_is_and_no_more(kind: str, fields: dict[str, Any]) -> None:
    line = json.dumps(HEAD | {"kind": kind} | fields).encode()
    record = codec.read_line(line)
    assert not isinstance(record, codec.LineError)

    assert attributes.attributes_of(record, line) == {
        "stopcause.event": f"stopcause.{kind}",
        "log.record.uid": HEAD["record_id"],
        "stopcause.record": line.decode(),
        "stopcause.run.id": "r1",
        "stopcause.run.attempt": 1,
    }
    assert (attributes.event_name(record), attributes.body(record)) == (f"stopcause.{kind}", kind)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("ValueError", "ValueError"),
        ("langgraph.errors.GraphRecursionError", "langgraph.errors.GraphRecursionError"),
        ("a+b@example.org", None),
        ("sk-a1b2c3d4e5f6a7b8c9d0", None),
        ("7f3a", None),
        ("x/y:Z", "x/y:Z"),
    ],
)
def test_an_error_is_shown_by_its_type_where_it_is_one(kind: str, shown: str | None) -> None:
    assert attributes_of(error={"type": kind}).get("error.type") == shown


def test_a_few_words_for_people() -> None:
    record = codec.read_value(HEAD | {"kind": "run.stopped", "stop_cause": "tool_failure"})
    assert isinstance(record, model.RunStopped)

    assert attributes.body(record) == "tool_failure: an agent without a name"
