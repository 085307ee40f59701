"""A stream of 200 events with and without the taps: CPU on both sides, and the time to the first byte.

The agent is `ag_ui_strands` with OpenAI's client; its provider is a server here, which streams a long answer at once.
The consumer does nothing but read each event as `ag-ui-protocol` does. All three are processes of their own. Streams
with and without the taps take turns, and the best turn of each counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import multiprocessing
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import uvicorn
from ag_ui.core import Event
from ag_ui_strands import StrandsAgent, create_strands_app
from pydantic import TypeAdapter
from strands import Agent
from strands.models.openai import OpenAIModel

import stopcause
from stopcause.agui.tap_asgi import AguiMiddleware
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.receipts.sinks import NullSink

EVENTS = 200
STREAMS = 3  # a turn
TURNS = 100
TEXT = "a few words of an answer, as long as a model's "
WITHOUT, WITH = {"x-tapped": "0"}, {"x-tapped": "1"}
_INPUT = {
    "state": {}, "messages": [{"id": "u1", "role": "user", "content": TEXT}], "tools": [], "context": [],
    "forwardedProps": {},
}  # fmt: skip
_event: TypeAdapter[Any] = TypeAdapter(Event)


# The agent ------------------------------------------------------------------------------------------------------------


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request of the provider's client, on a connection of its own."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.split(b":")[1]))
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    for _ in range(EVENTS - 8):  # the others are the run's, the message's and the state's
        writer.write(_piece({"content": TEXT}, None))
    writer.write(_piece({}, "stop") + b"data: [DONE]\n\n")
    await writer.drain()
    writer.close()


def _piece(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "talker", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _provide(listening: socket.socket) -> None:
    async def serve() -> None:
        await (await asyncio.start_server(_answer, sock=listening)).serve_forever()

    asyncio.run(serve())


def _serve(listening: socket.socket, provider: str) -> None:
    stopcause.configure(sink=NullSink())
    logging.disable(logging.CRITICAL)
    model = OpenAIModel(client_args={"base_url": provider, "api_key": "none"}, model_id="talker")
    agent = StrandsAgent(Agent(model=model, callback_handler=None), name="clerk")
    bare = create_strands_app(agent, "/", cors_enabled=False)
    tapped = AguiMiddleware(bare, "clerk")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (tapped if (b"x-tapped", b"1") in scope["headers"] else bare)(scope, receive, send)

    asyncio.run(uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical")).serve([listening]))


@contextlib.contextmanager
def _process(work: Callable[..., None], *more: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own: its address, and its process."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        process = multiprocessing.get_context("fork").Process(target=work, args=(listening, *more), daemon=True)
        process.start()
        try:
            assert process.pid is not None
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", process.pid
        finally:
            process.kill()
            process.join()


# The consumer ---------------------------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """What one turn cost, a stream: microseconds of CPU on each side, milliseconds to the first byte."""

    agent: float
    consumer: float
    first: float


def _turn(client: httpx.Client, url: str, pid: int, ids: str, headers: dict[str, str]) -> Turn:
    there, here, firsts = _cpu_of(pid), time.process_time(), []
    for stream in range(STREAMS):
        given = {**_INPUT, "threadId": f"t{ids}-{stream}", "runId": f"r{ids}-{stream}"}
        begun = time.perf_counter()
        with client.stream("POST", url, json=given, headers=headers) as response:
            lines = response.iter_lines()
            first = next(lines)
            firsts.append((time.perf_counter() - begun) * 1000)
            count = _read(first) + sum(_read(line) for line in lines if line)
    assert abs(count - EVENTS) < 5, count
    stopcause.flush()
    time.sleep(0.005)  # the thread behind the agent, too, has written by then
    there, here = _cpu_of(pid) - there, time.process_time() - here
    return Turn(there / STREAMS * 1e6, here / STREAMS * 1e6, statistics.median(firsts))


def _read(line: str) -> int:
    return _event.validate_json(line[6:]) is not None


def _cpu_of(pid: int) -> float:
    """Seconds of CPU of another process (Linux: the clock of a process follows from its id)."""
    return time.clock_gettime((~pid << 3) | 2)


def main() -> None:
    """Prints the table."""
    stopcause.configure(sink=NullSink())
    without, watched = [], []
    with (
        _process(_provide) as (provider, _),
        _process(_serve, provider) as (url, pid),
        httpx.Client(timeout=30) as bare,
        httpx.Client(transport=AguiTransport(agent="clerk"), timeout=30) as tapped,
    ):
        for number in range(TURNS):
            without.append(_turn(bare, url, pid, f"{number}-0", WITHOUT))
            watched.append(_turn(tapped, url, pid, f"{number}-1", WITH))
    print(f"a stream of {EVENTS} events of a real agent; best of {TURNS} turns of {STREAMS}")
    _print("agent's side", "us CPU", [[turn.agent for turn in turns] for turns in (without, watched)])
    _print("consumer's side", "us CPU", [[turn.consumer for turn in turns] for turns in (without, watched)])
    _print("both", "us CPU", [[turn.agent + turn.consumer for turn in turns] for turns in (without, watched)])
    _print("first byte", "ms", [[turn.first for turn in turns] for turns in (without, watched)])


def _print(label: str, unit: str, figures: list[list[float]]) -> None:
    plain, more = map(min, figures)
    print(f"{label:<16} {plain:10,.2f} {unit:<7} + {more - plain:8,.2f} with the taps  {more / plain - 1:7.1%}")


if __name__ == "__main__":
    main()
