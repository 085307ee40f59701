"""Bad days around the core hook: sinks fail, processes end badly, clocks jump, and the host never notices."""

from __future__ import annotations

import asyncio
import contextvars
import json
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

import stopcause
from stopcause.receipts import capture, mending, records
from stopcause.receipts.testing import MemorySink, recorded


class Refuses:
    """Takes nothing the first `times`, then everything."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.calls = 0
        self.lines: list[bytes] = []

    def write(self, lines: Sequence[bytes]) -> None:
        self.calls += 1
        if self.calls <= self.times:
            raise OSError(28, "a canary in the text of an error")
        self.lines += lines

    def close(self) -> None:
        raise RuntimeError("not even this")


class Blocks(MemorySink):
    """Takes nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def write(self, lines: Sequence[bytes]) -> None:
        self.go.wait(30)
        super().write(lines)


# Sinks ----------------------------------------------------------------------------------------------------------------


def test_a_sink_that_raises_is_asked_again_and_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    sink = Refuses(3)
    with capture.configured(sink=sink):
        for _ in range(5):
            with stopcause.run("a"):
                pass
        assert stopcause.flush(20)

    kinds = [json.loads(line)["kind"] for line in sink.lines]
    assert kinds == ["run.started", "run.stopped"] * 5
    assert "No space left on device" in caplog.text
    assert "canary" not in caplog.text


def test_a_sink_that_blocks_costs_the_agent_nothing_and_the_loss_is_told() -> None:
    sink = Blocks()
    with capture.configured(sink=sink, queue_max=40):
        begun = time.thread_time()
        for _ in range(2_000):
            with stopcause.run("a"):
                pass
        spent = time.thread_time() - begun
        assert not stopcause.flush(0.05)
        sink.go.set()
        assert stopcause.flush(20)
        with stopcause.run("last"):
            pass
        assert stopcause.flush(20)

    kept = [json.loads(line) for line in sink.lines]
    lost = sum(each.get("dropped", 0) for each in kept)
    assert lost + len(kept) == 2 * 2_001
    assert lost > 3_000
    assert spent < 2.0, "it only has to be clear that nothing waited"


def test_a_flush_waits_for_a_sink_that_was_replaced_too() -> None:
    blocks = Blocks()
    with recorded() as found:
        with capture.configured(sink=blocks):
            with stopcause.run("a"):
                pass
            stopcause.configure(sink=MemorySink())
            assert not capture.flush(0.1)
            blocks.go.set()
            assert capture.flush(10)
            assert len(blocks.lines) == 2
        assert found.lines == []


def test_stop_receipts_have_room_that_starts_do_not_take() -> None:
    sink = Blocks()
    with capture.configured(sink=sink, queue_max=40):
        runs = [stopcause.run(f"a{i}") for i in range(60)]
        for each in runs:
            each.start()
        for each in runs[:10]:
            each.close()
        sink.go.set()
        assert stopcause.flush(20)
        for each in runs[10:]:
            each.close()

    stopped = [json.loads(line)["agent"] for line in sink.lines if b"run.stopped" in line]
    assert stopped[:10] == [f"a{i}" for i in range(10)]


@pytest.mark.parametrize("name", ["started", "stopped", "progressed"])
def test_a_fault_of_ours_behind_costs_one_record_and_not_the_thread(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("ours")

    with recorded() as found:
        with monkeypatch.context() as patch:
            patch.setattr(records, name, fail)
            with stopcause.run("a") as run:
                run.progress()
            stopcause.flush()
        with stopcause.run("b"):
            pass

        kinds = [each.kind for each in found.records]
        assert kinds[-2:] == ["run.started", "run.stopped"]
        if name == "stopped":
            assert found.receipts[0].stop_cause == "unknown"
            assert [each.code for each in found.receipts[0].findings or ()] == ["receipt_incomplete"]
        else:
            assert sum(each.dropped or 0 for each in found.records) == 1


def test_a_line_that_cannot_be_made_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("ours")

    with recorded() as found:
        with monkeypatch.context() as patch:
            patch.setattr(mending, "line_of", fail)
            with stopcause.run("a"):
                pass
            stopcause.flush()
        with stopcause.run("b"):
            pass

        assert [each.dropped for each in found.records] == [2, None]


# Many runs, threads, contexts -----------------------------------------------------------------------------------------


def test_ten_thousand_runs_at_once() -> None:
    async def agent(number: int) -> None:
        async with stopcause.run("a", run_id=f"r{number}") as run:
            run.step()
            await asyncio.sleep(0)
            assert stopcause.current_run() is run
            run.step()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(10_000):
                group.create_task(agent(number))

    with recorded() as found:
        asyncio.run(main())
        lines = found.lines

    stops = [record for line in lines if (record := json.loads(line))["kind"] == "run.stopped"]
    assert len(lines) == 20_000
    assert {stop["run_id"] for stop in stops} == {f"r{number}" for number in range(10_000)}
    assert {stop["steps"] for stop in stops} == {2}
    assert not any("parent_run_id" in stop for stop in stops)


def test_threads_do_not_see_each_other_s_runs() -> None:
    def agent(number: int) -> None:
        with stopcause.run("a", run_id=f"r{number}") as run:
            time.sleep(0.001)
            assert stopcause.current_run() is run

    with recorded() as found:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(agent, range(200)))

        assert {stop.run_id for stop in found.receipts} == {f"r{number}" for number in range(200)}
        assert {stop.parent_run_id for stop in found.receipts} == {None}


def test_what_threads_count_beside_each_other_is_all_counted() -> None:
    often, before = 1e-6, sys.getswitchinterval()

    def work(number: int) -> None:
        for _ in range(1000):
            run.step(tool_calls=1, input_tokens=1)
        for i in range(20):
            run.waiting(f"ap-{number}-{i}")
            run.condition(f"c-{number}-{i}", "steps", fired=False)
            with run.child("child") as child:
                child.waiting("ap-1")

    with recorded() as found:
        sys.setswitchinterval(often)
        try:
            with stopcause.run("a", run_id="r1") as run, ThreadPoolExecutor(8) as pool:
                list(pool.map(work, range(8)))
        finally:
            sys.setswitchinterval(before)

        stopped = next(each for each in found.receipts if each.run_id == "r1")
        assert (stopped.steps, stopped.tool_calls, stopped.model_calls) == (8000, 8000, 8000)
        assert stopped.usage is not None
        assert stopped.usage.input_tokens == 8000
        assert (len(stopped.approvals or ()), len(stopped.conditions or ())) == (160, 160)
        assert stopped.children is not None
        assert (stopped.children.open, stopped.children.waiting) == (0, 160)


def test_a_child_that_outlives_its_parent_is_still_a_run() -> None:
    with recorded() as found:
        outer = stopcause.run("outer").start()
        inner = outer.child("inner").start()
        outer.close()
        inner.end()
        inner.end(ValueError())
        inner.close()

        assert [(stop.agent, stop.stop_cause) for stop in found.receipts] == [
            ("outer", "unknown"),
            ("inner", "natural"),
        ]
        assert found.receipts[0].children is not None
        assert found.receipts[0].children.open == 1


def test_a_block_that_is_left_in_another_context_does_not_raise() -> None:
    with recorded() as found:
        run = stopcause.run("a")
        contextvars.copy_context().run(run.__enter__)
        run.__exit__(None, None, None)

        assert found.stopped.stop_cause == "natural"


# Clocks ---------------------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_back_does_not_end_a_run_before_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded() as found:
        with stopcause.run("a") as run:
            run.progress("tool_result")
            real = time.time_ns
            monkeypatch.setattr("stopcause.receipts.run.time.time_ns", lambda: real() - 3_600_000_000_000)
        monkeypatch.undo()

        stopped = found.stopped
        assert stopped.started_at is not None
        assert stopped.at >= stopped.started_at
        assert 0 <= (stopped.duration_s or 0) < 5
        assert [each.code for each in stopped.findings or ()] == ["clock_jump"]
