"""The store on DuckDB: one owner process, append-only rows, each change one transaction with the journal's position.

What must stay true here (learned by running): every result is fetched whole, because an open one blocks its cursor;
one cursor per thread; Arrow batches only; no primary key, index or UPDATE; outside access off, configuration locked.
One thread writes. Not here: the journal, and what a line or a verdict means.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self

import duckdb
import pyarrow as pa

from stopcause.errors import NotFoundError, StoreError
from stopcause.store import columns, faults, way_back
from stopcause.store.engine import MEMORY_LIMIT
from stopcause.store.lock import StoreLock
from stopcause.store.queries import text
from stopcause.store.rows import Counts, RecordRow, StoredLine, VerdictRow

__all__ = ["MEMORY_LIMIT", "Answer", "DuckStore", "StaleHour", "StoredPosition"]

_FEW_RUNS = 1000  # up to here it pays to find rows by their keys before their lines are read
_DAY_ONE = datetime(1, 1, 1, tzinfo=UTC)
_CANDIDATES = 5
_RECENT = timedelta(hours=2)


class StoredPosition(NamedTuple):
    """How far into the journal the rows of this store reach: what `receipts.journal.Position` says."""

    segment: int
    offset: int


class StaleHour(NamedTuple):
    """An hour (counted from the epoch) and how many current rows of it were judged by another policy or classifier."""

    hour: int
    rows: int


class Answer(NamedTuple):
    """What a query gives: the names of its columns, and its rows."""

    names: list[str]
    rows: list[tuple[Any, ...]]


class DuckStore:
    """An open store. Close it, or use it in a `with`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path | None, lock: StoreLock | None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self._local = threading.local()
        self._cursors: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._closed = False

    @classmethod
    def open(cls, path: Path | None, *, memory_limit: str = MEMORY_LIMIT, threads: int | None = None) -> Self:
        """Opens a store, made where there is none.

        Args:
            path: The database file; its folder is made. None is a store in memory, for demo and replay.
            memory_limit: What the engine may use: `512MB`, or a share of the machine as `25%`.
            threads: Of the engine; None is one for each processor that this process may use.

        Raises:
            StoreInUseError: Another process owns it.
            StoreVersionError: A newer stopcause wrote it.
            StoreFullError: The disk has no room for it, or for the copy that is kept when its shape changes.
            StoreError: It cannot be opened; the message says what to do.
        """
        with contextlib.ExitStack() as undo:
            lock = None
            if path is not None:
                _make_folder(path.parent)
                lock = StoreLock(path)
                undo.callback(lock.release)
            with faults.translated(path):
                connection = way_back.opened(path, memory_limit, threads)
            undo.pop_all()
        return cls(connection, path, lock)

    def close(self) -> None:
        """Closes every thread's cursor, the engine, then the lock. A second call does nothing."""
        try:
            self.close_engine()
        finally:
            if self._lock:
                self._lock.release()

    def close_engine(self) -> None:
        """Puts the file to rest and keeps the lock: for a backup or a snapshot. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        for cursor in list(self._cursors):
            cursor.close()
        with faults.translated(self.path):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Writing ----------------------------------------------------------------------------------------------------------

    def known(self, keys: Sequence[tuple[str, datetime]]) -> set[int]:
        """Which of these keys (`record_id`, `event_at`) are stored already, by their places in `keys`."""
        if not keys:
            return set()
        return {i for (i,) in self._ask(text("known"), wanted=columns.keys_table(keys))}

    def commit(
        self, records: Sequence[RecordRow], verdicts: Sequence[VerdictRow], position: tuple[int, int] | None = None
    ) -> None:
        """Appends rows and moves the journal's position, all in one transaction.

        Args:
            records: None of them may be `known`: who judged a batch has asked already, and one thread writes.
            verdicts: New revisions, and the superseded ones again with sign -1.
            position: Up to where the journal is applied with this (segment, offset); None leaves it.

        Raises:
            StoreFullError: The disk took no more; nothing of this is in the store.
            StoreError: The engine failed; nothing of this is in the store.
        """
        with self._transaction() as cursor:
            if records:
                _insert(cursor, "insert_records", columns.arrow_table(records, columns.RECORDS))
            if verdicts:
                _insert(cursor, "insert_verdicts", columns.arrow_table(verdicts, columns.VERDICTS))
            if position is not None:
                cursor.execute("DELETE FROM journal_position").fetchall()
                cursor.execute("INSERT INTO journal_position VALUES ($1, $2)", list(position)).fetchall()

    def note_policy(self, row: tuple[str, str, str, str], now: datetime) -> None:
        """Keeps a policy (digest, id, version, whole text) the first time it is used."""
        if self._ask("SELECT 1 FROM policies WHERE digest = $digest", {"digest": row[0]}):
            return
        with self._transaction() as cursor:
            cursor.execute("INSERT INTO policies VALUES ($1, $2, $3, $4, $5)", [*row, columns.naive(now)]).fetchall()

    # Reading, for judging ---------------------------------------------------------------------------------------------

    def position(self) -> StoredPosition | None:
        """Up to where the journal is applied; None where nothing was."""
        rows = self._ask("SELECT segment, byte_offset FROM journal_position")
        return StoredPosition(*rows[0]) if rows else None

    def is_empty(self) -> bool:
        """Whether there is no record at all."""
        return not self._ask("SELECT 1 FROM records LIMIT 1")

    def records_of(self, run_ids: Collection[str]) -> list[StoredLine]:
        """Every record that names one of these runs, in no order."""
        if not run_ids:
            return []
        query = text("records_of_few" if len(run_ids) <= _FEW_RUNS else "records_of_many")
        rows = self._ask(query, wanted=columns.run_ids_table(run_ids))
        return [StoredLine(run_id, opened_at.replace(tzinfo=UTC), line.encode()) for run_id, opened_at, line in rows]

    def resumers_of(self, run_ids: Collection[str]) -> list[tuple[str, str]]:
        """Pairs (run, a run that says that it takes it up) for these runs."""
        return self._ask(text("resumers_of"), wanted=columns.run_ids_table(run_ids)) if run_ids else []

    def current(self, run_ids: Collection[str]) -> dict[tuple[str, int], VerdictRow]:
        """The newest revision by (run, attempt) of these runs; with sign -1 where the attempt is no longer judged."""
        if not run_ids:
            return {}
        rows = self._verdicts(text("current_of"), wanted=columns.run_ids_table(run_ids))
        return {(row.run_id, row.attempt): row for row in rows}

    def due(self, now: datetime) -> list[str]:
        """Runs with a verdict that may have changed by `now` without a new record."""
        return [run_id for (run_id,) in self._ask(text("due"), {"now": columns.naive(now)})]

    def stale(self, digest: str, classifier: str) -> list[StaleHour]:
        """By hour, how many current rows another policy or classifier judged; the oldest hour first."""
        asked = {"digest": digest, "classifier": classifier}
        return [StaleHour(*row) for row in self._ask(text("stale_hours"), asked)]

    def stale_runs(self, digest: str, classifier: str, hours: tuple[int, int]) -> list[str]:
        """The runs behind the rows that `stale` counts, opened from the first to the last of these hours."""
        asked = {"digest": digest, "classifier": classifier, "first": hours[0], "last": hours[1]}
        return [run_id for (run_id,) in self._ask(text("stale_runs"), asked)]

    # Reading, for people ----------------------------------------------------------------------------------------------

    def find_run(self, name: str) -> str:
        """The run that is called `name`, else the only one that begins or ends with it.

        Raises:
            NotFoundError: None is, or several are; then the message lists up to five.
        """
        found = self._ask(text("find_run"), {"name": name}) if name else []
        if not found:
            raise NotFoundError(f"No run is called {name!r}, or begins or ends with it. `runs --all` lists them.")
        if len(found) == 1 or found[0][1]:
            return str(found[0][0])
        listed = ", ".join(run_id for run_id, _ in found[:_CANDIDATES])
        more = " and more" if len(found) > _CANDIDATES else ""
        raise NotFoundError(f"{name!r} is not one run: {listed}{more}. Give more of its name.")

    def history(self, run_id: str) -> list[VerdictRow]:
        """Every revision of a run, by attempt, the oldest first; `sign` is 1 in all of them."""
        return self._verdicts(text("history"), {"run_id": run_id})

    def rows(
        self,
        *,
        verdicts: Sequence[str | None] = (),
        agent: str | None = None,
        environment: str | None = None,
        since: datetime | None = None,
        limit: int | None = 100,
    ) -> list[VerdictRow]:
        """The current row of the latest attempt of each run, the newest first.

        Args:
            verdicts: Only these; None stands for a run that goes on. Empty is all.
            agent: Only this agent's.
            environment: Only of this environment.
            since: Only runs that opened at or after this time.
            limit: At most so many; None is all.
        """
        first = since or _DAY_ONE
        asked = {
            "verdicts": [each or "" for each in verdicts],
            "agent": agent,
            "environment": environment,
            "since": columns.naive(first),
            "hour": int(first.timestamp() // 3600),
            "most": limit,
        }
        return self._verdicts(text("current_rows"), asked)

    def counts(self) -> Counts:
        """How much there is, by kind of record and by verdict."""
        kinds = dict(self._ask("SELECT kind, count(*) FROM records GROUP BY kind ORDER BY kind"))
        verdicts = {name or None: count for name, count in self._ask(text("verdict_counts"))}
        attempts = self._ask("SELECT coalesce(sum(sign), 0)::BIGINT FROM verdicts")[0][0]
        return Counts(sum(kinds.values()), sum(verdicts.values()), attempts, kinds, verdicts)

    def newest_at(self, until: datetime) -> datetime | None:
        """When the newest thing up to `until` happened that a run told of itself; what people say is later than that.

        In a store in use it is a moment ago, and the engine passes over what is older.
        """
        for since in (until - _RECENT, _DAY_ONE):
            asked = {"since": columns.naive(since), "until": columns.naive(until)}
            if newest := self._ask(text("newest_at"), asked)[0][0]:
                return columns.utc(newest)
        return None

    def ask(self, query: str, parameters: dict[str, Any] | None = None) -> Answer:
        """All rows of a query of ours: a text of `queries` or `reports`, its parameters bound. Times are naive UTC.

        Raises:
            StoreError: The engine failed.
        """
        return Answer(*self._run(query, parameters, None))

    @contextlib.contextmanager
    def batches(
        self, query: str, parameters: dict[str, Any] | None = None, *, rows: int
    ) -> Iterator[pa.RecordBatchReader]:
        """A query's rows as Arrow batches of at most so many rows, one at a time in memory, in the order of the table.

        Raises:
            StoreError: The engine failed.
        """
        with faults.translated(self.path):
            cursor = self._connection.cursor()  # one of its own: an open result blocks its cursor
            self._cursors.add(cursor)
            try:
                yield cursor.sql(query, params=parameters).to_arrow_reader(rows)
            finally:
                cursor.close()

    # Forgetting -------------------------------------------------------------------------------------------------------

    def forgotten_of(self, run_ids: Sequence[str | None]) -> set[int]:
        """Which of these runs the temporary table `forgotten` of this thread names, by their places in `run_ids`."""
        return {i for (i,) in self._ask(text("forget_matching"), wanted=columns.numbered_runs_table(run_ids))}

    def remove_runs(self, before: datetime) -> None:
        """Removes all rows of the runs that the temporary table `forgotten` of this thread names, in one transaction.

        Args:
            before: The day before which they opened; it is kept that this was done.

        Raises:
            StoreFullError: The disk took no more. Either nothing is removed, or only the room is not free yet.
            StoreError: The engine failed; the same holds.
        """
        with self._transaction() as cursor:
            cursor.execute(text("note_forgetting"), {"before": columns.naive(before)}).fetchall()
            for table in ("records", "verdicts"):
                cursor.execute(f"DELETE FROM {table} WHERE run_id IN (SELECT run_id FROM forgotten)").fetchall()  # noqa: S608
        self._ask("CHECKPOINT")  # only then other rows take the place

    # Inside -----------------------------------------------------------------------------------------------------------

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """This thread's own cursor: two threads on one refuse each other."""
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._local, "cursor", None)
        if cursor is None:
            if self._closed:
                raise StoreError("This store is closed. Open it again.")
            cursor = self._local.cursor = self._connection.cursor()
            self._cursors.add(cursor)
        return cursor

    def _ask(
        self, query: str, parameters: dict[str, Any] | None = None, *, wanted: pa.Table | None = None
    ) -> list[Any]:
        """All rows of a query; `wanted` is a table that the query may name."""
        return self._run(query, parameters, wanted)[1]

    def _verdicts(
        self, query: str, parameters: dict[str, Any] | None = None, *, wanted: pa.Table | None = None
    ) -> list[VerdictRow]:
        names, rows = self._run(query, parameters, wanted)
        read = columns.verdict_row_reader(names)
        return [read(row) for row in rows]

    def _run(
        self, query: str, parameters: dict[str, Any] | None, wanted: pa.Table | None
    ) -> tuple[list[str], list[Any]]:
        with faults.translated(self.path):
            cursor = self._cursor()
            with _registered(cursor, "wanted", wanted):
                result = cursor.execute(query, parameters)
                return [column[0] for column in result.description or ()], result.fetchall()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with faults.translated(self.path):
            cursor = self._cursor()
            cursor.execute("BEGIN").fetchall()
            try:
                yield cursor
                cursor.execute("COMMIT").fetchall()
            except BaseException:
                with contextlib.suppress(duckdb.Error):  # a commit that failed has rolled back by itself
                    cursor.execute("ROLLBACK").fetchall()
                raise


def _insert(cursor: duckdb.DuckDBPyConnection, query: str, batch: pa.Table) -> None:
    with _registered(cursor, "batch", batch):
        cursor.execute(text(query)).fetchall()


@contextlib.contextmanager
def _registered(cursor: duckdb.DuckDBPyConnection, name: str, table: pa.Table | None) -> Iterator[None]:
    """The table under a name that a query on this cursor can use."""
    if table is None:
        yield
        return
    cursor.register(name, table)
    try:
        yield
    finally:
        cursor.unregister(name)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}. See to that folder, or use another: --store PATH") from error
