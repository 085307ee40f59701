"""What the adapter does wrong in real runs, and what the audit says of it: which rule, and whose fault.

Both environments are here, because a newer version mended some of it. What must be found was read from the rules first.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from stopcause.agui.findings import names
from stopcause.agui.guard import ResumeGuard
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.agui.words import Side
from stopcause.errors import ResumeRefusedError
from tests.agui.recorded import GIVES_UP, verdicts
from tests.agui.stories import ANSWERED, DONE, FAILED, WAITS, Story, answers, answers_another, goes_on, told
from tests.frameworks.ag_ui_langgraph.service import CONFIGURATIONS, MARK, NO, YES, clerk, done, serving
from tests.frameworks.ag_ui_langgraph.test_trail import CONFIGURED

Json = Any

# Up to 0.0.45 a stream breaks off where its graph fails; from 0.0.46 on it ends by RUN_ERROR.
BREAKS_OFF = os.environ.get("STOPCAUSE_VERSIONS") == "oldest"

_DENIED = ("BOUNDED_STOP", "approval_denied")
_BYPASSED = ("UNCERTAIN", "approval_bypassed")
_CUT_OFF = ("UNCERTAIN", "stream_truncated")


_COVERS_BOTH = answers(YES, GIVES_UP)

_TAKEN = "CALL_REOPENED NO_DEADLINE"
_REFUSED = "TRUNCATED ANSWER_FATE_UNKNOWN" if BREAKS_OFF else "RESUME_FAILED_STILL_OPEN"

FAULTS = {
    # The id is not looked at. Before 1.0 such an input had to fail, too, and it covers nothing.
    "acts on an answer to something else": Story(
        ("send",),
        (answers_another(YES),),
        (_BYPASSED, _BYPASSED),
        _BYPASSED,
        "RESUME_UNKNOWN_ID UNCOVERED ACTION_ON_UNRECOGNISED_ANSWER UNCOVERED_MISHANDLED CALL_REOPENED NO_DEADLINE",
        done=1,
    ),
    # LangGraph has to be told which answer is whose, and the adapter does not tell it. Nothing ever gets past it.
    "two questions can never be answered": Story(
        ("send", "send"),
        (_COVERS_BOTH, _COVERS_BOTH, _COVERS_BOTH),
        (ANSWERED, *[_CUT_OFF] * 3) if BREAKS_OFF else (WAITS, *[FAILED] * 3),
        _CUT_OFF if BREAKS_OFF else ("STUCK", "retry_storm"),
        f"{_REFUSED} NO_DEADLINE " + ("REPLAY" if BREAKS_OFF else "VALID_RESUME_REFUSED REINTERRUPT_LOOP UNROUTED"),
    ),
    # Before 1.0 it had to fail where nothing is answered, and to send state and messages before it asks.
    "a partial answer is refused, and without any it asks again": Story(
        ("send", "send"),
        (answers(YES), goes_on),
        (WAITS, _CUT_OFF if BREAKS_OFF else FAILED, WAITS),
        WAITS,
        f"UNCOVERED {_REFUSED} SILENT_CONTINUE UNCOVERED_MISHANDLED NO_BOUNDARY_SNAPSHOT NO_DEADLINE UNROUTED",
    ),
    "without answers it asks for ever": Story(
        ("send",),
        (goes_on, goes_on),
        (WAITS, WAITS, WAITS),
        ("STUCK", "loop_guard"),
        "SILENT_CONTINUE UNCOVERED_MISHANDLED REINTERRUPT_LOOP NO_BOUNDARY_SNAPSHOT NO_DEADLINE UNROUTED",
    ),
    # That is as it should be: nothing is done twice.
    "the same answer once more does nothing": Story(
        ("send",), (answers(YES), answers(YES)), (ANSWERED, DONE, DONE), DONE, f"REPLAY {_TAKEN}", done=1
    ),
    "takes an answer that does not fit": Story(
        ("send",),
        (answers({"approved": f"{MARK}: certainly"}),),
        (ANSWERED, DONE),
        DONE,
        f"PAYLOAD_SCHEMA_MISMATCH BAD_ANSWER_SWALLOWED {_TAKEN}",
        done=1,
    ),
    "takes an answer that comes too late": Story(
        ("send_in_time",),
        (answers(YES),),
        (ANSWERED, DONE),
        DONE,
        "EXPIRED_ANSWER LATE_ANSWER_TAKEN CALL_REOPENED",
        done=1,
    ),
    # As it should be: the way past an expired question is open.
    "what has expired can be given up": Story(
        ("send_in_time",), (answers(GIVES_UP),), (_DENIED, DONE), DONE, "RESULT_AFTER_CANCEL CALL_REOPENED"
    ),
    "a call that was denied has a result": Story(
        ("send",), (answers(NO),), (ANSWERED, DONE), DONE, f"RESULT_AFTER_CANCEL {_TAKEN}"
    ),
    "a tool that fails after its answer": Story(
        ("send_and_fail",),
        (answers(YES),),
        (ANSWERED, _CUT_OFF) if BREAKS_OFF else (WAITS, FAILED),
        _CUT_OFF if BREAKS_OFF else WAITS,
        f"{_REFUSED} NO_DEADLINE" + ("" if BREAKS_OFF else " UNROUTED"),
    ),
}
EACH = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@EACH
@CONFIGURED
def test_the_audit_says_what_went_wrong(fault: Story, configuration: str) -> None:
    """Answers are in `resume` here, which the adapter takes by whatever channel it asked."""
    with serving(clerk(*fault.calls, **CONFIGURATIONS[configuration])) as client:
        audit = told(client, fault).audited()
    assert verdicts(audit) == {f"r{number + 1}": verdict for number, verdict in enumerate(fault.runs)}
    assert [(each.verdict, each.reason) for each in audit.threads] == [fault.thread]
    found = {*fault.found.split(), "NO_VERSION"}
    if configuration == "legacy":  # what has to come before a question is said of outcomes only
        found = found - {"NO_BOUNDARY_SNAPSHOT"} | {"LEGACY_INTERRUPT"}
    assert names(audit.findings) == found
    assert len(done) == fault.done


@CONFIGURED
def test_whose_fault_a_refused_answer_is_is_said_from_the_second_time_on(configuration: str) -> None:
    """A failure without a code may be anything. The same answers, and the same failure, are a refusal."""
    with serving(clerk("send", "send", **CONFIGURATIONS[configuration])) as client:
        runs = told(client, FAULTS["two questions can never be answered"]).audited().runs
    blamed = [
        each.run.run_id
        for each in runs
        if any(
            finding.side is Side.PRODUCER and finding.name == "VALID_RESUME_REFUSED" for finding in each.link.findings
        )
    ]
    assert blamed == ([] if BREAKS_OFF else ["r3", "r4"])
    assert done == []


@CONFIGURED
def test_with_a_guard_before_it_an_answer_to_something_else_does_not_act(configuration: str) -> None:
    app, transport = clerk("send", **CONFIGURATIONS[configuration]), AguiTransport(agent="clerk", guard=ResumeGuard())
    with serving(app, transport) as client:
        client.send("r1")
        with pytest.raises(ResumeRefusedError):
            answers_another(YES)(client, "r2")
        assert done == []
        client.answer("r3", YES)
    assert done == [f"{MARK} send"]
