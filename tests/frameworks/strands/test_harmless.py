"""What a program of Strands has of its own that the hook must leave alone."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from strands import Agent
from strands.hooks import BeforeToolCallEvent
from strands.hooks.registry import HookRegistry

import stopcause
from stopcause.receipts.hooks.strands import agent as strands_agent
from stopcause.receipts.testing import recorded
from tests.frameworks.sinks import broken
from tests.frameworks.strands.models import On, agent, call, say

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("strands")
    yield
    stopcause.uninstrument("strands")


def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.isasyncgenfunction(Agent.stream_async)
    assert "prompt" in inspect.signature(Agent.stream_async).parameters
    assert inspect.iscoroutinefunction(HookRegistry.invoke_callbacks_async)
    assert Agent.stream_async.__qualname__ == "Agent.stream_async"


@pytest.mark.parametrize("name", ["owner", "hook", "original", "begin", "agent_", "registry", "args", "kwargs"])
def test_no_name_of_ours_takes_an_argument_of_the_programs(name: str) -> None:
    """All that the framework does not know is the state of the program's tools, by whatever names."""
    seen: list[Any] = []
    hooks = [On(BeforeToolCallEvent, lambda event: seen.append(event.invocation_state))]
    made = agent(call("look_up"), say(), hooks=hooks)
    made("Go.", **{name: "theirs"})
    assert seen[0][name] == "theirs"


def test_an_agent_has_no_hooks_of_ours() -> None:
    def callbacks(made: Agent) -> int:
        return sum(len(each) for each in made.hooks._registered_callbacks.values())

    watched = callbacks(agent(say()))
    stopcause.uninstrument("strands")
    assert callbacks(agent(say())) == watched


def test_a_result_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strands_agent, "_shape", broken)
    with recorded() as receipts:
        agent(say())("Go.")
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "result_unreadable")
        assert "hook_failed" in [finding.code for finding in receipts.stopped.findings or ()]


def test_a_stream_leaves_its_readers_context_as_it_was() -> None:
    async def program() -> None:
        stream = agent(say()).stream_async("Go.")
        async for _ in stream:
            assert stopcause.current_run() is None
        assert stopcause.current_run() is None

    with recorded():
        asyncio.run(program())
