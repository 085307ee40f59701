"""The core hook without a framework: what a run, a tracked function and a stream leave behind, and who says why."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

import stopcause
from stopcause.classifier import engine, fold
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import ConfigurationError
from stopcause.receipts import capture, model
from stopcause.receipts.causes import Rank
from stopcause.receipts.run import current
from stopcause.receipts.testing import Recorded, recorded
from stopcause.receipts.vocabulary import ApprovalState, Boundary, Decision, StopCause


@pytest.fixture
def receipts() -> Iterator[Recorded]:
    with recorded() as found:
        yield found


class Wrong(Exception):  # noqa: N818 - it is only raised to be caught
    """An error of the host's own."""


def verdict_of(found: Recorded, run_id: str | None = None) -> tuple[str | None, str | None]:
    records = found.records
    runs = fold.group(records)
    run = runs[run_id or records[0].run_id]  # type: ignore[union-attr]
    now = max(record.at for record in records)
    facts = fold.facts_of(run, run.latest, DEFAULT_POLICY, now, engine.resumers_of(run, runs.values()))
    verdict = engine.judge(facts)
    return verdict.verdict, verdict.reason


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


def test_a_cause_that_is_none_is_found_and_not_taken(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.stop("because")

    assert receipts.stopped.stop_cause == "natural"
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


# Functions and streams ------------------------------------------------------------------------------------------------


def test_a_tracked_function_of_every_kind_is_a_run(receipts: Recorded) -> None:
    @stopcause.tracked
    def plain(value: int) -> int:
        return value

    @stopcause.tracked(agent="named", thread_id="t")
    async def coroutine(value: int) -> int:
        return value

    @stopcause.tracked
    def stream() -> Iterator[int]:
        assert stopcause.current_run() is not None
        yield from (1, 2)

    @stopcause.tracked
    async def async_stream() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def read() -> list[int]:
        return [each async for each in async_stream()]

    assert (plain(1), asyncio.run(coroutine(2)), list(stream()), asyncio.run(read())) == (1, 2, [1, 2], [1, 2])
    assert [(stop.agent, stop.stop_cause) for stop in receipts.receipts] == [
        ("plain", "natural"),
        ("named", "natural"),
        ("stream", "natural"),
        ("async_stream", "natural"),
    ]


def test_a_stream_that_its_reader_closes_is_an_abort(receipts: Recorded) -> None:
    ended: list[str] = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            ended.append("finally")

    stream = stopcause.wrap_stream(numbers(), "a")
    assert next(stream) == 1
    assert current.get() is None
    stream.close()

    assert ended == ["finally"]
    assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("caller_abort", "reader_left")


def test_a_stream_that_is_dropped_is_closed_when_it_is_collected(receipts: Recorded) -> None:
    stream = stopcause.wrap_stream(iter((1, 2)), "a")
    next(stream)
    del stream
    gc.collect()

    assert (receipts.stopped.reason_code, receipts.stopped.closed_by) == ("reader_left", "garbage_collection")


def test_a_stream_that_nobody_reads_is_no_run(receipts: Recorded) -> None:
    stopcause.wrap_stream(iter((1, 2)), "a")
    gc.collect()

    assert receipts.records == []


def test_an_async_stream_that_is_finalised_in_another_context(receipts: Recorded) -> None:
    @stopcause.tracked
    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def main() -> None:
        stream = numbers()
        await asyncio.create_task(anext(stream))  # type: ignore[arg-type]  # a coroutine
        await asyncio.create_task(stream.aclose())  # type: ignore[attr-defined]

    asyncio.run(main())

    assert receipts.stopped.stop_cause == "caller_abort"


def echo() -> Generator[Any, Any, str]:
    said = yield "ready"
    try:
        yield said
    except Wrong:
        yield "caught"
    return "returned"


async def async_echo() -> AsyncGenerator[Any, Any]:
    said = yield "ready"
    try:
        yield said
    except Wrong:
        yield "caught"


@pytest.mark.parametrize("wrap", [lambda: stopcause.wrap_stream(echo(), "a"), stopcause.tracked(echo)])
def test_a_generator_keeps_what_generators_do(receipts: Recorded, wrap: Callable[[], Generator[Any, Any, str]]) -> None:
    stream = wrap()

    assert next(stream) == "ready"
    assert stream.send("hello") == "hello"
    assert stream.throw(Wrong()) == "caught"
    with pytest.raises(StopIteration) as ended:
        next(stream)
    assert ended.value.value == "returned"
    assert receipts.stopped.stop_cause == "natural"


@pytest.mark.parametrize("wrap", [lambda: stopcause.wrap_stream(async_echo(), "a"), stopcause.tracked(async_echo)])
def test_an_async_generator_keeps_what_they_do(
    receipts: Recorded, wrap: Callable[[], AsyncGenerator[Any, Any]]
) -> None:
    async def main() -> None:
        stream = wrap()
        assert await anext(stream) == "ready"
        assert await stream.asend("hello") == "hello"
        assert await stream.athrow(Wrong()) == "caught"
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(main())

    assert receipts.stopped.stop_cause == "natural"


def test_a_tracked_function_stays_what_it_was_to_those_who_look() -> None:
    async def coroutine() -> None: ...

    assert inspect.isgeneratorfunction(stopcause.tracked(echo))
    assert inspect.isasyncgenfunction(stopcause.tracked(async_echo))
    assert inspect.iscoroutinefunction(stopcause.tracked(coroutine))
    assert stopcause.tracked(echo).__name__ == "echo"
    assert inspect.signature(stopcause.tracked(verdict_of)) == inspect.signature(verdict_of)


# Values ---------------------------------------------------------------------------------------------------------------


def test_ids_of_the_host_may_be_uuids_numbers_or_sentences(receipts: Recorded) -> None:
    with stopcause.run("a", run_id=uuid.UUID(int=7), thread_id=42):  # type: ignore[arg-type]  # what hosts do
        pass
    with stopcause.run("a", run_id="the user's own words", thread_id="and more of them"):
        pass

    first, second = receipts.receipts
    assert (first.run_id, first.thread_id) == (str(uuid.UUID(int=7)), "42")
    assert second.run_id.startswith("hmac:")
    assert (second.thread_id or "").startswith("hmac:")
    assert b"words" not in b"".join(receipts.lines)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run.limit("max", "steps", "five"),
        lambda run: run.limit("max", "no_kind", 5),
        lambda run: run.condition("max", "steps", fired="yes", limit=float("nan")),
        lambda run: run.step(tool_calls="two"),
        lambda run: run.step(input_tokens=float("nan"), output_tokens=None),
        lambda run: run.step(cost_usd=float("inf")),
        lambda run: run.waiting(object(), tool=object()),
        lambda run: run.waiting("a b c", kind="no_kind"),
        lambda run: run.resumed("r0", 5),
        lambda run: run.resumed("r0", {"ap": "perhaps"}),
        lambda run: run.progress("no_sign"),
        lambda run: setattr(run, "steps", -1),
        lambda run: setattr(run, "model", "a sentence that is no model's name, but somebody's canary"),
        lambda run: run.step(finish="a sentence with a canary"),
        lambda run: setattr(run, "labels", "canary"),
        lambda run: setattr(run, "input_tokens", object()),
        lambda run: run.find("no identifier at all, a canary", None),
        lambda run: run.say(StopCause.GUARDRAIL, Rank.SIGNAL, Boundary.CALLBACK, reason="the canary said no"),
    ],
)
def test_a_value_that_cannot_be_used_costs_only_itself(receipts: Recorded, spoil: Callable[[Any], None]) -> None:
    with stopcause.run("a", run_id="r1") as run:
        run.step()
        spoil(run)

    stopped = receipts.stopped
    assert stopped.run_id == "r1"
    assert stopped.findings, "what was left out has to be found"
    assert b"canary" not in b"".join(receipts.lines)


def test_a_parameter_that_there_is_not_costs_only_itself_and_is_said(
    receipts: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    with stopcause.run("a") as run:
        run.step(tools=1)
        run.bounded("no_cause", "max", "steps")
        run.waiting("ap-1", owner="team:pay", due_s=1800, resume_token="t-1")  # type: ignore[call-arg]

    stopped = receipts.stopped
    assert [(each.approval_id, each.owner) for each in stopped.approvals or ()] == [("ap-1", "team:pay")]
    assert (stopped.stop_cause, stopped.steps) == ("approval_pending", 1)
    assert {each.where for each in stopped.findings or ()} == {"step.tools", "bounded.cause", "waiting.due_s"}
    assert "waiting() has no due_s; the rest of the call holds" in caplog.text


def test_what_was_refused_is_named_with_its_hook(receipts: Recorded) -> None:
    run = capture.begin("stopcause.x", "x", "1.0").start()
    run.steps = -1
    run.waits = ({"approval_id": 5, "kind": "tool_call", "tool": None, "at_ns": 1},)
    run.end()

    stopped = receipts.stopped
    assert (stopped.steps, stopped.approvals) == (None, ())
    assert {finding.where for finding in stopped.findings or ()} == {
        "stopcause.x:steps",
        "stopcause.x:approvals.0.approval_id",
        "stopcause.x:approvals.0",
    }


# Around it ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sink": 5}, "sink"),
        ({"service": "two words are turned, but this is far too long for a name " * 3}, "service"),
        ({"environment": "not one"}, "environment"),
        ({"labels": {"team": "two words"}}, "labels.team"),
        ({"labels": {str(i): "x" for i in range(9)}}, "labels"),
        ({"label_keys": "team"}, "label_keys"),
        ({"route": {"owner": "two words"}}, "route.owner"),
        ({"route": {"oner": "x"}}, "route.oner"),
        ({"route": [{"owner": "x"}, {"due_s": "5m"}]}, "route[1].due_s"),
        ({"route": {"kind": "tools"}}, "route.kind"),
        ({"approval_keys": {"prompt": "x"}}, "approval_keys.prompt"),
        ({"validators": {"c": True}}, "validators.c"),
        ({"lease_s": 0}, "lease_s"),
        ({"queue_max": 1.5}, "queue_max"),
    ],
)
def test_a_wrong_configuration_is_refused_at_once_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^configure: {named.replace('[', '.').replace(']', '.')} must be"):
        stopcause.configure(**options)


def test_labels_are_the_configured_ones_and_the_allowed_ones() -> None:
    with recorded(labels={"region": "eu"}, label_keys=["team"]) as found:
        with stopcause.run("a", labels={"team": "billing", "prompt": "canary"}):
            pass

        assert found.stopped.labels == {"region": "eu", "team": "billing"}


@pytest.mark.parametrize("word", ["1", "true", "all", "langgraph, 1"])
def test_turned_off_it_records_nothing(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as found:
        with stopcause.run("a") as run:
            run.step()
            run.progress()
            run.outcome("o1")
            run.waiting("ap-1")

        assert found.lines == []
        assert run.run_id


def test_a_receipt_knows_its_trace_and_marks_the_span_without_its_status(receipts: Recorded) -> None:
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("invoke_agent") as span, stopcause.run("a") as run:
        run.step()

    context = span.get_span_context()
    assert receipts.stopped.trace_id == f"{context.trace_id:032x}"
    assert receipts.stopped.span_id == f"{context.span_id:016x}"
    assert dict(span.attributes or {}) == {"stopcause.stop.cause": "natural", "stopcause.step.count": 1}  # type: ignore[attr-defined]
    assert span.status.is_unset  # type: ignore[attr-defined]


def test_progress_is_recorded_at_most_once_in_ten_seconds(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        for _ in range(5):
            run.progress("tool_result")

    kinds = [json.loads(line)["kind"] for line in receipts.lines]
    assert kinds == ["run.started", "run.progress", "run.stopped"]
    assert receipts.stopped.progress is not None
    assert receipts.stopped.progress.made is True


def test_an_open_run_gives_signs_of_life_while_something_drives_it() -> None:
    with recorded(lease_s=0.3) as found:
        with stopcause.run("driven"):
            stream = stopcause.wrap_stream(iter((1, 2)), "unread")
            next(stream)
            threading_wait(lambda: any(b"heartbeat" in line for line in found.lines))
        stream.close()

        alive = {json.loads(line)["run_id"] for line in found.lines if b"heartbeat" in line}
        agents = {
            json.loads(line)["run_id"]: json.loads(line)["agent"] for line in found.lines if b"run.started" in line
        }
        assert {agents[run_id] for run_id in alive} == {"driven"}


def threading_wait(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
