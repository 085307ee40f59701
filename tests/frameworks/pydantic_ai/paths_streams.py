"""Runs that are read as they go: by text, by event and by node; to the end, and not."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from typing import Any

from pydantic_ai import exceptions

from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.pydantic_ai.agents import PROMPT, Answer, agent, expecting, waiting
from tests.frameworks.pydantic_ai.models import calls, http, text

_DONE = ("FALSE_COMPLETE", "no_contract")
_LEFT = ("BOUNDED_STOP", "caller_abort")


async def _read(*script: Any, **options: Any) -> None:
    async with agent(*script, **options).run_stream(PROMPT) as stream:
        async for _ in stream.stream_output(debounce_by=None):
            pass


async def _left() -> None:
    async with agent(calls("look_up"), text("one two three")).run_stream(PROMPT) as stream:
        async for _ in stream.stream_text(delta=True, debounce_by=None):
            break


def _read_sync() -> None:
    stream = agent(text("one two")).run_stream_sync(PROMPT)
    with stream if hasattr(stream, "__exit__") else _nothing():
        assert stream.get_output()


class _nothing:  # noqa: N801 - a context manager of one line
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


async def _events() -> None:
    async with agent(calls("look_up"), text()).run_stream_events(PROMPT) as events:
        async for _ in events:
            pass


async def _events_left() -> None:
    async with agent(calls("look_up"), text()).run_stream_events(PROMPT) as events:
        async for _ in events:
            break


async def _iter() -> None:
    async with agent(calls("look_up"), text()).iter(PROMPT) as run:
        async for _ in run:
            pass


async def _iter_left() -> None:
    async with agent(calls("look_up"), text()).iter(PROMPT) as run:
        async for node in run:
            if type(node).__name__ == "CallToolsNode":
                break


async def _raises_after() -> None:
    async with agent(text()).iter(PROMPT) as run:
        async for _ in run:
            pass
        raise Scripted("canary-7f3a of the host")


async def _closed_after() -> None:
    """The reader of a generator of the host's stops after the last word, which leaves that generator in its block."""

    async def words() -> AsyncGenerator[str, None]:
        async with agent(text("one")).run_stream(PROMPT) as stream:
            yield await stream.get_output()

    reading = words()
    await anext(reading)
    await reading.aclose()


async def _closed_before() -> None:
    async def words() -> AsyncGenerator[str, None]:
        async with agent(text("one two")).run_stream(PROMPT) as stream:
            async for word in stream.stream_text(delta=True, debounce_by=None):
                yield word

    reading = words()
    await anext(reading)
    await reading.aclose()


async def _abandoned() -> None:
    made = agent(calls("look_up"), text()).iter(PROMPT)
    run = await made.__aenter__()
    await run.next(run.next_node)
    del run, made
    gc.collect()
    await asyncio.sleep(0)


async def _stream_waits() -> None:
    async with waiting(calls("pay")).run_stream(PROMPT) as stream:
        await stream.get_output()


PATHS = [
    Path_("stream", "A tool ran, then the answer was read word by word.", _DONE,
          lambda: _read(calls("look_up"), text("one two"))),
    Path_("stream-output-tool", "The output tool's arguments were read as they came.", _DONE,
          lambda: _read(calls("final_result", order="A-7"), output=Answer)),
    Path_("stream-left", "The reader left after the first word.", _LEFT, _left),
    Path_("stream-sync", "A stream that is read without a loop.", _DONE, lambda: asyncio.to_thread(_read_sync)),
    Path_("stream-model-500", "The provider failed before the first word.", ("FAILED", "model_failure"),
          expecting(exceptions.ModelHTTPError, lambda: _read(http(500)))),
    Path_("stream-waits", "A streamed run that ends by waiting.", ("WAITING_UNROUTED", "owner"), _stream_waits),
    Path_("events", "The run was read event by event.", _DONE, _events),
    Path_("events-left", "The reader of the events left after the first.", _LEFT, _events_left),
    Path_("iter", "The program drives the run node by node.", _DONE, _iter),
    Path_("iter-left", "It stops driving while a call is unanswered.", _LEFT, _iter_left),
    Path_("iter-raises-after-end", "The program raised when the run was over: that ended no run.", _DONE,
          expecting(Scripted, _raises_after)),
    Path_("stream-closed-after-end", "The reader closed its generator after the last word.", _DONE, _closed_after),
    Path_("stream-closed-before-end", "The reader closed its generator before the last word.", _LEFT, _closed_before),
    Path_("iter-abandoned", "It forgets the run; the garbage collection finds it.", _LEFT, _abandoned),
]  # fmt: skip
