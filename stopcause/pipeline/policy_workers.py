"""Runs judged by two policies, here or in worker processes: lines go in, counts and a few examples come out.

Workers are started anew (never forked: a fork of a process with an open engine hangs) and get no more than a handful
of batches ahead, so that memory does not grow with the runs. A worker that dies is an error, not a wait without end;
one whose parent is gone ends.
Not here: where the lines come from (`policy_diff`, `policy_sources`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple

from stopcause.classifier import engine, fold
from stopcause.classifier.fold import Facts, Run
from stopcause.classifier.policy import Policy
from stopcause.classifier.verdict import Verdict
from stopcause.errors import StoreError
from stopcause.pipeline.policy_touch import Touch, sketch_of
from stopcause.receipts import codec
from stopcause.render.policy_diff import Change, Example, Said

PROCESSES = 2
BATCH_RUNS = 2000
_ALONE = 2  # up to so many batches are judged here: workers take longer to start
_AHEAD = 2  # batches that wait for each worker
_EXAMPLES = 3
_AGENTS = 1000
_COMPARED = ("missing", "retry", "settled")


class Task(NamedTuple):
    """What every batch is judged by, and as of when."""

    old: Policy
    new: Policy
    now: datetime


class Batch(NamedTuple):
    """Runs to judge, and the lines of all their records and of the runs that take them up.

    `run_ids` empty: every run of the lines. `since`: only runs whose first record is not older.
    """

    run_ids: Sequence[str]
    lines: Sequence[bytes]
    since: datetime | None = None


Key = tuple[Said, Said]


class Tally:
    """Counts of runs, and the first few of each change. It grows with the kinds of change, never with the runs."""

    def __init__(self) -> None:
        self.looked = self.touched = self.changed = self.unjudged = 0
        self.runs: Counter[Key] = Counter()
        self.sections: dict[Key, Counter[str]] = {}
        self.examples: dict[Key, list[Example]] = {}
        self.agents: Counter[str | None] = Counter()
        self.keeps: Counter[str] = Counter()
        self.matched: set[int] = set()  # entries of the new policy

    def add(self, other: Tally) -> None:
        """Takes in what was counted elsewhere."""
        for name in ("looked", "touched", "changed", "unjudged"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.runs.update(other.runs)
        self.keeps.update(other.keeps)
        self.matched |= other.matched
        self._count_agents(other.agents)
        for key, sections in other.sections.items():
            self.sections.setdefault(key, Counter()).update(sections)
            kept = self.examples.setdefault(key, [])
            kept += other.examples[key][: _EXAMPLES - len(kept)]

    def note(self, key: Key, example: Example) -> None:
        """One run that changes."""
        self.changed += 1
        self.runs[key] += 1
        self._count_agents({example.agent: 1})
        self.sections.setdefault(key, Counter()).update(example.sections)
        kept = self.examples.setdefault(key, [])
        if len(kept) < _EXAMPLES:
            kept.append(example)

    def _count_agents(self, more: dict[str | None, int]) -> None:
        self.agents.update(more)
        if len(self.agents) > 2 * _AGENTS:  # names in endless spellings: the rare ones are let go
            self.agents = Counter(dict(self.agents.most_common(_AGENTS)))

    def changes(self) -> tuple[Change, ...]:
        """Every change, the most runs first."""
        ordered = sorted(self.runs.items(), key=lambda each: (-each[1], str(each[0])))
        return tuple(
            Change(*key, runs, tuple(self.sections[key].most_common()), tuple(self.examples[key]))
            for key, runs in ordered
        )


# One batch ------------------------------------------------------------------------------------------------------------


class Judge:
    """Judges runs by both policies of a task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.touch = Touch(task.old, task.new)

    def batch(self, batch: Batch) -> Tally:
        """What becomes of the runs of a batch."""
        read = (codec.read_line(line) for line in batch.lines)
        runs = fold.group(record for record in read if not isinstance(record, codec.LineError))
        resumers = engine.resumers_by_run(runs.values())
        tally = Tally()
        for run_id in batch.run_ids or runs:
            run = runs.get(run_id)
            if run is not None and (batch.since is None or _opened(run) >= batch.since):
                self.run(run, resumers.get(run_id, ()), self._task.now, tally)
        return tally

    def run(self, run: Run, resumers: Sequence[Run], now: datetime, tally: Tally, **named: str | int) -> None:
        """What becomes of one run. `named`: what an example calls it, and another attempt than the latest."""
        tally.looked += 1
        attempt = int(named.get("attempt") or run.latest)
        try:
            facts = fold.facts_of(run, attempt, self._task.old, now, resumers)
            self._compare(facts, run, resumers, tally, str(named.get("name") or run.run_id))
        except Exception:  # noqa: BLE001 - whatever the classifier fails on costs that run only, and is counted
            tally.unjudged += 1

    def _compare(self, facts: Facts, run: Run, resumers: Sequence[Run], tally: Tally, name: str) -> None:
        sketch = sketch_of(facts, self.touch.longest_settle)
        if (number := self.touch.entry(sketch.subject)) is not None:
            tally.matched.add(number)
        sections = self.touch.sections(sketch)
        changed = False
        if sections:
            tally.touched += 1
            before = engine.judge(facts)
            after = engine.judge(fold.facts_of(run, facts.attempt, self._task.new, facts.now, resumers))
            changed = note_change(before, after, Example(name, facts.subject.agent, sections, (), ()), tally)
        if not changed:
            tally.keeps.update(self.touch.labels(sketch))


def note_change(before: Verdict, after: Verdict, example: Example, tally: Tally) -> bool:
    """Counts what is different between two verdicts on a run. Gives whether the verdict or its reason is."""
    one, other = Said(before.verdict, before.reason), Said(after.verdict, after.reason)
    if one == other:
        tally.keeps.update(name for name in _COMPARED if getattr(before, name) != getattr(after, name))
        return False
    old, new = _evidence(before), _evidence(after)
    gone = tuple(name for name in old if name not in new)
    came = tuple(name for name in new if name not in old)
    kept = tuple(name for name in new if name in old)
    tally.note((one, other), example._replace(gone=gone, came=came, kept=kept))
    return True


def _evidence(verdict: Verdict) -> tuple[str, ...]:
    """The evidence; a policy that decided is called so, because the two have different digests."""
    return tuple("policy" if name.startswith("policy:") else name for name in verdict.evidence)


def _opened(run: Run) -> datetime:
    return min(record.at for record in run.records())


# Many batches ---------------------------------------------------------------------------------------------------------

Progress = Callable[[int], None]  # runs done
_END_S = 3.0  # what a pool whose worker died takes to end at most, where it can


def judge_batches(
    task: Task, batches: Iterable[Batch], processes: int = PROCESSES, progress: Progress | None = None
) -> Tally:
    """What becomes of the runs of all batches; here where they are few, else in so many processes.

    Raises:
        StoreError: A worker died.
    """
    found, total = iter(batches), Tally()
    first = list(islice(found, _ALONE + 1))
    several = processes > 1 and len(first) > _ALONE
    work = _in_workers if several else _here
    for tally in work(task, chain(first, found), processes):
        total.add(tally)
        if progress:
            progress(total.looked)
    return total


def _here(task: Task, batches: Iterable[Batch], _processes: int) -> Iterator[Tally]:
    yield from map(Judge(task).batch, batches)


def _in_workers(task: Task, batches: Iterable[Batch], processes: int) -> Iterator[Tally]:
    context, others = multiprocessing.get_context("spawn"), multiprocessing.active_children()
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(task,))
    waiting: deque[Future[Tally]] = deque()
    try:
        for batch in batches:
            with _deaf_to_interrupts():
                waiting.append(pool.submit(_work, batch))
            if len(waiting) > processes * (1 + _AHEAD):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        _let_go(pool)
        message = "A process that was judging runs died; the machine may be short of memory. Run it again."
        raise StoreError(message) from None
    except BaseException:  # nobody wants what they still would do
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _let_go(pool: ProcessPoolExecutor) -> None:
    """Ends the writing of a batch that no worker will read; Python 3.11.2 would wait for it for ever (gh-94777).

    Newer ones end it themselves, so they get the time to.
    """
    manager = getattr(pool, "_executor_manager_thread", None)
    if manager is None:
        return
    manager.join(_END_S)
    reader = getattr(getattr(pool, "_call_queue", None), "_reader", None)
    if manager.is_alive() and reader is not None:
        reader.close()


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A worker that is started in here never sees Ctrl-C, not even while it starts; this process gets it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_judges: list[Judge] = []  # this worker's own


def _begin(task: Task) -> None:
    """Makes a worker ready. Ctrl-C is for the parent, and without a parent there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _judges[:] = [Judge(task)]


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(batch: Batch) -> Tally:
    return _judges[0].batch(batch)
