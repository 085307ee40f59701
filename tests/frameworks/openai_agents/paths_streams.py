"""Streamed runs: the loop is a task of its own, so what its reader does and how it ends are two things."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from agents import Agent, InputGuardrail, Runner
from agents.result import RunResultStreaming

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.openai_agents.models import MARKER, agent, calls, expires, says, slow_after
from tests.frameworks.openai_agents.paths_ends import (
    DONE,
    GUARDED,
    MODEL,
    STEPS,
    ends_with,
    look_up,
    status_error,
    trips,
)

ABORTED = ("BOUNDED_STOP", "caller_abort")


async def read(stream: RunResultStreaming) -> None:
    """Reads it to its end."""
    with contextlib.suppress(Exception):
        async for _ in stream.stream_events():
            pass


def streamed(made: Callable[[], Agent[Any]], **options: Any) -> Callable[[], Any]:
    """A path: one stream, read whole."""
    return lambda: _streamed(made, options)


async def _streamed(made: Callable[[], Agent[Any]], options: dict[str, Any]) -> None:
    await read(Runner.run_streamed(made(), MARKER, **options))


def two_turns() -> Agent[Any]:
    """A tool, then an answer."""
    return agent(calls("look_up"), says(), tools=[look_up])


async def settled(stream: RunResultStreaming) -> None:
    """Waits for the loop, as a program does that has other things to do."""
    assert stream.run_loop_task is not None
    await asyncio.wait([stream.run_loop_task])


async def left() -> None:
    stream = Runner.run_streamed(two_turns(), MARKER)
    async for _ in stream.stream_events():
        break
    await settled(stream)


async def never_read() -> None:
    await settled(Runner.run_streamed(two_turns(), MARKER))


async def cancelled(mode: Any) -> None:
    stream = Runner.run_streamed(two_turns(), MARKER)
    async for event in stream.stream_events():
        if event.type == "run_item_stream_event":
            stream.cancel(mode=mode)
    await settled(stream)


async def cancelled_when_done() -> None:
    stream = Runner.run_streamed(agent(says()), MARKER)
    async for _ in stream.stream_events():
        stream.cancel(mode="after_turn")
    await settled(stream)


async def reader_timed_out() -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None) as timer:
            stream = Runner.run_streamed(agent(slow_after(expires(timer))), MARKER)
            await read(stream)
    await settled(stream)


async def timed_out_in_block() -> None:
    with contextlib.suppress(TimeoutError):
        async with stopcause.run("ticket-desk"), asyncio.timeout(None) as timer:
            made = agent(calls("look_up"), slow_after(expires(timer)), tools=[look_up])
            await read(Runner.run_streamed(made, MARKER))


async def left_in_block() -> None:
    asked = asyncio.Event()
    async with stopcause.run("ticket-desk"):
        stream = Runner.run_streamed(agent(slow_after(asked.set)), MARKER)
        await asked.wait()
    stream.cancel()
    await settled(stream)


async def loop_stopped() -> None:
    """The program ends while nobody waits for the loop: asyncio cancels what is left."""
    asked = asyncio.Event()
    Runner.run_streamed(agent(slow_after(asked.set)), MARKER)
    await asked.wait()


PATHS = [
    Path_("streamed-natural", "the loop's task ends; the stream was read whole", DONE, streamed(two_turns)),
    Path_(
        "streamed-step-limit",
        "the loop ends without a word and the reader gets the exception",
        STEPS,
        streamed(lambda: agent(calls("look_up"), tools=[look_up]), max_turns=1),
    ),
    Path_(
        "streamed-step-limit-handled",
        "an error handler's output at the end of a stream",
        STEPS,
        streamed(
            lambda: agent(calls("look_up"), tools=[look_up]), max_turns=1, error_handlers={"max_turns": ends_with}
        ),
    ),
    Path_(
        "streamed-provider-error",
        "the provider answers 500 while the stream is open",
        MODEL,
        streamed(lambda: agent(calls("look_up"), status_error(500), tools=[look_up])),
    ),
    Path_(
        "streamed-input-guardrail",
        "the guardrail runs beside the first turn and ends it",
        GUARDED,
        streamed(lambda: agent(says(), input_guardrails=[InputGuardrail(trips)])),
    ),
    Path_("stream-left", "the reader leaves, the loop goes on to its end: no abort", DONE, left),
    Path_("stream-never-read", "nobody reads, the loop goes on to its end", DONE, never_read),
    Path_("stream-cancelled", 'cancel("immediate"): the loop is cancelled', ABORTED, lambda: cancelled("immediate")),
    Path_(
        "stream-cancelled-after-turn",
        'cancel("after_turn"): the loop ends without an output and without an error',
        ABORTED,
        lambda: cancelled("after_turn"),
    ),
    Path_(
        "stream-cancelled-when-done",
        'cancel("after_turn") in the last turn comes too late: it was done',
        DONE,
        cancelled_when_done,
    ),
    Path_(
        "stream-reader-timed-out",
        "a timer cuts the reader off and the SDK cancels the loop; that it was a timer is not to be seen from in here",
        ABORTED,
        reader_timed_out,
    ),
    Path_(
        "stream-timed-out-in-block",
        "the same inside the host's own block, which sees the timer; a tool had worked",
        ("BOUNDED_STOP", "time_limit"),
        timed_out_in_block,
    ),
    Path_(
        "stream-left-in-block",
        "the host's block is over and the loop in it goes on: nothing is done yet",
        ("FALSE_COMPLETE", "open_children"),
        left_in_block,
    ),
    Path_("stream-loop-stopped", "the program ends before the loop", ABORTED, loop_stopped),
]
