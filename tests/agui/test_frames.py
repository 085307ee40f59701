"""What a stream's bytes are as events: SSE as the WHATWG text has it, NDJSON, tails, sizes and depths."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from stopcause.agui.frames import LARGEST, Event, Frames, Unreadable
from stopcause.agui.parsing import DEEPEST

A, B = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, {"type": "STEP_STARTED", "stepName": "s"}
LINE_A, LINE_B = json.dumps(A).encode(), json.dumps(B).encode()
SSE = b"data: " + LINE_A + b"\n\ndata: " + LINE_B + b"\n\n"


def events_of(*chunks: bytes, largest: int = LARGEST) -> list[Event]:
    """All events of a stream that comes in these chunks."""
    frames = Frames(largest)
    return [event for chunk in chunks for event in frames.feed(chunk)] + frames.end()


def unreadable(*chunks: bytes, largest: int = LARGEST) -> Unreadable:
    """The one frame of a stream, which gives no event."""
    (event,) = events_of(*chunks, largest=largest)
    assert isinstance(event, Unreadable)
    return event


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_lines_end_in_three_ways(end: bytes) -> None:
    assert events_of(SSE.replace(b"\n", end)) == [A, B]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_chunks_of_one_byte_are_the_same_stream(end: bytes) -> None:
    stream = SSE.replace(b"\n", end)
    assert events_of(*(stream[at : at + 1] for at in range(len(stream)))) == [A, B]


def test_an_event_is_given_as_soon_as_it_is_whole() -> None:
    frames = Frames()
    assert frames.feed(b"data: " + LINE_A) == []
    assert frames.feed(b"\r") == []
    assert frames.feed(b"\n\r") == [A]  # a CR ends the line, whether or not its LF comes
    assert frames.feed(b"\n") == []
    assert frames.end() == []


def test_a_line_end_may_be_cut_in_two() -> None:
    assert events_of(b'data: {"type":\r', b'\ndata: "X"}\n\n') == [{"type": "X"}]


def test_an_empty_chunk_between_cr_and_lf_is_nothing() -> None:
    assert events_of(b"data: {\r", b"", b"\ndata: " + LINE_A[1:] + b"\r", b"", b"\n\n") == [A]


@pytest.mark.parametrize(
    "stream",
    [
        b"\xef\xbb\xbf" + SSE,
        b": a comment\n\n" + SSE,
        b"event: message\nid: 7\nretry: 10\n" + SSE + b"event: end\n\n",
        SSE.replace(b"data: ", b"data:"),
        SSE.replace(b"{", b"{\ndata: ").replace(b", ", b",\ndata:"),
        b"\n\n\n" + SSE + b"\n\n",
        b"data\n\ndata:\n\ndata: \n\n" + SSE,
        b": first\n data: x\nxdata: x\ndatax\nunknown\n" + SSE,
    ],
    ids=["BOM", "comment", "other fields", "no space", "several lines", "empty lines", "empty data", "unknown fields"],
)
def test_what_is_no_data_changes_nothing(stream: bytes) -> None:
    assert events_of(stream) == [A, B]


def test_only_one_space_is_taken_off() -> None:
    assert events_of(b'data: {"type":\ndata:   "X"}\n\n') == [{"type": "X"}]
    assert events_of(b'data: {"type": "X\ndata: Y"}\n\n')[0] == Unreadable("FRAME_UNREADABLE")


def test_a_character_may_be_cut_in_two() -> None:
    stream = 'data: {"type": "X", "delta": "안녕 🛰"}\n\n'.encode()
    for at in range(len(stream)):
        assert events_of(stream[:at], stream[at:]) == [{"type": "X", "delta": "안녕 🛰"}]


def test_ndjson_is_seen_by_its_first_bracket() -> None:
    assert events_of(b"\n  " + LINE_A + b"\r\n\n" + LINE_B) == [A, B]
    assert events_of(b"\xef\xbb\xbf" + LINE_A + b"\n") == [A]


@pytest.mark.parametrize("stream", [b"", b"\n\n", b"\xef\xbb\xbf", b": only a comment", b"  \n", b"data:", b"data"])
def test_nothing_gives_nothing(stream: bytes) -> None:
    assert events_of(stream) == []


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r"])
def test_a_tail_that_is_whole_is_an_event(tail: bytes) -> None:
    assert events_of(b"data: " + LINE_A + tail) == [A]
    assert events_of(LINE_A + tail) == [A]


@pytest.mark.parametrize("head", [b"data: ", b""], ids=["SSE", "NDJSON"])
def test_a_tail_that_is_cut_off_says_so(head: bytes) -> None:
    assert unreadable(head + LINE_A[:-5]) == Unreadable("FRAME_UNREADABLE", "RUN_STARTED", is_tail=True)


def test_what_is_broken_before_the_tail_is_no_tail() -> None:
    events = events_of(b"data: nonsense\n\ndata: " + LINE_A)
    assert events == [Unreadable("FRAME_UNREADABLE"), A]


def test_a_stream_that_is_over_has_no_second_end() -> None:
    frames = Frames()
    frames.feed(b"data: {")
    assert len(frames.end()) == 1
    assert frames.end() == []


# JSON ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["7", "null", '"RUN_STARTED"', "[]", "{}", '{"type": null}', '{"type": 7}', "{", "[DONE]", '{"type": "X"} {}'],
)
def test_what_is_no_object_with_a_type_is_unreadable(text: str) -> None:
    frame = unreadable(b"data: " + text.encode() + b"\n\n")
    assert frame.name == "FRAME_UNREADABLE"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "01", "1.", "+1", "0x1"])
def test_what_is_no_number_of_json_is_unreadable(number: str) -> None:
    assert unreadable(f'data: {{"type": "RAW", "event": {number}}}\n\n'.encode()).type == "RAW"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e999", float("inf")),
        ("9" * 5000, float("inf")),
        ("-" + "9" * 5000, float("-inf")),
        ("-0", 0),
        (r'"\ud83d"', r"\ud83d"),
        (r'"\ude80\ud83d"', r"\ude80\ud83d"),
        (r'"\ud83d\ude80"', "🚀"),
        (r'{"\ud83d": 1}', {r"\ud83d": 1}),
    ],
    ids=[
        "infinite",
        "long integer",
        "long negative",
        "minus zero",
        "half a pair",
        "halves the wrong way",
        "a pair",
        "half in a key",
    ],
)
def test_what_json_allows_is_read(text: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    (event,) = events_of(f'data: {{"type": "X", "a": {text}}}\n\n'.encode())
    assert event == {"type": "X", "a": value}
    json.dumps(event).encode("utf-8")
    str(event).encode("utf-8")


def test_bytes_that_are_no_utf_8_are_replaced_as_a_browser_does() -> None:
    assert events_of(b'data: {"type": "X", "a": "\xff\xfe!"}\n\n') == [{"type": "X", "a": "\ufffd\ufffd!"}]


def test_the_last_of_two_keys_counts() -> None:
    assert events_of(b'data: {"type": "X", "type": "Y"}\n\n') == [{"type": "Y"}]


@pytest.mark.parametrize("opened", ["[", '{"a":'], ids=["lists", "objects"])
@pytest.mark.parametrize("extra", ["", r' "\ud800",'], ids=["fast", "slow"])
def test_depth_is_capped_the_same_way_on_both_ways(opened: str, extra: str) -> None:
    def nested(depth: int) -> bytes:
        value = opened * depth + "0" + ("]" if opened == "[" else "}") * depth
        pair = f' "x":{extra}' if extra else ""
        return f'data: {{"type": "X",{pair} "event": {value}}}\n\n'.encode()

    assert isinstance(events_of(nested(DEEPEST - 1))[0], dict)
    assert unreadable(nested(DEEPEST)).name == "FRAME_TOO_LARGE"


@pytest.mark.parametrize("depth", [1_000, 100_000, 3_000_000])
def test_depth_is_never_an_error(depth: int) -> None:
    frame = unreadable(b'data: {"type": "RUN_FINISHED", "a": ' + b"[" * depth + b"]" * depth + b"}\n\n")
    assert (frame.name, frame.type) == ("FRAME_TOO_LARGE", "RUN_FINISHED")


# Sizes ---------------------------------------------------------------------------------------------------------------


def test_a_frame_that_is_too_large_is_passed_over() -> None:
    large = b'data: {"type": "MESSAGES_SNAPSHOT", "x": "' + b"y" * 2000 + b'"}\n\n'
    events = events_of(large + SSE, largest=1000)
    assert events[0] == Unreadable("FRAME_TOO_LARGE", "MESSAGES_SNAPSHOT")
    assert events[1:] == [A, B]


def test_a_frame_of_many_lines_is_capped_as_well() -> None:
    frame = unreadable(b'data: {"type": "CUSTOM",\n' + b"data:\n" * 2000 + b"\n", largest=1000)
    assert (frame.name, frame.type, frame.is_tail) == ("FRAME_TOO_LARGE", "CUSTOM", False)


def test_a_frame_at_the_cap_is_read() -> None:
    text = b'{"type": "X", "a": "' + b"y" * 978 + b'"}'
    assert len(text) == 1000
    assert isinstance(events_of(text + b"\n", largest=1000)[0], dict)
    assert unreadable(text + b" \n", largest=1000).name == "FRAME_TOO_LARGE"


def test_a_comment_of_any_size_is_no_frame() -> None:
    assert events_of(b":" + b"x" * 5000 + b"\n" + SSE, largest=1000) == [A, B]


def test_a_frame_of_any_size_is_not_kept() -> None:
    frames, chunk = Frames(1_000_000), b"x" * 65_536
    tracemalloc.start()
    try:
        frames.feed(b'data: {"type": "RAW", "event": "')
        for _ in range(400):
            frames.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000
    (frame,) = frames.feed(b"\n\n")
    assert isinstance(frame, Unreadable)
    assert (frame.name, frame.type) == ("FRAME_TOO_LARGE", "RAW")
    assert frames.feed(SSE) == [A, B]


@pytest.mark.parametrize(
    ("kind", "field", "empty"), [("RAW", "event", {}), ("STATE_SNAPSHOT", "snapshot", {}), ("STATE_DELTA", "delta", [])]
)
def test_a_large_event_that_is_all_content_is_not_read(kind: str, field: str, empty: object) -> None:
    content = {"a": "x" * 70_000}
    assert events_of(json.dumps({"type": kind, field: content}).encode()) == [{"type": kind, field: empty}]
    told = events_of(json.dumps({"type": kind, "timestamp": 1700000000000, field: content}).encode())
    assert told == [{"type": kind, "timestamp": 1700000000000, field: empty}]
    small = {"type": kind, field: {"a": "x"}}
    assert events_of(json.dumps(small).encode()) == [small]


def test_a_large_event_that_says_more_is_read() -> None:
    large = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "user", "content": "x" * 70_000}]}
    assert events_of(json.dumps(large).encode()) == [large]


def test_a_large_event_that_breaks_off_is_unreadable() -> None:
    text = json.dumps({"type": "RAW", "event": {"a": "x" * 70_000}}).encode()
    assert unreadable(text[:-10] + b"\n").name == "FRAME_UNREADABLE"


def test_a_frame_of_many_lines_does_not_fill_the_memory() -> None:
    frames, lines = Frames(100_000), b"data:12\n" * 800
    tracemalloc.start()
    try:
        for _ in range(100):
            frames.feed(lines)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300_000
    assert frames.feed(b"\n") == [Unreadable("FRAME_TOO_LARGE")]


@pytest.mark.parametrize("part", [b"[],", b"{},", b'{"a":1},'])
def test_a_frame_of_small_things_does_not_fill_the_memory(part: bytes) -> None:
    frame = b'data: {"type": "MESSAGES_SNAPSHOT", "messages": [' + part * 300_000 + b"0]}\n\n"
    tracemalloc.start()
    try:
        (event,) = Frames().feed(frame)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(event, Unreadable)
    assert (event.name, event.type) == ("FRAME_TOO_LARGE", "MESSAGES_SNAPSHOT")
    assert peak < 3 * len(frame)
