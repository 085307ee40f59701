"""The figures of the numbers table, each beside a floor or a peer of the same run.

Two cores that other work shares give rates that wander, and with them CPU time. So work and floor take turns, the best
turn of each counts, and the ratio is the figure to keep.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from bench import records
from stopcause.classifier import engine, fold
from stopcause.classifier.policy import policy_from_mapping
from stopcause.pipeline.ingest import ingest
from stopcause.pipeline.keeper import Keeper
from stopcause.receipts import codec
from stopcause.store.migrations import migrate
from stopcause.store.queries import text

RUNS = 30_000
READ_LINES = 5_000
POLICY = policy_from_mapping(records.POLICY)
HELLO = "import typer\napp = typer.Typer()\n@app.command()\ndef main(name: str): print(name)\napp()\n"
IMPORTS = "import typer, rich.table, stopcause.classifier.engine"

Work = Callable[[], object]


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


def best(
    works: Sequence[Work], items: int, turns: int = 3, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Microseconds per item of each; they take turns, and the best turn counts. The cyclic collector is off."""
    found = [float("inf")] * len(works)
    for i, work in list(enumerate(works)) * turns:
        with _collector_off():
            before = clock()
            work()
            found[i] = min(found[i], clock() - before)
    return [each / items * 1e6 for each in found]


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# Judging --------------------------------------------------------------------------------------------------------------


def judge_figures() -> Iterator[Figure]:
    """Fold and rules, and rules alone, over records that are already values."""
    read = [codec.read_line(line) for line in records.lines(RUNS)]
    kept = [record for record in read if not isinstance(record, codec.LineError)]
    assert len(kept) == len(read)
    facts = [fold.facts_of(run, run.latest, POLICY, records.NOW) for run in fold.group(kept).values()]

    def rules() -> None:
        for each in facts:
            engine.judge(each)

    def touched() -> None:
        for each in facts:
            each.cause  # noqa: B018 - the floor touches every run once

    def whole() -> None:
        for _ in engine.judge_all(kept, POLICY, records.NOW):
            pass

    both, alone, floor = best((whole, rules, touched), RUNS)
    yield Figure("judge: fold and rules", "run", both, "an empty loop", floor)
    yield Figure("judge: rules alone", "run", alone, "an empty loop", floor)


# Reading --------------------------------------------------------------------------------------------------------------


def read_figures() -> Iterator[Figure]:
    """A line to a record, and to what is kept of it, beside the standard library's reader of the same lines."""
    lines = list(itertools.islice(records.lines(RUNS), READ_LINES))
    read, keep, load = best(
        (_each(codec.read_line, lines), _each(codec.keep_line, lines), _each(json.loads, lines)), READ_LINES, turns=9
    )
    yield Figure("read and validate a line", "record", read, "json.loads", load)
    yield Figure("the same, and what is kept", "record", keep, "json.loads", load)


def _each(function: Callable[[Any], object], items: Sequence[Any]) -> Work:
    def work() -> None:
        for item in items:
            function(item)

    return work


# Bulk import ----------------------------------------------------------------------------------------------------------


def bulk_figures() -> Iterator[Figure]:
    """A file of records into an empty store, beside an append of the rows that come of it, and `json.loads` of it."""
    lines = list(records.lines(RUNS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "records.jsonl"
        source.write_bytes(b"\n".join(lines) + b"\n")
        rows = _rows(_import(source, folder, len(lines)))
        works = (
            lambda: _import(source, folder, len(lines)),
            lambda: _append(rows, folder),
            _each(json.loads, lines),
        )
        whole, append, load = best(works, len(lines))
    yield Figure("bulk import of NDJSON", "record", whole, "Arrow append", append)
    yield Figure("bulk import of NDJSON", "record", whole, "json.loads", load)


def _import(source: Path, folder: Path, count: int) -> Path:
    """Into a new store, which stays; gives where it is."""
    path = Path(tempfile.mkdtemp(dir=folder), "store.duckdb")
    with Keeper.open(path, POLICY, records.NOW) as keeper:
        report = ingest([source], keeper, records.NOW)
    assert report.accepted == count
    return path


def _rows(store: Path) -> dict[str, pa.Table]:
    """Everything that an import leaves in the store, as the tables that go into it."""
    with duckdb.connect(str(store)) as connection:
        return {
            "records": connection.sql("SELECT * EXCLUDE (hour) FROM records").to_arrow_table(),
            "verdicts": connection.sql("SELECT * EXCLUDE (hour) FROM verdicts").to_arrow_table(),
        }


def _append(rows: dict[str, pa.Table], folder: Path) -> None:
    """The same rows into the same tables of a new file: nothing is read, checked, judged or written twice."""
    with duckdb.connect(Path(tempfile.mkdtemp(dir=folder), "floor.duckdb")) as connection:
        migrate(connection)
        for name, table in rows.items():
            connection.register("batch", table)
            connection.execute(text(f"insert_{name}")).fetchall()
            connection.unregister("batch")


# Starts ---------------------------------------------------------------------------------------------------------------


def start_figures() -> Iterator[Figure]:
    """Whole processes, wall time in microseconds: what a person waits for."""
    ours = ("-m", "stopcause")
    help_screen, hello = _starts([*ours, "--help"], ["-c", HELLO, "--help"])
    yield Figure("start: --help", "start", help_screen, "hello world", hello)
    replay, imports = _starts([*ours, "replay", "fixtures/article"], ["-c", IMPORTS])
    yield Figure("start: replay of the 11", "start", replay, "imports", imports)


def _starts(*commands: list[str]) -> list[float]:
    def started(command: list[str]) -> Work:
        return lambda: subprocess.run([sys.executable, *command], check=True, capture_output=True)

    return best([started(command) for command in commands], 1, turns=5, clock=time.perf_counter)


def main() -> None:
    """Print every figure."""
    for figures in (judge_figures, read_figures, bulk_figures, start_figures):
        for figure in figures():
            print(figure, flush=True)


if __name__ == "__main__":
    main()
