"""What runs leave behind in memory, and a sink that sends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from stopcause.receipts.sinks import HttpSink
from stopcause.receipts.testing import Recorded, recorded

Make = Callable[..., HttpSink]


@pytest.fixture
def receipts() -> Iterator[Recorded]:
    with recorded() as found:
        yield found


@pytest.fixture
def http_sink(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes sinks that know no proxy of this machine's, and closes them after the test."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    made: list[HttpSink] = []

    def make(url: str, **options: object) -> HttpSink:
        made.append(HttpSink(url, **options))  # type: ignore[arg-type]  # those of HttpSink
        return made[-1]

    yield make
    for sink in made:
        sink.close()
