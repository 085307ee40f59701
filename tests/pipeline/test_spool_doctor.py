"""What the doctor says of a spool: whose files are there, what of them is not in the store, and nothing is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.spool import take_in
from stopcause.receipts.spool import Spool
from stopcause.render.caller import Hint
from stopcause.render.doctor import State
from tests.support.machine import without_privileges
from tests.support.visits import NOW, check, line, well


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STOPCAUSE_STORE", str(tmp_path / "s.duckdb"))
    return well(tmp_path / "s.duckdb")


@pytest.fixture
def spool(store: Path) -> Path:
    return store.parent / "spool"


def test_what_waits_is_said_with_whose_it_is_and_how_old(store: Path, spool: Path) -> None:
    living, dead = Spool(spool), Spool(spool)
    living.write([line(run_id="r2", ago_s=60)])
    dead.write([b"{}", line(run_id="r3", ago_s=300), line(run_id="r4", ago_s=60)])
    dead.close()
    (spool / "ai-sdk-1-ab.ndjson").write_bytes(line(run_id="r5", ago_s=10) + b"\n{half")

    said = check(store, "spool")
    living.close()

    assert said.state is State.LOOK
    assert said.said.startswith("3 files, 0.0 MB: 1 of live processes, 1 of dead ones, 1 of hooks that cannot tell")
    assert said.said.endswith("; 5 records not taken in yet, the oldest 5m old")
    assert said.do == Hint(("runs",))


def test_what_is_taken_in_waits_no_more(store: Path, spool: Path) -> None:
    living = Spool(spool)
    living.write([line(run_id="r2")])
    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        take_in(spool, keeper, NOW)

    said = check(store, "spool")
    living.close()

    assert (said.state, said.said) == (State.OK, "1 file, 0.0 MB: 1 of live processes; all is taken in")


def test_of_another_store_it_is_said_that_hooks_do_not_report_to_it(
    store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STOPCAUSE_STORE")
    (made := Spool(spool)).write([line(run_id="r2")])

    said = check(store, "spool")
    made.close()

    assert (said.state, said.do) == (State.OK, None)
    assert said.said.endswith("; hooks report to the usual store, and not to this one")


def test_an_empty_spool_and_none_are_fine(store: Path, spool: Path) -> None:
    assert (check(store, "spool").state, check(store, "spool").said) == (State.OK, "there is none")
    spool.mkdir()
    assert (check(store, "spool").state, check(store, "spool").said) == (State.OK, "nothing waits there")


def test_looking_changes_nothing(store: Path, spool: Path) -> None:
    living, dead = Spool(spool), Spool(spool)
    for each in (living, dead):
        each.write([line("run.started", run_id="r2")])
    dead.close()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in spool.iterdir()}

    check(store, "spool")

    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in spool.iterdir()} == before
    living.write([line(run_id="r2")])
    living.close()


def test_a_file_of_somebody_else_is_said(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_STORE", str(open_folder / "s.duckdb"))
    spool = open_folder / "spool"
    spool.mkdir(mode=0o755)
    (spool / "py-1-ab.ndjson").write_bytes(line() + b"\n")
    (spool / "py-1-ab.ndjson").chmod(0)
    with without_privileges():
        said = check(open_folder / "s.duckdb", "spool")

    assert said.state is State.LOOK
    assert said.said.startswith("1 file may not be read by this user")
