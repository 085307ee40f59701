"""For the taps' tests: exchanges served by a real server, in chunks of any size, and what the recordings hold."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from stopcause.agui.tap_asgi import App

Json = Any
SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
OURS = (
    "tap_passage.Watch.take", "tap_passage.Watch.close", "tap_passage.Watch", "tap_passage.Frames.feed",
    "tap_passage.Frames.end", "tap_passage.Frames", "tap_passage.read_given", "tap_passage.json_of", "tap_passage._now",
    "tap.Passage", "tap.Ledger.begun", "tap.Ledger.ended", "told.begun_records", "told.ended_records",
    "tap.capture.tell", "tap.capture.configured_now", "tap.capture.is_off", "tap.capture.writer",
)  # fmt: skip
RECORDINGS = Path(__file__).parents[2] / "fixtures" / "agui" / "recordings"


def breaking(patch: pytest.MonkeyPatch, name: str) -> None:
    """Makes one function of ours raise."""

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("canary-7f3a")

    patch.setattr(f"stopcause.agui.{name}", fails)


def recorded_exchanges(path: Path) -> list[dict[str, Json]]:
    """The exchanges of a recording, as they stand in its file."""
    told = json.loads(path.read_text("utf-8"))
    return list(told["exchanges"] if isinstance(told, dict) else told)


def sse(events: Iterable[Json]) -> bytes:
    """Events as a stream of frames."""
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def ndjson(events: Iterable[Json]) -> bytes:
    """Events as lines."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def pieces(body: bytes, size: int) -> list[bytes]:
    """A body in chunks of that size; 0 is all at once."""
    return [body[at : at + size] for at in range(0, len(body), size)] if size else [body]


def input_of(run_id: str = "r1", thread_id: str = "t1", **more: Json) -> dict[str, Json]:
    """A RunAgentInput."""
    empty: dict[str, Json] = {"state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {}}
    return {"threadId": thread_id, "runId": run_id, **empty, **more}


def started(run_id: str = "r1", thread_id: str = "t1") -> dict[str, Json]:
    """The first event of a run."""
    return {"type": "RUN_STARTED", "threadId": thread_id, "runId": run_id, "protocolVersion": "1.0"}


def finished(run_id: str = "r1", thread_id: str = "t1", **more: Json) -> dict[str, Json]:
    """The last one."""
    return {"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id, **more}


def said(text: str = "hello", message_id: str = "m1") -> list[dict[str, Json]]:
    """A message of the agent."""
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": text},
        {"type": "TEXT_MESSAGE_END", "messageId": message_id},
    ]


def answering(answer: Callable[[Json], Response]) -> Starlette:
    """An application that answers an input at `/`."""

    async def endpoint(request: Request) -> Response:
        return answer(await request.json())

    return Starlette(routes=[Route("/", endpoint, methods=["POST"])])


def streaming(chunks: Sequence[bytes], media: str = SSE) -> Response:
    """A response that sends these chunks one by one."""

    async def each() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return StreamingResponse(each(), media_type=media)


def playing(exchanges: Sequence[Mapping[str, Json]], size: int = 0, media: str = SSE) -> Starlette:
    """An application that plays exchanges, by the run's id."""
    encode = sse if media == SSE else ndjson
    by_run = {each["input"]["runId"]: each for each in exchanges}

    def answer(given: Json) -> Response:
        played = by_run[given["runId"]]
        if (status := played.get("http_status")) is not None:
            return Response("no", status)
        return streaming(pieces(encode(played["events"]), size), media)

    return answering(answer)


@contextlib.contextmanager
def served(app: App) -> Iterator[str]:
    """A real server with this application; gives its address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:  # else no TCP_NODELAY
        listening.bind(("127.0.0.1", 0))
        listening.listen(256)
        config = uvicorn.Config(app, lifespan="off", ws="none", log_level="critical")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=asyncio.run, args=(server.serve([listening]),))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)


class Wire:
    """A server's side of one ASGI request, by hand: what the application is given, and what it sent."""

    def __init__(self, body: bytes, *, at: int = 1, disconnects: bool = False) -> None:
        parts = pieces(body, max(1, len(body) // at)) or [b""]
        self.incoming: list[dict[str, Any]] = [
            {"type": "http.request", "body": part, "more_body": part is not parts[-1]} for part in parts
        ]
        if disconnects:
            self.incoming.append({"type": "http.disconnect"})
        self.given: list[dict[str, Any]] = []
        self.sent: list[MutableMapping[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        if not self.incoming:
            await asyncio.Event().wait()  # nothing more comes
        self.given.append(self.incoming.pop(0))
        return self.given[-1]

    async def send(self, message: MutableMapping[str, Json]) -> None:
        self.sent.append(message)


def scope(method: str = "POST", path: str = "/", kind: str = "http") -> dict[str, Any]:
    """A request's."""
    return {
        "type": kind, "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": method,
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http",
        "headers": [(b"content-type", b"application/json")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }  # fmt: skip
