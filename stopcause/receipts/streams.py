"""Streams that are runs. They behave as what they wrap: `send`, `throw` and `close` reach it, nothing is read ahead.

The context variable is set only while an item is being made: a generator runs in its reader's context, and would
otherwise leave it there.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any

from stopcause.receipts.run import current
from stopcause.receipts.vocabulary import Boundary

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType

    from stopcause.receipts.run import Run


class _Pull:
    """Around each item: the run is current, and something drives it. What is raised instead of an item ends the run."""

    __slots__ = ("_run", "_token")

    def __init__(self, run: Run) -> None:
        self._run = run

    def __enter__(self) -> None:
        run = self._run
        self._token: Token[Run | None] = current.set(run)
        run.start()
        run.is_driven = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        run = self._run
        run.is_driven = False
        if kind is not None:
            if issubclass(kind, StopIteration | StopAsyncIteration):
                run.end(boundary=Boundary.EVENT_STREAM)
            else:
                run.end(error, boundary=Boundary.EXCEPTION)
        with contextlib.suppress(ValueError):  # finalised in another context, which is gone with its variable
            current.reset(self._token)


class _Base:
    """A stream and its run. `owner`: what the stream was made of, where that is another object; its attributes show."""

    def __init__(self, stream: Any, run: Run, owner: Any = None) -> None:  # noqa: ANN401 - whatever is wrapped
        self._stream = stream
        self._run = run
        self._owner = stream if owner is None else owner
        run.is_driven = False

    def _left(self) -> None:
        """Whoever read it went away."""
        self._run.end(GeneratorExit(), boundary=Boundary.EVENT_STREAM)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the wrapped stream's own
        if name == "_owner":  # a copy that is not made yet: the copier asks for its attributes
            raise AttributeError(name)
        return getattr(self._owner, name)

    def __del__(self) -> None:
        run = self.__dict__.get("_run")
        if run is not None and run.is_started and not run.is_closed:
            run.closed_by = "garbage_collection"
            self._left()


class Stream(_Base, Generator[Any, Any, Any]):
    """A sync one."""

    def __next__(self) -> Any:  # noqa: ANN401
        with _Pull(self._run):
            return next(self._stream)

    def send(self, value: Any) -> Any:  # noqa: ANN401
        """As a generator's."""
        with _Pull(self._run):
            return next(self._stream) if value is None else self._stream.send(value)

    def throw(self, *error: Any) -> Any:  # noqa: ANN401
        """As a generator's."""
        with _Pull(self._run):
            return self._stream.throw(*error)

    def close(self) -> None:
        """As a generator's."""
        try:
            close = getattr(self._stream, "close", None)
            if close is not None:
                close()
        finally:
            self._left()


class AsyncStream(_Base, AsyncGenerator[Any, Any]):
    """An async one."""

    async def __anext__(self) -> Any:  # noqa: ANN401
        with _Pull(self._run):
            return await anext(self._stream)

    async def first(self) -> Any:  # noqa: ANN401
        """The first item, for an async generator that stands in its place."""
        with _Pull(self._run):
            return await unseen(functools.partial(anext, self._stream))

    async def asend(self, value: Any) -> Any:  # noqa: ANN401
        """As an async generator's."""
        with _Pull(self._run):
            return await (anext(self._stream) if value is None else self._stream.asend(value))

    async def athrow(self, *error: Any) -> Any:  # noqa: ANN401
        """As an async generator's."""
        with _Pull(self._run):
            return await self._stream.athrow(*error)

    async def aclose(self) -> None:
        """As an async generator's."""
        try:
            close = getattr(self._stream, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._left()


def goes_on(result: object) -> bool:
    """Whether what a function returned is the work itself, still to be done: a coroutine or a generator."""
    if inspect.isgenerator(result):
        return not result.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE  # `types.coroutine`: awaited, not iterated
    return inspect.iscoroutine(result) or inspect.isasyncgen(result)


def going_on(result: Any, run: Run) -> Any:  # noqa: ANN401 - a coroutine or a generator, and the same kind
    """The same, as the rest of a run whose block is left now."""
    run.go_on()
    if inspect.iscoroutine(result):
        made: Any = _awaited(result, run)
    elif inspect.isgenerator(result):
        made = generator_function(lambda: result, lambda stream: Stream(stream, run))()
    else:
        made = async_generator_function(lambda: result, lambda stream: AsyncStream(stream, run))()
    made.__name__, made.__qualname__ = result.__name__, result.__qualname__
    return made


async def _awaited(coroutine: Coroutine[Any, Any, Any], run: Run) -> Any:  # noqa: ANN401 - what it returns
    with run:
        result = await coroutine
        run.keep(result)
        return result


def unseen(first: Callable[[], Any]) -> Any:  # noqa: ANN401 - what gives the first item
    """Asks an async generator for its first item, unseen by the event loop: the one that stands in its place is seen.

    When a loop ends, it closes all that it has seen, at once; one that another one is closing just then is an error.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None)
    try:
        return first()
    finally:
        sys.set_asyncgen_hooks(*hooks)


def generator_function(function: Callable[..., Any], wrap: Callable[[Any], Stream]) -> Callable[..., Any]:
    """A generator function whose every call is a run; it stays one to those who look, as some frameworks do."""

    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:  # noqa: ANN401
        return (yield from wrap(function(*args, **kwargs)))

    return generator


def async_generator_function(function: Callable[..., Any], wrap: Callable[[Any], AsyncStream]) -> Callable[..., Any]:
    """The same for an async generator function, which has no `yield from`: what is sent and thrown is handed on."""

    @functools.wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:  # noqa: ANN401
        stream = wrap(function(*args, **kwargs))
        step: Callable[[], Any] = stream.first
        while True:
            try:
                item = await step()
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                await stream.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - it is the wrapped one's to answer
                step = functools.partial(stream.athrow, error)
            else:
                step = functools.partial(stream.asend, sent)

    return generator
