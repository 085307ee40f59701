"""What an input is read as: ids, answers, tools, calls; odd shapes and sizes; and nothing of what was written in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.findings import names
from stopcause.agui.inputs import MOST, digest_of, read_input
from stopcause.agui.values import Entry, Input
from tests.support.laws import tried_on

MARK = "canary-7f3a is here"
IDS = {"threadId": "t1", "runId": "r1"}
ABSENT = digest_of(None, is_absent=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def given_input(**fields: object) -> Input:
    value = read_input({**IDS, **fields})
    assert value is not None
    return value


def entry_of(**fields: object) -> Entry:
    """The one answer of a list, in which nothing is wrong."""
    value = given_input(resume=[{"interruptId": "i-1", "status": "resolved", **fields}])
    assert value.findings == ()
    assert value.resume is not None
    return value.resume[0]


def faults(*resume: object) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.name, each.ids) for each in given_input(resume=list(resume)).findings]


@pytest.mark.parametrize(
    "value",
    [None, 7, "x", [], {}, [IDS], {"threadId": "t1"}, {"runId": "r1"}, {**IDS, "runId": ""}, {**IDS, "runId": 7},
     {**IDS, "threadId": None}, {**IDS, "threadId": ["t1"]}],
)  # fmt: skip
def test_what_has_not_both_ids_is_no_input(value: object) -> None:
    assert read_input(value) is None


def test_the_least_input_has_ids_and_nothing_else() -> None:
    assert read_input(IDS) == Input("t1", "r1")


def test_null_is_absent() -> None:
    optional = ("parentRunId", "protocolVersion", "resume", "tools", "messages", "forwardedProps", "state", "context")
    assert given_input(**dict.fromkeys(optional)) == Input("t1", "r1")


WRITTEN = {
    "threadId": "t1",
    "runId": "r1",
    "parentRunId": "r0",
    "protocolVersion": "1.0",
    "messages": [
        {"id": "m1", "role": "user", "content": MARK},
        {"id": "m2", "role": "assistant", "content": MARK, "toolCalls": [
            {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": MARK}},
            {"id": "c2", "type": "function", "function": {"name": "send mail", "arguments": MARK}},
            {"id": "c3", "type": "function", "function": {"name": "!" * 9, "arguments": MARK}},
        ]},
        {"id": "m3", "role": "tool", "toolCallId": "c1", "content": MARK},
    ],
    "tools": [{"name": "show chart", "description": MARK}, {"name": "confirm", "parameters": {"a": MARK}}],
    "state": {"a": MARK},
    "context": [{"description": MARK, "value": MARK}],
    "forwardedProps": {"command": {"resume": {"approved": False, "why": MARK}}, "a": MARK},
    "resume": [
        {"interruptId": "i-1", "status": "resolved", "payload": {"approved": True, "editedArgs": {"to": MARK}}},
        {"interruptId": "i-2", "status": "cancelled", "metadata": {"signature": MARK}},
    ],
}  # fmt: skip


def snake(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same with keys as the Python SDK before 1.0 wrote them."""
    if isinstance(value, list):
        return [snake(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {"editedArgs"}  # of the answer, which belongs to the agent
    names = {name: "".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in value}
    return {name if name in kept else names[name]: snake(each) for name, each in value.items()}


@pytest.mark.parametrize("value", [WRITTEN, snake(WRITTEN)], ids=["1.0", "before"])
def test_what_counts_is_read_and_no_content(value: dict[str, Any]) -> None:
    seen = read_input(value)
    assert seen is not None
    assert seen._replace(resume=None, legacy_answers=()) == Input(
        has_messages=True,
        thread_id="t1",
        run_id="r1",
        parent_run_id="r0",
        protocol_version="1.0",
        tools=frozenset({"show chart", "confirm"}),
        calls={"c2": None, "c3": None},
        answered=frozenset({"c1"}),
    )
    assert seen.resume is not None
    edited, cancelled = seen.resume
    assert edited._replace(digest="") == Entry("i-1", "resolved", "", True, True, None, True)
    assert cancelled == Entry("i-2", "cancelled", ABSENT)
    [answer] = seen.legacy_answers
    assert answer._replace(digest="") == Entry("", "resolved", "", has_payload=True, approved=False)
    assert MARK not in repr(seen)


# Answers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resume", [None, []])
def test_no_list_and_an_empty_one_differ(resume: list[Any] | None) -> None:
    assert given_input(resume=resume).resume == (None if resume is None else ())


@pytest.mark.parametrize("resume", [{}, "x", 7, True, {"interruptId": "i-1", "status": "resolved"}])
def test_a_resume_that_is_no_list_is_found(resume: object) -> None:
    value = given_input(resume=resume)
    assert value.resume is None
    assert [(each.name, each.ids) for each in value.findings] == [("ENTRY_MALFORMED", ("resume",))]


@pytest.mark.parametrize(
    "entry", [None, 7, "i-1", [], {}, {"status": "resolved"}, {"interruptId": "", "status": "resolved"}]
)
def test_an_answer_to_nothing_is_found_by_its_place(entry: object) -> None:
    good = {"interruptId": "i-1", "status": "resolved"}
    assert faults(good, entry) == [("ENTRY_MALFORMED", ("resume.1",))]
    assert len(given_input(resume=[good, entry]).resume or ()) == 1


@pytest.mark.parametrize(
    ("status", "kept"),
    [("approved", "approved"), ("RESOLVED", "RESOLVED"), (MARK, "unreadable"), (None, "unreadable"),
     (True, "unreadable"), ("", "unreadable"), (["resolved"], "unreadable"), ("someone@example.com", "unreadable")],
)  # fmt: skip
def test_a_status_that_is_none_is_found_and_kept_where_it_is_a_word(status: object, kept: str) -> None:
    entry = {"interruptId": "i-1", "status": status}
    assert faults(entry) == [("ENTRY_MALFORMED", ("i-1",))]
    assert given_input(resume=[entry]).resume == (Entry("i-1", kept, ABSENT),)


def test_an_answer_without_a_status_is_found() -> None:
    assert faults({"interruptId": "i-1"}) == [("ENTRY_MALFORMED", ("i-1",))]


@pytest.mark.parametrize("metadata", [None, 7, "x", []])
def test_metadata_is_an_object_or_absent(metadata: object) -> None:
    assert faults({"interruptId": "i-1", "status": "resolved", "metadata": metadata}) == [("ENTRY_MALFORMED", ("i-1",))]
    assert entry_of(metadata={"a": None}) == entry_of()


def test_the_key_of_the_protocol_is_reserved() -> None:
    assert faults({"interruptId": "i-1", "status": "resolved", "metadata": {"ag-ui": 1}}) == [
        ("RESERVED_KEY", ("i-1",))
    ]


@pytest.mark.parametrize("payload", [False, 0, "", [], {}, None])
def test_a_falsy_payload_is_a_payload(payload: object) -> None:
    entry = entry_of(payload=payload)
    assert entry.has_payload
    assert entry.digest != ABSENT
    assert entry.bare is (False if payload is False else None)


@pytest.mark.parametrize(
    ("payload", "approved"), [({"accepted": False}, False), ({"accepted": True, "approved": False}, False),
                              ({"approved": True}, True), ({"approved": False}, False), ({"approved": "yes"}, None),
                              ({"approved": 1}, None), ({}, None), (True, None), ([], None), ("approved", None)]
)  # fmt: skip
def test_only_a_boolean_approves(payload: object, approved: bool | None) -> None:
    assert entry_of(payload=payload).approved is approved


@pytest.mark.parametrize(("edits", "is_edited"), [({}, True), ({"a": 1}, True), ("x", True), (None, False)])
def test_edits_are_there_or_not(edits: object, is_edited: bool) -> None:
    assert entry_of(payload={"approved": True, "editedArgs": edits}).is_edited is is_edited


@pytest.mark.parametrize("answer", [{"approved": True}, '{"approved": true}', ' {"approved": true}\n'])
def test_the_answer_before_resume_is_an_object_or_its_json(answer: object) -> None:
    entries = given_input(forwardedProps={"command": {"resume": answer}}).legacy_answers
    assert entries == (entry_of(payload={"approved": True})._replace(id=""),)


_ONE, _OTHER = "0123456789abcdef" * 2, "f" * 32


@pytest.mark.parametrize("as_text", [False, True])
def test_a_map_of_langgraph_s_ids_is_an_answer_for_each(as_text: bool) -> None:
    answer = {_ONE: {"approved": True}, _OTHER: None}
    given = given_input(forwardedProps={"command": {"resume": json.dumps(answer) if as_text else answer}})
    allowed, nothing = entry_of(payload={"approved": True}), entry_of(payload=None)
    assert given.legacy_answers == (allowed._replace(id=_ONE), nothing._replace(id=_OTHER))


@pytest.mark.parametrize(
    "answer", [{}, {_ONE: 1, "approved": True}, {_ONE[1:]: 1}, {_OTHER.upper(): 1}, {_ONE + "\n": 1}]
)
def test_an_object_with_other_keys_is_one_answer(answer: object) -> None:
    [entry] = given_input(forwardedProps={"command": {"resume": answer}}).legacy_answers
    assert entry.id == ""


@pytest.mark.parametrize("answer", [False, 0, "", "no", "{", '"\ud800', "[" * 5000, []])
def test_the_answer_before_resume_may_be_anything(answer: object) -> None:
    [entry] = given_input(forwardedProps={"command": {"resume": answer}}).legacy_answers
    assert (entry.id, entry.has_payload) == ("", True)


@pytest.mark.parametrize("props", [None, 7, {}, {"command": None}, {"command": {}}, {"command": {"resume": None}}, []])
def test_without_an_answer_there_is_none(props: object) -> None:
    assert given_input(forwardedProps=props).legacy_answers == ()


# Messages and tools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [{"messages": 7}, {"messages": [None, 7, {}]}, {"messages": [{"toolCalls": 7}]},
     {"messages": [{"toolCalls": [7, {}]}]},
     {"messages": [{"role": "user", "toolCallId": "c1"}]}, {"messages": [{"role": "tool", "toolCallId": 7}]},
     {"messages": [{"toolCalls": [{"id": 7}]}]}, {"tools": 7}, {"tools": [7, {}, {"name": 7}, {"name": ""}]}],
)  # fmt: skip
def test_other_shapes_are_passed_over(fields: dict[str, Any]) -> None:
    assert given_input(**fields)._replace(has_messages=False) == Input("t1", "r1")


@pytest.mark.parametrize(("fields", "there"), [({}, False), ({"messages": None}, False), ({"messages": []}, True)])
def test_no_messages_are_other_than_none_at_all(fields: dict[str, Any], there: bool) -> None:
    assert given_input(**fields).has_messages is there


def test_a_call_may_name_no_tool() -> None:
    messages = [
        {"toolCalls": [{"id": "c1"}, {"id": "c2", "function": 7}, {"id": "c3", "function": {"name": MARK * 9}}]}
    ]
    assert given_input(messages=messages).calls == {"c1": None, "c2": None, "c3": None}


def test_calls_are_in_their_order() -> None:
    messages = [{"toolCalls": [{"id": "c2"}, {"id": "c1"}]}, {"toolCalls": [{"id": "c0"}]}]
    assert list(given_input(messages=messages).calls) == ["c2", "c1", "c0"]


def test_the_last_messages_count_where_there_are_too_many() -> None:
    call = {"role": "assistant", "toolCalls": [{"id": "c1", "function": {"name": "refund"}}]}
    filler = [{"role": "user"}] * MOST
    assert given_input(messages=[call, *filler]).calls == {}
    assert names(given_input(messages=[call, *filler]).findings) == {"INPUT_TOO_LARGE"}
    assert given_input(messages=[*filler, call][1:]).calls == {"c1": "refund"}
    assert given_input(messages=filler).findings == ()


@pytest.mark.parametrize(
    "fields",
    [{"resume": [{"interruptId": f"i-{n}", "status": "resolved"} for n in range(MOST + 1)]},
     {"tools": [{"name": f"t{n}"} for n in range(MOST + 1)]},
     {"messages": [{"toolCalls": [{"id": f"c{n}"} for n in range(MOST + 1)]}]}],
    ids=["resume", "tools", "calls"],
)  # fmt: skip
def test_what_is_too_much_says_so(fields: dict[str, Any]) -> None:
    value = given_input(**fields)
    assert names(value.findings) == {"INPUT_TOO_LARGE"}
    assert max(len(value.resume or ()), len(value.tools), len(value.calls)) == MOST


# What no JSON is, and any JSON ---------------------------------------------------------------------------------------


def deep(levels: int) -> Any:  # noqa: ANN401 - any JSON
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def circular() -> Any:  # noqa: ANN401 - no JSON at all
    value: list[Any] = []
    value.append(value)
    return value


HOSTS = [
    deep(150),
    deep(100_000),
    circular(),
    {1, 2},
    object(),
    float("nan"),
    float("inf"),
    10**5000,
    "\ud800",
    {(1, 2): 3},
    b"x",
]


@pytest.mark.parametrize("payload", HOSTS, ids=range(len(HOSTS)))
def test_what_a_program_made_that_is_no_json_is_never_an_error(payload: object) -> None:
    assert len(digest_of(payload, is_absent=False)) == 32
    value = given_input(
        resume=[{"interruptId": "i-1", "status": "resolved", "payload": payload, "metadata": payload}, payload],
        tools=[payload], messages=[payload], forwardedProps={"command": {"resume": payload}}, state=payload,
    )  # fmt: skip
    assert value.resume is not None
    assert value.resume[0].id == "i-1"


def test_half_a_surrogate_pair_in_an_id_is_written_out() -> None:
    value = read_input({"threadId": "t\ud800", "runId": "r1", "resume": [{"interruptId": "i\udfff", "status": 7}]})
    assert value is not None
    assert value.thread_id == r"t\ud800"
    assert [entry.id for entry in value.resume or ()] == [r"i\udfff"]


@tried_on(500)
@given(
    JSON, st.sampled_from(["resume", "tools", "messages", "forwardedProps", "parentRunId", "protocolVersion", "state"])
)
def test_no_shape_is_an_error(value: Any, field: str) -> None:  # noqa: ANN401 - any JSON
    for shape in (
        value,
        [value],
        {"command": value},
        {"command": {"resume": value}},
        [{"interruptId": "i", "payload": value}],
    ):
        assert given_input(**{field: shape}).thread_id == "t1"
    read_input(value)
