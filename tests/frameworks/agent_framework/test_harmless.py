"""What a program of Agent Framework has of its own that the hook must leave alone."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from agent_framework import RawAgent, Workflow
from agent_framework._middleware import AgentMiddlewareLayer, MiddlewareTermination

import stopcause
from stopcause.receipts.hooks.agent_framework import agent as agent_framework_agent
from stopcause.receipts.hooks.agent_framework.agent import AgentCall
from stopcause.receipts.hooks.agent_framework.workflow import WorkflowCall
from stopcause.receipts.model import RunStarted
from stopcause.receipts.testing import recorded
from tests.frameworks.agent_framework import ways
from tests.frameworks.agent_framework.models import agent, call, say
from tests.frameworks.sinks import broken


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("agent_framework")
    yield
    stopcause.uninstrument("agent_framework")


async def _is_left_alone() -> list[str]:
    """The hook goes while a stream is read."""
    stream, texts = agent(call(), say()).run("Go.", stream=True), []
    async for update in stream:
        stopcause.uninstrument("agent_framework")
        texts.append(update.text)
    return texts


@pytest.mark.usefixtures("hook")
def test_of_a_stream_whose_end_we_did_not_see_nobody_knows_why_it_stopped() -> None:
    with recorded() as receipts:
        assert "".join(asyncio.run(_is_left_alone())) == "Done."
        gc.collect()
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "hook_off")


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert "messages" in inspect.signature(AgentMiddlewareLayer.run).parameters
    assert RawAgent.run.__qualname__ == "RawAgent.run"
    assert inspect.isasyncgenfunction(Workflow._run_core)
    work = agent(say()).run("Go.")
    assert inspect.iscoroutine(work)
    asyncio.run(work)


def test_who_never_awaits_is_told_the_same() -> None:
    bare = _never_awaited()
    stopcause.instrument("agent_framework")
    try:
        assert _never_awaited() == bare
    finally:
        stopcause.uninstrument("agent_framework")


def _never_awaited() -> list[str]:
    with pytest.warns(RuntimeWarning, match="was never awaited") as warned:
        agent(say()).run("Go.")
    return [str(each.message) for each in warned]


@pytest.mark.usefixtures("hook")
def test_what_is_raised_can_be_copied_and_pickled() -> None:
    error = MiddlewareTermination("theirs", result=3)
    assert pickle.loads(pickle.dumps(error)).result == 3  # noqa: S301 - it was made here
    assert copy.copy(error).args == error.args


@pytest.mark.usefixtures("hook")
def test_an_agent_can_be_copied_and_subclassed() -> None:
    class Mine(type(agent())):  # type: ignore[misc]  # a class of the framework's, which is not there for mypy
        def run(self, *args: Any, **kwargs: Any) -> Any:
            return super().run(*args, **kwargs)

    made = copy.copy(agent(say()))
    made.__class__ = Mine
    with recorded() as receipts:
        assert asyncio.run(_text(made)) == "Done."
        assert len(receipts.receipts) == 1


async def _text(made: Any) -> Any:
    return (await made.run("Go.")).text


@pytest.mark.parametrize("name", [name for owner, name in ways.ENDS if owner is WorkflowCall])
@pytest.mark.parametrize("way", [ways._chat, ways._plans])
def test_a_workflow_and_its_agents_that_both_fail_have_ends(
    way: ways.Way, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = ways.seen_by(way)
    stopcause.instrument("agent_framework")
    try:
        with recorded() as receipts:
            for owner in (AgentCall, WorkflowCall):
                monkeypatch.setattr(owner, name, broken)
            assert ways.seen_by(way) == bare
            began = {each.run_id for each in receipts.records if isinstance(each, RunStarted)}
            assert began == {each.run_id for each in receipts.receipts}
            assert len(began) > 1
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("agent_framework")


@pytest.mark.usefixtures("hook")
def test_a_result_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_framework_agent, "contents_of", broken)
    with recorded() as receipts:
        asyncio.run(_text(agent(say())))
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "result_unreadable")


@pytest.mark.usefixtures("hook")
def test_a_stream_leaves_its_readers_context_as_it_was() -> None:
    async def program() -> None:
        async for _ in agent(call(), say()).run("Go.", stream=True):
            assert stopcause.current_run() is None
        assert stopcause.current_run() is None

    with recorded():
        asyncio.run(program())
