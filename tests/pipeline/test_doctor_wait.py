"""`doctor --wait`: the first record is said to be there, and nothing is locked or made meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from stopcause.pipeline.doctor_wait import wait_for_record
from stopcause.receipts.spool import Spool
from stopcause.store.lock import lock_path
from tests.support.visits import keep, line, well

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return well(tmp_path / "s.duckdb")


def test_waiting_ends_with_the_first_record(tmp_path: Path) -> None:
    path = tmp_path / "new" / "s.duckdb"
    report = threading.Timer(0.7, keep, (path, line("run.started", "r9", adapter="langgraph")))
    report.start()
    began = time.monotonic()

    found = wait_for_record(path, tmp_path / "spool", 30)

    report.join()
    assert found is not None
    assert 0.7 <= time.monotonic() - began < 10
    assert (found.where, found.kind, found.run_id, found.agent, found.adapter) == (
        "journal", "run.started", "r9", "a", "langgraph",
    )  # fmt: skip


def test_waiting_sees_what_a_hook_left_in_the_spool(tmp_path: Path) -> None:
    hook = Spool(tmp_path / "spool")
    hook.write([b"not a record", line(run_id="r9"), b"{}"])

    found = wait_for_record(tmp_path / "s.duckdb", tmp_path / "spool", 5)

    hook.close()
    assert found is not None
    assert (found.where, found.folder, found.run_id) == ("spool", tmp_path / "spool", "r9")


def test_waiting_sees_a_file_of_a_hook_without_locks(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "ai-sdk-1-ab.ndjson").write_bytes(line(run_id="r9") + b"\n" + b'{"torn')

    found = wait_for_record(tmp_path / "s.duckdb", spool, 5)

    assert found is not None
    assert (found.where, found.folder, found.run_id) == ("spool", spool, "r9")


def test_waiting_for_nothing_ends_in_time_and_makes_nothing(tmp_path: Path) -> None:
    began = time.monotonic()

    assert wait_for_record(tmp_path / "s.duckdb", tmp_path / "spool", 0.3) is None
    assert 0.3 <= time.monotonic() - began < 2
    assert list(tmp_path.iterdir()) == []


def test_waiting_locks_nothing(store: Path) -> None:
    found = wait_for_record(store, store.parent / "spool", 5)

    assert found is not None
    assert lock_path(store).read_bytes() == b""
    keep(store, line(run_id="r2"))
