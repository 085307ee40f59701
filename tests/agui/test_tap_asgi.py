"""What passes the middleware is what would have passed without it: messages, order, exceptions, time."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stopcause.agui import tap_passage
from stopcause.agui.tap_asgi import AguiMiddleware, App, Message, Receive, Scope, Send
from stopcause.receipts.testing import recorded
from tests.agui.tapped import (
    OURS,
    SSE,
    Wire,
    breaking,
    finished,
    pieces,
    said,
    scope,
    sse,
    started,
)

Json = Any
RUN = [started(), *said(), finished()]
BODY = sse(RUN)


@pytest.fixture(autouse=True)
def _recorded() -> Iterator[None]:
    with recorded():
        yield


async def _call(app: App, wire: Wire, asked: dict[str, Any] | None = None) -> None:
    await app(asked or scope(), wire.receive, wire.send)


async def _agent(asked: Scope, receive: Receive, send: Send) -> None:
    """An application that reads its request and streams, with messages of every kind."""
    assert asked["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    headers = [(b"Content-Type", b"text/event-stream; charset=utf-8"), (b"x-own", b"1")]
    await send({"type": "http.response.start", "status": 200, "headers": headers, "trailers": True})
    for piece in pieces(BODY, 7):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body"})
    await send({"type": "http.response.trailers", "headers": []})
    await send({"type": "of.another.kind"})


def test_every_message_goes_through_as_it_is() -> None:
    async def seen(app: App) -> tuple[list[Any], list[Any]]:
        wire = Wire(b'{"threadId": "t1"}', at=3)
        await _call(app, wire)
        return wire.given, wire.sent

    assert asyncio.run(seen(AguiMiddleware(_agent))) == asyncio.run(seen(_agent))


@pytest.mark.parametrize("name", OURS)
def test_a_tap_that_fails_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking(monkeypatch, name)
    wire, bare = Wire(b"{}"), Wire(b"{}")
    asyncio.run(_call(AguiMiddleware(_agent), wire))
    asyncio.run(_call(_agent, bare))
    assert wire.sent == bare.sent


def test_the_very_messages_are_handed_on() -> None:
    messages: list[Message] = [
        {"type": "http.response.start", "status": 200, "headers": [(b"content-type", SSE.encode())]},
        {"type": "http.response.body", "body": BODY},
    ]

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        taken.append(await receive())
        for message in messages:
            await send(message)

    taken: list[Message] = []
    wire = Wire(b"{}")
    asyncio.run(_call(AguiMiddleware(app), wire))
    assert all(sent is message for sent, message in zip(wire.sent, messages, strict=True))
    assert taken[0] is wire.given[0]


@pytest.mark.parametrize(
    "asked",
    [scope("GET"), scope(kind="lifespan"), scope(kind="websocket"), scope(path="/health")],
    ids=["no post", "lifespan", "websocket", "another path"],
)
def test_what_is_not_watched_gets_the_servers_own_receive_and_send(asked: dict[str, Any]) -> None:
    given: list[Any] = []

    async def app(*all_of_it: object) -> None:
        given.extend(all_of_it)

    async def receive() -> Message:
        return {"type": "none"}

    async def send(message: Message) -> None:
        pass

    asyncio.run(AguiMiddleware(app, paths=["/agents/*"])(asked, receive, send))
    assert given[0] is asked
    assert given[1:] == [receive, send]


def test_a_hook_that_is_off_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    async def app(*all_of_it: object) -> None:
        given.extend(all_of_it)

    monkeypatch.setenv("STOPCAUSE_DISABLED", "ag_ui agui")
    wire = Wire(b"{}")
    asyncio.run(_call(AguiMiddleware(app), wire))
    assert given[1:] == [wire.receive, wire.send]


@pytest.mark.parametrize("error", [ValueError("own"), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("at", ["before", "midst"])
def test_what_the_application_raises_is_raised(error: BaseException, at: str) -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        if at == "midst":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", SSE.encode())]})
            await send({"type": "http.response.body", "body": sse([started()]), "more_body": True})
        raise error

    async def caught() -> BaseException | None:
        try:
            await _call(AguiMiddleware(app), Wire(b"{}"))
        except BaseException as raised:  # noqa: BLE001 - whatever it is
            return raised
        return None

    assert asyncio.run(caught()) is error


def test_what_the_server_raises_reaches_the_application() -> None:
    error, caught = OSError("gone"), []

    async def send(_: Message) -> None:
        raise error

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        except OSError as raised:
            caught.append(raised)

    asyncio.run(AguiMiddleware(app)(scope(), Wire(b"{}").receive, send))
    assert caught == [error]


def test_nothing_is_sent_before_the_one_before_has_gone() -> None:
    """A reader that is slow slows the application down, as without the tap: nothing is kept here."""
    open_sends, most = 0, 0

    async def slow(_: Message) -> None:
        nonlocal open_sends, most
        open_sends += 1
        most = max(most, open_sends)
        await asyncio.sleep(0)
        open_sends -= 1

    asyncio.run(AguiMiddleware(_agent)(scope(), Wire(b"{}").receive, slow))
    assert most == 1


def test_a_chunk_is_sent_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    async def send(message: Message) -> None:
        order.append(message["type"])

    monkeypatch.setattr(tap_passage.Passage, "read", lambda *_: order.append("looked"))
    asyncio.run(AguiMiddleware(_agent)(scope(), Wire(b"{}").receive, send))
    first = order.index("http.response.body")
    assert order[first : first + 2] == ["http.response.body", "looked"]


def test_a_body_that_is_larger_than_is_read_passes_whole() -> None:
    body = b"[" + b" " * (tap_passage.MOST_ASKED + 1) + b"]"
    read = []

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            read.append(len(message["body"]))
            if not message["more_body"]:
                break
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", SSE.encode())]})
        await send({"type": "http.response.body", "body": BODY})

    wire = Wire(body, at=4)
    asyncio.run(_call(AguiMiddleware(app), wire))
    assert sum(read) == len(body)
    assert wire.sent[1]["body"] == BODY


@pytest.mark.parametrize(
    "start",
    [
        {"type": "http.response.start", "status": 200},
        {"type": "http.response.start", "status": 200, "headers": None},
        {"type": "http.response.start", "status": 200, "headers": [("content-type", SSE)]},
        {"type": "http.response.start", "status": 200, "headers": [[b"content-type", b"\xff"], [b"CONTENT-TYPE", b""]]},
        {"type": "http.response.start", "headers": []},
        {"type": "http.response.start", "status": "200", "headers": ((b"content-type", SSE.encode()),)},
        {},
    ],
)
@pytest.mark.parametrize("body", [b"", bytearray(BODY), memoryview(BODY), None, "text"])
def test_messages_that_a_server_may_take_are_not_judged_here(start: Message, body: object) -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        for message in (start, {"type": "http.response.body", "body": body, "more_body": True}, {"type": None}):
            await send(message)

    wire, bare = Wire(b"{}"), Wire(b"{}")
    asyncio.run(_call(AguiMiddleware(app), wire))
    asyncio.run(_call(app, bare))
    assert wire.sent == bare.sent


def test_a_buffer_that_is_used_again_has_been_read() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", SSE.encode())]})
        buffer = bytearray(len(BODY))
        for piece in pieces(BODY, 10):
            buffer[:] = piece
            await send({"type": "http.response.body", "body": buffer, "more_body": True})
            buffer[:] = b"x" * len(buffer)

    with recorded() as receipts:
        asyncio.run(_call(AguiMiddleware(app), Wire(b"{}")))
        assert receipts.stopped.stop_cause == "natural"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])  # noqa: S301
def test_a_middleware_can_be_copied(again: Callable[[Any], Any]) -> None:
    made = again(AguiMiddleware(_agent, "clerk", paths=["/*"]))
    wire = Wire(b"{}")
    asyncio.run(_call(made, wire))
    assert b"".join(message.get("body", b"") for message in wire.sent) == BODY
