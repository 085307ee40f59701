"""Snapshots that other tools open, digests of rows, files that get their name last, the way back from an upgrade."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import duckdb
import pytest

from stopcause.errors import InputError, StoreError, StoreFullError, StoreVersionError
from stopcause.store import beside, digest, offline, way_back
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.migrations import MIGRATIONS, Migration
from stopcause.store.snapshot import Snapshot, write_snapshot
from tests.support import days
from tests.support.machine import lacking

ROOT = Path(__file__).parents[2]
OLDER = ROOT / ".envs" / "duckdb15" / "bin" / "python"
OLDER_READER = """
import duckdb, importlib.util, sys, types
assert duckdb.__version__.startswith("1.5."), duckdb.__version__
errors = types.ModuleType("stopcause.errors")  # that environment has nothing else of ours
errors.StoreError = Exception
sys.modules |= {"stopcause": types.ModuleType("stopcause"), "stopcause.errors": errors}
spec = importlib.util.spec_from_file_location("digest", sys.argv[2])
digest = sys.modules["digest"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(digest)
engine = duckdb.connect(sys.argv[1], read_only=True)
print(*engine.execute("SELECT count(*), sum(len(waits)) FROM runs").fetchall()[0])
print(digest.table_digest(engine, "verdicts").text)
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.duckdb"
    days.filled(path).close()
    return path


def snapshot_of(store: Path, target: Path) -> Snapshot:
    with DuckStore.open(store) as opened:
        opened.close_engine()
        return write_snapshot(store, target, days.NOW, ("1", "2"))


# Snapshots ------------------------------------------------------------------------------------------------------------


def test_a_snapshot_has_verdicts_and_what_holds_now_and_no_line(store: Path, tmp_path: Path) -> None:
    made = snapshot_of(store, tmp_path / "read.duckdb")

    assert (made.records, made.runs) == (87, 30)
    with duckdb.connect(str(tmp_path / "read.duckdb"), read_only=True) as engine:
        assert engine.execute("SELECT count(*) FROM runs").fetchall() == [(30,)]
        assert engine.execute("SELECT records, runs FROM snapshot").fetchall() == [(87, 30)]
        columns = {name for (name,) in engine.execute("SELECT column_name FROM duckdb_columns()").fetchall()}
        assert not columns & {"line", "source"}
    data = (tmp_path / "read.duckdb").read_bytes()
    assert b"thread-7.step-2" not in data
    assert b"xxxxxxxx" not in data


def test_a_reader_of_the_old_snapshot_keeps_it(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "read.duckdb"
    snapshot_of(store, target)
    with duckdb.connect(str(target), read_only=True) as engine:
        engine.execute("SELECT count(*) FROM runs").fetchall()
        with days.Keeper.open(store, days.DEFAULT_POLICY, days.NOW) as keeper:
            keeper.accept(days.runs_of(9, 10), days.NOW)
        snapshot_of(store, target)
        assert engine.execute("SELECT count(*) FROM runs").fetchall() == [(30,)]
    with duckdb.connect(str(target), read_only=True) as engine:
        assert engine.execute("SELECT count(*) FROM runs").fetchall() == [(40,)]
    assert days.hidden(tmp_path) == []


def test_a_snapshot_takes_the_place_of_nothing_but_a_snapshot(store: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine", "utf-8")

    for target in (notes, store, tmp_path):
        with pytest.raises(InputError):
            snapshot_of(store, target)
    assert notes.read_text("utf-8") == "mine"


def test_a_store_that_was_deleted_meanwhile_is_said_to_be_so(store: Path, tmp_path: Path) -> None:
    with DuckStore.open(store) as opened:
        opened.close_engine()
        store.unlink()
        with pytest.raises(StoreError, match="deleted while this ran"):
            write_snapshot(store, tmp_path / "read.duckdb", days.NOW, ("1", "2"))
    assert not (tmp_path / "read.duckdb").exists()


@pytest.mark.framework
def test_duckdb_1_5_reads_a_snapshot_and_finds_the_same_rows(store: Path, tmp_path: Path) -> None:
    if not OLDER.exists():
        lacking("needs DuckDB 1.5 in an environment of its own: make .envs/duckdb15/ready")
    target = tmp_path / "read.duckdb"
    snapshot_of(store, target)
    script = tmp_path / "older.py"
    script.write_text(OLDER_READER, "utf-8")

    command = [str(each) for each in (OLDER, script, target, digest.__file__)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert said == ["30", "3", offline.file_digest(store)["verdicts"].text]


# Digests --------------------------------------------------------------------------------------------------------------


def test_the_digest_is_the_same_in_any_order_and_differs_where_a_row_does() -> None:
    with duckdb.connect() as engine:
        rows = "(1, 'a', ['x', NULL], 0.1::DOUBLE), (2, NULL, [], NULL), (2, NULL, [], NULL)"
        engine.execute(f"CREATE TABLE one AS FROM (VALUES {rows}) AS t(n, s, l, d)").fetchall()
        engine.execute("CREATE TABLE two AS SELECT d, l, s, n FROM one ORDER BY n DESC").fetchall()
        first = digest.table_digest(engine, "one")
        assert digest.table_digest(engine, "two") == first
        for change in ("s = ''", "l = ['x', '']", "l = ['x']", "d = 0.10000000000000002", "n = 3"):
            engine.execute("CREATE OR REPLACE TABLE other AS FROM one WHERE n = 1").fetchall()
            engine.execute(f"UPDATE other SET {change}").fetchall()  # noqa: S608
            engine.execute("INSERT INTO other FROM one WHERE n = 2").fetchall()
            assert digest.table_digest(engine, "other").text != first.text, change
        engine.execute("CREATE TABLE fewer AS SELECT DISTINCT * FROM one").fetchall()
        assert digest.table_digest(engine, "fewer").text != first.text


def test_the_digests_of_parts_add_up(store: Path) -> None:
    with duckdb.connect(str(store), read_only=True) as engine:
        engine.execute("CREATE TEMP VIEW a AS FROM records WHERE attempt = 1 AND kind = 'run.started'").fetchall()
        engine.execute("CREATE TEMP VIEW b AS FROM records WHERE NOT (kind = 'run.started')").fetchall()
        parts = digest.table_digest(engine, "a").plus(digest.table_digest(engine, "b"))
        assert parts == digest.table_digest(engine, "records")


# Names that come last -------------------------------------------------------------------------------------------------


def test_what_fails_on_its_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.write_text("old", "utf-8")

    def write() -> None:
        with beside.written(target) as draft:
            draft.write_text("new", "utf-8")
            raise OSError(28, os.strerror(28))

    with pytest.raises(StoreFullError, match="disk took no more"):
        write()

    assert target.read_text("utf-8") == "old"
    assert days.hidden(tmp_path) == []


def test_what_a_killed_process_left_goes_the_next_time(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])  # noqa: S607
    gone.wait()
    (tmp_path / f".t.{gone.pid}.part").write_text("half", "utf-8")
    (tmp_path / f".t.{os.getppid()}.part").write_text("of one that lives", "utf-8")

    with beside.written(tmp_path / "t") as draft:
        draft.write_text("new", "utf-8")

    assert days.hidden(tmp_path) == [f".t.{os.getppid()}.part"]


# The way back ---------------------------------------------------------------------------------------------------------


def test_what_an_older_version_wrote_is_kept_beside_before_its_shape_changes(store: Path) -> None:
    days.as_of_0001(store)
    before = store.read_bytes()

    DuckStore.open(store).close()

    (copy,) = way_back.copies(store)
    assert copy.name == "s.duckdb.before-0002"
    assert copy.read_bytes() == before
    assert offline.steps_of(store) == [step.name for step in MIGRATIONS]


def test_the_copy_is_made_once(store: Path) -> None:
    days.as_of_0001(store)
    DuckStore.open(store).close()
    (copy,) = way_back.copies(store)
    made = copy.stat().st_mtime_ns

    DuckStore.open(store).close()

    assert copy.stat().st_mtime_ns == made


def test_a_store_without_rows_and_one_that_is_up_to_date_need_no_copy(store: Path, tmp_path: Path) -> None:
    DuckStore.open(store).close()
    empty = tmp_path / "empty.duckdb"
    DuckStore.open(empty).close()
    days.as_of_0001(empty)
    DuckStore.open(empty).close()

    assert way_back.copies(store) == way_back.copies(empty) == []


def test_an_upgraded_store_has_all_of_its_runs_judged_anew(store: Path) -> None:
    days.as_of_0001(store)

    with days.Keeper.open(store, days.DEFAULT_POLICY, days.NOW) as keeper:
        assert keeper.rejudge(days.NOW) == 30
        assert keeper.store.counts().runs == 30


def test_an_older_version_names_the_copy_to_go_back_to_and_reads_on_from_it(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("CREATE TABLE later (n INT)").fetchall()

    newest = Migration("0999_later", later)
    monkeypatch.setattr("stopcause.store.way_back.migrate.__defaults__", ((*MIGRATIONS, newest),))
    monkeypatch.setattr("stopcause.store.way_back.pending.__defaults__", ((*MIGRATIONS, newest),))
    with days.Keeper.open(store, days.DEFAULT_POLICY, days.NOW) as keeper:
        keeper.accept(days.runs_of(5, 10), days.NOW)
    monkeypatch.undo()

    with pytest.raises(StoreVersionError, match=r"mv .*s\.duckdb\.before-0999 .*s\.duckdb "):
        DuckStore.open(store)
    store.with_name("s.duckdb.before-0999").replace(store)

    with days.Keeper.open(store, days.DEFAULT_POLICY, days.NOW) as keeper:
        assert keeper.store.counts().runs == 40  # what came after the upgrade is read from the journal


def test_no_room_for_the_copy_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days.as_of_0001(store)
    before = store.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(StoreFullError, match="before-0002"):
        DuckStore.open(store)

    assert store.read_bytes() == before
    assert days.hidden(store.parent) == []


def test_a_snapshot_takes_the_place_of_snapshots_only(store: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "sales.duckdb")) as theirs:
        theirs.execute("CREATE TABLE sales AS SELECT 1 AS amount").fetchall()
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(store.read_bytes())  # a store that was moved away from its journal
    for target in (tmp_path / "sales.duckdb", copy):
        before = target.read_bytes()
        with pytest.raises(InputError, match="is no snapshot"):
            snapshot_of(store, target)
        assert target.read_bytes() == before


def test_only_copies_of_ours_are_copies(tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    for name in ("s.duckdb.before-0002", "s.duckdb.before-my-experiment.tar", "s.duckdb.before-upgrade"):
        (tmp_path / name).touch()
    (tmp_path / "s.duckdb.before-0001").mkdir()
    assert [each.name for each in way_back.copies(store)] == ["s.duckdb.before-0002"]
