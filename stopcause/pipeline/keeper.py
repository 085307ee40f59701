"""The keeper of a store: takes records in, judges the runs that they concern, and keeps both, durably and once.

What is good of a batch is appended to the journal (`<store>.journal/`): that is the acknowledgement. Then records and
verdict revisions are committed to the store together with the journal's position, so that a crash in between is made
up for at the next opening, and a store that is gone is made again from its journal. One thread uses a keeper.
Not here: files (`ingest`), and the clock: `now` is always a parameter, an aware UTC time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self

from stopcause.classifier import engine, fold
from stopcause.classifier.fold import Facts, Run
from stopcause.classifier.policy import Policy
from stopcause.classifier.verdict import CLASSIFIER_VERSION, Verdict, VerdictName
from stopcause.errors import NotFoundError, StoreError, StoreFullError
from stopcause.pipeline import keeper_runs, retention
from stopcause.pipeline.keeper_runs import Unjudged
from stopcause.receipts import codec, journal
from stopcause.receipts.codec import Kept, LineError
from stopcause.receipts.journal import Journal, Position
from stopcause.store.duckdb_store import MEMORY_LIMIT, DuckStore, StaleHour
from stopcause.store.rows import VerdictRow

_GROUP_BYTES = 16 * 1024 * 1024  # what one write of the journal takes at most, but for one longer line
_REPLAY_BYTES = 32 * 1024 * 1024
_BATCH_RUNS = 20_000  # runs that are judged at once where there are many
_WAITS = (VerdictName.WAITING, VerdictName.WAITING_UNROUTED)
_ANSWERED = "answered"


class Accepted(NamedTuple):
    """What became of a batch. `run_ids`: the runs that it had something new about."""

    accepted: int
    repeated: int
    errors: list[LineError]
    run_ids: tuple[str, ...]


class Detail(NamedTuple):
    """All about one run, for `explain`. `facts` and `verdict` are of the attempt that was asked for, judged anew."""

    run: Run
    facts: Facts
    verdict: Verdict
    history: list[VerdictRow]
    resumers: list[Run]


class Keeper:
    """A store, its journal (None in memory) and the policy that runs are judged by. Open one with `Keeper.open`."""

    def __init__(self, store: DuckStore, spool: Journal | None, policy: Policy) -> None:
        self.store = store
        self.policy = policy
        self.unread = 0  # journal lines of a newer version or kind of writer: kept there, not in the store
        self.unjudged: list[Unjudged] = []  # runs that the classifier failed on: kept, with the verdict that they had
        self._journal = spool
        self._applied: Position | None = None

    @classmethod
    def open(cls, path: Path | None, policy: Policy, now: datetime, *, memory_limit: str = MEMORY_LIMIT) -> Self:
        """Opens a store and its journal, and applies what the journal has that the store has not.

        Args:
            path: The database file, made where there is none; None keeps all in memory, without a journal.
            policy: What runs are judged by from here on. Rows that another judged stay (see `stale_policy`).
            now: The time at which what is applied is judged.
            memory_limit: What the engine may use.

        Raises:
            StoreInUseError: Another process owns it.
            StoreVersionError: A newer stopcause wrote it.
            StoreFullError: The disk has no room.
            StoreError: It cannot be used; the message says what to do.
        """
        with contextlib.ExitStack() as undo:
            store = undo.enter_context(DuckStore.open(path, memory_limit=memory_limit))
            spool = undo.enter_context(Journal(journal_folder(path))) if path else None
            keeper = cls(store, spool, policy)
            keeper._begin(now)
            undo.pop_all()
        return keeper

    def close(self) -> None:
        """Lets go of the journal, then of the store. A second call does nothing."""
        try:
            if self._journal:
                self._journal.close()
        finally:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Taking in --------------------------------------------------------------------------------------------------------

    def accept(self, lines: Iterable[bytes], now: datetime) -> Accepted:
        """Takes in a batch of lines of the wire format; the return is the acknowledgement. Blank lines are skipped.

        A bad line costs only itself: `errors` names it, counted from 1. Lines that were taken before change nothing.

        Raises:
            StoreFullError: The disk took no more. What of it was acknowledged is applied later; send all of it again.
            StoreError: The journal or the store failed; the same holds.
        """
        batch, errors = _sorted_out(lines)
        return self.add(batch, now)._replace(errors=errors)

    def add(self, batch: Sequence[Kept], now: datetime) -> Accepted:
        """The same for lines that are read already."""
        self._catch_up(now)
        self._finish_forgetting()
        fresh = self._fresh(batch)
        if not fresh:
            return Accepted(0, len(batch), [], ())
        position = self._append([kept.line for kept in fresh])
        touched = self._apply(fresh, position, now)
        return Accepted(len(fresh), len(batch) - len(fresh), [], touched)

    def _fresh(self, batch: Sequence[Kept]) -> Sequence[Kept]:
        """Those that are neither in the store nor earlier in the batch."""
        unique = _without_repeats(batch)
        if self.store.is_empty():
            return unique
        known = self.store.known([(record.record_id or "", record.at) for record, _ in unique])
        return [kept for i, kept in enumerate(unique) if i not in known] if known else unique

    def _append(self, lines: Sequence[bytes]) -> Position | None:
        """Makes the lines durable; from here on they are acknowledged."""
        if self._journal is None:
            return None
        for group in _groups(lines):
            self._journal.append(group)
        return self._journal.end

    def _apply(self, fresh: Sequence[Kept], position: Position | None, now: datetime) -> tuple[str, ...]:
        """Judges what new records concern, and commits it all. Gives the runs that they are of."""
        loaded = keeper_runs.load_for(self.store, [kept.record for kept in fresh])
        rows = keeper_runs.record_rows(fresh, loaded.opened_at)
        self.store.commit(rows, self._revisions(loaded, now), position)
        self._applied = position
        return tuple(dict.fromkeys(row.run_id for row in rows if row.run_id))

    def _revisions(self, loaded: keeper_runs.Loaded, now: datetime) -> list[VerdictRow]:
        """What is to be appended so that the verdicts on the concerned runs are right at `now`."""
        judged, unjudged = keeper_runs.judged_rows(loaded, self.policy, now)
        failed = {each.run_id for each in unjudged}
        stored = [run_id for run_id in loaded.concerned if run_id in loaded.stored and run_id not in failed]
        self._note_unjudged(loaded.concerned, unjudged)
        return keeper_runs.changes(judged, self.store.current(stored))

    def _note_unjudged(self, concerned: Collection[str], unjudged: Sequence[Unjudged]) -> None:
        """Remembers which runs the classifier failed on the last time that it saw them."""
        if self.unjudged:
            again = set(concerned)
            self.unjudged = [each for each in self.unjudged if each.run_id not in again]
        self.unjudged += unjudged

    # Making up for a crash --------------------------------------------------------------------------------------------

    def _begin(self, now: datetime) -> None:
        """Takes up where the last owner ended, in whatever way it did."""
        policy = self.policy
        self.store.note_policy((policy.digest, policy.id, policy.version, policy.text), now)
        stored = self.store.position()
        self._applied = Position(*stored) if stored else None
        if self._journal and self._applied and self._applied > self._journal.end:
            raise StoreError(
                f"{self._journal.folder} lost its end, or is the journal of another store. Bring it back from a copy, "
                "or move it and the store away and ingest again."
            )
        self._catch_up(now)
        with contextlib.suppress(StoreFullError):  # what is there can be read; `add` tries again, and says so
            self._finish_forgetting()

    def _finish_forgetting(self) -> None:
        """Ends a `forget` that was broken off, before anything new comes in."""
        if self._journal and retention.finish(self.store, self._journal):
            self._applied = self._journal.end

    def _catch_up(self, now: datetime) -> None:
        """Applies what is acknowledged and not yet in the store: after a crash, or after a failure on the way."""
        while self._journal and self._applied != self._journal.end:
            lines = journal.read(self._journal.folder, self._applied, stop=self._journal.end, max_bytes=_REPLAY_BYTES)
            batch = list(lines)
            if not batch:
                self._applied = self._journal.end
                return
            self._replay([line for line, _ in batch], batch[-1][1], now)

    def _replay(self, lines: Sequence[bytes], position: Position, now: datetime) -> None:
        batch, errors = _sorted_out(lines)
        self.unread += len(errors)
        self._apply(self._fresh(batch), position, now)

    # Judging again ----------------------------------------------------------------------------------------------------

    def settle(self, now: datetime) -> int:
        """Judges again what can have changed by `now` without a new record. Writes verdicts, never records.

        Returns:
            How many verdicts changed.

        Raises:
            StoreError: The store failed. What was judged before that stays; settle again.
        """
        self._catch_up(now)
        return sum(self._judge_again(run_ids, now) for run_ids in _batches(self.store.due(now)))

    def stale_policy(self) -> int:
        """How many current verdicts another policy or classifier gave."""
        return sum(each.rows for each in self._stale())

    def rejudge(self, now: datetime, progress: Callable[[int, int], None] | None = None) -> int:
        """Judges by this keeper's policy what another gave the verdict on. It can be broken off and called again.

        Args:
            now: The time at which runs are judged.
            progress: Called after each batch with how many verdicts are done, and of how many.

        Returns:
            How many verdicts are new.
        """
        self._catch_up(now)
        hours = self._stale()
        total, done = sum(each.rows for each in hours), 0
        for first, last in _spans(hours):
            stale = self.store.stale_runs(self.policy.digest, CLASSIFIER_VERSION, (first, last))
            for run_ids in _batches(stale):
                done += self._judge_again(run_ids, now)
                if progress:
                    progress(done, total)
        return done

    def _stale(self) -> list[StaleHour]:
        return self.store.stale(self.policy.digest, CLASSIFIER_VERSION)

    def _judge_again(self, run_ids: Collection[str], now: datetime) -> int:
        rows = self._revisions(keeper_runs.load_runs(self.store, run_ids), now)
        if rows:
            self.store.commit((), rows)
        return sum(row.sign > 0 for row in rows)

    # Telling ----------------------------------------------------------------------------------------------------------

    def detail(self, name: str, now: datetime, attempt: int | None = None) -> Detail:
        """All about the run that is called `name`, or that alone begins or ends with it.

        Args:
            name: A run id, or the head or tail of one.
            now: The time at which it is judged; the store is not changed.
            attempt: Which one; None is the latest.

        Raises:
            NotFoundError: No such run or attempt, or several runs; says what there is.
        """
        run_id = self.store.find_run(name)
        loaded = keeper_runs.load_runs(self.store, [run_id])
        run, resumers = loaded.runs[run_id], loaded.resumers.get(run_id, [])
        number = attempt or run.latest
        if number not in run.attempts:
            has = ", ".join(map(str, run.attempts))
            raise NotFoundError(f"Run {run_id} has no attempt {number}; it has {has}.")
        facts = fold.facts_of(run, number, self.policy, now, resumers)
        return Detail(run, facts, engine.judge(facts), self.store.history(run_id), resumers)

    def waits(self, now: datetime) -> list[tuple[Facts, Verdict]]:
        """The runs whose latest attempt waits for somebody at `now`, the newest first. Answered ones do not."""
        waiting = [row for row in self.store.rows(verdicts=_WAITS, limit=None) if row.reason != _ANSWERED]
        loaded = keeper_runs.load_runs(self.store, [row.run_id for row in waiting])
        judged: list[tuple[Facts, Verdict]] = []
        unjudged: list[Unjudged] = []
        for row in waiting:
            run, resumers = loaded.runs[row.run_id], loaded.resumers.get(row.run_id, ())
            found = keeper_runs.judge(run, [row.attempt], self.policy, now, resumers)
            if isinstance(found, Unjudged):
                unjudged.append(found)
            else:
                judged += found
        self._note_unjudged(loaded.concerned, unjudged)
        return [each for each in judged if each[1].verdict in _WAITS and each[1].reason != _ANSWERED]


@contextlib.contextmanager
def owned(path: Path) -> Iterator[tuple[DuckStore, Journal]]:
    """A store and its journal, for as long as nobody else may write them; all that the journal has is in the store.

    Raises:
        StoreInUseError: Another process owns it.
        StoreError: The journal has more than the store.
    """
    with DuckStore.open(path) as store, Journal(journal_folder(path)) as spool:
        stored = store.position()
        start = Position(*stored) if stored else None
        if next(journal.read(spool.folder, start, stop=spool.end, max_bytes=1), None) is not None:
            raise StoreError(f"{spool.folder} has records that are not in the store yet. Run it again.")
        yield store, spool


def journal_folder(store: Path) -> Path:
    """Where the journal of a store is: beside it."""
    return store.with_name(store.name + ".journal")


def _sorted_out(lines: Iterable[bytes]) -> tuple[list[Kept], list[LineError]]:
    """What is a record, and what is none."""
    batch: list[Kept] = []
    errors: list[LineError] = []
    for read in codec.keep_lines(lines):
        if isinstance(read, LineError):
            errors.append(read)
        else:
            batch.append(read)
    return batch, errors


def _without_repeats(batch: Sequence[Kept]) -> Sequence[Kept]:
    """The first of each (`record_id`, `at`), in order."""
    if len({record.record_id for record, _ in batch}) == len(batch):
        return batch
    first: dict[tuple[str | None, datetime], Kept] = {}
    for kept in batch:
        first.setdefault((kept.record.record_id, kept.record.at), kept)
    return list(first.values())


def _groups(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Lines in groups of at most `_GROUP_BYTES`, but for one longer line."""
    first, size = 0, 0
    for i, line in enumerate(lines):
        if size and size + len(line) > _GROUP_BYTES:
            yield lines[first:i]
            first, size = i, 0
        size += len(line) + 1
    yield lines[first:]


def _batches(run_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(run_ids), _BATCH_RUNS):
        yield run_ids[first : first + _BATCH_RUNS]


def _spans(hours: Sequence[StaleHour]) -> Iterator[tuple[int, int]]:
    """Stretches of hours with about `_BATCH_RUNS` stale rows each: (first, last)."""
    first, rows = 0, 0
    for i, each in enumerate(hours):
        rows += each.rows
        if rows >= _BATCH_RUNS or i == len(hours) - 1:
            yield hours[first].hour, each.hour
            first, rows = i + 1, 0
