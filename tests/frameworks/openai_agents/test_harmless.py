"""What a program of the OpenAI Agents SDK has of its own that the hook must leave alone."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import logging
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, Runner
from agents.run import AgentRunner
from agents.tracing import get_trace_provider

import stopcause
from stopcause.receipts.hooks import openai_agents
from stopcause.receipts.testing import recorded
from tests.frameworks.harness import Scripted
from tests.frameworks.openai_agents import ways
from tests.frameworks.openai_agents.models import MARKER, agent, slow
from tests.frameworks.sinks import broken


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("openai_agents")
    yield
    stopcause.uninstrument("openai_agents")


def test_what_somebody_put_over_ours_stays() -> None:
    original = AgentRunner.run
    stopcause.instrument("openai_agents")
    ours = AgentRunner.run

    async def theirs(*args: Any, **kwargs: Any) -> Any:
        return await ours(*args, **kwargs)

    try:
        AgentRunner.run = theirs
        stopcause.uninstrument("openai_agents")
        assert AgentRunner.run is theirs
        with recorded() as receipts:
            assert ways.seen_by(ways._answers)
            assert receipts.lines == []
    finally:
        AgentRunner.run = original


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.iscoroutinefunction(AgentRunner.run)
    assert "starting_agent" in inspect.signature(AgentRunner.run).parameters
    assert AgentRunner.run_streamed.__qualname__ == "AgentRunner.run_streamed"


@pytest.mark.usefixtures("hook")
def test_no_trace_processor_is_added() -> None:
    provider: Any = get_trace_provider()
    with recorded():
        ways.seen_by(ways._answers)
    assert provider._multi_processor._processors == ()


@pytest.mark.usefixtures("hook")
def test_our_frame_in_a_traceback_holds_no_input() -> None:
    async def program() -> None:
        with pytest.raises(Scripted) as raised:
            await Runner.run(agent(Scripted("so")), MARKER)
        ours = [
            frame.f_locals
            for frame, _ in traceback.walk_tb(raised.value.__traceback__)
            if "stopcause" in frame.f_code.co_filename
        ]
        assert ours
        assert not any(MARKER in repr(value) or isinstance(value, Agent) for each in ours for value in each.values())

    with recorded():
        asyncio.run(program())


@pytest.mark.parametrize("is_on", [False, True])
def test_an_error_that_nobody_fetched_is_still_told_of(is_on: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def program() -> None:
        stream = Runner.run_streamed(agent(Scripted("so")), MARKER)
        assert stream.run_loop_task is not None
        await asyncio.wait([stream.run_loop_task])
        del stream
        gc.collect()

    if is_on:
        stopcause.instrument("openai_agents")
    with caplog.at_level(logging.ERROR, "asyncio"), recorded():
        asyncio.run(program())
        gc.collect()
    stopcause.uninstrument("openai_agents")
    assert sum("never retrieved" in each.getMessage() for each in caplog.records) == 1


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize(
    ("way", "name", "where"),
    [
        (ways._answers, "note_waits", "run.returned"), (ways._fails, "_cause_of", "run.raised"),
        (ways._streams, "note_waits", "run_streamed.done"), (ways._streams, "_follow", "run_streamed.follow"),
        (ways._stream_fails, "_cause_of", "run_streamed.done"),
    ],
)  # fmt: skip
def test_a_run_whose_end_cannot_be_read_is_over(
    way: ways.Way, name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded() as receipts:
        monkeypatch.setattr(openai_agents, name, broken)
        ways.seen_by(way)
        stopped = receipts.receipts[0]
    assert stopped.stop_cause == "unknown"
    assert ("hook_failed", f"stopcause.openai_agents:{where}") in _found(stopped)


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize("name", ["_describe", "_limited", "Watch.name_thread"])
def test_a_run_whose_beginning_cannot_be_read_leaves_a_receipt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded() as receipts:
        monkeypatch.setattr(f"stopcause.receipts.hooks.openai_agents.{name}", broken)
        ways.seen_by(ways._answers)
        kinds = [record.kind for record in receipts.records]
    assert (kinds[0], kinds[-1]) == ("run.started", "run.stopped")


def _found(receipt: Any) -> list[tuple[str, str | None]]:
    return [(each.code, each.where) for each in receipt.findings or ()]


@pytest.mark.usefixtures("hook")
def test_a_failed_run_and_an_open_stream_leave_the_context_as_it_was() -> None:
    async def program() -> None:
        before = dict(contextvars())
        with contextlib.suppress(Scripted):
            await Runner.run(agent(Scripted("so")), MARKER)
        stream = Runner.run_streamed(agent(slow), MARKER)
        assert stopcause.current_run() is None
        stream.cancel()
        assert {key: value for key, value in contextvars().items() if value is not None} == before

    def contextvars() -> dict[str, Any]:
        from contextvars import copy_context  # noqa: PLC0415 - only here

        return {var.name: value for var, value in copy_context().items() if value is not None}

    with recorded():
        asyncio.run(program())
