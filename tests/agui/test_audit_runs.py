"""What a run says of itself, where a case file cannot look."""

from __future__ import annotations

import pytest

from stopcause.agui.findings import names
from stopcause.agui.ledger import Ledger
from stopcause.agui.promises import adds_up
from stopcause.agui.reader import Exchange
from stopcause.agui.scene import Request
from stopcause.agui.values import Input, Interrupt, Json, RunSeen
from stopcause.agui.verdicts import Judged
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.classifier.verdict import VerdictName
from stopcause.pipeline.agui import audit
from stopcause.receipts.vocabulary import ApprovalKind, StopCause
from tests.agui.seen import NOON, asked, run
from tests.agui.watched import ask, call, interrupted

BOTH = {"STATE_SNAPSHOT": 1, "MESSAGES_SNAPSHOT": 1}
BY_OUTCOME = run("r1", asks=(asked("i-1"),), counts=BOTH)
BY_CUSTOM = run("r1", asks=(asked("i-1", channel=Channel.CUSTOM),), counts=BOTH)

PLAIN: Json = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
EDITS: Json = {"type": "object", "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}}}


def found(seen: RunSeen, capabilities: Json = None) -> frozenset[str]:
    return names(Ledger().ended(seen, Request(capabilities=capabilities)).findings)


@pytest.mark.parametrize(
    ("seen", "interrupts", "is_found"),
    [
        (BY_OUTCOME, True, False),
        (BY_CUSTOM, True, True),
        (BY_OUTCOME, False, True),
        (BY_CUSTOM, False, True),
        (BY_CUSTOM, None, False),
        (BY_CUSTOM, "yes", False),
        (run("r1"), True, False),
        (run("r1"), False, False),
    ],
)
def test_what_an_agent_declares_is_held_against_how_it_asks(seen: RunSeen, interrupts: Json, is_found: bool) -> None:
    assert ("CAPABILITY_MISMATCH" in found(seen, {"humanInTheLoop": {"interrupts": interrupts}})) is is_found


@pytest.mark.parametrize(
    ("edits", "schemas", "is_found"),
    [
        (True, [EDITS], False),
        (True, [PLAIN], True),
        (True, [None], True),
        (True, [EDITS, PLAIN], True),
        (False, [PLAIN], False),
        (None, [PLAIN], False),
        ("yes", [PLAIN], False),
    ],
)
def test_who_declares_that_calls_may_be_edited_offers_it(edits: Json, schemas: list[Json], is_found: bool) -> None:
    asks = tuple(asked(f"i-{number}", schema=schema) for number, schema in enumerate(schemas))
    said = found(run("r1", asks=asks, counts=BOTH), {"humanInTheLoop": {"approveWithEdits": edits}})
    assert ("CAPABILITY_MISMATCH" in said) is is_found


def test_edits_are_of_calls_and_no_other_questions() -> None:
    form = Interrupt("i-1", ApprovalKind.INPUT_REQUIRED)
    assert found(run("r1", asks=(form,), counts=BOTH), {"humanInTheLoop": {"approveWithEdits": True}}) == set()


@pytest.mark.parametrize("declared", [True, False])
def test_what_is_declared_changes_no_verdict(declared: bool) -> None:
    event = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"}
    events = [event, *call("c1"), interrupted(ask("i-1", toolCallId="c1"))]
    says = {"humanInTheLoop": {"interrupts": declared, "approveWithEdits": True}}
    silent, told = (audit([Exchange(None, iter(events), capabilities=each)], None, NOON) for each in (None, says))
    assert "CAPABILITY_MISMATCH" in names(told.findings) - names(silent.findings)
    assert [said(each) for each in told.runs] == [said(each) for each in silent.runs]
    assert [each._replace(findings=()) for each in told.threads] == [
        each._replace(findings=()) for each in silent.threads
    ]


def said(of: Judged) -> tuple[VerdictName | None, str]:
    assert of.verdict is not None
    return of.verdict.verdict, of.verdict.reason


@pytest.mark.parametrize(("is_echo", "is_found"), [(False, True), (True, False)])
def test_what_an_echo_lacks_the_agent_may_have_left_out(is_echo: bool, is_found: bool) -> None:
    seen = run("r1")._replace(protocol_version="1.0", input=Input("t1", "r1", is_echo=is_echo))
    assert ("INPUT_NO_VERSION" in found(seen)) is is_found


@pytest.mark.parametrize("capabilities", [None, {}, [], "x", {"humanInTheLoop": None}, {"humanInTheLoop": []}])
def test_what_is_not_declared_is_no_no(capabilities: Json) -> None:
    assert found(BY_OUTCOME, capabilities) == found(BY_CUSTOM, capabilities) == frozenset()


@pytest.mark.parametrize(
    ("ending", "cause", "said"),
    [
        (Ending.SUCCESS, StopCause.USER_ABORT, {"STOP_AS_SUCCESS"}),
        (Ending.SUCCESS, StopCause.STEP_LIMIT, {"STOP_AS_SUCCESS"}),
        (Ending.SUCCESS, StopCause.LOOP_GUARD, {"STOP_AS_SUCCESS"}),
        (Ending.SUCCESS, StopCause.OUTPUT_CAP, set()),
        (Ending.SUCCESS, StopCause.APPROVAL_DENIED, set()),
        (Ending.SUCCESS, StopCause.NATURAL, set()),
        (Ending.CANCELLED, StopCause.USER_ABORT, set()),
        (Ending.ERROR, StopCause.CALLER_ABORT, {"STOP_AS_ERROR"}),
        (Ending.ERROR, StopCause.TIME_LIMIT, set()),
        (Ending.TRUNCATED, StopCause.CALLER_ABORT, set()),
    ],
)
def test_a_run_that_was_stopped_on_purpose_says_so(ending: Ending, cause: StopCause, said: set[str]) -> None:
    assert found(run("r1", ending, cause=cause)) == said


@pytest.mark.parametrize("lacking", [*BOTH])
def test_both_snapshots_stand_before_a_question(lacking: str) -> None:
    assert found(BY_OUTCOME) == set()
    assert found(BY_OUTCOME._replace(counts={each: 1 for each in BOTH if each != lacking})) == {"NO_BOUNDARY_SNAPSHOT"}


def test_of_a_question_beside_an_ordinary_finish_no_text_asks_for_snapshots() -> None:
    assert found(BY_OUTCOME._replace(counts={"CUSTOM": 1}, mode=Mode.LEGACY_CUSTOM)) == set()


@pytest.mark.parametrize(
    ("usage", "fits"),
    [
        ({}, True),
        ({"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}, True),
        ({"inputTokens": 3, "outputTokens": 2, "totalTokens": 6}, False),
        ({"inputTokens": 3, "totalTokens": 6}, True),
        ({"inputTokens": 3, "cachedInputTokens": 3}, True),
        ({"inputTokens": 3, "cachedInputTokens": 4}, False),
        ({"outputTokens": 3, "reasoningTokens": 4}, False),
        ({"reasoningTokens": 4}, True),
    ],
)
def test_counts_of_tokens_add_up(usage: Json, fits: bool) -> None:
    assert adds_up(usage) is fits
