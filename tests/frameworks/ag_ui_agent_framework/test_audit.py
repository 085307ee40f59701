"""Real runs of the adapter of Microsoft's agent framework: the trail that they leave, what it does wrong, a restart.

It is the fourth, beside LangGraph, Strands and Pydantic AI, because it is of the contract before 1.0 and checks what it
is sent as that contract asks, and because its first version (1.0.0) and its newest differ most. What must be found was
read from the rules; what the adapter was seen to do besides stands in the comments.
"""

from __future__ import annotations

from typing import Any

import pytest

from stopcause.agui.words import Mode, Side
from tests.agui.recorded import GIVES_UP, entry, verdicts
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
from tests.frameworks.ag_ui_agent_framework.service import IS_OLDEST, MARK, NO, YES, clerk, done, recording

Json = Any
# It sends the messages before it asks, and no state; it declares no version.
ASKING = "NO_DEADLINE NO_BOUNDARY_SNAPSHOT"
ALWAYS = ("NO_VERSION",)
APPROVED, DENIED = "approved", "denied"  # its first version asks for `accepted` in place of `approved`
_REJECTED = ("UNCERTAIN", "stream_rejected")

STORIES = {
    "minimal approval": Story(("send",), (answers(YES),), (ANSWERED, DONE), DONE, ASKING, (APPROVED,), 1),
    # The first version offers no edits, and refuses them.
    "approve with edits": Story(
        ("send",),
        (answers({**YES, "editedArgs": {"to": f"{MARK} else"}}),),
        (WAITS, REFUSED) if IS_OLDEST else (ANSWERED, DONE),
        WAITS if IS_OLDEST else DONE,
        ASKING + (" EDITS_NOT_OFFERED PAYLOAD_SCHEMA_MISMATCH RESUME_FAILED_STILL_OPEN UNROUTED" if IS_OLDEST else ""),
        () if IS_OLDEST else ("edited",),
        0 if IS_OLDEST else 1,
    ),
    # The first version runs only the first of two that were allowed.
    "parallel approvals": Story(
        ("send", "send"),
        (answers(YES, YES),),
        (ANSWERED, DONE),
        DONE,
        ASKING + (" APPROVED_NOT_EXECUTED" if IS_OLDEST else ""),
        (APPROVED, APPROVED),
        1 if IS_OLDEST else 2,
    ),
    # One of two is given up. The first version fails by it, and takes the whole list for refused; the newest asks once
    # more for what was given up, and ends a call that is not open, so that no reader may believe its stream.
    "parallel approvals and one that is given up": Story(
        ("send", "send"),
        (answers(YES, GIVES_UP),),
        (WAITS, REFUSED) if IS_OLDEST else (ANSWERED, _REJECTED),
        WAITS if IS_OLDEST else _REJECTED,
        f"{ASKING} "
        + ("VALID_RESUME_REFUSED RESUME_FAILED_STILL_OPEN UNROUTED" if IS_OLDEST else "UNBALANCED ANSWER_FATE_UNKNOWN"),
    ),
    "one that is given up": Story(
        ("send",),
        (answers(GIVES_UP),),
        (WAITS, REFUSED) if IS_OLDEST else (("BOUNDED_STOP", "approval_denied"), DONE),
        WAITS if IS_OLDEST else DONE,
        f"{ASKING} VALID_RESUME_REFUSED RESUME_FAILED_STILL_OPEN UNROUTED" if IS_OLDEST else ASKING,
        () if IS_OLDEST else ("cancelled",),
    ),
    # In its messages the answer stands where a result would.
    "a denial": Story(
        ("send",),
        (answers(NO),),
        (ANSWERED, DONE),
        DONE,
        f"{ASKING} RESULT_AFTER_CANCEL",
        (DENIED,),
    ),
    "a partial answer is refused, and so is none": Story(
        ("send", "send"),
        (answers(YES), goes_on),
        (WAITS, REFUSED, REFUSED),
        WAITS,
        f"{ASKING} UNCOVERED RESUME_FAILED_STILL_OPEN SILENT_CONTINUE UNROUTED",
    ),
    "an answer to something else is refused": Story(
        ("send",), (answers_another(YES),), (WAITS, REFUSED), WAITS, f"{ASKING} RESUME_UNKNOWN_ID UNCOVERED UNROUTED"
    ),
    # Before 1.0 that is right.
    "one answer too many fails all of them": Story(
        ("send",),
        (answers_another(YES, besides=True),),
        (WAITS, REFUSED),
        WAITS,
        f"{ASKING} RESUME_UNKNOWN_ID UNRECOGNISED_ENTRY_FAILED_RUN RESUME_FAILED_STILL_OPEN UNROUTED",
    ),
    # The newest tells once more what had come of it, and does nothing. On the wire that is a second result of one call.
    "the same answer once more": Story(
        ("send",),
        (answers(YES), answers(YES)),
        (ANSWERED, DONE, REFUSED if IS_OLDEST else DONE),
        REFUSED if IS_OLDEST else ("UNCERTAIN", "duplicate_effect"),
        f"{ASKING} REPLAY" + ("" if IS_OLDEST else " DUPLICATE_EFFECT"),
        (APPROVED,),
        1,
    ),
    "an answer that does not fit is refused": Story(
        ("send",),
        (answers(dict.fromkeys(YES, f"{MARK}: certainly")),),
        (WAITS, REFUSED),
        WAITS,
        f"{ASKING} PAYLOAD_SCHEMA_MISMATCH RESUME_FAILED_STILL_OPEN UNROUTED",
    ),
    # Its model is told that the tool failed, and says that it is done.
    "a tool that fails after its answer": Story(
        ("send_and_fail",), (answers(YES),), (ANSWERED, DONE), DONE, ASKING, (APPROVED,)
    ),
}
EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@EACH
def test_the_audit_says_what_happened(story: Story) -> None:
    with recording(clerk(*story.calls)) as client:
        audit = told(client, story).audited()
    asking = audit.runs[0].run
    assert asking.mode is Mode.LEGACY_OUTCOME
    assert len(asking.interrupts) == len(story.calls)  # it tells them twice, by CUSTOM events too
    holds(audit, story, *ALWAYS)
    assert len(done) == story.done


@EACH
def test_the_taps_agree_with_it_and_nothing_of_what_was_said_comes_out(story: Story) -> None:
    taps_agree(story, lambda: clerk(*story.calls), recording, MARK)


def test_one_that_began_anew_refuses_a_good_answer_which_is_the_agent_s_fault() -> None:
    """The contract before 1.0 has it go on from messages and state. It needs a memory of what it asked."""
    with recording(clerk("send")) as before, recording(clerk("send", has_asked=True)) as after:
        before.send("r1")
        client = before.moved_to(after)
        restarted = client.answer("r2", YES)
        audit = client.audited()
    assert [each["type"] for each in restarted] == ["RUN_STARTED", "RUN_ERROR"]
    assert verdicts(audit) == {"r1": WAITS, "r2": REFUSED}
    found = {each.name: each.side for each in audit.runs[1].link.findings}
    assert found == {"RESUME_FAILED_STILL_OPEN": Side.AUDITOR, "VALID_RESUME_REFUSED": Side.PRODUCER}
    assert done == []


@pytest.mark.skipif(not IS_OLDEST, reason="a later version asks once more instead")
def test_a_message_in_the_place_of_a_result_is_one_to_who_reads_no_content() -> None:
    """One of two was given up, which failed the run; the next list leaves it out. The message says "skipped".

    So it is said that nobody allowed the call, and that nobody knows: somebody has to look, and finds that all is well.
    """
    with recording(clerk("send", "send")) as client:
        client.send("r1")
        first = client.asked[0]
        client.answer("r2", YES, GIVES_UP)
        client.send("r3", resume=[entry(first, YES)])
        audit = client.audited()
    assert [(each.verdict, each.reason) for each in audit.threads] == [("UNCERTAIN", "approval_bypassed")]
    assert "ACTION_WITHOUT_ANSWER" in {each.name for each in audit.runs[2].link.findings}
    assert len(done) == 1
