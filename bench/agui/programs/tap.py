"""A stream of 200 events with and without the taps: CPU on both sides, and the time to the first byte.

The agent is `ag_ui_strands` with a model that streams a long answer at once; it is served by a process of its own. The
consumer reads each event as `ag-ui-protocol` does. Streams with and without the taps take turns; the best turn of each
counts. Beside it the floor: the same bytes from a server that does nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import socket
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import httpx
import uvicorn
from ag_ui.core import Event
from ag_ui_strands import StrandsAgent, create_strands_app
from pydantic import TypeAdapter
from strands import Agent
from strands.models.model import Model

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


class Talker(Model):
    """Says a long answer in pieces."""

    def update_config(self, **config: Any) -> None:
        """Has nothing to update."""

    def get_config(self) -> dict[str, Any]:
        """Its name."""
        return {"model_id": "talker"}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Is not asked."""
        yield {}

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """As a provider's."""
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        for _piece in range(EVENTS - 6):  # the others are the run's, the message's and the state's
            yield {"contentBlockDelta": {"delta": {"text": TEXT}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def _serve(listening: socket.socket) -> None:
    stopcause.configure(sink=NullSink())
    logging.disable(logging.CRITICAL)
    agent = StrandsAgent(Agent(model=Talker(), callback_handler=None), name="clerk")
    bare = create_strands_app(agent, "/", cors_enabled=False)
    tapped = AguiMiddleware(bare, "clerk")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (tapped if (b"x-tapped", b"1") in scope["headers"] else bare)(scope, receive, send)

    asyncio.run(uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical")).serve([listening]))


@contextlib.contextmanager
def _server() -> Iterator[tuple[str, int]]:
    """Its address, and its process."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        process = multiprocessing.get_context("fork").Process(target=_serve, args=(listening,), daemon=True)
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
        _server() as (url, pid),
        httpx.Client(timeout=30) as bare,
        httpx.Client(transport=AguiTransport(agent="clerk"), timeout=30) as tapped,
    ):
        for number in range(TURNS):
            without.append(_turn(bare, url, pid, f"{number}-0", WITHOUT))
            watched.append(_turn(tapped, url, pid, f"{number}-1", WITH))
    print(f"a stream of {EVENTS} events of a real agent; best of {TURNS} turns of {STREAMS}")
    for name, unit in (("agent", "us CPU"), ("consumer", "us CPU"), ("first", "ms")):
        plain, more = (min(getattr(turn, name) for turn in turns) for turns in (without, watched))
        label = "first byte" if name == "first" else f"{name}'s side"
        print(f"{label:<16} {plain:10,.2f} {unit:<7} + {more - plain:8,.2f} with the tap  {more / plain - 1:7.1%}")


if __name__ == "__main__":
    main()
