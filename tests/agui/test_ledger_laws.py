"""What holds of every thread, whatever its runs say: legal histories, and any others."""

from __future__ import annotations

import pickle
from collections import Counter

from hypothesis import given

from stopcause.agui.ledger import Ledger, begun, ended
from stopcause.agui.values import Begun, RunSeen, Thread
from stopcause.agui.words import State
from tests.agui.histories import HISTORIES
from tests.support.laws import tried_on


def _started(run: RunSeen) -> Begun:
    return Begun(run.thread_id, run.run_id, run.mode, run.input, run.began_at)


def _open(thread: Thread) -> Counter[tuple[str, str]]:
    return Counter((each.run_id, each.interrupt.id) for each in thread.raised if each.state is State.OPEN)


@given(HISTORIES)
@tried_on(200)
def test_any_history_gives_a_thread_and_the_same_one_every_time(runs: list[RunSeen]) -> None:
    one, other = Ledger(), Ledger()

    links = [one.ended(each) for each in runs]

    assert [other.ended(each) for each in runs] == links
    assert one.threads == other.threads
    assert one.threads == pickle.loads(pickle.dumps(one.threads))  # noqa: S301 - our own: nothing in it is shared


@given(HISTORIES)
@tried_on(200)
def test_an_interrupt_of_a_run_is_in_one_place_and_one_state(runs: list[RunSeen]) -> None:
    thread = Thread("t1")
    for run in runs:
        thread, _ = ended(thread, run)
        places = Counter((each.run_id, each.interrupt.id) for each in thread.raised)

        assert set(places.values()) <= {1}
        assert thread.paused_run is None or any(each.run_id == thread.paused_run for each in thread.raised)


@given(HISTORIES)
@tried_on(200)
def test_what_is_open_was_open_before_or_is_asked_or_failed_now(runs: list[RunSeen]) -> None:
    """Nothing opens by itself, and what goes was answered, moved, lost, or ran."""
    thread = Thread("t1")
    for run in runs:
        before = thread
        thread, _ = ended(thread, run)
        new = {key for key in _open(thread) if key not in _open(before)}
        sent = {(each.run_id, each.interrupt.id) for each in before.raised if each.state is State.SENT}

        assert all(run_id == run.run_id or (run_id, name) in sent for run_id, name in new)
        if run.run_id in before.runs:
            assert thread == before


@given(HISTORIES)
@tried_on(150)
def test_that_a_run_began_changes_nothing_that_its_end_does_not(runs: list[RunSeen]) -> None:
    told, untold = Thread("t1"), Thread("t1")
    for run in runs:
        told, first = begun(told, _started(run))
        assert begun(told, _started(run))[0] == told
        told, link = ended(told, run)
        untold, whole = ended(untold, run)

        assert told == untold
        assert set(link.answers) == set(whole.answers)
        assert set(whole.answers) - set(first.answers) <= {each.interrupt.id for each in told.raised}


@given(HISTORIES)
@tried_on(150)
def test_a_link_speaks_of_what_was_asked_before(runs: list[RunSeen]) -> None:
    thread = Thread("t1")
    for run in runs:
        known = {(each.run_id, each.interrupt.id) for each in thread.raised}
        thread, link = ended(thread, run)
        keys = {(each.run_id, each.interrupt_id) for each in link.decided} | {*link.executed, *link.bypassed}

        assert keys <= known
        assert not {*link.executed} & {*link.bypassed}
        assert link.resumes_run_id is not None or not link.answers
