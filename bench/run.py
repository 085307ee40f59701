"""The figures of the numbers table, each beside a floor of the same run.

Two cores that other work shares give rates that wander; CPU time per item and the ratio to the floor are what counts.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from bench import records
from stopcause.classifier import engine, fold
from stopcause.classifier.policy import policy_from_mapping
from stopcause.pipeline.ingest import ingest
from stopcause.pipeline.keeper import Keeper
from stopcause.receipts import codec

RUNS = 30_000
HELLO = "import typer\napp = typer.Typer()\n@app.command()\ndef main(name: str): print(name)\napp()\n"


class Figure(NamedTuple):
    """One row: microseconds per item, beside the floor's. CPU time, but for starts, which a person waits for."""

    what: str
    unit: str
    us: float
    floor: str
    floor_us: float

    def __str__(self) -> str:
        ratio = self.us / self.floor_us
        clock = "wall" if self.unit == "start" else "CPU"
        return (
            f"{self.what:<26} {self.us:>12,.2f} us {clock:<4} a {self.unit:<7}{1e6 / self.us:>10,.0f}/s"
            f"{ratio:>8.1f} x {self.floor} ({self.floor_us:,.2f} us)"
        )


def cpu(work: Callable[[], object], items: int, times: int = 3) -> float:
    """CPU microseconds per item, the best of a few."""
    best = float("inf")
    for _ in range(times):
        gc.collect()
        before = time.process_time()
        work()
        best = min(best, time.process_time() - before)
    return best / items * 1e6


def judge_figures() -> Iterable[Figure]:
    """Fold and rules, and rules alone, over records that are already values."""
    policy = policy_from_mapping(records.POLICY)
    read = [codec.read_line(line) for line in records.lines(RUNS)]
    kept = [record for record in read if not isinstance(record, codec.LineError)]
    assert len(kept) == len(read)
    runs = list(fold.group(kept).values())
    facts = [fold.facts_of(run, run.latest, policy, records.NOW) for run in runs]
    gc.collect()
    gc.freeze()

    def empty_loop() -> None:
        for each in facts:
            each.cause  # noqa: B018 - the floor touches every run once

    floor = cpu(empty_loop, RUNS)
    whole = cpu(lambda: list(engine.judge_all(kept, policy, records.NOW)), RUNS)
    rules = cpu(lambda: [engine.judge(each) for each in facts], RUNS)
    reading = cpu(lambda: [codec.read_line(line) for line in LINES], len(LINES))
    loading = cpu(lambda: [len(line) for line in LINES], len(LINES))
    yield Figure("judge: fold and rules", "run", whole, "an empty loop", floor)
    yield Figure("judge: rules alone", "run", rules, "an empty loop", floor)
    yield Figure("read and validate a line", "record", reading, "an empty loop", loading)


LINES = list(records.lines(3_000))


def bulk_figures() -> Iterable[Figure]:
    """A file of records into an empty store, beside appending rows of the same lines through Arrow."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "records.jsonl")
        lines = list(records.lines(RUNS))
        source.write_bytes(b"\n".join(lines) + b"\n")
        before = time.process_time()
        with Keeper.open(Path(folder, "store.duckdb"), policy_from_mapping(records.POLICY), records.NOW) as keeper:
            report = ingest([source], keeper, now=records.NOW)
        spent = (time.process_time() - before) / len(lines) * 1e6
        assert report.accepted == len(lines)
        yield Figure("bulk import of NDJSON", "record", spent, "Arrow append", _arrow_append(lines))


def _arrow_append(lines: list[bytes]) -> float:
    batch = pa.table({"line": pa.array([line.decode() for line in lines])})
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE floor (line VARCHAR USING COMPRESSION zstd)").fetchall()
        connection.register("batch", batch)
        return cpu(lambda: connection.execute("INSERT INTO floor SELECT line FROM batch").fetchall(), len(lines))


def start_figures() -> Iterable[Figure]:
    """Whole processes, wall time in microseconds: what a person waits for."""
    hello = _wall([sys.executable, "-c", HELLO, "--help"])
    yield Figure("start: --help", "start", _wall([sys.executable, "-m", "stopcause", "--help"]), "hello world", hello)
    imports = _wall([sys.executable, "-c", "import typer, rich.table, stopcause.classifier.engine"])
    replay = _wall([sys.executable, "-m", "stopcause", "replay", "fixtures/article"])
    yield Figure("start: replay of the 11", "start", replay, "imports", imports)


def _wall(command: list[str]) -> float:
    best = float("inf")
    for _ in range(5):
        before = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        best = min(best, time.perf_counter() - before)
    return best * 1e6


def main() -> None:
    """Print every figure."""
    for figures in (judge_figures, bulk_figures, start_figures):
        for figure in figures():
            print(figure, flush=True)


if __name__ == "__main__":
    main()
