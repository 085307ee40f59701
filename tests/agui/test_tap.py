"""What a tap tells of one passage: the run's beginning and end, and its signs of life between them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stopcause.agui import tap_passage
from stopcause.agui.tap import Tap
from stopcause.agui.tap_passage import Passage
from stopcause.receipts import process
from stopcause.receipts.testing import Recorded, recorded
from tests.agui.tapped import SSE, finished, input_of, said, sse, started

Json = Any
AGENT = "clerk"
_BODY = json.dumps(input_of()).encode()


@pytest.fixture
def receipts() -> Iterator[Recorded]:
    with recorded(service="desk", environment="test") as kept:
        yield kept


def _told(receipts: Recorded) -> list[dict[str, Json]]:
    return [json.loads(line) for line in receipts.lines]


def _asked(body: bytes = _BODY, *, is_home: bool = True) -> Passage:
    passage = Tap(AGENT, is_home=is_home).passage()
    assert passage is not None
    passage.asked(body)
    return passage


def _passage(*, is_home: bool = True) -> Passage:
    passage = _asked(is_home=is_home)
    passage.answered(200, f"{SSE}; charset=utf-8", "")
    return passage


def test_a_run_is_told_as_it_begins_and_as_it_ends(receipts: Recorded) -> None:
    passage = _passage()
    passage.passed(sse([started()]))
    assert [line["kind"] for line in _told(receipts)] == ["run.started"]
    passage.passed(sse([*said(), finished()]))
    assert (receipts.stopped.stop_cause, receipts.stopped.run_id) == ("natural", "r1")
    passage.ended()
    assert len(receipts.receipts) == 1


def test_what_the_program_said_once_stands_in_the_records(receipts: Recorded) -> None:
    passage = _passage()
    passage.passed(sse([started(), finished()]))
    start, stop = _told(receipts)
    for record in (start, stop):
        assert (record["agent"], record["service"], record["environment"]) == (AGENT, "desk", "test")
        assert (record["boundary"], record["thread_id"]) == ("event_stream", "t1")
    assert (start["lease_s"], start["process"]) == (300.0, process.identity())


def test_the_integration_stands_in_every_record_as_its_framework(receipts: Recorded) -> None:
    passage = Tap(AGENT, integration="ag-ui-langgraph@0.0.47").passage()
    assert passage is not None
    passage.asked(_BODY)
    passage.answered(200, SSE, "")
    passage.passed(sse([started(), finished()]))
    named = [(line["framework"], line["framework_version"]) for line in _told(receipts)]
    assert named == [("ag-ui-langgraph", "0.0.47")] * 2


def test_a_run_that_lives_elsewhere_has_no_process_here(receipts: Recorded) -> None:
    _passage(is_home=False).passed(sse([started()]))
    assert "process" not in _told(receipts)[0]


def test_a_reader_who_leaves_after_the_end_changes_nothing(receipts: Recorded) -> None:
    passage = _passage()
    passage.passed(sse([started(), finished()]))
    passage.ended(left_by_reader=True)
    assert receipts.stopped.stop_cause == "natural"


@pytest.mark.parametrize("status", [400, 401, 409, 422, 500, 503])
def test_a_refusal_is_the_end_of_the_run_that_was_asked_for(status: int, receipts: Recorded) -> None:
    _asked().answered(status, "application/json", "")
    assert (receipts.stopped.stop_cause, receipts.stopped.run_id) == ("input_rejected", "r1")


@pytest.mark.parametrize("status", [200, 204, 301, 307])
def test_an_answer_that_is_no_stream_and_no_refusal_says_nothing(status: int, receipts: Recorded) -> None:
    passage = _asked()
    passage.answered(status, "application/json", "")
    passage.passed(sse([started(), finished()]))
    passage.ended()
    assert receipts.lines == []


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b'{"threadId": "t1"}', b"[" * 100_000, b"\xff"])
def test_a_refusal_of_what_is_no_input_says_nothing(body: bytes, receipts: Recorded) -> None:
    _asked(body).answered(422, "application/json", "")
    assert receipts.lines == []


@pytest.mark.parametrize("media", ["application/json", "text/html", "application/octet-stream", ""])
def test_a_stream_of_something_else_is_not_read(media: str, receipts: Recorded) -> None:
    passage = _asked(b"")
    passage.answered(200, media, "")
    assert not passage.is_stream
    assert receipts.lines == []


def test_a_run_without_a_name_leaves_nothing(receipts: Recorded) -> None:
    passage = _asked(b"")
    passage.answered(200, SSE, "")
    passage.passed(sse([{"type": "RUN_ERROR", "message": "no input"}]))
    passage.ended()
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
    (_, progress) = _told(receipts)
    assert (progress["kind"], progress["run_id"], progress.get("sign")) == ("run.progress", "r1", sign)


def test_nobody_gives_signs_of_a_run_that_is_over(receipts: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, passage = Clock(monkeypatch), _passage()
    passage.passed(sse([started(), finished()]))
    clock.seconds += 60
    passage.passed(b": still here\n\n")
    assert [line["kind"] for line in _told(receipts)] == ["run.started", "run.stopped"]
