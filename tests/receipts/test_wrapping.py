"""A function that is watched stays what it was, and each of its calls has one end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any

import pytest

import stopcause
from stopcause.receipts.hooks import Spec, wrapping
from stopcause.receipts.hooks.call import Call
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.run import current
from stopcause.receipts.testing import Recorded
from tests.support.captured import Wrong

SPEC = Spec("toy", "toy-framework", "toy_framework", "1", "2")


@pytest.fixture
def hook() -> Hook:
    return Hook(SPEC, "1.0", is_tested=True)


class Loop:
    """A framework's class: one way to run of each kind. The text that it is given decides how it goes."""

    def plain(self, text: str) -> str:
        return self._done(text)

    async def coroutine(self, text: str) -> str:
        await asyncio.sleep(0)
        return self._done(text)

    def stream(self, text: str) -> Generator[Any, Any, str]:
        answer = yield self._done(text)
        yield answer
        return "returned"

    async def async_stream(self, text: str) -> AsyncGenerator[Any, Any]:
        answer = yield self._done(text)
        yield answer

    def _done(self, text: str) -> str:
        if text == "wrong":
            raise Wrong
        return f"{text} in {current.get() is not None}"


KINDS: dict[str, Callable[[object], bool]] = {
    "plain": inspect.isfunction, "coroutine": inspect.iscoroutinefunction, "stream": inspect.isgeneratorfunction,
    "async_stream": inspect.isasyncgenfunction,
}  # fmt: skip


@pytest.fixture
def loop(hook: Hook) -> Iterator[type[Loop]]:
    """The same, watched."""

    class Watched(Loop):
        pass

    def begin(_: Loop, text: str) -> Call | None:
        run = hook.begin("toy")
        assert text
        return None if run is None else Call(hook, run).begin()

    undos = [wrapping.replace(Watched, name, lambda each: wrapping.watched(hook, each, begin)) for name in KINDS]
    yield Watched
    wrapping.undo_all(hook, undos)()
    assert [name for name in KINDS if name in vars(Watched)] == []


def drive(made: Loop, name: str, text: str) -> Any:  # noqa: ANN401 - what each kind gives
    """One call, to its end."""
    given = getattr(made, name)(text)
    if name == "plain":
        return given
    if name == "coroutine":
        return asyncio.run(given)
    if name == "stream":
        return [given.send(None), given.send("told"), *given]

    async def read() -> list[Any]:
        return [await given.asend(None), await given.asend("told"), *[each async for each in given]]

    return asyncio.run(read())


@pytest.mark.parametrize("name", KINDS)
def test_it_is_of_the_same_kind_and_has_the_same_signature(loop: type[Loop], name: str) -> None:
    ours, theirs = getattr(loop, name), getattr(Loop, name)

    assert KINDS[name](ours)
    assert (inspect.signature(ours), ours.__name__, ours.__wrapped__) == (inspect.signature(theirs), name, theirs)


@pytest.mark.parametrize("name", KINDS)
def test_it_gives_the_same_and_leaves_one_receipt(loop: type[Loop], name: str, receipts: Recorded) -> None:
    answer = drive(loop(), name, "text")

    assert answer == (["text in True", "told"] if "stream" in name else "text in True")
    assert current.get() is None
    assert len(receipts.records) == 2
    assert receipts.stopped.stop_cause == (
        "unknown" if "stream" in name else "natural"
    )  # a stream has its result in it


@pytest.mark.parametrize("name", KINDS)
def test_an_exception_leaves_it_as_it_came(loop: type[Loop], name: str, receipts: Recorded) -> None:
    with pytest.raises(Wrong) as caught:
        drive(loop(), name, "wrong")

    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert (receipts.stopped.boundary, receipts.stopped.error and receipts.stopped.error.type) == ("exception", "Wrong")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("text", ["text", "wrong"])
@pytest.mark.usefixtures("receipts")
def test_a_host_s_block_goes_on_giving_signs_of_life(loop: type[Loop], name: str, text: str) -> None:
    with stopcause.run("night-shift") as run:
        with contextlib.suppress(Wrong):
            drive(loop(), name, text)

        assert run.is_driven
        assert not run.is_closed


@pytest.mark.parametrize("name", ["stream", "async_stream"])
def test_what_is_thrown_into_a_stream_reaches_it(loop: type[Loop], name: str, receipts: Recorded) -> None:
    error = Wrong()
    with pytest.raises(Wrong) as caught:
        _throw(loop(), name, error)

    assert caught.value is error
    assert receipts.stopped.error is not None


def _throw(made: Loop, name: str, error: BaseException) -> None:
    given = getattr(made, name)("text")
    if name == "stream":
        given.send(None)
        given.throw(error)
        return

    async def throw() -> None:
        await given.asend(None)
        await given.athrow(error)

    asyncio.run(throw())


@pytest.mark.parametrize("name", ["stream", "async_stream"])
def test_a_reader_who_leaves_is_told(loop: type[Loop], name: str, receipts: Recorded) -> None:
    given = getattr(loop(), name)("text")
    if name == "stream":
        next(given)
        given.close()
    else:

        async def leave() -> None:
            await anext(given)
            await given.aclose()

        asyncio.run(leave())

    assert (receipts.stopped.stop_cause, receipts.stopped.boundary) == ("caller_abort", "event_stream")


@pytest.mark.parametrize("is_tracked", [False, True])
def test_a_stream_that_is_left_open_is_closed_once_with_its_loop(
    hook: Hook, receipts: Recorded, caplog: pytest.LogCaptureFixture, is_tracked: bool
) -> None:
    """What the loop cannot close it logs. A generator that is closed by another one at that time is such a one."""
    closed = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.append(1)

    kept = (stopcause.tracked(numbers) if is_tracked else wrapping.watched(hook, numbers, _begun(hook)))()

    async def leave() -> None:
        await anext(kept)

    asyncio.run(leave())

    assert (closed, caplog.messages) == ([1], [])
    assert receipts.stopped.stop_cause == "caller_abort"


def test_what_closing_raises_comes_from_itself(hook: Hook, receipts: Recorded) -> None:
    def stubborn() -> Generator[int, None, None]:
        try:
            yield 1
        finally:
            yield 2

    given = wrapping.watched(hook, stubborn, _begun(hook))()
    next(given)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit") as caught:
        given.close()

    assert caught.value.__context__ is None
    assert receipts.stopped.stop_cause == "caller_abort"


def _begun(hook: Hook) -> Callable[..., Call | None]:
    def begin(*_: object) -> Call | None:
        run = hook.begin("toy")
        return None if run is None else Call(hook, run).begin()

    return begin


@pytest.mark.parametrize("name", KINDS)
def test_where_we_fail_nothing_changes(hook: Hook, name: str, receipts: Recorded) -> None:
    def broken(*_: object) -> Call | None:
        raise Wrong

    made = Loop()
    vars(made)[name] = functools.partial(wrapping.watched(hook, getattr(Loop, name), broken), made)

    assert drive(made, name, "text") == drive(Loop(), name, "text")
    assert receipts.records == []


def test_where_a_result_cannot_be_read_nobody_knows_why_it_came(hook: Hook, receipts: Recorded) -> None:
    class Unreadable(Call):
        def read_result(self, _: object) -> None:
            raise Wrong

    def begin() -> Call | None:
        run = hook.begin("toy")
        return None if run is None else Unreadable(hook, run).begin()

    assert wrapping.watched(hook, lambda: "done", begin)() == "done"
    assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "result_unreadable")


def _passing(each: Callable[..., Any]) -> Callable[..., Any]:
    def passing(*given: Any) -> Any:  # noqa: ANN401 - as what is wrapped
        return each(*given)

    return passing


# Putting it there, and taking it away ---------------------------------------------------------------------------------


def test_what_somebody_else_has_wrapped_since_stays(hook: Hook) -> None:
    class Owner(Loop):
        pass

    undo = wrapping.replace(Owner, "plain", _passing)
    theirs = Owner.plain = _passing(Owner.plain)  # type: ignore[method-assign]
    wrapping.undo_all(hook, [undo])()

    assert vars(Owner)["plain"] is theirs
    assert not hook.is_on


def test_what_is_bound_when_it_is_looked_up_is_called_bound() -> None:
    """As `wrapt` does, which other instrumentations stand on: its wrapper knows its instance only there."""

    class Descriptor:
        def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
            return lambda *given: ("looked up", instance if instance is not None else given[0])

    class Owner:
        method: Any = Descriptor()

    undo = wrapping.replace(Owner, "method", _passing)
    made = Owner()

    assert made.method() == ("looked up", made)
    undo()
    assert isinstance(vars(Owner)["method"], Descriptor)


@pytest.mark.parametrize("kind", [classmethod, staticmethod])
def test_a_method_of_another_kind_is_handed_over_as_it_is(kind: Callable[..., Any]) -> None:
    class Owner:
        method: Any = kind(lambda *given: given)

    before = vars(Owner)["method"]
    undo = wrapping.replace(Owner, "method", lambda each: each)
    assert vars(Owner)["method"] is before
    undo()
    assert vars(Owner)["method"] is before
