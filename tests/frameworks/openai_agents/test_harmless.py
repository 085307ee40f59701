"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import Agent, InputGuardrail, MaxTurnsExceeded, RunHooks, Runner, tool
from agents.lifecycle import RunHooksBase
from agents.run import AgentRunner
from agents.run_internal import tool_execution
from agents.tracing import get_trace_provider

import stopcause
from stopcause.receipts.hooks import openai_agents
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.hooks.openai_agents import watch as openai_agents_watch
from stopcause.receipts.hooks.openai_agents.watch import FAILURE
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.harness import Scripted
from tests.frameworks.openai_agents.models import MARKER, agent, calls, says, slow
from tests.frameworks.openai_agents.paths_approvals import payer
from tests.frameworks.openai_agents.paths_ends import Raising, break_down, break_loudly, ends_with, look_up, trips
from tests.frameworks.openai_agents.paths_outside import nesting, never_done, waiter
from tests.frameworks.sinks import Blocks, Raises, broken

POINTS = ("run", "run_streamed")
CALLBACKS = [name for name in dir(RunHooksBase) if name.startswith("on_")]


class Seen(RunHooks[Any]):
    """What a program sees: callbacks with their arguments, items of streams, results, exceptions."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            frames = [frame.name for frame in traceback.extract_tb(value.__traceback__)]
            self.told.append((type(value), frames[-1], repr(value.__cause__), value.args))
            return
        said = (value.final_output, value.last_agent.name, len(value.interruptions), len(value.raw_responses))
        self.told.append((type(value), said, [item.type for item in value.new_items], stopcause.current_run()))


def _callback(name: str) -> Callable[..., Any]:
    async def callback(self: Seen, *given: Any, **named: Any) -> None:
        self.told.append((name, [type(each).__name__ for each in given], list(named)))

    return callback


for _name in CALLBACKS:
    setattr(Seen, _name, _callback(_name))


async def _answers(seen: Seen) -> None:
    seen.tell(await Runner.run(agent(calls("look_up"), says(), tools=[look_up]), MARKER, hooks=seen))


async def _goes_on_after_an_error(seen: Seen) -> None:
    seen.tell(await Runner.run(agent(calls("break_down"), says(), tools=[break_down]), MARKER, hooks=seen))


async def _hands_over(seen: Seen) -> None:
    made = agent(calls("transfer_to_billing"), handoffs=[agent(says(), name="billing")])
    seen.tell(await Runner.run(made, MARKER, hooks=seen))


async def _nests(seen: Seen) -> None:
    seen.tell(await Runner.run(nesting(never_done(), max_turns=1), MARKER, hooks=seen))


async def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        await Runner.run(agent(error), MARKER, hooks=seen)
    assert raised.value is error
    seen.tell(raised.value)


async def _fails_in_a_tool(seen: Seen) -> None:
    with pytest.raises(Exception, match="break_loudly") as raised:
        await Runner.run(agent(calls("break_loudly"), tools=[break_loudly]), MARKER, hooks=seen)
    seen.tell(raised.value)


async def _hits_the_limit(seen: Seen) -> None:
    with pytest.raises(MaxTurnsExceeded) as raised:
        await Runner.run(never_done(), MARKER, hooks=seen, max_turns=1)
    assert raised.value.run_data is not None
    seen.tell(raised.value)


async def _handles_the_limit(seen: Seen) -> None:
    handlers: Any = {"max_turns": ends_with}
    seen.tell(await Runner.run(never_done(), MARKER, hooks=seen, max_turns=1, error_handlers=handlers))
    assert handlers == {"max_turns": ends_with}


async def _is_refused(seen: Seen) -> None:
    wrong: Any = object()
    with pytest.raises(TypeError) as raised:
        await Runner.run(agent(says()), MARKER, hooks=wrong)
    seen.tell(raised.value)


async def _raises_in_its_callback(seen: Seen) -> None:
    with pytest.raises(Scripted) as raised:
        await Runner.run(agent(says()), MARKER, hooks=Raising())
    seen.tell(raised.value)


async def _waits_and_goes_on(seen: Seen) -> None:
    made = payer()
    result = await Runner.run(made, MARKER, hooks=seen)
    state = result.to_state()
    state.approve(result.interruptions[0])
    seen.tell(await Runner.run(made, state, hooks=seen))


async def _is_cancelled(seen: Seen) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(Runner.run(waiter(), MARKER, hooks=seen, context=begun.set))
    await begun.wait()
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    seen.tell(raised.value)


async def _streams(seen: Seen) -> None:
    stream = Runner.run_streamed(agent(calls("look_up"), says(), tools=[look_up]), MARKER, hooks=seen)
    async for event in stream.stream_events():
        seen.told.append((event.type, stopcause.current_run()))
    seen.tell(stream)


async def _stream_fails(seen: Seen) -> None:
    for made in (never_done(), agent(says(), input_guardrails=[InputGuardrail(trips)]), agent(Scripted("so"))):
        stream = Runner.run_streamed(made, MARKER, hooks=seen, max_turns=1)
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each of the three, compared with and without
            async for event in stream.stream_events():
                seen.told.append(event.type)
        seen.tell(raised.value)


async def _stream_is_cancelled(seen: Seen) -> None:
    for mode in ("immediate", "after_turn"):
        stream = Runner.run_streamed(agent(calls("look_up"), says(), tools=[look_up]), MARKER, hooks=seen)
        async for event in stream.stream_events():
            seen.told.append(event.type)
            if event.type == "run_item_stream_event":
                stream.cancel(mode=mode)
        assert stream.is_complete


WAYS = [
    _answers, _goes_on_after_an_error, _hands_over, _nests, _fails, _fails_in_a_tool, _hits_the_limit,
    _handles_the_limit, _is_refused, _raises_in_its_callback, _waits_and_goes_on, _is_cancelled, _streams,
    _stream_fails, _stream_is_cancelled,
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
    stopcause.instrument("openai_agents")
    yield
    stopcause.uninstrument("openai_agents")


ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))


@ways
def test_all_is_the_same_with_the_hook(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("openai_agents")
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            assert receipts.receipts
    finally:
        stopcause.uninstrument("openai_agents")
    assert seen_by(way) == bare


def test_the_framework_is_given_back_as_it_was() -> None:
    def points() -> list[Any]:
        return [
            *(vars(AgentRunner)[name] for name in POINTS),
            *(vars(each)[FAILURE] for each in (tool, tool_execution)),
        ]

    before = points()
    stopcause.instrument("openai_agents")
    during = points()
    stopcause.uninstrument("openai_agents")
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert points() == before


def test_what_somebody_put_over_ours_stays() -> None:
    original = AgentRunner.run
    stopcause.instrument("openai_agents")
    ours = AgentRunner.run

    async def theirs(*args: Any, **kwargs: Any) -> Any:
        return await ours(*args, **kwargs)

    try:
        AgentRunner.run = theirs
        stopcause.uninstrument("openai_agents")
        assert AgentRunner.run is theirs
        with recorded() as receipts:
            assert seen_by(_answers)
            assert receipts.lines == []
    finally:
        AgentRunner.run = original


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.iscoroutinefunction(AgentRunner.run)
    assert "starting_agent" in inspect.signature(AgentRunner.run).parameters
    assert AgentRunner.run_streamed.__qualname__ == "AgentRunner.run_streamed"


@pytest.mark.usefixtures("hook")
def test_no_trace_processor_is_added() -> None:
    provider: Any = get_trace_provider()
    with recorded():
        seen_by(_answers)
    assert provider._multi_processor._processors == ()


@pytest.mark.usefixtures("hook")
def test_our_frame_in_a_traceback_holds_no_input() -> None:
    async def program() -> None:
        with pytest.raises(Scripted) as raised:
            await Runner.run(agent(Scripted("so")), MARKER)
        ours = [
            frame.f_locals
            for frame, _ in traceback.walk_tb(raised.value.__traceback__)
            if "stopcause" in frame.f_code.co_filename
        ]
        assert ours
        assert not any(MARKER in repr(value) or isinstance(value, Agent) for each in ours for value in each.values())

    with recorded():
        asyncio.run(program())


@pytest.mark.parametrize("is_on", [False, True])
def test_an_error_that_nobody_fetched_is_still_told_of(is_on: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def program() -> None:
        stream = Runner.run_streamed(agent(Scripted("so")), MARKER)
        assert stream.run_loop_task is not None
        await asyncio.wait([stream.run_loop_task])
        del stream
        gc.collect()

    if is_on:
        stopcause.instrument("openai_agents")
    with caplog.at_level(logging.ERROR, "asyncio"), recorded():
        asyncio.run(program())
        gc.collect()
    stopcause.uninstrument("openai_agents")
    assert sum("never retrieved" in each.getMessage() for each in caplog.records) == 1


@pytest.mark.parametrize("word", ["1", "openai_agents"])
@pytest.mark.usefixtures("hook")
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_answers)
        assert receipts.lines == []


@ways
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("openai_agents")
    blocks = Blocks()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert seen_by(way) == bare
    finally:
        blocks.go.set()
        stopcause.uninstrument("openai_agents")
        stopcause.configure()


@ways
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "progress"), (Run, "limit"), (Run, "add_usage"),
        (Hook, "begin"), (Hook, "read"), (openai_agents_watch, "finish_of"), (openai_agents_watch, "_has_failed"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
def test_a_fault_of_the_hooks_changes_nothing(way: Way, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    stopcause.instrument("openai_agents")
    try:
        with recorded():
            monkeypatch.setattr(owner, name, broken)
            assert seen_by(way) == bare
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("openai_agents")


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize(
    ("way", "name", "where"),
    [
        (_answers, "note_waits", "run.returned"), (_fails, "_cause_of", "run.raised"),
        (_streams, "note_waits", "run_streamed.done"), (_streams, "_follow", "run_streamed.follow"),
        (_stream_fails, "_cause_of", "run_streamed.done"),
    ],
)  # fmt: skip
def test_a_run_whose_end_cannot_be_read_is_over(
    way: Way, name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded() as receipts:
        monkeypatch.setattr(openai_agents, name, broken)
        seen_by(way)
        stopped = receipts.receipts[0]
    assert stopped.stop_cause == "unknown"
    assert ("hook_failed", f"stopcause.openai_agents:{where}") in _found(stopped)


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize("name", ["_describe", "_limited", "Watch.name_thread"])
def test_a_run_whose_beginning_cannot_be_read_leaves_a_receipt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded() as receipts:
        monkeypatch.setattr(f"stopcause.receipts.hooks.openai_agents.{name}", broken)
        seen_by(_answers)
        kinds = [record.kind for record in receipts.records]
    assert (kinds[0], kinds[-1]) == ("run.started", "run.stopped")


def _found(receipt: Any) -> list[tuple[str, str | None]]:
    return [(each.code, each.where) for each in receipt.findings or ()]


@pytest.mark.usefixtures("hook")
def test_the_context_is_left_as_it_was() -> None:
    async def program() -> None:
        before = dict(contextvars())
        with contextlib.suppress(Scripted):
            await Runner.run(agent(Scripted("so")), MARKER)
        stream = Runner.run_streamed(agent(slow), MARKER)
        assert stopcause.current_run() is None
        stream.cancel()
        assert {key: value for key, value in contextvars().items() if value is not None} == before

    def contextvars() -> dict[str, Any]:
        from contextvars import copy_context  # noqa: PLC0415 - only here

        return {var.name: value for var, value in copy_context().items() if value is not None}

    with recorded():
        asyncio.run(program())
