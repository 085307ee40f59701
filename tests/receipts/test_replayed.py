"""Runs inside code that an engine runs again from its history: told once, whoever runs it."""

from __future__ import annotations

import json

import stopcause
from stopcause.receipts import capture
from stopcause.receipts.model import ApprovalUpdated, RunStopped
from stopcause.receipts.replayed import Replayed
from stopcause.receipts.run import Run
from stopcause.receipts.testing import Recorded

HISTORY_NS = 1_000_000_000


def outer(*, is_live: bool) -> Run:
    """A run of an engine's, in a worker of its own."""
    made = stopcause.run("outer", run_id="outer-1")
    writer = made.writer
    assert writer is not None
    made.replayed = Replayed(writer, lambda: is_live, lambda: HISTORY_NS)
    return made


def _run_ids(receipts: Recorded) -> list[str]:
    return [json.loads(line)["run_id"] for line in receipts.lines]


def test_what_is_run_again_has_the_same_ids_and_leaves_nothing(receipts: Recorded) -> None:
    told = []
    for is_live in (True, False):
        with outer(is_live=is_live), stopcause.run("first") as first, stopcause.run("inside") as inside:
            told.append((first.run_id, inside.run_id))

    assert told[0] == told[1]
    assert len({*told[0]}) == 2
    assert [each for each in _run_ids(receipts) if each != "outer-1"] == [*told[0], *reversed(told[0])]


def test_a_run_that_began_in_history_and_ends_now_has_its_receipt(receipts: Recorded) -> None:
    live = [False]
    made = stopcause.run("outer", run_id="outer-1")
    assert made.writer is not None
    made.replayed = Replayed(made.writer, lambda: live[0], lambda: HISTORY_NS)
    with made, capture.begin("stopcause.toy", "toy", "1", "inner", parent=made) as inner:
        live[0] = True

    (stopped,) = [each for each in receipts.records if isinstance(each, RunStopped) and each.run_id == inner.run_id]
    assert _run_ids(receipts).count(inner.run_id) == 1
    assert stopped.started_at is not None
    assert stopped.started_at.timestamp() == HISTORY_NS / 1e9


def test_the_attempt_that_waited_is_the_one_that_is_answered(receipts: Recorded) -> None:
    with stopcause.run("next") as run:
        run.resumed("waiting-1", {"yes": "approved"}, attempt=2)
        run.executed("yes")
        run.executed("other", run_id="waiting-2")

    about = [(each.run_id, each.attempt) for each in receipts.records if isinstance(each, ApprovalUpdated)]
    assert about == [("waiting-1", 2), ("waiting-1", 2), ("waiting-2", 1)]
