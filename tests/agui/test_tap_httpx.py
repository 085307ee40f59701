"""What passes a transport is what would have passed without it: bytes, order, exceptions, time."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self

import httpx
import pytest

from stopcause.agui import tap_passage
from stopcause.agui.tap_asgi import Receive, Scope, Send
from stopcause.agui.tap_httpx import AguiTransport, AsyncAguiTransport
from stopcause.receipts.testing import recorded
from tests.agui.tapped import (
    OURS,
    SSE,
    breaking,
    finished,
    input_of,
    pieces,
    said,
    served,
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


class Parts(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A stream that tells what is done with it."""

    def __init__(self, chunks: list[bytes], error: BaseException | None = None) -> None:
        self.chunks, self.error = chunks, error
        self.done: list[str] = []

    def __iter__(self) -> Iterator[bytes]:
        for number, chunk in enumerate(self.chunks):
            self.done.append(f"chunk {number}")
            yield chunk
        if self.error is not None:
            raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        self.done.append("closed")

    async def aclose(self) -> None:
        self.done.append("closed")


class Fake(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport that answers with that stream."""

    def __init__(self, parts: Parts | None = None, media: str = SSE, error: BaseException | None = None) -> None:
        self.parts, self.media, self.error = parts or Parts(pieces(BODY, 11)), media, error
        self.requests: list[httpx.Request] = []
        self.entered: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        return httpx.Response(200, headers={"content-type": self.media, "x-own": "1"}, stream=self.parts)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)

    def __enter__(self) -> Self:
        self.entered.append("in")
        return self

    def __exit__(self, *_: object) -> None:
        self.entered.append("out")

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


Read = Callable[[Fake], list[bytes]]


def _read(fake: Fake) -> list[bytes]:
    with (
        httpx.Client(transport=AguiTransport(fake)) as client,
        client.stream("POST", "http://agent/", json=input_of()) as response,
    ):
        return list(response.iter_raw())


def _read_async(fake: Fake) -> list[bytes]:
    async def read() -> list[bytes]:
        async with (
            httpx.AsyncClient(transport=AsyncAguiTransport(fake)) as client,
            client.stream("POST", "http://agent/", json=input_of()) as response,
        ):
            return [chunk async for chunk in response.aiter_raw()]

    return asyncio.run(read())


BOTH = pytest.mark.parametrize("read", [_read, _read_async], ids=["sync", "async"])


@BOTH
def test_every_chunk_arrives_as_it_was_sent(read: Read) -> None:
    fake = Fake()
    assert read(fake) == fake.parts.chunks
    assert fake.parts.done[-1] == "closed"
    assert fake.entered == ["in", "out"]


@BOTH
@pytest.mark.parametrize("name", OURS)
def test_a_transport_that_fails_changes_nothing(read: Read, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking(monkeypatch, name)
    fake = Fake()
    assert read(fake) == fake.parts.chunks


@BOTH
def test_the_request_is_sent_as_it_is(read: Read) -> None:
    fake = Fake()
    read(fake)
    bare = httpx.Request("POST", "http://agent/", json=input_of())
    assert fake.requests[0].content == bare.content
    assert fake.requests[0].headers["content-length"] == bare.headers["content-length"]


@BOTH
@pytest.mark.parametrize("error", [httpx.ReadError("own"), httpx.ReadTimeout("own"), ValueError("own")])
def test_what_breaks_the_stream_is_raised(read: Read, error: Exception) -> None:
    fake = Fake(Parts([sse([started()])], error))
    with pytest.raises(type(error)) as raised:
        read(fake)
    assert raised.value is error
    assert fake.parts.done[-1] == "closed"


@BOTH
def test_what_keeps_the_request_from_going_is_raised(read: Read) -> None:
    error = httpx.ConnectError("own")
    with pytest.raises(httpx.ConnectError) as raised:
        read(Fake(error=error))
    assert raised.value is error


def test_a_chunk_is_handed_over_before_the_next_is_asked_for() -> None:
    fake = Fake(Parts([b"a", b"b"]))
    with (
        httpx.Client(transport=AguiTransport(fake)) as client,
        client.stream("POST", "http://agent/", json=input_of()) as response,
    ):
        chunks = response.iter_raw()
        next(chunks)
        assert fake.parts.done == ["chunk 0"]


def test_a_chunk_is_handed_over_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(tap_passage.Passage, "read", lambda _: looked.append("looked"))
    with (
        httpx.Client(transport=AguiTransport(Fake(Parts([b"RUN_1", b"RUN_2"])))) as client,
        client.stream("POST", "http://agent/", json=input_of()) as response,
    ):
        chunks = response.iter_raw()
        assert (next(chunks), looked) == (b"RUN_1", [])
        assert (next(chunks), looked) == (b"RUN_2", ["looked"])
    assert looked == ["looked"] * 2  # the second when it is closed


def test_a_response_that_was_read_is_the_same_and_can_be_pickled() -> None:
    with httpx.Client(transport=AguiTransport(Fake())) as client:
        response = client.post("http://agent/", json=input_of())
    assert response.content == BODY
    assert response.headers["x-own"] == "1"
    assert pickle.loads(pickle.dumps(response)).content == BODY  # noqa: S301 - our own


def test_a_response_that_is_whole_already_passes() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": SSE}, content=BODY)

    with httpx.Client(transport=AguiTransport(httpx.MockTransport(answer))) as client:
        assert client.post("http://agent/", json=input_of()).content == BODY


async def _each(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize("make", [iter, _each], ids=["sync", "async"])
def test_a_request_whose_body_is_an_iterator_is_not_touched(make: Callable[[list[bytes]], Any]) -> None:
    parts = [b'{"threadId": "t1", ', b'"runId": "r1"}']

    async def echo(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        more = True
        while more:
            message = await receive()
            more = message["more_body"]
            await send({"type": "http.response.body", "body": message["body"], "more_body": more})

    with served(echo) as url:
        if make is iter:
            with httpx.Client(transport=AguiTransport()) as client:
                assert client.post(url, content=iter(parts)).content == b"".join(parts)
        else:
            assert asyncio.run(_posted(url, make(parts))) == b"".join(parts)


async def _posted(url: str, body: AsyncIterator[bytes]) -> bytes:
    async with httpx.AsyncClient(transport=AsyncAguiTransport()) as client:
        return (await client.post(url, content=body)).content


def test_where_httpx_is_not_installed_its_extra_is_named() -> None:
    code = "import sys; sys.modules['httpx'] = None; import stopcause.agui.tap_httpx"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError" in done.stderr
    assert 'pip install "stopcause[agui]"' in done.stderr
