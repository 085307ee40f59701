"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import asyncio
import copy
import gc
import importlib
import inspect
import pickle
import traceback
from collections.abc import Awaitable, Callable, Iterator
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
from stopcause.receipts import model
from stopcause.receipts.hooks.agent_framework import agent as agent_framework_agent
from stopcause.receipts.hooks.agent_framework.agent import AgentCall
from stopcause.receipts.hooks.agent_framework.model import ModelCall
from stopcause.receipts.hooks.agent_framework.workflow import WorkflowCall
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.agent_framework.models import Turn, agent, answer, call, say
from tests.frameworks.agent_framework.paths_orchestrations import group_chat, magentic
from tests.frameworks.agent_framework.paths_workflows import Breaks, Ends, Passes, graph
from tests.frameworks.harness import Scripted
from tests.frameworks.sinks import Blocks, Raises, broken

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
Way = Callable[[Seen], Any]


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    asyncio.run(way(seen))
    return seen.told


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("agent_framework")
    yield
    stopcause.uninstrument("agent_framework")


ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))


@ways
def test_all_is_the_same_with_the_hook(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("agent_framework")
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            assert receipts.receipts or way is _graph_refuses  # which is refused before anything begins
    finally:
        stopcause.uninstrument("agent_framework")
    assert seen_by(way) == bare


def test_the_framework_is_given_back_as_it_was() -> None:
    before = [vars(owner)[name] for owner, name in POINTS]
    stopcause.instrument("agent_framework")
    during = [vars(owner)[name] for owner, name in POINTS]
    stopcause.uninstrument("agent_framework")
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert [vars(owner)[name] for owner, name in POINTS] == before


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


@pytest.mark.parametrize("word", ["1", "agent_framework"])
@pytest.mark.usefixtures("hook")
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_answers)
        assert receipts.lines == []


@ways
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("agent_framework")
    blocks = Blocks()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert seen_by(way) == bare
    finally:
        blocks.go.set()
        stopcause.uninstrument("agent_framework")
        stopcause.configure()


@ways
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "waiting"), (Hook, "begin"), (Hook, "read"),
        (AgentCall, "describe"), (AgentCall, "requested"), (AgentCall, "round_trip"), (AgentCall, "tool_begins"),
        (AgentCall, "tool_returned"), (AgentCall, "item"), (ModelCall, "ended"),
        (ModelCall, "item"), (WorkflowCall, "item"), (WorkflowCall, "describe"),
        (WorkflowCall, "used_up"),
        (agent_framework_agent, "Budget"), (agent_framework_agent, "Answer"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
def test_a_fault_of_the_hooks_changes_nothing(way: Way, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    stopcause.instrument("agent_framework")
    try:
        with recorded():
            monkeypatch.setattr(owner, name, broken)
            assert seen_by(way) == bare
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("agent_framework")


@pytest.mark.parametrize("broken", ["cause", "is_first_end", "came_back", "failed", "ended", "left", "read_result"])
@ways
def test_whatever_fails_a_run_that_began_has_an_end(way: Way, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    stopcause.instrument("agent_framework")
    try:
        with recorded() as receipts:
            monkeypatch.setattr(AgentCall, broken, broken)
            monkeypatch.setattr(WorkflowCall, broken, broken)
            assert seen_by(way) == bare
            began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
            assert began == {each.run_id for each in receipts.receipts} or not hasattr(ResponseStream, "close")
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
def test_the_context_is_left_as_it_was() -> None:
    async def program() -> None:
        async for _ in agent(call(), say()).run("Go.", stream=True):
            assert stopcause.current_run() is None
        assert stopcause.current_run() is None

    with recorded():
        asyncio.run(program())
