"""What a program can do with Strands, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from strands import Agent
from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
)
from strands.hooks.registry import HookRegistry
from strands.multiagent import GraphBuilder, Swarm
from strands.multiagent.graph import Graph

import stopcause
from stopcause.receipts.hooks.strands import agent as strands_agent
from tests.frameworks.harness import Scripted
from tests.frameworks.strands.models import On, Turn, agent, answers, ask_before, call, say

POINTS = [
    (Agent, "stream_async"), (Agent, "structured_output_async"), (HookRegistry, "invoke_callbacks_async"),
    (Graph, "stream_async"), (Swarm, "stream_async"),
]  # fmt: skip
FAULTS = [
    (strands_agent.AgentCall, "item"), (strands_agent.AgentCall, "event"), (strands_agent.AgentCall, "describe"),
]  # fmt: skip
ENDS = [(strands_agent.AgentCall, name) for name in ("cause", "is_first_end", "came_back", "failed", "ended", "left")]
EVENTS = (
    BeforeInvocationEvent, BeforeModelCallEvent, AfterModelCallEvent, BeforeToolCallEvent, AfterToolCallEvent,
    AfterInvocationEvent,
)  # fmt: skip


class Seen:
    """What a program sees: items of streams, calls of its hooks and of its handler, results, exceptions."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def hooks(self) -> list[On]:
        return [On(event, lambda event: self.told.append(type(event).__name__)) for event in EVENTS]

    def handler(self, **given: Any) -> None:
        self.told.append(("handler", sorted(given)))

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            self.told.append((type(value), len(traceback.extract_tb(value.__traceback__)) > 0, value.args))
        elif isinstance(value, dict):
            self.told.append(sorted(value))
        else:
            status = getattr(value, "stop_reason", getattr(value, "status", None))
            said = getattr(value, "message", {}).get("content")
            self.told.append((type(value), status, said, stopcause.current_run()))

    def agent(self, *turns: Turn, **more: Any) -> Agent:
        made = agent(*turns, hooks=[*self.hooks(), *more.pop("hooks", ())], **more)
        made.callback_handler = self.handler
        return made


def _answers(seen: Seen) -> None:
    seen.tell(seen.agent(call(), call("breaks", "call-2"), say())("Go."))


def _waits(seen: Seen) -> None:
    made = seen.agent(call("pay"), say(), hooks=[ask_before("pay")])
    result = made("Go.")
    seen.tell(result)
    seen.tell(made(answers(result)))


def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        seen.agent(Turn(error=error))("Go.")
    assert raised.value is error
    seen.tell(raised.value)


def _refused(seen: Seen) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared, with and without
        seen.agent(say())(42)
    seen.tell(raised.value)


async def _streams(seen: Seen) -> None:
    async for item in seen.agent(call(), say()).stream_async("Go."):
        seen.tell(item)


async def _leaves(seen: Seen) -> None:
    stream = seen.agent(say()).stream_async("Go.")
    seen.tell(await anext(stream))
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def _throws(seen: Seen) -> None:
    stream = seen.agent(say()).stream_async("Go.")
    seen.tell(await anext(stream))
    with pytest.raises(Scripted) as raised:
        await stream.athrow(Scripted("thrown in"))
    seen.tell(raised.value)


async def _sends(seen: Seen) -> None:
    stream = seen.agent(say()).stream_async("Go.")
    seen.tell(await stream.asend(None))
    seen.tell(await stream.asend("anything"))
    await stream.aclose()


async def _cancels(seen: Seen) -> None:
    task = asyncio.create_task(seen.agent(say(pause=5)).invoke_async("Go."))
    await asyncio.sleep(0.02)
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    seen.tell(raised.value)


def _graph(seen: Seen) -> None:
    builder = GraphBuilder()
    builder.add_node(seen.agent(call(), say()), "reader")
    seen.tell(builder.build()("Go."))


def _swarm(seen: Seen) -> None:
    seen.tell(Swarm([seen.agent(Turn(error=Scripted("in a swarm")), name="reader")])("Go."))


WAYS = [_answers, _waits, _fails, _refused, _streams, _leaves, _throws, _sends, _cancels, _graph, _swarm]
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
