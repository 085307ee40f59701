"""Gated calls that came back: with leave, without, and a second time."""

from __future__ import annotations

import pytest

from stopcause.agui.findings import names
from stopcause.agui.values import Decided, Result
from stopcause.agui.words import Ending
from stopcause.receipts.vocabulary import Decision
from tests.agui.seen import after, asked, run, states, yes

ASKS = run("r1", asks=(asked("i-1", "tc-1"),))


@pytest.mark.parametrize("ending", [Ending.ERROR, Ending.TRUNCATED, Ending.REJECTED])
def test_a_result_of_the_gated_call_closes_it_however_its_run_ends(ending: Ending) -> None:
    ledger, links = after(ASKS, run("r2", ending, yes("i-1"), results=("tc-1",)))

    assert states(ledger) == {("r1", "i-1"): "closed"}
    assert links[1].executed == (("r1", "i-1"),)
    assert links[1].decided == (Decided("r1", "i-1", Decision.APPROVED, digest="d-yes"),)


def test_a_gated_call_in_a_run_whose_input_nobody_saw_was_answered_it_seems() -> None:
    ledger, links = after(ASKS, run("r2", results=("tc-1",), knows_input=False))

    assert states(ledger) == {("r1", "i-1"): "closed"}
    assert (links[1].resumes_run_id, links[1].answers, links[1].bypassed) == ("r1", ("i-1",), ())


def test_a_call_without_leave_is_bypassed_and_no_longer_open() -> None:
    ledger, links = after(ASKS, run("r2", results=("tc-1",)))

    assert states(ledger) == {("r1", "i-1"): "bypassed"}
    assert links[1].bypassed == (("r1", "i-1"),)
    assert links[1].executed == ()


def test_two_questions_about_one_call_both_need_an_answer() -> None:
    both = run("r1", asks=(asked("i-1", "tc-1"), asked("i-2", "tc-1")))
    ledger, links = after(both, run("r2", Ending.SUCCESS, yes("i-2"), results=("tc-1",)))

    assert states(ledger) == {("r1", "i-1"): "bypassed", ("r1", "i-2"): "closed"}
    assert (links[1].bypassed, links[1].executed) == ((("r1", "i-1"),), (("r1", "i-2"),))
    assert "ACTION_WITHOUT_ANSWER" in names(links[1].findings)


def test_an_event_that_comes_again_is_a_second_effect_and_a_snapshot_is_not() -> None:
    executed = run("r2", Ending.SUCCESS, yes("i-1"), results=(Result("tc-1", "m-1"),))
    restated = run("r3", results=(Result("tc-1", "m-1", is_event=False),))
    again = run("r4", results=(Result("tc-1", "m-2"),))

    _, links = after(ASKS, executed, restated, again)

    assert links[2].findings == ()
    assert names(links[3].findings) == {"DUPLICATE_EFFECT"}


def test_a_call_that_is_asked_for_again_may_come_back_again() -> None:
    first = run("r2", Ending.SUCCESS, yes("i-1"), results=("tc-1",))
    asks_again = run("r3", asks=(asked("i-1", "tc-1"),))
    second = run("r4", Ending.SUCCESS, yes("i-1"), results=("tc-1",))

    ledger, links = after(ASKS, first, asks_again, second)

    assert "DUPLICATE_EFFECT" not in names(links[3].findings)
    assert links[3].executed == (("r3", "i-1"),)
    assert states(ledger) == {("r1", "i-1"): "closed", ("r3", "i-1"): "closed"}
