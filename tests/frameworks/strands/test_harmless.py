"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable, Iterator
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
from stopcause.receipts import model
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.hooks.strands import agent as strands_agent
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.harness import Scripted
from tests.frameworks.sinks import Blocks, Raises, broken
from tests.frameworks.strands.models import On, Turn, agent, answers, ask_before, call, say

POINTS = [
    (Agent, "stream_async"), (Agent, "structured_output_async"), (HookRegistry, "invoke_callbacks_async"),
    (Graph, "stream_async"), (Swarm, "stream_async"),
]  # fmt: skip
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


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("strands")
    yield
    stopcause.uninstrument("strands")


ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@ways
def test_all_is_the_same_with_the_hook(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("strands")
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            assert receipts.receipts
    finally:
        stopcause.uninstrument("strands")
    assert seen_by(way) == bare


def test_the_framework_is_given_back_as_it_was() -> None:
    before = [vars(owner)[name] for owner, name in POINTS]
    stopcause.instrument("strands")
    during = [vars(owner)[name] for owner, name in POINTS]
    stopcause.uninstrument("strands")
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert [vars(owner)[name] for owner, name in POINTS] == before


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.isasyncgenfunction(Agent.stream_async)
    assert "prompt" in inspect.signature(Agent.stream_async).parameters
    assert inspect.iscoroutinefunction(HookRegistry.invoke_callbacks_async)
    assert Agent.stream_async.__qualname__ == "Agent.stream_async"


@pytest.mark.parametrize("name", ["owner", "hook", "original", "begin", "agent_", "registry", "args", "kwargs"])
@pytest.mark.usefixtures("hook")
def test_no_name_of_ours_takes_an_argument_of_the_programs(name: str) -> None:
    """All that the framework does not know is the state of the program's tools, by whatever names."""
    seen: list[Any] = []
    hooks = [On(BeforeToolCallEvent, lambda event: seen.append(event.invocation_state))]
    made = agent(call("look_up"), say(), hooks=hooks)
    made("Go.", **{name: "theirs"})
    assert seen[0][name] == "theirs"


@pytest.mark.parametrize("broken", ["cause", "is_first_end", "came_back", "failed", "ended", "left"])
@ways
def test_whatever_fails_a_run_that_began_has_an_end(way: Way, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    stopcause.instrument("strands")
    try:
        with recorded() as receipts:
            monkeypatch.setattr(strands_agent.AgentCall, broken, broken)
            assert seen_by(way) == bare
            began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
            assert began == {each.run_id for each in receipts.receipts}
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("strands")


@pytest.mark.usefixtures("hook")
def test_an_agent_has_no_hooks_of_ours() -> None:
    def callbacks(made: Agent) -> int:
        return sum(len(each) for each in made.hooks._registered_callbacks.values())

    watched = callbacks(agent(say()))
    stopcause.uninstrument("strands")
    assert callbacks(agent(say())) == watched


@pytest.mark.parametrize("word", ["1", "strands"])
@pytest.mark.usefixtures("hook")
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_answers)
        assert receipts.lines == []


@ways
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("strands")
    blocks = Blocks()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert seen_by(way) == bare
    finally:
        blocks.go.set()
        stopcause.uninstrument("strands")
        stopcause.configure()


@ways
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "waiting"), (Hook, "begin"), (Hook, "read"),
        (strands_agent.AgentCall, "item"), (strands_agent.AgentCall, "event"), (strands_agent.AgentCall, "describe"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
def test_a_fault_of_the_hooks_changes_nothing(
    way: Way, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = seen_by(way)
    stopcause.instrument("strands")
    try:
        with recorded():
            monkeypatch.setattr(owner, name, broken)
            assert seen_by(way) == bare
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("strands")


@pytest.mark.usefixtures("hook")
def test_a_result_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strands_agent, "_shape", broken)
    with recorded() as receipts:
        agent(say())("Go.")
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "result_unreadable")
        assert "hook_failed" in [finding.code for finding in receipts.stopped.findings or ()]


@pytest.mark.usefixtures("hook")
def test_the_context_is_left_as_it_was() -> None:
    async def program() -> None:
        stream = agent(say()).stream_async("Go.")
        async for _ in stream:
            assert stopcause.current_run() is None
        assert stopcause.current_run() is None

    with recorded():
        asyncio.run(program())
