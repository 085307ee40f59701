"""Reading lines: what is kept, what is mended, what is refused and how that is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.receipts import codec, identifiers, model, pseudonyms
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
        ({"at": None}, "at", "is missing"),
        ({"at": "1970-01-01T00:00:00+01:00"}, "at", "is no time"),
        ({"at": "2999-12-31T23:59:59-01:00"}, "at", "is no time"),
        ({"at": "0001-01-01T00:00:00+01:00"}, "at", "is no time"),
        ({"extra": 3, "foo": 1}, "extra", "is no object"),
        ({"limits": [None]}, "limits.0", "is no object"),
        ({"answers": "a1"}, "answers", "is no list"),
        ({"labels": {"two words": "x"}}, "labels.?", "does not have the shape of its field"),
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
        (line(foo="x").replace(b'"x"', b'"\\ud800"'), "has half a character in it"),
        (line(foo="x").replace(b'"x"', b"[" * 300 + b"]" * 300), "has half a character in it, or is nested too deep"),
        (b'{"x":"' + b"a" * codec.MAX_LINE_BYTES + b'"}', "is 1048584 bytes long"),
    ],
)
def test_a_line_that_is_no_json_says_so(text: bytes, reason: str) -> None:
    assert refused(text).reason.startswith(reason)


def test_a_byte_order_mark_is_no_part_of_a_line() -> None:
    marked = b"\xef\xbb\xbf" + line() + b"\r\n"

    assert read_line(marked) == read_line(line())
    assert isinstance(kept := codec.keep_line(marked), codec.Kept)
    assert kept.record == read_line(line())
    assert read_line(b"\xef\xbb\xbf" * 3) != read_line(line())


def test_a_bad_line_never_costs_its_neighbours() -> None:
    found = list(read_lines([line(), b"", b"{", line(run_id="r2")]))

    assert [type(each).__name__ for each in found] == ["RunStopped", "LineError", "RunStopped"]
    assert isinstance(found[1], LineError)
    assert found[1].line == 3


def test_unknown_keys_are_kept_where_they_can_hold_no_prose() -> None:
    record = stopped(line(colour="blue", weight=3, note=PROSE, usage={"reasoning_tokens": 5}, nested={"a": 1}))

    assert record.extra == {"colour": "blue", "weight": 3, "usage.reasoning_tokens": 5, "dropped_keys": 2}


@pytest.mark.parametrize(
    ("changes", "extra"),
    [
        ({"extra": None, "foo": 1}, {"foo": 1}),
        ({"extra": {"dropped_keys": "x"}, "foo": {"a": 1}}, {"dropped_keys": 1}),
        ({"extra": {"dropped_keys": 4}, "foo": [1], "bar": PROSE}, {"dropped_keys": 6}),
        ({"extra": {"a": PROSE, "b": 2**53, "c d": 1, "ok": 2}, "foo": 1}, {"ok": 2, "foo": 1, "dropped_keys": 3}),
        ({"extra": {"foo": 1}, "foo": 2}, {"foo": 1, "dropped_keys": 1}),
        ({"foo": 2**53}, {"dropped_keys": 1}),
        ({"foo": -(2**53 - 1)}, {"foo": -(2**53 - 1)}),
        ({"foo": None}, None),
    ],
)
def test_extra_keeps_what_it_can_and_counts_the_rest(changes: dict[str, Any], extra: dict[str, Any] | None) -> None:
    assert stopped(line(**changes)).extra == extra


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"9" * 5000])
def test_a_number_that_nothing_can_hold_costs_an_unknown_key_and_no_line(number: bytes) -> None:
    assert stopped(line(foo=0).replace(b'"foo": 0', b'"foo": ' + number)).extra == {"dropped_keys": 1}
    twice = line().replace(b'"steps": 3', b'"steps": ' + number + b', "steps": 3')
    assert stopped(twice).steps == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": None},
        {"children": {"open": None}},
        {"tool_errors": {"terminal": None}},
        {"labels": {"a": None}},
        {"outcomes": [{"outcome_id": "o", "evidence": {"size": None}}]},
        {"approvals": [{"approval_id": "a", "owner": None}], "colour": None},
    ],
)
def test_null_equals_absent_at_any_depth(changes: dict[str, Any]) -> None:
    assert stopped(line(**changes)) == stopped(json.dumps(codec._without_nulls(SMALLEST | changes)).encode())


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


def outcome(**evidence: object) -> bytes:
    seen = {"outcome_id": "o", "evidence": evidence}
    return line(kind="outcome.recorded", outcome=seen, stop_cause=..., steps=...)


def test_flattening_overwrites_nothing() -> None:
    error = refused(outcome(versions={"expected": "v2"}, **{"versions.expected": "v1"}))

    assert (error.field, error.reason) == ("outcome.evidence.versions", "is nothing that evidence can be")


@pytest.mark.parametrize("value", [2**53, -(2**53), [1, 2**60], PROSE, {"a": {"b": 1}}, [[1]], list(range(17))])
def test_what_evidence_cannot_be_is_said_without_the_tags_of_a_union(value: object) -> None:
    error = refused(outcome(size=value))

    assert error.field.removesuffix(".a") == "outcome.evidence.size"
    assert error.reason == "is nothing that evidence can be"
    assert error.expected.startswith("an identifier, a number")
    assert refused(outcome(**{"two words": 1})).field == "outcome.evidence.?"


@pytest.mark.parametrize("value", [2**53 - 1, 1e300, -0.5, True, [1, "a", 2.5]])
def test_evidence_is_exact(value: object) -> None:
    seen = read_line(outcome(size=value))

    assert isinstance(seen, model.OutcomeRecorded)
    assert seen.outcome.evidence == {"size": tuple(value) if isinstance(value, list) else value}
    assert read_line(write_line(seen)) == seen


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
        "key:ASIAIOSFODNN7EXAMPLE",
        "sk_live_abcdefghijklmnop1234",
        "pk_live_abcdefghijklmnop1234",
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        "github_pat_11ABCDEFG0abcdefghijklmno",
        "glpat-abcdefghij1234567890",
        "xoxb-123456789012-abcdefghijkl",
        "AIzaSyA1234567890abcdefghijklmnop",
        "ya29.a0AfH6SMBabcdefghijkl",
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
        "team:skilled-data-engineers",
        "team:skunkworks-platform-oncall",
        "team:hfinance-ops-platform",
        "pkg-maintainers-on-call",
        "rk-observability-oncall-eu",
        "task-force-2026-platform",
        "sk-without-any-number-in-it",
        "team:ASIA-PACIFIC-ONCALL-2026",
        "hf_finance_operations_platform_2026",
        "2026-11-28-08-00-00",
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


# What is kept of a line -----------------------------------------------------------------------------------------------


def plain(**changes: object) -> bytes:
    """A line that needs nothing done to it."""
    return line(record_id="0190d0f4-1a2b-7000-8000-00c0ffee0001", **changes)


def kept(text: bytes) -> bytes:
    found = codec.keep_line(text)
    assert not isinstance(found, LineError)
    assert found.record == read_line(text) == read_line(found.line)
    assert codec.keep_line(found.line) == found
    return found.line


def test_a_plain_line_is_kept_as_it_is_but_for_spaces() -> None:
    compact = plain(agent=None, thread_id="thread-7").replace(b" ", b"")

    assert kept(compact) == compact
    assert kept(plain(agent=None, thread_id="thread-7")) == compact


@pytest.mark.parametrize(
    "text",
    [
        line(),
        plain(agent="Rechnungspr\u00fcfer"),
        plain(colour="blue"),
        plain() + b"\r",
        plain(thread_id="bob@example.com"),
        plain(thread_id="bobexample.com").replace(b"bob", b"bob\\u0040"),
        plain().replace(b'{"', b'{"agent": "' + PROSE.encode() + b'", "agent": "a", "', 1),
        plain().replace(b'{"', b'{"agent": "' + b"x" * 201 + b'", "agent": "a", "', 1),
        plain().replace(b'{"', b'{"thread_id": "bob@example.com", "thread_id": "a", "', 1),
    ],
)
def test_any_other_line_is_written_anew(text: bytes) -> None:
    found = codec.keep_line(text)

    assert not isinstance(found, LineError)
    assert kept(text) == write_line(found.record)


def test_a_bad_line_is_not_kept() -> None:
    assert codec.keep_line(b"{", 7) == refused(b"{")


part = st.sampled_from(
    [
        *(
            "bob",
            "@",
            "example.com",
            "+49",
            "0049",
            "170",
            "1234567",
            "555-123-4567",
            "eyJhbGciOiJI",
            "eyJzdWIiOiIx",
            ".",
        ),
        *("sk-", "sk_live_", "ghp_", "github_pat_", "glpat-", "xoxb-", "AIza", "ya29.", "hf_", "AKIA", "ASIA", "user:"),
        *(
            "DE89370400440532013000",
            "GB82WEST12345698765432",
            "abcdefghijklmnopqrstuvwxyz012345",
            "A" * 16,
            "/",
            "-",
            "0",
        ),
    ]
)
handles = st.lists(part, max_size=5).map("".join) | st.from_regex(identifiers.IDENTIFIER_PATTERN[:-1] + r"\Z")
personal = st.from_regex(identifiers._PERSONAL) | st.from_regex(identifiers._IBAN)


@given(handles | personal)
def test_what_may_be_personal_in_a_line_misses_nothing_that_is(handle: str) -> None:
    if identifiers.is_personal(handle):
        for before, after in (("", ""), ("a", "b"), ("[1]", "{}"), ("2", "3")):
            text = f'{{"x":"{before}","thread_id":"{handle}","y":"{after}"}}'
            assert codec._may_be_personal(text)


@given(handles)
def test_of_no_line_a_personal_value_is_kept(handle: str) -> None:
    fields: dict[str, Any] = {"thread_id": handle, "labels": {"x": handle}, "abort": {"actor": handle}}
    found = codec.keep_line(plain(**fields, approvals=[{"approval_id": "a", "owner": handle, "actor": "user:u-1"}]))

    if isinstance(found, LineError):
        assert not identifiers.is_identifier(handle)
    else:
        assert (f'"{handle}"'.encode() in found.line) is not identifiers.is_personal(handle)
