"""Real processes, killed at random moments of whatever they do to a store: nothing is lost, doubled or half there.

`make check` does 32 kills, four of each deed. `KILLS=200 pytest -m kill tests/pipeline/test_kill.py` does 200.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from stopcause.errors import InputError
from stopcause.pipeline.backup import restore
from stopcause.pipeline.keeper import Keeper, journal_folder
from stopcause.store import archive, offline, way_back
from tests.support import days

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("KILLS", "32"))
COUNT, DAYS = 200, 3  # runs a day
RECORDS, RUNS = DAYS * COUNT * 29 // 10, DAYS * COUNT
DEEDS = ("ingest", "settle", "rejudge", "snapshot", "parquet", "backup", "forget", "migrate")

# Says `ready` when everything is loaded and open, does its deed when it is told to, and says after each batch what is
# acknowledged.
CHILD = """
import sys
from pathlib import Path
from stopcause.pipeline import retention
from stopcause.pipeline.backup import write_backup
from stopcause.pipeline.keeper import owned
from stopcause.store import archive, snapshot
from stopcause.store.duckdb_store import DuckStore
from tests.support import days
deed, path, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
later = days.NOW + 60 * days.DAY
if deed == "migrate":
    print("ready", flush=True)
    sys.stdin.readline()
    DuckStore.open(path).close()
elif deed == "forget":
    with owned(path) as (store, spool):
        print("ready", flush=True)
        sys.stdin.readline()
        retention.forget(store, spool, days.DAY_ONE.replace(hour=0) + 2 * days.DAY)
else:
    policy = days.OTHER_POLICY if deed == "rejudge" else days.DEFAULT_POLICY
    keeper = days.Keeper.open(path, policy, days.NOW)
    print("ready", flush=True)
    sys.stdin.readline()
    if deed == "ingest":
        lines, done = list(days.runs_of(9, 600)), 0
        for first in range(0, len(lines), 97):
            done += keeper.accept(lines[first : first + 97], days.NOW).accepted
            print(done, flush=True)
    elif deed == "settle":
        keeper.settle(later)
    elif deed == "rejudge":
        keeper.rejudge(days.NOW)
    elif deed == "snapshot":
        keeper.store.close_engine()
        snapshot.write_snapshot(path, out, days.NOW, ("1", "2"))
    elif deed == "parquet":
        archive.write_archive(keeper.store, out, archive.Span(), (days.NOW, "1", "2"), tokens=True)
    else:
        write_backup(keeper, out, days.NOW)
    keeper.close()
print("done", flush=True)
"""


class Killed(NamedTuple):
    """What a child said before it was killed, and how long it had from `ready` on."""

    said: tuple[str, ...]
    lived_s: float

    @property
    def acknowledged(self) -> int:
        numbers = [int(word) for word in self.said if word.isdigit()]
        return numbers[-1] if numbers else 0


def run(deed: str, path: Path, out: Path, after_s: float | None) -> Killed:
    """Lets a process do it, and kills it so long after it was ready; None lets it end."""
    command = [sys.executable, "-c", CHILD, deed, str(path), str(out)]
    environment, pipe = {**os.environ, "PYTHONPATH": str(ROOT)}, subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n", child.communicate()
        child.stdin.write("go\n")  # it does not begin while this process still sleeps
        child.stdin.flush()
        began = time.monotonic()
        if after_s is not None:
            time.sleep(after_s)
            child.kill()
        said, failed = child.communicate(timeout=120)
    if after_s is None:
        assert child.returncode == 0, failed
    whole = [line.rstrip("\n") for line in said.splitlines(keepends=True) if line.endswith("\n")]
    return Killed(tuple(whole), time.monotonic() - began)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that every round gets a copy of."""
    path = tmp_path_factory.mktemp("base") / "s.duckdb"
    days.filled(path, DAYS, COUNT).close()
    return path


@pytest.fixture(scope="module")
def old_base(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as the first version wrote it."""
    path = copied(base, tmp_path_factory.mktemp("old"))
    days.as_of_0001(path)
    return path


def copied(base: Path, folder: Path) -> Path:
    """A copy of a store and its journal in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copytree(journal_folder(base), journal_folder(folder / base.name))
    return Path(shutil.copy(base, folder / base.name))


# What must hold afterwards --------------------------------------------------------------------------------------------


def check_store(path: Path, at_least: int, at_most: int) -> int:
    """It opens; every acknowledged record is there once, and each attempt is judged once. Gives how many records."""
    with Keeper.open(path, days.DEFAULT_POLICY, days.NOW) as keeper:
        ask = keeper.store.ask
        ((count, unique),) = ask("SELECT count(*), count(DISTINCT (record_id, event_at)) FROM records").rows
        assert count == unique
        assert at_least <= count <= at_most
        assert ask("SELECT DISTINCT sum(sign)::INTEGER FROM verdicts GROUP BY run_id, attempt").rows == [(1,)]
        keeper.rejudge(days.NOW)
        keeper.settle(days.NOW)
        ((runs,),) = ask("SELECT count(DISTINCT run_id) FROM records").rows
        assert keeper.store.counts().runs == runs
    return int(count)


def check_ingest(path: Path, _out: Path, killed: Killed) -> None:
    check_store(path, RECORDS + killed.acknowledged, RECORDS + killed.acknowledged + 97)


def check_verdicts(path: Path, _out: Path, _killed: Killed) -> None:
    check_store(path, RECORDS, RECORDS)


def check_snapshot(path: Path, out: Path, killed: Killed) -> None:
    check_store(path, RECORDS, RECORDS)
    assert out.exists() or "done" not in killed.said
    if out.exists():
        with duckdb.connect(str(out), read_only=True) as engine:
            assert engine.execute("SELECT count(*) FROM runs").fetchall() == [(RUNS,)]
            assert engine.execute("SELECT records FROM snapshot").fetchall() == [(RECORDS,)]


def check_parquet(path: Path, out: Path, killed: Killed) -> None:
    check_store(path, RECORDS, RECORDS)
    assert out.exists() or "done" not in killed.said
    if out.exists():
        manifest = archive.read_manifest(out)
        assert manifest is not None
        assert len(archive.check(out, manifest)) == DAYS
        assert manifest.records.digest == offline.file_digest(path)["records"].text


def check_backup(path: Path, out: Path, killed: Killed) -> None:
    check_store(path, RECORDS, RECORDS)
    assert out.exists() or "done" not in killed.said
    if out.exists():
        other = out.with_name("restored") / "s.duckdb"
        restore(out, other)
        check_store(other, RECORDS, RECORDS)
        with pytest.raises(InputError):
            restore(out, path)


def check_forget(path: Path, out: Path, killed: Killed) -> None:
    """Two days of three go, but for the runs that wait: all of it, or nothing yet. No run that stays ever does."""
    stays = DAYS * COUNT * 29 // 10 - 2 * COUNT * 9 // 10 * 3
    count = check_store(path, stays, RECORDS)
    assert count in (stays, RECORDS)
    assert count == stays or "done" not in killed.said
    again = out.with_name("again") / "s.duckdb"
    shutil.copytree(journal_folder(path), journal_folder(again))
    check_store(again, stays, RECORDS)
    run("forget", path, out, None)
    check_store(path, stays, stays)
    path.unlink()
    check_store(path, stays, stays)


def check_migrate(path: Path, _out: Path, killed: Killed) -> None:
    copies = way_back.copies(path)
    assert copies or "done" not in killed.said
    check_store(path, RECORDS, RECORDS)
    (copy,) = way_back.copies(path)
    assert offline.steps_of(copy) == ["0001_tables"]
    assert offline.file_digest(copy)["records"] == offline.file_digest(path)["records"]


CHECKS: dict[str, Callable[[Path, Path, Killed], None]] = {
    "ingest": check_ingest,
    "settle": check_verdicts,
    "rejudge": check_verdicts,
    "snapshot": check_snapshot,
    "parquet": check_parquet,
    "backup": check_backup,
    "forget": check_forget,
    "migrate": check_migrate,
}


@pytest.mark.kill
@pytest.mark.parametrize("deed", DEEDS)
def test_nothing_is_lost_doubled_or_half_there_after_kills(
    deed: str, base: Path, old_base: Path, tmp_path: Path
) -> None:
    chance, rounds = random.Random(deed), KILLS // len(DEEDS)  # noqa: S311 - moments of killing
    source, place = old_base if deed == "migrate" else base, tmp_path / "place"
    path = copied(source, place)
    takes = run(deed, path, place / "out", None).lived_s
    in_time, latest = 0, takes
    for number in range(4 * rounds):
        path = copied(source, place)
        killed = run(deed, path, place / "out", chance.uniform(0, latest))
        in_time += (was := "done" not in killed.said)
        latest = min(takes, latest * (1.25 if was else 0.7))  # a process that ends slowly is done before it ends
        CHECKS[deed](path, place / "out", killed)
        if number + 1 >= rounds and in_time >= rounds // 4:  # on a busy machine the first moments may all come too late
            break
    print(f"{deed}: {number + 1} kills, {in_time} of them before it was done ({takes:.2f} s)")  # noqa: T201
    assert in_time >= rounds // 4


@pytest.mark.kill
def test_one_store_survives_kills_of_everything_in_turn(base: Path, tmp_path: Path) -> None:
    """One store that lives on: what one killed process left is what the next one finds."""
    chance, place = random.Random(11), tmp_path / "place"  # noqa: S311
    path = copied(base, place)
    for deed in [each for each in DEEDS if each not in ("migrate", "ingest", "forget")]:
        run(deed, path, place / f"out-{deed}", chance.uniform(0, 0.3))
        shutil.rmtree(place / "out-parquet", ignore_errors=True)
    check_store(path, RECORDS, RECORDS)
    for deed in ("snapshot", "parquet", "backup"):
        run(deed, path, place / f"out-{deed}", None)
    assert days.hidden(place) == []  # what killed processes had begun is gone
