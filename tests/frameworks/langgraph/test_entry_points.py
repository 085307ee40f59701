"""Whatever runs a graph makes one run of it; what is no graph makes none."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, graph, say

_IS_OLDEST = os.environ.get("STOPCAUSE_VERSIONS") == "oldest"
_newer = pytest.mark.skipif(_IS_OLDEST, reason="later versions have it")


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("langgraph")
    yield
    stopcause.uninstrument("langgraph")


def _batch() -> None:
    graph(models.collect).batch([{"done": []}] * 3)


async def _batch_async() -> None:
    await graph(models.acollect).abatch([{"done": []}] * 3)


def _invoke_v2() -> None:
    agent(say()).invoke(models.ASK, version="v2")


def _stream_v2() -> None:
    assert list(agent(say()).stream(models.ASK, version="v2", stream_mode=["messages", "tasks"], subgraphs=True))


def _events_v3() -> None:
    assert list(agent(say()).stream_events(models.ASK, version="v3"))


async def _log() -> None:
    assert [patch async for patch in agent(say()).astream_log(models.ASK)]


async def _in_tasks() -> None:
    made = graph(models.acollect, models.store)
    await asyncio.gather(*(made.ainvoke({"done": []}) for _ in range(3)))


def _no_graph() -> None:
    (RunnableLambda(str) | models.ChatScripted(answers=[say()])).invoke("Close it.")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*experimental")
@pytest.mark.parametrize(
    ("way", "count"),
    [
        (_batch, 3), (_batch_async, 3), (_log, 1), (_in_tasks, 3), (_no_graph, 0),
        pytest.param(_invoke_v2, 1, marks=_newer), pytest.param(_stream_v2, 1, marks=_newer),
        pytest.param(_events_v3, 1, marks=_newer),
    ],
)  # fmt: skip
def test_every_way_to_run_a_graph_makes_one_run(way: Callable[[], Any], count: int) -> None:
    with recorded() as receipts:
        made = way()
        if inspect.isawaitable(made):
            asyncio.run(_awaited(made))
        assert [each.stop_cause for each in receipts.receipts] == ["natural"] * count
        assert not [each for each in receipts.receipts if each.parent_run_id or each.findings]


async def _awaited(made: Any) -> None:
    await made
