"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from crewai import Agent, Crew
from crewai.agent.core import AgentExecutor
from crewai.events.event_bus import CrewAIEventsBus, crewai_event_bus
from crewai.events.types.llm_events import LLMCallCompletedEvent
from crewai.events.types.task_events import TaskCompletedEvent
from crewai.events.types.tool_usage_events import ToolUsageFinishedEvent
from crewai.flow.flow import Flow

import stopcause
from stopcause.receipts import model
from stopcause.receipts.hooks.crewai import call as crewai_call
from stopcause.receipts.hooks.crewai import runs as crewai_runs
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.crewai.flows import Failing, Review, store
from tests.frameworks.crewai.models import Turn, agent, call, crew, say
from tests.frameworks.harness import Scripted
from tests.frameworks.sinks import Blocks, Raises, broken

loop: Any = sys.modules[AgentExecutor.__module__]  # not in one place in all versions
POINTS = [
    (Crew, "kickoff"), (Crew, "akickoff"), (Crew, "replay"), (Agent, "kickoff"), (Agent, "kickoff_async"),
    (Flow, "kickoff_async"), (Flow, "resume_async"), (CrewAIEventsBus, "emit"), (loop, "get_llm_response"),
    (loop, "handle_max_iterations_exceeded"), (AgentExecutor, "_handle_human_feedback"),
]  # fmt: skip
EVENTS = (LLMCallCompletedEvent, ToolUsageFinishedEvent, TaskCompletedEvent)


class Seen:
    """What a program sees: items of streams, calls of its callbacks, events, results, exceptions."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            frames = len(traceback.extract_tb(value.__traceback__)) > 0
            self.told.append((type(value), frames, len(value.args), type(value.__cause__), type(value.__context__)))
        else:
            self.told.append((type(value), getattr(value, "raw", None), stopcause.current_run()))

    def callback(self, *_: Any, **__: Any) -> None:
        self.told.append("callback")

    def crew(self, *turns: Turn, **more: Any) -> Crew:
        return crew(*turns, task_callback=self.callback, step_callback=self.callback, **more)


def _answers(seen: Seen) -> None:
    seen.tell(seen.crew(call(), call("breaks"), say()).kickoff())


def _is_cut_short(seen: Seen) -> None:
    seen.tell(agent(call(), say(), max_iter=1).kickoff("Go."))


def _hears(seen: Seen) -> None:
    """Its own handlers are called as often, and only they are there."""
    heard: list[str] = []
    with crewai_event_bus.scoped_handlers():
        for kind in EVENTS:
            crewai_event_bus.on(kind)(lambda _, event: heard.append(type(event).__name__))
        seen.crew(call(), say()).kickoff()
        crewai_event_bus.flush()
    seen.told.append(sorted(heard))


def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        seen.crew(Turn(error=error), of={"max_retry_limit": 0}).kickoff()
    assert raised.value is error
    seen.tell(raised.value)


def _fails_in_a_flow(seen: Seen) -> None:
    with pytest.raises(RuntimeError) as raised:
        Failing().kickoff()
    seen.tell(raised.value)


async def _streams(seen: Seen) -> None:
    stream = await seen.crew(call(), say(), stream=True).akickoff()
    seen.told.extend([item.content async for item in stream])
    seen.tell(stream.result)


async def _cancels(seen: Seen) -> None:
    task = asyncio.create_task(crew(say(pause=0.2)).akickoff())
    await asyncio.sleep(0.05)
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    seen.tell(raised.value)


def _waits(seen: Seen) -> None:
    flow = Review(persistence=store())
    pending = flow.kickoff()
    seen.tell(pending)
    seen.tell(Review.from_pending(flow.flow_id, flow.persistence).resume("fine"))


def _is_reviewed(seen: Seen) -> None:
    with mock.patch("builtins.input", return_value=""):
        seen.tell(seen.crew(say(), doing={"human_input": True}).kickoff())


WAYS = [
    _answers, _is_cut_short, _hears, _fails, _fails_in_a_flow, _streams, _cancels, _waits, _is_reviewed,
]  # fmt: skip
Way = Callable[[Seen], Any]


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    made = way(seen)
    if inspect.isawaitable(made):
        asyncio.run(_awaited(made))
    return seen.told


async def _awaited(made: Any) -> None:
    await made


@functools.cache
def bare(way: Way) -> list[Any]:
    """The same without the hook."""
    stopcause.uninstrument("crewai")
    return seen_by(way)


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    for way in WAYS:
        bare(way)
    stopcause.instrument("crewai")
    yield
    stopcause.uninstrument("crewai")


ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
pytestmark = pytest.mark.usefixtures("hook")


@ways
def test_all_is_the_same_with_the_hook(way: Way) -> None:
    with recorded() as receipts:
        assert seen_by(way) == bare(way)
        assert receipts.receipts


def test_the_framework_is_given_back_as_it_was() -> None:
    stopcause.uninstrument("crewai")
    before = [vars(owner).get(name) for owner, name in POINTS]
    stopcause.instrument("crewai")
    during = [vars(owner).get(name) for owner, name in POINTS]
    stopcause.uninstrument("crewai")
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert [vars(owner).get(name) for owner, name in POINTS] == before


def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.iscoroutinefunction(Crew.akickoff)
    assert inspect.iscoroutinefunction(Flow.kickoff_async)
    assert not inspect.iscoroutinefunction(Crew.kickoff)
    assert list(inspect.signature(Crew.kickoff).parameters)[:2] == ["self", "inputs"]
    assert list(inspect.signature(CrewAIEventsBus.emit).parameters) == ["self", "source", "event"]


def test_an_agent_is_copied_as_before() -> None:
    made = crew(say(), say())
    with recorded() as receipts:
        made.copy().kickoff()
        made.kickoff()
        assert [each.stop_cause for each in receipts.receipts] == ["natural", "natural"]


@pytest.mark.parametrize("word", ["1", "crewai"])
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_answers) == bare(_answers)
        assert receipts.lines == []


@ways
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    blocks = Blocks()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert seen_by(way) == bare(way)
    finally:
        blocks.go.set()
        stopcause.configure()


@pytest.mark.parametrize("name", ["cause", "is_first_end", "came_back", "failed", "stopped_by", "cut_off"])
@pytest.mark.parametrize("way", [_answers, _fails, _fails_in_a_flow, _waits, _cancels])
def test_whatever_fails_a_run_that_began_has_an_end(way: Way, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded() as receipts:
        for kind in (crewai_call.Call, crewai_runs.FlowCall):
            monkeypatch.setattr(kind, name, broken)
        assert seen_by(way) == bare(way)
        began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
        assert began == {each.run_id for each in receipts.receipts}


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "waiting"), (Run, "decided"), (Hook, "begin"), (Hook, "read"),
        (crewai_call.Call, "event"), (crewai_call.Call, "turn_begins"), (crewai_call.Call, "turn_ends"),
        (crewai_call.Call, "ask"), (crewai_runs.CrewCall, "describe"), (crewai_runs.FlowCall, "describe"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
@pytest.mark.parametrize("way", [_answers, _is_cut_short, _fails, _waits, _is_reviewed])
def test_a_fault_of_the_hooks_changes_nothing(
    way: Way, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded():
        monkeypatch.setattr(owner, name, broken)
        assert seen_by(way) == bare(way)


def test_a_result_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crewai_runs, "_shape", broken)
    with recorded() as receipts:
        crew(say()).kickoff()
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "result_unreadable")
        assert "hook_failed" in [finding.code for finding in receipts.stopped.findings or ()]
