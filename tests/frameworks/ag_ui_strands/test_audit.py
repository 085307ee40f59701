"""Real runs of the Strands adapter, which declares 1.0: the trail that they leave, what it does wrong, and a restart.

What must be found was read from the rules before the adapter was tried.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ag_ui_strands import StrandsAgent

from stopcause.agui.findings import names
from stopcause.agui.tap_asgi import AguiMiddleware
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.agui.words import Side
from stopcause.classifier import engine
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.pipeline.agui_views import audit_file_view
from stopcause.receipts import testing
from stopcause.render.agui import audit_objects, audit_screen
from stopcause.render.pen import Pen
from tests.agui.recorded import GIVES_UP, Client, entry, plain, verdicts
from tests.frameworks.ag_ui_strands.service import MARK, Overdue, clerk, paid, recording

Json = Any
Step = Callable[[Client, str], object]
YES: Json = {"approved": True, "note": MARK}

_WAITS = ("WAITING_UNROUTED", "owner")
_ANSWERED = ("WAITING", "answered")
_DONE = ("FALSE_COMPLETE", "no_contract")
_REFUSED = ("FAILED", "input_rejected")
_EXPIRED = ("STUCK", "approval_expired")


class Story(NamedTuple):
    """What an agent wants, what it is sent after it has asked, and what is said of it.

    Attributes:
        calls: Of its tools.
        steps: What is sent, run by run.
        runs: The verdict on each run.
        thread: The verdict on their thread.
        found: What is found.
        decided: What the answers that were taken say.
        paid: What the tools did.
        kind: Of the adapter.
    """

    calls: tuple[str, ...]
    steps: tuple[Step, ...]
    runs: tuple[tuple[str, str], ...]
    thread: tuple[str, str]
    found: str
    decided: tuple[str, ...] = ()
    paid: tuple[int, ...] = ()
    kind: type[StrandsAgent] = StrandsAgent


def _answers(*answers: Json) -> Step:
    return lambda client, run_id: client.answer(run_id, *answers)


def _answers_another(client: Client, run_id: str) -> object:
    return client.send(run_id, resume=[entry("nobody-s", YES)])


def _answers_that_and_another(client: Client, run_id: str) -> object:
    return client.send(run_id, resume=[entry(client.asked[0], YES), entry("nobody-s", YES)])


def _goes_on(client: Client, run_id: str) -> object:
    return client.send(run_id)


STORIES = {
    "minimal approval": Story(
        ("pay",), (_answers(YES),), (_ANSWERED, _DONE), _DONE, "NO_DEADLINE", ("approved",), (1,)
    ),
    # Its schema offers no edits. The tool runs with what the model had proposed, which nobody outside can see.
    "approve with edits": Story(
        ("pay",),
        (_answers({**YES, "editedArgs": {"amount": 9}}),),
        (_ANSWERED, _DONE),
        _DONE,
        "NO_DEADLINE EDITS_NOT_OFFERED",
        ("edited",),
        (1,),
    ),
    # What was given up has a result that says so.
    "parallel approvals": Story(
        ("pay", "pay", "pay"),
        (_answers(YES, YES, GIVES_UP),),
        (_ANSWERED, _DONE),
        _DONE,
        "NO_DEADLINE RESULT_AFTER_CANCEL",
        ("approved", "approved", "cancelled"),
        (1, 2),
    ),
    # A question of the developer's own: by its name, without a schema, and it gates no call.
    "form input": Story(
        ("file_report",),
        (_answers({"quarter": MARK}),),
        (_ANSWERED, _DONE),
        _DONE,
        "NO_DEADLINE REASON_FORM",
        ("answered",),
        (0,),
    ),
    "a partial answer is refused, and so is none": Story(
        ("pay", "pay"),
        (_answers(YES), _goes_on),
        (_WAITS, _REFUSED, _REFUSED),
        _WAITS,
        "NO_DEADLINE UNCOVERED RESUME_FAILED_STILL_OPEN SILENT_CONTINUE UNROUTED",
    ),
    "an answer to something else is refused": Story(
        ("pay",), (_answers_another,), (_WAITS, _REFUSED), _WAITS, "NO_DEADLINE RESUME_UNKNOWN_ID UNCOVERED UNROUTED"
    ),
    # It ought to go on without it.
    "one answer too many fails all of them": Story(
        ("pay",),
        (_answers_that_and_another,),
        (_WAITS, _REFUSED),
        _WAITS,
        "NO_DEADLINE RESUME_UNKNOWN_ID UNRECOGNISED_ENTRY_FAILED_RUN RESUME_FAILED_STILL_OPEN UNROUTED",
    ),
    "an answer to nothing fails the run": Story(
        ("pay",),
        (_answers(YES), _answers_another),
        (_ANSWERED, _DONE, _REFUSED),
        _REFUSED,
        "NO_DEADLINE RESUME_UNKNOWN_ID RESUME_NOTHING_OPEN UNRECOGNISED_ENTRY_FAILED_RUN",
        ("approved",),
        (1,),
    ),
    "the same answer once more does nothing": Story(
        ("pay",),
        (_answers(YES), _answers(YES)),
        (_ANSWERED, _DONE, _DONE),
        _DONE,
        "NO_DEADLINE REPLAY",
        ("approved",),
        (1,),
    ),
    "an answer that does not fit is refused": Story(
        ("pay",),
        (_answers({"approved": f"{MARK}: certainly"}),),
        (_WAITS, _REFUSED),
        _WAITS,
        "NO_DEADLINE PAYLOAD_SCHEMA_MISMATCH RESUME_FAILED_STILL_OPEN UNROUTED",
    ),
    "an answer that comes too late is refused": Story(
        ("pay",),
        (_answers(YES),),
        (_EXPIRED, _REFUSED),
        _EXPIRED,
        "EXPIRED_ANSWER RESUME_FAILED_STILL_OPEN",
        kind=Overdue,
    ),
    # It looks at the time before it looks at what is said: the only way past an expired question is closed.
    "what has expired cannot be given up": Story(
        ("pay",),
        (_answers(GIVES_UP), _answers(GIVES_UP), _answers(GIVES_UP)),
        (_EXPIRED, _REFUSED, _REFUSED, _REFUSED),
        ("STUCK", "retry_storm"),
        "EXPIRED_CANCEL_REJECTED RESUME_FAILED_STILL_OPEN REINTERRUPT_LOOP",
        kind=Overdue,
    ),
}
EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


def _told(client: Client, story: Story) -> Client:
    client.send("r1")
    for number, step in enumerate(story.steps, 2):
        step(client, f"r{number}")
    return client


@EACH
def test_the_audit_says_what_happened(story: Story) -> None:
    with recording(clerk(story.kind, story.calls)) as client:
        audit = _told(client, story).audited()
    asking = audit.runs[0].run
    assert [*asking.calls] == [*asking.pending] == [f"tc-{number + 1}" for number in range(len(story.calls))]
    assert tuple(str(each.decision) for run in audit.runs for each in run.link.decided) == story.decided
    assert verdicts(audit) == {f"r{number}": verdict for number, verdict in enumerate(story.runs, 1)}
    assert [(each.verdict, each.reason) for each in audit.threads] == [story.thread]
    assert names(audit.findings) == {*story.found.split()}
    assert tuple(paid) == story.paid


@EACH
def test_the_taps_agree_with_it_and_nothing_of_what_was_said_comes_out(story: Story) -> None:
    for has_server in (True, False):
        app = clerk(story.kind, story.calls)
        tapped = recording(AguiMiddleware(app, "clerk")) if has_server else recording(app, AguiTransport(agent="clerk"))
        with testing.recorded() as receipts, tapped as client:
            audit = _told(client, story).audited()
        judged = engine.judge_all(receipts.records, DEFAULT_POLICY, datetime.now(UTC))
        assert {each.run_id: (each.verdict, each.reason) for each in judged} == verdicts(audit)
        view = audit_file_view("recording", audit)
        screens = [json.dumps([*audit_objects([view])], default=str), *audit_screen([view], datetime.now(UTC), Pen())]
        assert MARK.encode() not in b"\n".join(receipts.lines)
        assert MARK not in "\n".join([repr(audit), *screens])
        assert MARK in json.dumps(client.exchanges)


def _restarted(sessions: Path | None) -> tuple[list[dict[str, Json]], Client]:
    """What an agent that began anew makes of an answer, with the messages and the state of its client."""
    with recording(clerk(calls=["pay"], sessions=sessions)) as before:
        before.send("r1")
        with recording(clerk(calls=["pay"], sessions=sessions, has_asked=True)) as after:
            client = before.moved_to(after)
            return client.answer("r2", YES), client


def test_one_that_kept_its_session_does_the_same_after_a_restart(tmp_path: Path) -> None:
    with recording(clerk(calls=["pay"])) as client:
        client.send("r1")
        live = client.answer("r2", YES)
    restarted, client = _restarted(tmp_path)
    assert plain(restarted) == plain(live)
    assert verdicts(client.audited()) == {"r1": _ANSWERED, "r2": _DONE}
    assert paid == [1, 1]


def test_without_its_session_it_refuses_a_good_answer_which_is_the_agent_s_fault() -> None:
    """Messages and state are all that the contract before 1.0 wants to need, and 1.0 takes the list as complete."""
    restarted, client = _restarted(None)
    audit = client.audited()
    assert [each["type"] for each in restarted] == ["RUN_STARTED", "RUN_ERROR"]
    assert verdicts(audit) == {"r1": _WAITS, "r2": _REFUSED}
    found = {each.name: each.side for each in audit.runs[1].link.findings}
    assert found == {"RESUME_FAILED_STILL_OPEN": Side.AUDITOR, "VALID_RESUME_REFUSED": Side.PRODUCER}
    assert paid == []
