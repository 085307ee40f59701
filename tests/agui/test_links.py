"""How a run hangs in its thread: which run it takes up, what it answers, asks and decides."""

from __future__ import annotations

import pytest

from stopcause.agui.findings import names
from stopcause.agui.ledger import ended
from stopcause.agui.values import Begun, Decided, Entry, Interrupt, RunSeen
from stopcause.agui.words import Ending
from stopcause.receipts.vocabulary import ApprovalKind, Decision
from tests.agui.seen import NOON, THREAD, after, asked, gives_up, run, states, yes

ASKS = run("r1", asks=(asked("i-1", "tc-1"),))


def started(seen: RunSeen) -> Begun:
    return Begun(seen.thread_id, seen.run_id, seen.mode, seen.input, seen.began_at)


def test_what_failed_took_up_its_run_and_answered_nothing() -> None:
    _, links = after(ASKS, run("r2", Ending.ERROR, yes("i-1")))

    assert (links[1].resumes_run_id, links[1].answers, links[1].decided) == ("r1", (), ())


def test_what_only_asks_again_takes_up_the_run_that_asked() -> None:
    _, links = after(ASKS, run("r2", asks=(asked("i-9", "tc-1"),)))

    assert (links[1].resumes_run_id, links[1].answers, links[1].decided) == ("r1", ("i-1",), ())


def test_of_several_runs_that_it_asks_for_again_a_run_takes_up_the_last() -> None:
    """The other one was lost, and a store knows that nothing resumes it."""
    _, links = after(
        run("r1", asks=(asked("i-1", "tc-1"),)),
        run("r2", asks=(asked("i-2", "tc-2"),)),
        run("r3", asks=(asked("i-2", "tc-2"), asked("i-1", "tc-1"))),
    )

    assert links[1].lost == (("r1", "i-1"),)
    assert (links[2].resumes_run_id, links[2].answers) == ("r2", ("i-2",))


def test_what_is_asked_again_is_told_with_what_was_said_the_first_time() -> None:
    first = asked("i-1", "tc-1", tool="send_email", raised_by="sub-1", owner="team:ops", due=NOON)
    ledger, links = after(run("r1", asks=(first,)), run("r2", asks=(asked("i-1", owner="team:new"),)))

    assert links[1].asked == (first._replace(owner="team:new"),)
    assert ledger.threads[THREAD].open()[0].interrupt == links[1].asked[0]


def test_a_late_error_asks_what_its_run_asked() -> None:
    late = run("r1", Ending.ERROR, asks=ASKS.interrupts, is_late=True)
    ledger, links = after(ASKS, late)

    assert links[1].asked == ASKS.interrupts
    assert ended(ledger.threads[THREAD], late)[1].asked == ASKS.interrupts


@pytest.mark.parametrize(
    "other",
    [
        asked("i-1", "tc-2"),
        asked("i-1", "tc-1", schema_digest="other"),
        asked("i-1")._replace(kind=ApprovalKind.EXTERNAL),
    ],
)
def test_another_question_under_the_id_of_one_that_was_answered_is_another(other: Interrupt) -> None:
    ledger, links = after(ASKS, run("r2", Ending.SUCCESS, yes("i-1"), asks=(other,)))

    assert states(ledger) == {("r1", "i-1"): "closed", ("r2", "i-1"): "open"}
    assert len(links[1].decided) == 1
    assert ledger.threads[THREAD].same_set == 1


def test_what_was_answered_and_is_asked_again_was_not_taken() -> None:
    ledger, links = after(ASKS, run("r2", Ending.SUCCESS, yes("i-1"), asks=(asked("i-1", "tc-1"),)))

    assert states(ledger) == {("r1", "i-1"): "moved", ("r2", "i-1"): "open"}
    assert (links[1].resumes_run_id, links[1].answers, links[1].decided) == ("r1", ("i-1",), ())


def test_the_findings_of_both_ends_of_a_run_are_in_one_link() -> None:
    ledger, _ = after(ASKS)
    resuming = run("r2", Ending.SUCCESS, yes("i-9"), results=("tc-1",))
    ledger.begun(started(resuming))

    found = names(ledger.ended(resuming).findings)

    assert found >= {"RESUME_UNKNOWN_ID", "UNCOVERED", "ACTION_ON_UNRECOGNISED_ANSWER"}


@pytest.mark.parametrize(
    ("entry", "kind", "decision"),
    [
        (yes("i-1"), ApprovalKind.TOOL_CALL, Decision.APPROVED),
        (yes("i-1")._replace(is_edited=True), ApprovalKind.TOOL_CALL, Decision.EDITED),
        (yes("i-1")._replace(approved=False), ApprovalKind.TOOL_CALL, Decision.DENIED),
        (yes("i-1")._replace(approved=False, is_edited=True), ApprovalKind.TOOL_CALL, Decision.DENIED),
        (gives_up("i-1"), ApprovalKind.TOOL_CALL, Decision.CANCELLED),
        (gives_up("i-1")._replace(approved=True), ApprovalKind.TOOL_CALL, Decision.CANCELLED),
        (Entry("i-1", "resolved", "d", bare=True), ApprovalKind.CONFIRMATION, Decision.APPROVED),
        (Entry("i-1", "resolved", "d", bare=False), ApprovalKind.CONFIRMATION, Decision.DENIED),
        (Entry("i-1", "resolved", "d", bare=False), ApprovalKind.INPUT_REQUIRED, Decision.ANSWERED),
        (Entry("i-1", "resolved", "d"), ApprovalKind.EXTERNAL, Decision.ANSWERED),
    ],
)
def test_what_an_answer_decides(entry: Entry, kind: ApprovalKind, decision: Decision) -> None:
    _, links = after(run("r1", asks=(asked("i-1")._replace(kind=kind),)), run("r2", Ending.SUCCESS, entry))

    assert links[1].decided == (Decided("r1", "i-1", decision, digest=entry.digest),)
