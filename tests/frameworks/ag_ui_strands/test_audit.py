"""Real runs of the Strands adapter, which declares 1.0: the trail that they leave, what it does wrong, and a restart.

What must be found was read from the rules before the adapter was tried.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ag_ui_strands import StrandsAgent

from stopcause.agui.words import Side
from tests.agui.recorded import GIVES_UP, Client, plain, verdicts
from tests.agui.stories import (
    ANSWERED,
    DONE,
    REFUSED,
    WAITS,
    Story,
    answers,
    answers_another,
    goes_on,
    holds,
    taps_agree,
    told,
)
from tests.frameworks.ag_ui_strands.service import MARK, Overdue, clerk, paid, recording

Json = Any
YES: Json = {"approved": True, "note": MARK}
EXPIRED = ("STUCK", "approval_expired")

STORIES = {
    "minimal approval": Story(("pay",), (answers(YES),), (ANSWERED, DONE), DONE, "NO_DEADLINE", ("approved",), 1),
    # Its schema offers no edits. The tool runs with what the model had proposed, which nobody outside can see.
    "approve with edits": Story(
        ("pay",),
        (answers({**YES, "editedArgs": {"amount": 9}}),),
        (ANSWERED, DONE),
        DONE,
        "NO_DEADLINE EDITS_NOT_OFFERED",
        ("edited",),
        1,
    ),
    # What was given up has a result that says so.
    "parallel approvals": Story(
        ("pay", "pay", "pay"),
        (answers(YES, YES, GIVES_UP),),
        (ANSWERED, DONE),
        DONE,
        "NO_DEADLINE RESULT_AFTER_CANCEL",
        ("approved", "approved", "cancelled"),
        2,
    ),
    # A question of the developer's own: by its name, without a schema, and it gates no call.
    "form input": Story(
        ("file_report",),
        (answers({"quarter": MARK}),),
        (ANSWERED, DONE),
        DONE,
        "NO_DEADLINE REASON_FORM",
        ("answered",),
        1,
    ),
    "a partial answer is refused, and so is none": Story(
        ("pay", "pay"),
        (answers(YES), goes_on),
        (WAITS, REFUSED, REFUSED),
        WAITS,
        "NO_DEADLINE UNCOVERED RESUME_FAILED_STILL_OPEN SILENT_CONTINUE UNROUTED",
    ),
    "an answer to something else is refused": Story(
        ("pay",), (answers_another(YES),), (WAITS, REFUSED), WAITS, "NO_DEADLINE RESUME_UNKNOWN_ID UNCOVERED UNROUTED"
    ),
    # It ought to go on without it.
    "one answer too many fails all of them": Story(
        ("pay",),
        (answers_another(YES, besides=True),),
        (WAITS, REFUSED),
        WAITS,
        "NO_DEADLINE RESUME_UNKNOWN_ID UNRECOGNISED_ENTRY_FAILED_RUN RESUME_FAILED_STILL_OPEN UNROUTED",
    ),
    "an answer to nothing fails the run": Story(
        ("pay",),
        (answers(YES), answers_another(YES)),
        (ANSWERED, DONE, REFUSED),
        REFUSED,
        "NO_DEADLINE RESUME_UNKNOWN_ID RESUME_NOTHING_OPEN UNRECOGNISED_ENTRY_FAILED_RUN",
        ("approved",),
        1,
    ),
    "the same answer once more does nothing": Story(
        ("pay",),
        (answers(YES), answers(YES)),
        (ANSWERED, DONE, DONE),
        DONE,
        "NO_DEADLINE REPLAY",
        ("approved",),
        1,
    ),
    "an answer that does not fit is refused": Story(
        ("pay",),
        (answers({"approved": f"{MARK}: certainly"}),),
        (WAITS, REFUSED),
        WAITS,
        "NO_DEADLINE PAYLOAD_SCHEMA_MISMATCH RESUME_FAILED_STILL_OPEN UNROUTED",
    ),
    "an answer that comes too late is refused": Story(
        ("pay",),
        (answers(YES),),
        (EXPIRED, REFUSED),
        EXPIRED,
        "EXPIRED_ANSWER RESUME_FAILED_STILL_OPEN",
        kind=Overdue,
    ),
    # It looks at the time before it looks at what is said: the only way past an expired question is closed.
    "what has expired cannot be given up": Story(
        ("pay",),
        (answers(GIVES_UP), answers(GIVES_UP), answers(GIVES_UP)),
        (EXPIRED, REFUSED, REFUSED, REFUSED),
        ("STUCK", "retry_storm"),
        "EXPIRED_CANCEL_REJECTED RESUME_FAILED_STILL_OPEN REINTERRUPT_LOOP",
        kind=Overdue,
    ),
}
EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


@EACH
def test_the_audit_says_what_happened(story: Story) -> None:
    with recording(clerk(story.kind or StrandsAgent, story.calls)) as client:
        audit = told(client, story).audited()
    holds(audit, story)
    assert len(paid) == story.done


@EACH
def test_the_taps_agree_with_it_and_nothing_of_what_was_said_comes_out(story: Story) -> None:
    taps_agree(story, lambda: clerk(story.kind or StrandsAgent, story.calls), recording, MARK)


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
    assert verdicts(client.audited()) == {"r1": ANSWERED, "r2": DONE}
    assert paid == [1, 1]


def test_without_its_session_it_refuses_a_good_answer_which_is_the_agent_s_fault() -> None:
    """Messages and state are all that the contract before 1.0 needs, and 1.0 takes the list as complete."""
    restarted, client = _restarted(None)
    audit = client.audited()
    assert [each["type"] for each in restarted] == ["RUN_STARTED", "RUN_ERROR"]
    assert verdicts(audit) == {"r1": WAITS, "r2": REFUSED}
    found = {each.name: each.side for each in audit.runs[1].link.findings}
    assert found == {"RESUME_FAILED_STILL_OPEN": Side.AUDITOR, "VALID_RESUME_REFUSED": Side.PRODUCER}
    assert paid == []
