"""Laws of framing and JSON, on streams that nobody would write: chunks do not matter, and nothing raises."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.frames import Event, Frames, Unreadable, read_event
from tests.support.laws import tried_on

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.builds(
    lambda kind, fields: {"type": kind, **{name: value for name, value in fields.items() if name != "type"}},
    st.sampled_from(["RUN_STARTED", "RAW", "CUSTOM", "A_NEW_ONE", ""]),
    st.dictionaries(st.text(), JSON, max_size=4),
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
NOISE = st.sampled_from([b": x", b"event: x", b"id", b"retry: 1", b"", b"data", b"data:", b"data:  "])
PIECES = st.sampled_from(
    [
        b"data",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b'{"type":"X"}',
        b"{",
        b"[",
        b"}",
        b'"',
        b"\xef\xbb\xbf",
        b"\xff",
    ]
)
LARGE = st.integers(290, 310).map(lambda size: b"x" * size)
STREAMS = st.lists(PIECES | st.binary(max_size=6) | LARGE, max_size=30).map(b"".join)
CUTS = st.lists(st.integers(0, 900), max_size=8)


def read(stream: bytes, cuts: list[int], largest: int = 1000) -> list[Event]:
    frames, places = Frames(largest), sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[a:b] for a, b in pairwise(places)]
    return [event for chunk in chunks for event in frames.feed(chunk)] + frames.end()


@tried_on(1000)
@given(STREAMS, CUTS, st.sampled_from([300, 10_000]))
def test_where_a_stream_is_cut_does_not_matter(stream: bytes, cuts: list[int], largest: int) -> None:
    assert read(stream, cuts, largest) == read(stream, [], largest) == read(stream, list(range(len(stream))), largest)


def by_the_text(stream: bytes) -> list[str]:
    """The data of each event of an SSE stream, word by word as the WHATWG text has it; the end ends one."""
    found, data = [], ""
    for line in [*re.split("\r\n|\n|\r", stream.decode("utf-8", "replace")), ""]:
        field, _, value = line.partition(":")
        if not line:
            if data:
                found.append(data.removesuffix("\n"))
            data = ""
        elif field == "data":
            data += value.removeprefix(" ") + "\n"
    return found


@tried_on(1000)
@given(STREAMS, CUTS)
def test_the_frames_are_those_of_the_whatwg_text(stream: bytes, cuts: list[int]) -> None:
    stream = b":\n" + stream  # so that it is SSE
    frames = [data.encode() for data in by_the_text(stream)]
    expected = [read_event(frame) for frame in frames if frame.strip()]
    seen = read(stream, cuts, 100_000)
    assert [_event(each) for each in seen] == [_event(each) for each in expected]


def _event(event: Event) -> Event | None:
    return None if isinstance(event, Unreadable) else event  # bytes that are no UTF-8 have another length there


@tried_on(500)
@given(st.lists(EVENTS, max_size=5), st.data(), ENDS, CUTS)
def test_what_was_written_as_sse_is_read(
    events: list[dict[str, Any]], data: st.DataObject, end: bytes, cuts: list[int]
) -> None:
    noise = st.lists(NOISE, max_size=3)
    stream = b""
    for event in events:
        stream += end.join([*data.draw(noise), b"", b""])  # ends with an empty line, or is nothing
        text = json.dumps(event, ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.sampled_from([None, 1])))
        stream += b"".join(b"data: " + line + end for line in text.encode().split(b"\n")) + end
    if events:
        stream = b":" + end + stream  # else the first line may be a blank one
    assert read(stream, cuts, 1_000_000) == events


@tried_on(500)
@given(st.lists(EVENTS, max_size=5), st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\r"]), CUTS, st.booleans())
def test_what_was_written_as_ndjson_is_read(
    events: list[dict[str, Any]],
    end: bytes,
    cuts: list[int],
    has_end: bool,
) -> None:
    stream = end.join(json.dumps(event).encode() for event in events) + (end if has_end else b"")
    assert read(stream, cuts, 1_000_000) == events


@tried_on(500)
@given(st.lists(EVENTS, min_size=1, max_size=4), st.integers(1, 400))
def test_a_stream_that_breaks_off_has_at_most_one_tail(events: list[dict[str, Any]], at: int) -> None:
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)[:at]
    seen = read(stream, [])
    whole = seen[:-1] if seen and isinstance(seen[-1], Unreadable) else seen
    assert whole == events[: len(whole)]
    assert all(event.is_tail for event in seen if isinstance(event, Unreadable))


@tried_on(500)
@given(st.text('[]{},:"\\u0123456789abcdefDCE+-. tnfNI', max_size=60) | st.text(max_size=40))
def test_json_is_read_as_python_reads_it_or_not_at_all(text: str) -> None:
    frame = '{"type": "X", "a": ' + text.replace("\n", " ").replace("\r", " ") + "}"
    (event,) = read(frame.encode("utf-8", "replace"), [], 10_000)
    try:
        expected = json.loads(frame.encode("utf-8", "replace"), parse_constant=lambda _: math.nan)
    except ValueError:
        assert isinstance(event, Unreadable)
        return
    written = json.dumps(expected)
    if "NaN" not in written and "\\ud" not in written and isinstance(expected.get("type"), str):
        assert event == expected
