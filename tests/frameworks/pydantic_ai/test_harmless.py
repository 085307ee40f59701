"""Runs are the same with the hook and without: what comes back, what is raised or streamed, and in which order."""

# ruff: noqa: ARG002 - whatever the framework gives is compared; its signatures are as they are
from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, capabilities, exceptions
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.usage import UsageLimits

import stopcause
from stopcause.receipts import capture, testing
from stopcause.receipts.hooks.pydantic_ai import runs as pydantic_ai_runs
from stopcause.receipts.notes import Notes
from stopcause.receipts.run import Run, current
from tests.frameworks.harness import Scripted
from tests.frameworks.pydantic_ai.agents import PROMPT, Answer, agent, waiting
from tests.frameworks.pydantic_ai.models import calls, forever, http, text

_mark: ContextVar[str] = ContextVar("mark", default="outside")


async def _result() -> Any:
    result = await agent(calls("look_up"), text()).run(PROMPT)
    return result.output, [[type(part) for part in message.parts] for message in result.all_messages()], result.usage


async def _structured() -> Any:
    return (await agent(calls("final_result", order="A-7"), output=Answer).run(PROMPT)).output


async def _deferred() -> Any:
    return (await waiting(calls("pay")).run(PROMPT)).output


async def _stream() -> Any:
    async with agent(calls("look_up"), text("one two")).run_stream(PROMPT) as stream:
        return [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]


async def _left() -> Any:
    async with agent(text("one two")).run_stream(PROMPT) as stream:
        return await anext(stream.stream_text(delta=True, debounce_by=None))


async def _events() -> Any:
    async with agent(calls("look_up"), text()).run_stream_events(PROMPT) as events:
        return [type(event) async for event in events]


async def _nodes() -> Any:
    async with agent(calls("look_up"), text()).iter(PROMPT) as run:
        nodes = [type(node) async for node in run]
    return nodes, type(run)


async def _tool_raises() -> Any:
    await agent(calls("breaks")).run(PROMPT)


async def _model_fails() -> Any:
    await agent(http(500)).run(PROMPT)


async def _limited() -> Any:
    await agent(calls("look_up")).run(PROMPT, usage_limits=UsageLimits(request_limit=1))


async def _cancelled() -> Any:
    task = asyncio.create_task(agent(forever).run(PROMPT))
    await asyncio.sleep(0.05)
    task.cancel("by the caller")
    await task


async def _timed_out() -> Any:
    async with asyncio.timeout(0.05):
        await agent(calls("hangs")).run(PROMPT)


async def _refused() -> Any:
    await Agent().run(PROMPT)


async def _wrong_option() -> Any:
    agent(text()).iter(PROMPT, no_such_option=1)


async def _order() -> Any:
    """Hooks of a capability of the host's, tools of one answer, and a context variable, in their order."""
    order: list[str] = []

    class Noting(capabilities.AbstractCapability[None]):
        async def before_run(self, ctx: Any) -> None:
            _mark.set("inside")
            order.append("before_run")

        async def after_run(self, ctx: Any, *, result: Any) -> Any:
            order.append("after_run")
            return result

        async def wrap_tool_execute(self, ctx: Any, *, handler: Any, args: Any, **rest: Any) -> Any:
            order.append("before " + ctx.tool_name)
            result = await handler(args)
            order.append("after " + ctx.tool_name)
            return result

    made = agent(calls("look_up", "seen"), text(), capabilities=[Noting()])

    @made.tool_plain
    async def seen() -> str:
        return _mark.get()

    async with made.iter(PROMPT) as run:
        async for _ in run:
            pass
    return order, _mark.get(), [part.content for message in run.all_messages() for part in message.parts[1:]]


async def _wrapper() -> Any:
    return (await WrapperAgent(agent(text())).run(PROMPT)).output


async def _decorator() -> Any:
    @agent(text()).iter(PROMPT)
    async def inside() -> str:
        return "ran"

    return await inside()


ACTS = [
    _result, _structured, _deferred, _stream, _left, _events, _nodes, _tool_raises, _model_fails, _limited, _cancelled,
    _timed_out, _refused, _wrong_option, _order, _wrapper, _decorator,
]  # fmt: skip


def _seen(act: Callable[[], Any]) -> Any:
    """What a program sees of it."""
    try:
        return "returned", asyncio.run(act())
    except BaseException as error:  # noqa: BLE001 - also a cancellation is compared
        chain = [type(error), type(error.__cause__), type(error.__context__)]
        return "raised", chain, error.args, [type(note) for note in getattr(error, "__notes__", [])]


@pytest.fixture
def hooked() -> Iterator[testing.Recorded]:
    with _hook() as receipts:
        yield receipts


@contextlib.contextmanager
def _hook(**options: Any) -> Iterator[testing.Recorded]:
    with testing.recorded(**options) as receipts:
        stopcause.instrument("pydantic_ai")
        try:
            yield receipts
        finally:
            stopcause.uninstrument()


@pytest.mark.parametrize("act", ACTS)
def test_a_program_sees_the_same(act: Callable[[], Any]) -> None:
    before = _seen(act)
    with _hook() as receipts:
        assert _seen(act) == before
        assert bool(receipts.lines) is (act is not _wrong_option)
    assert _seen(act) == before


@pytest.mark.parametrize("act", ACTS)
def test_a_hook_that_fails_changes_nothing(act: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    before = _seen(act)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    for owner, name in ((Notes, "say"), (Notes, "raised"), (Notes, "progress"), (Notes, "limit"), (Run, "end")):
        monkeypatch.setattr(owner, name, fail)
    with _hook():
        assert _seen(act) == before


def test_a_sink_that_raises_or_hangs_changes_nothing() -> None:
    class Bad(testing.MemorySink):
        def write(self, lines: Any) -> None:
            time.sleep(0.2)
            raise OSError(28, "full")

    before = _seen(_result)
    with capture.configured(sink=Bad()):
        stopcause.instrument("pydantic_ai")
        began = time.monotonic()
        assert _seen(_result) == before
        assert time.monotonic() - began < 2.0
        stopcause.uninstrument()


def test_the_same_exception_comes_out(hooked: testing.Recorded) -> None:
    error = Scripted("the very same")
    made = agent(calls("raises"))

    @made.tool_plain
    async def raises() -> str:
        raise error

    with pytest.raises(Scripted) as caught:
        made.run_sync(PROMPT)
    assert caught.value is error
    assert hooked.stopped.stop_cause == "tool_failure"


def test_the_context_is_given_back(hooked: testing.Recorded) -> None:
    async def run() -> None:
        async with agent(text()).iter(PROMPT) as made:
            assert current.get() is not None
            async for _ in made:
                pass
        assert current.get() is None

    asyncio.run(run())
    assert hooked.stopped.stop_cause == "natural"


def test_the_framework_is_given_back() -> None:
    before = Agent.__dict__["iter"], ToolManager.__dict__["execute_tool_call"]
    signature = inspect.signature(Agent.iter)
    stopcause.instrument("pydantic_ai")
    assert Agent.__dict__["iter"] is not before[0]
    assert inspect.signature(Agent.iter) == signature
    stopcause.uninstrument()
    assert (Agent.__dict__["iter"], ToolManager.__dict__["execute_tool_call"]) == before


@pytest.mark.parametrize("value", ["1", "pydantic_ai", "langgraph,pydantic_ai"])
def test_it_can_be_turned_off(value: str, monkeypatch: pytest.MonkeyPatch, hooked: testing.Recorded) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", value)
    assert agent(text()).run_sync(PROMPT).output
    assert not hooked.lines


def test_a_hook_that_keeps_failing_turns_itself_off(monkeypatch: pytest.MonkeyPatch, hooked: testing.Recorded) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("stopcause.receipts.hooks.pydantic_ai.messages.read", fail)
    for _ in range(25):
        agent(text()).run_sync(PROMPT)
    codes = {finding.code for record in hooked.records for finding in record.findings or ()}
    assert {"hook_failed", "hook_off"} <= codes
    assert 20 <= len(hooked.receipts) < 25  # what it had begun, it ended


@pytest.mark.parametrize("act", [_result, _tool_raises, _left, _deferred])
@pytest.mark.parametrize("place", ["read", "numbers"])
def test_a_run_whose_end_cannot_be_read_is_over(act: Any, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    owner = {"read": "pydantic_ai.messages.read", "numbers": "pydantic_ai.runs._numbers"}[place]
    monkeypatch.setattr(f"stopcause.receipts.hooks.{owner}", fail)
    with _hook() as receipts:
        _seen(act)
        stopped = receipts.stopped
    assert stopped.stop_cause == "unknown"
    assert ("hook_failed", "stopcause.pydantic_ai:end") in [(each.code, each.where) for each in stopped.findings or ()]


def test_a_limit_that_is_no_number_is_found_and_left_out(hooked: testing.Recorded) -> None:
    wrong: Any = "5"
    with pytest.raises(TypeError):
        agent(text()).run_sync(PROMPT, usage_limits=UsageLimits(request_limit=wrong, tool_calls_limit=3))
    stopped = hooked.stopped
    assert stopped.stop_cause == "host_error"
    assert [limit.name for limit in stopped.limits or ()] == ["tool_calls_limit"]
    found = [(each.code, each.where) for each in stopped.findings or ()]
    assert found == [("shape_changed", "stopcause.pydantic_ai:usage_limits.request_limit")]


def test_an_address_that_is_used_again_is_no_fault_of_the_tool() -> None:
    def marked(raising: Callable[[], Any]) -> Any:
        try:
            raising()
        except ValueError as error:
            return pydantic_ai_runs._mark_of(error)  # and the exception is gone

    def tool() -> None:
        raise ValueError

    def model() -> None:
        raise ValueError

    first, second = marked(tool), marked(model)
    assert first[:2] == second[:2]  # an exception of the same class at the same address
    assert first != second


def test_agents_that_are_instrumented_stay_so(hooked: testing.Recorded) -> None:
    """Pydantic AI's own spans have the names and attributes that they have without us."""
    with_us = _spans()
    stopcause.uninstrument()
    without = _spans()
    assert [_told(span) for span in with_us] == [_told(span) for span in without]
    assert hooked.stopped.span_id == f"{with_us[-1].context.span_id:016x}"  # the agent's own, which ends last


def _told(span: Any) -> Any:
    return span.name, sorted(span.attributes), span.status.status_code


def _spans() -> list[Any]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    made: Agent[None, str] = Agent(TestModel(), name="order-agent")
    made.instrument = InstrumentationSettings(tracer_provider=provider)
    made.run_sync(PROMPT)
    return list(exporter.get_finished_spans())


def test_an_untested_version_is_read_by_its_exceptions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stopcause.receipts.instrumentation._is_between", lambda *_: False)
    with _hook() as receipts:
        agent(calls("look_up"), text()).run_sync(PROMPT)
        with pytest.raises(exceptions.ModelHTTPError):
            agent(http(429)).run_sync(PROMPT)
        natural, quota = receipts.receipts
    assert (natural.stop_cause, natural.steps) == ("natural", None)
    assert quota.stop_cause == "quota"
    assert [finding.code for finding in quota.findings or ()] == ["untested_version"]
