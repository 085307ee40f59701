"""Odd streams and odd functions: what `tracked` and `wrap_stream` are given that is no plain generator or coroutine."""

from __future__ import annotations

import asyncio
import copy
import inspect
import subprocess
import sys
import types
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest

import stopcause
from stopcause.receipts import capture
from stopcause.receipts.run import current
from stopcause.receipts.testing import Recorded


async def fails() -> None:
    await asyncio.sleep(0)
    raise LookupError


def items() -> Generator[int, str, str]:
    assert (yield 1) == "sent"
    raise LookupError


async def async_items() -> AsyncIterator[int]:
    yield 1
    raise LookupError


class Callable_:  # noqa: N801 - what is tested is that it can be called
    async def __call__(self) -> None:
        await fails()


def awaited(function: Callable[[], Any]) -> None:
    asyncio.run(function())


def iterated(function: Callable[[], Any]) -> None:
    stream: Any = function()
    assert type(stream) is types.GeneratorType
    assert next(stream) == 1
    stream.send("sent")


def iterated_async(function: Callable[[], Any]) -> None:
    async def read() -> None:
        stream = function()
        assert inspect.isasyncgen(stream)
        async for _ in stream:
            pass

    asyncio.run(read())


@pytest.mark.parametrize(
    ("function", "use"),
    [
        (lambda: fails(), awaited),  # noqa: PLW0108 - a plain function that returns a coroutine
        (Callable_(), awaited),
        (lambda: items(), iterated),  # noqa: PLW0108
        (lambda: async_items(), iterated_async),  # noqa: PLW0108
    ],
)
def test_a_function_that_returns_the_work_is_over_when_the_work_is(
    receipts: Recorded, function: Callable[[], Any], use: Callable[[Any], None]
) -> None:
    with pytest.raises(LookupError):
        use(stopcause.tracked(agent="a")(function))

    assert receipts.stopped.stop_cause == "host_error"
    assert current.get() is None


def test_a_coroutine_stays_one_and_gives_back_what_it_did(receipts: Recorded) -> None:
    async def answer() -> str:
        assert capture.current_run() is not None
        return "done"

    @stopcause.tracked
    def ask() -> Any:  # noqa: ANN401 - a coroutine
        return answer()

    coroutine = ask()
    assert inspect.iscoroutine(coroutine)
    assert coroutine.__qualname__ == answer.__qualname__
    assert asyncio.run(coroutine) == "done"
    assert (receipts.stopped.agent, receipts.stopped.stop_cause) == ("ask", "natural")


def test_a_framework_s_run_before_the_work_does_not_take_the_end_with_it(receipts: Recorded) -> None:
    @stopcause.tracked
    def ask() -> Iterator[int]:
        capture.begin("stopcause.x", "x", "1.0").start().end()
        return (each for each in (1, 2))

    assert list(ask()) == [1, 2]
    assert receipts.stopped.framework == "x"


def test_an_awaitable_generator_is_left_as_it_is(receipts: Recorded) -> None:
    def old() -> Generator[None, None, str]:
        yield
        return "done"

    awaitable: Any = types.coroutine(old)
    tracked: Any = stopcause.tracked(agent="a")(lambda: awaitable())  # noqa: PLW0108

    async def ask() -> Any:  # noqa: ANN401
        return await tracked()

    assert asyncio.run(ask()) == "done"
    assert receipts.stopped.agent == "a"


def test_static_and_class_methods_stay_what_they_are(receipts: Recorded) -> None:
    class Agent:
        @stopcause.tracked
        @staticmethod
        async def ask(question: str) -> str:
            return question

        @stopcause.tracked
        @classmethod
        async def name(cls) -> str:
            return cls.__name__

    assert (asyncio.run(Agent.ask("why?")), asyncio.run(Agent.name())) == ("why?", "Agent")
    assert inspect.iscoroutinefunction(Agent.ask)
    assert [each.agent for each in receipts.receipts] == ["ask", "name"]


def test_an_id_that_is_none_fails_where_it_is_written() -> None:
    with pytest.raises(TypeError, match="thread"):
        stopcause.tracked(agent="a", thread="t1")(lambda: None)


# Streams --------------------------------------------------------------------------------------------------------------


class Source:
    """Can be iterated, sync and async, and knows something of its own."""

    usage = 7

    def __iter__(self) -> Iterator[int]:
        return iter((1, 2))


class AsyncSource:
    usage = 7

    async def __aiter__(self) -> AsyncIterator[int]:
        yield 1
        yield 2


def test_what_can_only_be_iterated_is_a_stream_with_its_own_attributes(receipts: Recorded) -> None:
    stream = stopcause.wrap_stream(Source(), "a")
    assert (list(stream), stream.usage) == ([1, 2], 7)

    async def read() -> tuple[list[int], int]:
        stream = stopcause.wrap_stream(AsyncSource(), "b")
        return [each async for each in stream], stream.usage

    assert asyncio.run(read()) == ([1, 2], 7)
    assert [each.stop_cause for each in receipts.receipts] == ["natural", "natural"]


def test_what_is_no_stream_is_refused_as_ever() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        stopcause.wrap_stream(5)


def test_a_copy_of_a_stream_shares_what_it_wraps(receipts: Recorded) -> None:
    stream = stopcause.wrap_stream(iter([1, 2, 3]), "a")
    assert next(stream) == 1
    assert list(copy.copy(stream)) == [2, 3]
    assert not hasattr(stream, "nothing_of_the_kind")
    assert receipts.stopped.stop_cause == "natural"


def test_a_stream_that_is_still_open_when_the_interpreter_ends_is_silent() -> None:
    program = (
        "import stopcause\nfrom stopcause.receipts.sinks import NullSink\nstopcause.configure(sink=NullSink())\n"
        "stream = stopcause.wrap_stream(iter('ab'), 'a')\nnext(stream)\n"
        "async def items():\n  yield 1\n"
        "left = stopcause.wrap_stream(items(), 'b')\n"
        "try:\n  left.__anext__().send(None)\nexcept StopIteration:\n  pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=True)

    assert done.stderr == b""
