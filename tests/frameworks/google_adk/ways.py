"""What a program can do with Google ADK, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.flows.llm_flows.base_llm_flow import BaseLlmFlow
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.plugin_manager import PluginManager
from google.adk.runners import Runner

import stopcause
from stopcause.receipts.hooks import google_adk
from stopcause.receipts.hooks.google_adk.call import RunnerCall
from tests.frameworks.google_adk.models import Desk, Turn, agent, call, say, text
from tests.frameworks.harness import Scripted

POINTS = [
    (Runner, "run_async"), (Runner, "run_live"), (InvocationContext, "increment_llm_call_count"),
    (BaseLlmFlow, "_handle_before_model_callback"), (BaseAgent, "_handle_before_agent_callback"),
    *((PluginManager, name) for name in google_adk._PLUGINS),
]  # fmt: skip
FAULTS = [(RunnerCall, name) for name in ("item", "heard", "stepped", "describe")]
ENDS = [(RunnerCall, name) for name in ("cause", "is_first_end", "came_back", "failed", "ended", "left", "read_result")]
CALLBACKS = [name for name in vars(BasePlugin) if name.endswith("_callback")]


class Seen:
    """What a program sees: events of streams, calls of its plugin, exceptions."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def desk(self, *turns: Turn, **more: Any) -> Desk:
        """A runner with a plugin that writes down when it is called."""
        return Desk(agent(*turns, **more), plugins=[_Plugin(self)])

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            self.told.append((type(value), len(traceback.extract_tb(value.__traceback__)) > 0, value.args))
        else:
            parts = (value.content.parts if value.content is not None else None) or []
            said = [part.text or (part.function_response and part.function_response.response) for part in parts]
            self.told.append((value.author, value.partial, said, value.error_code, stopcause.current_run()))


class _Plugin(BasePlugin):
    def __init__(self, seen: Seen) -> None:
        super().__init__(name="seen")
        for name in CALLBACKS:
            setattr(self, name, self._noting(seen, name))

    @staticmethod
    def _noting(seen: Seen, name: str) -> Callable[..., Awaitable[None]]:
        async def called(**given: Any) -> None:
            seen.told.append((name, sorted(given)))

        return called


async def _reads(seen: Seen, desk: Desk, message: Any = "Go.", **more: Any) -> None:
    for event in await desk.run(message, **more):
        seen.tell(event)


async def _answers(seen: Seen) -> None:
    await _reads(seen, seen.desk(call(), say()))


async def _streams(seen: Seen) -> None:
    await _reads(seen, seen.desk(call(), say(chunks=2)), config=RunConfig(streaming_mode=StreamingMode.SSE))


async def _waits(seen: Seen) -> None:
    desk = seen.desk(call("pay"), say())
    await _reads(seen, desk)
    await _reads(seen, desk, desk.answer())


async def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        await seen.desk(Turn(error=error)).run()
    assert raised.value is error
    seen.tell(raised.value)


async def _tool_fails(seen: Seen) -> None:
    with pytest.raises(ValueError, match="in a tool") as raised:
        await seen.desk(call("breaks")).run()
    seen.tell(raised.value)


async def _refused(seen: Seen) -> None:
    with pytest.raises(ValueError, match="not found") as raised:
        await anext(seen.desk(say()).stream())
    seen.tell(raised.value)


async def _limited(seen: Seen) -> None:
    with pytest.raises(Exception, match="limit") as raised:
        await seen.desk(call(), say()).run(config=RunConfig(max_llm_calls=1))
    seen.tell(raised.value)


async def _leaves(seen: Seen) -> None:
    desk = seen.desk(call(), say())
    await desk.opened()
    stream = desk.stream()
    seen.tell(await anext(stream))
    await stream.aclose()
    with pytest.raises((StopAsyncIteration, RuntimeError)) as raised:  # the latter is ADK's own, without us too
        await anext(stream)
    seen.tell(raised.value)


async def _throws(seen: Seen) -> None:
    desk = seen.desk(call(), say())
    await desk.opened()
    stream = desk.stream()
    seen.tell(await stream.asend(None))
    with pytest.raises(Scripted) as raised:
        await stream.athrow(Scripted("thrown in"))
    seen.tell(raised.value)


async def _cancels(seen: Seen) -> None:
    task = asyncio.create_task(seen.desk(say(pause=5)).run())
    await asyncio.sleep(0.05)
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    seen.tell(raised.value)


def _sync(seen: Seen) -> None:
    desk = seen.desk(call(), say())
    asyncio.run(desk.opened())
    for event in list(desk.runner.run(user_id="u-1", session_id="s-1", new_message=text("Go."))):
        seen.tell(event)  # not before all is over: callbacks come from another thread


WAYS = [_answers, _streams, _waits, _fails, _tool_fails, _refused, _limited, _leaves, _throws, _cancels, _sync]
CHEAP = [_waits, _tool_fails, _leaves]
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
