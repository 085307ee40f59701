"""What the audit finds of answers once they were sent: the same that a guard finds before, and what only it can see."""

from __future__ import annotations

import builtins
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.cards import BY_NAME
from stopcause.agui.findings import names
from stopcause.agui.given import read_given
from stopcause.agui.guard import ResumeGuard
from stopcause.agui.ledger import Ledger
from stopcause.agui.scene import Request
from stopcause.agui.values import Begun, RunSeen
from stopcause.agui.words import Ending, Mode, Side
from stopcause.receipts.vocabulary import StopCause
from tests.agui import asking
from tests.agui.asking import NOW, asks, gives_up, says
from tests.agui.test_guard_laws import HISTORIES, play
from tests.support.laws import tried_on

# What a guard says of a run that is still open, nobody can say any more once that has ended.
OF_BOTH = frozenset(
    name for name, card in BY_NAME.items() if card.side is Side.CONSUMER and "R50" <= card.rule <= "R63"
) - {"HISTORY_LOST"}


def sent(ledger: Ledger, value: dict[str, Any], *, ending: Ending = Ending.SUCCESS, at: Any = NOW) -> frozenset[str]:  # noqa: ANN401 - a time or None
    """What is found of a run that this input asked for."""
    told = read_given(value)
    assert told is not None
    run = RunSeen("t1", told.input.run_id, Mode.SPEC, ending, StopCause.NATURAL, input=told.input, began_at=at)
    ledger.begun(Begun("t1", run.run_id, Mode.SPEC, told.input, at), Request(told.payloads))
    return names(ledger.ended(run, Request(told.payloads)).findings)


def paused(**more: Any) -> Ledger:  # noqa: ANN401 - fields of an interrupt
    ledger = Ledger()
    ledger.ended(asks("t1", "r1", "i-1", **more))
    return ledger


def edits(interrupt_id: str) -> dict[str, Any]:
    return {"interruptId": interrupt_id, "status": "resolved", "payload": {"approved": True, "editedArgs": {"to": 1}}}


def unfit(interrupt_id: str) -> dict[str, Any]:
    return says(interrupt_id, approved="yes")


ANSWERS = st.builds(
    lambda say, each: say(each),
    st.sampled_from([says, gives_up, edits, unfit]),
    st.sampled_from(["i-1", "i-2", "nope"]),
)


@given(HISTORIES, st.lists(ANSWERS, max_size=4))
@tried_on(200)
def test_an_audit_says_of_what_was_sent_what_a_guard_says_before(
    history: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    guard, ledger = ResumeGuard(), Ledger()
    play(guard, history)
    value = asking.given("t1", "new", *answers)
    before = names(guard.check(value, NOW).findings)
    ledger.threads["t1"] = guard.thread("t1")

    after = sent(ledger, value)

    assert before & OF_BOTH == after & OF_BOTH


@pytest.mark.parametrize("payload", [False, 0, "", [], None], ids=repr)
def test_a_falsy_answer_is_held_against_its_schema_like_any_other(payload: object) -> None:
    resume = {"interruptId": "i-1", "status": "resolved", "payload": payload}
    fits = {"type": ["boolean", "integer", "string", "array", "null"]}

    assert "PAYLOAD_SCHEMA_MISMATCH" in sent(paused(), asking.given("t1", "r2", resume))
    assert "PAYLOAD_SCHEMA_MISMATCH" not in sent(paused(schema=fits), asking.given("t1", "r2", resume))


def test_where_no_schema_can_be_read_nothing_is_said_of_payloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is not installed in most agents."""
    importing = builtins.__import__

    def without(name: str, *more: Any) -> Any:  # noqa: ANN401 - as `__import__`
        if name == "jsonschema":
            raise ImportError(name)
        return importing(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    found = sent(paused(), asking.given("t1", "r2", says("i-1", approved="yes")))

    assert not {"PAYLOAD_SCHEMA_MISMATCH", "SCHEMA_UNREADABLE", "BAD_ANSWER_SWALLOWED"} & found


def test_an_id_that_another_thread_asks_for_is_of_that_thread() -> None:
    ledger = paused()
    ledger.ended(asks("t2", "r9", "i-9"))

    found = sent(ledger, asking.given("t1", "r2", says("i-1"), says("i-9"), says("i-8")))

    assert {"RESUME_WRONG_THREAD", "RESUME_UNKNOWN_ID"} <= found
    assert "RESUME_UNKNOWN_ID" not in sent(paused(), asking.given("t1", "r2", says("i-1")))


def test_answers_that_a_guard_marked_as_sent_are_looked_at_all_the_same() -> None:
    guard, ledger = ResumeGuard(), Ledger()
    guard.saw(asks("t1", "r1", "i-1", expires_at=NOW - timedelta(hours=1)))
    value = asking.given("t1", "r2", says("i-1"))
    guard.sent(value)
    ledger.threads["t1"] = guard.thread("t1")

    assert {"EXPIRED_ANSWER", "HISTORY_LOST", "LATE_ANSWER_TAKEN"} <= sent(ledger, value)


def test_without_a_time_expiry_is_not_judged() -> None:
    asked = {"expires_at": NOW - timedelta(hours=1)}
    value = asking.given("t1", "r2", says("i-1"))

    assert {"EXPIRED_ANSWER", "EXPIRY_NOT_JUDGED"} & sent(paused(**asked), value) == {"EXPIRED_ANSWER"}
    assert {"EXPIRED_ANSWER", "EXPIRY_NOT_JUDGED"} & sent(paused(**asked), value, at=None) == {"EXPIRY_NOT_JUDGED"}


def test_whether_an_answer_fits_is_told_of_it_where_somebody_looked() -> None:
    def told(value: dict[str, Any], **more: Any) -> list[bool | None]:  # noqa: ANN401 - fields of an interrupt
        read = read_given(value)
        assert read is not None
        run = RunSeen("t1", "r2", Mode.SPEC, Ending.SUCCESS, StopCause.NATURAL, input=read.input, began_at=NOW)
        return [each.is_fit for each in paused(**more).ended(run, Request(read.payloads)).decided]

    assert told(asking.given("t1", "r2", says("i-1"))) == [True]
    assert told(asking.given("t1", "r2", unfit("i-1"))) == [False]
    assert told(asking.given("t1", "r2", says("i-1")), schema=None) == [None]
    assert told(asking.given("t1", "r2", gives_up("i-1"))) == [None]
