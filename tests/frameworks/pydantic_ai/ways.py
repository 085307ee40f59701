"""What a program can do with Pydantic AI, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

# ruff: noqa: ARG002 - whatever the framework gives is compared; its signatures are as they are
from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from pydantic_ai import Agent, capabilities
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.usage import UsageLimits

from stopcause.receipts.hooks.pydantic_ai import messages, runs
from stopcause.receipts.notes import Notes
from tests.frameworks.pydantic_ai.agents import PROMPT, Answer, agent, waiting
from tests.frameworks.pydantic_ai.models import calls, forever, http, text

POINTS: list[tuple[Any, str]] = [(Agent, "iter"), (ToolManager, "execute_tool_call")]
FAULTS = [(Notes, name) for name in ("raised", "progress", "limit")]
ENDS: list[tuple[Any, str]] = [
    (messages, "read"), (runs, "_numbers"),
    *((runs.Watch, name) for name in ("described", "enter", "leave", "has_result", "ended")),
]  # fmt: skip

_mark: ContextVar[str] = ContextVar("mark", default="outside")


async def _result() -> Any:
    result = await agent(calls("look_up"), text()).run(PROMPT)
    return result.output, [[type(part) for part in message.parts] for message in result.all_messages()], result.usage


async def _structured() -> Any:
    return (await agent(calls("final_result", order="A-7"), output=Answer).run(PROMPT)).output


async def _deferred() -> Any:
    return (await waiting(calls("pay")).run(PROMPT)).output


async def _stream() -> Any:
    async with agent(calls("look_up"), text("one two")).run_stream(PROMPT) as stream:
        return [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]


async def _left() -> Any:
    async with agent(text("one two")).run_stream(PROMPT) as stream:
        return await anext(stream.stream_text(delta=True, debounce_by=None))


async def _events() -> Any:
    async with agent(calls("look_up"), text()).run_stream_events(PROMPT) as events:
        return [type(event) async for event in events]


async def _nodes() -> Any:
    async with agent(calls("look_up"), text()).iter(PROMPT) as run:
        nodes = [type(node) async for node in run]
    return nodes, type(run)


async def _tool_raises() -> Any:
    await agent(calls("breaks")).run(PROMPT)


async def _model_fails() -> Any:
    await agent(http(500)).run(PROMPT)


async def _limited() -> Any:
    await agent(calls("look_up")).run(PROMPT, usage_limits=UsageLimits(request_limit=1))


async def _cancelled() -> Any:
    task = asyncio.create_task(agent(forever).run(PROMPT))
    await asyncio.sleep(0.05)
    task.cancel("by the caller")
    await task


async def _timed_out() -> Any:
    async with asyncio.timeout(0.05):
        await agent(calls("hangs")).run(PROMPT)


async def _refused() -> Any:
    await Agent().run(PROMPT)


async def _wrong_option() -> Any:
    agent(text()).iter(PROMPT, no_such_option=1)


async def _order() -> Any:
    """Hooks of a capability of the host's, tools of one answer, and a context variable, in their order."""
    order: list[str] = []

    class Noting(capabilities.AbstractCapability[None]):
        async def before_run(self, ctx: Any) -> None:
            _mark.set("inside")
            order.append("before_run")

        async def after_run(self, ctx: Any, *, result: Any) -> Any:
            order.append("after_run")
            return result

        async def wrap_tool_execute(self, ctx: Any, *, handler: Any, args: Any, **rest: Any) -> Any:
            order.append("before " + ctx.tool_name)
            result = await handler(args)
            order.append("after " + ctx.tool_name)
            return result

    made = agent(calls("look_up", "seen"), text(), capabilities=[Noting()])

    @made.tool_plain
    async def seen() -> str:
        return _mark.get()

    async with made.iter(PROMPT) as run:
        async for _ in run:
            pass
    return order, _mark.get(), [part.content for message in run.all_messages() for part in message.parts[1:]]


async def _wrapper() -> Any:
    return (await WrapperAgent(agent(text())).run(PROMPT)).output


async def _decorator() -> Any:
    @agent(text()).iter(PROMPT)
    async def inside() -> str:
        return "ran"

    return await inside()


WAYS = [
    _result, _structured, _deferred, _stream, _left, _events, _nodes, _tool_raises, _model_fails, _limited, _cancelled,
    _timed_out, _refused, _wrong_option, _order, _wrapper, _decorator,
]  # fmt: skip
UNSEEN = [_wrong_option]
Way = Callable[[], Any]


def seen_by(way: Way) -> Any:
    """What a program sees of one of these ways."""
    try:
        return "returned", asyncio.run(way())
    except BaseException as error:  # noqa: BLE001 - also a cancellation is compared
        chain = [type(error), type(error.__cause__), type(error.__context__)]
        return "raised", chain, error.args, [type(note) for note in getattr(error, "__notes__", [])]
