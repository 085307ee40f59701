"""The store on a real DuckDB: what goes in comes out, once, and it has one owner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stopcause.errors import NotFoundError, StoreError, StoreInUseError
from stopcause.store.duckdb_store import DuckStore, StoredPosition
from stopcause.store.lock import lock_path, read_holder
from stopcause.store.rows import StoredWait, VerdictRow
from tests.support.machine import without_privileges
from tests.support.stored import T0, columns_of, record, verdict

if TYPE_CHECKING:
    pass

ROOT = Path(__file__).parents[2]
OWNER = "import sys; from pathlib import Path; from stopcause.store.duckdb_store import DuckStore\n"
HOLD = OWNER + "s = DuckStore.open(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"


# One owner ------------------------------------------------------------------------------------------------------------


def child(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_second_owner_is_refused_and_told_the_process(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "s.duckdb"
    with child(HOLD, str(path)) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "open\n"
        with pytest.raises(StoreInUseError, match=rf"process {owner.pid} .*stop process {owner.pid}.*--store PATH"):
            DuckStore.open(path)
        owner.kill()
        owner.communicate()
    with DuckStore.open(path) as store:  # a dead owner holds nothing, whatever its lock file says
        assert store.is_empty()


def test_the_same_process_is_refused_too(tmp_path: Path) -> None:
    with DuckStore.open(tmp_path / "s.duckdb"):
        with pytest.raises(StoreInUseError, match=f"process {os.getpid()}"):
            DuckStore.open(tmp_path / "s.duckdb")
        assert read_holder(tmp_path / "s.duckdb") is not None


def test_the_lock_file_says_who_since_when_and_where(tmp_path: Path) -> None:
    with DuckStore.open(tmp_path / "s.duckdb"):
        said = json.loads(lock_path(tmp_path / "s.duckdb").read_text())
    assert said.keys() == {"pid", "started", "endpoint"}
    assert said["pid"] == os.getpid()
    assert said["endpoint"] is None
    assert datetime.fromisoformat(said["started"]).tzinfo is not None
    assert lock_path(tmp_path / "s.duckdb").read_text() == ""  # let go


def test_another_tool_that_has_the_file_open_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with child(hold, str(path)) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StoreInUseError, match=f"process {other.pid}, which is no stopcause"):
            DuckStore.open(path)
        other.communicate("")
    DuckStore.open(path).close()


def test_closing_twice_is_fine_and_a_closed_store_says_so(tmp_path: Path) -> None:
    store = DuckStore.open(tmp_path / "s.duckdb")
    store.close()
    store.close()
    with pytest.raises(StoreError):
        store.is_empty()


def test_a_folder_that_cannot_be_written_is_an_error_with_a_way_out(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with without_privileges(), pytest.raises(StoreError, match="--store PATH"):
        DuckStore.open(open_folder / "s.duckdb")


def test_a_path_below_a_file_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="--store PATH"):
        DuckStore.open(tmp_path / "file" / "s.duckdb")


# In and out -----------------------------------------------------------------------------------------------------------


def test_a_verdict_comes_back_as_it_went_in(store: DuckStore) -> None:
    full = verdict(
        judge_again_at=T0 + timedelta(microseconds=1),
        findings=("terminal_outranked=natural", "forced_wrapup"),
        step_limit=20.0,
        steps=2**53 - 1,
        cost_usd=0.1,
        settled=False,
        agent="агент",
    )
    store.commit([], [full])
    assert store.current(["r1", "r2"]) == {("r1", 1): full}
    assert store.history("r1") == [full]
    assert store.rows() == [full]


def test_records_come_back_with_their_runs_opening(store: DuckStore) -> None:
    later = T0 + timedelta(hours=5)
    store.commit([record(line=b'{"a":1}'), record(line='{"b":"é"}'.encode(), at=later, opened_at=T0), record("r2")], [])
    found = store.records_of(["r1"])
    assert {(each.run_id, each.opened_at, each.line) for each in found} == {
        ("r1", T0, b'{"a":1}'),
        ("r1", T0, '{"b":"é"}'.encode()),
    }
    assert store.records_of([]) == []


def test_few_and_many_runs_are_found_alike(store: DuckStore) -> None:
    store.commit([record(f"r{i}") for i in range(3000)], [])
    few, many = [f"r{i}" for i in range(10)], [f"r{i}" for i in range(2500)]
    assert sorted(line.run_id for line in store.records_of(few)) == sorted(few)
    assert sorted(line.run_id for line in store.records_of(many)) == sorted(many)


def test_known_tells_the_places_of_stored_keys(store: DuckStore) -> None:
    row = record()
    store.commit([row], [])
    later = row.event_at + timedelta(microseconds=1)
    asked = [
        (str(uuid.uuid4()), T0),
        (row.record_id, later),
        (row.record_id, row.event_at),
        (row.record_id.upper(), T0),
    ]
    assert store.known(asked) == {2, 3}
    assert store.known([]) == set()


def test_a_commit_is_all_or_nothing(store: DuckStore) -> None:
    store.commit([record()], [verdict()], (1, 100))
    with pytest.raises(StoreError):
        store.commit([record("r2")], [verdict("r2")], (1, 2**70))
    with pytest.raises(StoreError):
        store.commit([record("r3"), record("r4", record_id="no-uuid")], [], (1, 300))
    assert store.position() == StoredPosition(1, 100)
    assert store.counts().kinds == {"run.stopped": 1}
    store.commit([record("r5")], [], (2, 7))
    assert store.position() == StoredPosition(2, 7)
    assert store._ask("SELECT count(*) FROM journal_position") == [(1,)]


def test_errors_of_the_engine_do_not_quote_values(store: DuckStore) -> None:
    with pytest.raises(StoreError) as caught:
        store.commit([record(record_id="a-secret-value")], [])
    assert "a-secret-value" not in str(caught.value)


def test_resumers_are_found(store: DuckStore) -> None:
    store.commit([record("r1"), record("r2", resumes_run_id="r1"), record("r2", resumes_run_id="r1")], [])
    assert store.resumers_of(["r1", "r2"]) == [("r1", "r2")]
    assert store.resumers_of([]) == []


def supersede(old: VerdictRow, **changes: object) -> list[VerdictRow]:
    return [old._replace(sign=-1), old._replace(revision=old.revision + 1, **changes)]  # type: ignore[arg-type]


def test_the_newest_revision_is_current_and_history_keeps_all(store: DuckStore) -> None:
    first = verdict(judge_again_at=T0)
    second, third = supersede(first, verdict="STUCK", judge_again_at=None), []
    third = supersede(second[1], verdict="UNCERTAIN")
    store.commit([], [first])
    store.commit([], second)
    store.commit([], third)
    assert store.current(["r1"]) == {("r1", 1): third[1]}
    assert store.rows() == [third[1]]
    assert store.history("r1") == [first, second[1], third[1]]
    assert store.due(T0) == []
    assert store._ask("SELECT sum(sign)::INTEGER FROM verdicts") == [(1,)]


def test_due_is_at_the_moment_itself_and_not_before(store: DuckStore) -> None:
    store.commit([], [verdict("r1", judge_again_at=T0), verdict("r2", judge_again_at=None)])
    assert store.due(T0 - timedelta(microseconds=1)) == []
    assert store.due(T0) == ["r1"]


def test_an_attempt_that_is_no_longer_judged_is_only_seen_by_who_judges(store: DuckStore) -> None:
    ghost = verdict(attempt=7, judge_again_at=T0)
    store.commit([], [verdict(), ghost])
    store.commit([], [ghost._replace(sign=-1)])
    assert store.current(["r1"])["r1", 7].sign == -1
    assert [row.attempt for row in store.rows()] == [1]
    assert store.due(T0) == []
    assert store.counts().attempts == 1


def test_rows_are_of_the_latest_attempt_newest_first_and_filtered(store: DuckStore) -> None:
    hour = timedelta(hours=1)
    store.commit(
        [],
        [
            verdict("a", agent="x", environment="prod", is_latest=False),
            verdict("a", attempt=2, verdict="WAITING", agent="x", environment="prod"),
            verdict("b", opened_at=T0 + hour, agent="y"),
            verdict("c", opened_at=T0 + 2 * hour, verdict=None, agent="x"),
        ],
    )
    assert [(row.run_id, row.attempt) for row in store.rows()] == [("c", 1), ("b", 1), ("a", 2)]
    assert [row.run_id for row in store.rows(verdicts=["FAILED"])] == ["b"]
    assert [row.run_id for row in store.rows(verdicts=[None, "WAITING"])] == ["c", "a"]
    assert [row.run_id for row in store.rows(agent="x", environment="prod")] == ["a"]
    assert [row.run_id for row in store.rows(since=T0 + hour)] == ["c", "b"]
    assert [row.run_id for row in store.rows(since=T0 + hour + timedelta(microseconds=1))] == ["c"]
    assert [row.run_id for row in store.rows(limit=2)] == ["c", "b"]
    assert len(store.rows(limit=None)) == 3


def test_counts(store: DuckStore) -> None:
    assert store.counts() == (0, 0, 0, {}, {})
    assert store.newest_at(T0 + timedelta(days=9)) is None
    store.commit(
        [record(), record(None, kind="triage.updated", at=T0 + timedelta(days=1))],
        [
            verdict(is_latest=False),
            verdict(attempt=2, verdict=None),
            *supersede(verdict("r2"), verdict="STUCK"),
            verdict("r2"),
        ],
    )
    assert store.counts() == (2, 2, 3, {"run.stopped": 1, "triage.updated": 1}, {None: 1, "STUCK": 1})
    assert store.newest_at(T0 + timedelta(days=9)) == T0  # what people say is no news of a run
    assert store.newest_at(T0 - timedelta(seconds=1)) is None


def test_a_run_is_found_by_its_name_or_the_only_head_or_tail_of_it(store: DuckStore) -> None:
    store.commit([], [verdict(name) for name in ("abc-1", "abc-2", "xyz-1", "abc")])
    assert store.find_run("abc") == "abc"
    assert store.find_run("xyz") == "xyz-1"
    assert store.find_run("-2") == "abc-2"
    with pytest.raises(NotFoundError, match=r"'abc-' is not one run: abc-1, abc-2\."):
        store.find_run("abc-")
    for nothing in ("", "nope", "%"):
        with pytest.raises(NotFoundError, match="No run is called"):
            store.find_run(nothing)


def test_at_most_five_candidates_are_listed(store: DuckStore) -> None:
    store.commit([], [verdict(f"run-{i}") for i in range(9)])
    with pytest.raises(NotFoundError, match="run-0, run-1, run-2, run-3, run-4 and more"):
        store.find_run("run-")


def test_stale_rows_are_counted_by_hour(store: DuckStore) -> None:
    hour = int(T0.timestamp() // 3600)
    old = verdict("a")
    store.commit([], [old, verdict("b", policy_digest="d2"), verdict("c", opened_at=T0 + timedelta(hours=1))])
    assert store.stale("d2", "1") == [(hour, 1), (hour + 1, 1)]
    assert store.stale_runs("d2", "1", (hour, hour)) == ["a"]
    store.commit([], supersede(old, policy_digest="d2"))
    assert store.stale("d2", "1") == [(hour + 1, 1)]
    assert store.stale_runs("d2", "1", (hour, hour)) == []
    assert len(store.stale("d2", "2")) == 2


def test_a_policy_is_kept_once(store: DuckStore) -> None:
    for _ in range(2):
        store.note_policy(("d1", "prod", "1", "[policy]\n"), T0)
    assert store._ask("SELECT digest, id, version, source FROM policies") == [("d1", "prod", "1", "[policy]\n")]


def test_threads_read_while_one_writes(store: DuckStore) -> None:
    store.commit([record()], [verdict()])
    problems: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(40):
                assert store.find_run("r1") == "r1"
                assert len(store.records_of(["r1"])) == 1
        except BaseException as error:  # noqa: BLE001 - handed to the test
            problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(20):
        store.commit([record(f"w{i}")], [])
    for reader in readers:
        reader.join()
    assert problems == []


def test_what_is_committed_survives_the_next_opening(tmp_path: Path) -> None:
    with DuckStore.open(tmp_path / "s.duckdb") as store:
        store.commit([record()], [verdict()], (3, 9))
    with DuckStore.open(tmp_path / "s.duckdb") as store:
        assert store.position() == (3, 9)
        assert store.rows() == [verdict()]
        assert not store.is_empty()


# Waits ----------------------------------------------------------------------------------------------------------------


def wait(**changes: object) -> StoredWait:
    known = StoredWait("a1", "tool_call", "pay", "team:x", T0, T0 + timedelta(hours=1), None, None, None, ("overdue",))
    return known._replace(**changes)  # type: ignore[arg-type]


def test_waits_come_back_as_they_went_in(store: DuckStore) -> None:
    waits = (wait(), wait(approval_id=None, missing=(), ended_at=T0, resolution="denied"))
    store.commit([], [verdict("none"), verdict("two", waits=waits), verdict("one", waits=waits[:1])])
    assert {row.run_id: row.waits for row in store.rows()} == {"none": (), "two": waits, "one": waits[:1]}


def test_the_view_of_runs_has_the_current_row_of_the_latest_attempt(store: DuckStore) -> None:
    store.commit(
        [],
        [
            verdict("a", is_latest=False),
            verdict("a", attempt=2, verdict="STUCK"),
            verdict("b"),
            *supersede(verdict("b"), verdict="WAITING"),
        ],
    )
    found = store.ask("SELECT run_id, attempt, verdict FROM runs ORDER BY run_id").rows
    assert found == [("a", 2, "STUCK"), ("b", 1, "WAITING")]
    assert columns_of(store, "runs") == columns_of(store, "verdicts")
