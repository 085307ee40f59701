"""Real runs of Pydantic AI's own adapter: the trail that they leave, what it does wrong, and a restart.

It keeps nothing between runs, which 1.0 allows: what it knows is in the messages. Its first version is of the contract
before 1.0, the newest declares 1.0. What must be found was read from the rules before it was tried.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from stopcause.agui.words import Mode
from tests.agui.recorded import GIVES_UP, plain, verdicts
from tests.agui.stories import (
    ANSWERED,
    DONE,
    FAILED,
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
from tests.frameworks.ag_ui_pydantic_ai.service import FORM, MARK, NO, YES, clerk, done, recording

Json = Any
IS_OLDEST = os.environ.get("STOPCAUSE_VERSIONS") == "oldest"
# It sends no state and no messages before it asks. Before 1.0 it had to, and an application could not go on without.
ASKING = "NO_DEADLINE NO_BOUNDARY_SNAPSHOT"
ALWAYS = ("NO_VERSION",) if IS_OLDEST else ()

STORIES = {
    "minimal approval": Story(("send",), (answers(YES),), (ANSWERED, DONE), DONE, ASKING, ("approved",), 1),
    "approve with edits": Story(
        ("send",),
        (answers({**YES, "editedArgs": {"to": f"{MARK} else"}}),),
        (ANSWERED, DONE),
        DONE,
        ASKING,
        ("edited",),
        1,
    ),
    # What was given up has a result that says so.
    "parallel approvals": Story(
        ("send", "send", "send"),
        (answers(YES, YES, GIVES_UP),),
        (ANSWERED, DONE),
        DONE,
        f"{ASKING} RESULT_AFTER_CANCEL",
        ("approved", "approved", "cancelled"),
        2,
    ),
    "a denial": Story(("send",), (answers(NO),), (ANSWERED, DONE), DONE, f"{ASKING} RESULT_AFTER_CANCEL", ("denied",)),
    # The call without an answer stands in the messages, so it could tell; it drops the call, warns in its own log, and
    # is a success. That is what 1.0 forbids word for word.
    "a partial answer drops the rest": Story(
        ("send", "send"),
        (answers(YES),),
        (WAITS, DONE),
        WAITS,
        f"{ASKING} UNCOVERED SUCCESS_OVER_OPEN_INTERRUPT UNCOVERED_MISHANDLED LOST_INTERRUPT UNROUTED",
        ("approved",),
        1,
    ),
    # Its model is asked once more, and calls for the same. 1.0 allows that; before, it had to fail.
    "without answers it asks for ever": Story(
        ("send",),
        (goes_on, goes_on),
        (WAITS, WAITS, WAITS),
        ("STUCK", "loop_guard"),
        f"{ASKING} SILENT_CONTINUE CALL_REOPENED REINTERRUPT_LOOP UNROUTED"
        + (" UNCOVERED_MISHANDLED" if IS_OLDEST else ""),
    ),
    # The first version fails as a whole, with HTTP 500.
    "an answer to something else is refused": Story(
        ("send",),
        (answers_another(YES),),
        (WAITS, REFUSED if IS_OLDEST else FAILED),
        WAITS,
        f"{ASKING} RESUME_UNKNOWN_ID UNCOVERED UNROUTED" + (" INPUT_REFUSED" if IS_OLDEST else ""),
    ),
    # It ought to go on without it. But its RUN_ERROR has no code, and might be about anything.
    "one answer too many fails all of them": Story(
        ("send",),
        (answers_another(YES, "int-nobody-s", besides=True),),
        (WAITS, FAILED),
        WAITS,
        f"{ASKING} RESUME_UNKNOWN_ID RESUME_FAILED_STILL_OPEN UNROUTED",
    ),
    # Nothing is done twice, as it should be; that it fails helps nobody.
    "the same answer once more fails": Story(
        ("send",), (answers(YES), answers(YES)), (ANSWERED, DONE, FAILED), FAILED, f"{ASKING} REPLAY", ("approved",), 1
    ),
    # The first version took it for a no, without a word.
    "an answer that does not fit": Story(
        ("send",),
        (answers({"approved": f"{MARK}: certainly"}),),
        (ANSWERED, DONE) if IS_OLDEST else (WAITS, FAILED),
        DONE if IS_OLDEST else WAITS,
        f"{ASKING} PAYLOAD_SCHEMA_MISMATCH "
        + ("BAD_ANSWER_SWALLOWED" if IS_OLDEST else "RESUME_FAILED_STILL_OPEN UNROUTED"),
        ("answered",) if IS_OLDEST else (),
    ),
    # There is a result, which says that it was cut short: somebody has to look first.
    "a tool that fails after its answer": Story(
        ("send_and_fail",),
        (answers(YES),),
        (ANSWERED, FAILED),
        FAILED,
        f"{ASKING} ANSWER_CONSUMED_THEN_FAILED",
        ("approved",),
    ),
}
EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)

# It says so by itself when it drops a call.
pytestmark = pytest.mark.filterwarnings("ignore:Client-submitted history ended with unresolved tool call")


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@EACH
def test_the_audit_says_what_happened(story: Story) -> None:
    with recording(clerk(*story.calls)) as client:
        audit = told(client, story).audited()
    assert audit.runs[0].run.mode is (Mode.LEGACY_OUTCOME if IS_OLDEST else Mode.SPEC)
    holds(audit, story, *ALWAYS)
    assert len(done) == story.done


@EACH
def test_the_taps_agree_with_it_and_nothing_of_what_was_said_comes_out(story: Story) -> None:
    taps_agree(story, lambda: clerk(*story.calls), recording, MARK)


def test_a_form_of_the_client_s_own_is_no_interrupt_and_its_answer_is_a_message() -> None:
    """Such a run is a success that names what is left to the client (spec 1.0, events/tool-calls)."""
    with recording(clerk("show_form")) as client:
        client.send("r1", tools=[FORM])
        filled = {"id": "m-9", "role": "tool", "toolCallId": "tc-1", "content": f"{MARK}: Q1"}
        client.send("r2", tools=[FORM], messages=[*client.messages, filled])
        audit = client.audited()
    asking = audit.runs[0]
    assert verdicts(audit) == {"r1": DONE, "r2": DONE}
    assert asking.run.left == ("tc-1",)
    left = {"FRONTEND_PENDING", *(("PENDING_LIST_ABSENT",) if IS_OLDEST else ()), *ALWAYS}
    assert {each.name for each in asking.run.findings} == left
    assert [each.findings for each in audit.threads] == [()]


@pytest.mark.parametrize("calls", [("send",), ("send", "send")], ids=["one", "two"])
def test_an_agent_that_began_anew_does_the_same_with_the_messages_alone(calls: tuple[str, ...]) -> None:
    said = [YES, GIVES_UP][: len(calls)]
    with recording(clerk(*calls)) as client:
        client.send("r1")
        live = client.answer("r2", *said)
    with recording(clerk(*calls)) as before, recording(clerk(*calls)) as after:
        before.send("r1")
        client = before.moved_to(after)
        restarted = client.answer("r2", *said)
    assert plain(restarted) == plain(live)
    assert verdicts(client.audited()) == {"r1": ANSWERED, "r2": DONE}
    assert len(done) == 2


def test_without_the_messages_a_good_answer_fails_and_that_is_the_client_s_fault() -> None:
    with recording(clerk("send")) as client:
        client.send("r1")
        client.answer("r2", YES, messages=[{"id": "u-1", "role": "user", "content": MARK}])
        audit = client.audited()
    assert verdicts(audit) == {"r1": WAITS, "r2": FAILED}
    assert {each.name for each in audit.runs[1].link.findings} == {"HISTORY_LOST", "RESUME_FAILED_STILL_OPEN"}
    assert done == []
