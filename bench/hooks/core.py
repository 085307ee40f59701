"""What the core hook costs an agent: its thread, the thread behind, the event loop beside it, memory.

Run by `python -m bench.hooks.core`. Figures stand beside a floor of the same run; the best of several turns counts.
"""

from __future__ import annotations

import asyncio
import gc
import queue
import resource
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import stopcause
from stopcause.receipts.sinks import NullSink

RUNS = 4_000
STEPS = 10
TURNS = 5
DRAINED = 1_000
MEMORY_RUNS = 100_000


def main() -> None:
    """Prints the table."""
    stopcause.configure(sink=NullSink(), queue_max=10_000_000)
    _a_run(STEPS)
    stopcause.flush()
    _thread_figures()
    _loop_figures()
    _memory_figures()


# The agent's thread, and the one behind -------------------------------------------------------------------------------


def _thread_figures() -> None:
    bare, stepped, behind = [], [], []
    floor = [_on_thread(_floor) for _ in range(TURNS)]
    for _ in range(TURNS):
        before, mine = time.process_time(), time.thread_time()
        bare.append(_on_thread(lambda: _a_run(0)))
        stepped.append(_on_thread(lambda: _a_run(STEPS)))
        stopcause.flush()
        behind.append(((time.process_time() - before) - (time.thread_time() - mine)) / (2 * RUNS) * 1e6)
    a_run, a_step = min(bare), (min(stepped) - min(bare)) / STEPS
    print(
        f"agent's thread   {a_run:8.2f} us a run   {a_run / min(floor):5.1f} x two dicts and puts ({min(floor):.2f} us)"
    )
    print(f"                 {a_step:8.3f} us a step")
    print(f"thread behind    {min(behind):8.2f} us a run   start record and receipt, checked, as lines")


def _on_thread(work: Callable[[], None]) -> float:
    """Microseconds of this thread's CPU for one call."""
    gc.collect()
    begun = time.thread_time_ns()
    for _ in range(RUNS):
        work()
    return (time.thread_time_ns() - begun) / RUNS / 1000


def _a_run(steps: int) -> None:
    with stopcause.run("agent") as run:
        for _ in range(steps):
            run.step(tool_calls=1)


_puts: queue.SimpleQueue[dict[str, object]] = queue.SimpleQueue()


def _floor() -> None:
    """What any hook does at least: two dicts, and each into a queue."""
    _puts.put({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": 10})
    _puts.put({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": 10})
    _puts.get()
    _puts.get()


# The event loop beside it ---------------------------------------------------------------------------------------------


def _loop_figures() -> None:
    quiet = asyncio.run(_delays(lambda: None))
    busy = asyncio.run(_delays(_drain))
    hog = asyncio.run(_delays(_hog))
    for name, found in (("nothing", quiet), (f"{DRAINED} records drain", busy), ("a thread computes", hog)):
        print(f"loop wakes late  {_at(found, 50):8.2f} ms p50 {_at(found, 99):8.2f} ms p99   while {name}")


async def _delays(begin: Callable[[], object]) -> Sequence[float]:
    """By how many milliseconds an event loop wakes late, in the time that the work behind takes."""
    begin()
    found = []
    until = time.monotonic() + 0.4
    while time.monotonic() < until:
        due = time.monotonic() + 0.001
        await asyncio.sleep(0.001)
        found.append((time.monotonic() - due) * 1000)
    await asyncio.to_thread(stopcause.flush)
    return found


def _drain() -> None:
    for _ in range(DRAINED // 2):
        _a_run(2)


def _hog() -> None:
    """A thread that never gives the interpreter back by itself: what a careless hook would be."""
    until = time.monotonic() + 0.4

    def work() -> None:
        while time.monotonic() < until:
            sum(range(1000))

    threading.Thread(target=work, daemon=True).start()


def _at(found: Sequence[float], percent: int) -> float:
    return statistics.quantiles(found, n=100)[percent - 1]


# Memory ---------------------------------------------------------------------------------------------------------------


def _memory_figures() -> None:
    seen = []
    for number in range(1, MEMORY_RUNS + 1):
        _a_run(2)
        if number % 1_000 == 0:
            stopcause.flush()  # else the queue is what is measured: nothing here waits for a model
        if number % (MEMORY_RUNS // 4) == 0:
            gc.collect()
            seen.append(int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize() / 2**20)
    quarters = " / ".join(f"{each:.1f}" for each in seen)
    print(f"memory           {quarters} MB, after each quarter of {MEMORY_RUNS:,} runs")


if __name__ == "__main__":
    main()
