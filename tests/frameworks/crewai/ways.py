"""What a program can do with CrewAI, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

# First: it sets what the framework reads as it is imported.
from tests.frameworks.crewai.models import Turn, agent, call, crew, say

# isort: split
import asyncio
import inspect
import sys
import traceback
from collections.abc import Callable
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
from stopcause.receipts.hooks.crewai.call import Call
from stopcause.receipts.hooks.crewai.runs import CrewCall, FlowCall
from stopcause.receipts.run import Run
from tests.frameworks.crewai.flows import Failing, Review, store
from tests.frameworks.harness import Scripted

_loop: Any = sys.modules[AgentExecutor.__module__]  # not in one place in all versions
POINTS = [
    (Crew, "kickoff"), (Crew, "akickoff"), (Crew, "replay"), (Agent, "kickoff"), (Agent, "kickoff_async"),
    (Flow, "kickoff_async"), (Flow, "resume_async"), (CrewAIEventsBus, "emit"), (_loop, "get_llm_response"),
    (_loop, "handle_max_iterations_exceeded"), (AgentExecutor, "_handle_human_feedback"),
]  # fmt: skip
FAULTS = [
    (Run, "decided"), (Call, "event"), (Call, "turn_begins"), (Call, "turn_ends"), (Call, "ask"),
    (CrewCall, "describe"), (FlowCall, "describe"),
]  # fmt: skip
ENDS = [
    *((Call, name) for name in ("cause", "is_first_end", "came_back", "failed", "stopped_by", "cut_off")),
    (FlowCall, "stopped_by"),
    (FlowCall, "cut_off"),
]
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
CHEAP = [_answers, _is_cut_short, _fails, _fails_in_a_flow, _cancels, _waits, _is_reviewed]
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
