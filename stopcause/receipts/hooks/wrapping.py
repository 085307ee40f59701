"""Putting a `Call` around a framework's own function, and taking it away again.

The wrapped function stays what it was to those who look: a coroutine function, a generator function, an async generator
function or a plain one. What its reader sends, throws or closes reaches it, nothing is read ahead, and an exception
leaves it as it came.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any

from stopcause.receipts.streams import unseen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Sequence

    from stopcause.receipts.hooks.call import Call, Foreign
    from stopcause.receipts.hooks.guard import Hook

    Begin = Callable[..., Call | None]  # called as the wrapped function is; None: this one is not watched
    Undo = Callable[[], None]

_NOTHING: contextlib.nullcontext[None] = contextlib.nullcontext()
_MISSING = object()


def replace(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Undo:  # noqa: ANN401 - a class or module
    """Puts `wrap(original)` in the place of an attribute of a class or module, also of one that a class inherits.

    Returns:
        What puts the original back, unless somebody else has wrapped ours since.
    """
    before = vars(owner).get(name, _MISSING)
    # What another instrumentation has put there (wrapt's wrappers) knows its instance only where it was looked up.
    is_bound_later = isinstance(before, classmethod | staticmethod)
    ours = wrap(before if is_bound_later else getattr(owner, name))
    setattr(owner, name, ours)

    def undo() -> None:
        if vars(owner).get(name) is not ours:
            return
        if before is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    return undo


def undo_all(hook: Hook, undos: Sequence[Undo]) -> Undo:
    """One that undoes all, the newest first. The list may still grow."""

    def undo() -> None:
        hook.is_on = False  # for what somebody else has wrapped again, and keeps
        for each in reversed(undos):
            each()

    return undo


def watched(hook: Hook, original: Foreign, begin: Begin) -> Foreign:
    """The same function, of the same kind, each of whose calls is an invocation that `begin` makes."""
    if inspect.isasyncgenfunction(original):
        return _async_stream(hook, original, begin)
    if inspect.isgeneratorfunction(original):
        return _stream(hook, original, begin)
    if inspect.iscoroutinefunction(original):
        return _coroutine(hook, original, begin)
    return _plain(hook, original, begin)


def end(call: Call | None, how: str, *what: object) -> None:
    """Says to an invocation how it ended: `returned`, `ended`, `failed` or `left`."""
    if call is not None:
        with call.hook.ending(how, call.run):
            getattr(call, how)(*what)


def _begun(hook: Hook, begin: Begin, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    with hook.guard("begin"):
        return begin(*args, **kwargs)
    return None


def _plain(hook: Hook, original: Foreign, begin: Begin) -> Foreign:
    @functools.wraps(original)
    def plain(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        call = _begun(hook, begin, args, kwargs)
        try:
            with call or _NOTHING:
                result = original(*args, **kwargs)
        except BaseException as error:
            end(call, "failed", error)
            raise
        end(call, "returned", result)
        return result

    return plain


def _coroutine(hook: Hook, original: Foreign, begin: Begin) -> Foreign:
    @functools.wraps(original)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        call = _begun(hook, begin, args, kwargs)
        try:
            with call or _NOTHING:
                result = await original(*args, **kwargs)
        except BaseException as error:
            end(call, "failed", error)
            raise
        end(call, "returned", result)
        return result

    return coroutine


def _stream(hook: Hook, original: Foreign, begin: Begin) -> Foreign:
    @functools.wraps(original)
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:  # noqa: ANN401 - as the wrapped one
        items = original(*args, **kwargs)
        call = _begun(hook, begin, args, kwargs)
        inside = call or _NOTHING
        step = functools.partial(next, items)
        while True:
            try:
                with inside:
                    item = step()
            except StopIteration as stop:
                end(call, "ended")
                return stop.value
            except BaseException as error:
                end(call, "failed", error)
                raise
            if call is not None:
                with hook.guard("item"):
                    call.item(item)
            try:
                sent = yield item
            except GeneratorExit as error:
                leaving = error
                break
            except BaseException as error:  # noqa: BLE001 - it is the wrapped one's to answer
                step = functools.partial(items.throw, error)
            else:
                step = functools.partial(items.send, sent)
        try:  # out here: what closing raises comes from itself
            with inside:
                items.close()
        finally:
            end(call, "left")
        raise leaving

    return generator


def _async_stream(hook: Hook, original: Foreign, begin: Begin) -> Foreign:
    @functools.wraps(original)
    async def async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:  # noqa: ANN401 - as the wrapped one
        items = original(*args, **kwargs).__aiter__()
        call = _begun(hook, begin, args, kwargs)
        inside = call or _NOTHING
        step = functools.partial(unseen, items.__anext__)
        while True:
            try:
                with inside:
                    item = await step()
            except StopAsyncIteration:
                end(call, "ended")
                return
            except BaseException as error:
                end(call, "failed", error)
                raise
            if call is not None:
                with hook.guard("item"):
                    call.item(item)
            try:
                sent = yield item
            except GeneratorExit as error:
                leaving = error
                break
            except BaseException as error:  # noqa: BLE001 - it is the wrapped one's to answer
                step = functools.partial(items.athrow, error)
            else:
                step = items.__anext__ if sent is None else functools.partial(items.asend, sent)
        try:  # out here: what closing raises comes from itself
            with inside:
                await items.aclose()
        finally:
            end(call, "left")
        raise leaving

    return async_generator
