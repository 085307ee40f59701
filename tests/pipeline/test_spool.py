"""Taking a spool in: each record once, a dead process's open runs are lost, nothing goes before it is in a store."""

from __future__ import annotations

import errno
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import StoreFullError
from stopcause.pipeline import spool as module
from stopcause.pipeline import spool_files
from stopcause.pipeline.ingest import ingest
from stopcause.pipeline.keeper import Keeper, journal_folder
from stopcause.pipeline.spool import take_in
from stopcause.pipeline.spool_files import TAKEN, has_news, has_records
from stopcause.receipts.spool import Spool
from tests.support.spooled import NOW, left, line, records, started, stopped, taken_in, verdicts

LATER = NOW + timedelta(hours=2)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "s.duckdb"


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def node_file(spool: Path, *lines: bytes, pid: int = 2**22 + 1, quiet_s: float = 0) -> Path:
    """A file as the hook for Node makes it; no process can have that number."""
    spool.mkdir(exist_ok=True)
    path = spool / f"ai-sdk-{pid}-9f3a1c2e.ndjson"
    path.write_bytes(b"".join(each + b"\n" for each in lines))
    at = path.stat().st_mtime - quiet_s
    os.utime(path, (at, at))
    return path


# Dead processes


def test_an_open_run_of_a_dead_process_is_lost_and_the_file_goes(store: Path, spool: Path) -> None:
    left(spool, started("r1"), started("r2"), stopped("r2"))

    taken = taken_in(store, spool)

    assert (taken.files, taken.records, taken.lost, taken.removed) == (1, 4, ("r1",), 1)
    assert verdicts(store) == {"r1": "FAILED process_lost", "r2": "FALSE_COMPLETE no_contract"}
    assert list(spool.iterdir()) == []


def test_a_run_that_waits_is_not_lost_with_its_process(store: Path, spool: Path) -> None:
    wait = {"approval_id": "a1", "state": "requested", "kind": "tool_call", "tool": "pay"}
    left(spool, started("r1"), line("run.stopped", "r1", 50, stop_cause="approval_required", approvals=[wait]))

    assert taken_in(store, spool).lost == ()
    assert verdicts(store)["r1"].startswith("WAITING_UNROUTED")


def test_a_receipt_that_comes_after_all_is_believed_before_a_death(store: Path, spool: Path) -> None:
    left(spool, started("r1"))
    taken_in(store, spool)
    left(spool, stopped("r1", 5))

    assert taken_in(store, spool).lost == ()
    assert verdicts(store) == {"r1": "FALSE_COMPLETE no_contract"}


def test_a_death_is_one_record_however_often_the_file_is_taken_in(
    store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left(spool, started("r1"), line("run.progress", "r1", 10))
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", refuse(PermissionError(errno.EPERM, "not permitted")))
        assert (taken_in(store, spool).removed, path.exists()) == (0, True)
    path.with_name(path.name + TAKEN).unlink(missing_ok=True)

    again = taken_in(store, spool)

    assert (again.records, again.removed) == (0, 1)
    assert records(store) == [("run.died", "r1"), ("run.progress", "r1"), ("run.started", "r1")]


def test_the_runs_of_a_large_file_go_on_in_the_next_one(store: Path, spool: Path) -> None:
    writer = Spool(spool, file_bytes=1)
    writer.write([started("r1")])
    writer.write([line("run.progress", "r1", 55)])

    alive = taken_in(store, spool)
    assert (alive.files, alive.removed, alive.lost) == (2, 1, ())
    assert verdicts(store) == {"r1": "RUNNING running"}

    writer.write([line("run.progress", "r1", 50)])
    writer.close()
    dead = taken_in(store, spool)
    assert (dead.removed, dead.lost) == (2, ("r1",))
    assert [kind for kind, _ in records(store)] == ["run.died", "run.progress", "run.progress", "run.started"]


def test_a_line_that_a_death_left_half_is_dropped_and_counted(store: Path, spool: Path) -> None:
    path = left(spool, started("r1"), stopped("r1"))
    with path.open("ab") as file:
        file.write(started("r2")[:40])

    taken = taken_in(store, spool)

    assert (taken.cut, taken.set_aside, taken.lost, taken.removed) == (1, 0, (), 1)
    assert list(verdicts(store)) == ["r1"]


def test_a_last_line_that_lacks_only_its_newline_is_whole(store: Path, spool: Path) -> None:
    path = left(spool, started("r1"))
    with path.open("ab") as file:
        file.write(stopped("r1"))

    taken = taken_in(store, spool)

    assert (taken.cut, taken.lost) == (0, ())
    assert verdicts(store) == {"r1": "FALSE_COMPLETE no_contract"}


def test_of_a_file_with_only_a_header_nothing_stays(store: Path, spool: Path) -> None:
    left(spool)

    assert taken_in(store, spool).removed == 1
    assert list(spool.iterdir()) == []


# Living processes


def test_of_a_living_process_only_what_is_new_is_read_and_nothing_goes(
    store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Spool(spool)
    writer.write([started("r1")])
    assert taken_in(store, spool).records == 1
    taken_before = sum(path.stat().st_size for path in spool.glob("*.ndjson"))
    read, begins = spool_files.Stretch.read, []

    def watched(self: spool_files.Stretch, size: int) -> bytes:
        begins.append(self.at)
        return read(self, size)

    monkeypatch.setattr(spool_files.Stretch, "read", watched)

    assert taken_in(store, spool).files == 0
    writer.write([stopped("r1")])
    taken = taken_in(store, spool)
    writer.close()

    assert (taken.files, taken.records, taken.repeated, min(begins)) == (1, 1, 0, taken_before)
    assert {path.suffix for path in spool.iterdir()} == {".ndjson", TAKEN}


def test_a_line_that_is_being_written_is_left_for_the_next_time(store: Path, spool: Path) -> None:
    path = node_file(spool, started("r1"))
    with path.open("ab") as file:
        file.write(stopped("r1")[:30])
        file.flush()
        first = taken_in(store, spool)
        file.write(stopped("r1")[30:] + b"\n")
    second = taken_in(store, spool)

    assert (first.records, first.cut, second.records, second.set_aside) == (1, 0, 1, 0)
    assert verdicts(store) == {"r1": "FALSE_COMPLETE no_contract"}


def test_what_a_disk_refused_after_it_was_read_is_read_anew(store: Path, spool: Path) -> None:
    path = node_file(spool, started("r1"), stopped("r1"))
    taken_in(store, spool)
    node_file(spool, started("r1"), line("run.progress", "r1", 40, sign="artifact", steps=7), stopped("r1", 20))
    path.write_bytes(path.read_bytes() + b"")

    taken_in(store, spool)

    assert ("run.progress", "r1") in records(store)


@pytest.mark.parametrize("noted", [b"", b"[]", b'{"x": 1}', b'{"x": ["a", 2]}', b"\xff"])
def test_a_hint_that_cannot_be_read_costs_only_reading_again(store: Path, spool: Path, noted: bytes) -> None:
    path = node_file(spool, started("r1"), stopped("r1"))
    taken_in(store, spool)
    path.with_name(path.name + TAKEN).write_bytes(noted)

    taken = taken_in(store, spool)

    assert (taken.records, taken.repeated) == (0, 2)


def test_a_store_that_is_made_anew_gets_it_all(store: Path, spool: Path) -> None:
    writer = Spool(spool)
    writer.write([started("r1")])
    taken_in(store, spool)
    for path in store.parent.glob("s.duckdb*"):
        path.rename(path.with_name(f"old-{path.name}"))

    assert taken_in(store, spool).records == 1
    writer.close()


# Files without a lock


def test_an_open_run_of_a_process_without_a_lock_is_left_to_its_lease(store: Path, spool: Path) -> None:
    node_file(spool, started("r1"), quiet_s=9)

    assert taken_in(store, spool).lost == ()
    assert verdicts(store) == {"r1": "RUNNING running"}
    assert verdicts(store, NOW + timedelta(minutes=6)) == {"r1": "STUCK lease_expired"}


@pytest.mark.parametrize(
    ("pid", "quiet_s", "goes"), [(2**22 + 1, 4000, True), (2**22 + 1, 60, False), (0, 4000, False)]
)
def test_such_a_file_goes_when_its_process_is_no_more_and_it_was_quiet_for_an_hour(
    store: Path, spool: Path, pid: int, quiet_s: float, goes: bool
) -> None:
    path = node_file(spool, started("r1"), stopped("r1"), pid=pid or os.getpid(), quiet_s=quiet_s)

    taken = taken_in(store, spool)

    assert (taken.records, taken.removed, path.exists()) == (2, int(goes), not goes)


def test_a_file_that_is_called_otherwise_stays(store: Path, spool: Path) -> None:
    path = node_file(spool, started("r1"), quiet_s=9999)
    other = path.rename(spool / "mine.ndjson")

    assert (taken_in(store, spool).records, other.exists()) == (1, True)


# Bad lines, faults


def test_bad_lines_are_set_aside_beside_the_file_and_cost_no_other(store: Path, spool: Path) -> None:
    path = left(spool, started("r1"), b"not a record", stopped("r1"), b'{"schema":"stopcause/1","kind":"run.st')

    taken = taken_in(store, spool)

    assert (taken.records, taken.set_aside, taken.removed) == (2, 2, 1)
    (kept,) = taken.rejected_files
    assert kept == spool / f"{path.name}.rejected.jsonl"
    assert [json.loads(each)["line"] for each in kept.read_bytes().splitlines()] == [3, 5]
    assert taken_in(store, spool).files == 0


def test_bad_lines_of_a_living_process_are_all_kept(store: Path, spool: Path) -> None:
    writer = Spool(spool)
    for text in (b"one", b"two"):
        writer.write([text])
        taken_in(store, spool)
    writer.close()
    taken_in(store, spool)

    kept = sorted(spool.glob("*.rejected.jsonl"))
    assert [json.loads(path.read_bytes())["raw"] for path in kept] == ["two", "one"]  # NAME.2..., NAME...


def refuse(error: BaseException):  # type: ignore[no-untyped-def]  # noqa: ANN201 - any function's place
    def refused(*_: object, **__: object) -> None:
        raise error

    return refused


def test_where_the_store_takes_no_more_nothing_goes(store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = left(spool, started("r1"))
    before = path.read_bytes()
    with monkeypatch.context() as full:
        full.setattr(Keeper, "add", refuse(StoreFullError("full")))
        with pytest.raises(StoreFullError):
            taken_in(store, spool)
    assert {each.name: each.read_bytes() for each in spool.iterdir()} == {path.name: before}

    assert taken_in(store, spool).lost == ("r1",)


def test_a_taker_that_dies_after_the_store_has_it_all_loses_and_doubles_nothing(
    store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left(spool, started("r1"), started("r2"), stopped("r2"))
    with monkeypatch.context() as killed:
        killed.setattr(module._Part, "finish", refuse(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            taken_in(store, spool)
    assert path.exists()
    before = records(store)

    again = taken_in(store, spool)

    assert (again.records, again.removed) == (0, 1)
    assert records(store) == before


def test_a_file_that_cannot_be_read_costs_no_other(store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = left(spool, started("r1")), left(spool, started("r2"))
    openat = os.open

    def guarded(path: str, *rest: int) -> int:
        if Path(path) == bad:
            raise PermissionError(errno.EACCES, "Permission denied", str(bad))
        return openat(path, *rest)

    monkeypatch.setattr(os, "open", guarded)
    taken = taken_in(store, spool)

    assert [each.filename for each in taken.unreadable] == [str(bad)]
    assert (taken.lost, bad.exists(), good.exists()) == (("r2",), True, False)


def test_a_file_whose_disk_fails_stays(store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = left(spool, started("r1"), stopped("r1")), left(spool, started("r2"))
    read = spool_files.Stretch.read
    inode = bad.stat().st_ino

    def failing(self: spool_files.Stretch, size: int) -> bytes:
        if os.fstat(self.file.fd).st_ino == inode:
            self.file.is_broken = True
            return b""
        return read(self, size)

    with monkeypatch.context() as disk:
        disk.setattr(spool_files.Stretch, "read", failing)
        taken_in(store, spool)
    assert (bad.exists(), good.exists()) == (True, False)
    assert list(verdicts(store)) == ["r2"]

    assert taken_in(store, spool).records == 2


def test_of_a_start_that_is_no_record_nobody_dies(store: Path, spool: Path) -> None:
    left(spool, line("run.started", "r1", lease_s=-1), started("r2"))

    taken = taken_in(store, spool)

    assert (taken.lost, taken.set_aside) == (("r2",), 1)


def test_no_spool_is_fine(store: Path, spool: Path) -> None:
    assert taken_in(store, spool) == module.TakenIn()
    assert not has_records(spool)
    assert not has_news(spool, store)


# Two stores, two takers


def test_two_stores_both_see_the_living_and_one_of_them_gets_the_end(tmp_path: Path, spool: Path) -> None:
    one, two = tmp_path / "one.duckdb", tmp_path / "two.duckdb"
    writer = Spool(spool)
    writer.write([started("r1")])
    assert [taken_in(each, spool).records for each in (one, two)] == [1, 1]
    writer.close()

    assert [taken_in(each, spool).lost for each in (one, two)] == [("r1",), ()]
    assert (verdicts(one), verdicts(two)) == ({"r1": "FAILED process_lost"}, {"r1": "RUNNING running"})


def test_a_file_that_another_store_is_taking_in_is_left_alone(tmp_path: Path, spool: Path) -> None:
    path = left(spool, started("r1"))
    with spool_files.SpoolFile(path, None) as held:
        assert held.is_dead
        assert taken_in(tmp_path / "two.duckdb", spool).lost == ()
    assert path.exists()


def test_a_file_that_another_store_has_just_taken_away_is_not_taken_again(
    tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left(spool, started("r1"))
    lock = spool_files.SpoolFile._lock

    def late(file: spool_files.SpoolFile) -> bool:
        file.path.unlink()
        return lock(file)

    monkeypatch.setattr(spool_files.SpoolFile, "_lock", late)

    assert (taken_in(tmp_path / "two.duckdb", spool).lost, path.exists()) == ((), False)


# What is worth a store's opening


def test_what_is_news(store: Path, spool: Path) -> None:
    writer = Spool(spool)
    writer.write([started("r1")])
    assert (has_records(spool), has_news(spool, store)) == (True, True)
    taken_in(store, spool)
    assert not has_news(spool, store)
    writer.write([stopped("r1")])
    assert has_news(spool, store)
    taken_in(store, spool)
    writer.close()
    assert has_news(spool, store)
    taken_in(store, spool)
    assert (has_records(spool), has_news(spool, store)) == (False, False)


def test_what_lies_about_is_swept_up(store: Path, spool: Path) -> None:
    living = node_file(spool, started("r1"))
    old, fresh, orphan = spool / ".1-ab.new", spool / ".2-cd.new", spool / "py-3-ef.ndjson.taken"
    for path in (old, fresh, orphan):
        path.write_bytes(b"")
    os.utime(old, (1, 1))

    taken_in(store, spool)

    assert {path.name for path in spool.iterdir()} == {living.name, living.name + TAKEN, fresh.name}


# By hand


def test_a_spool_that_is_ingested_by_hand_is_read_whole_and_left_as_it_is(store: Path, spool: Path) -> None:
    writer = Spool(spool, file_bytes=1)
    writer.write([started("r1")])
    writer.write([stopped("r1")])
    writer.close()
    before = {path: path.read_bytes() for path in spool.iterdir()}

    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        report = ingest([spool], keeper, NOW)

    assert (report.files, report.accepted, report.repeated, report.set_aside) == (2, 2, 1, 0)
    assert {path: path.read_bytes() for path in spool.iterdir()} == before


def test_many_files_are_taken_in_together(store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FILES", 7)
    for n in range(20):
        left(spool, started(f"r{n}"), stopped(f"r{n}"))

    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        taken = take_in(spool, keeper, NOW)

    assert (taken.files, taken.records, taken.removed) == (20, 40, 20)
    assert journal_folder(store).exists()
