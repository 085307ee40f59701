"""Ways past the guard that once were open, and right answers that it once kept back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from stopcause.agui import findings
from stopcause.agui.guard import Check, ResumeGuard
from stopcause.agui.parsing import whole
from stopcause.agui.producer import receive
from stopcause.agui.values import RunSeen
from stopcause.agui.words import Ending, Mode
from stopcause.errors import ResumeRefusedError
from stopcause.receipts.vocabulary import Decision, StopCause
from tests.agui.asking import APPROVE, NOW, asks, given, gives_up, says

BROKE_OFF = RunSeen("t1", "r2", Mode.SPEC, Ending.TRUNCATED, StopCause.STREAM_TRUNCATED, ended_at=NOW)
SOON = NOW + timedelta(days=36_500)


def names(check: Check) -> frozenset[str]:
    return findings.names(check.findings)


def broken_off(**more: object) -> ResumeGuard:
    """A no was sent by r2, and its stream broke off."""
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", "i-1", **more))
    guard.sent(given("t1", "r2", says("i-1", approved=False)))
    guard.saw(BROKE_OFF)
    return guard


@pytest.mark.parametrize("run_id", ["r2", "r3"])
def test_what_broke_off_is_sent_again_as_it_was_and_in_no_other_way(run_id: str) -> None:
    guard = broken_off()
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


def test_an_id_that_is_no_unicode_hides_no_payload() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", whole("i\ud800")))
    assert names(guard.check(given("t1", "r2", says("i\ud800", approved="yes")), NOW)) == {"PAYLOAD_SCHEMA_MISMATCH"}
    assert not guard.check(given("t1", "r2", says("i\ud800")), NOW).refused


def test_what_another_process_asked_since_the_check_is_not_passed_over() -> None:
    guard = ResumeGuard()
    first = given("t1", "r2")
    assert not guard.check(first, NOW).refused
    guard.saw(asks("t1", "r1", "i-1"))
    with pytest.raises(ResumeRefusedError) as caught:
        guard.sent(first)
    assert findings.names(caught.value.findings) == {"SILENT_CONTINUE"}


def test_an_answer_to_what_is_not_asked_any_more_is_not_sent() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", "i-1"))
    late = given("t1", "r2", says("i-1", approved=False))
    assert not guard.check(late, NOW).refused
    guard.sent(given("t1", "r9", says("i-1")))
    guard.saw(asks("t1", "r9", "i-2"))
    with pytest.raises(ResumeRefusedError) as caught:
        guard.sent(late)
    assert findings.names(caught.value.findings) == {"RESUME_STALE_ID", "UNCOVERED"}


def test_an_agent_gets_the_payload_of_the_answer_that_counts() -> None:
    asked = {"id": "i-1", "reason": "tool_call", "toolCallId": "tc-1", "responseSchema": APPROVE}
    malformed = {"interruptId": "i-1", "status": "ok", "payload": {"approved": True}}
    received = receive([asked], given("t1", "r2", malformed, says("i-1", approved=False)))
    assert received.answers["i-1"].payload == {"approved": False}
    assert not received.may_act("i-1")


@pytest.mark.parametrize("approved", [None, 0, 1, "false", "true", []])
def test_an_approval_that_is_neither_yes_nor_no_allows_nothing(approved: object) -> None:
    asked = {"id": "i-1", "reason": "tool_call", "toolCallId": "tc-1"}
    received = receive([asked], given("t1", "r2", says("i-1", approved=approved)))
    assert received.error is not None
    assert received.error.code == "INVALID_PAYLOAD"
    word = {"type": "object", "properties": {"approved": {}}}
    free = receive([{**asked, "responseSchema": word}], given("t1", "r2", says("i-1", approved=approved)))
    assert free.answers["i-1"].decision is Decision.DENIED
    assert not free.may_act("i-1")


class Entry:
    """As a model of the SDK is, in a dictionary of the host's."""

    def model_dump(self, **_: object) -> dict[str, object]:
        return says("i-1")


@pytest.mark.parametrize("resume", [[Entry()], (Entry(),), (says("i-1"),)])
def test_models_and_tuples_in_a_dictionary_of_the_hosts_are_answers(resume: object) -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", "i-1"))
    value = {**given("t1", "r2"), "resume": resume}
    assert guard.check(value, NOW) == Check(refused=False, findings=())
    guard.sent(value)
    assert not guard.thread("t1").open()
