"""The doctor on real stores with real faults: each is seen, named with a way out, and nothing is changed by looking."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.pipeline import doctor_files
from stopcause.pipeline.keeper import Keeper, journal_folder
from stopcause.receipts.journal import Journal
from stopcause.render.caller import Hint
from stopcause.render.doctor import State, visit_objects, visit_screen
from stopcause.render.hints import Caller
from stopcause.render.pen import Pen
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.lock import lock_path
from tests.support.machine import without_privileges
from tests.support.visits import NOW, check, keep, line, shown, visited, well

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return well(tmp_path / "s.duckdb")


def test_a_well_store_is_said_to_be(store: Path) -> None:
    found = visited(store)

    assert [each for each in found.checks if each.state is not State.OK] == []
    assert found.is_well
    assert shown(found)[-1] == f"The store is well: {len(found.checks)} checks, nothing to do."


def test_looking_changes_nothing(store: Path) -> None:
    with Journal(journal_folder(store)) as ahead:
        ahead.append([line(run_id="r2")])
    before = content(store), files_of(store)

    visited(store)

    assert (content(store), files_of(store)) == before


def content(store: Path) -> list[list[tuple[Any, ...]]]:
    tables = ("records", "verdicts", "policies", "journal_position", "schema_migrations")
    with DuckStore.open(store) as opened:
        return [opened.ask(f"FROM {table} ORDER BY ALL").rows for table in tables]


def files_of(store: Path) -> dict[str, bytes]:
    files = [path for path in store.parent.rglob("*") if path.is_file() and path != store]
    return {path.name: path.read_bytes() for path in files}


# Stores that cannot be opened


@contextmanager
def process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun (it says so in a line), and waits until its input ends."""
    more = {"PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-c", f"{code}\nprint('begun', flush=True); input()", *arguments)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **more}
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "begun\n"
        try:
            yield other
        finally:
            other.communicate("\n", timeout=20)


OWNS = (
    "import sys, pathlib; from stopcause.store.duckdb_store import DuckStore\n"
    "s = DuckStore.open(pathlib.Path(sys.argv[1]))"
)


def test_a_store_that_another_process_owns_is_looked_at_from_outside(store: Path) -> None:
    (store.parent / "s.duckdb.tmp").mkdir()
    with process(OWNS, str(store)) as owner:
        found = visited(store)

    said = {each.name: each for each in found.checks}
    assert said["store"].state is State.LOOK
    assert f"in use by process {owner.pid} (since " in said["store"].said
    assert said["store"].do == f"ps -fp {owner.pid}"
    assert {"disk", "journal", "spool", "leftovers", "policy"} <= said.keys()
    assert said["leftovers"].state is State.OK
    assert not {"gaps", "clock", "bounds"} & said.keys()
    assert found.is_well


def test_another_tool_that_has_the_file_open_is_bad(store: Path) -> None:
    with process("import sys, duckdb; c = duckdb.connect(sys.argv[1])", str(store)) as other:
        found = check(store, "store")

    assert found.state is State.BAD
    assert f"process {other.pid}, which is no stopcause" in found.said


def test_a_file_that_is_no_database_is_a_line(store: Path) -> None:
    store.write_bytes(b"certainly not a database, and longer than a page would be" * 100)

    found = check(store, "store")

    assert found.state is State.BAD
    assert "is no DuckDB file" in found.said
    assert isinstance(found.do, str)
    assert found.do.startswith("mv ")


def test_a_store_with_broken_blocks_is_a_line_for_each_check_that_meets_them(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    keep(path, *(line(run_id=f"r{i}", ago_s=i, labels={"x": f"{i * 7919:x}"}) for i in range(3000)))
    with path.open("r+b") as file:
        for place in range(3 * 4096 + 100, path.stat().st_size, 4096):
            file.seek(place)
            file.write(b"\xff" * 64)

    found = visited(path)

    assert not found.is_well
    assert any(each.state is State.BAD and each.name not in ("policy", "disk") for each in found.checks)
    assert "Traceback" not in "\n".join(shown(found))


def test_somebody_elses_database_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE theirs (i INTEGER)").fetchall()
    connection.close()

    found = check(path, "store")

    assert found.state is State.BAD
    assert "DuckDB file of something else" in found.said


def test_a_newer_store_is_a_line(store: Path) -> None:
    connection = duckdb.connect(str(store))
    connection.execute("INSERT INTO schema_migrations VALUES ('9999_later', now()::TIMESTAMP)").fetchall()
    connection.close()

    found = check(store, "store")

    assert found.state is State.BAD
    assert "A newer stopcause wrote this store" in found.said


def test_no_store_is_a_line_and_none_is_made(tmp_path: Path) -> None:
    found = visited(tmp_path / "no" / "such.duckdb")

    assert {each.name: each.state for each in found.checks}["store"] is State.LOOK
    assert next(each.do for each in found.checks if each.name == "store") == Hint(("doctor", "--wait"))
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_gone_is_made_again_from_its_journal(store: Path) -> None:
    store.unlink()

    found = check(store, "store")

    assert (found.state, found.do) == (State.LOOK, Hint(("runs",)))
    assert "makes it again from the journal" in found.said
    assert not store.exists()
    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        assert keeper.store.counts().records == 2


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_store_that_may_not_be_touched_is_a_line(mode: int, open_folder: Path) -> None:
    path = open_folder / "s.duckdb"
    keep(path, line())
    open_folder.chmod(0o777)
    path.chmod(mode)
    with without_privileges():
        found = check(path, "store")
    path.chmod(0o600)

    assert found.state is State.BAD
    assert f"{path} may not be read and written by this user" in found.said
    assert str(found.do).startswith("ls -ld ")


def test_a_folder_that_may_not_be_written_is_a_line(open_folder: Path) -> None:
    with without_privileges():
        missing = check(open_folder / "s.duckdb", "store")
        keep_out = check(open_folder / "deep" / "s.duckdb", "store")

    for found in (missing, keep_out):
        assert found.state is State.BAD
        assert "may not be written by this user" in found.said


def test_a_folder_that_nobody_may_look_into_is_a_line(open_folder: Path) -> None:
    inner = open_folder / "inner"
    keep(inner / "s.duckdb", line())
    inner.chmod(0o000)
    with without_privileges():
        found = visited(inner / "s.duckdb")
    inner.chmod(0o755)

    store = next(each for each in found.checks if each.name == "store")
    assert store.state is State.BAD
    assert f"{inner} may not be written by this user" in store.said


def test_a_spool_and_a_journal_that_nobody_may_read_are_lines(open_folder: Path) -> None:
    path = open_folder / "s.duckdb"
    keep(path, line())
    Journal(open_folder / "spool").close()
    for folder in (open_folder, path):
        folder.chmod(0o777)
    lock_path(path).chmod(0o666)
    for folder in (journal_folder(path), open_folder / "spool"):
        folder.chmod(0o000)
    with without_privileges():
        said = {each.name: each for each in visited(path).checks}
    for folder in (journal_folder(path), open_folder / "spool"):
        folder.chmod(0o755)

    assert {said[name].state for name in ("journal", "spool")} == {State.BAD}
    assert "Permission denied" in said["journal"].said
    assert "Permission denied" in said["spool"].said
    assert "gaps" in said


# Files


def test_little_room_is_said(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_files, "_LITTLE", 10**12)
    little = check(store, "disk")
    monkeypatch.setattr(doctor_files, "_TOO_LITTLE", 10**12)
    none = check(store, "disk")

    assert (little.state, none.state) == (State.LOOK, State.BAD)
    assert "free for store, journal, spool" in little.said
    assert str(little.do).startswith("df -h ")


def test_a_journal_ahead_of_the_store_is_said(store: Path) -> None:
    with Journal(journal_folder(store)) as ahead:
        ahead.append([line(run_id="r2"), line(run_id="r3")])

    found = check(store, "journal")

    assert (found.state, found.do) == (State.LOOK, Hint(("runs",)))
    assert "2 lines not in the store yet" in found.said
    keep(store)
    assert check(store, "journal").state is State.OK


def test_a_store_that_has_nothing_of_its_journal_is_behind(store: Path) -> None:
    store.unlink()
    DuckStore.open(store).close()

    assert "2 lines not in the store yet" in check(store, "journal").said


def test_a_line_that_a_crash_cut_off_is_said_before_and_after_it_is_put_aside(store: Path) -> None:
    segment = journal_folder(store) / "00000001.ndjson"
    with segment.open("ab") as file:
        file.write(line()[:40])
    before = check(store, "journal")
    keep(store)
    after = check(store, "journal")

    assert (before.state, after.state) == (State.LOOK, State.LOOK)
    assert "its last line is torn" in before.said
    assert "cut 1 line off, never acknowledged" in after.said


def test_a_journal_that_lost_something_is_bad(store: Path) -> None:
    folder = journal_folder(store)
    segment = folder / "00000001.ndjson"
    whole = segment.read_bytes()

    segment.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    assert "lost its end" in check(store, "journal").said
    segment.write_bytes(b'{"journal":"stopcause/1","segment":1}\n' + b"x" * len(whole))
    assert check(store, "journal").state is State.BAD
    segment.unlink()
    assert "lost its end" in check(store, "journal").said
    (folder / "00000002.ndjson").write_bytes(b'{"journal":"stopcause/1","segment":2}\n')
    (folder / "00000004.ndjson").write_bytes(b'{"journal":"stopcause/1","segment":4}\n')
    assert "segment 00000003 is missing" in check(store, "journal").said


def test_a_store_without_its_journal_is_said(store: Path) -> None:
    journal_folder(store).rename(store.parent / "elsewhere")

    assert check(store, "journal").state is State.LOOK


def test_what_broken_off_work_left_is_said_and_only_that(store: Path) -> None:
    (store.parent / "s.duckdb.tmp").mkdir()
    (store.parent / "s.duckdb.snapshot.new").touch()
    (journal_folder(store) / "00000002.new").touch()
    (store.parent / f".s.duckdb.before-0002.{gone()}.part").touch()
    (store.parent / f".s.duckdb.{os.getpid()}.part").touch()  # somebody still writes it
    (store.parent / "theirs.tmp").touch()

    found = check(store, "leftovers")

    assert found.state is State.LOOK
    assert "4 files" in found.said
    assert "theirs" not in str(found.do)


def gone() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen((sys.executable, "-c", "")) as process:
        return process.pid


def test_lines_that_are_set_aside_are_said(store: Path) -> None:
    (store.parent / "runs.jsonl.rejected.jsonl").write_text("{}\n", "utf-8")

    assert check(store, "set aside").state is State.LOOK


def test_a_log_that_the_last_owner_left_is_said(store: Path) -> None:
    code = (
        f"{OWNS}; s.note_policy(('d', 'i', 'v', 't'), __import__('datetime').datetime.now(__import__('datetime').UTC))"
    )
    with subprocess.Popen(
        (sys.executable, "-c", f"{code}; print(flush=True); input()", str(store)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        owner.stdout.readline()
        owner.kill()

    found = check(store, "store")

    assert found.state is State.LOOK
    assert "ended without closing it" in found.said
    assert check(store, "store").state is State.OK


# Screens


def test_each_fault_has_a_command_and_the_last_line_names_it(store: Path) -> None:
    keep(store, line(run_id="r2", dropped=7, limits=None))
    found = visited(store)

    lines = shown(found)

    assert lines[-1] == "Bad: gaps. Also look at bounds."
    assert "                 stopcause explain r2" in lines
    objects = list(visit_objects(found, Caller("stopcause", Path("s.duckdb"))))
    assert next(each for each in objects if each["check"] == "gaps")["do"] == "stopcause explain r2 --store s.duckdb"
    assert "\x1b[31mbad\x1b[0m   gaps" in "\n".join(visit_screen(found, Caller("stopcause"), Pen(colour=True)))
