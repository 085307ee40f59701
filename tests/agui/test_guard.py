"""Which answers a guard takes, what it knows once they are sent, and how one is opened again."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from stopcause.agui import findings
from stopcause.agui.guard import Check, ResumeGuard, refusal
from stopcause.agui.inputs import read_input
from stopcause.agui.values import Begun, Interrupt, RunSeen
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.errors import MissingExtraError, ResumeRefusedError
from stopcause.receipts.vocabulary import ApprovalKind, StopCause
from tests.agui.asking import NOW, asks, given, gives_up, names, paused, says

BROKE_OFF = RunSeen("t1", "r2", Mode.SPEC, Ending.TRUNCATED, StopCause.STREAM_TRUNCATED, ended_at=NOW)
SOON = NOW + timedelta(days=36_500)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guard.db"


def test_the_old_channel_does_not_answer_a_run_that_asks_by_an_outcome_too() -> None:
    guard = ResumeGuard()
    by_both = tuple(Interrupt(f"i-{each}", ApprovalKind.TOOL_CALL, each) for each in (Channel.OUTCOME, Channel.CUSTOM))
    guard.saw(asks("t1", "r1")._replace(interrupts=by_both))
    old = {**given("t1", "r2"), "forwardedProps": {"command": {"resume": True}}}
    assert names(guard.check(old, NOW)) == {"SILENT_CONTINUE"}
    with pytest.raises(ResumeRefusedError):
        guard.sent(old)
    assert len(guard.thread("t1").open()) == 2


def test_a_wait_of_the_clients_own_is_answered_by_a_message() -> None:
    guard = ResumeGuard()
    wait = Interrupt("tc-1", ApprovalKind.INPUT_REQUIRED, Channel.TOOL, "tc-1")
    guard.saw(asks("t1", "r1")._replace(interrupts=(wait,)))
    assert names(guard.check(given("t1", "r2"), NOW)) == {"SILENT_CONTINUE"}
    message = {"id": "m", "role": "tool", "toolCallId": "tc-1", "content": "yes"}
    assert guard.check({**given("t1", "r2"), "messages": [message]}, NOW) == Check(refused=False, findings=())


def test_a_run_that_is_sent_again_under_its_id_says_the_same_or_is_refused() -> None:
    guard = paused(None)
    guard.sent(given("t1", "r2", says("i-1")))
    assert not guard.check(given("t1", "r2", says("i-1")), NOW).refused
    assert "ANSWER_CHANGED" in names(guard.check(given("t1", "r2", gives_up("i-1")), NOW))


def test_sending_and_its_stream_say_the_same_twice_and_that_is_once(path: Path) -> None:
    guard = paused(path)
    sent = given("t1", "r2", says("i-1"))
    guard.sent(sent)
    before = guard.thread("t1")
    guard.saw(Begun("t1", "r2", Mode.SPEC, read_input(sent), NOW))
    guard.sent(sent)
    assert guard.thread("t1") == before


@pytest.mark.parametrize("run_id", ["r2", "r3"])
def test_what_broke_off_is_sent_again_as_it_was_and_in_no_other_way(run_id: str) -> None:
    guard = paused(None)
    guard.sent(given("t1", "r2", says("i-1", approved=False)))
    guard.saw(BROKE_OFF)
    assert names(guard.check(given("t1", run_id, says("i-1", approved=False)), NOW)) == {
        "REPLAY",
        "ANSWER_FATE_UNKNOWN",
    }
    check = guard.check(given("t1", run_id, says("i-1", approved=True)), NOW)
    assert check.refused
    assert "ANSWER_CHANGED" in names(check)


@pytest.mark.parametrize("run_id", ["r2", "r3"])
@pytest.mark.parametrize("is_broken", [True, False])
def test_what_has_expired_since_it_was_sent_may_be_given_up_by_any_run(run_id: str, *, is_broken: bool) -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", "i-1", expires_at=SOON))
    guard.sent(given("t1", "r2", says("i-1")))
    if is_broken:
        guard.saw(BROKE_OFF)
    assert not guard.check(given("t1", run_id, gives_up("i-1")), SOON).refused
    assert "EXPIRED_ANSWER" in names(guard.check(given("t1", run_id, says("i-1")), SOON))


def test_what_another_process_asked_since_the_check_is_not_passed_over() -> None:
    guard = ResumeGuard()
    first = given("t1", "r2")
    assert not guard.check(first, NOW).refused
    guard.saw(asks("t1", "r1", "i-1"))
    with pytest.raises(ResumeRefusedError) as caught:
        guard.sent(first)
    assert findings.names(caught.value.findings) == {"SILENT_CONTINUE"}


def test_an_answer_to_what_is_not_asked_any_more_is_not_sent() -> None:
    guard = paused(None)
    late = given("t1", "r2", says("i-1", approved=False))
    assert not guard.check(late, NOW).refused
    guard.sent(given("t1", "r9", says("i-1")))
    guard.saw(asks("t1", "r9", "i-2"))
    with pytest.raises(ResumeRefusedError) as caught:
        guard.sent(late)
    assert findings.names(caught.value.findings) == {"RESUME_STALE_ID", "UNCOVERED"}


@pytest.mark.parametrize("is_broken", [True, False])
def test_what_somebody_saw_was_never_taken_is_open_again_for_any_answer(path: Path, *, is_broken: bool) -> None:
    guard = paused(path)
    guard.sent(given("t1", "r2", says("i-1", approved=True)))
    if is_broken:
        guard.saw(BROKE_OFF)
    other = given("t1", "r3", says("i-1", approved=False))
    assert guard.check(other, NOW).refused
    assert guard.reopen("t1") == ("i-1",)
    assert not ResumeGuard(path).check(other, NOW).refused
    assert guard.answers("t1").missing == ("i-1",)
    assert guard.reopen("t1") == ()


def test_without_jsonschema_a_guard_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtraError, match=r"stopcause\[agui\]"):
        ResumeGuard()


def test_a_check_that_passes_is_no_refusal() -> None:
    with pytest.raises(ValueError, match="is no refusal"):
        refusal(Check(refused=False, findings=()))
