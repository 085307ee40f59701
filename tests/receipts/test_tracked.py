"""Functions and streams that are runs: they behave as what they wrap, and end when that is over."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest

import stopcause
from stopcause.receipts.run import current
from stopcause.receipts.testing import Recorded
from tests.support.captured import Wrong, verdict_of

# Functions and streams ------------------------------------------------------------------------------------------------


def test_a_tracked_function_of_every_kind_is_a_run(receipts: Recorded) -> None:
    @stopcause.tracked
    def plain(value: int) -> int:
        return value

    @stopcause.tracked(agent="named", thread_id="t")
    async def coroutine(value: int) -> int:
        return value

    @stopcause.tracked
    def stream() -> Iterator[int]:
        assert stopcause.current_run() is not None
        yield from (1, 2)

    @stopcause.tracked
    async def async_stream() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def read() -> list[int]:
        return [each async for each in async_stream()]

    assert (plain(1), asyncio.run(coroutine(2)), list(stream()), asyncio.run(read())) == (1, 2, [1, 2], [1, 2])
    assert [(stop.agent, stop.stop_cause) for stop in receipts.receipts] == [
        ("plain", "natural"),
        ("named", "natural"),
        ("stream", "natural"),
        ("async_stream", "natural"),
    ]


def test_a_stream_that_its_reader_closes_is_an_abort(receipts: Recorded) -> None:
    ended: list[str] = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            ended.append("finally")

    stream = stopcause.wrap_stream(numbers(), "a")
    assert next(stream) == 1
    assert current.get() is None
    stream.close()

    assert ended == ["finally"]
    assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("caller_abort", "reader_left")


def test_a_stream_that_is_dropped_is_closed_when_it_is_collected(receipts: Recorded) -> None:
    stream = stopcause.wrap_stream(iter((1, 2)), "a")
    next(stream)
    del stream
    gc.collect()

    assert (receipts.stopped.reason_code, receipts.stopped.closed_by) == ("reader_left", "garbage_collection")


def test_a_stream_that_nobody_reads_is_no_run(receipts: Recorded) -> None:
    stopcause.wrap_stream(iter((1, 2)), "a")
    gc.collect()

    assert receipts.records == []


def test_an_async_stream_that_is_finalised_in_another_context(receipts: Recorded) -> None:
    @stopcause.tracked
    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def main() -> None:
        stream = numbers()
        await asyncio.create_task(anext(stream))  # type: ignore[arg-type]  # a coroutine
        await asyncio.create_task(stream.aclose())  # type: ignore[attr-defined]

    asyncio.run(main())

    assert receipts.stopped.stop_cause == "caller_abort"


def echo() -> Generator[Any, Any, str]:
    said = yield "ready"
    try:
        yield said
    except Wrong:
        yield "caught"
    return "returned"


async def async_echo() -> AsyncGenerator[Any, Any]:
    said = yield "ready"
    try:
        yield said
    except Wrong:
        yield "caught"


@pytest.mark.parametrize("wrap", [lambda: stopcause.wrap_stream(echo(), "a"), stopcause.tracked(echo)])
def test_a_generator_keeps_what_generators_do(receipts: Recorded, wrap: Callable[[], Generator[Any, Any, str]]) -> None:
    stream = wrap()

    assert next(stream) == "ready"
    assert stream.send("hello") == "hello"
    assert stream.throw(Wrong()) == "caught"
    with pytest.raises(StopIteration) as ended:
        next(stream)
    assert ended.value.value == "returned"
    assert receipts.stopped.stop_cause == "natural"


@pytest.mark.parametrize("wrap", [lambda: stopcause.wrap_stream(async_echo(), "a"), stopcause.tracked(async_echo)])
def test_an_async_generator_keeps_what_they_do(
    receipts: Recorded, wrap: Callable[[], AsyncGenerator[Any, Any]]
) -> None:
    async def main() -> None:
        stream = wrap()
        assert await anext(stream) == "ready"
        assert await stream.asend("hello") == "hello"
        assert await stream.athrow(Wrong()) == "caught"
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(main())

    assert receipts.stopped.stop_cause == "natural"


def test_a_tracked_function_stays_what_it_was_to_those_who_look() -> None:
    async def coroutine() -> None: ...

    assert inspect.isgeneratorfunction(stopcause.tracked(echo))
    assert inspect.isasyncgenfunction(stopcause.tracked(async_echo))
    assert inspect.iscoroutinefunction(stopcause.tracked(coroutine))
    assert stopcause.tracked(echo).__name__ == "echo"
    assert inspect.signature(stopcause.tracked(verdict_of)) == inspect.signature(verdict_of)
