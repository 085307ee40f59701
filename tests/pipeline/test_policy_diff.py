"""What another policy would say of a store, of files and of archives is what judging every run twice says."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import DEFAULT_POLICY, Policy, policy_from_mapping
from stopcause.errors import InputError, StoreError
from stopcause.pipeline import cases, policy_diff, policy_sources, policy_workers
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.policy_diff import Question, diff_of, diff_store
from stopcause.pipeline.policy_sources import Trial, diff_files
from stopcause.pipeline.policy_workers import Batch, Task, judge_batches
from stopcause.receipts import codec
from stopcause.render.policy_diff import Diff, Said
from stopcause.resources import data_folder
from stopcause.store.archive import Span, write_archive
from stopcause.store.duckdb_store import DuckStore
from tests.support.recordings import few

ROOT = Path(__file__).parents[2]
FIXTURES = data_folder("fixtures")
NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
STRICT = policy_from_mapping(
    {
        "policy": {"id": "strict", "version": "1"},
        "agents": [{"match": {"agent": "*"}, "contract": "seen", "stage": "enforce"}],
        "contracts": {"seen": {"min_strength": "human"}},
    }
)
POLICIES = (
    STRICT,
    policy_from_mapping({"routes": [{"owner": "team:a", "due": "5m", "on_expiry": "BOUNDED_STOP"}]}),
    policy_from_mapping({"verdicts": {"quota": "BOUNDED_STOP", "guardrail": "FAILED"}}),
    policy_from_mapping({"defaults": {"stuck_after": "1s", "settle": "1s"}}),
    policy_from_mapping({"agents": [{"match": {"agent": "ticket-*"}, "contract": "other"}]}),
)


def fixture_lines() -> list[bytes]:
    """The records of fixtures, of the recorded runs a few; most runs are of one attempt, some take another up."""
    found = cases.load_cases([*(FIXTURES / name for name in ("article", "pairs", "public")), *few()])
    return [codec.value_line(value) for case in found for value in case.records]


LINES = fixture_lines()
RUNS = len({json.loads(line)["run_id"] for line in LINES if b'"run_id"' in line})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diff") / "s.duckdb"
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        keeper.accept(LINES, NOW)
        keeper.settle(NOW)
    return path


def brute(old: Policy, new: Policy) -> Counter[tuple[Said, Said]]:
    """Every run judged twice."""
    read = (codec.read_line(line) for line in LINES)
    runs = fold.group(each for each in read if not isinstance(each, codec.LineError))
    resumers = engine.resumers_by_run(runs.values())
    found: Counter[tuple[Said, Said]] = Counter()
    for run in runs.values():
        pair = [engine.judge_run(run, policy, NOW, resumers.get(run.run_id, ())) for policy in (old, new)]
        before, after = (Said(each.verdict, each.reason) for each in pair)
        if before != after:
            found[before, after] += 1
    return found


def changes(found: Diff) -> Counter[tuple[Said, Said]]:
    return Counter({(each.before, each.after): each.runs for each in found.changes})


@pytest.mark.parametrize("number", range(len(POLICIES)))
def test_a_store_gives_what_judging_all_of_it_twice_gives(store: Path, number: int) -> None:
    expected = brute(DEFAULT_POLICY, POLICIES[number])

    found = diff_store(store, POLICIES[number], DEFAULT_POLICY, NOW)

    assert changes(found) == expected
    assert found.changed == expected.total() > 0
    assert found.touched < found.looked == RUNS


def test_two_policies_neither_of_which_judged_the_store(store: Path) -> None:
    for old, new in itertools.permutations(POLICIES, 2):
        with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
            found = diff_of(keeper.store, Question(old, new, NOW, keeper.policy))

        assert changes(found) == brute(old, new)


def test_small_stretches_and_many_workers_count_every_run_once(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_diff, "_STRETCH_RUNS", 20)
    monkeypatch.setattr(policy_diff, "BATCH_RUNS", 7)
    done: list[int] = []

    found = diff_store(store, STRICT, DEFAULT_POLICY, NOW, processes=2, progress=done.append)

    assert changes(found) == brute(DEFAULT_POLICY, STRICT)
    assert found.looked == RUNS
    assert done == sorted(done)
    assert done[-1] == RUNS


def test_a_policy_that_says_the_same_touches_nothing(store: Path) -> None:
    found = diff_store(store, policy_from_mapping({"policy": {"id": "same"}}), DEFAULT_POLICY, NOW)

    assert (found.looked, found.touched, found.changed, found.sections) == (RUNS, 0, 0, ())


def test_a_stage_or_an_owner_is_counted_and_judges_nothing(store: Path) -> None:
    new = policy_from_mapping({"agents": [{"match": {"agent": "ticket-*"}, "stage": "enforce", "owner": "team:a"}]})

    found = diff_store(store, new, DEFAULT_POLICY, NOW)

    assert (found.touched, found.changed) == (0, 0)
    assert dict(found.keeps) == {"stage enforce": 17, "owner": 17}


def test_only_runs_since_a_time_are_looked_at(store: Path) -> None:
    since = datetime(2026, 11, 28, 8, 30, tzinfo=UTC)
    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        rows = keeper.store.rows(since=since, limit=None)
        found = diff_of(keeper.store, Question(DEFAULT_POLICY, STRICT, NOW, since=since))

    assert 0 < found.looked == len(rows) < RUNS


# Files ----------------------------------------------------------------------------------------------------------------


def tried(*paths: Path, new: Policy = STRICT, said: list[str] | None = None) -> Diff:
    return diff_files(paths, Trial(new, None, DEFAULT_POLICY, NOW), (said if said is not None else []).append)


def as_archive(store: Path, folder: Path) -> Path:
    """What an export makes of it, without resume tokens."""
    with DuckStore.open(store) as opened:
        write_archive(opened, folder, Span(), (NOW, "0", "0"), tokens=False)
    return folder


def test_files_and_archives_give_what_a_store_gives(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"\n".join(reversed(LINES)))
    archive = as_archive(store, tmp_path / "archive")
    flat = tmp_path / "records-2026.parquet"
    pq.write_table(pa.table({"line": pa.array([line.decode() for line in LINES], pa.large_string())}), flat)

    for given, new in itertools.product((path, archive, flat), POLICIES):
        found = tried(given, new=new)
        assert changes(found) == brute(DEFAULT_POLICY, new), given
        assert found.looked == RUNS


def test_much_is_held_on_disk_in_parts(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_sources, "_IN_MEMORY_BYTES", 1000)
    monkeypatch.setattr(policy_sources, "_BATCH_RECORDS", 50)
    monkeypatch.setattr(policy_sources, "_PART_RECORDS", 50)

    found = tried(as_archive(store, tmp_path / "archive"))

    assert changes(found) == brute(DEFAULT_POLICY, STRICT)


def test_cases_stand_as_of_their_own_time_and_under_their_own_policy(tmp_path: Path) -> None:
    case = json.loads((FIXTURES / "article" / "A01-natural-receipt.json").read_text("utf-8"))
    case["policy"] = {"agents": [{"match": {"agent": "*"}, "contract": "seen"}]}
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "one.json").write_text(json.dumps(case), "utf-8")
    (tmp_path / "cases" / "two.jsonl").write_text(json.dumps(case) + "\n" + json.dumps(case) + "\n", "utf-8")

    found = tried(tmp_path / "cases", new=DEFAULT_POLICY)

    assert (found.looked, found.changed, found.old, found.now) == (3, 3, None, None)
    assert {each.name for each in found.changes[0].examples} == {"A01"}


def test_a_bad_line_is_told_and_costs_no_other(tmp_path: Path) -> None:
    path, said = tmp_path / "runs.jsonl", list[str]()
    path.write_bytes(b"\n".join([LINES[0], b'{"schema":"stopcause/1","kind":"run.stopped"}', *LINES[1:]]))

    found = tried(path, said=said)

    assert (found.looked, found.set_aside) == (RUNS, 1)
    assert len(said) == 1
    assert "runs.jsonl: line 2" in said[0]


@pytest.mark.parametrize("what", ["gone", "empty", "column", "broken"])
def test_what_cannot_be_read_is_said(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.parquet"
    if what == "empty":
        path.mkdir()
    elif what == "column":
        pq.write_table(pa.table({"other": ["x"]}), path)
    elif what == "broken":
        path.write_bytes(b"PAR1 and no more")
    words = {"gone": "No such file", "empty": "no records in it", "column": "no column", "broken": "no Parquet file"}

    with pytest.raises(InputError, match=words[what]):
        tried(path)


# Workers --------------------------------------------------------------------------------------------------------------

TASK = Task(DEFAULT_POLICY, STRICT, NOW)


def test_a_worker_that_dies_is_an_error_and_no_hang() -> None:
    def batches() -> Iterator[Batch]:
        for number in itertools.count():
            if number == 12:
                for child in multiprocessing.active_children():
                    os.kill(child.pid or 0, signal.SIGKILL)
            yield Batch((), LINES[:50])

    with pytest.raises(StoreError, match="died"):
        judge_batches(TASK, batches())


def test_no_more_than_a_handful_of_batches_wait() -> None:
    ahead: list[int] = []
    taken = 0

    def batches() -> Iterator[Batch]:
        nonlocal taken
        for _ in range(40):
            taken += 1
            yield Batch((), LINES[:20])

    one = policy_workers.Judge(TASK).batch(Batch((), LINES[:20])).looked
    total = judge_batches(TASK, batches(), progress=lambda done: ahead.append(taken - done // one))

    assert total.looked == 40 * one
    assert max(ahead) <= 2 * (1 + 2) + 1


PARENT = """
    import multiprocessing, sys, time
    from tests.pipeline.test_policy_diff import LINES, TASK, Batch, judge_batches
    def batches():
        for number in range(10**6):
            if number == 12:
                print(*[child.pid for child in multiprocessing.active_children()], flush=True)
                time.sleep(600)
            yield Batch((), LINES[:20])
    if __name__ == "__main__":
        judge_batches(TASK, batches())
"""


def test_workers_end_with_their_parent() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    code = [sys.executable, "-c", textwrap.dedent(PARENT)]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(workers) == 2
    until = time.monotonic() + 20
    while any(map(_is_alive, workers)):
        assert time.monotonic() < until, "a worker is still there"
        time.sleep(0.05)


INTERRUPTED = """
    import multiprocessing, os, signal, sys, time
    from tests.pipeline.test_policy_diff import LINES, TASK, Batch, judge_batches
    def batches():
        for number in range(10**6):
            if number == 4:
                os.killpg(0, signal.SIGINT)
            yield Batch((), LINES[:20])
    if __name__ == "__main__":
        try:
            judge_batches(TASK, batches())
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def test_ctrl_c_is_for_the_parent_alone_even_while_workers_start() -> None:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        timeout=60,
    )

    assert (run.returncode, run.stdout, run.stderr) == (0, "interrupted\n", "")


def _is_alive(pid: int) -> bool:
    """Whether it still runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_agents_in_endless_spellings_do_not_fill_the_memory() -> None:
    def batch(first: int) -> Batch:
        head: dict[str, Any] = {"schema": "stopcause/1", "kind": "run.stopped", "stop_cause": "natural"}
        late = (NOW - timedelta(hours=2)).isoformat()
        records = [{**head, "run_id": f"r{n}", "agent": f"a{n}", "at": late} for n in range(first, first + 1500)]
        return Batch((), [codec.value_line(each) for each in records])

    total = judge_batches(TASK, [batch(0), batch(1500)])

    assert (total.changed, len(total.agents)) == (3000, 1000)
