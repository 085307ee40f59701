"""`ResumeGuard.watching`: a stream passes as it is, and the guard knows what it said."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from stopcause.agui.guard import ResumeGuard
from stopcause.agui.words import State
from tests.agui.asking import NOW, given, says

ASKS = (
    {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"},
    {
        "type": "RUN_FINISHED",
        "threadId": "t1",
        "runId": "r1",
        "outcome": {"type": "interrupt", "interrupts": [{"id": "i-1", "reason": "tool_call"}]},
    },
)
STARTS = ({"type": "RUN_STARTED", "threadId": "t1", "runId": "r2", "protocolVersion": "1.0"},)


def chunks(*events: object) -> list[bytes]:
    return [f"data: {json.dumps(event)}\n\n".encode() for event in events]


def asked() -> ResumeGuard:
    guard = ResumeGuard()
    list(guard.watching(given("t1", "r1"), chunks(*ASKS)))
    guard.sent(given("t1", "r2", says("i-1")))
    return guard


def state(guard: ResumeGuard) -> State:
    (raised,) = guard.thread("t1").raised
    return raised.state


def test_chunks_pass_as_they_are() -> None:
    stream = [b"da", *chunks(*ASKS), b"\xff", b""]

    assert list(ResumeGuard().watching(given("t1", "r1"), stream)) == stream


def test_a_question_is_known_before_its_chunk_is_handed_on() -> None:
    guard = ResumeGuard()

    for chunk in guard.watching(given("t1", "r1"), chunks(*ASKS)):
        if b"interrupt" in chunk:
            assert guard.check(given("t1", "r2"), NOW).refused
    assert guard.answers("t1", NOW).missing == ("i-1",)


def test_a_stream_that_breaks_leaves_the_answer_s_fate_unknown_and_its_error_as_it_is() -> None:
    def breaking() -> Iterator[bytes]:
        yield from chunks(*STARTS)
        raise ConnectionError

    guard = asked()
    with pytest.raises(ConnectionError):
        list(guard.watching(given("t1", "r2", says("i-1")), breaking()))

    assert state(guard) is State.UNKNOWN


def test_so_does_a_reader_who_goes_away() -> None:
    guard = asked()
    stream = guard.watching(given("t1", "r2", says("i-1")), iter(chunks(*STARTS, *STARTS)))
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # a generator

    assert state(guard) is State.UNKNOWN
