"""Backup and restore: what comes back is what was there, and nothing that is not whole ever gets a name."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import InputError, StopcauseError, StoreError, StoreInUseError, StoreVersionError
from stopcause.pipeline import retention
from stopcause.pipeline.backup import BackedUp, restore, write_backup
from stopcause.pipeline.keeper import Keeper, journal_folder, owned
from stopcause.store import beside, offline
from tests.support import days

ROOT = Path(__file__).parents[2]
POLICY = '[policy]\nid = "p"\n'


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    days.filled(folder / "s.duckdb").close()
    return folder / "s.duckdb"


@pytest.fixture
def tar(store: Path, tmp_path: Path) -> Path:
    backed_up(store, tmp_path / "b.tar")
    return tmp_path / "b.tar"


def backed_up(store: Path, target: Path) -> BackedUp:
    with Keeper.open(store, DEFAULT_POLICY, days.NOW) as keeper:
        return write_backup(keeper, target, days.NOW)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def remade(tar: Path, change: Callable[[dict[str, tuple[tarfile.TarInfo, bytes]]], None]) -> Path:
    """Another backup of the same members, changed."""
    with tarfile.open(tar) as old:
        members = {info.name: (info, (old.extractfile(info) or io.BytesIO()).read()) for info in old}
    change(members)
    with tarfile.open(tar, "w") as new:
        for info, data in members.values():
            info.size = len(data) if info.isreg() else 0
            new.addfile(info, io.BytesIO(data) if info.isreg() else None)
    return tar


def changed(name: str, data: bytes) -> Callable[[dict[str, tuple[tarfile.TarInfo, bytes]]], None]:
    def change(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
        members[name] = (members[name][0], data)

    return change


# There and back -------------------------------------------------------------------------------------------------------


def test_a_store_that_was_deleted_comes_back_and_goes_on(store: Path, tmp_path: Path) -> None:
    made = backed_up(store, tmp_path / "b.tar")
    before = offline.file_digest(store)
    lines = days.lines_in(store)
    shutil.rmtree(store.parent)

    found = restore(tmp_path / "b.tar", store)

    assert found.manifest == made.manifest
    assert made.manifest.digest == before.text == offline.file_digest(store).text
    assert (store.parent / "policy.toml").read_text("utf-8") == POLICY
    with Keeper.open(store, DEFAULT_POLICY, days.NOW) as keeper:
        taken = keeper.accept([*days.runs_of(2, 10), *days.runs_of(3, 10)], days.NOW)
        assert (taken.accepted, taken.repeated) == (29, 29)
    assert days.lines_in(store)[: len(lines)] == lines


def test_the_journal_comes_back_too_so_that_the_store_can_be_made_from_it(
    tar: Path, store: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "deep" / "o.duckdb"
    restore(tar, other)
    records = offline.file_digest(other)["records"]
    other.unlink()

    Keeper.open(other, DEFAULT_POLICY, days.NOW).close()

    assert offline.file_digest(other)["records"] == records == offline.file_digest(store)["records"]


def test_two_backups_of_one_store_have_one_digest_and_another_store_has_another(store: Path, tmp_path: Path) -> None:
    first, second = backed_up(store, tmp_path / "1.tar"), backed_up(store, tmp_path / "2.tar")
    with Keeper.open(store, DEFAULT_POLICY, days.NOW) as keeper:
        keeper.accept(days.runs_of(3, 1), days.NOW)

    assert first.manifest.digest == second.manifest.digest != backed_up(store, tmp_path / "2.tar").manifest.digest
    assert days.hidden(tmp_path) == []


def test_a_store_whose_file_was_deleted_is_backed_up_from_its_journal(store: Path, tmp_path: Path) -> None:
    store.unlink()

    assert backed_up(store, tmp_path / "b.tar").manifest.records == 87


def test_a_store_that_was_deleted_under_a_running_backup_is_said_to_be_so(store: Path, tmp_path: Path) -> None:
    with Keeper.open(store, DEFAULT_POLICY, days.NOW) as keeper:
        store.unlink()
        with pytest.raises(StoreError, match="deleted while this ran"):
            write_backup(keeper, tmp_path / "b.tar", days.NOW)

    assert not (tmp_path / "b.tar").exists()


def test_a_policy_folder_comes_along_and_one_that_is_there_stays(store: Path, tmp_path: Path) -> None:
    (store.parent / "policy.d").mkdir()
    (store.parent / "policy.d" / "team.toml").write_text(POLICY, "utf-8")
    (store.parent / "policy.d" / "notes.txt").write_text("mine", "utf-8")
    backed_up(store, tmp_path / "b.tar")
    there = tmp_path / "there"
    there.mkdir()
    (there / "policy.toml").write_text("# another\n", "utf-8")

    found = restore(tmp_path / "b.tar", there / "s.duckdb")

    assert found.kept_policies == (there / "policy.toml",)
    assert (there / "policy.toml").read_text("utf-8") == "# another\n"
    assert files_of(there / "policy.d") == {"team.toml": POLICY.encode()}


def test_a_backup_is_for_its_owner_and_takes_the_place_of_nothing_else(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.tar"
    backed_up(store, target)
    assert target.stat().st_mode & 0o777 == 0o600
    backed_up(store, target)

    (tmp_path / "mine").write_text("x", "utf-8")
    for other in (tmp_path / "mine", store, tmp_path):
        with pytest.raises(InputError):
            backed_up(store, other)
    assert (tmp_path / "mine").read_text("utf-8") == "x"
    with pytest.raises(StoreError, match="no such folder"):
        backed_up(store, tmp_path / "nowhere" / "b.tar")


# Refused --------------------------------------------------------------------------------------------------------------


def test_a_store_with_records_and_one_with_a_journal_only_are_left_alone(store: Path, tar: Path) -> None:
    before = files_of(store.parent)
    with pytest.raises(InputError, match=r"move it and s\.duckdb\.journal away first"):
        restore(tar, store)
    assert files_of(store.parent) == before

    store.unlink()
    with pytest.raises(InputError, match="not empty"):
        restore(tar, store)
    assert days.lines_in(store) == []
    Keeper.open(store, DEFAULT_POLICY, days.NOW).close()
    assert len(days.lines_in(store)) == 87


def test_an_empty_store_is_replaced(tar: Path, tmp_path: Path) -> None:
    other = tmp_path / "o.duckdb"
    Keeper.open(other, DEFAULT_POLICY, days.NOW).close()

    restore(tar, other)

    assert len(days.lines_in(other)) == 87


def test_a_store_in_use_is_left_alone(tar: Path, tmp_path: Path) -> None:
    with Keeper.open(tmp_path / "o.duckdb", DEFAULT_POLICY, days.NOW), pytest.raises(StoreInUseError):
        restore(tar, tmp_path / "o.duckdb")


def link(name: str, kind: bytes) -> Callable[[dict[str, tuple[tarfile.TarInfo, bytes]]], None]:
    def change(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd"
        members[name] = (info, b"")

    return lambda members: _first(members, change)


def foreign(name: str) -> Callable[[dict[str, tuple[tarfile.TarInfo, bytes]]], None]:
    def change(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
        members[name] = (tarfile.TarInfo(name), b"evil")

    return lambda members: _first(members, change)


def _first(
    members: dict[str, tuple[tarfile.TarInfo, bytes]],
    change: Callable[[dict[str, tuple[tarfile.TarInfo, bytes]]], None],
) -> None:
    """The change before all others: behind the manifest nobody looks."""
    rest = dict(members)
    members.clear()
    change(members)
    members |= {name: member for name, member in rest.items() if name not in members}


def without(name: str) -> Callable[[dict[str, tuple[tarfile.TarInfo, bytes]]], None]:
    def change(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
        del members[name]

    return change


def other_rows(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
    manifest = json.loads(members["manifest.json"][1])
    manifest["digest"] = "0" * 32
    members["manifest.json"] = (members["manifest.json"][0], json.dumps(manifest).encode())


def other_columns(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
    manifest = json.loads(members["manifest.json"][1])
    manifest["columns"]["records"] = ['line", (SELECT 1) --']
    members["manifest.json"] = (members["manifest.json"][0], json.dumps(manifest).encode())


SEGMENT = "journal/00000001.ndjson"
DAMAGES = {
    "altered store": (changed("store.duckdb", b"x" * 4096), "altered"),
    "altered journal": (changed(SEGMENT, b"{}\n"), "altered"),
    "altered manifest": (changed("manifest.json", b"{}"), "manifest cannot be read"),
    "other rows": (other_rows, "not those of its manifest"),
    "other columns": (other_columns, "manifest cannot be read"),
    "no manifest": (without("manifest.json"), "no manifest"),
    "no segment": (without(SEGMENT), "00000001.ndjson is missing"),
    "no store": (without("store.duckdb"), "store.duckdb is missing"),
    "one segment more": (foreign("journal/00000002.ndjson"), "not in its manifest"),
    "absolute path": (foreign("/tmp/evil"), "other things in it"),  # noqa: S108
    "path outside": (foreign("../evil"), "other things in it"),
    "path outside of the journal": (foreign("journal/../../evil.ndjson"), "other things in it"),
    "path that is hidden": (foreign("policy.d/.evil.toml"), "other things in it"),
    "symbolic link": (link("policy.toml", tarfile.SYMTYPE), "other things in it"),
    "hard link": (link(SEGMENT, tarfile.LNKTYPE), "other things in it"),
    "device": (link("policy.toml", tarfile.CHRTYPE), "other things in it"),
    "pipe": (link("policy.toml", tarfile.FIFOTYPE), "other things in it"),
    "folder": (link("journal", tarfile.DIRTYPE), "other things in it"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_altered_or_hostile_is_refused_without_a_trace(tar: Path, tmp_path: Path, what: str) -> None:
    change, message = DAMAGES[what]
    remade(tar, change)
    place = tmp_path / "place"
    place.mkdir()
    before = set(tmp_path.rglob("*"))

    for store in (place / "s.duckdb", tmp_path / "new" / "deep" / "s.duckdb"):
        with pytest.raises(StopcauseError, match=message):
            restore(tar, store)

    assert set(tmp_path.rglob("*")) == before


def test_a_member_twice_is_refused(tar: Path, tmp_path: Path) -> None:
    with tarfile.open(tar) as old:
        members = [(info, (old.extractfile(info) or io.BytesIO()).read()) for info in old]
    with tarfile.open(tar, "w") as new:
        for info, data in [members[1], *members]:
            new.addfile(info, io.BytesIO(data))

    with pytest.raises(InputError, match="other things"):
        restore(tar, tmp_path / "o.duckdb")


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_backup_that_is_cut_off_is_refused_without_a_trace(tar: Path, tmp_path: Path, part: float) -> None:
    data = tar.read_bytes()
    whole = data.rstrip(b"\0")
    tar.write_bytes(whole[: int(len(whole) * part)])

    with pytest.raises(InputError, match=r"cut off|no manifest|cannot be read|no backup"):
        restore(tar, tmp_path / "o.duckdb")
    assert not (tmp_path / "o.duckdb").exists()
    assert days.hidden(tmp_path) == []


def test_what_is_no_backup_is_told_to_be_none(tmp_path: Path, store: Path) -> None:
    (tmp_path / "text").write_text("hello " * 1000, "utf-8")
    with tarfile.open(tmp_path / "other.tar", "w") as other:
        other.add(store, "stuff/store.duckdb")

    for name in ("text", "other.tar", "nothing"):
        with pytest.raises(InputError, match=name):
            restore(tmp_path / name, tmp_path / "o.duckdb")
    with pytest.raises(InputError, match="no backup"):
        restore(tmp_path, tmp_path / "o.duckdb")


def test_a_backup_of_a_newer_version_is_told_to_be_one(store: Path, tmp_path: Path) -> None:
    with Keeper.open(store, DEFAULT_POLICY, days.NOW) as keeper:
        keeper.store.ask("INSERT INTO schema_migrations VALUES ('0999_later', NULL)")
        write_backup(keeper, tmp_path / "b.tar", days.NOW)

    with pytest.raises(StoreVersionError, match="Nothing was changed"):
        restore(tmp_path / "b.tar", tmp_path / "o.duckdb")


def test_a_restore_that_is_broken_off_between_its_names_loses_nothing(
    tar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "o.duckdb"
    broken_off(tar, other, monkeypatch)

    with Keeper.open(other, DEFAULT_POLICY, days.NOW) as keeper:
        assert keeper.store.counts().records == 87


def test_a_restore_into_a_store_that_was_emptied_can_be_broken_off(
    tar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That store knows a position in a journal of its own, which the restored one does not have."""
    other = tmp_path / "o.duckdb"
    with Keeper.open(other, DEFAULT_POLICY, days.NOW) as keeper:
        keeper.accept([days.stopped("r1", days.DAY_ONE)], days.NOW)
        keeper.settle(days.NOW)
    with owned(other) as (opened, spool):
        retention.forget(opened, spool, days.NOW.replace(hour=0))
        assert opened.is_empty()
    broken_off(tar, other, monkeypatch)

    with Keeper.open(other, DEFAULT_POLICY, days.NOW) as keeper:
        assert keeper.store.counts().records == 87


def broken_off(tar: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores until the journal has its name and the store has not."""
    replace, calls = Path.replace, []

    def once(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", once)
    with pytest.raises(KeyboardInterrupt):
        restore(tar, store)
    monkeypatch.undo()
    assert calls[0] == journal_folder(store)


# A full disk ----------------------------------------------------------------------------------------------------------

CHILD = """
    import resource, sys
    from pathlib import Path
    from stopcause.errors import StoreFullError
    from stopcause.pipeline.backup import restore, write_backup
    from stopcause.store import archive, snapshot
    from tests.support import days
    what, store, target, size = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    keeper = days.Keeper.open(store, days.DEFAULT_POLICY, days.NOW)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        if what == "backup":
            write_backup(keeper, target, days.NOW)
        elif what == "parquet":
            archive.write_archive(keeper.store, target, archive.Span(), (days.NOW, "1", "2"), tokens=True)
        elif what == "snapshot":
            keeper.store.close_engine()
            snapshot.write_snapshot(store, target, days.NOW, ("1", "2"))
        else:
            restore(target.with_name("b.tar"), target)
    except StoreFullError as error:
        assert "took no more" in str(error), error
    else:
        raise SystemExit("it had room")
"""


@pytest.mark.parametrize(
    ("what", "size"),
    [("backup", 200_000), ("backup", 1_500_000), ("parquet", 2_000), ("snapshot", 300_000), ("restore", 200_000)],
)
def test_a_full_disk_leaves_nothing_behind(tar: Path, store: Path, tmp_path: Path, what: str, size: int) -> None:
    before, digest = set(tmp_path.iterdir()), offline.file_digest(store).text
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(CHILD), what, str(store), str(tmp_path / "out"), str(size)]

    subprocess.run(command, check=True, env=environment)

    assert set(tmp_path.iterdir()) == before
    assert offline.file_digest(store).text == digest
    beside.sync_folder(tmp_path)
    assert tar.exists()
