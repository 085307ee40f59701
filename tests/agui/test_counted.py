"""Runs that are told again: a late error, a restated history, a second try under the same id."""

from __future__ import annotations

from stopcause.agui.findings import names
from stopcause.agui.ledger import ended
from stopcause.agui.values import Begun, Decided, RunSeen
from stopcause.agui.words import Ending
from stopcause.receipts.vocabulary import Decision
from tests.agui.seen import THREAD, after, asked, run, states, yes

ASKS = run("r1", asks=(asked("i-1", "tc-1"),))


def started(seen: RunSeen) -> Begun:
    return Begun(seen.thread_id, seen.run_id, seen.mode, seen.input, seen.began_at)


def test_a_late_error_leaves_the_thread_as_it_was() -> None:
    ledger, _ = after(ASKS, run("r2", Ending.SUCCESS, yes("i-1"), asks=(asked("i-2", "tc-2"),)))
    before = ledger.threads[THREAD]
    late = run("r2", Ending.ERROR, yes("i-1"), asks=(asked("i-2", "tc-2"),), is_late=True)

    link = ledger.ended(late)

    assert ledger.threads[THREAD] == before
    assert (link.resumes_run_id, link.answers) == ("r1", ("i-1",))
    assert names(link.findings) == {"ANSWER_CONSUMED_THEN_FAILED"}


def test_a_late_error_whose_finish_nobody_saw_is_a_finish_and_an_error() -> None:
    late = run("r1", Ending.ERROR, asks=(asked("i-1"),), is_late=True)
    ledger, _ = after(late)

    assert states(ledger) == {("r1", "i-1"): "open"}
    assert ledger.threads[THREAD].paused_run == "r1"


def test_without_its_ledger_a_thread_still_knows_what_a_counted_run_took_up() -> None:
    resuming = run("r2", Ending.SUCCESS, yes("i-1"), asks=(asked("i-2", "tc-2"),))
    ledger, links = after(ASKS, resuming)
    thread = ledger.threads[THREAD]

    again, link = ended(thread, resuming._replace(ending=Ending.REJECTED))

    assert (again, link) == (thread, links[1])


def test_a_run_that_is_restated_changes_nothing() -> None:
    resuming = run("r2", Ending.SUCCESS, yes("i-1"), results=("tc-1",))
    ledger, links = after(ASKS, resuming)
    before = ledger.threads[THREAD]

    for seen, link in zip((ASKS, resuming), links, strict=True):
        again = ledger.ended(seen._replace(input=None))
        assert again._replace(findings=()) == link
        assert names(again.findings) == {"RUN_TOLD_AGAIN"}
    assert ledger.threads[THREAD] == before


def test_a_refused_run_never_began_and_its_id_is_free() -> None:
    ledger, _ = after(
        ASKS, run("r2", Ending.REFUSED, yes("i-1")), run("r2", Ending.SUCCESS, yes("i-1"), results=("tc-1",))
    )

    assert states(ledger) == {("r1", "i-1"): "closed"}
    assert ledger.threads[THREAD].runs == ("r1", "r2")


def test_that_a_run_is_asked_for_again_after_its_end_is_said() -> None:
    ledger, _ = after(ASKS, run("r2", Ending.ERROR, yes("i-1")))
    again = run("r2", Ending.SUCCESS, yes("i-1"))
    ledger.begun(started(again))

    assert "RUN_TOLD_AGAIN" in names(ledger.ended(again).findings)
    assert states(ledger) == {("r1", "i-1"): "open"}


def test_a_run_that_broke_off_may_be_tried_again_under_its_id() -> None:
    ledger, links = after(ASKS, run("r2", Ending.TRUNCATED, yes("i-1")), run("r2", Ending.SUCCESS, yes("i-1")))

    assert states(ledger) == {("r1", "i-1"): "closed"}
    assert links[2].decided == (Decided("r1", "i-1", Decision.APPROVED, digest="d-yes"),)
