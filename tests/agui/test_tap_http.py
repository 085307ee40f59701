"""Streams of a real server pass both taps as without them."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from stopcause.agui import tap_faults
from stopcause.agui.tap_asgi import AguiMiddleware
from stopcause.agui.tap_httpx import AguiTransport, AsyncAguiTransport
from stopcause.receipts.testing import Recorded, recorded
from tests.agui.tapped import (
    NDJSON,
    SSE,
    answering,
    finished,
    input_of,
    ndjson,
    pieces,
    said,
    served,
    sse,
    started,
    streaming,
)

Json = Any
RUN = [started(), *said(), finished()]
BODY = sse(RUN)


@pytest.fixture(autouse=True)
def receipts() -> Iterator[Recorded]:
    with recorded() as kept:
        yield kept


@pytest.mark.parametrize("size", [1, 7, 0])
@pytest.mark.parametrize(("media", "encode"), [(SSE, sse), (NDJSON, ndjson)])
def test_a_stream_of_a_real_server_arrives_as_without_taps(size: int, media: str, encode: Callable[..., bytes]) -> None:
    chunks = pieces(encode(RUN), size)
    app = answering(lambda _: streaming(chunks, media))
    with served(app) as bare, served(AguiMiddleware(app)) as tapped:
        with httpx.Client() as client:
            expected = client.post(bare, json=input_of())
        with httpx.Client(transport=AguiTransport()) as client:
            found = client.post(tapped, json=input_of())
    assert found.content == expected.content == b"".join(chunks)
    assert {**found.headers, "date": ""} == {**expected.headers, "date": ""}


def test_two_hundred_streams_at_once_arrive_each_as_its_own(receipts: Recorded) -> None:
    def answer(given: Json) -> Response:
        run_id, thread_id = given["runId"], given["threadId"]
        return streaming(pieces(sse([started(run_id, thread_id), *said(), finished(run_id, thread_id)]), 50))

    async def all_of(url: str) -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=200)
        transport = AsyncAguiTransport(httpx.AsyncHTTPTransport(limits=limits))
        async with httpx.AsyncClient(transport=transport, timeout=60) as client:
            asked: list[Awaitable[httpx.Response]] = [
                client.post(url, json=input_of(f"r{each}", f"t{each}")) for each in range(200)
            ]
            return list(await asyncio.gather(*asked))

    with served(AguiMiddleware(answering(answer))) as url:
        found = asyncio.run(all_of(url))
    for number, response in enumerate(found):
        run_id, thread_id = f"r{number}", f"t{number}"
        assert response.content == sse([started(run_id, thread_id), *said(), finished(run_id, thread_id)])
    told = sorted((stop.run_id, stop.thread_id, stop.stop_cause) for stop in receipts.receipts)
    assert told == sorted([(f"r{each}", f"t{each}", "natural") for each in range(200)] * 2)


def test_many_threads_share_a_transport(receipts: Recorded) -> None:
    def answer(given: Json) -> Response:
        run_id, thread_id = given["runId"], given["threadId"]
        return streaming(pieces(sse([started(run_id, thread_id), *said(), finished(run_id, thread_id)]), 50))

    with (
        served(answering(answer)) as url,
        httpx.Client(transport=AguiTransport(), timeout=60) as client,
        ThreadPoolExecutor(20) as pool,
    ):
        list(pool.map(lambda each: client.post(url, json=input_of(f"r{each}", "t1")), range(100)))
    assert sorted(stop.run_id for stop in receipts.receipts) == sorted(f"r{each}" for each in range(100))


def test_a_compressed_stream_passes_and_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    tap_faults._said.clear()
    packed = gzip.compress(BODY)

    def answer(_: Json) -> Response:
        return Response(packed, headers={"content-encoding": "gzip"}, media_type=SSE)

    with (
        served(answering(answer)) as url,
        httpx.Client(transport=AguiTransport()) as client,
        caplog.at_level(logging.WARNING, "stopcause"),
    ):
        assert [client.post(url, json=input_of()).content for _ in range(3)] == [BODY] * 3
    assert [record.levelname for record in caplog.records if record.name == "stopcause"] == ["WARNING"]
