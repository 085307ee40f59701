"""What a program of Pydantic AI has of its own that the hook must leave alone, and what the hook does when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, exceptions
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

import stopcause
from stopcause.receipts import testing
from stopcause.receipts.hooks.pydantic_ai import runs as pydantic_ai_runs
from stopcause.receipts.run import current
from tests.frameworks.harness import Scripted
from tests.frameworks.pydantic_ai import ways
from tests.frameworks.pydantic_ai.agents import PROMPT, agent
from tests.frameworks.pydantic_ai.models import calls, http, text


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


@pytest.mark.usefixtures("hooked")
def test_what_is_wrapped_looks_as_before() -> None:
    signature = inspect.signature(Agent.iter)
    stopcause.uninstrument()
    assert inspect.signature(Agent.iter) == signature


def test_a_hook_that_keeps_failing_turns_itself_off(monkeypatch: pytest.MonkeyPatch, hooked: testing.Recorded) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("stopcause.receipts.hooks.pydantic_ai.messages.read", fail)
    for _ in range(25):
        agent(text()).run_sync(PROMPT)
    codes = {finding.code for record in hooked.records for finding in record.findings or ()}
    assert {"hook_failed", "hook_off"} <= codes
    assert 20 <= len(hooked.receipts) < 25  # what it had begun, it ended


@pytest.mark.parametrize("way", [ways._result, ways._tool_raises, ways._left, ways._deferred])
@pytest.mark.parametrize("place", ["read", "numbers"])
def test_a_run_whose_end_cannot_be_read_is_over(way: ways.Way, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    owner = {"read": "pydantic_ai.messages.read", "numbers": "pydantic_ai.runs._numbers"}[place]
    monkeypatch.setattr(f"stopcause.receipts.hooks.{owner}", fail)
    with _hook() as receipts:
        ways.seen_by(way)
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
        back, quota = receipts.receipts
    assert (back.stop_cause, back.reason_code, back.steps) == ("unknown", "untested_version", None)
    assert quota.stop_cause == "quota"
    assert [finding.code for finding in quota.findings or ()] == ["untested_version"]
