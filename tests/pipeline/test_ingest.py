"""Files into a keeper: everything that a file can be, and what happens to lines that are none."""

from __future__ import annotations

import base64
import gc
import io
import json
import stat
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import InputError, StoreFullError
from stopcause.pipeline import ingest as module
from stopcause.pipeline import ingest_sources
from stopcause.pipeline.ingest import IngestReport, ingest
from stopcause.pipeline.keeper import Keeper
from stopcause.receipts.codec import MAX_LINE_BYTES
from stopcause.resources import data_folder
from tests.support.machine import without_privileges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T0 = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)
NOW = T0 + timedelta(days=2)
GOOD: dict[str, Any] = {
    "schema": "stopcause/1",
    "kind": "run.stopped",
    "run_id": "r1",
    "at": "2026-11-28T08:00:00Z",
    "stop_cause": "natural",
    "steps": 3,
}
ONE = json.dumps(GOOD).encode()


def good(n: int) -> bytes:
    return json.dumps({**GOOD, "run_id": f"r{n}", "at": (T0 + timedelta(seconds=n)).isoformat()}).encode()


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with Keeper.open(None, DEFAULT_POLICY, NOW) as opened:
        yield opened


def take(keeper: Keeper, *sources: Path | BinaryIO, **options: Any) -> IngestReport:  # noqa: ANN401
    return ingest(sources, keeper, NOW, **options)


def write(path: Path, *lines: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def rejected(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def numbers(report: IngestReport) -> tuple[int, ...]:
    """Lines, accepted, repeated, set aside."""
    assert report.lines == report.accepted + report.repeated + report.set_aside
    return report[1:5]


# What a file can be ---------------------------------------------------------------------------------------------------


def test_a_file_of_records(keeper: Keeper, tmp_path: Path) -> None:
    report = take(keeper, write(tmp_path / "a.jsonl", good(1), b"", good(2), b"  "))
    assert numbers(report) == (2, 2, 0, 0)
    assert report.files == 1
    assert report.newest_at == T0 + timedelta(seconds=2)
    assert report.rejected_files == ()
    assert {row.run_id for row in keeper.store.rows()} == {"r1", "r2"}


def test_an_empty_file_is_fine_and_named(keeper: Keeper, tmp_path: Path) -> None:
    report = take(
        keeper, write(tmp_path / "a.jsonl"), write(tmp_path / "b.json"), write(tmp_path / "c.ndjson", b" ", b"")
    )
    assert numbers(report) == (0, 0, 0, 0)
    assert [Path(name).name for name in report.empty] == ["a.jsonl", "b.json", "c.ndjson"]
    assert report.newest_at is None


def test_the_last_line_needs_no_newline(keeper: Keeper, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(good(1) + b"\n" + good(2))
    assert numbers(take(keeper, tmp_path / "a.jsonl")) == (2, 2, 0, 0)


def test_half_a_line_at_the_end_is_set_aside(keeper: Keeper, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(good(1) + b"\n" + good(2)[:40])
    report = take(keeper, tmp_path / "a.jsonl")
    assert numbers(report) == (2, 1, 0, 1)
    assert rejected(report.rejected_files[0])[0]["raw"] == good(2)[:40].decode()


def test_windows_line_ends_and_a_byte_order_mark(keeper: Keeper, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + good(1) + b"\r\n" + good(2) + b"\r\n")
    (tmp_path / "b.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({"records": [json.loads(good(3))]}).encode())
    assert numbers(take(keeper, tmp_path / "a.jsonl", tmp_path / "b.json")) == (3, 3, 0, 0)


def test_the_same_file_twice_and_reversed(keeper: Keeper, tmp_path: Path) -> None:
    lines = [good(n) for n in range(20)]
    forward, backward = write(tmp_path / "a.jsonl", *lines), write(tmp_path / "b.jsonl", *lines[::-1])
    assert numbers(take(keeper, forward)) == (20, 20, 0, 0)
    assert numbers(take(keeper, forward)) == (20, 0, 20, 0)
    assert numbers(take(keeper, forward, backward, forward)) == (60, 0, 60, 0)
    assert keeper.store.counts().records == 20


def test_a_folder_at_any_depth_in_name_order(keeper: Keeper, tmp_path: Path) -> None:
    write(tmp_path / "b" / "x.ndjson", good(1))
    write(tmp_path / "a" / "deep" / "y.jsonl", good(2), b"bad")
    write(tmp_path / "c.json", json.dumps({"id": "C", "records": [json.loads(good(3)), json.loads(good(4))]}).encode())
    write(tmp_path / "notes.txt", b"no records")
    write(tmp_path / "old.rejected.jsonl", b"bad")
    report = take(keeper, tmp_path)
    assert (report.files, numbers(report)) == (3, (5, 4, 0, 1))
    assert report.first_errors[0][0] == str(tmp_path / "a" / "deep" / "y.jsonl")
    assert numbers(take(keeper, tmp_path)) == (5, 0, 4, 1)  # what was set aside is not read


def test_the_fixtures_are_taken_in_whole(keeper: Keeper) -> None:
    report = take(keeper, data_folder("fixtures"))
    assert report.set_aside == 0
    passed_over = [Path(name) for name in report.passed_over]
    assert [path.name for path in passed_over if "agui" not in path.parts] == ["assertions.json"]
    assert report.accepted > 200
    assert report.files == len(list(data_folder("fixtures").rglob("*.json"))) - len(passed_over)


def test_case_files_one_a_line(keeper: Keeper, tmp_path: Path) -> None:
    case = {"id": "C", "records": [json.loads(good(1)), {**GOOD, "steps": "3"}, json.loads(good(2))]}
    report = take(keeper, write(tmp_path / "cases.jsonl", json.dumps(case).encode(), good(3), b'{"records": []}'))
    assert numbers(report) == (4, 3, 0, 1)
    entry = rejected(report.rejected_files[0])[0]
    assert (entry["line"], entry["field"]) == (1, "records[1].steps")
    assert json.loads(entry["raw"]) == {**GOOD, "steps": "3"}


def test_one_record_in_a_json_file_and_lines_in_one(keeper: Keeper, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(GOOD, indent=2))
    write(tmp_path / "lines.json", b"broken", good(2), good(3))
    assert numbers(take(keeper, tmp_path)) == (4, 3, 0, 1)


@pytest.mark.parametrize(
    "content",
    [b'[{"id": "x", "checks": []}]', b'{"id": 1}', b"7", b'{"records": 1}', b'{"schema_": 1', b"\xff\xfe\x00"],
)
def test_json_without_records_is_passed_over_in_a_folder_and_an_error_when_named(
    keeper: Keeper, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    report = take(keeper, tmp_path)
    assert report.passed_over == (str(path),)
    assert (report.files, report.lines) == (0, 0)
    with pytest.raises(InputError, match=r"x\.json (holds no records|is broken JSON)"):
        take(keeper, path)


def test_what_is_not_there_is_an_error_before_anything_is_read(keeper: Keeper, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.jsonl: No such file"):
        take(keeper, write(tmp_path / "a.jsonl", good(1)), tmp_path / "missing.jsonl")
    assert keeper.store.is_empty()


def test_an_empty_folder_is_fine(keeper: Keeper, tmp_path: Path) -> None:
    assert not any(take(keeper, tmp_path))


# Bad lines ------------------------------------------------------------------------------------------------------------

BAD = {
    "broken JSON": (b"{", "line"),
    "no object": (b"[1]", "line"),
    "invalid UTF-8": (ONE.replace(b"r1", b"r\xff"), "line"),
    "unknown schema": (json.dumps({**GOOD, "schema": "stopcause/9"}).encode(), "schema"),
    "no schema": (json.dumps({**GOOD, "schema": None}).encode(), "schema"),
    "no run_id": (json.dumps({**GOOD, "run_id": None}).encode(), "run_id"),
    "prose in an identifier": (json.dumps({**GOOD, "run_id": "please call me back"}).encode(), "run_id"),
    "a number as a string": (json.dumps({**GOOD, "steps": "3"}).encode(), "steps"),
    "NaN": (ONE.replace(b'"steps": 3', b'"duration_s": NaN'), "line"),
    "Infinity": (ONE.replace(b'"steps": 3', b'"duration_s": 1e999'), "duration_s"),
    "too large an integer": (json.dumps({**GOOD, "steps": 2**70}).encode(), "steps"),
    "a time without offset": (json.dumps({**GOOD, "at": "2026-11-28T08:00:00"}).encode(), "at"),
    "nested too deep": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "line"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_costs_only_itself_and_is_named(keeper: Keeper, tmp_path: Path, name: str) -> None:
    raw, field = BAD[name]
    report = take(keeper, write(tmp_path / "a.jsonl", good(1), raw, good(2)))
    assert numbers(report) == (3, 2, 0, 1)
    (path,) = report.rejected_files
    (entry,) = rejected(path)
    assert (entry["line"], entry["field"].split(".")[-1]) == (2, field)
    assert entry["reason"]
    assert entry["expected"]
    if name == "invalid UTF-8":
        assert (entry["bytes"], "raw" in entry) == (len(raw), False)
    else:
        assert entry["raw"] == raw.decode()
    assert report.first_errors == ((str(tmp_path / "a.jsonl"), report.first_errors[0][1]),)
    assert "please" not in repr(report)


def test_an_unknown_kind_is_kept(keeper: Keeper, tmp_path: Path) -> None:
    report = take(keeper, write(tmp_path / "a.jsonl", json.dumps({**GOOD, "kind": "run.paused"}).encode()))
    assert numbers(report) == (1, 1, 0, 0)
    assert keeper.store.counts().kinds == {"run.paused": 1}


def test_a_line_of_fifty_megabytes_is_counted_and_not_held(keeper: Keeper, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(good(1) + b"\n")
        for _ in range(50):
            file.write(b"x" * 1024 * 1024)
        file.write(b"\n" + good(2) + b"\n" + b"y" * (MAX_LINE_BYTES + 1))
    tracemalloc.start()
    report = take(keeper, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert numbers(report) == (4, 2, 0, 2)
    sizes = [(entry["line"], entry["bytes"], "raw" in entry) for entry in rejected(report.rejected_files[0])]
    assert sizes == [(2, 50 * 1024 * 1024, False), (4, MAX_LINE_BYTES + 1, False)]
    assert peak < 20 * 1024 * 1024


def test_the_first_errors_are_few_whatever_is_wrong(keeper: Keeper, tmp_path: Path) -> None:
    report = take(keeper, write(tmp_path / "a.jsonl", *[b"bad"] * 1000))
    assert numbers(report) == (1000, 0, 0, 1000)
    assert len(report.first_errors) == 5
    assert len(rejected(report.rejected_files[0])) == 1000


# Where bad lines go ---------------------------------------------------------------------------------------------------


def test_the_file_of_bad_lines_is_beside_its_source_and_its_owners_alone(keeper: Keeper, tmp_path: Path) -> None:
    report = take(keeper, write(tmp_path / "a.jsonl", b"bad", good(1), b"worse"))
    assert report.rejected_files == (tmp_path / "a.jsonl.rejected.jsonl",)
    assert stat.S_IMODE(report.rejected_files[0].stat().st_mode) == 0o600
    assert [entry["raw"] for entry in rejected(report.rejected_files[0])] == ["bad", "worse"]


def test_it_is_written_anew_each_time_and_goes_when_nothing_is_wrong(keeper: Keeper, tmp_path: Path) -> None:
    path, aside = tmp_path / "a.jsonl", tmp_path / "a.jsonl.rejected.jsonl"
    aside.write_text("left by an older run")
    aside.chmod(0o644)
    take(keeper, write(path, b"bad", good(1)))
    assert len(rejected(aside)) == 1
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    take(keeper, write(path, good(1)))
    assert not aside.exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.jsonl"]


def test_a_folder_of_the_callers_takes_them(keeper: Keeper, tmp_path: Path) -> None:
    one, two = write(tmp_path / "1" / "a.jsonl", b"bad 1"), write(tmp_path / "2" / "a.jsonl", b"bad 2")
    report = take(keeper, one, two, rejected_dir=tmp_path / "aside")
    assert [path.parent for path in report.rejected_files] == [tmp_path / "aside"] * 2
    assert [rejected(path)[0]["raw"] for path in report.rejected_files] == ["bad 1", "bad 2"]


def test_those_of_a_stream_are_in_the_current_folder(
    keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = take(keeper, io.BytesIO(b"bad\n" + good(1)))
    assert report.rejected_files == (tmp_path / "stdin.rejected.jsonl",)
    assert numbers(report) == (2, 1, 0, 1)
    take(keeper, io.BytesIO(good(1)))
    again = take(keeper, io.BytesIO(b"worse \xff\n"))
    assert again.rejected_files == (tmp_path / "stdin.2.rejected.jsonl",), "a stream cannot be read again"
    assert [rejected(path)[0].get("raw") for path in report.rejected_files] == ["bad"]
    assert base64.b64decode(rejected(again.rejected_files[0])[0]["raw_base64"]) == b"worse \xff"


def test_a_source_that_cannot_be_read_does_not_cost_those_before_it(keeper: Keeper, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(good(1))
    (tmp_path / "b.json").write_bytes(b"[]")

    with pytest.raises(InputError):
        take(keeper, tmp_path / "a.jsonl", tmp_path / "b.json")

    assert keeper.store.counts().records == 1


def test_what_was_read_otherwise_than_written_is_counted(keeper: Keeper) -> None:
    kind = good(1).replace(b"run.stopped", b"run.stoped")
    word = good(2).replace(b"natural", b"naturel")
    field = good(3).replace(b'"run_id"', b'"stps":3,"run_id"')

    report = take(keeper, io.BytesIO(b"\n".join([kind, word, field])))

    assert (report.unknown_kinds, report.unknown_words, report.set_aside) == (1, 1, 0)
    assert report.unknown_fields >= 1


def test_the_user_data_folder_takes_them_where_the_place_cannot_be_written(
    keeper: Keeper, tmp_path: Path, own_data: Path
) -> None:
    write(tmp_path / "file")
    report = take(keeper, io.BytesIO(b"bad"), rejected_dir=tmp_path / "file" / "below")
    assert report.rejected_files == (own_data / "stdin.rejected.jsonl",)


def test_no_half_file_is_left_when_it_is_broken_off(
    keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreFullError("full")

    monkeypatch.setattr(Keeper, "add", full)
    monkeypatch.setattr(module, "_BATCH_RECORDS", 1)
    with pytest.raises(StoreFullError):
        take(keeper, write(tmp_path / "a.jsonl", b"bad", good(1), b"bad"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
    assert gc.isenabled()


# Lines, batches, progress ---------------------------------------------------------------------------------------------


class Drops(io.RawIOBase):
    """A stream that gives its bytes in pieces of given sizes."""

    def __init__(self, data: bytes, sizes: Sequence[int]) -> None:
        self._data, self._sizes = data, list(sizes)

    def read(self, size: int = -1) -> bytes:
        size = min(self._sizes.pop(0) if self._sizes else size, size)
        piece, self._data = self._data[:size], self._data[size:]
        return piece


@given(
    st.lists(st.one_of(st.binary(max_size=30), st.just(b"z" * 50)).map(lambda line: line.replace(b"\n", b"-"))),
    st.lists(st.integers(1, 40)),
    st.booleans(),
)
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], sizes: list[int], ended: bool) -> None:
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    took: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_sources, "MAX_LINE_BYTES", 35)
        patch.setattr(ingest_sources, "_CHUNK", 64)
        found = list(ingest_sources.lines_of(Drops(data, sizes), took.append))
    expected = data.split(b"\n")
    expected = expected[:-1] if not expected[-1] else expected
    assert found == [line if len(line) <= 35 else ingest_sources.LongLine(len(line)) for line in expected]
    assert sum(took) == len(data)


def test_batches_go_over_files_and_are_bounded(keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    add = Keeper.add

    def counted(self: Keeper, records: Sequence[Any], now: datetime) -> Any:  # noqa: ANN401
        sizes.append(len(records))
        return add(self, records, now)

    monkeypatch.setattr(Keeper, "add", counted)
    monkeypatch.setattr(module, "_BATCH_RECORDS", 7)
    for n in range(4):
        write(tmp_path / f"{n}.jsonl", *[good(i) for i in range(n * 5, n * 5 + 5)])
    assert numbers(take(keeper, tmp_path)) == (20, 20, 0, 0)
    assert sizes == [7, 7, 6]


def test_progress_goes_to_the_total_where_that_is_known(keeper: Keeper, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", good(1))
    write(tmp_path / "b.json", json.dumps({"records": [GOOD]}).encode())
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    seen: list[tuple[int, int | None]] = []
    take(keeper, tmp_path, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (total, total)
    seen.clear()
    take(keeper, io.BytesIO(good(1)), progress=lambda done, of: seen.append((done, of)))
    assert seen == [(len(good(1)), None)]


def test_a_file_that_may_not_be_read_is_an_error(keeper: Keeper, open_folder: Path) -> None:
    write(open_folder / "a.jsonl", good(1)).chmod(0)
    with without_privileges(), pytest.raises(InputError, match="Permission denied"):
        take(keeper, open_folder / "a.jsonl")
