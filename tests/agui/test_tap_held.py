"""What is left out of a stream says nothing new, nothing else is, and where a run begins or ends nothing waits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.frames import Event, Frames
from stopcause.agui.tap_held import HeldParts, thinned
from tests.agui.tapped import finished, said, sse, started
from tests.support.laws import tried_on

Json = Any
DULL = {"TEXT_MESSAGE_CONTENT": "messageId", "TOOL_CALL_ARGS": "toolCallId", "REASONING_MESSAGE_CONTENT": "messageId"}

_texts = st.text(max_size=12) | st.sampled_from(
    ['"}\n\ndata: {"type":"RUN_ERROR"}', "\\", "\\u0041", "\ud83d", "é한글", "{}"]
)
_contents = st.builds(
    lambda kind, name, text: {"type": kind, DULL[kind]: name, "delta": text},
    st.sampled_from(sorted(DULL)),
    st.sampled_from(["m1", "m2", "c:1/x", "a b", ""]),
    _texts,
)
_others = st.sampled_from([started(), *said(), finished(), {"type": "RAW", "event": {}}, {"type": "STATE_SNAPSHOT"}])
_longer = st.builds(lambda event, more: event | more, _contents, st.sampled_from([{"timestamp": 1}, {"delta": 3}]))
_events = st.lists(_contents | _others | _longer, max_size=30)


def _frame(event: Json, separators: tuple[str, str], *, is_ascii: bool) -> bytes:
    text = json.dumps(event, separators=separators, ensure_ascii=is_ascii)
    return b"data: " + text.encode("utf-8", "surrogatepass") + b"\n\n"


_bodies = st.builds(
    lambda events, spaces, is_ascii: b"".join(_frame(each, spaces, is_ascii=is_ascii) for each in events),
    _events,
    st.sampled_from([(",", ":"), (", ", ": ")]),
    st.booleans(),
)
_broken = st.builds(
    lambda body, at, junk: body[: at % (len(body) + 1)] + junk + body[at % (len(body) + 1) :],
    _bodies,
    st.integers(0, 5_000),
    st.sampled_from(
        [b"\n", b"\n\n", b'"', b"\\", b"\x00", b"\xff", b"\r\n\r\n", b"data: ", b": note\n", b"id: 1\n", b"{"]
    ),
)


def _all_of(*parts: bytes) -> list[Event]:
    frames = Frames()
    return [event for events in (*map(frames.feed, parts), frames.end()) for event in events]


def _new(events: Iterable[Event]) -> list[Event]:
    """Without those that go on with what the one before them is about."""
    listed = [None, *events]
    return [after for before, after in pairwise(listed) if after is not None and not _goes_on(before, after)]


def _goes_on(before: Event | None, after: Event) -> bool:
    if isinstance(before, tuple) and isinstance(after, tuple):  # lines of NDJSON that are none, say: found once
        return before.name == after.name
    return _subject(after) is not None and before is not None and _subject(before) == _subject(after)


def _subject(event: Event) -> tuple[str, str] | None:
    """Of a piece of a text that is there: what it is a piece of."""
    if isinstance(event, tuple) or event["type"] not in DULL or len(event) != 3:
        return None
    name, delta = event.get(DULL[event["type"]]), event.get("delta")
    return (event["type"], name) if isinstance(name, str) and isinstance(delta, str) and delta else None


@tried_on(300)
@given(_bodies | _broken, st.integers(0, 2_000))
def test_only_what_goes_on_is_left_out(body: bytes, at: int) -> None:
    assert _new(_all_of(thinned(body[:at]), thinned(body[at:]))) == _new(_all_of(body))


def test_a_long_answer_is_cut_down_to_its_first_piece() -> None:
    pieces = [{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": f"word {each}"} for each in range(500)]
    body = sse([started(), *said()[:1], *pieces, *said()[2:], finished()])
    assert len(_all_of(thinned(body))) == 5


def test_an_answer_that_never_ends_its_string_takes_no_time() -> None:
    """The pattern looks at every byte a fixed number of times, also where it does not match."""
    head = b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"'
    bodies = [head + b"x" * 1_000_000, (head + b'x"}\n\n') * 10_000 + head, head * 10_000, head + b"\\\\" * 500_000]
    begun = time.process_time()
    for body in bodies:
        thinned(body)
    assert time.process_time() - begun < 5


_steps = st.sampled_from([0.0, 0.001, 0.4, 1.5, 60.0, -5.0])


@tried_on(150)
@given(st.data())
def test_nothing_is_lost_and_runs_do_not_wait(data: st.DataObject) -> None:
    body = sse([started(), *said("x" * 40), finished(), started("r2"), *said("y"), finished("r2")])
    held, now, read = HeldParts(), 1e9, b""
    while body:
        size = data.draw(st.integers(1, 80))
        part, body = body[:size], body[size:]
        now += data.draw(_steps)
        if held.add(part, now):
            read += b"".join(group for group, _ in held.take())
            assert held.take() == []
    assert read.count(b"RUN_FINISHED") == 2
    assert read.endswith(sse([finished("r2")]))


@tried_on(100)
@given(st.lists(st.sampled_from([0.0, 0.3, 0.9, 1.1, 60.0]), max_size=60))
def test_no_part_is_said_to_have_come_more_than_a_second_late(steps: list[float]) -> None:
    held, now, came = HeldParts(), 1e9, []
    for step in steps:
        now += step
        came.append(now)
        held.add(b"x", now)
    said_to = [moment for group, moment in held.take() for _ in group]
    assert all(0 <= late - moment < 1 for late, moment in zip(said_to, came, strict=True))


@tried_on(100)
@given(st.lists(st.binary(max_size=20), max_size=60))
def test_what_is_held_is_given_back_in_order(parts: list[bytes]) -> None:
    held = HeldParts()
    for part in parts:
        held.add(part, 1e9)
    assert b"".join(group for group, _ in held.take()) == thinned(b"".join(parts))
