"""What a tap knows of threads: which run an answer takes up, also after a restart, and which run is another attempt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stopcause.agui import tap_faults
from stopcause.agui.guard import ResumeGuard
from stopcause.agui.tap import Tap
from stopcause.classifier import engine
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.receipts.testing import Recorded, recorded
from tests.agui.tapped import SSE, finished, input_of, sse, started

Json = Any
AGENT = "clerk"
_ASKS = finished(outcome={"type": "interrupt", "interrupts": [{"id": "i1", "reason": "tool_call", "toolCallId": "c1"}]})
_CALL = [
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
]
_RESULT = {"type": "TOOL_CALL_RESULT", "messageId": "m1", "toolCallId": "c1", "content": "x"}
_YES = [{"interruptId": "i1", "status": "resolved", "payload": {"approved": True}}]


@pytest.fixture
def receipts() -> Iterator[Recorded]:
    with recorded(service="desk", environment="test") as kept:
        yield kept


def _run(watching: Tap, given: Json, events: list[Json], status: int = 200) -> None:
    passage = watching.passage()
    assert passage is not None
    passage.asked(json.dumps(given).encode())
    passage.answered(status, SSE, "")
    passage.passed(sse(events))
    passage.ended()


def _ask(watching: Tap) -> None:
    _run(watching, input_of(), [started(), *_CALL, _ASKS])


def _answer(watching: Tap, status: int = 200) -> None:
    _run(watching, input_of("r2", resume=_YES), [started("r2"), _RESULT, finished("r2")], status)


def _resumed(receipts: Recorded) -> list[tuple[str | None, tuple[str, ...] | None]]:
    return [(stop.resumes_run_id, stop.answers) for stop in receipts.receipts]


def _verdicts(receipts: Recorded) -> dict[str, str | None]:
    verdicts = engine.judge_all(receipts.records, DEFAULT_POLICY, datetime.now(UTC))
    return {each.run_id: each.verdict for each in verdicts}


def test_a_run_that_answers_says_which_it_takes_up(receipts: Recorded) -> None:
    watching = Tap(AGENT)
    _ask(watching)
    _answer(watching)
    assert _resumed(receipts) == [(None, None), ("r1", ("i1",))]


def test_a_tap_that_begins_anew_knows_its_threads_from_their_file(receipts: Recorded, tmp_path: Path) -> None:
    _ask(Tap(AGENT, threads=tmp_path / "threads.db"))
    _answer(Tap(AGENT, threads=tmp_path / "threads.db"))
    assert _resumed(receipts) == [(None, None), ("r1", ("i1",))]


def test_two_workers_share_a_file(receipts: Recorded, tmp_path: Path) -> None:
    one, other = (Tap(AGENT, threads=tmp_path / "threads.db") for _ in range(2))
    _run(other, input_of("r0"), [started("r0"), finished("r0")])
    _ask(one)
    _answer(other)
    assert _resumed(receipts)[-1] == ("r1", ("i1",))


def test_what_a_guard_knows_is_known(receipts: Recorded, tmp_path: Path) -> None:
    _ask(Tap(AGENT, guard=ResumeGuard(tmp_path / "guard.db")))
    guard = ResumeGuard(tmp_path / "guard.db")
    guard.sent(input_of("r2", resume=_YES))
    _answer(Tap(AGENT, guard=guard))
    assert _resumed(receipts) == [(None, None), ("r1", ("i1",))]
    assert guard.thread("t1").open() == ()


def test_a_file_that_cannot_be_used_is_named_once_and_memory_serves(
    receipts: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tap_faults._said.clear()
    (tmp_path / "threads.db").write_bytes(b"canary" * 1000)
    watching = Tap(AGENT, threads=tmp_path / "threads.db")
    _ask(watching)
    _answer(watching)
    assert _resumed(receipts) == [(None, None), ("r1", ("i1",))]
    assert len(caplog.records) == 1


def test_what_was_refused_and_sent_again_is_another_attempt(receipts: Recorded) -> None:
    watching = Tap(AGENT)
    _ask(watching)
    for status in (401, 503, 200):
        _answer(watching, status)
    told = [(stop.run_id, stop.attempt, stop.stop_cause) for stop in receipts.receipts[1:]]
    assert told == [("r2", 1, "input_rejected"), ("r2", 2, "input_rejected"), ("r2", 3, "natural")]
    assert _resumed(receipts)[-1] == ("r1", ("i1",))
    assert _verdicts(receipts) == {"r1": "WAITING", "r2": "FALSE_COMPLETE"}


def test_what_broke_off_and_is_sent_again_is_another_attempt(receipts: Recorded) -> None:
    watching = Tap(AGENT)
    _ask(watching)
    _run(watching, input_of("r2", resume=_YES), [started("r2")])
    _answer(watching)
    told = [(stop.run_id, stop.attempt, stop.stop_cause) for stop in receipts.receipts[1:]]
    assert told == [("r2", 1, "stream_truncated"), ("r2", 2, "natural")]
    assert _verdicts(receipts) == {"r1": "WAITING", "r2": "FALSE_COMPLETE"}


def test_answers_to_what_nobody_here_asked_are_named_once(receipts: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    tap_faults._said.clear()
    for number in range(3):
        _run(
            Tap(AGENT, is_home=True),
            input_of(f"r{number}", resume=_YES),
            [started(f"r{number}"), finished(f"r{number}")],
        )
    assert len(receipts.receipts) == 3
    (warning,) = caplog.records
    assert "threads=" in warning.getMessage()
