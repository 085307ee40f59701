"""Archives: what is in them, that they are whole or refused, and that they are taken in again without a double."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stopcause.errors import InputError
from stopcause.pipeline.ingest import IngestReport, ingest
from stopcause.pipeline.keeper import Keeper
from stopcause.receipts import codec, model
from stopcause.store import archive, offline
from stopcause.store.archive import Manifest, Span
from tests.support import days

ABOUT = (days.NOW, "0.0", "2")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.duckdb"
    days.filled(path).close()
    return path


def archived(store: Path, folder: Path, span: Span | None = None, *, tokens: bool = True) -> Manifest:
    with Keeper.open(store, days.DEFAULT_POLICY, days.NOW) as keeper:
        return archive.write_archive(keeper.store, folder, span or Span(), ABOUT, tokens=tokens)


def taken_in(path: Path, *sources: Path) -> IngestReport:
    with Keeper.open(path, days.DEFAULT_POLICY, days.NOW) as keeper:
        return ingest(list(sources), keeper, days.NOW)


def day(number: int) -> datetime:
    return datetime(2026, 11, number, tzinfo=UTC)


# What is in it --------------------------------------------------------------------------------------------------------


def test_it_has_every_record_and_verdict_by_day(store: Path, tmp_path: Path) -> None:
    made = archived(store, tmp_path / "a")

    assert (made.days, made.records.rows, made.verdicts.rows) == (3, 87, 30)
    with duckdb.connect() as engine:
        found = engine.execute(
            f"SELECT day, count(*) FROM '{tmp_path}/a/records/*/*.parquet' GROUP BY day ORDER BY day"  # noqa: S608
        ).fetchall()
    assert [(str(when), count) for when, count in found] == [(f"2026-11-0{n}", 29) for n in (1, 2, 3)]
    assert made.records.digest == offline.file_digest(store)["records"].text
    assert days.hidden(tmp_path) == []


def test_it_has_the_runs_that_opened_in_its_span(store: Path, tmp_path: Path) -> None:
    assert archived(store, tmp_path / "a", Span(since=day(2))).days == 2
    assert archived(store, tmp_path / "b", Span(before=day(2))).days == 1
    assert [entry.name for entry in archived(store, tmp_path / "c", Span(day(2), day(3))).files] == [
        "records/day=2026-11-02/part-0.parquet",
        "verdicts/day=2026-11-02/part-0.parquet",
    ]


def test_what_is_no_longer_so_is_not_in_it(store: Path, tmp_path: Path) -> None:
    with Keeper.open(store, days.OTHER_POLICY, days.NOW) as keeper:
        assert keeper.rejudge(days.NOW) == 30
        made = archive.write_archive(keeper.store, tmp_path / "a", Span(), ABOUT, tokens=True)

    assert made.verdicts.rows == 30
    owners = pq.read_table(tmp_path / "a" / made.files[1].name, partitioning=None).column("owner").to_pylist()
    assert set(owners) == {"team:other"}


def test_rows_keep_their_order_over_many_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with days.filled(path, days=1, count=9_000):
        pass
    with Keeper.open(path, days.DEFAULT_POLICY, days.NOW) as keeper:
        keeper.accept((days.outcome(f"r00-{n:05d}", days.NOW) for n in range(0, 9_000, 7)), days.NOW)
    made = archived(path, tmp_path / "a")

    file = tmp_path / "a" / made.files[0].name
    assert pq.ParquetFile(file).num_row_groups > 1
    assert [line for lines in archive.lines_of(file) for line in lines] == [
        each.encode() for each in days.lines_in(path)
    ]


def test_it_says_that_a_run_can_be_resumed_and_not_where(store: Path, tmp_path: Path) -> None:
    made = archived(store, tmp_path / "a", tokens=False)

    assert (made.resume_tokens, made.tokens_taken_out) == (False, 3)
    with duckdb.connect() as engine:
        said = engine.execute(f"SELECT line FROM '{tmp_path}/a/records/*/*.parquet'").fetchall()  # noqa: S608
    assert not any("resume_token" in line for (line,) in said)
    assert sum('"resumable":true' in line for (line,) in said) == 3


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        ({"resume_token": "t"}, {"resumable": True}),
        ({"resume_token": "t", "resumable": False}, {"resumable": False}),
        ({}, {}),
        ({"resume_token": None}, {}),
    ],
)
def test_tokens_go_from_receipts_and_from_approvals(
    approval: dict[str, object], expected: dict[str, object], tmp_path: Path
) -> None:
    said = {"approval_id": "a1", "state": "routed"} | approval
    lines = [
        days.line("run.stopped", "r1", days.DAY_ONE, stop_cause="approval_pending", approvals=[said, said]),
        days.line("approval.updated", "r1", days.DAY_ONE, approval=said),
    ]
    with Keeper.open(tmp_path / "s.duckdb", days.DEFAULT_POLICY, days.NOW) as keeper:
        keeper.accept(lines, days.NOW)
        ids = sorted(str(each) for (each,) in keeper.store.ask("SELECT record_id FROM records").rows)
        archive.write_archive(keeper.store, tmp_path / "a", Span(), ABOUT, tokens=False)

    (file,) = (tmp_path / "a" / "records").rglob("*.parquet")
    read = [codec.keep_line(line) for lines in archive.lines_of(file) for line in lines]
    records = [each.record for each in read if isinstance(each, codec.Kept)]
    assert sorted(str(record.record_id) for record in records) == ids
    seen = [json.loads(each.line) for each in read if isinstance(each, codec.Kept)]
    approvals = [each for one in seen for each in one.get("approvals") or [one["approval"]]]
    assert len(approvals) == 3
    for each in approvals:
        assert each == {"approval_id": "a1", "state": "routed"} | expected
    assert any(isinstance(record, model.ApprovalUpdated) for record in records)


def test_it_takes_nobodys_place(store: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").touch()
    (tmp_path / "empty").mkdir()

    for target in (tmp_path / "taken", store):
        with pytest.raises(InputError, match="there already"):
            archived(store, target)
    assert archived(store, tmp_path / "empty").days == 3


# In again -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [True, False])
def test_it_is_taken_in_again_as_the_same_store_and_once(store: Path, tmp_path: Path, tokens: bool) -> None:
    made = archived(store, tmp_path / "a", tokens=tokens)
    other = tmp_path / "other.duckdb"

    assert taken_in(other, tmp_path / "a").accepted == 87
    assert taken_in(other, tmp_path / "a").repeated == 87
    assert taken_in(store, tmp_path / "a").repeated == 87

    assert offline.file_digest(other)["records"].text == made.records.digest
    with Keeper.open(other, days.DEFAULT_POLICY, days.NOW) as keeper:
        verdicts = keeper.store.counts().verdicts
    waiting = "WAITING" if tokens else "WAITING_UNROUTED"  # nothing names where such a run resumes
    assert verdicts == {"VERIFIED_COMPLETE": 27, waiting: 3}


def remove_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def remove_part(folder: Path) -> None:
    next(folder.rglob("records/day=2026-11-02/*.parquet")).unlink()


def remove_verdicts(folder: Path) -> None:
    shutil.rmtree(folder / "verdicts")


def cut(folder: Path) -> None:
    part = next(folder.rglob("records/day=2026-11-02/*.parquet"))
    part.write_bytes(part.read_bytes()[:-100])


def alter(folder: Path) -> None:
    part = next(folder.rglob("verdicts/day=2026-11-02/*.parquet"))
    data = bytearray(part.read_bytes())
    data[500] ^= 1
    part.write_bytes(data)


def add(folder: Path) -> None:
    part = next(folder.rglob("records/day=2026-11-02/*.parquet"))
    shutil.copy(part, part.with_name("part-1.parquet"))


def break_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text("utf-8")[:-50], "utf-8")


def lead_elsewhere(folder: Path) -> None:
    path = folder / "manifest.json"
    part = "records/day=2026-11-02/part-0.parquet"
    path.write_text(path.read_text("utf-8").replace(part, f"records/../../a/{part}"), "utf-8")


def of_tomorrow(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text("utf-8").replace("stopcause-archive/1", "stopcause-archive/2"), "utf-8")


FAULTS = [
    (remove_manifest, "manifest.json is missing"),
    (remove_part, "records/day=2026-11-02/part-0.parquet is missing"),
    (remove_verdicts, "verdicts/day=2026-11-01/part-0.parquet is missing"),
    (cut, r"has \d+ of \d+ bytes"),
    (alter, "verdicts/day=2026-11-02/part-0.parquet was altered"),
    (add, "a file that its manifest does not name"),
    (break_manifest, "cannot be read"),
    (lead_elsewhere, "a file that its manifest does not name"),
    (of_tomorrow, "newer stopcause"),
]


@pytest.mark.parametrize(("damage", "message"), FAULTS, ids=[damage.__name__ for damage, _ in FAULTS])
def test_one_that_is_not_whole_is_refused_and_nothing_of_it_is_taken_in(
    store: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    (tmp_path / "in").mkdir()
    archived(store, tmp_path / "in" / "a")
    damage(tmp_path / "in" / "a")
    (tmp_path / "in" / "0.jsonl").write_bytes(next(days.runs_of(7, 1)))

    with (
        Keeper.open(tmp_path / "other.duckdb", days.DEFAULT_POLICY, days.NOW) as keeper,
        pytest.raises(InputError, match=message),
    ):
        ingest([tmp_path / "in"], keeper, days.NOW)

    with Keeper.open(tmp_path / "other.duckdb", days.DEFAULT_POLICY, days.NOW) as keeper:
        assert keeper.store.is_empty()


def test_archives_in_a_folder_with_other_files_are_all_taken_in(store: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    archived(store, tmp_path / "in" / "one", Span(before=day(2)))
    archived(store, tmp_path / "in" / "two", Span(since=day(2)))
    (tmp_path / "in" / "more.jsonl").write_bytes(b"\n".join(days.runs_of(7, 2)))

    assert taken_in(tmp_path / "other.duckdb", tmp_path / "in").accepted == 87 + 6


# A Parquet file of its own --------------------------------------------------------------------------------------------


def test_a_file_with_lines_is_taken_in_and_bad_lines_are_named(tmp_path: Path) -> None:
    lines = [line.decode() for line in days.runs_of(1, 3)]
    path = tmp_path / "mine.parquet"
    pq.write_table(pa.table({"n": range(11), "line": [*lines, None, '{"no":"record"}']}), path)

    report = taken_in(tmp_path / "s.duckdb", path)

    assert (report.accepted, report.set_aside) == (9, 1)
    assert report.first_errors[0][1].line == 11


def test_a_file_without_lines_or_that_is_cut_is_refused(store: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"line": [1, 2]}), tmp_path / "numbers.parquet")
    pq.write_table(pa.table({"other": ["x"]}), tmp_path / "other.parquet")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")

    for name in ("numbers", "other", "cut"):
        with pytest.raises(InputError, match=name):
            taken_in(store, tmp_path / f"{name}.parquet")
