"""How an ending becomes a cause, and what a producer's own receipt may say beside it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from stopcause.agui.endings import CAUSE_OF_CODE
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.receipts.vocabulary import ApprovalKind, StopCause
from tests.agui.watched import (
    FAILED,
    GIVEN,
    OLD_STARTED,
    STARTED,
    about,
    ask,
    call,
    custom,
    fatal,
    finished,
    interrupted,
    names,
    run,
)

Json = Any
WAITS = {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1", "outcome": {"type": "suspended", "interruptIds": ["i1"]}}
SUB = {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "helper"}


@pytest.mark.parametrize(
    ("reasons", "cause"),
    [
        (["tool_call"], StopCause.APPROVAL_PENDING),
        (["confirmation"], StopCause.APPROVAL_PENDING),
        (["input_required"], StopCause.INPUT_PENDING),
        (["langgraph:review"], StopCause.EXTERNAL_PENDING),
        (["Please wait for the other team"], StopCause.EXTERNAL_PENDING),
        (["x:y", "input_required", "tool_call"], StopCause.APPROVAL_PENDING),
        (["x:y", "input_required"], StopCause.INPUT_PENDING),
    ],
)
def test_what_a_run_asks_for_is_what_it_waits_for(reasons: list[str], cause: StopCause) -> None:
    seen = run([STARTED, interrupted(*(ask(f"i{n}", reason) for n, reason in enumerate(reasons)))])
    assert (seen.ending, seen.cause, fatal(seen)) == (Ending.INTERRUPT, cause, set())


@pytest.mark.parametrize(
    ("outcome", "ending", "cause", "reason"),
    [
        (None, Ending.SUCCESS, StopCause.NATURAL, None),
        ({"type": "success"}, Ending.SUCCESS, StopCause.NATURAL, None),
        ({"type": "cancelled"}, Ending.CANCELLED, StopCause.CALLER_ABORT, None),
        ({"type": "paused"}, Ending.UNKNOWN_OUTCOME, StopCause.UNKNOWN, "outcome_type_unknown"),
        ({}, Ending.UNKNOWN_OUTCOME, StopCause.UNKNOWN, "outcome_type_unknown"),
    ],
)
def test_outcomes(outcome: Json, ending: Ending, cause: StopCause, reason: str | None) -> None:
    seen = run([STARTED, finished(outcome)])
    assert (seen.ending, seen.cause, seen.reason) == (ending, cause, reason)
    assert ("UNKNOWN_OUTCOME" in names(seen)) is (ending is Ending.UNKNOWN_OUTCOME)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        *CAUSE_OF_CODE.items(),
        ("abort", StopCause.CALLER_ABORT),
        ("STRANDS_ERROR", StopCause.SELF_REPORTED_FAILURE),
        ("Something went wrong", StopCause.SELF_REPORTED_FAILURE),
    ],
)
def test_codes(code: str, cause: StopCause) -> None:
    seen = run([STARTED, {**FAILED, "code": code}])
    assert (seen.ending, seen.cause) == (Ending.ERROR, cause)


def test_a_code_is_kept_where_it_is_a_word_and_never_where_it_is_prose() -> None:
    assert run([STARTED, {**FAILED, "code": "PARTIAL_RESUME"}]).error_code == "PARTIAL_RESUME"
    assert run([STARTED, {**FAILED, "code": "Something went wrong"}]).error_code is None
    assert run([STARTED, {"type": "RUN_ERROR", "message": "m", "code": 5}]).error_code is None


@pytest.mark.parametrize(
    ("cause", "outcome", "holds", "found"),
    [
        ("step_limit", None, StopCause.STEP_LIMIT, None),
        ("tool_failure", {"type": "success"}, StopCause.TOOL_FAILURE, None),
        ("natural", {"type": "success"}, StopCause.NATURAL, None),
        ("stream_truncated", {"type": "success"}, StopCause.NATURAL, "RECEIPT_DISAGREES"),
        ("approval_pending", {"type": "success"}, StopCause.APPROVAL_PENDING, "INTERRUPT_AS_SUCCESS"),
        ("user_abort", {"type": "cancelled"}, StopCause.USER_ABORT, None),
        ("token_budget", {"type": "cancelled"}, StopCause.TOKEN_BUDGET, None),
        ("loop_guard", {"type": "cancelled"}, StopCause.LOOP_GUARD, None),
        ("natural", {"type": "cancelled"}, StopCause.CALLER_ABORT, "RECEIPT_DISAGREES"),
        ("external_pending", "ask", StopCause.EXTERNAL_PENDING, None),
        ("natural", "ask", StopCause.APPROVAL_PENDING, "RECEIPT_DISAGREES"),
        ("natural", {"type": "odd"}, StopCause.UNKNOWN, None),
    ],
)
def test_which_cause_holds_beside_a_receipt(cause: str, outcome: Json, holds: StopCause, found: str | None) -> None:
    end = interrupted(ask()) if outcome == "ask" else finished(outcome)
    seen = run([STARTED, {**end, "metadata": {"stopcause": {"stop_cause": cause}}}])
    assert seen.cause is holds
    assert names(seen) & {"RECEIPT_DISAGREES", "INTERRUPT_AS_SUCCESS"} == ({found} if found else set())


def test_a_receipt_that_waits_makes_its_run_wait() -> None:
    seen = run([STARTED, finished(metadata={"stopcause": {"stop_cause": "input_pending"}})])
    assert (seen.ending, seen.cause) == (Ending.INTERRUPT, StopCause.INPUT_PENDING)


def test_a_whole_record_is_read_and_who_it_is_about_is_not() -> None:
    record = {
        "schema": "stopcause/1", "kind": "run.stopped", "run_id": "other", "at": "2026-11-30T12:00:00Z",
        "thread_id": "x", "stop_cause": "step_limit", "steps": 20, "conditions": [{"name": "max", "kind": "steps"}],
    }  # fmt: skip
    seen = run([STARTED, finished(metadata={"stopcause": record})])
    assert seen.receipt == {
        "stop_cause": "step_limit",
        "steps": 20,
        "conditions": [{"name": "max", "kind": "steps"}],
    }
    assert "RECEIPT_UNREADABLE" not in names(seen)


def test_what_is_no_field_of_a_receipt_is_left_out_and_the_rest_is_kept() -> None:
    ours = {"stop_cause": "step_limit", "steps": "many", "agent": "a secret sentence", "reason_code": "it was tired"}
    seen = run([STARTED, finished(metadata={"stopcause": ours})])
    assert seen.receipt == {"stop_cause": "step_limit"}
    assert "RECEIPT_UNREADABLE" in names(seen)
    assert seen.cause is StopCause.STEP_LIMIT


@pytest.mark.parametrize("ours", ["done", 5, None, [], {"kind": "run.started"}, {"steps": float("inf")}])
def test_what_is_no_receipt_is_passed_over(ours: Json) -> None:
    seen = run([STARTED, finished(metadata={"stopcause": ours})])
    assert (seen.ending, seen.receipt) == (Ending.SUCCESS, {})
    assert "RECEIPT_UNREADABLE" in names(seen)


# A question is never passed over --------------------------------------------------------------------------------------


def test_before_outcomes_a_finish_with_custom_questions_waits() -> None:
    seen = run([OLD_STARTED, *call("c1"), custom({"reason": "tool_call", "toolCallId": "c1"}), finished()])
    assert (seen.mode, seen.ending, seen.cause) == (Mode.LEGACY_CUSTOM, Ending.INTERRUPT, StopCause.APPROVAL_PENDING)
    assert {"LEGACY_INTERRUPT"} == names(seen) & {"LEGACY_INTERRUPT", "INTERRUPT_AS_SUCCESS"}
    (only,) = seen.interrupts
    assert (only.id, only.channel, only.tool) == ("c1", Channel.CUSTOM, "send")


@pytest.mark.parametrize(
    ("start", "outcome"), [(STARTED, None), (STARTED, {"type": "success"}), (OLD_STARTED, {"type": "success"})]
)
def test_a_success_over_a_custom_question_waits_and_is_named(start: Json, outcome: Json) -> None:
    seen = run([start, custom({"reason": "input_required"}), finished(outcome)])
    assert (seen.ending, seen.cause) == (Ending.INTERRUPT, StopCause.INPUT_PENDING)
    assert "INTERRUPT_AS_SUCCESS" in names(seen)


def test_a_success_over_a_suspended_subagent_waits_and_is_named() -> None:
    seen = run([STARTED, SUB, WAITS, finished({"type": "success"})])
    assert (seen.ending, seen.cause) == (Ending.INTERRUPT, StopCause.EXTERNAL_PENDING)
    assert "INTERRUPT_AS_SUCCESS" in names(seen)
    assert [(each.id, each.raised_by) for each in seen.interrupts] == [("i1", "s1")]


def test_a_suspended_subagent_beside_an_interrupt_is_as_it_should_be() -> None:
    seen = run([STARTED, SUB, WAITS, interrupted(ask("i1", "confirmation", subagentRunId="s1"))])
    assert names(seen) == {"NO_DEADLINE"}
    assert seen.interrupts[0].raised_by == "s1"


def test_a_field_interrupt_of_the_finish_is_a_question_and_the_custom_event_beside_it_the_same() -> None:
    asked = {"id": "f1", "function_call": {"call_id": "c1", "name": "send"}}
    events = [OLD_STARTED, *call("c1"), custom(asked, name="function_approval_request")]
    seen = run([*events, finished(interrupt=[{"id": "f1", "value": asked}])])
    assert [(each.id, each.kind, each.tool_call_id) for each in seen.interrupts] == [
        ("f1", ApprovalKind.TOOL_CALL, "c1")
    ]
    assert (seen.mode, seen.ending) == (Mode.LEGACY_CUSTOM, Ending.INTERRUPT)
    assert run([STARTED, finished(interrupt=[{"id": "f1"}])]).ending is Ending.INTERRUPT


def test_custom_beside_an_outcome_is_counted_once() -> None:
    told = custom('{"reason": "tool_call"}', rawEvent={"id": "i1", "value": {}})
    seen = run([OLD_STARTED, told, interrupted(ask("i1"))])
    assert (seen.mode, [each.id for each in seen.interrupts]) == (Mode.LEGACY_OUTCOME, ["i1"])
    assert "LEGACY_COUNT_MISMATCH" not in names(seen)


def test_custom_and_outcome_that_do_not_ask_for_the_same_are_named_and_the_outcome_holds() -> None:
    told = [custom({"id": name}) for name in ("i1", "i2")]
    seen = run([OLD_STARTED, *told, interrupted(ask("i1"))])
    assert [each.id for each in seen.interrupts] == ["i1"]
    assert "LEGACY_COUNT_MISMATCH" in names(seen)


def test_a_cancelled_run_waits_for_nothing() -> None:
    seen = run([OLD_STARTED, custom({"reason": "tool_call"}), finished({"type": "cancelled"})])
    assert (seen.ending, seen.interrupts) == (Ending.CANCELLED, ())


def test_a_contradiction_is_rejected_and_what_it_asked_is_still_known() -> None:
    seen = run([STARTED, finished({"type": "success", "interrupts": [ask()]})])
    assert (seen.ending, [each.id for each in seen.interrupts]) == (Ending.REJECTED, ["i1"])


def test_a_client_tool_that_the_policy_calls_a_wait() -> None:
    given = GIVEN._replace(tools=frozenset({"pick", "draw"}))
    seen = run(
        [STARTED, *call("c1", "pick"), *call("c2", "draw"), finished()], given, waits=lambda tool: tool == "pick"
    )
    assert (seen.ending, seen.cause, seen.pending) == (Ending.SUCCESS, StopCause.INPUT_PENDING, ())
    (only,) = seen.interrupts
    assert (only.id, only.channel, only.kind, only.tool) == ("c1", Channel.TOOL, ApprovalKind.INPUT_REQUIRED, "pick")
    assert about(seen, "FRONTEND_PENDING") == ("c1", "c2")


def test_due_counts_from_the_end_of_the_run() -> None:
    ours = {"stopcause": {"owner": "team:billing", "due": "30m"}}
    end = {**interrupted(ask(metadata=ours)), "timestamp": 1_790_000_000_000}
    (only,) = run([STARTED, end]).interrupts
    assert (only.owner, only.due) == ("team:billing", datetime.fromtimestamp(1_790_001_800, UTC))
