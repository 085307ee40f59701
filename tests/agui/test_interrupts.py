"""Interrupts as they are read: from outcomes, from CUSTOM events of all forms, and their schemas without prose."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from stopcause.agui.interrupts import MOST, read_custom, read_interrupts
from stopcause.agui.values import Interrupt
from stopcause.receipts.vocabulary import ApprovalKind
from tests.agui.watched import GIVEN, OLD_STARTED, STARTED, ask, call, custom, finished, interrupted, names, run

Json = Any


def read(value: Json) -> Interrupt:
    (only,) = run([STARTED, interrupted(value)]).interrupts
    return only


@pytest.mark.parametrize(
    ("event", "name", "kind"),
    [
        (custom({"reason": "confirmation"}, rawEvent={"id": "raw"}), "raw", ApprovalKind.CONFIRMATION),
        (custom({"id": "own", "reason": "input_required"}), "own", ApprovalKind.INPUT_REQUIRED),
        (custom('{"id": "own", "reason": "tool_call"}'), "own", ApprovalKind.TOOL_CALL),
        (custom({"toolCallId": "c1"}), "c1", ApprovalKind.TOOL_CALL),
        (custom({"tool_call_id": "c1"}), "c1", ApprovalKind.TOOL_CALL),
        (custom({"action_requests": [{}]}), "r1:1", ApprovalKind.TOOL_CALL),
        (custom([{"id": "first"}, {"id": "second"}]), "first", ApprovalKind.EXTERNAL),
        (custom("shall I?"), "r1:1", ApprovalKind.EXTERNAL),
        (custom("["), "r1:1", ApprovalKind.EXTERNAL),
        (custom(None), "r1:1", ApprovalKind.EXTERNAL),
        (custom({"id": 5, "reason": 5}), "r1:1", ApprovalKind.EXTERNAL),
        (custom("x", rawEvent={"value": {"reason": "tool_call"}, "id": "raw"}), "raw", ApprovalKind.TOOL_CALL),
        (custom({"id": "f1"}, name="function_approval_request"), "f1", ApprovalKind.TOOL_CALL),
    ],
)
def test_a_custom_question_is_read_whatever_its_form(event: Json, name: str, kind: ApprovalKind) -> None:
    interrupt = read_custom(event, "r1", 1).interrupt
    assert (interrupt.id, interrupt.kind) == (name, kind)


def test_custom_questions_without_an_id_are_different_ones() -> None:
    seen = run([OLD_STARTED, custom("a?"), custom("b?"), finished()])
    assert [each.id for each in seen.interrupts] == ["r1:1", "r1:2"]


def test_a_question_that_is_told_twice_is_one() -> None:
    seen = run([OLD_STARTED, custom({"id": "i1"}), custom({"id": "i1"}), finished()])
    assert [each.id for each in seen.interrupts] == ["i1"]


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000])
def test_a_value_that_is_nested_too_deep_is_a_question_without_form(deep: str) -> None:
    assert read_custom(custom(deep), "r1", 1).interrupt.id == "r1:1"


def test_times_owner_and_schema() -> None:
    schema = {"type": "object"}
    ours = {"stopcause": {"owner": "team:billing", "due": "2026-12-01T00:00:00Z"}}
    it = read(ask(expiresAt="2026-12-02T00:00:00+01:00", metadata=ours, responseSchema=schema, subagentRunId="s1"))
    assert it.expires_at == datetime(2026, 12, 1, 23, tzinfo=UTC)
    assert it.due == datetime(2026, 12, 1, tzinfo=UTC)
    assert (it.owner, it.raised_by, it.schema) == ("team:billing", "s1", schema)


@pytest.mark.parametrize("ours", [None, 5, {"owner": "Bob of sales", "due": "soon"}, {"owner": 5, "due": 5}])
def test_what_is_no_owner_and_no_time_is_none(ours: Json) -> None:
    it = read(ask(metadata={"stopcause": ours}))
    assert (it.owner, it.due) == (None, None)


def test_an_owner_that_names_a_person_is_a_keyed_hash() -> None:
    owner = read(ask(metadata={"stopcause": {"owner": "user:jo@example.com"}})).owner
    assert owner is not None
    assert owner.startswith("user:hmac:")


OWN = ask(reason="confirmation")  # goes with nothing


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ([OWN], {"NO_DEADLINE"}),
        ([{**OWN, "expiresAt": "2026-12-01T00:00:00Z"}], set()),
        ([{**OWN, "metadata": {"stopcause": {"due": "2026-12-01T00:00:00Z"}}}], set()),
        ([{**OWN, "expiresAt": "tomorrow"}], {"EXPIRY_UNREADABLE", "NO_DEADLINE"}),
        ([OWN, OWN], {"DUP_INTERRUPT_ID", "NO_DEADLINE"}),
        ([ask(toolCallId="c9")], {"DANGLING_TOOLCALL", "NO_DEADLINE"}),
        ([ask(toolCallId="c1")], {"NO_DEADLINE"}),
        ([ask(toolCallId="c0")], {"NO_DEADLINE"}),
        ([ask(reason="any:thing")], {"NO_DEADLINE"}),
    ],
)
def test_what_is_found_about_interrupts(asked: list[Json], found: set[str]) -> None:
    given = GIVEN._replace(calls={"c0": "send"})
    assert names(run([STARTED, *call("c1"), interrupted(*asked)], given)) == found


@pytest.mark.parametrize(
    ("asked", "is_in_form"),
    [
        (OWN, True),
        (ask(toolCallId="c1"), True),
        (ask(), False),
        (ask(reason="input_required", responseSchema={}), True),
        (ask(reason="input_required"), False),
        (ask(reason="langgraph:database_modification"), True),
        (ask(reason="core:new"), False),
        (ask(reason="may I?"), False),
        (ask(reason=":x"), False),
        (ask(reason="x:"), False),
        (ask(reason=""), False),
    ],
)
def test_a_reason_is_one_of_three_with_its_field_or_has_a_namespace(asked: Json, is_in_form: bool) -> None:
    told: list[str] = []
    read_interrupts([asked], "r1", lambda name, *_: told.append(name))
    assert ("REASON_FORM" not in told) is is_in_form


def test_two_interrupts_of_one_id_are_both_there_and_the_stream_is_believed() -> None:
    seen = run([STARTED, interrupted(ask(), ask(reason="confirmation"))])
    assert (len(seen.interrupts), seen.ending.value) == (2, "interrupt")


def test_without_an_input_nobody_knows_whether_a_call_was_seen() -> None:
    assert "DANGLING_TOOLCALL" not in names(run([STARTED, interrupted(ask(toolCallId="c9"))], None))


def test_the_tool_of_a_call_of_an_earlier_run_is_in_the_input() -> None:
    seen = run([STARTED, interrupted(ask(toolCallId="c0"))], GIVEN._replace(calls={"c0": "pay"}))
    assert seen.interrupts[0].tool == "pay"


def test_a_call_that_a_snapshot_holds_was_seen_and_names_its_tool() -> None:
    proposed = {"id": "c9", "type": "function", "function": {"name": "pay", "arguments": ""}}
    held = {"id": "m", "role": "assistant", "toolCalls": [proposed]}
    seen = run([STARTED, {"type": "MESSAGES_SNAPSHOT", "messages": [held]}, interrupted(ask(toolCallId="c9"))])
    assert seen.interrupts[0].tool == "pay"
    assert "DANGLING_TOOLCALL" not in names(seen)


@pytest.mark.parametrize(
    "stream",
    [
        [STARTED, interrupted(*(ask(f"i{number}") for number in range(MOST + 1)))],
        [OLD_STARTED, *(custom({"id": f"i{number}"}) for number in range(MOST + 1)), finished()],
    ],
    ids=["outcome", "custom"],
)
def test_more_interrupts_than_are_kept_are_said(stream: list[Json]) -> None:
    seen = run(stream)
    assert len(seen.interrupts) == MOST
    assert "TOO_MANY" in names(seen)


def test_half_a_character_in_a_question_is_told_as_whole_ones() -> None:
    seen = run([OLD_STARTED, custom('{"id": "i\\ud800", "toolCallId": "c\\udfff"}'), finished()])
    assert [(each.id, each.tool_call_id) for each in seen.interrupts] == [("i\\ud800", "c\\udfff")]
    assert all(each.encode() for finding in seen.findings for each in finding.ids)


# Schemas --------------------------------------------------------------------------------------------------------------


PROSE = {"title": "PROSE", "description": "PROSE", "default": "PROSE", "examples": ["PROSE"], "$comment": "PROSE"}


def plain(schema: Json) -> Json:
    return read(ask(responseSchema=schema)).schema


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: inner,
        lambda inner: {"properties": {"a": inner}},
        lambda inner: {"$defs": {"a": inner}},
        lambda inner: {"items": inner},
        lambda inner: {"prefixItems": [inner]},
        lambda inner: {"anyOf": [{"not": inner}]},
        lambda inner: {"if": inner, "then": inner, "else": inner},
        lambda inner: {"patternProperties": {"^a": {"additionalProperties": inner}}},
        lambda inner: {"dependencies": {"a": inner, "b": ["c"]}},
    ],
)
def test_what_people_read_is_left_out_at_every_level(around: Callable[[Json], Json]) -> None:
    kept = plain(around({**PROSE, "type": "string"}))
    assert kept == around({"type": "string"})


def test_a_property_that_is_called_title_is_no_title() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "default": {}}, "required": ["title"]}
    assert plain(schema) == schema


def test_values_of_a_schema_stay_as_they_are() -> None:
    schema = {"enum": [{"title": "kept"}], "const": {"description": "kept"}}
    assert plain(schema) == schema


def test_the_digest_is_that_of_the_whole_schema() -> None:
    one, two = (read(ask(responseSchema={"title": title, "type": "object"})) for title in ("a", "b"))
    assert one.schema == two.schema == {"type": "object"}
    assert one.schema_digest != two.schema_digest


def test_a_schema_that_is_too_large_is_only_a_digest() -> None:
    it = read(ask(responseSchema={"enum": ["x" * 70_000]}))
    assert it.schema is None
    assert it.schema_digest is not None


def test_a_schema_that_is_too_deep_is_only_a_digest() -> None:
    deep: Json = {}
    for _ in range(150):
        deep = {"not": deep}
    it = read(ask(responseSchema=deep))
    assert it.schema is None
    assert it.schema_digest is not None


def test_what_is_wrong_with_an_interrupt_is_told_by_its_place() -> None:
    told: list[tuple[str, ...]] = []
    read_interrupts([{"id": 5, "reason": "x", "metadata": None}], "r1", lambda *each: told.append(each))
    assert told[:2] == [("MALFORMED", "interrupt.id"), ("NULL_FIELD", "interrupt.metadata")]


def test_nothing_that_people_wrote_is_kept() -> None:
    value = ask(message="SECRET", metadata={"a": "SECRET"}, responseSchema=PROSE, reason="SECRET sentence")
    assert "SECRET" not in repr(read(value))
    assert "SECRET" not in repr(read_custom(custom(json.dumps({**value, "args": "SECRET"})), "r1", 1))
