"""What a program can do with Agent Framework, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

import asyncio
import gc
import importlib
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import agent_framework
import pytest
from agent_framework import (
    AgentResponse,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    FunctionInvocationLayer,
    RawAgent,
    Workflow,
    agent_middleware,
    chat_middleware,
    function_middleware,
)
from agent_framework import _tools as tools
from agent_framework._middleware import AgentMiddlewareLayer, MiddlewareTermination
from agent_framework._types import ResponseStream
from agent_framework._workflows._runner_context import InProcRunnerContext
from agent_framework_orchestrations import (  # type: ignore[import-not-found]  # it is in no other environment
    BaseGroupChatOrchestrator,
    MagenticOrchestrator,
)

import stopcause
from stopcause.receipts.hooks.agent_framework import agent as agent_framework_agent
from stopcause.receipts.hooks.agent_framework.agent import AgentCall
from stopcause.receipts.hooks.agent_framework.model import ModelCall
from stopcause.receipts.hooks.agent_framework.workflow import WorkflowCall
from tests.frameworks.agent_framework.models import Turn, agent, answer, call, say
from tests.frameworks.agent_framework.paths_orchestrations import group_chat, magentic
from tests.frameworks.agent_framework.paths_workflows import Breaks, Ends, Passes, graph
from tests.frameworks.harness import Scripted

POINTS: list[tuple[Any, str]] = [
    (AgentMiddlewareLayer, "run"), (RawAgent, "run"), (FunctionInvocationLayer, "get_response"),
    (ChatMiddlewareLayer, "get_response"), (BaseChatClient, "get_response"), (tools, "_auto_invoke_function"),
    (MiddlewareTermination, "__init__"), (ResponseStream, "__anext__"), (ResponseStream, "_get_stream"),
    (Workflow, "_run_core"), (InProcRunnerContext, "create_checkpoint"),
]  # fmt: skip

POINTS += [
    (BaseGroupChatOrchestrator, "_check_round_limit"),
    (MagenticOrchestrator, "_check_within_limits_or_complete"),
]

if hasattr(ResponseStream, "close"):  # of these 1.0 has none
    functional = importlib.import_module("agent_framework._workflows._functional")
    POINTS += [
        (ResponseStream, "close"), (functional.FunctionalWorkflow, "_run_core"),
        (agent_framework.AgentLoopMiddleware, "_evaluate_stop"),
    ]  # fmt: skip
FAULTS: list[tuple[Any, str]] = [
    (AgentCall, "describe"), (AgentCall, "requested"), (AgentCall, "round_trip"), (AgentCall, "tool_begins"),
    (AgentCall, "tool_returned"), (AgentCall, "item"), (ModelCall, "ended"),
    (ModelCall, "item"), (WorkflowCall, "item"), (WorkflowCall, "describe"),
    (WorkflowCall, "used_up"),
    (agent_framework_agent, "Budget"), (agent_framework_agent, "Answer"),
]  # fmt: skip
ENDS = [
    (owner, name)
    for owner in (AgentCall, WorkflowCall)
    for name in ("cause", "is_first_end", "came_back", "failed", "ended", "left", "read_result")
]


class Seen:
    """What a program sees: updates, events, calls of its middleware and hooks, results, exceptions."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            self.told.append(
                (type(value), value.args, value.__context__, len(traceback.extract_tb(value.__traceback__)) > 0)
            )
        elif hasattr(value, "messages"):
            self.told.append((type(value), value.text, len(value.messages), stopcause.current_run()))
        else:
            self.told.append(
                (type(value), getattr(value, "text", getattr(value, "type", None)), stopcause.current_run())
            )

    def middleware(self) -> list[Any]:
        """One of each kind, which tells before and after."""

        def told(name: str) -> Any:
            async def process(_: Any, call_next: Callable[[], Awaitable[None]]) -> None:
                self.told.append(name)
                await call_next()
                self.told.append(f"after {name}")

            return process

        return [
            agent_middleware(told("agent")), function_middleware(told("function")), chat_middleware(told("chat")),
        ]  # fmt: skip

    def agent(self, *turns: Turn, **more: Any) -> Any:
        return agent(*turns, middleware=self.middleware(), **more)


async def _answers(seen: Seen) -> None:
    seen.tell(await seen.agent(call(), call("breaks", "call-2"), say()).run("Go."))


async def _bounded(seen: Seen) -> None:
    made = seen.agent(call(), say(), limits={"max_iterations": 1})
    seen.tell(await made.run("Go."))
    seen.told.append(made.client.choices)


async def _waits(seen: Seen) -> None:
    made, session = seen.agent(call("pay"), say()), AgentSession(session_id="desk-1")
    result = await made.run("Go.", session=session)
    seen.tell(result)
    seen.tell(await made.run(answer(result), session=session))


async def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        await seen.agent(Turn(error=error)).run("Go.")
    assert raised.value is error
    seen.tell(raised.value)


async def _terminates(seen: Seen) -> None:
    async def process(context: Any, _: Any) -> None:
        context.result = AgentResponse(messages=[])
        raise MiddlewareTermination("theirs", result=3)

    seen.tell(await agent(say(), middleware=[agent_middleware(process)]).run("Go."))


async def _streams(seen: Seen) -> None:
    stream = seen.agent(call(), say()).run("Go.", stream=True)
    stream.with_transform_hook(lambda update: seen.told.append(("update", update.text)))
    stream.with_cleanup_hook(lambda: seen.told.append("cleaned"))
    stream.with_result_hook(lambda result: seen.told.append(("result", result.text)))
    async for update in stream:
        seen.tell(update)
    seen.tell(await stream.get_final_response())
    seen.told.append(type(stream))


async def _stream_fails(seen: Seen) -> None:
    stream = seen.agent(call(), Turn(error=Scripted("in a stream"))).run("Go.", stream=True)
    with pytest.raises(Scripted) as raised:
        async for update in stream:
            seen.tell(update)
    seen.tell(raised.value)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def _leaves(seen: Seen) -> None:
    stream = seen.agent(call(), say()).run("Go.", stream=True)
    stream.with_cleanup_hook(lambda: seen.told.append("cleaned"))
    seen.tell(await anext(stream))
    if hasattr(stream, "close"):
        await stream.close()
    else:  # 1.0 has none
        del stream
        gc.collect(1)


async def _cancels(seen: Seen) -> None:
    task = asyncio.create_task(seen.agent(say(pause=5)).run("Go."))
    await asyncio.sleep(0.02)
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    seen.tell(raised.value)


async def _graph(seen: Seen) -> None:
    for event in await graph(Passes(id="passes"), Ends(id="ends")).run("Go."):
        seen.tell(event)


async def _graph_fails(seen: Seen) -> None:
    stream = graph(Breaks(id="breaks")).run("Go.", stream=True)
    with pytest.raises(Scripted) as raised:
        async for event in stream:
            seen.tell(event)
    seen.tell(raised.value)


async def _graph_refuses(seen: Seen) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared, with and without
        await graph(Ends(id="ends")).run()
    seen.tell(raised.value)


async def _chat(seen: Seen) -> None:
    for event in await group_chat(max_rounds=2):
        seen.tell(event)


async def _plans(seen: Seen) -> None:
    for event in await magentic(max_round_count=2):
        seen.tell(event)


WAYS = [
    _answers, _bounded, _waits, _fails, _terminates, _streams, _stream_fails, _leaves, _cancels, _graph, _graph_fails,
    _graph_refuses, _chat, _plans,
]  # fmt: skip
UNSEEN = [_graph_refuses]  # before anything begins
Way = Callable[[Seen], Any]


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    asyncio.run(way(seen))
    return seen.told
