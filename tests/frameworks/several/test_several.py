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
from stopcause.receipts.vocabulary import FINISHED
from tests.frameworks.several import agents
from tests.frameworks.several.agents import IN_PROCESS, Made, nothing
from tests.support.captured import verdict_of

ALL = (*IN_PROCESS, agents.claude_agent_sdk, agents.temporal)
PAIRS = [
    *product(IN_PROCESS, IN_PROCESS),
    *product((agents.temporal,), IN_PROCESS),
    (agents.claude_agent_sdk, agents.langgraph),  # one each: the command line takes seconds
    (agents.langgraph, agents.claude_agent_sdk),
]
# Each inside another one: what is not a matter of the pair.
TURNS = tuple(zip(IN_PROCESS, (*IN_PROCESS[1:], IN_PROCESS[0]), strict=True))
turns = pytest.mark.parametrize(("outer", "inner"), TURNS, ids=lambda one: one.__name__)


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


@turns
def test_in_each_tool_the_run_that_called_it_is_current(outer: Made, inner: Made) -> None:
    seen: list[str | None] = []

    async def look() -> None:
        run = stopcause.current_run()
        seen.append(run.framework if run else None)

    async def work() -> None:
        await look()
        await inner(look)
        await look()

    with recorded():
        asyncio.run(outer(work))
    assert seen == [outer.__name__, inner.__name__, outer.__name__]


@turns
def test_a_run_that_goes_on_after_one_inside_of_it_began_to_wait_waits_as_well(outer: Made, inner: Made) -> None:
    async def asks() -> None:
        if run := stopcause.current_run():
            run.waiting("q-1", resume_token="t-1", resumable=True)

    with recorded(route={"owner": "team:a", "due_s": 3600}) as receipts:
        asyncio.run(outer(lambda: inner(asks)))
    _, stops = told(receipts)
    inside, around = stops

    assert verdict_of(receipts, inside.run_id) == ("WAITING", "tool_call")
    assert verdict_of(receipts, around.run_id) == ("WAITING_UNROUTED", "owner")
    assert around.children is not None
    assert around.children.waiting == 1


def test_runs_at_once_are_the_children_of_their_own_parents() -> None:
    async def all_at_once() -> None:
        await asyncio.gather(*(outer(lambda inner=inner: inner(nothing)) for outer, inner in TURNS))  # type: ignore[misc]

    with recorded() as receipts:
        asyncio.run(all_at_once())
    starts, stops = told(receipts)
    named = {each.run_id: each.framework for each in starts}
    pairs = [(named[each.parent_run_id], each.framework) for each in stops if each.parent_run_id]

    assert len(stops) == 2 * len(TURNS)
    assert sorted(pairs) == sorted((outer.__name__, inner.__name__) for outer, inner in TURNS)


@turns
def test_whatever_is_cancelled_each_run_has_one_end(outer: Made, inner: Made) -> None:
    async def cancelled() -> None:
        began, loop = asyncio.Event(), asyncio.get_running_loop()

        async def work() -> None:
            loop.call_soon_threadsafe(began.set)
            await asyncio.sleep(0.2)

        task = asyncio.create_task(outer(lambda: inner(work)))
        await asyncio.wait_for(began.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with recorded() as receipts:
        asyncio.run(cancelled())  # waits for its threads
    starts, stops = told(receipts)

    assert sorted(each.run_id for each in starts) == sorted(each.run_id for each in stops)
    assert {each.stop_cause for each in stops} <= {"caller_abort", "natural", "explicit_done"}


@turns
def test_a_run_is_ended_though_its_hook_is_taken_away_meanwhile(outer: Made, inner: Made) -> None:
    async def work() -> None:
        stopcause.uninstrument(outer.__name__)
        await inner(nothing)
        await outer(nothing)  # no run any more

    with recorded() as receipts:
        asyncio.run(outer(work))
    starts, stops = told(receipts)

    assert [each.framework for each in starts] == [outer.__name__, inner.__name__]
    assert [(each.framework, each.stop_cause in FINISHED) for each in stops] == [
        (inner.__name__, True),
        (outer.__name__, True),
    ]
