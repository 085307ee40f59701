"""What another policy would say of the runs that a store holds: only those that a changed section can touch are judged.

A store is gone through in stretches of time. For each, one query counts runs by what decides whether a change can
touch them (`policy_touch` says which section touches what); then only the records of those are read, and their runs are
judged by both policies (`policy_workers`), as of one time: what differs is the policy and nothing else.
Not here: files, cases and archives (`policy_sources`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.classifier.policy import Policy, Subject
from stopcause.pipeline import keeper_runs
from stopcause.pipeline.policy_touch import Sketch, Touch, changed_sections
from stopcause.pipeline.policy_workers import BATCH_RUNS, PROCESSES, Batch, Tally, Task, judge_batches
from stopcause.render.policy_diff import Diff, PolicyName
from stopcause.store.columns import naive
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.queries import text

_STRETCH_RUNS = 20_000  # runs whose records are in memory at once
_AGENTS = 50  # that are named
_HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - times of the store are UTC and do not say so
_LATEST = datetime(9999, 1, 1)  # noqa: DTZ001

Progress = Callable[[int], None]  # runs looked at so far


class Question(NamedTuple):
    """Two policies, and the time at which runs are judged. `in_force`: what judged the store's rows; None is `old`.

    `since` is the oldest opening of a run that is looked at, `span` how that was asked for.
    """

    old: Policy
    new: Policy
    now: datetime
    in_force: Policy | None = None
    since: datetime | None = None
    span: str = ""
    processes: int = PROCESSES


def policy_name(policy: Policy) -> PolicyName:
    """A policy as a reader knows it."""
    return PolicyName(policy.id, policy.version, policy.digest)


def diff_store(
    store_path: Path,
    new: Policy,
    old: Policy,
    now: datetime,
    *,
    processes: int = PROCESSES,
    progress: Progress | None = None,
) -> Diff:
    """What `new` would say otherwise than `old` of every run of a store that `old` has judged.

    Args:
        store_path: The store; nobody else may have it open, and nothing of it is changed.
        new: The policy to try.
        old: The policy that the store's rows are from.
        now: The time at which runs are judged.
        processes: Worker processes; 1 judges in this one.
        progress: Called with how many runs are done.

    Raises:
        StoreError: The store cannot be used, or a worker died.
    """
    with DuckStore.open(store_path) as store:
        return diff_of(store, Question(old, new, now, processes=processes), progress)


def diff_of(store: DuckStore, question: Question, progress: Progress | None = None) -> Diff:
    """The same for an open store, and for part of its runs."""
    survey = _Survey(store, question, progress)
    task = Task(question.old, question.new, question.now)
    if survey.differs:
        survey.tally.add(judge_batches(task, survey.batches(), question.processes))
    else:
        survey.count_only()
    return as_diff(survey.tally, question)


def as_diff(tally: Tally, question: Question) -> Diff:
    """Counts as the value that screens are made of."""
    entries = len(question.new.agents)
    return Diff(
        old=policy_name(question.old),
        new=policy_name(question.new),
        now=question.now,
        span=question.span,
        looked=tally.looked,
        touched=tally.touched,
        changed=tally.changed,
        changes=tally.changes(),
        agents=tuple(tally.agents.most_common(_AGENTS)),
        agents_in_all=len(tally.agents),
        keeps=tuple(tally.keeps.most_common()),
        sections=changed_sections(question.old, question.new),
        unmatched=tuple(number for number in range(entries) if number not in tally.matched),
        entries=entries,
        unjudged=tally.unjudged,
    )


class Stretch(NamedTuple):
    """Runs that opened in these hours (counted from the epoch), and about how many."""

    first: int
    last: int
    runs: int

    def slices(self, since: datetime, runs: int) -> Iterator[dict[str, Any]]:
        """Times of opening, so that each part has about `_STRETCH_RUNS` of so many runs."""
        begin = max(EPOCH + self.first * _HOUR, since)
        end = EPOCH + (self.last + 1) * _HOUR
        parts = -(-runs // _STRETCH_RUNS)
        for part in range(parts):
            yield {
                "first": self.first,
                "last": self.last,
                "since": begin + (end - begin) * part / parts,
                "until": begin + (end - begin) * (part + 1) / parts,
            }


def stretches(store: DuckStore, since: datetime) -> Iterator[Stretch]:
    """All hours in which runs opened, some `_STRETCH_RUNS` runs at once; `since` is UTC and does not say so."""
    asked = {"first": (since - EPOCH) // _HOUR, "since": since}
    hours = store.ask(text("policy_hours"), asked).rows
    begin, runs = None, 0
    for number, (hour, count) in enumerate(hours):
        begin, runs = hour if begin is None else begin, runs + count
        if runs >= _STRETCH_RUNS or number == len(hours) - 1:
            yield Stretch(begin, hour, runs)
            begin, runs = None, 0


class _Survey:
    """One way through a store: what is not touched is only counted, the rest comes out in batches."""

    def __init__(self, store: DuckStore, question: Question, progress: Progress | None) -> None:
        self.tally = Tally()
        self._store, self._progress = store, progress
        self._touch = Touch(question.old, question.new, question.in_force)
        self.differs = bool(changed_sections(question.old, question.new))
        self._since = _naive(question.since)
        self._fresh = _naive(question.now - self._touch.longest_settle)
        self._has_links = bool(store.ask("SELECT 1 FROM records WHERE resumes_run_id IS NOT NULL LIMIT 1").rows)
        self._done = 0

    def count_only(self) -> None:
        """Looks at every run, where no change can touch any."""
        for stretch in stretches(self._store, self._since):
            self._sketches(stretch)

    def batches(self) -> Iterator[Batch]:
        """The runs to judge, with their lines."""
        for stretch in stretches(self._store, self._since):
            keys, runs = self._sketches(stretch)
            for part in stretch.slices(self._since, runs) if keys else ():
                yield from self._read(part, keys)
            self._done += stretch.runs
            if self._progress:
                self._progress(self._done)

    def _sketches(self, stretch: Stretch) -> tuple[list[int], int]:
        """Counts what a change cannot touch; gives the keys of the other sketches, and how many runs have them."""
        where = {"first": stretch.first, "last": stretch.last, "since": self._since, "until": _LATEST}
        keys: list[int] = []
        selected = 0
        for *said, key, runs in self._store.ask(_over("policy_sketches"), {**where, "fresh": self._fresh}).rows:
            sketch = _sketch(said)
            if (number := self._touch.entry(sketch.subject)) is not None:
                self.tally.matched.add(number)
            if self._touch.sections(sketch):
                keys.append(key)
                selected += runs
            else:
                self.tally.looked += runs
                self.tally.keeps.update(dict.fromkeys(self._touch.labels(sketch), runs))
        return keys, selected

    def _read(self, part: dict[str, Any], keys: list[int]) -> Iterator[Batch]:
        asked = {**part, "fresh": self._fresh, "keys": keys}
        lines: dict[str, list[bytes]] = {}
        for run_id, line in self._store.ask(_over("policy_lines"), asked).rows:
            lines.setdefault(run_id, []).append(line.encode())
        resumers = keeper_runs.resumer_lines(self._store, lines) if self._has_links else {}
        yield from in_batches(lines, resumers)


def in_batches(lines: dict[str, list[bytes]], resumers: dict[str, list[bytes]]) -> Iterator[Batch]:
    """Runs with their lines in batches; `resumers` are the lines of the runs that take a run up, where any do."""
    run_ids = list(lines)
    for first in range(0, len(run_ids), BATCH_RUNS):
        chosen = run_ids[first : first + BATCH_RUNS]
        own: Iterable[bytes] = (line for run_id in chosen for line in lines[run_id])
        others: Iterable[bytes] = (line for run_id in chosen for line in resumers.get(run_id, ()))
        yield Batch(chosen, [*own, *others])


def _over(name: str) -> str:
    """A query over the sketches of runs."""
    return "\n".join(("WITH sketch AS (", text("policy_sketch"), ")", text(name)))


def _sketch(said: list[Any]) -> Sketch:
    """A row of `policy_sketches` without its key and number."""
    *who, contract, cause, waits, recent = said
    asked = tuple((wait["kind"], wait["tool"]) for wait in waits or ())
    return Sketch(Subject(*who), contract, cause, asked, bool(recent))


def _naive(moment: datetime | None) -> datetime:
    """A time as the store has it; None is before all."""
    return EPOCH if moment is None else naive(moment)
