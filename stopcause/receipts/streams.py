"""Streams that are runs. They behave as what they wrap: `send`, `throw` and `close` reach it, nothing is read ahead.

The context variable is set only while an item is being made: a generator runs in its reader's context, and would
otherwise leave it there.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Generator, Iterator
from typing import TYPE_CHECKING, Any

from stopcause.receipts.run import current
from stopcause.receipts.vocabulary import Boundary

if TYPE_CHECKING:
    from stopcause.receipts.run import Run


class _Base:
    """A stream and its run."""

    def __init__(self, stream: Any, run: Run) -> None:  # noqa: ANN401 - whatever is wrapped
        self._stream = stream
        self._run = run
        run.is_driven = False

    @contextlib.contextmanager
    def _pull(self) -> Iterator[None]:
        """Around each item: the run is current, and something drives it."""
        run = self._run
        token = current.set(run)
        run.start()
        run.is_driven = True
        try:
            yield
        except (StopIteration, StopAsyncIteration):
            run.end(boundary=Boundary.EVENT_STREAM)
            raise
        except BaseException as error:
            run.end(error, boundary=Boundary.EXCEPTION)
            raise
        finally:
            run.is_driven = False
            with contextlib.suppress(ValueError):
                current.reset(token)

    def _left(self) -> None:
        """Whoever read it went away."""
        self._run.end(GeneratorExit(), boundary=Boundary.EVENT_STREAM)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the wrapped stream's own
        return getattr(self._stream, name)

    def __del__(self) -> None:
        run = self.__dict__.get("_run")
        if run is not None and run.is_started and not run.is_closed:
            run.closed_by = "garbage_collection"
            self._left()


class Stream(_Base, Generator[Any, Any, Any]):
    """A sync one."""

    def __next__(self) -> Any:  # noqa: ANN401
        with self._pull():
            return next(self._stream)

    def send(self, value: Any) -> Any:  # noqa: ANN401
        """As a generator's."""
        with self._pull():
            return self._stream.send(value)

    def throw(self, *error: Any) -> Any:  # noqa: ANN401
        """As a generator's."""
        with self._pull():
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
        with self._pull():
            return await anext(self._stream)

    async def asend(self, value: Any) -> Any:  # noqa: ANN401
        """As an async generator's."""
        with self._pull():
            return await self._stream.asend(value)

    async def athrow(self, *error: Any) -> Any:  # noqa: ANN401
        """As an async generator's."""
        with self._pull():
            return await self._stream.athrow(*error)

    async def aclose(self) -> None:
        """As an async generator's."""
        try:
            close = getattr(self._stream, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._left()
