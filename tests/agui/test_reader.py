"""What files of streams are read as: every form there is, what is cut off or broken, and what cannot be read at all."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui import reader
from stopcause.agui.reader import Unreadable, read_exchanges
from stopcause.errors import InputError
from tests.support.laws import tried_on

INPUT = {"threadId": "t1", "runId": "r1", "messages": []}
OTHER = {"threadId": "t1", "runId": "r2", "resume": []}
A = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"}
B = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}
MARK = "canary-7f3a is here"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "agui"


class Read(NamedTuple):
    """An exchange with its events as a list."""

    input: Any
    events: list[Any]
    sent_at: datetime | None = None
    http_status: int | None = None
    broken_line: int | None = None


def read(text: str | bytes) -> list[Read]:
    file = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    return [
        Read(each.input, list(each.events), each.sent_at, each.http_status, each.broken_line)
        for each in read_exchanges(file)
    ]


def lines(*values: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in values)


def sse(*events: object) -> str:
    return "".join(f"data: {json.dumps(each)}\n\n" for each in events)


def refused(text: str | bytes) -> str:
    """What the error says, and nothing in it is from the file."""
    with pytest.raises(InputError) as caught:
        read(text)
    assert MARK not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None  # an error of JSON holds the text
    return str(caught.value)


RECORDING: list[dict[str, Any]] = [
    {"input": INPUT, "events": [A, B], "sent_at": "2026-11-30T12:00:00Z", "http_status": 200},
    {"input": OTHER, "events": [B]},
]
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
READ = [Read(INPUT, [A, B], AT, 200), Read(OTHER, [B])]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RECORDING),
        json.dumps(RECORDING, indent=2),
        json.dumps(RECORDING, indent=2).replace("\n", "\r\n"),
        json.dumps(RECORDING, indent=2).replace("\n", "\r"),
        "\ufeff \n" + json.dumps(RECORDING),
        json.dumps({"id": "a-case", "why": "x", "exchanges": RECORDING, "expected": {}}),
        json.dumps({"id": "a-case", "exchanges": RECORDING}, indent=1),
        lines(*RECORDING),
        lines({key: value for key, value in RECORDING[0].items() if key != "events"}, A, B, {"input": OTHER}, B),
        lines({**RECORDING[0], "events": [A]}, B, OTHER, B),
        lines(*RECORDING).strip(),
        "\n\n" + lines(*RECORDING).replace("\n", "\r\n\r\n"),
    ],
    ids=[
        "recording", "indented", "CRLF", "CR", "BOM", "case", "indented case",
        "exchange a line", "events after it", "bare input", "no last end", "blank lines",
    ],
)  # fmt: skip
def test_every_form_of_exchanges_is_the_same(text: str) -> None:
    assert read(text) == READ


@pytest.mark.parametrize(
    "text",
    [
        sse(A, B),
        lines(A, B),
        json.dumps([A, B]),
        json.dumps([A, B], indent=4),
        json.dumps({"events": [A, B]}, indent=4),
    ],
    ids=["SSE", "NDJSON", "list", "indented list", "an exchange of events"],
)
def test_events_alone_are_one_exchange(text: str) -> None:
    assert read(text) == [Read(None, [A, B])]


@pytest.mark.parametrize("indent", [None, 2])
def test_one_object_is_an_exchange(indent: int | None) -> None:
    assert read(json.dumps(RECORDING[0], indent=indent)) == READ[:1]
    assert read(json.dumps(INPUT, indent=indent)) == [Read(INPUT, [])]
    assert read(json.dumps(A, indent=indent)) == [Read(None, [A])]


@pytest.mark.parametrize(
    "text", ['{"input":\n {},\n "events": []}', '{ "input": {} ,\t \n"events": [] }', '{"events": [\n]}']
)
def test_an_object_may_be_broken_at_any_place(text: str) -> None:
    assert [(each.input or {}, each.events) for each in read(text)] == [({}, [])]


def test_a_request_that_was_refused_has_no_events() -> None:
    (refusal,) = read(lines({"input": INPUT, "http_status": 409}))
    assert refusal == Read(INPUT, [], None, 409)


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", "[]", " [ ] ", ": ping\n\n", '{"exchanges": []}'])
def test_an_empty_file_has_no_exchange(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize("head", ["event: message\n", "id: 1\n", "retry: 1000\n", ": ping\n\n", "data\n", "data:\n\n"])
def test_a_stream_may_begin_with_any_field(head: str) -> None:
    assert read(head + sse(A, B)) == [Read(None, [A, B])]


def test_an_input_begins_an_exchange_and_an_event_without_a_type_does_not() -> None:
    old = {"thread_id": "t1", "run_id": "r2", "messages": []}
    typeless = {"threadId": "t1", "runId": "r2"}
    assert read(lines(INPUT, A, old, B)) == [Read(INPUT, [A]), Read(old, [B])]
    assert read(lines(INPUT, A, typeless, B)) == [Read(INPUT, [A, Unreadable("FRAME_UNREADABLE"), B])]


def test_a_value_without_a_type_is_an_unreadable_event() -> None:
    bad = Unreadable("FRAME_UNREADABLE")
    assert read(json.dumps([{"input": INPUT, "events": [A, 7, None, {}, "x", B]}]))[0].events == [
        A,
        bad,
        bad,
        bad,
        bad,
        B,
    ]
    assert read(json.dumps([{"input": INPUT, "events": {"a": 1}}]))[0].events == [bad]
    assert read(json.dumps([{"input": INPUT, "events": None}]))[0].events == []
    assert read(lines(A, {"a": 1}, 7))[0].events == [A, bad, bad]


@pytest.mark.parametrize("status", [True, "409", 99, 600, 409.0, None, {}])
def test_what_is_no_status_is_none(status: object) -> None:
    assert read(lines({"input": INPUT, "http_status": status}))[0].http_status is None


@pytest.mark.parametrize(
    ("sent_at", "expected"),
    [("2026-11-30T12:00:00Z", AT), (AT.timestamp() * 1000, AT), ("soon", None), (None, None), ([], None), (True, None)],
)
def test_when_it_was_sent_may_be_written_in_two_ways(sent_at: object, expected: datetime | None) -> None:
    assert read(lines({"input": INPUT, "sent_at": sent_at}))[0].sent_at == expected


def test_what_the_caller_leaves_is_passed_over() -> None:
    file = io.BytesIO(lines(INPUT, A, B, OTHER, B).encode())
    seen = [(exchange.input, next(exchange.events)) for exchange in read_exchanges(file)]
    assert seen == [(INPUT, A), (OTHER, B)]


def test_events_come_before_the_file_is_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer
            part = f"{json.dumps(A)}\n".encode()
            buffer[: len(part)] = part
            return len(part)

    exchange = next(read_exchanges(io.BufferedReader(Endless())))
    assert [next(exchange.events) for _ in range(1000)] == [A] * 1000


# What is broken or cut off -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [sse, lines], ids=["SSE", "NDJSON"])
def test_a_stream_that_breaks_off_says_so(form: Any) -> None:  # noqa: ANN401 - a writer of streams
    text = form(A, B).rstrip()[:-4]
    (exchange,) = read(text)
    events = list(exchange.events)
    assert events[0] == A
    assert isinstance(events[1], Unreadable)
    assert (events[1].type, events[1].is_tail) == ("RUN_FINISHED", True)


@pytest.mark.parametrize("text", ['{"type": "RUN_FINISHED",', '{"type": "RUN_FINISHED", "outcome": {', "{"])
def test_a_first_line_that_breaks_off_is_no_document(text: str) -> None:
    (event,) = read(text)[0].events
    assert isinstance(event, Unreadable)
    assert event.is_tail


def test_a_broken_line_does_not_end_the_file() -> None:
    (exchange,) = read(lines(A) + "{nonsense\n" + '{"type": "RAW", "event": \n' + lines(B))
    assert exchange.events == [A, Unreadable("FRAME_UNREADABLE"), Unreadable("FRAME_UNREADABLE", "RAW"), B]


def test_a_broken_first_line_does_not_make_a_document() -> None:
    (exchange,) = read('{"type": "RUN_STARTED", "threadId": "t\n' + lines(B))
    assert exchange.events == [Unreadable("FRAME_UNREADABLE", "RUN_STARTED"), B]


def test_large_lines_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGEST", 1000)
    large = {"type": "MESSAGES_SNAPSHOT", "messages": [{"content": "x" * 2000}]}
    (exchange,) = read(lines(A, large, B))
    assert exchange.events == [A, Unreadable("FRAME_TOO_LARGE", "MESSAGES_SNAPSHOT"), B]


def test_a_large_stream_is_not_kept() -> None:
    text = (sse({"type": "RAW", "event": "x" * 100_000}) * 40).encode()

    class Repeated(io.BytesIO):
        left = 20

        def read1(self, size: int | None = -1, /) -> bytes:
            part = super().read1(-1 if size is None else size)
            if not part and self.left:
                self.left -= 1
                self.seek(0)
                return super().read1(-1 if size is None else size)
            return part

    file = Repeated(text)
    tracemalloc.start()
    try:
        count = sum(1 for exchange in read_exchanges(file) for _ in exchange.events)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 21 * 40
    assert peak < 3_000_000


# What cannot be read at all ------------------------------------------------------------------------------------------


def test_what_is_packed_says_how_to_unpack_it() -> None:
    assert "gzip -dc" in refused(gzip.compress(sse(A).encode()))
    assert "zstd -dc" in refused(b"\x28\xb5\x2f\xfd" + b"x" * 20)
    assert "archive" in refused(b"PK\x03\x04....")
    assert "UTF-8" in refused(sse(A).encode("utf-16"))


@pytest.mark.parametrize("text", [MARK, "HTTP/1.1 200 OK\n\n" + MARK, "<html>", "7", "\x00\x01\x02"])
def test_what_is_neither_form_says_what_is(text: str) -> None:
    assert refused(text) == "line 1: neither SSE nor JSON; give a stream as it was sent, NDJSON or a recording"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f'[\n{{"a": "{MARK}"}},\n  oops]', "line 3, column 3"),
        (f'{{\n"a": "{MARK}",', "line 2, column"),
        (f'[{{"a": "{MARK}"}}] [', "line 1, column 32"),
        (f'{{\n "a": "{MARK}"\n}}\n{{\n}}\n', "line 4, column 1"),
    ],
    ids=["nonsense", "cut off", "two on a line", "one after the other"],
)
def test_a_document_that_is_no_json_names_the_place(text: str, place: str) -> None:
    assert refused(text).startswith(place)


def test_a_document_with_nan_says_so() -> None:
    assert "NaN" in refused(f'[{{"a": "{MARK}", "b": NaN}}]')


def test_a_document_that_is_too_deep_says_so() -> None:
    assert "200 levels" in refused("[" * 5000 + "]" * 5000)
    assert "200 levels" in refused("[" + '{"a":' * 100_000)
    exchange = {"input": INPUT, "events": [{"type": "RAW", "event": json.loads("[" * 199 + "]" * 199)}]}
    assert read(json.dumps([exchange]))[0].events == exchange["events"]
    assert read(json.dumps(exchange))[0].events == exchange["events"]


def test_a_document_that_is_too_large_says_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGEST_DOCUMENT", 1_000_000)
    monkeypatch.setattr(reader, "_CHUNK", 1000)
    assert "more than 1 MB; write NDJSON" in refused(json.dumps([{"input": INPUT, "events": [{"a": MARK}] * 50_000}]))


@pytest.mark.parametrize("rest", ["", lines(B)], ids=["at the end", "before others"])
def test_an_exchange_that_cannot_be_read_is_one_of_its_own(rest: str) -> None:
    broken = f'{{"input": {{"a": "{MARK}"'
    after = [B] if rest else []
    assert read(lines(INPUT, A) + broken + "\n" + rest) == [Read(INPUT, [A]), Read(None, after, broken_line=3)]
    assert read(lines(INPUT, A) + broken) == [Read(INPUT, [A]), Read(None, [], broken_line=3)]


def test_an_exchange_that_is_too_large_for_a_line_says_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGEST", 1_000_000)
    large = lines({"input": INPUT, "events": [{"type": "RAW", "event": MARK}] * 30_000})
    assert refused(lines(A) + "\n" + large).startswith("line 3: more than 1 MB; write its events in lines after it")


FRAGMENTS = st.sampled_from(
    ["data: ", "{", "}", "[", "]", "\n", "\r\n", '"type"', ":", '"RAW"', ",", '"input"', '"events"', json.dumps(A),
     '"exchanges"', json.dumps({"input": INPUT}), "NaN", '"\\ud800"', "\ufeff", " "]
)  # fmt: skip


@tried_on(1000)
@given(st.lists(FRAGMENTS, max_size=20).map(lambda parts: "".join(parts).encode()) | st.binary(max_size=60))
def test_no_file_gives_anything_but_exchanges_or_a_clear_error(text: bytes) -> None:
    try:
        for exchange in read(text):
            assert all(isinstance(each, Unreadable) or isinstance(each["type"], str) for each in exchange.events)
    except InputError as error:
        assert str(error).isascii()  # noqa: PT017 - most texts raise none
