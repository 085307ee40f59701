"""The core hook without a framework: what a run leaves behind, what it waits for, who says why it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import stopcause
from stopcause.receipts import capture, model
from stopcause.receipts.causes import Rank
from stopcause.receipts.run import current
from stopcause.receipts.testing import Recorded, recorded
from stopcause.receipts.vocabulary import ApprovalState, Boundary, Decision, Finish, OutputShape, StopCause
from tests.support.captured import Wrong, verdict_of

# A run ----------------------------------------------------------------------------------------------------------------


def test_a_run_leaves_a_start_and_a_receipt(receipts: Recorded) -> None:
    with stopcause.run("invoice agent", thread_id="t-1", model="m") as run:
        run.step(tool_calls=2, input_tokens=30, output_tokens=4)
        run.step(finish="stop")

    start, stop = receipts.records
    assert isinstance(start, model.RunStarted)
    assert isinstance(stop, model.RunStopped)
    assert (start.run_id, start.agent, start.thread_id, start.lease_s) == (run.run_id, "invoice_agent", "t-1", 300)
    assert start.process is not None
    assert (stop.stop_cause, stop.steps, stop.model_calls, stop.tool_calls) == ("natural", 2, 2, 2)
    assert stop.usage == model.Usage(input_tokens=30, output_tokens=4)
    assert stop.started_at == start.at <= stop.at
    assert [start.seq, stop.seq] == [1, 2]
    assert verdict_of(receipts) == ("FALSE_COMPLETE", "no_contract")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("/home/ann/models/llama-8b/", "llama-8b"), ("~/llama.gguf", "llama.gguf"), ("./llama", "llama"),
        ("meta-llama/Llama-8B", "meta-llama/Llama-8B"), ("openai:gpt-9", "openai:gpt-9"),
    ],
)  # fmt: skip
def test_a_model_of_this_machine_s_is_told_without_its_folder(receipts: Recorded, given: str, told: str) -> None:
    with stopcause.run("a", model=given):
        pass

    assert [getattr(each, "model", None) for each in receipts.records] == [told, told]


def test_an_async_block_is_the_same_run(receipts: Recorded) -> None:
    async def main() -> None:
        async with stopcause.run("a") as run:
            run.step()

    asyncio.run(main())

    assert receipts.stopped.stop_cause == "natural"


def test_a_run_without_steps_says_none(receipts: Recorded) -> None:
    with stopcause.run("a"):
        pass

    assert receipts.stopped.steps is None
    assert receipts.stopped.step_unit is None


@pytest.mark.parametrize(
    ("error", "cause", "reason"),
    [
        (Wrong("canary"), "host_error", None),
        (TimeoutError(), "host_error", None),
        (asyncio.CancelledError(), "caller_abort", "cancelled"),
        (KeyboardInterrupt(), "user_abort", "keyboard_interrupt"),
        (SystemExit(3), "platform_abort", "system_exit"),
        (GeneratorExit(), "caller_abort", "reader_left"),
    ],
)
def test_what_leaves_the_block_is_the_cause_and_goes_on(
    receipts: Recorded, error: BaseException, cause: str, reason: str | None
) -> None:
    with pytest.raises(type(error)) as raised, stopcause.run("a"):
        raise error

    assert raised.value is error
    assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == (cause, reason)


def test_a_timer_around_the_work_is_told_from_a_cancellation(receipts: Recorded) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with stopcause.run("a") as run:
                run.progress("tool_result")
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(5)

    asyncio.run(main())

    assert receipts.stopped.stop_cause == "time_limit"
    assert verdict_of(receipts) == ("BOUNDED_STOP", "time_limit")


def test_a_timer_around_the_run_cancels_it(receipts: Recorded) -> None:
    async def agent() -> None:
        async with stopcause.run("a"):
            await asyncio.sleep(5)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent(), 0.01)

    asyncio.run(main())

    assert (receipts.stopped.stop_cause, receipts.stopped.abort is not None) == ("caller_abort", True)


def test_errors_are_their_types(receipts: Recorded) -> None:
    def fail() -> None:
        try:
            dict[str, int]()["canary"]
        except KeyError as error:
            raise Wrong("canary") from error

    with pytest.raises(Wrong), stopcause.run("a"):
        fail()

    assert receipts.stopped.error == model.RunError(type="Wrong", chain=("Wrong", "KeyError"))
    assert not any(b"canary" in line for line in receipts.lines)


def test_a_provider_s_error_is_the_model_s(receipts: Recorded) -> None:
    kind = type("RateLimitError", (Exception,), {"__module__": "openai", "status_code": 429})
    with pytest.raises(kind), stopcause.run("a"):
        raise kind

    assert (receipts.stopped.stop_cause, receipts.stopped.error) == (
        "quota",
        model.RunError(type="RateLimitError", chain=("RateLimitError",), status=429),
    )


# Who says the cause ---------------------------------------------------------------------------------------------------


def test_the_host_s_own_word_counts_first(receipts: Recorded) -> None:
    with pytest.raises(Wrong), stopcause.run("a") as run:
        run.say(StopCause.STEP_LIMIT, Rank.SIGNAL, Boundary.CALLBACK)
        run.stop("token_budget", reason="spent")
        raise Wrong

    stopped = receipts.stopped
    assert (stopped.stop_cause, stopped.reason_code) == ("token_budget", "spent")
    assert stopped.subsequent_causes == (StopCause.STEP_LIMIT, StopCause.HOST_ERROR)


def test_a_cause_that_is_none_does_not_pass_for_an_end(receipts: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    with stopcause.run("a") as run:
        run.stop("because")

    assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "cause_unknown")
    assert "stop() takes a stop cause, one of: natural, explicit_done, step_limit" in caplog.text
    assert "because" not in caplog.text
    assert receipts.stopped.findings == (model.Finding(code="refused_value", where="stop.cause"),)


def test_a_bound_that_forced_the_last_turn_is_the_cause(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        for _ in range(3):
            run.step()
        run.condition("max", "steps", fired=True, limit=3, observed=3)
        run.forced_wrapup = True

    assert receipts.stopped.stop_cause == "step_limit"


@pytest.mark.parametrize(
    ("finish", "cause"),
    [("stop", "natural"), ("length", "output_cap"), ("content_filter", "content_filter"), ("tool_calls", "natural")],
)
def test_an_answer_that_was_cut_is_no_natural_end(receipts: Recorded, finish: str, cause: str) -> None:
    with stopcause.run("a") as run:
        run.step(finish=finish)

    assert receipts.stopped.stop_cause == cause


def test_a_reader_that_leaves_after_a_wait_leaves_a_wait(receipts: Recorded) -> None:
    with pytest.raises(GeneratorExit), stopcause.run("a") as run:
        run.waiting("ap-1", resume_token="t/1")
        raise GeneratorExit

    assert receipts.stopped.stop_cause == "approval_pending"


# Waits ----------------------------------------------------------------------------------------------------------------


def test_a_wait_without_an_id_is_numbered() -> None:
    with recorded() as found, stopcause.run("a", run_id="r1") as run:
        run.waiting(None, "input_required")
    with recorded() as found:
        with stopcause.run("a", run_id="r1") as run:
            run.waiting(None, "input_required")

        assert found.stopped.stop_cause == "input_pending"
        assert [each.approval_id for each in found.stopped.approvals or ()] == ["r1/approval-1"]
        assert verdict_of(found) == ("WAITING_UNROUTED", "owner")


def test_a_configured_route_makes_a_wait_somebody_s() -> None:
    routes = [{"tool": "pay_*", "owner": "team:treasury", "due_s": 60}, {"owner": "team:any", "expires_s": 5}]
    with recorded(route=routes) as found:
        with stopcause.run("a") as run:
            run.waiting("ap-1", tool="pay_out", resume_token="t/1", resumable=True)
            run.waiting("ap-2", tool="mail", owner="team:post")

        pay, mail = found.stopped.approvals or ()
        assert (pay.owner, pay.state) == ("team:treasury", "routed")
        assert pay.deadline is not None
        assert pay.requested_at is not None
        assert (pay.deadline - pay.requested_at).total_seconds() == 60
        assert (mail.owner, mail.expires_at is not None) == ("team:post", True)


def test_only_allowed_keys_of_metadata_are_read() -> None:
    class Hostile(dict[str, Any]):
        def __iter__(self) -> Iterator[str]:
            raise AssertionError("the other keys are content")

    metadata = Hostile({"assignee": "team:x", "due": datetime(2026, 12, 1, tzinfo=UTC), "prompt": "canary"})
    with recorded(approval_keys={"owner": "assignee", "deadline": "due"}) as found:
        with stopcause.run("a") as run:
            run.waiting("ap-1", metadata=metadata)

        (wait,) = found.stopped.approvals or ()
        assert (wait.owner, wait.deadline) == ("team:x", datetime(2026, 12, 1, tzinfo=UTC))


def test_a_run_that_resumes_brings_decisions_and_what_ran(receipts: Recorded) -> None:
    with stopcause.run("a", run_id="r1") as run:
        run.waiting("ap-1", owner="team:x", resume_token="t/1", expires_at=datetime(2999, 1, 1, tzinfo=UTC))
    with stopcause.run("a", run_id="r2", resumes="r1", answers={"ap-1": "approved"}) as run:
        run.executed("ap-1")

    updates = [record for record in receipts.records if isinstance(record, model.ApprovalUpdated)]
    assert [(each.run_id, each.approval.decision, each.approval.executed) for each in updates] == [
        ("r1", "approved", None),
        ("r1", None, True),
    ]
    assert receipts.receipts[-1].answers == ("ap-1",)
    assert verdict_of(receipts, run_id="r1") == ("WAITING", "answered")


def test_a_run_that_went_on_with_a_no_is_not_done(receipts: Recorded) -> None:
    with stopcause.run("a", run_id="r2", resumes="r1", answers=["ap-1"]) as run:
        run.decided("ap-1", "denied")

    assert receipts.stopped.approvals == (
        model.Approval(approval_id="ap-1", state=ApprovalState.DECIDED, decision=Decision.DENIED),
    )
    assert verdict_of(receipts, "r2") == ("FALSE_COMPLETE", "denied")


def test_a_run_that_waits_again_does_not_wait_for_what_it_brought(receipts: Recorded) -> None:
    with stopcause.run("a", resumes="r1", answers={"ap-1": "approved"}) as run:
        run.waiting("ap-2")

    assert [each.approval_id for each in receipts.stopped.approvals or ()] == ["ap-2"]


# Nesting --------------------------------------------------------------------------------------------------------------


def test_a_framework_s_run_that_waits_still_does_where_one_begins_inside_of_it(receipts: Recorded) -> None:
    outer = capture.begin("stopcause.x", "x", "1.0").start()
    outer.waiting("ap-1")
    capture.begin("stopcause.x", "x", "1.0", parent=outer).start().end()
    outer.end()

    stopped = receipts.receipts[-1]
    assert (stopped.run_id, stopped.stop_cause) == (outer.run_id, "approval_pending")


@pytest.mark.parametrize(
    ("decision", "verdict"),
    [("approved", ("FALSE_COMPLETE", "no_contract")), ("denied", ("FALSE_COMPLETE", "denied"))],
)
def test_a_run_that_waited_for_its_answer_went_on(receipts: Recorded, decision: str, verdict: tuple[str, str]) -> None:
    with stopcause.run("a", run_id="r1") as run:
        run.waiting("ap-1", tool="refund")
        run.decided("ap-1", decision)
        if decision == "approved":
            run.executed("ap-1")

    stopped = receipts.stopped
    (approval,) = stopped.approvals or ()
    assert (stopped.stop_cause, approval.state, approval.decision) == ("natural", "decided", decision)
    assert approval.decided_at is not None
    assert stopped.answers is None
    assert verdict_of(receipts) == verdict


def test_of_two_waits_one_answer_is_not_enough(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.waiting("ap-1")
        run.waiting("ap-2")
        run.decided("ap-1", "approved")
        run.decided("ap-2", "perhaps")

    assert receipts.stopped.stop_cause == "approval_pending"
    assert [approval.state for approval in receipts.stopped.approvals or ()] == ["decided", "requested"]


def test_a_child_that_was_resumed_in_the_same_block_no_longer_waits(receipts: Recorded) -> None:
    with stopcause.run("a", run_id="r1") as run:
        for child in ("r2", "r3"):
            with run.child("b", run_id=child) as waits:
                waits.waiting(f"ap-{child}")
        with run.child("b", run_id="r4", resumes="r2", answers={"ap-r2": "approved"}):
            pass

    stopped = next(each for each in receipts.receipts if each.run_id == "r1")
    assert stopped.children is not None
    assert (stopped.children.open, stopped.children.waiting) == (0, 1)


def test_a_run_inside_a_run_is_its_child(receipts: Recorded) -> None:
    with stopcause.run("outer", thread_id="t") as outer:
        with stopcause.run("inner") as inner:
            pass
        with pytest.raises(Wrong), stopcause.run("inner"):
            raise Wrong

    stops = receipts.receipts
    assert inner.parent_run_id == outer.run_id
    assert [stop.parent_run_id for stop in stops] == [outer.run_id, outer.run_id, None]
    assert stops[-1].children == model.Children(open=0, failed=1, waiting=0)
    assert {stop.thread_id for stop in stops} == {"t"}
    assert current.get() is None


def test_a_framework_s_first_run_inside_a_block_is_that_run(receipts: Recorded) -> None:
    with stopcause.run("mine", run_id="r1"):
        run = capture.begin("stopcause.x", "x", "1.0", "theirs").start()
        run.say(StopCause.STEP_LIMIT, Rank.SIGNAL, Boundary.CALLBACK)
        run.end()
        second = capture.begin("stopcause.x", "x", "1.0", "theirs").start()
        second.end()

    child, mine = receipts.receipts
    assert (child.parent_run_id, child.agent, child.framework) == ("r1", "theirs", "x")
    assert (mine.run_id, mine.agent, mine.framework) == ("r1", "mine", "x")
    assert mine.findings == (model.Finding(code="went_on"),)
    assert mine.stop_cause == "natural"


@pytest.mark.parametrize("how", ["forced", "cut", "empty"])
def test_how_a_framework_s_first_run_ended_is_not_how_the_block_ends(receipts: Recorded, how: str) -> None:
    with stopcause.run("mine") as mine:
        mine.limit("own", "time", 60)
        run = capture.begin("stopcause.x", "x", "1.0", "theirs").start()
        run.limit("max_steps", "steps", 1)
        run.steps, run.finish = 2, Finish.LENGTH if how == "cut" else Finish.STOP
        if how == "forced":
            run.bounded("step_limit", "max_steps", "steps", limit=1, observed=1)
            run.forced_wrapup = True
        elif how == "empty":
            run.say(StopCause.EXPLICIT_DONE, Rank.SIGNAL, Boundary.CALLBACK)
            run.output_shape, run.pending_tool_calls = OutputShape.NONE, 1
        run.end()
        capture.begin("stopcause.x", "x", "1.0", "theirs").start().end()

    told = receipts.receipts[-1]
    assert (told.run_id, told.stop_cause, told.findings) == (mine.run_id, "natural", (model.Finding(code="went_on"),))
    assert [each.name for each in told.limits or ()] == ["own"]
    assert verdict_of(receipts, mine.run_id) == ("FALSE_COMPLETE", "no_contract")


def test_an_outer_timer_corrects_what_the_framework_saw(receipts: Recorded) -> None:
    with pytest.raises(TimeoutError), stopcause.run("mine"):
        run = capture.begin("stopcause.x", "x", "1.0").start()
        cancelled = asyncio.CancelledError()
        run.end(cancelled)
        raise TimeoutError from cancelled

    assert receipts.stopped.stop_cause == "time_limit"


def test_a_tool_s_own_timer_stays_the_tool_s(receipts: Recorded) -> None:
    with pytest.raises(TimeoutError), stopcause.run("mine"):
        run = capture.begin("stopcause.x", "x", "1.0").start()
        error = TimeoutError()
        error.__cause__ = asyncio.CancelledError()
        run.end(error, cause=StopCause.TOOL_FAILURE, tool="search")
        raise error

    assert receipts.stopped.stop_cause == "tool_failure"
    assert receipts.stopped.error is not None
    assert receipts.stopped.error.tool == "search"


def test_a_block_that_ends_before_its_framework_says_that_it_goes_on(receipts: Recorded) -> None:
    with stopcause.run("mine"):
        run = capture.begin("stopcause.x", "x", "1.0").start()
    run.end()

    assert receipts.stopped.children == model.Children(open=1)
    assert receipts.stopped.findings == (model.Finding(code="still_running", where="stopcause.x"),)
    assert verdict_of(receipts) == ("FALSE_COMPLETE", "open_children")
