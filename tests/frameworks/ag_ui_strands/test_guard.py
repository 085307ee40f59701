"""A guard before a real agent: what may not be sent does not leave, and what may reaches the agent and finishes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stopcause.agui.findings import names
from stopcause.agui.guard import ResumeGuard
from stopcause.errors import ResumeRefusedError
from tests.frameworks.ag_ui_strands.service import Client, Expired, clerk, gave_up, guarded, ids_of, paid, yes

Json = Any
Resume = Callable[[str, str], dict[str, Json]]

BAD: dict[str, tuple[str, Resume]] = {
    "partial": ("UNCOVERED", lambda a, _: {"resume": [yes(a)]}),
    "unknown": ("RESUME_UNKNOWN_ID", lambda a, b: {"resume": [yes(a), yes(b), yes("nope")]}),
    "only unknown": ("UNCOVERED", lambda _a, _b: {"resume": [yes("nope")]}),
    "silent": ("SILENT_CONTINUE", lambda _a, _b: {}),
    "empty": ("SILENT_CONTINUE", lambda _a, _b: {"resume": []}),
    "duplicate": ("RESUME_DUPLICATE", lambda a, b: {"resume": [yes(a), gave_up(a), yes(b)]}),
    "wrong thread": ("RESUME_WRONG_THREAD", lambda a, b: {"resume": [yes(a), yes(b)], "thread_id": "t2"}),
    "payload": (
        "PAYLOAD_SCHEMA_MISMATCH",
        lambda a, b: {"resume": [yes(a, payload={"approved": "yes"}), yes(b)]},
    ),
    "status": ("ENTRY_MALFORMED", lambda a, b: {"resume": [yes(a, status="maybe"), yes(b)]}),
    "edited": (
        "EDITS_NOT_OFFERED",
        lambda a, b: {"resume": [yes(a, payload={"approved": True, "editedArgs": {"amount": 9}}), yes(b)]},
    ),
    "reserved key": ("RESERVED_KEY", lambda a, b: {"resume": [yes(a, metadata={"ag-ui": {}}), yes(b)]}),
}

RESTARTED = pytest.mark.parametrize("restarted", [False, True], ids=["same guard", "new guard"])


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


def _refused(client: Client, run_id: str, **given: Json) -> frozenset[str]:
    with pytest.raises(ResumeRefusedError) as refused:
        client.send(run_id, **given)
    return names(refused.value.findings)


@pytest.mark.parametrize(("finding", "resume"), BAD.values(), ids=BAD)
@RESTARTED
def test_a_bad_resume_does_not_leave(finding: str, resume: Resume, restarted: bool, tmp_path: Path) -> None:
    app, state = clerk(), tmp_path / "guard.db"
    with guarded(app, ResumeGuard(state)) as (client, counted):
        asked = ids_of(client.send("r1"))
        if not restarted:
            assert finding in _refused(client, "r2", **resume(*asked))
        assert counted.requests == 1
    if restarted:
        with guarded(app, ResumeGuard(state)) as (client, counted):
            assert finding in _refused(client, "r2", **resume(*asked))
            assert counted.requests == 0
    assert paid == []


@RESTARTED
def test_after_a_refusal_a_good_resume_reaches_the_agent_and_finishes(restarted: bool, tmp_path: Path) -> None:
    app, state = clerk(), tmp_path / "guard.db"
    guard = ResumeGuard(state)
    with guarded(app, guard) as (client, _):
        first, second = ids_of(client.send("r1"))
        _refused(client, "r2", resume=[yes(first)])
    with guarded(app, ResumeGuard(state) if restarted else guard) as (client, counted):
        events = client.send("r3", resume=[yes(first), gave_up(second)])
        assert counted.requests == 1
    assert events[-1]["outcome"]["type"] == "success"
    assert paid == [1]


def test_what_has_expired_can_only_be_given_up(tmp_path: Path) -> None:
    with guarded(clerk(Expired), ResumeGuard(tmp_path / "guard.db")) as (client, counted):
        first, second = ids_of(client.send("r1"))
        assert "EXPIRED_ANSWER" in _refused(client, "r2", resume=[yes(first), gave_up(second)])
        assert counted.requests == 1
        assert client.send("r3", resume=[gave_up(first), gave_up(second)])[-1]["type"] == "RUN_FINISHED"
    assert paid == []


def test_an_answer_that_was_taken_is_not_changed_and_the_same_one_does_not_act_again(tmp_path: Path) -> None:
    app, state = clerk(), tmp_path / "guard.db"
    with guarded(app, ResumeGuard(state)) as (client, _):
        first, second = ids_of(client.send("r1"))
        client.send("r2", resume=[yes(first), gave_up(second)])
    with guarded(app, ResumeGuard(state)) as (client, counted):
        assert "ANSWER_CHANGED" in _refused(client, "r3", resume=[yes(first), yes(second)])
        assert counted.requests == 0
        client.send("r4", resume=[yes(first), gave_up(second)])
        assert counted.requests == 1
    assert paid == [1]


def test_a_thread_that_waits_for_nothing_goes_on(tmp_path: Path) -> None:
    with guarded(clerk(), ResumeGuard(tmp_path / "guard.db")) as (client, counted):
        client.send("r1")
        client.send("r9", thread_id="t2")
        assert counted.requests == 2


def test_a_list_that_the_guard_built_is_complete(tmp_path: Path) -> None:
    guard = ResumeGuard(tmp_path / "guard.db")
    with guarded(clerk(), guard) as (client, _):
        first, second = ids_of(client.send("r1"))
        answers = guard.answers("t1").approve(first).deny(second)
        assert answers.missing == ()
        assert client.send("r2", resume=answers.build())[-1]["outcome"]["type"] == "success"
    assert paid == [1]
