"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import inspect
import logging
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers import context
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.pregel import Pregel
from langgraph.types import Command

import stopcause
from stopcause.receipts import capture, model
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.hooks.langgraph.run import GraphRun
from stopcause.receipts.run import Run, current
from stopcause.receipts.testing import recorded
from tests.frameworks.harness import Scripted
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, call, graph, say

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
    _answers, _answers_async, _streams, _streams_async, _events, _leaves, _throws, _fails, _runs_out, _cancels, _waits,
    _nests, _leaves_context,
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


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("langgraph")
    yield
    stopcause.uninstrument("langgraph")


ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))


@ways
def test_all_is_the_same_with_the_hook(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    bare = seen_by(way)
    stopcause.instrument("langgraph")
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            assert receipts.receipts
            assert not any(record.findings for record in receipts.receipts)
    finally:
        stopcause.uninstrument("langgraph")
    assert seen_by(way) == bare
    assert not [each for each in caplog.records if "callback" in each.getMessage()]


def test_nothing_of_the_framework_is_replaced() -> None:
    before = (dict(vars(Pregel)), list(context._configure_hooks))
    stopcause.instrument("langgraph")
    assert dict(vars(Pregel)) == before[0]
    assert len(context._configure_hooks) == len(before[1]) + 1
    stopcause.uninstrument("langgraph")
    assert (dict(vars(Pregel)), list(context._configure_hooks)) == before


@pytest.mark.parametrize("word", ["1", "langgraph"])
@pytest.mark.usefixtures("hook")
def test_it_is_turned_off_by_the_environment(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_nests)
        assert receipts.lines == []


@pytest.mark.usefixtures("hook")
def test_every_thread_and_context_has_it() -> None:
    def run() -> None:
        contextvars.Context().run(lambda: graph(models.collect).invoke({"done": []}))

    with recorded() as receipts:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert len(receipts.receipts) == 1


class _Bad:
    """A sink that raises, or hangs until it is let go."""

    def __init__(self, hang: threading.Event | None = None) -> None:
        self._hang = hang

    def write(self, _lines: Sequence[bytes]) -> None:
        if self._hang is None:
            raise OSError("full")
        self._hang.wait(20)

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize("way", [_answers, _streams_async, _fails, _waits])
@pytest.mark.usefixtures("hook")
def test_a_bad_sink_changes_nothing(way: Way, hangs: bool) -> None:
    bare = _without_hook(way)
    letting_go = threading.Event()
    before = (capture._config, capture._writer)
    stopcause.configure(sink=_Bad(letting_go if hangs else None))
    try:
        assert seen_by(way) == bare
    finally:
        letting_go.set()
        capture._config, capture._writer = before


@pytest.mark.parametrize("broken", ["say", "limit", "waiting", "start", "end"])
@ways
@pytest.mark.usefixtures("hook")
def test_a_fault_of_ours_changes_nothing(way: Way, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = _without_hook(way)

    def fault(*_: Any, **__: Any) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(Run, broken, fault)
    with recorded():
        assert seen_by(way) == bare


@ways
def test_an_untested_version_changes_nothing(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    made = Hook.__init__

    def untested(hook: Hook, *args: Any, **_: Any) -> None:
        made(hook, *args, is_tested=False)

    monkeypatch.setattr(Hook, "__init__", untested)
    stopcause.instrument("langgraph")
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            found = {each.code for record in receipts.receipts for each in record.findings or ()}
            assert found == {"untested_version"}
    finally:
        stopcause.uninstrument("langgraph")


@pytest.mark.usefixtures("hook")
def test_nothing_stays_behind() -> None:
    handler = next(each[0].get() for each in context._configure_hooks if each[0].name == "stopcause_langgraph")
    with recorded():
        for way in WAYS:
            seen_by(way)
    assert handler._to.inside == {}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])  # noqa: S301 - our own bytes
@pytest.mark.usefixtures("hook")
def test_a_configuration_can_be_copied(copied: Callable[[Any], Any]) -> None:
    """As by a node that hands it to another process, or changes a copy of it."""

    def node(_state: models.State, config: RunnableConfig) -> models.State:
        graph(models.collect, name="copied").invoke({"done": []}, {"callbacks": copied(config["callbacks"])})
        return {}

    with recorded() as receipts:
        graph(node).invoke({"done": []})
        assert "ticket-graph" in [each.agent for each in receipts.receipts]
        assert {each.stop_cause for each in receipts.receipts} == {"natural"}


class _Unreadable:
    """A message that raises, in the state of a graph that came back."""

    type = "ai"

    @property
    def tool_calls(self) -> Any:
        raise Scripted("of a customer")


@pytest.mark.usefixtures("hook")
def test_a_result_that_cannot_be_read_is_no_natural_end() -> None:
    with recorded() as receipts:
        builder = StateGraph(dict)
        builder.add_node("node", lambda _: {"messages": [_Unreadable()]})
        builder.add_edge(START, "node")
        assert builder.compile().invoke({"messages": []})
        stopped = receipts.stopped
        assert stopped.stop_cause == "unknown"
        assert "hook_failed" in [each.code for each in stopped.findings or ()]


@pytest.mark.parametrize(
    "name", ["look_at_result", "node_ended", "node_started", "let_go", "say_limits", "failure_behind", "node_failed"]
)
@ways
@pytest.mark.usefixtures("hook")
def test_whatever_fails_a_run_that_began_has_an_end(way: Way, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = _without_hook(way)

    def fault(*_: Any, **__: Any) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(GraphRun, name, fault)
    with recorded() as receipts:
        assert seen_by(way) == bare
        began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
        assert began == {each.run_id for each in receipts.receipts}


def _without_hook(way: Way) -> list[Any]:
    stopcause.uninstrument("langgraph")
    bare = seen_by(way)
    stopcause.instrument("langgraph")
    logging.getLogger("stopcause").setLevel(logging.CRITICAL)
    return bare
