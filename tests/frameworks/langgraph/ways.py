"""What a program can do with LangGraph, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

import stopcause
from stopcause.receipts.hooks.langgraph.run import GraphRun
from stopcause.receipts.run import Run, current
from tests.frameworks.harness import Scripted
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, call, graph, say

POINTS: list[Any] = []
FAULTS = [(Run, "limit")]
_OF_A_GRAPH = (
    "look_at_result", "node_ended", "node_started", "let_go", "say_limits", "failure_behind", "node_failed",
)  # fmt: skip
ENDS = [(GraphRun, name) for name in _OF_A_GRAPH]
_EVENTS = (
    "on_chain_start", "on_chain_end", "on_chain_error", "on_tool_start", "on_tool_end", "on_tool_error",
    "on_chat_model_start", "on_llm_end", "on_llm_error",
)  # fmt: skip


class Seen:
    """What a program sees: results, items of streams, exceptions, the callbacks of its own handler, its context."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def config(self, **more: Any) -> Any:
        return {"callbacks": [_Telling(self.told)], **more}

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            frames = [frame.name for frame in traceback.extract_tb(value.__traceback__)]
            self.told.append((type(value), value.args, frames))
        else:
            self.told.append(_plain(value))
        self.told.append((current.get(), stopcause.current_run()))


class _Telling(BaseCallbackHandler):
    """The program's own handler."""

    run_inline = True

    def __init__(self, told: list[Any]) -> None:
        for event in _EVENTS:
            setattr(self, event, lambda *_, _event=event, **about: told.append((_event, about.get("name"))))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    known = [getattr(value, name, None) for name in ("type", "content", "status", "tool_calls")]
    return value if isinstance(value, str | int | float | None) else (type(value).__name__, known)


def _answers(seen: Seen) -> None:
    seen.tell(agent(call("look_up"), call("close_ticket"), say()).invoke(models.ASK, seen.config()))


async def _answers_async(seen: Seen) -> None:
    seen.tell(await agent(call("look_up"), say()).ainvoke(models.ASK, seen.config()))


def _streams(seen: Seen) -> None:
    stream = agent(call("look_up"), say()).stream(models.ASK, seen.config(), stream_mode=["updates", "values"])
    seen.tell(inspect.isgenerator(stream))
    for item in stream:
        seen.tell(item)


async def _streams_async(seen: Seen) -> None:
    stream = graph(models.acollect, models.store).astream({"done": []}, seen.config(), stream_mode="updates")
    seen.tell(inspect.isasyncgen(stream))
    async for item in stream:
        seen.tell(item)


async def _events(seen: Seen) -> None:
    async def look_up() -> str:
        """Looks it up; a sync tool would run in a thread, and its events would come in any order."""
        return "open"

    made = agent(call("look_up"), say(), tools=[look_up])
    async for event in made.astream_events(models.ASK, seen.config(), version="v2"):
        seen.tell([event["event"], event["name"]])


def _leaves(seen: Seen) -> None:
    stream = graph(models.collect, models.store).stream({"done": []}, seen.config())
    seen.tell(next(stream))
    stream.close()
    with pytest.raises(StopIteration):
        next(stream)


async def _throws(seen: Seen) -> None:
    stream = graph(models.acollect, models.store).astream({"done": []}, seen.config())
    seen.tell(await anext(stream))
    with pytest.raises(Scripted) as raised:
        await stream.athrow(Scripted("thrown in"))
    seen.tell(raised.value)


def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        agent(call("look_up"), error).invoke(models.ASK, seen.config())
    assert raised.value is error
    seen.tell(raised.value)


def _runs_out(seen: Seen) -> None:
    with pytest.raises(GraphRecursionError) as raised:
        agent(call("look_up")).invoke(models.ASK, seen.config(recursion_limit=3))
    seen.tell(raised.value)


async def _cancels(seen: Seen) -> None:
    async def wait(_state: models.State) -> models.State:
        await asyncio.sleep(5)
        return {}

    task = asyncio.create_task(graph(wait).ainvoke({"done": []}, seen.config()))
    await asyncio.sleep(0.05)
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    seen.tell(raised.value)


def _waits(seen: Seen) -> None:
    middleware = [HumanInTheLoopMiddleware(interrupt_on={"close_ticket": True})]
    made = agent(call("close_ticket"), say(), middleware=middleware, checkpointer=InMemorySaver())
    config = seen.config(**models.thread())
    seen.tell(sorted(made.invoke(models.ASK, config)))
    seen.tell(made.get_state(config).next)
    seen.tell(made.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config))


def _nests(seen: Seen) -> None:
    helper = agent(say(), name="helper")

    def ask_helper() -> str:
        """Asks."""
        return str(helper.invoke(models.ASK)["messages"][-1].content)

    seen.tell(agent(call("ask_helper"), say(), tools=[ask_helper]).invoke(models.ASK, seen.config()))


async def _leaves_context(seen: Seen) -> None:
    """What a run sets in the program's context is gone after it, and was not there between the items."""
    before = {each.name for each in contextvars.copy_context()}
    stream = graph(models.acollect, models.store).astream({"done": []}, seen.config())
    async for _ in stream:
        seen.tell(sorted({each.name for each in contextvars.copy_context()} - before))
    seen.tell(sorted({each.name for each in contextvars.copy_context()} - before))


WAYS = [
    _nests, _answers, _answers_async, _streams, _streams_async, _events, _leaves, _throws, _fails, _runs_out, _cancels,
    _waits, _leaves_context,
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
