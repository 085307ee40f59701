"""What a program of Google ADK has of its own that the hook must leave alone."""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.runners import Runner

import stopcause
from stopcause.receipts.hooks.google_adk.call import RunnerCall
from stopcause.receipts.testing import recorded
from tests.frameworks.google_adk import ways
from tests.frameworks.google_adk.models import Desk, agent, call, say
from tests.frameworks.sinks import broken


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("google_adk")
    yield
    stopcause.uninstrument("google_adk")


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.isasyncgenfunction(Runner.run_async)
    assert "new_message" in inspect.signature(Runner.run_async).parameters
    assert all(inspect.iscoroutinefunction(getattr(owner, name)) for owner, name in ways.POINTS[3:])
    assert Runner.run_async.__qualname__ == "Runner.run_async"


@pytest.mark.usefixtures("hook")
def test_no_plugin_of_ours_is_added_and_agents_can_be_copied() -> None:
    desk = Desk(agent(say()))
    assert desk.runner.plugin_manager.plugins == []
    assert copy.deepcopy(desk.runner.agent).name == desk.runner.agent.clone().name == "clerk"
    assert pickle.loads(pickle.dumps(RunConfig())) == RunConfig()  # noqa: S301 - our own bytes


@pytest.mark.usefixtures("hook")
def test_a_runner_of_the_programs_own_is_one_run() -> None:
    class Own(Runner):
        async def run_async(self, **given: Any) -> Any:
            async for event in super().run_async(**given):
                yield event

    desk = Desk(agent(say()))
    desk.runner.__class__ = Own
    with recorded() as receipts:
        asyncio.run(desk.run())
        assert receipts.stopped.stop_cause == "natural"


@pytest.mark.parametrize("is_first", [True, False], ids=["theirs-first", "ours-first"])
def test_another_instrumentation_of_the_same_functions_goes_on_working(
    is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As OpenInference's, which is made with wrapt and needs the runner."""
    wrapt: Any = importlib.import_module("wrapt")  # comes with OpenTelemetry
    seen: list[str] = []

    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        seen.append(instance.app_name)
        return wrapped(*args, **kwargs)

    with recorded() as receipts:
        if not is_first:
            stopcause.instrument("google_adk")
        monkeypatch.setattr(Runner, "run_async", wrapt.FunctionWrapper(vars(Runner)["run_async"], wrapper))
        stopcause.instrument("google_adk")
        asyncio.run(Desk(agent(call(), say())).run())
        assert (receipts.stopped.stop_cause, receipts.stopped.steps) == ("natural", 2)
        stopcause.uninstrument("google_adk")
    assert seen == ["desk"]


@pytest.mark.usefixtures("hook")
def test_an_end_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunnerCall, "_looped", broken)
    with recorded() as receipts:
        asyncio.run(Desk(agent(say())).run())
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "result_unreadable")
        assert "hook_failed" in [finding.code for finding in receipts.stopped.findings or ()]


@pytest.mark.usefixtures("hook")
def test_a_stream_leaves_its_readers_context_as_it_was() -> None:
    async def program() -> None:
        desk = Desk(agent(say()))
        await desk.opened()
        async for _ in desk.stream():
            assert stopcause.current_run() is None
        assert stopcause.current_run() is None

    with recorded():
        asyncio.run(program())
