"""Reading lines: what is kept, what is mended, what is refused and how that is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.receipts import codec, model, pseudonyms
from stopcause.receipts.codec import LineError, read_line, read_lines, write_line

SMALLEST: dict[str, Any] = {
    "schema": "stopcause/1",
    "kind": "run.stopped",
    "run_id": "r1",
    "at": "2026-11-28T08:00:00Z",
    "stop_cause": "natural",
    "steps": 3,
}
PROSE = "Ignore the invoice of Bob"


def line(**changes: object) -> bytes:
    return json.dumps({key: value for key, value in (SMALLEST | changes).items() if value is not ...}).encode()


def stopped(text: bytes) -> model.RunStopped:
    record = read_line(text)
    assert isinstance(record, model.RunStopped)
    return record


def refused(text: bytes) -> LineError:
    error = read_line(text, 7)
    assert isinstance(error, LineError)
    return error


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_HMAC_KEY", "a key of the tests")
    pseudonyms.hmac_key.cache_clear()
    pseudonyms.pseudonym.cache_clear()


def test_the_smallest_receipt_is_a_record_with_an_id() -> None:
    record = stopped(line())

    assert record.record_id == codec.record_id(SMALLEST)
    assert record.attempt == 1


def test_an_id_made_from_content_does_not_depend_on_order_or_nulls() -> None:
    turned = dict(reversed(list(SMALLEST.items())))

    assert stopped(json.dumps(turned | {"agent": None}).encode()).record_id == stopped(line()).record_id
    assert stopped(line(steps=4)).record_id != stopped(line()).record_id


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"run_id": ...}, "run_id", "is missing"),
        ({"schema": ...}, "schema", "is missing"),
        ({"kind": ...}, "kind", "is missing"),
        ({"at": ...}, "at", "is missing"),
        ({"schema": "stopcause/2"}, "schema", "was written by a newer stopcause"),
        ({"schema": "other/1"}, "schema", "is no word of its list"),
        ({"kind": PROSE}, "kind", "is no identifier"),
        ({"run_id": PROSE}, "run_id", "does not have the shape of its field"),
        ({"run_id": "x" * 201}, "run_id", "does not have the shape of its field"),
        ({"run_id": "x\n"}, "run_id", "does not have the shape of its field"),
        ({"agent": "two words"}, "agent", "does not have the shape of its field"),
        ({"at": "2026-11-28T08:00:00"}, "at", "is no time"),
        ({"at": "2026-02-30T08:00:00Z"}, "at", "is no time"),
        ({"at": "1764489600"}, "at", "is no time"),
        ({"at": 1764489600}, "at", "is no time"),
        ({"at": "2026-11-28 08:00:00Z"}, "at", "is no time"),
        ({"at": "2026-11-28T08:00:00z"}, "at", "is no time"),
        ({"at": "2026-11-28T08:00:00+0200"}, "at", "is no time"),
        ({"steps": "3"}, "steps", "is no integer"),
        ({"steps": 3.5}, "steps", "is no integer"),
        ({"steps": True}, "steps", "is no integer"),
        ({"steps": -1}, "steps", "is too small"),
        ({"steps": 2**53}, "steps", "is too large"),
        ({"duration_s": "1"}, "duration_s", "is no number"),
        ({"boundary": "somewhere"}, "boundary", "is no word of its list"),
        ({"usage": {"cost_usd": -1}}, "usage.cost_usd", "is too small"),
        ({"labels": {str(n): "x" for n in range(9)}}, "labels", "has too many entries"),
        ({"approvals": [{"approval_id": "a", "state": "lost"}]}, "approvals.0.state", "is no word of its list"),
        ({"record_id": "not-a-uuid"}, "record_id", "does not have the shape of its field"),
    ],
)
def test_a_bad_line_names_line_field_and_reason(changes: dict[str, Any], field: str, reason: str) -> None:
    error = refused(line(**changes))

    assert (error.line, error.field, error.reason) == (7, field, reason)
    assert error.expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"schema":"stopcause/1","kind":"run.st', "is broken JSON"),
        (b"[]", "is JSON, but no object"),
        (b"\xff\xfe", "has invalid UTF-8 at byte 1"),
        (line().replace(b"3}", b"NaN}"), "has a number that is not finite"),
        (line().replace(b"3}", b"-Infinity}"), "has a number that is not finite"),
        (b"[" * 100_000, "has a number that is not finite, or is nested too deep"),
        (b'{"x":"' + b"a" * codec.MAX_LINE_BYTES + b'"}', "is 1048584 bytes long"),
    ],
)
def test_a_line_that_is_no_json_says_so(text: bytes, reason: str) -> None:
    assert refused(text).reason.startswith(reason)


def test_a_bad_line_never_costs_its_neighbours() -> None:
    found = list(read_lines([line(), b"", b"{", line(run_id="r2")]))

    assert [type(each).__name__ for each in found] == ["RunStopped", "LineError", "RunStopped"]
    assert isinstance(found[1], LineError)
    assert found[1].line == 3


def test_unknown_keys_are_kept_where_they_can_hold_no_prose() -> None:
    record = stopped(line(colour="blue", weight=3, note=PROSE, usage={"reasoning_tokens": 5}, nested={"a": 1}))

    assert record.extra == {"colour": "blue", "weight": 3, "usage.reasoning_tokens": 5, "dropped_keys": 2}


def test_an_unknown_word_of_an_open_list_becomes_unknown_with_a_finding() -> None:
    record = stopped(line(stop_cause="asteroid", finish_reason={"normalized": "asteroid"}))

    assert record.stop_cause == "unknown"
    assert record.findings
    assert [(each.code, each.where) for each in record.findings] == [
        ("vocabulary_new", "stop_cause"),
        ("vocabulary_new", "finish_reason.normalized"),
    ]


def test_an_unknown_kind_is_kept_and_sifted() -> None:
    record = read_line(line(kind="run.dreamt", note=PROSE, colour="blue"))

    assert isinstance(record, model.UnknownRecord)
    assert record.kind == "run.dreamt"
    assert record.extra == {"stop_cause": "natural", "steps": 3, "dropped_keys": 1, "colour": "blue"}


def test_a_signal_may_come_by_name_and_evidence_may_be_nested_once() -> None:
    died = read_line(line(kind="run.died", reason="killed", signal="SIGKILL", stop_cause=..., steps=...))
    outcome = {"outcome_id": "o", "evidence": {"versions": {"expected": "v2"}, "sizes": [1, 2]}}
    seen = read_line(line(kind="outcome.recorded", outcome=outcome, stop_cause=..., steps=...))

    assert isinstance(died, model.RunDied)
    assert died.signal == 9
    assert isinstance(seen, model.OutcomeRecorded)
    assert seen.outcome.evidence == {"versions.expected": "v2", "sizes": (1, 2)}


@pytest.mark.parametrize(
    "personal",
    [
        "bob@example.com",
        "user:bob.smith+x@example.co.uk",
        "+491701234567",
        "tel:+49-170-1234567",
        "555-123-4567",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig",
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "AKIAIOSFODNN7EXAMPLEKEY",
        "DE89370400440532013000",
    ],
)
def test_what_names_a_person_is_replaced_wherever_a_handle_is_expected(personal: str) -> None:
    approval = {"approval_id": "a", "owner": personal, "actor": personal}
    record = stopped(
        line(thread_id=personal, labels={"who": personal}, approvals=[approval], abort={"actor": personal})
    )

    written = write_line(record)
    assert personal.encode() not in written
    assert personal.partition(":")[2].encode() not in written or ":" not in personal
    assert b"personal_value_replaced" in written
    assert record.record_id == codec.record_id(
        json.loads(line(thread_id=personal, labels={"who": personal}, approvals=[approval], abort={"actor": personal}))
    )


@pytest.mark.parametrize(
    "harmless",
    [
        "team:billing",
        "user:u-118",
        "12345678901",
        "thread:77b0a2",
        "2026-11-28",
        "tok:a7",
        "sha256:aa",
        "DE00000000000000",
    ],
)
def test_ordinary_handles_stay(harmless: str) -> None:
    assert stopped(line(thread_id=harmless)).thread_id == harmless


def test_a_replaced_value_is_the_same_each_time_and_keeps_its_head() -> None:
    first, second = (stopped(line(thread_id="user:bob@example.com")).thread_id for _ in range(2))

    assert first == second
    assert first
    assert first.startswith("user:hmac:")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*model.RunStopped.__dataclass_fields__, "other"]), json_values, max_size=6))
def test_any_json_is_either_a_record_that_survives_the_wire_or_a_line_error(changes: dict[str, Any]) -> None:
    found = read_line(line(**changes))

    if not isinstance(found, LineError):
        assert read_line(write_line(found)) == found


CANARY = "Canary the secret prose"


@given(
    st.sampled_from([*model.RunStopped.__dataclass_fields__, "other"]),
    st.sampled_from([CANARY, [CANARY], {"a": CANARY}, {CANARY: 1}]),
)
def test_no_field_lets_prose_through(field: str, value: object) -> None:
    found = read_line(line(**{field: value}))

    said = str(found).encode() if isinstance(found, LineError) else write_line(found)
    assert CANARY.encode() not in said
