"""What records cost nobody: a sink in trouble changes nothing, a tap has no thread of its own, memory stays flat."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Iterator, Sequence

import httpx
import pytest

import stopcause
from stopcause.agui.tap import Tap
from stopcause.agui.tap_asgi import AguiMiddleware
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.receipts.testing import recorded
from tests.agui.tapped import SSE, answering, finished, input_of, said, served, sse, started, streaming

BODY = sse([started(), *said(), finished()])
AGENT = answering(lambda _: streaming([BODY]))


class Stubborn:
    """A sink that does not take anything for a while, or never."""

    def __init__(self, *, raises: bool) -> None:
        self.raises = raises
        self.let_go = threading.Event()

    def write(self, _: Sequence[bytes]) -> None:
        if self.raises:
            raise OSError("full")
        self.let_go.wait(20)

    def close(self) -> None:
        pass


@pytest.fixture(params=[True, False], ids=["raises", "blocks"])
def stubborn(request: pytest.FixtureRequest) -> Iterator[Stubborn]:
    sink = Stubborn(raises=request.param)
    yield sink
    sink.let_go.set()
    sink.raises = False


def test_a_sink_in_trouble_changes_nothing(stubborn: Stubborn) -> None:
    stopcause.configure(sink=stubborn)
    try:
        with (
            served(AguiMiddleware(AGENT, "agent")) as url,
            httpx.Client(transport=AguiTransport(agent="consumer"), timeout=5) as client,
        ):
            for _ in range(5):
                assert client.post(url, json=input_of()).content == BODY
    finally:
        stubborn.let_go.set()
        stubborn.raises = False
        stopcause.configure()


def test_taps_have_no_threads_of_their_own() -> None:
    with (
        recorded() as receipts,
        served(AguiMiddleware(AGENT, "agent")) as url,
        httpx.Client(transport=AguiTransport(agent="consumer")) as client,
    ):
        before = threading.active_count()
        client.post(url, json=input_of())
        assert len(receipts.receipts) == 2
        assert threading.active_count() <= before + 1  # the writer's, which every hook shares


def test_memory_stays_flat_over_a_long_stream() -> None:
    """A hundred thousand events, of which nothing may stay; half of them of the kind that is read one by one."""
    frames = sse([*said("x" * 500), {"type": "STATE_SNAPSHOT", "snapshot": {"text": "x" * 500}}])
    with recorded():
        passage = Tap("agent").passage()
        assert passage is not None
        passage.answered(200, SSE, "")
        passage.passed(sse([started()]))
        sizes = []
        tracemalloc.start()
        for _ in range(2):
            for _ in range(12_500):
                passage.passed(frames)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert sizes[1] - sizes[0] < 200_000
