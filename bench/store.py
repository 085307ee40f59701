"""What a large store costs: reports, disk, Parquet, a policy tried on history; run as `python -m bench.store [DAYS]`.

A day is 100,000 runs, and 100 days are ten million. Reports are wall time, which a person waits for, beside a bare
count over the same rows in the same run; the rest is CPU time per item, the workers' too, and peak memory.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow.parquet as pq

from bench import grow, records
from bench.run import Figure, best
from stopcause.classifier.policy import Policy, policy_from_mapping
from stopcause.pipeline.policy_diff import diff_store
from stopcause.pipeline.report import run_report
from stopcause.store import reports
from stopcause.store.archive import Span, write_archive
from stopcause.store.duckdb_store import DuckStore

RUNS_A_DAY = 100_000
DAYS = 100
DAYS_WITH_RECORDS = 5  # sizes and archives are per run: half a million runs tell
TURNS = 3
_BARE = "SELECT agent, verdict, count(*) FROM verdicts WHERE hour >= $hour GROUP BY ALL"
_STRICTER = {**records.POLICY, "contracts": {"outcome": {"issuers": ["destination:elsewhere"]}}}


_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


class Timed(NamedTuple):
    """A report in milliseconds of wall time, beside a bare count of the rows that it covers."""

    name: str
    window: str
    ms: float
    bare_ms: float
    rows: int

    def __str__(self) -> str:
        ratio = self.ms / self.bare_ms
        bare = f"{ratio:>8.1f} x a bare count ({self.bare_ms:.1f} ms)"
        return f"{self.name:<24}{self.window:>5}{self.ms:>10.1f} ms{bare}{self.rows:>9} rows"


def report_figures(path: Path, now: datetime) -> Iterator[Timed]:
    """Every report over all days and over the last 24 hours."""
    with DuckStore.open(path) as store:
        (run_id, thread_id), *_ = store.ask("SELECT run_id, thread_id FROM runs ORDER BY opened_at DESC LIMIT 1").rows
        about = {"run-timeline": {"run": run_id}, "thread-timeline": {"thread": thread_id}}
        for window in ("24h", "all"):
            since = run_report(store, "stop-causes", {"since": window}, now).window.since
            bare = _milliseconds(partial(store.ask, _BARE, {"hour": int(since.timestamp() // 3600)}))
            for name in reports.names():
                takes_since = reports.card(name).parameter("since") is not None
                if not takes_since and window == "all":
                    continue
                asked = about.get(name) or ({"since": window} if takes_since else {})
                ask = partial(run_report, store, name, asked, now)
                yield Timed(name, window if takes_since else "-", _milliseconds(ask), bare, len(ask().rows))


def _milliseconds(work: Callable[[], object]) -> float:
    found = []
    for _ in range(TURNS):
        before = time.perf_counter()
        work()
        found.append(time.perf_counter() - before)
    return min(found) * 1000


# Disk and Parquet -----------------------------------------------------------------------------------------------------


def size_lines(path: Path, runs: int) -> Iterator[str]:
    """Bytes a run of the store, by table, beside Parquet (zstd) of the same rows."""
    with duckdb.connect(str(path), read_only=True) as connection, tempfile.TemporaryDirectory() as folder:
        total = path.stat().st_size / runs
        used = connection.execute("SELECT used_blocks * block_size FROM pragma_database_size()").fetchall()[0][0] / runs
        plain = 0.0
        for table in ("records", "verdicts"):
            file = Path(folder, f"{table}.parquet")
            pq.write_table(connection.sql(f"FROM {table}").to_arrow_table(), file, compression="zstd")
            plain += file.stat().st_size / runs
    beside = f"{used / plain:>8.1f} x Parquet zstd ({plain:.0f})"
    yield f"{'disk: records and verdicts':<40}{used:>8.0f} bytes a run ({total:.0f} with free blocks){beside}"


def archive_figures(path: Path, folder: Path) -> Iterator[Figure]:
    """Export to Parquet, beside reading the same rows and writing them in one piece."""
    with DuckStore.open(path) as store:
        count = store.counts().records
        about = (records.NOW, "bench", "bench")
        export = best(
            [lambda: write_archive(store, folder / "archive", Span(None, None), about, tokens=True)], count, turns=1
        )[0]
    with duckdb.connect(str(path), read_only=True) as connection:
        floor = best(
            [lambda: pq.write_table(connection.sql("FROM records").to_arrow_table(), folder / "floor.parquet")],
            count,
            turns=1,
        )[0]
    yield Figure("export parquet", "record", export, "pyarrow of the rows", floor)


# Policy ---------------------------------------------------------------------------------------------------------------


def policy_lines(path: Path, runs: int) -> Iterator[str]:
    """A stricter contract tried on every run: runs a second by the clock, CPU of all processes, peak memory."""
    policy: Policy = policy_from_mapping(_STRICTER)
    before, clock = _cpu(), time.perf_counter()
    diff = diff_store(path, policy, grow.POLICY, records.NOW)
    wall, used = time.perf_counter() - clock, _cpu() - before
    most = sum(resource.getrusage(who).ru_maxrss for who in _PROCESSES) / 1024
    cost = f"{used / runs * 1e6:>8.0f} us CPU a run, {most:.0f} MB at most, {diff.changed} changed"
    yield f"{'policy diff':<40}{runs / wall:>8.0f} runs/s{cost}"


def _cpu() -> float:
    used = [resource.getrusage(who) for who in _PROCESSES]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(days: int = DAYS) -> None:
    """Print every figure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "sizes.duckdb"
        grow.fill(path, RUNS_A_DAY)
        for line in policy_lines(path, RUNS_A_DAY):
            print(line, flush=True)
        grow.repeat(path, DAYS_WITH_RECORDS, with_records=True)
        for said in (*size_lines(path, RUNS_A_DAY * DAYS_WITH_RECORDS), *archive_figures(path, folder)):
            print(said, flush=True)
        path.unlink()
        path = folder / "reports.duckdb"
        grow.fill(path, RUNS_A_DAY)
        now = grow.repeat(path, days, with_records=False)
        print(f"{days} days of {RUNS_A_DAY} runs:")
        for timed in report_figures(path, now):
            print(timed, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else DAYS)
