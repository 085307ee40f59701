"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import pickle
import traceback
from collections.abc import Awaitable, Callable, Iterator
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
from stopcause.receipts import model
from stopcause.receipts.hooks import google_adk
from stopcause.receipts.hooks.google_adk import call as google_adk_call
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.google_adk.models import Desk, Turn, agent, call, say, text
from tests.frameworks.harness import Scripted
from tests.frameworks.sinks import Blocks, Raises, broken

POINTS = [
    (Runner, "run_async"), (Runner, "run_live"), (InvocationContext, "increment_llm_call_count"),
    (BaseLlmFlow, "_handle_before_model_callback"), (BaseAgent, "_handle_before_agent_callback"),
    *((PluginManager, name) for name in google_adk._PLUGINS),
]  # fmt: skip
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
    stopcause.instrument("google_adk")
    yield
    stopcause.uninstrument("google_adk")


ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
some_ways = pytest.mark.parametrize("way", [_waits, _tool_fails, _leaves], ids=lambda way: way.__name__.strip("_"))


@ways
def test_all_is_the_same_with_the_hook(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("google_adk")
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            assert receipts.receipts
    finally:
        stopcause.uninstrument("google_adk")
    assert seen_by(way) == bare


def test_the_framework_is_given_back_as_it_was() -> None:
    before = [vars(owner)[name] for owner, name in POINTS]
    stopcause.instrument("google_adk")
    during = [vars(owner)[name] for owner, name in POINTS]
    stopcause.uninstrument("google_adk")
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert [vars(owner)[name] for owner, name in POINTS] == before


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.isasyncgenfunction(Runner.run_async)
    assert "new_message" in inspect.signature(Runner.run_async).parameters
    assert all(inspect.iscoroutinefunction(getattr(owner, name)) for owner, name in POINTS[3:])
    assert Runner.run_async.__qualname__ == "Runner.run_async"


@pytest.mark.usefixtures("hook")
def test_no_plugin_of_ours_is_added_and_agents_can_be_copied() -> None:
    desk = Desk(agent(say()))
    assert desk.runner.plugin_manager.plugins == []
    assert copy.deepcopy(desk.runner.agent).name == desk.runner.agent.clone().name == "clerk"
    assert pickle.loads(pickle.dumps(RunConfig())) == RunConfig()  # noqa: S301 - our own bytes


@pytest.mark.usefixtures("hook")
def test_a_runner_of_the_programs_own_is_one_run() -> None:
    class Own(Runner):
        async def run_async(self, **given: Any) -> Any:
            async for event in super().run_async(**given):
                yield event

    desk = Desk(agent(say()))
    desk.runner.__class__ = Own
    with recorded() as receipts:
        asyncio.run(_awaited(desk.run()))
        assert receipts.stopped.stop_cause == "natural"


@pytest.mark.parametrize("is_first", [True, False], ids=["theirs-first", "ours-first"])
def test_another_instrumentation_of_the_same_functions_goes_on_working(
    is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As OpenInference's, which is made with wrapt and needs the runner."""
    wrapt: Any = importlib.import_module("wrapt")  # comes with OpenTelemetry
    seen: list[str] = []

    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        seen.append(instance.app_name)
        return wrapped(*args, **kwargs)

    with recorded() as receipts:
        if not is_first:
            stopcause.instrument("google_adk")
        monkeypatch.setattr(Runner, "run_async", wrapt.FunctionWrapper(vars(Runner)["run_async"], wrapper))
        stopcause.instrument("google_adk")
        asyncio.run(_awaited(Desk(agent(call(), say())).run()))
        assert (receipts.stopped.stop_cause, receipts.stopped.steps) == ("natural", 2)
        stopcause.uninstrument("google_adk")
    assert seen == ["desk"]


@pytest.mark.parametrize("method", ["cause", "is_first_end", "came_back", "failed", "ended", "left", "read_result"])
@some_ways
def test_whatever_fails_a_run_that_began_has_an_end(way: Way, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    stopcause.instrument("google_adk")
    try:
        with recorded() as receipts:
            monkeypatch.setattr(google_adk_call.RunnerCall, method, broken)
            assert seen_by(way) == bare
            began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
            assert began == {each.run_id for each in receipts.receipts}
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("google_adk")


@pytest.mark.parametrize("word", ["1", "google_adk"])
@pytest.mark.usefixtures("hook")
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_answers)
        assert receipts.lines == []


@some_ways
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("google_adk")
    blocks = Blocks()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert seen_by(way) == bare
    finally:
        blocks.go.set()
        stopcause.uninstrument("google_adk")
        stopcause.configure()


@some_ways
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "waiting"), (Hook, "begin"), (Hook, "read"),
        (google_adk_call.RunnerCall, "item"), (google_adk_call.RunnerCall, "heard"),
        (google_adk_call.RunnerCall, "stepped"), (google_adk_call.RunnerCall, "describe"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
def test_a_fault_of_the_hooks_changes_nothing(
    way: Way, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = seen_by(way)
    stopcause.instrument("google_adk")
    try:
        with recorded():
            monkeypatch.setattr(owner, name, broken)
            assert seen_by(way) == bare
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("google_adk")


@pytest.mark.usefixtures("hook")
def test_an_end_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_adk_call.RunnerCall, "_looped", broken)
    with recorded() as receipts:
        asyncio.run(_awaited(Desk(agent(say())).run()))
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "result_unreadable")
        assert "hook_failed" in [finding.code for finding in receipts.stopped.findings or ()]


@pytest.mark.usefixtures("hook")
def test_the_context_is_left_as_it_was() -> None:
    async def program() -> None:
        desk = Desk(agent(say()))
        await desk.opened()
        async for _ in desk.stream():
            assert stopcause.current_run() is None
        assert stopcause.current_run() is None

    with recorded():
        asyncio.run(program())
