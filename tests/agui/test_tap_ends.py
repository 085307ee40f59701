"""How streams end over real HTTP, and what either tap makes of it: each end has its cause, on both sides."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from stopcause.agui.tap_asgi import AguiMiddleware, App, Message, Receive, Scope, Send
from stopcause.agui.tap_httpx import AguiTransport, AsyncAguiTransport
from stopcause.receipts.model import RunStopped
from stopcause.receipts.testing import Recorded, recorded
from tests.agui.tapped import SSE, Wire, finished, input_of, said, scope, served, sse, started

Json = Any
HERE, THERE = "consumer", "agent"
_START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", SSE.encode())]}


class Agent:
    """An application that starts a run, and then does what it is told to."""

    def __init__(self, then: Callable[[Receive, Send], Any], status: int = 200) -> None:
        self._then, self._status = then, status

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({**_START, "status": self._status})
        await send({"type": "http.response.body", "body": sse([started()]), "more_body": True})
        await self._then(receive, send)


async def _hang(receive: Receive, _: Send) -> None:
    """As a framework that watches for its reader while the agent works."""
    await asyncio.wait_for(_gone(receive), 20)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _hang_and_finish(receive: Receive, send: Send) -> None:
    await _gone(receive)
    await send({"type": "http.response.body", "body": sse([finished()])})


async def _break(_: Receive, __: Send) -> None:
    raise RuntimeError("canary")


async def _end(_: Receive, send: Send) -> None:
    await send({"type": "http.response.body"})


async def _finish(_: Receive, send: Send) -> None:
    await send({"type": "http.response.body", "body": sse([*said(), finished()])})


async def _never_starts(_: Scope, receive: Receive, __: Send) -> None:
    await receive()
    raise RuntimeError("canary")


async def _refuses(_: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 409, "headers": []})
    await send({"type": "http.response.body", "body": b"no"})


def _reads(client: httpx.Client, url: str) -> None:
    client.post(url, json=input_of())


def _leaves(client: httpx.Client, url: str) -> None:
    with client.stream("POST", url, json=input_of()) as response:
        next(response.iter_raw())


def _drops(client: httpx.Client, url: str) -> None:
    response = client.send(client.build_request("POST", url, json=input_of()), stream=True)
    next(response.iter_raw())
    del response
    gc.collect()


def _breaks_down(client: httpx.Client, url: str) -> None:
    with client.stream("POST", url, json=input_of()) as response:
        next(response.iter_raw())
        raise ZeroDivisionError


Read = Callable[[httpx.Client, str], None]
ENDS: dict[str, tuple[App, Read, str, str]] = {
    "finished": (Agent(_finish), _reads, "natural", "natural"),
    "cut off by the agent": (Agent(_end), _reads, "stream_truncated", "stream_truncated"),
    "the agent raises": (Agent(_break), _reads, "stream_truncated", "host_error"),
    "the agent raises at once": (_never_starts, _reads, "input_rejected", "input_rejected"),
    "refused": (_refuses, _reads, "input_rejected", "input_rejected"),
    "the reader leaves": (Agent(_hang), _leaves, "caller_abort", "caller_abort"),
    "the reader drops it": (Agent(_hang), _drops, "caller_abort", "caller_abort"),
    "the reader breaks down": (Agent(_hang), _breaks_down, "caller_abort", "caller_abort"),
    "the reader waits no longer": (Agent(_hang), _reads, "stream_truncated", "caller_abort"),
    "the agent goes on alone": (Agent(_hang_and_finish), _leaves, "caller_abort", "natural"),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a response that is dropped, by httpx
@pytest.mark.parametrize(("app", "read", "here", "there"), ENDS.values(), ids=ENDS)
def test_each_end_has_its_cause_on_either_side(app: App, read: Read, here: str, there: str) -> None:
    with recorded() as receipts, served(AguiMiddleware(app, THERE)) as url:
        with httpx.Client(transport=AguiTransport(agent=HERE), timeout=1) as client:
            _quietly(read, client, url)
        stops = _both(receipts)
    assert {agent: stop.stop_cause for agent, stop in stops.items()} == {HERE: here, THERE: there}


def _quietly(read: Read, client: httpx.Client, url: str) -> None:
    try:
        read(client, url)
    except (httpx.HTTPError, ZeroDivisionError):
        return


def _both(receipts: Recorded) -> dict[str | None, RunStopped]:
    """The receipts of both sides; the agent's server may notice a little later that its reader has gone."""
    _wait_for(lambda: len(receipts.receipts) >= 2)
    return {stop.agent: stop for stop in receipts.receipts}


def _wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_what_the_agent_raised_is_told_by_its_type() -> None:
    with recorded() as receipts, pytest.raises(RuntimeError):
        asyncio.run(AguiMiddleware(Agent(_break), THERE)(scope(), (wire := Wire(_body())).receive, wire.send))
    stop = receipts.stopped
    assert (stop.stop_cause, stop.boundary) == ("host_error", "exception")
    assert stop.error is not None
    assert stop.error.type == "RuntimeError"
    assert b"canary" not in b"".join(receipts.lines)


def test_a_task_that_is_cancelled_has_left() -> None:
    async def program(url: str) -> None:
        async with httpx.AsyncClient(transport=AsyncAguiTransport(agent=HERE)) as client:
            task = asyncio.create_task(client.post(url, json=input_of()))
            await asyncio.to_thread(_wait_for, lambda: bool(receipts.lines))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with recorded() as receipts, served(Agent(_hang)) as url:
        asyncio.run(program(url))
        assert receipts.stopped.stop_cause == "caller_abort"


@pytest.mark.parametrize(
    ("error", "at", "cause"),
    [
        (asyncio.CancelledError(), 2, "caller_abort"),
        (OSError("gone"), 2, "caller_abort"),
        (OSError("gone"), 3, "natural"),  # the agent was through, whoever heard of it
        (None, 0, "natural"),
    ],
)
def test_a_server_whose_send_raises_has_no_reader(error: BaseException | None, at: int, cause: str) -> None:
    """ASGI 2.4 and up: an application learns by an exception that nobody reads any more."""
    wire = Wire(_body())

    async def send(message: Message) -> None:
        await wire.send(message)
        if error is not None and len(wire.sent) == at:
            raise error

    async def program() -> None:
        await AguiMiddleware(Agent(_finish), THERE)(scope(), wire.receive, send)

    with recorded() as receipts:
        try:
            asyncio.run(program())
        except (asyncio.CancelledError, OSError) as raised:
            assert raised is error  # noqa: PT017 - or nothing is raised
        assert receipts.stopped.stop_cause == cause


def _body() -> bytes:
    return httpx.Request("POST", "http://a/", json=input_of()).content
