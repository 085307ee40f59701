"""Agent Framework: how an answer is watched that is still to come, a coroutine or a `ResponseStream`.

`run` and `get_response` are plain functions that give one of the two back. A coroutine is awaited inside ours. A stream
stays the object that it is, since programs map it and hang hooks on it: what watches it is noted on it, and the class's
`__anext__`, `_get_stream` (which does the work before the first item) and `close` look there.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, Protocol

from stopcause.receipts.hooks.wrapping import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.wrapping import Undo

_WATCH = "_stopcause_watch"
_NOTHING: contextlib.nullcontext[None] = contextlib.nullcontext()


class Listener(Protocol):
    """What is told of an answer: an invocation of an agent, or a call of its model."""

    @property
    def is_over(self) -> bool:
        """Whether its end was told."""
        ...

    @property
    def is_inside(self) -> bool:
        """Whether the framework is at work on it already, in this context."""
        ...

    def __enter__(self) -> object: ...
    def __exit__(self, *_: object) -> None: ...
    def ending(self, how: str) -> AbstractContextManager[object]:
        """The guard around its end."""
        ...

    def item(self, item: Foreign) -> None:
        """An item of the stream."""
        ...


class Watch:
    """One answer. Its listener is made when the work begins: what is never awaited or read is no run."""

    def __init__(self, hook: Hook, begin: Callable[[], Listener | None]) -> None:
        self._hook = hook
        self._begin: Callable[[], Listener | None] | None = begin
        self._listener: Listener | None = None

    def start(self) -> AbstractContextManager[object]:
        """Around the framework's own work on it."""
        if self._begin is not None:
            with self._hook.guard("begin"):
                begin, self._begin = self._begin, None
                self._listener = begin()
        listener = self._listener
        return _NOTHING if listener is None or listener.is_over or listener.is_inside else listener

    @property
    def is_inside(self) -> bool:
        """Whether the framework is at work on it."""
        return self._listener is not None and self._listener.is_inside

    def item(self, item: Foreign) -> None:
        """An item, before its reader has it."""
        if self._listener is not None:
            with self._hook.guard("item"):
                self._listener.item(item)

    def over(self, how: str, *what: object) -> None:
        """It `returned`, `ended`, `failed` or was `left`."""
        if self._listener is not None:
            with self._listener.ending(how):
                getattr(self._listener, how)(*what)


def watched(hook: Hook, answer: Foreign, begin: Callable[[], Listener | None]) -> Foreign:
    """The same answer. What is neither a coroutine nor a stream is not watched."""
    if inspect.iscoroutine(answer):
        return _called_as(answer, _awaited(Watch(hook, begin), answer))
    with hook.guard("watch"):
        if _is_stream(answer):
            answer.__dict__[_WATCH] = Watch(hook, begin)
    return answer


def _called_as(theirs: Any, ours: Any) -> Foreign:  # noqa: ANN401 - coroutines
    """Python's warning that nobody awaited it names theirs."""
    ours.__name__, ours.__qualname__ = theirs.__name__, theirs.__qualname__
    return ours


def listen(stream: type) -> list[Undo]:
    """Puts ours around the methods of `ResponseStream` through which all of its readers go."""
    methods = {"__anext__": _pulled, "_get_stream": _resolved, "close": _closed}
    return [
        replace(stream, name, functools.partial(_method, ours))
        for name, ours in methods.items()
        if name in vars(stream)
    ]


def _is_stream(answer: object) -> bool:
    return hasattr(type(answer), "get_final_response")


def _method(ours: Callable[[Watch, Any], Any], original: Foreign) -> Foreign:
    @functools.wraps(original)
    def method(stream: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        watch = vars(stream).get(_WATCH)
        work = original(stream, *args, **kwargs)
        return work if watch is None else ours(watch, work)

    return method


async def _awaited(watch: Watch, work: Coroutine[Any, Any, Any]) -> Foreign:
    """A model's answer may be awaited first and be a stream then."""
    answer = await _resolved(watch, work)
    if _is_stream(answer):
        answer.__dict__[_WATCH] = watch
    else:
        watch.over("returned", answer)
    return answer


async def _resolved(watch: Watch, work: Coroutine[Any, Any, Any]) -> Foreign:
    try:
        with watch.start():
            return await work
    except BaseException as error:
        watch.over("failed", error)
        raise


async def _pulled(watch: Watch, work: Coroutine[Any, Any, Any]) -> Foreign:
    try:
        with watch.start():
            item = await work
    except StopAsyncIteration:
        watch.over("ended")
        raise
    except BaseException as error:
        watch.over("failed", error)
        raise
    watch.item(item)
    return item


async def _closed(watch: Watch, work: Coroutine[Any, Any, Any]) -> None:
    """The framework closes a stream that failed as well, while it is at work on it: that is no reader who left."""
    is_reader = not watch.is_inside
    try:
        await work
    finally:
        if is_reader:
            watch.over("left")
