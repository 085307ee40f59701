"""Threads run by run, where a case file cannot look: what becomes of an interrupt, what is pure, what is bounded."""

from __future__ import annotations

from datetime import timedelta

import pytest

from stopcause.agui import ledger as ledgers
from stopcause.agui import turns
from stopcause.agui.findings import found, names
from stopcause.agui.ledger import Ledger, begun, ended
from stopcause.agui.values import Begun, Decided, Entry, Input, RunSeen, Thread
from stopcause.agui.words import Channel, Ending, State
from stopcause.receipts.vocabulary import Decision
from tests.agui.seen import NOON, THREAD, after, asked, gives_up, run, states, yes

ASKS = run("r1", asks=(asked("i-1", "tc-1"),))


def started(seen: RunSeen) -> Begun:
    return Begun(seen.thread_id, seen.run_id, seen.mode, seen.input, seen.began_at)


# The way of one interrupt ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        (Ending.SUCCESS, "closed"),
        (Ending.CANCELLED, "closed"),
        (Ending.UNKNOWN_OUTCOME, "closed"),
        (Ending.ERROR, "open"),
        (Ending.REFUSED, "open"),
        (Ending.TRUNCATED, "unknown"),
        (Ending.REJECTED, "unknown"),
    ],
)
def test_an_answer_ends_as_its_run_does(ending: Ending, state: str) -> None:
    ledger, _ = after(ASKS, run("r2", ending, yes("i-1")))

    assert states(ledger) == {("r1", "i-1"): state}


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        (Ending.SUCCESS, "lost"),
        (Ending.CANCELLED, "lost"),
        (Ending.UNKNOWN_OUTCOME, "lost"),
        (Ending.ERROR, "open"),
        (Ending.REFUSED, "open"),
        (Ending.TRUNCATED, "open"),
        (Ending.REJECTED, "open"),
    ],
)
def test_only_a_run_that_got_past_it_loses_an_interrupt(ending: Ending, state: str) -> None:
    ledger, _ = after(ASKS, run("r2", ending))

    assert states(ledger) == {("r1", "i-1"): state}


def test_while_its_run_is_under_way_an_answer_is_sent() -> None:
    ledger, _ = after(ASKS)
    link = ledger.begun(started(run("r2", Ending.SUCCESS, yes("i-1"))))

    assert states(ledger) == {("r1", "i-1"): "sent"}
    assert (link.resumes_run_id, link.answers) == ("r1", ("i-1",))
    assert ledger.threads[THREAD].open() == ()


def test_a_run_may_be_said_to_begin_any_number_of_times() -> None:
    thread, _ = ended(Thread(THREAD), ASKS)
    first, link = begun(thread, started(run("r2", Ending.SUCCESS, yes("i-1"))))

    assert begun(first, started(run("r2", Ending.SUCCESS, yes("i-1")))) == (first, link)


def test_ending_says_the_same_whether_the_run_was_said_to_begin_or_not() -> None:
    resuming = run("r2", Ending.SUCCESS, yes("i-1"), gives_up("i-9"), results=("tc-1",))
    told, untold = Ledger(), Ledger()
    for each in (told, untold):
        each.ended(ASKS)
    told.begun(started(resuming))

    assert told.ended(resuming) == untold.ended(resuming)
    assert told.threads == untold.threads


def test_nothing_is_known_of_answers_that_nobody_saw() -> None:
    ledger, links = after(ASKS, run("r2", knows_input=False))

    assert states(ledger) == {("r1", "i-1"): "open"}
    assert names(links[1].findings) == {"INPUT_UNSEEN"}


def test_what_is_wrong_with_an_input_itself_is_said_of_its_run() -> None:
    malformed = found("ENTRY_MALFORMED", "resume.0")
    _, links = after(ASKS, run("r2", Ending.ERROR, input=Input(THREAD, "r2", findings=(malformed,))))

    assert malformed in links[1].findings


def test_an_id_that_a_run_gives_twice_is_asked_once() -> None:
    ledger, _ = after(run("r1", asks=(asked("i-1", "tc-1"), asked("i-1", "tc-2"))))

    assert states(ledger) == {("r1", "i-1"): "open"}


def test_what_a_failed_or_broken_run_was_about_to_ask_it_did_not() -> None:
    for ending in (Ending.ERROR, Ending.TRUNCATED, Ending.REJECTED, Ending.REFUSED):
        ledger, _ = after(run("r1", ending, asks=(asked("i-1"),)))

        assert states(ledger) == {}


def test_an_expired_question_whose_answer_was_lost_may_be_given_up() -> None:
    asks = run("r1", asks=(asked("i-1", "tc-1", expires_at=NOON + timedelta(minutes=3)),))
    broke_off = run("r2", Ending.TRUNCATED, yes("i-1"))

    ledger, links = after(asks, broke_off, run("r3", Ending.SUCCESS, gives_up("i-1")))

    assert states(ledger) == {("r1", "i-1"): "closed"}
    assert links[2].decided == (Decided("r1", "i-1", Decision.CANCELLED, digest="d-absent"),)
    assert "ANSWER_CHANGED" not in names(links[2].findings)


@pytest.mark.parametrize("first", [Ending.TRUNCATED, None])
def test_an_answer_that_may_never_have_arrived_is_the_next_run_s_when_it_is_sent_again(first: Ending | None) -> None:
    ledger, _ = after(ASKS)
    lost = run("r2", first or Ending.SUCCESS, yes("i-1"))
    ledger.begun(started(lost))
    if first is not None:
        ledger.ended(lost)

    link = ledger.ended(run("r3", Ending.SUCCESS, yes("i-1"), results=("tc-1",)))

    assert states(ledger) == {("r1", "i-1"): "closed"}
    assert (link.resumes_run_id, link.answers) == ("r1", ("i-1",))
    assert link.decided == (Decided("r1", "i-1", Decision.APPROVED, digest="d-yes"),)
    assert link.executed == (("r1", "i-1"),)
    assert names(link.findings) == {"REPLAY"}


def test_a_second_try_that_fails_does_not_say_what_became_of_the_first() -> None:
    ledger, links = after(ASKS, run("r2", Ending.TRUNCATED, yes("i-1")), run("r3", Ending.ERROR, yes("i-1")))

    assert states(ledger) == {("r1", "i-1"): "unknown"}
    assert {"REPLAY", "ANSWER_FATE_UNKNOWN"} == names(links[2].findings)


def test_whichever_of_two_runs_with_one_answer_ends_first_takes_it() -> None:
    first, second = run("r2", Ending.SUCCESS, yes("i-1")), run("r3", Ending.SUCCESS, yes("i-1"))
    ledger, _ = after(ASKS)
    for each in (first, second):
        ledger.begun(started(each))

    link = ledger.ended(first)
    assert (states(ledger), link.answers) == ({("r1", "i-1"): "closed"}, ("i-1",))

    link = ledger.ended(second)
    assert (states(ledger), link.decided) == ({("r1", "i-1"): "closed"}, ())


def test_before_it_expires_another_answer_to_it_changes_nothing() -> None:
    asks = run("r1", asks=(asked("i-1", "tc-1", expires_at=NOON + timedelta(minutes=9)),))

    ledger, links = after(asks, run("r2", Ending.TRUNCATED, yes("i-1")), run("r3", Ending.SUCCESS, gives_up("i-1")))

    assert states(ledger) == {("r1", "i-1"): "unknown"}
    assert "ANSWER_CHANGED" in names(links[2].findings)


def test_an_answer_of_no_known_status_answers_nothing() -> None:
    ledger, links = after(ASKS, run("r2", Ending.ERROR, Entry("i-1", "maybe", "d")))

    assert states(ledger) == {("r1", "i-1"): "open"}
    assert "UNCOVERED" in names(links[1].findings)
    assert "RESUME_UNKNOWN_ID" not in names(links[1].findings)  # it is known; what is wrong with it, the input says


def test_an_entry_that_is_no_answer_hides_none() -> None:
    ledger, links = after(ASKS, run("r2", Ending.SUCCESS, Entry("i-1", "maybe", "d"), yes("i-1"), results=("tc-1",)))

    assert states(ledger) == {("r1", "i-1"): "closed"}
    assert (links[1].executed, links[1].bypassed) == ((("r1", "i-1"),), ())
    assert "RESUME_DUPLICATE" in names(links[1].findings)


def test_a_message_answers_a_call_to_the_client_s_own_tool() -> None:
    asks = run("r1", asks=(asked("tc-1", "tc-1", channel=Channel.TOOL),))
    given = Input(THREAD, "r2", answered=frozenset({"tc-1"}))
    ledger, links = after(asks, run("r2", input=given))

    assert states(ledger) == {("r1", "tc-1"): "closed"}
    assert links[1].decided == (Decided("r1", "tc-1", Decision.ANSWERED),)


# Bounds ---------------------------------------------------------------------------------------------------------------


def test_what_is_settled_is_forgotten_and_what_is_lost_is_not() -> None:
    runs = [run("r1", asks=(asked("i-lost"),)), run("r2")]
    for number in range(3, 40, 2):
        runs += [run(f"r{number}", asks=(asked("i"),)), run(f"r{number + 1}", Ending.SUCCESS, yes("i"))]
    ledger, _ = after(*runs)

    found = states(ledger)

    assert found["r1", "i-lost"] == "lost"
    assert list(found.values()).count("closed") == 8


def test_a_thread_has_an_end_however_much_is_asked_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_MOST_RAISED", 50)
    monkeypatch.setattr(turns, "_MOST_RESULTS", 20)
    ledger = Ledger()
    for number in range(1, 100):
        asks = tuple(asked(f"i-{number}-{place}", f"c-{number}-{place}") for place in range(10))
        link = ledger.ended(run(f"r{number}", asks=asks, results=tuple(f"x-{number}-{place}" for place in range(10))))
        assert ("THREAD_TOO_LONG" in names(link.findings)) is (number > 5)

    thread = ledger.threads[THREAD]

    assert (len(thread.raised), len(thread.results), len(thread.runs)) == (50, 20, 64)
    assert len(thread.open()) == 10


def test_of_too_many_threads_the_quietest_that_waits_for_nothing_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "_MOST_THREADS", 3)
    ledger = Ledger()
    ledger.ended(run("r1", asks=(asked("i-1"),), thread="waits"))
    for name in ("a", "b", "c", "d"):
        ledger.ended(run("r1", thread=name))

    assert list(ledger.threads) == ["waits", "c", "d"]


def test_a_thousand_interrupts_move_together() -> None:
    many = tuple(asked(f"i-{place}", f"c-{place}") for place in range(1_000))
    ledger, _ = after(*(run(f"r{number}", asks=many) for number in range(1, 11)))

    assert len(ledger.threads[THREAD].open()) == 1_000
    assert all(each.state in (State.OPEN, State.MOVED) for each in ledger.threads[THREAD].raised)
