"""What holds of a guard after any history of one thread."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui import findings
from stopcause.agui.guard import ResumeGuard
from stopcause.agui.inputs import read_input
from stopcause.agui.values import Begun, Input, Interrupt, Raised, Result, RunSeen
from stopcause.agui.words import Channel, Ending, Mode, State
from stopcause.receipts.vocabulary import ApprovalKind, StopCause
from tests.agui import asking
from tests.agui.asking import APPROVE, NOW, gives_up, says
from tests.support.laws import tried_on

IDS = ("i-1", "i-2", "i-3")
CAUSES = {
    Ending.SUCCESS: StopCause.NATURAL,
    Ending.INTERRUPT: StopCause.APPROVAL_PENDING,
    Ending.CANCELLED: StopCause.CALLER_ABORT,
    Ending.ERROR: StopCause.SELF_REPORTED_FAILURE,
    Ending.TRUNCATED: StopCause.STREAM_TRUNCATED,
    Ending.REFUSED: StopCause.INPUT_REJECTED,
    Ending.REJECTED: StopCause.STREAM_REJECTED,
}
ANSWERS = st.builds(lambda say, each: say(each), st.sampled_from([says, gives_up]), st.sampled_from((*IDS, "nope")))
INTERRUPTS = st.builds(
    Interrupt,
    id=st.sampled_from(IDS),
    kind=st.just(ApprovalKind.TOOL_CALL),
    channel=st.just(Channel.OUTCOME),  # what a client's own tool waits for is answered by a message, not here
    tool_call_id=st.none() | st.sampled_from(["tc-1", "tc-2"]),
    expires_at=st.none() | st.sampled_from([NOW - timedelta(hours=1), NOW + timedelta(hours=1)]),
    schema=st.none() | st.just(APPROVE),
)
TURNS = st.fixed_dictionaries(
    {
        "resume": st.none() | st.lists(ANSWERS, max_size=3),
        "is_built": st.booleans(),  # answers that the guard would have made, in place of `resume`
        "is_sent": st.booleans(),
        "ends": st.booleans(),
        "ending": st.sampled_from(list(CAUSES)),
        "interrupts": st.lists(INTERRUPTS, min_size=1, max_size=3),
        "results": st.lists(st.sampled_from(["tc-1", "tc-2"]), max_size=1),
        "is_late": st.booleans(),
    }
)
HISTORIES = st.lists(TURNS, max_size=6)


def play(guard: ResumeGuard, history: list[dict[str, Any]]) -> None:
    """A history as a host without any guard makes one: whatever is sent is sent."""
    for number, turn in enumerate(history):
        built = guard.answers("t1", NOW).cancel_rest().build() if turn["is_built"] else turn["resume"]
        value = asking.given("t1", f"r{number}")
        value |= {} if built is None else {"resume": built}
        read = read_input(value)
        assert read is not None
        if turn["is_sent"] and not guard.check(value, NOW).refused:
            guard.sent(value)
        guard.saw(Begun("t1", f"r{number}", Mode.SPEC, read, NOW))
        if turn["ends"]:
            guard.saw(ended(read, turn))


def ended(read: Input, turn: dict[str, Any]) -> RunSeen:
    asks = turn["ending"] is Ending.INTERRUPT
    return RunSeen(
        "t1",
        read.run_id,
        Mode.SPEC,
        turn["ending"],
        CAUSES[turn["ending"]],
        input=read,
        is_late=turn["is_late"] and turn["ending"] is Ending.ERROR,
        interrupts=tuple(turn["interrupts"]) if asks else (),
        results=tuple(Result(each) for each in turn["results"]),
        began_at=NOW,
        ended_at=NOW,
    )


def played(history: list[dict[str, Any]]) -> ResumeGuard:
    guard = ResumeGuard()
    play(guard, history)
    return guard


def answered(guard: ResumeGuard) -> list[Any]:
    return guard.answers("t1", NOW).cancel_rest().build()


def open_ids(guard: ResumeGuard) -> set[str]:
    return {each.interrupt.id for each in guard.thread("t1").open()}


@given(HISTORIES)
@tried_on(300)
def test_there_is_always_a_way_on(history: list[dict[str, Any]]) -> None:
    guard = played(history)
    check = guard.check(asking.given("t1", "next", *answered(guard)), NOW)
    assert not check.refused, check.findings


@given(HISTORIES, st.lists(ANSWERS, max_size=3))
@tried_on(300)
def test_what_passes_covers_all_that_is_open_and_names_nothing_else(
    history: list[dict[str, Any]], resume: list[Any]
) -> None:
    guard = played(history)
    named = {each["interruptId"] for each in resume}
    paused = guard.thread("t1").paused_run
    asked = {each.interrupt.id for each in guard.thread("t1").raised if each.run_id == paused}
    if not guard.check(asking.given("t1", "next", *resume), NOW).refused:
        assert open_ids(guard) <= named
        assert named <= asked
        assert len(named) == len(resume)


@given(HISTORIES, st.lists(ANSWERS, max_size=3))
@tried_on(200)
def test_nothing_that_has_expired_is_resolved(history: list[dict[str, Any]], resume: list[Any]) -> None:
    guard = played(history)
    if guard.check(asking.given("t1", "next", *resume), NOW).refused:
        return
    resolved = {each["interruptId"] for each in resume if each["status"] == "resolved"}
    assert not [each for each in guard.thread("t1").raised if is_over(each, NOW) and each.interrupt.id in resolved]


def is_over(raised: Raised, now: datetime) -> bool:
    expires_at = raised.interrupt.expires_at
    return raised.state is State.OPEN and expires_at is not None and expires_at <= now


@given(HISTORIES)
@tried_on(300)
def test_what_was_sent_may_be_sent_once_more_and_in_no_other_way(history: list[dict[str, Any]]) -> None:
    guard = played(history)
    resume = answered(guard)
    if not resume:
        return
    guard.sent(asking.given("t1", "next", *resume))
    again = guard.check(asking.given("t1", "again", *resume), NOW)
    assert not again.refused
    assert "REPLAY" in findings.names(again.findings)
    other = [says(each["interruptId"]) for each in resume]
    assert guard.check(asking.given("t1", "again", *other), NOW).refused


@given(HISTORIES, st.lists(ANSWERS, max_size=3))
@tried_on(60)
def test_a_restart_changes_nothing(history: list[dict[str, Any]], resume: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "guard.db"
        play(guard := ResumeGuard(path), history)
        value = asking.given("t1", "next", *resume)
        assert ResumeGuard(path).check(value, NOW) == guard.check(value, NOW)
        assert ResumeGuard(path).thread("t1") == guard.thread("t1")


@given(HISTORIES, st.lists(ANSWERS, max_size=3))
@tried_on(100)
def test_a_check_changes_nothing(history: list[dict[str, Any]], resume: list[Any]) -> None:
    guard = played(history)
    before, value = guard.thread("t1"), asking.given("t1", "next", *resume)
    assert guard.check(value, NOW) == guard.check(value, NOW)
    assert guard.thread("t1") == before
