"""A keeper that is killed or has no disk left: what it acknowledged is there afterwards, once, and judged once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.pipeline.keeper import Keeper
from tests.support.machine import lacking

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 30, tzinfo=UTC)

HEAD = """
    import resource, sys
    from datetime import UTC, datetime
    from pathlib import Path
    from stopcause.classifier.policy import DEFAULT_POLICY
    from stopcause.errors import StoreFullError
    from stopcause.pipeline.keeper import Keeper
    NOW = datetime(2026, 11, 30, tzinfo=UTC)
    def batch(name, first, count):
        for n in range(first, first + count):
            head = '{"schema":"stopcause/1","run_id":"%s-%d","at":"2026-11-28T%02d:00:00Z",' % (name, n // 2, n % 24)
            if n % 2:  # every run gets its outcome later, so that its verdict is revised
                yield (head + '"kind":"outcome.recorded","outcome":{"outcome_id":"o%d"}}' % n).encode()
            else:
                yield (head + '"kind":"run.stopped","stop_cause":"natural","reason_code":"%s"}' % ("x" * 150)).encode()
"""

# Takes in batches without end; says after each how many records are acknowledged.
TAKER = (
    HEAD
    + """
    keeper, done = Keeper.open(Path(sys.argv[1]), DEFAULT_POLICY, NOW), 0
    print(0, flush=True)
    while True:
        taken = keeper.accept(batch(sys.argv[2], done, 7), NOW)
        assert taken.accepted == 7, taken
        done += 7
        print(done, flush=True)
"""
)

# Goes on until the disk takes no more, three times over; then there is room again.
FILLER = (
    HEAD
    + """
    path, size, done, full = Path(sys.argv[1]), int(sys.argv[2]), 0, 0
    ballast = path.with_name("ballast")
    keeper = Keeper.open(path, DEFAULT_POLICY, NOW)
    if size:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    while full < 3 and done < 200_000:
        try:
            taken = keeper.accept(batch("f", done, 250), NOW)
        except StoreFullError as error:
            assert "Free space" in str(error), error
            full += 1
        else:
            done += 250
    assert full == 3
    print(done, flush=True)
    ballast.unlink(missing_ok=True)
    if size:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    taken = keeper.accept(batch("f", done, 250), NOW)
    assert taken.accepted + taken.repeated == 250, taken
    keeper.close()
"""
)


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def kill_one(path: Path, name: str, after_s: float) -> int:
    """Lets a process take records in, kills it, and gives how many it had acknowledged."""
    with start(TAKER, str(path), name) as taker:
        assert taker.stdout is not None
        assert taker.stdout.readline() == "0\n", taker.communicate()
        time.sleep(after_s)
        taker.kill()
        said, _ = taker.communicate()
    whole = [line for line in said.splitlines(keepends=True) if line.endswith("\n")]
    return int(whole[-1]) if whole else 0


def check(path: Path, acknowledged: dict[str, int], batch: int) -> None:
    """Every acknowledged record once; of what was not acknowledged at most one batch; one verdict for each run."""
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        stored = dict(keeper.store._ask("SELECT split_part(run_id, '-', 1), count(*) FROM records GROUP BY ALL"))
        for name, count in acknowledged.items():
            assert count <= stored.get(name, 0) <= count + batch
        ids = keeper.store._ask("SELECT count(*), count(DISTINCT record_id) FROM records")[0]
        assert ids[0] == ids[1]
        sums = keeper.store._ask("SELECT DISTINCT sum(sign)::INTEGER FROM verdicts GROUP BY run_id, attempt")
        assert sums in ([(1,)], [])
        runs = keeper.store._ask("SELECT count(DISTINCT run_id) FROM records")[0][0]
        assert keeper.store.counts().runs == runs
        assert keeper.store.position() == keeper._journal.end  # type: ignore[union-attr]


def kills(path: Path, rounds: int) -> int:
    """Checks the store after so many kills; gives how many records had been acknowledged."""
    chance, acknowledged = random.Random(7), {}  # noqa: S311 - moments of killing
    for n in range(rounds):
        acknowledged[f"k{n}"] = kill_one(path, f"k{n}", chance.uniform(0.05, 0.6))
        if n % 7 == 3:
            path.unlink()  # then all of it has to come from the journal
    check(path, acknowledged, batch=7)
    return sum(acknowledged.values())


def test_what_was_acknowledged_survives_kills_exactly_once(tmp_path: Path) -> None:
    assert kills(tmp_path / "s.duckdb", rounds=5) > 0


@pytest.mark.kill
def test_what_was_acknowledged_survives_many_kills(tmp_path: Path) -> None:
    assert kills(tmp_path / "s.duckdb", rounds=60) > 0


def fill(path: Path, size: int) -> int:
    """Fills a store until the disk takes no more, and checks it; gives how many records were acknowledged before."""
    with start(FILLER, str(path), str(size)) as filler:
        said, failure = filler.communicate(timeout=300)
    assert filler.returncode == 0, failure
    done = int(said)
    check(path, {"f": done + 250}, batch=0)
    return done


@pytest.mark.parametrize("size", [900_000, 2_500_000])
def test_a_file_that_may_not_grow_loses_nothing_acknowledged(tmp_path: Path, size: int) -> None:
    assert fill(tmp_path / "s.duckdb", size) > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        lacking("needs the right to mount a tmpfs")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S607


def test_a_full_disk_loses_nothing_acknowledged(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(6_000_000))
    assert fill(small_disk / "s.duckdb", 0) > 0
