"""All hooks in one process: each run leaves its records once, and a run inside another framework's is its child."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import product

import pytest

import stopcause
from stopcause.receipts.hooks import SPECS
from stopcause.receipts.model import RunStarted, RunStopped
from stopcause.receipts.testing import Recorded, recorded
from tests.frameworks.several import agents
from tests.frameworks.several.agents import IN_PROCESS, Made, nothing

ALL = (*IN_PROCESS, agents.claude_agent_sdk, agents.temporal)
PAIRS = [
    *product(IN_PROCESS, IN_PROCESS),
    *product((agents.temporal,), IN_PROCESS),
    (agents.claude_agent_sdk, agents.langgraph),  # one each: the command line takes seconds
    (agents.langgraph, agents.claude_agent_sdk),
]


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """All are on."""
    assert set(stopcause.instrument()) == {spec.name for spec in SPECS}
    yield
    stopcause.uninstrument()


def told(receipts: Recorded) -> tuple[list[RunStarted], list[RunStopped]]:
    starts = [each for each in receipts.records if isinstance(each, RunStarted)]
    return starts, [each for each in receipts.records if isinstance(each, RunStopped)]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.__name__)
def test_each_is_captured_once(one: Made) -> None:
    with recorded() as receipts:
        asyncio.run(one(nothing))
    starts, stops = told(receipts)

    assert [each.framework for each in starts] == [one.__name__]
    assert [(each.framework, each.tool_calls, each.parent_run_id) for each in stops] == [(one.__name__, 1, None)]


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=lambda one: one.__name__)
def test_a_run_in_another_s_tool_is_its_child(outer: Made, inner: Made) -> None:
    with recorded() as receipts:
        asyncio.run(outer(lambda: inner(nothing)))
    starts, stops = told(receipts)
    first, second = starts

    assert (first.framework, second.framework) == (outer.__name__, inner.__name__)
    assert (first.parent_run_id, second.parent_run_id) == (None, first.run_id)
    assert [(each.run_id, each.parent_run_id) for each in stops] == [
        (second.run_id, first.run_id),
        (first.run_id, None),
    ]
    assert [each.findings for each in stops] == [None, None]
    assert stops[1].children is None


def test_one_block_of_the_program_s_own_around_all_is_the_parent_of_all_but_the_first() -> None:
    async def all_of_them() -> None:
        for one in IN_PROCESS:
            await one(nothing)

    with recorded() as receipts, stopcause.run("night-shift") as run:
        asyncio.run(all_of_them())
    starts, stops = told(receipts)

    assert len(starts) == len(stops) == len(IN_PROCESS)
    assert {each.parent_run_id for each in starts} == {None, run.run_id}
