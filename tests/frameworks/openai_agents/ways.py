"""What a program can do with the OpenAI Agents SDK, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from agents import InputGuardrail, MaxTurnsExceeded, RunHooks, Runner, tool
from agents.lifecycle import RunHooksBase
from agents.run import AgentRunner
from agents.run_internal import tool_execution

import stopcause
from stopcause.receipts.hooks import openai_agents
from stopcause.receipts.hooks.openai_agents import watch as openai_agents_watch
from stopcause.receipts.hooks.openai_agents.watch import FAILURE
from stopcause.receipts.run import Run
from tests.frameworks.harness import Scripted
from tests.frameworks.openai_agents.models import MARKER, agent, calls, says
from tests.frameworks.openai_agents.paths_approvals import payer
from tests.frameworks.openai_agents.paths_ends import Raising, break_down, break_loudly, ends_with, look_up, trips
from tests.frameworks.openai_agents.paths_outside import nesting, never_done, waiter

POINTS: list[tuple[Any, str]] = [
    (AgentRunner, "run"), (AgentRunner, "run_streamed"), (tool, FAILURE), (tool_execution, FAILURE),
]  # fmt: skip
FAULTS: list[tuple[Any, str]] = [
    (Run, "progress"), (Run, "limit"), (Run, "add_usage"), (openai_agents_watch, "finish_of"),
    (openai_agents_watch, "_has_failed"),
]  # fmt: skip
_ENDS = ("note_waits", "_cause_of", "_follow", "_returned", "_raised", "_is_over_limit", "_describe", "_limited")
ENDS: list[tuple[Any, str]] = [
    *((openai_agents, name) for name in _ENDS), (openai_agents_watch.Watch, "name_thread"),
]  # fmt: skip
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
