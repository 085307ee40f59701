"""Odd exceptions and odd values around the core hook: the host's goes on as it was, and the receipt still comes."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import threading
import uuid
import weakref
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import stopcause
from stopcause.errors import InputError
from stopcause.receipts import capture, pseudonyms, records, streams
from stopcause.receipts.causes import Rank
from stopcause.receipts.run import Run, current
from stopcause.receipts.testing import MemorySink, Recorded, recorded
from stopcause.receipts.vocabulary import Boundary, StopCause
from stopcause.receipts.writer import Writer

# Exceptions -----------------------------------------------------------------------------------------------------------


class IncomparableError(Exception):
    __hash__ = None  # type: ignore[assignment]  # as a class with `__eq__` has it

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no two of us are compared")


class LyingError(Exception):
    @property  # type: ignore[misc]  # the point
    def __class__(self) -> type:
        raise RuntimeError("I am nobody")


class LoudError(Exception):
    @property
    def status_code(self) -> int:
        raise RuntimeError("not your business")


NOWHERE = type("Nowhere", (Exception,), {"__module__": None})


@pytest.mark.parametrize("kind", [IncomparableError, LyingError, LoudError, NOWHERE])
def test_an_exception_of_an_odd_class_leaves_the_block_as_it_came(receipts: Recorded, kind: type[Exception]) -> None:
    error = kind("x")
    error.__cause__ = kind("y")

    assert leaving(error) is error
    assert error.__context__ is None
    assert receipts.stopped.stop_cause == "host_error"


def leaving(error: Exception) -> Exception:
    """What leaves a block that this leaves. `pytest.raises` would ask it for its class."""
    try:
        with stopcause.run("a"):
            raise error  # noqa: TRY301 - it has to leave from in here
    except Exception as left:  # noqa: BLE001 - whatever it is
        return left


def named(package: str, name: str, base: type[BaseException] = Exception) -> Any:  # noqa: ANN401 - a class
    return type(name, (base,), {"__module__": f"{package}.errors"})


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (named("trio", "Cancelled", BaseException), "caller_abort"),
        (named("greenlet", "GreenletExit", BaseException), "caller_abort"),
        (named("trio", "TooSlowError"), "time_limit"),
        (named("billiard", "SoftTimeLimitExceeded"), "time_limit"),
        (named("mine", "SoftTimeLimitExceeded"), "host_error"),
    ],
)
def test_cancellations_and_timers_that_are_not_asyncio_s(
    receipts: Recorded, kind: type[BaseException], cause: str
) -> None:
    with pytest.raises(kind), stopcause.run("a"):
        raise kind

    assert receipts.stopped.stop_cause == cause


def test_a_cancellation_may_have_come_from_what_was_waited_for(receipts: Recorded) -> None:
    """As Temporal raises it out of an activity; in anybody else's exception it is no more than where that came from."""
    cancelled = named("temporalio", "CancelledError")
    for package, cause in (("temporalio", cancelled()), ("temporalio", ValueError()), ("mine", cancelled())):
        with pytest.raises(Exception, match="x"), stopcause.run("a"):
            raise named(package, "ActivityError")("x") from cause

    assert [stopped.stop_cause for stopped in receipts.receipts] == ["caller_abort", "host_error", "host_error"]


def test_a_cloud_s_error_is_a_model_s_only_where_it_was_about_one(receipts: Recorded) -> None:
    own = type("OurError", (named("openai", "APIError"),), {})
    bedrock, bucket = named("botocore", "ClientError")("x"), named("botocore", "ClientError")("x")
    bedrock.operation_name, bucket.operation_name = "Converse", "GetObject"
    for error in (own("x"), bedrock, bucket, named("google.genai", "APIError")(), named("google.cloud", "NotFound")()):
        with pytest.raises(type(error)), stopcause.run("a"):
            raise error

    causes = [stopped.stop_cause for stopped in receipts.receipts]
    assert causes == ["model_failure", "model_failure", "host_error", "model_failure", "host_error"]


def test_a_provider_s_class_may_be_a_bound(receipts: Recorded) -> None:
    for package in ("openai", "mine"):
        with pytest.raises(Exception, match="x"), stopcause.run("a"):
            raise named(package, "LengthFinishReasonError")("x")

    assert [stopped.stop_cause for stopped in receipts.receipts] == ["output_cap", "host_error"]


def test_a_code_is_a_provider_s_and_nobody_else_s(receipts: Recorded) -> None:
    for package in ("openai", "shop"):
        error = named(package, "CouponError")("x")
        error.code = "canary7f3a"
        with pytest.raises(type(error)), stopcause.run("a"):
            raise error

    first, second = (stopped.error for stopped in receipts.receipts)
    assert first is not None
    assert second is not None
    assert (first.code, second.code) == ("canary7f3a", None)


def test_a_group_is_what_came_first_in_it(receipts: Recorded) -> None:
    limited = named("openai", "RateLimitError")("x")
    limited.status_code = 429
    with pytest.raises(ExceptionGroup), stopcause.run("a"):
        raise ExceptionGroup("all of them", [limited, ValueError("y")])

    stopped = receipts.stopped
    assert stopped.stop_cause == "quota"
    assert stopped.error is not None
    assert (stopped.error.chain, stopped.error.status) == (("ExceptionGroup", "RateLimitError"), 429)


# Values ---------------------------------------------------------------------------------------------------------------


def test_a_wait_is_never_lost_with_its_id_or_its_kind(receipts: Recorded) -> None:
    for odd in (7, "", b"x", ["x"], object()):
        with stopcause.run("a") as run:
            run.waiting(odd, kind=odd, tool=odd)  # type: ignore[arg-type]  # what hosts do

    for stopped in receipts.receipts:
        assert stopped.stop_cause == "approval_pending"
        assert len(stopped.approvals or ()) == 1
        assert stopped.findings


def test_a_wait_that_is_said_twice_is_one(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.waiting("ap-1")
        run.waiting("ap-1", owner="team:pay")

    (approval,) = receipts.stopped.approvals or ()
    assert approval.owner == "team:pay"


def test_names_that_are_no_text_match_no_route() -> None:
    with recorded(route={"agent": "x*", "tool": "y*", "owner": "team:a"}) as found:
        with stopcause.run(5) as run:  # type: ignore[arg-type]  # what hosts do
            run.waiting("ap-1", tool=6)  # type: ignore[arg-type]

        (approval,) = found.stopped.approvals or ()
        assert approval.owner is None


def test_one_answer_may_be_given_without_a_list(receipts: Recorded) -> None:
    with stopcause.run("a", resumes=5, answers="ap-1"):  # type: ignore[arg-type]  # an id may be a number
        pass

    assert (receipts.stopped.resumes_run_id, receipts.stopped.answers) == ("5", ("ap-1",))


def test_what_a_step_cannot_use_costs_nothing_else_of_it(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.step(tool_calls="3", model_calls=2, cost_usd="4", input_tokens=4, finish="length")  # type: ignore[arg-type]
        run.step(finish=5)  # type: ignore[arg-type]

    stopped = receipts.stopped
    assert (stopped.stop_cause, stopped.steps, stopped.model_calls, stopped.tool_calls) == ("output_cap", 2, 3, 0)
    assert stopped.usage is not None
    assert stopped.usage.input_tokens == 4
    assert {finding.where for finding in stopped.findings or ()} == {"tool_calls", "cost_usd", "finish"}


def test_a_bound_with_a_cause_that_is_none_is_found(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        run.bounded("no_cause", "max", "steps", limit=1, observed=1)

    assert receipts.stopped.stop_cause == "natural"
    assert receipts.stopped.findings


def test_the_host_s_word_counts_without_its_error_and_after_any_number_of_others(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        for _ in range(2000):
            run.say(StopCause.GUARDRAIL, Rank.SIGNAL, Boundary.CALLBACK)
        run.stop("quota", error="no exception")  # type: ignore[arg-type]

    stopped = receipts.stopped
    assert (stopped.stop_cause, stopped.subsequent_causes) == ("quota", ("guardrail",))


def test_a_child_takes_what_a_run_takes_and_nothing_else(receipts: Recorded) -> None:
    with stopcause.run("a") as run, run.child("b", run_id="r2", thread_id=7, answers=["ap-1"], said=5, steps="x"):
        pass

    stopped = next(each for each in receipts.receipts if each.run_id == "r2")
    assert (stopped.thread_id, stopped.answers, stopped.stop_cause) == ("7", ("ap-1",), "natural")
    assert {finding.where for finding in stopped.findings or ()} == {"said", "steps"}


# One word everywhere --------------------------------------------------------------------------------------------------


def test_a_parent_hears_the_cause_that_the_receipt_says(receipts: Recorded) -> None:
    with stopcause.run("a", run_id="r1"), stopcause.run("b") as child:
        child.step(finish="content_filter")

    stopped = next(each for each in receipts.receipts if each.run_id == "r1")
    assert stopped.children is not None
    assert stopped.children.failed == 1


def test_a_span_says_what_the_receipt_says_and_no_prose(receipts: Recorded) -> None:
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("invoke_agent") as span, stopcause.run("a") as run:
        run.step(finish="length")
        run.steps = "a canary in a number"  # type: ignore[assignment]
        run.say(StopCause.NATURAL, Rank.RETURNED, Boundary.CALL, reason="a canary in a reason")

    assert receipts.stopped.stop_cause == "output_cap"
    assert dict(span.attributes or {}) == {"stopcause.stop.cause": "output_cap"}  # type: ignore[attr-defined]


class OddSpan(trace.NonRecordingSpan):
    def __init__(self) -> None:
        pass

    def is_recording(self) -> bool:
        raise RuntimeError("who asks?")

    def get_span_context(self) -> trace.SpanContext:
        raise RuntimeError("nowhere")


def test_a_span_of_an_odd_tracer_costs_only_the_trace(receipts: Recorded) -> None:
    with trace.use_span(OddSpan()), stopcause.run("a"):
        pass

    assert receipts.stopped.stop_cause == "natural"
    assert receipts.stopped.trace_id is None


def test_a_state_that_is_copied_with_its_run_in_it_goes_on_with_the_same(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        for copied in (copy.copy(run), copy.deepcopy({"run": run})["run"]):
            copied.step()

    assert receipts.stopped.steps == 2


# Ends that come twice -------------------------------------------------------------------------------------------------


def test_a_framework_s_stream_that_is_closed_after_its_end_does_not_end_the_host_s_block(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        stream = streams.Stream(iter("ab"), capture.begin("stopcause.x", "x", "1.0"))
        assert list(stream) == ["a", "b"]
        stream.close()
        del stream
        run.step()

    assert (receipts.stopped.stop_cause, receipts.stopped.steps) == ("natural", 1)


def test_a_run_that_is_entered_twice_leaves_the_context_as_it_was(receipts: Recorded) -> None:
    with stopcause.run("outer") as outer:
        inner = stopcause.run("inner")
        with inner, inner:
            pass
        assert current.get() is outer
        with inner:
            assert current.get() is inner
        assert current.get() is outer

    kinds = [json.loads(line)["kind"] for line in receipts.lines]
    assert kinds == ["run.started"] * 2 + ["run.stopped"] * 2
    assert b'"code":"run_reused"' in b"".join(receipts.lines)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(Run, "say"), (Run, "_raised"), (Run, "_mark"), (Run, "_tell_parent"), (Writer, "started"), (Writer, "stopped")],
)
def test_a_fault_of_ours_is_never_the_host_s(
    receipts: Recorded, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("ours")

    with stopcause.run("outer"):
        monkeypatch.setattr(owner, name, broken)
        wrong = ValueError("the host's")
        with pytest.raises(ValueError, match="the host's") as caught, stopcause.run("a"):
            raise wrong
        assert caught.value is wrong
        assert wrong.__context__ is None
        monkeypatch.undo()

    if owner is Run:
        assert [stopped.agent for stopped in receipts.receipts] == ["a", "outer"]


def test_a_tracer_that_fails_costs_only_the_trace(receipts: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> trace.Span:
        raise RuntimeError("no context here")

    monkeypatch.setattr(trace, "get_current_span", broken)
    with stopcause.run("a"):
        pass

    assert len(receipts.lines) == 2


# The thread behind ----------------------------------------------------------------------------------------------------


class OddSink(MemorySink):
    """Answers what no sink should, or ends the program's thread the first time."""

    def __init__(self, answer: Any) -> None:  # noqa: ANN401 - the point
        super().__init__()
        self.answer = answer

    def write(self, lines: Sequence[bytes]) -> Any:  # noqa: ANN401
        if self.answer is SystemExit:
            self.answer = None
            raise SystemExit(3)
        super().write(lines)
        return self.answer


@pytest.mark.parametrize("answer", ["two", -1, True, 2.5, [], SystemExit])
def test_whatever_a_sink_answers_the_thread_goes_on(answer: object) -> None:
    sink = OddSink(answer)
    with capture.configured(sink=sink):
        for _ in range(3):
            with stopcause.run("a"):
                pass
            assert capture.flush(5)

    assert len(sink.lines) == 6
    assert b"dropped" not in b"".join(sink.lines)


def test_what_breaks_the_receipt_and_what_stands_for_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("ours")

    with recorded() as found:
        monkeypatch.setattr(records, "_head", broken)
        with stopcause.run("lost"):
            pass
        assert found.lines == []
        monkeypatch.undo()
        with stopcause.run("a"):
            pass

        assert json.loads(found.lines[0])["dropped"] == 2


def test_runs_that_are_forgotten_are_let_go(receipts: Recorded) -> None:
    for _ in range(50):
        stopcause.run("a").start()
    forgotten = weakref.ref(stopcause.run("a").start())
    assert len(receipts.lines) == 51
    gc.collect()

    assert forgotten() is None


def test_a_collection_while_the_thread_is_started_may_end_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Thread
    with recorded() as found:
        stream = stopcause.wrap_stream(iter("ab"), "a")

        def thread(*args: Any, **options: Any) -> threading.Thread:  # noqa: ANN401 - as a thread's
            stream.close()  # as `__del__` does
            return begun(*args, **options)

        stream._run.start = lambda: stream._run
        stream._run.is_started = True
        monkeypatch.setattr(threading, "Thread", thread)
        done = begun(target=lambda: stopcause.run("b").start().close(), daemon=True)
        done.start()
        done.join(5)

        assert not done.is_alive()
        assert {receipt.agent for receipt in found.receipts} == {"a", "b"}


# Anything at all ------------------------------------------------------------------------------------------------------

ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - a moment nowhere
ODD: st.SearchStrategy[Any] = st.sampled_from(
    (
        None, "", "a canary, of prose", "half \ud800 canary", "ok", "x" * 300, "tool_call", "steps", b"x",
        0, -1, 2**70, 10**5000, 1.5, float("nan"), True, Rank.HOST, StopCause.QUOTA, uuid.UUID(int=1), NAIVE, UTC,
        (), [], ["x"], {}, {"x": "y"}, {1: [2]}, ENDLESS, object(), ValueError("canary"),
    )
)  # fmt: skip
METHODS = ("step", "limit", "condition", "progress", "waiting", "resumed", "decided", "executed", "outcome", "stop")
ATTRIBUTES = ("agent", "model", "labels", "steps", "step_unit", "contract", "in_flight_tools", "closed_by")


def parameters(method: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(method).parameters if name != "self"]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_a_host_says_there_is_one_start_and_one_receipt(data: st.DataObject) -> None:
    odd: dict[str, Any] = {name: data.draw(ODD) for name in parameters(stopcause.run) if data.draw(st.booleans())}
    with recorded(label_keys=["x"], approval_keys={"owner": "x"}, route={"tool": "t*", "owner": "o"}) as found:
        with stopcause.run(**odd) as run:
            for name in data.draw(st.lists(st.sampled_from(METHODS), max_size=6)):
                method = getattr(run, name)
                method(**{each: data.draw(ODD) for each in parameters(method)})
            for name in data.draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=3)):
                setattr(run, name, data.draw(ODD))

        kinds = [json.loads(line)["kind"] for line in found.lines]
        assert (kinds.count("run.started"), kinds.count("run.stopped")) == (1, 1)
        assert b"canary" not in b"".join(found.lines)


def test_a_receipt_that_is_too_long_for_a_line_still_says_that_it_is_over_and_why(receipts: Recorded) -> None:
    with stopcause.run("a", run_id="r1") as run:
        for number in range(1000):
            run.waiting(f"{number:0200}", resume_token="x" * 200, tool_call_id="y" * 200, owner="z" * 200)
            run.condition(f"{number:0200}", "steps", fired=False)

    stopped = receipts.stopped
    assert (stopped.run_id, stopped.agent, stopped.stop_cause) == ("r1", "a", "approval_pending")
    assert {finding.code for finding in stopped.findings or ()} == {"receipt_incomplete"}


def test_without_a_key_for_hashes_persons_are_left_out_and_the_receipt_comes(
    receipts: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_key() -> bytes:
        raise InputError("this user has no home folder")

    monkeypatch.setattr(pseudonyms, "hmac_key", no_key)
    pseudonyms.pseudonym.cache_clear()
    with stopcause.run("a", thread_id="ann@example.com", subject="two words") as run:
        run.waiting("ap-1", owner="bob@example.com")

    stopped = receipts.stopped
    assert (stopped.thread_id, stopped.subject, stopped.stop_cause) == (None, None, "approval_pending")
    assert len(stopped.findings or ()) == 3
    assert b"example.com" not in b"".join(receipts.lines)
