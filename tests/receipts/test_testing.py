"""`recorded()`, as others use it in tests of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

import stopcause
from stopcause.errors import ConfigurationError
from stopcause.receipts import capture, codec, model
from stopcause.receipts import testing as module
from stopcause.receipts.testing import MemorySink, recorded


def agent(name: str = "agent") -> str:
    with stopcause.run(name) as run:
        run.step(tool_calls=2)
        return run.run_id


async def slow_agent(name: str) -> None:
    async with stopcause.run(name) as run:
        await asyncio.sleep(0.01)
        run.step()


def agents(found: list[model.RunStopped]) -> list[str]:
    return sorted(stop.agent or "" for stop in found)


def test_a_run_in_a_block() -> None:
    with recorded() as receipts:
        run_id = agent()

    assert receipts.stopped.stop_cause == "natural"
    assert (receipts.stopped.run_id, receipts.stopped.tool_calls) == (run_id, 2)
    assert [type(record) for record in receipts.records] == [model.RunStarted, model.RunStopped]
    assert [codec.read_line(line) for line in receipts.lines] == receipts.records
    assert receipts.receipts == [receipts.stopped]


def test_it_can_be_read_while_it_goes_on_and_afterwards() -> None:
    with recorded() as receipts:
        assert receipts.records == []
        with stopcause.run("agent"):
            assert [type(record) for record in receipts.records] == [model.RunStarted]
        assert receipts.stopped.agent == "agent"
        agent()
        assert len(receipts.receipts) == 2
    assert len(receipts.receipts) == 2


@pytest.mark.parametrize("runs", [0, 2])
def test_the_only_receipt_is_the_only_one(runs: int) -> None:
    with recorded() as receipts:
        for _ in range(runs):
            agent()

    with pytest.raises(AssertionError, match=f"{runs} stop receipts, not 1"):
        _ = receipts.stopped


def test_in_a_loop_of_the_tests_own() -> None:
    async def both() -> None:
        await asyncio.gather(slow_agent("a"), slow_agent("b"))

    with recorded() as receipts:
        asyncio.run(both())

    assert agents(receipts.receipts) == ["a", "b"]


def test_inside_of_a_coroutine() -> None:
    async def test() -> None:
        with recorded() as receipts:
            await slow_agent("a")
            assert receipts.stopped.agent == "a"

    asyncio.run(test())


def test_all_threads_are_in_it() -> None:
    with recorded() as receipts:
        threads = [threading.Thread(target=agent, args=(f"a-{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert agents(receipts.receipts) == [f"a-{number}" for number in range(8)]


def test_one_inside_the_other() -> None:
    with recorded(environment="outer") as outer:
        agent("before")
        with stopcause.run("across") as across:
            with recorded(environment="inner") as inner:
                agent("inside")
                across.progress()
                assert agents(outer.receipts) == ["before"]
            assert inner.stopped.environment == "inner"
        agent("after")

    assert agents(inner.receipts) == ["inside"]
    assert agents(outer.receipts) == ["across", "after", "before"]
    assert {stop.environment for stop in outer.receipts} == {"outer"}


def test_what_was_configured_before_comes_back() -> None:
    before = MemorySink()
    with capture.configured(sink=before, environment="before"):
        with recorded(environment="inside") as receipts, pytest.raises(KeyError):
            agent()
            raise KeyError
        agent()
        assert stopcause.flush()
    assert receipts.stopped.environment == "inside"
    assert len(before.lines) == 2
    assert all(b'"before"' in line for line in before.lines)


def test_also_where_an_option_is_wrong() -> None:
    before = MemorySink()
    with capture.configured(sink=before):
        with pytest.raises(ConfigurationError, match="configure: lease_s must be"), recorded(lease_s=-1):
            pass
        agent()
        assert stopcause.flush()
    assert len(before.lines) == 2


def test_options_are_those_of_configure() -> None:
    with recorded(service="billing", labels={"team": "pay"}, validators={"c": lambda _: True}) as receipts:
        agent()

    assert (receipts.stopped.service, receipts.stopped.labels) == ("billing", {"team": "pay"})
    assert isinstance(receipts.records[-1], model.OutcomeRecorded), "reading waits for validators"


def test_what_is_not_there_in_time_is_an_error_and_no_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_S", 0.05)
    opened = threading.Event()
    with recorded(validators={"c": lambda _: opened.wait(10)}) as receipts:
        agent()
        with pytest.raises(AssertionError, match=r"not all is recorded after 0\.05 s"):
            _ = receipts.lines
        opened.set()


def test_where_hooks_are_off_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", "1")
    with recorded() as receipts:
        agent()

    assert receipts.lines == []


def test_nothing_gets_into_the_spool(own_data: Path) -> None:
    with recorded():
        agent()

    assert not list(own_data.rglob("*.ndjson"))


def test_it_leaves_no_thread_behind() -> None:
    for _ in range(5):
        with recorded(validators={"c": lambda _: True}):
            agent()
    until = time.monotonic() + 5
    while [thread for thread in threading.enumerate() if thread.name.startswith("stopcause")]:
        assert time.monotonic() < until
        time.sleep(0.01)
