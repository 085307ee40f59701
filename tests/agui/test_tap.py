"""What a tap leaves behind is what a recording of the same stream says, whatever the chunks and the side."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from stopcause.agui import tap, tap_faults, tap_passage, told
from stopcause.agui.guard import ResumeGuard
from stopcause.agui.inputs import read_input
from stopcause.agui.ledger import Ledger
from stopcause.agui.lifecycle import Watch
from stopcause.agui.tap_asgi import AguiMiddleware
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.agui.values import Begun
from stopcause.classifier import engine
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.receipts import capture, mending, process
from stopcause.receipts.testing import Recorded, recorded
from tests.agui.tapped import (
    NDJSON,
    RECORDINGS,
    SSE,
    finished,
    input_of,
    playing,
    recorded_exchanges,
    said,
    served,
    sse,
    started,
)
from tests.support.laws import IS_THOROUGH

Json = Any
Record = dict[str, Json]
AGENT = "clerk"
ROUTE = {"owner": "team:pay", "due_s": 60.0}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*")
_OWN = ("record_id", "seq")


# The same as a recording ----------------------------------------------------------------------------------------------


PATHS = sorted(RECORDINGS.glob("*.json"))
WAYS = [(path, size, media) for path in PATHS for size, media in ((997, SSE), (0, NDJSON))]
WAYS += [(path, 1, SSE) for path in (PATHS if IS_THOROUGH else PATHS[-2:])]


@pytest.mark.parametrize(("path", "size", "media"), WAYS, ids=[f"{path.stem}-{size}" for path, size, _ in WAYS])
def test_both_taps_tell_what_the_recording_tells(path: Path, size: int, media: str) -> None:
    exchanges = recorded_exchanges(path)
    expected = _as_recorded(exchanges, is_home=False)
    with served(playing(exchanges, size, media)) as url, recorded(route=ROUTE) as receipts:
        with httpx.Client(transport=AguiTransport(agent=AGENT)) as client:
            _play(client, url, exchanges)
        assert _lines(receipts.lines) == expected
    tapped = AguiMiddleware(playing(exchanges, size, media), AGENT)
    with recorded(route=ROUTE) as receipts, served(tapped) as url:
        with httpx.Client() as client:
            _play(client, url, exchanges)
        assert _lines(receipts.lines) == _as_recorded(exchanges, is_home=True)
    assert {line["kind"] for line in expected} >= {"run.started", "run.stopped"}


def _play(client: httpx.Client, url: str, exchanges: Sequence[Mapping[str, Json]]) -> None:
    for each in exchanges:
        client.post(url, json=each["input"])


def _as_recorded(exchanges: Sequence[Mapping[str, Json]], *, is_home: bool) -> list[Record]:
    """The records of these exchanges, without a tap."""
    with recorded(route=ROUTE):
        ledger, drafts, now = Ledger(), [], capture.configured_now()
        source = told.Source(
            agent=AGENT, lease_s=now.lease_s, route_of=now.route_of, process=process.identity() if is_home else None
        )
    for each in exchanges:
        moment = datetime.now(UTC)
        watch = Watch(read_input(each["input"]), http_status=each.get("http_status"))
        seen = [run for event in each["events"] for run in watch.take(event, moment)]
        for run in (*seen, *watch.close(moment)):
            if isinstance(run, Begun):
                drafts += told.begun_records(run, ledger.begun(run), source)
            else:
                drafts += told.ended_records(run, ledger.ended(run), source)
    return _lines([line for draft in drafts if (line := mending.line_of(draft)) is not None])


def _lines(lines: Sequence[bytes]) -> list[Record]:
    """Records without what is another each time."""
    return [{key: _same(key, value) for key, value in json.loads(line).items() if key not in _OWN} for line in lines]


def _same(key: str, value: Json) -> Json:
    if isinstance(value, dict):
        return {inner: _same(inner, each) for inner, each in value.items()}
    if isinstance(value, list):
        return [_same(key, each) for each in value]
    is_time = key == "duration_s" or (isinstance(value, str) and _TIME.fullmatch(value))
    return "a time" if is_time else value


# Ends -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def receipts() -> Iterator[Recorded]:
    with recorded(service="desk", environment="test") as kept:
        yield kept


def _passage(*, is_home: bool = True) -> tap_passage.Passage:
    passage = tap.Tap(AGENT, is_home=is_home).passage()
    assert passage is not None
    passage.asked(json.dumps(input_of()).encode())
    passage.answered(200, "text/event-stream; charset=utf-8", "")
    return passage


def test_a_run_is_told_as_it_begins_and_as_it_ends(receipts: Recorded) -> None:
    passage = _passage()
    passage.passed(sse([started()]))
    assert [line["kind"] for line in _lines(receipts.lines)] == ["run.started"]
    passage.passed(sse([*said(), finished()]))
    assert (receipts.stopped.stop_cause, receipts.stopped.run_id) == ("natural", "r1")
    passage.ended()
    assert len(receipts.receipts) == 1


def test_what_the_program_said_once_stands_in_the_records(receipts: Recorded) -> None:
    passage = _passage()
    passage.passed(sse([started(), finished()]))
    start, stop = _lines(receipts.lines)
    for record in (start, stop):
        assert (record["agent"], record["service"], record["environment"]) == (AGENT, "desk", "test")
        assert (record["boundary"], record["thread_id"]) == ("event_stream", "t1")
    assert (start["lease_s"], start["process"]) == (300.0, process.identity())


def test_a_run_that_lives_elsewhere_has_no_process_here(receipts: Recorded) -> None:
    _passage(is_home=False).passed(sse([started()]))
    assert "process" not in _lines(receipts.lines)[0]


def test_a_stream_that_breaks_off_is_truncated(receipts: Recorded) -> None:
    passage = _passage()
    passage.passed(sse([started()]))
    passage.ended()
    assert receipts.stopped.stop_cause == "stream_truncated"


def test_a_stream_that_its_reader_leaves_is_aborted(receipts: Recorded) -> None:
    passage = _passage()
    passage.passed(sse([started()]))
    passage.ended(left_by_reader=True)
    assert receipts.stopped.stop_cause == "caller_abort"


def test_a_reader_who_leaves_after_the_end_changes_nothing(receipts: Recorded) -> None:
    passage = _passage()
    passage.passed(sse([started(), finished()]))
    passage.ended(left_by_reader=True)
    assert receipts.stopped.stop_cause == "natural"


@pytest.mark.parametrize("status", [400, 401, 409, 422, 500, 503])
def test_a_refusal_is_the_end_of_the_run_that_was_asked_for(status: int, receipts: Recorded) -> None:
    passage = tap.Tap(AGENT).passage()
    assert passage is not None
    passage.asked(json.dumps(input_of()).encode())
    passage.answered(status, "application/json", "")
    assert (receipts.stopped.stop_cause, receipts.stopped.run_id) == ("input_rejected", "r1")


@pytest.mark.parametrize("status", [200, 204, 301, 307])
def test_an_answer_that_is_no_stream_and_no_refusal_says_nothing(status: int, receipts: Recorded) -> None:
    passage = tap.Tap(AGENT).passage()
    assert passage is not None
    passage.asked(json.dumps(input_of()).encode())
    passage.answered(status, "application/json", "")
    passage.passed(sse([started(), finished()]))
    passage.ended()
    assert receipts.lines == []


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b'{"threadId": "t1"}', b"[" * 100_000, b"\xff"])
def test_a_refusal_of_what_is_no_input_says_nothing(body: bytes, receipts: Recorded) -> None:
    passage = tap.Tap(AGENT).passage()
    assert passage is not None
    passage.asked(body)
    passage.answered(422, "application/json", "")
    assert receipts.lines == []


@pytest.mark.parametrize("media", ["application/json", "text/html", "application/octet-stream", ""])
def test_a_stream_of_something_else_is_not_read(media: str, receipts: Recorded) -> None:
    passage = tap.Tap(AGENT).passage()
    assert passage is not None
    passage.answered(200, media, "")
    assert not passage.is_stream
    assert receipts.lines == []


# Signs of life --------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that is set by hand, where the tap looks at it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seconds = time.time()
        patch.setattr(tap_passage, "_now", lambda: self.seconds)


@pytest.mark.parametrize(
    ("events", "sign"),
    [
        (said(), "output"),
        ([{"type": "STATE_SNAPSHOT", "snapshot": {}}, *said()], "state_change"),
        ([{"type": "TOOL_CALL_RESULT", "messageId": "m9", "toolCallId": "c1", "content": "x"}, *said()], "tool_result"),
        ([{"type": "STEP_STARTED", "stepName": "a"}], "heartbeat"),
        ([{"type": "OF_TOMORROW"}], "heartbeat"),
    ],
)
def test_a_run_that_goes_on_gives_the_best_sign_of_the_last_ten_seconds(
    events: list[Json], sign: str, receipts: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, passage = Clock(monkeypatch), _passage()
    passage.passed(sse([started(), *events]))
    clock.seconds += 9.9
    passage.passed(b": still here\n\n")
    assert len(receipts.lines) == 1
    clock.seconds += 1.1
    passage.passed(b": still here\n\n")
    passage.passed(b": still here\n\n")
    (_, progress) = _lines(receipts.lines)
    assert (progress["kind"], progress["run_id"], progress.get("sign")) == ("run.progress", "r1", sign)


def test_nobody_gives_signs_of_a_run_that_is_over(receipts: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, passage = Clock(monkeypatch), _passage()
    passage.passed(sse([started(), finished()]))
    clock.seconds += 60
    passage.passed(b": still here\n\n")
    assert [line["kind"] for line in _lines(receipts.lines)] == ["run.started", "run.stopped"]


# Again, and after a restart -------------------------------------------------------------------------------------------

_ASKS = finished(outcome={"type": "interrupt", "interrupts": [{"id": "i1", "reason": "tool_call", "toolCallId": "c1"}]})
_CALL = [
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
]
_RESULT = {"type": "TOOL_CALL_RESULT", "messageId": "m1", "toolCallId": "c1", "content": "x"}
_YES = [{"interruptId": "i1", "status": "resolved", "payload": {"approved": True}}]


def _run(watching: tap.Tap, given: Json, events: list[Json], status: int = 200) -> None:
    passage = watching.passage()
    assert passage is not None
    passage.asked(json.dumps(given).encode())
    passage.answered(status, SSE, "")
    passage.passed(sse(events))
    passage.ended()


def _ask(watching: tap.Tap) -> None:
    _run(watching, input_of(), [started(), *_CALL, _ASKS])


def _answer(watching: tap.Tap, status: int = 200) -> None:
    _run(watching, input_of("r2", resume=_YES), [started("r2"), _RESULT, finished("r2")], status)


def _resumed(receipts: Recorded) -> list[tuple[str | None, tuple[str, ...] | None]]:
    return [(stop.resumes_run_id, stop.answers) for stop in receipts.receipts]


def test_a_run_that_answers_says_which_it_takes_up(receipts: Recorded) -> None:
    watching = tap.Tap(AGENT)
    _ask(watching)
    _answer(watching)
    assert _resumed(receipts) == [(None, None), ("r1", ("i1",))]


def test_a_tap_that_begins_anew_knows_its_threads_from_their_file(receipts: Recorded, tmp_path: Path) -> None:
    _ask(tap.Tap(AGENT, threads=tmp_path / "threads.db"))
    _answer(tap.Tap(AGENT, threads=tmp_path / "threads.db"))
    assert _resumed(receipts) == [(None, None), ("r1", ("i1",))]


def test_two_workers_share_a_file(receipts: Recorded, tmp_path: Path) -> None:
    one, other = (tap.Tap(AGENT, threads=tmp_path / "threads.db") for _ in range(2))
    _run(other, input_of("r0"), [started("r0"), finished("r0")])
    _ask(one)
    _answer(other)
    assert _resumed(receipts)[-1] == ("r1", ("i1",))


def test_what_a_guard_knows_is_known(receipts: Recorded, tmp_path: Path) -> None:
    _ask(tap.Tap(AGENT, guard=ResumeGuard(tmp_path / "guard.db")))
    guard = ResumeGuard(tmp_path / "guard.db")
    guard.sent(input_of("r2", resume=_YES))
    _answer(tap.Tap(AGENT, guard=guard))
    assert _resumed(receipts) == [(None, None), ("r1", ("i1",))]
    assert guard.thread("t1").open() == ()


def test_a_file_that_cannot_be_used_is_named_once_and_memory_serves(
    receipts: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tap_faults._said.clear()
    (tmp_path / "threads.db").write_bytes(b"canary" * 1000)
    watching = tap.Tap(AGENT, threads=tmp_path / "threads.db")
    _ask(watching)
    _answer(watching)
    assert _resumed(receipts) == [(None, None), ("r1", ("i1",))]
    assert len(caplog.records) == 1


def test_what_was_refused_and_sent_again_is_another_attempt(receipts: Recorded) -> None:
    watching = tap.Tap(AGENT)
    _ask(watching)
    for status in (401, 503, 200):
        _answer(watching, status)
    told = [(stop.run_id, stop.attempt, stop.stop_cause) for stop in receipts.receipts[1:]]
    assert told == [("r2", 1, "input_rejected"), ("r2", 2, "input_rejected"), ("r2", 3, "natural")]
    assert _resumed(receipts)[-1] == ("r1", ("i1",))
    verdicts = {
        each.run_id: each.verdict for each in engine.judge_all(receipts.records, DEFAULT_POLICY, datetime.now(UTC))
    }
    assert verdicts == {"r1": "WAITING", "r2": "FALSE_COMPLETE"}


def test_what_broke_off_and_is_sent_again_is_another_attempt(receipts: Recorded) -> None:
    watching = tap.Tap(AGENT)
    _ask(watching)
    _run(watching, input_of("r2", resume=_YES), [started("r2")])
    _answer(watching)
    told = [(stop.run_id, stop.attempt, stop.stop_cause) for stop in receipts.receipts[1:]]
    assert told == [("r2", 1, "stream_truncated"), ("r2", 2, "natural")]
    verdicts = {
        each.run_id: each.verdict for each in engine.judge_all(receipts.records, DEFAULT_POLICY, datetime.now(UTC))
    }
    assert verdicts == {"r1": "WAITING", "r2": "FALSE_COMPLETE"}


def test_answers_to_what_nobody_here_asked_are_named_once(receipts: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    tap_faults._said.clear()
    for number in range(3):
        _run(
            tap.Tap(AGENT, is_home=True),
            input_of(f"r{number}", resume=_YES),
            [started(f"r{number}"), finished(f"r{number}")],
        )
    assert len(receipts.receipts) == 3
    (warning,) = caplog.records
    assert "threads=" in warning.getMessage()


def test_a_run_without_a_name_leaves_nothing(receipts: Recorded) -> None:
    passage = tap.Tap(AGENT).passage()
    assert passage is not None
    passage.answered(200, SSE, "")
    passage.passed(sse([{"type": "RUN_ERROR", "message": "no input"}]))
    passage.ended()
    assert receipts.lines == []
