"""An archive: a folder of Parquet files by day, which any tool reads and `ingest` takes in again.

    records/day=2026-11-28/part-0.parquet    every record, with its line
    verdicts/day=2026-11-28/part-0.parquet   what holds of every attempt
    manifest.json                            written last: every file with its size and SHA-256, and what the rows say

A day is a UTC day, and a run is in the one that it opened in. Times are UTC. The folder gets its name when all of it is
there. Not here: reading lines again (`pipeline.ingest_sources`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from stopcause.errors import InputError
from stopcause.store import beside, digest
from stopcause.store.digest import TableDigest
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.listed import FileEntry, entry_of
from stopcause.store.queries import text
from stopcause.store.tokens import Tokens

FORMAT = "stopcause-archive/1"
MANIFEST = "manifest.json"
_ROWS = 20_000  # of a row group: lines are about 1 kB
_EPOCH = date(1970, 1, 1)
_HOUR = timedelta(hours=1)
_MOST_BYTES = 64 * 1024 * 1024
_MEMBER = re.compile(r"(?:records|verdicts)/day=\d{4}-\d\d-\d\d/part-\d+\.parquet")


class Span(NamedTuple):
    """Runs that opened from `since` on and before `before`, both UTC midnights; None is no bound."""

    since: datetime | None = None
    before: datetime | None = None


class Dataset(BaseModel):
    """One of the two: how many rows, and what they say (`store.digest`)."""

    model_config = ConfigDict(frozen=True)

    rows: int
    digest: str


class Manifest(BaseModel):
    """What an archive says of itself. `tokens_taken_out` counts the resume tokens that its lines lack."""

    model_config = ConfigDict(frozen=True)

    format: str
    written_at: datetime
    stopcause: str
    classifier: str
    since: datetime | None
    before: datetime | None
    days: int
    records: Dataset
    verdicts: Dataset
    resume_tokens: bool
    tokens_taken_out: int
    files: tuple[FileEntry, ...]


# Writing --------------------------------------------------------------------------------------------------------------


def write_archive(
    store: DuckStore, folder: Path, span: Span, about: tuple[datetime, str, str], *, tokens: bool
) -> Manifest:
    """Writes an archive, durably and in one step; a row group at a time is in memory.

    Args:
        store: An open one.
        folder: Is not there yet, or is empty.
        span: Which runs.
        about: The present time, and the versions of stopcause and of the classifier.
        tokens: Whether resume tokens stay in the lines.

    Raises:
        InputError: There is something at `folder`.
        StoreFullError: The disk took no more; nothing is left there.
        StoreError: The engine failed; nothing is left there.
    """
    check_target(folder)
    with beside.written(folder) as draft:
        draft.mkdir()
        writer = _Writer(store, draft, Tokens(stay=tokens))
        days = writer.write(_hours(span))
        now, stopcause, classifier = about
        manifest = Manifest(
            format=FORMAT,
            written_at=now.astimezone(UTC),
            stopcause=stopcause,
            classifier=classifier,
            since=span.since,
            before=span.before,
            days=days,
            records=writer.dataset("records"),
            verdicts=writer.dataset("verdicts"),
            resume_tokens=tokens,
            tokens_taken_out=writer.tokens.taken_out,
            files=tuple(writer.files),
        )
        (draft / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", "utf-8")
    return manifest


def check_target(folder: Path) -> None:
    """Refuses a place that is taken.

    Raises:
        InputError: It is.
    """
    is_new = not folder.exists() or (folder.is_dir() and next(folder.iterdir(), None) is None)
    if folder.is_symlink() or not is_new:
        raise InputError(f"{folder} is there already. Name a new folder.")


def _hours(span: Span) -> dict[str, int]:
    first, last = (None if at is None else int(at.timestamp() // 3600) for at in span)
    return {"first": -(1 << 31) if first is None else first, "last": (1 << 31) - 1 if last is None else last}


class _Writer:
    """Both datasets of one archive, file by file."""

    def __init__(self, store: DuckStore, draft: Path, tokens: Tokens) -> None:
        self.tokens = tokens
        self.files: list[FileEntry] = []
        self._store, self._draft = store, draft
        self._digests = dict.fromkeys(digest.TABLES, TableDigest())
        self._engine = duckdb.connect(":memory:")  # for digests alone

    def write(self, hours: dict[str, int]) -> int:
        """Every day that has a record; gives how many."""
        with self._engine:
            days = [day for (day,) in self._store.ask(text("archive_days"), hours).rows]
            for day in days:
                for table in digest.TABLES:
                    self._write_day(table, day)
        return len(days)

    def dataset(self, table: str) -> Dataset:
        """What was written of a table."""
        return Dataset(rows=self._digests[table].rows, digest=self._digests[table].text)

    def _write_day(self, table: str, day: int) -> None:
        name = f"{table}/day={_EPOCH + timedelta(days=day)}/part-0.parquet"
        path = self._draft / name
        path.parent.mkdir(parents=True)
        asked = {"first": day * 24, "last": day * 24 + 24}
        with (
            self._store.batches(text(f"archive_{table}"), asked, rows=_ROWS) as batches,
            pq.ParquetWriter(path, batches.schema, compression="zstd") as file,
        ):
            for batch in batches:
                file.write_batch(self._taken_down(table, batch))
        self.files.append(entry_of(path, name))

    def _taken_down(self, table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as it is written; its digest is added up."""
        said = self.tokens.without(batch) if table == "records" else batch
        self._engine.register("batch", said)
        self._digests[table] = self._digests[table].plus(digest.table_digest(self._engine, "batch"))
        self._engine.unregister("batch")
        return said


# Reading --------------------------------------------------------------------------------------------------------------


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None where it has none that is an archive's.

    Raises:
        InputError: A newer stopcause wrote it, or it is broken.
    """
    path = folder / MANIFEST
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return None
    data = path.read_bytes()
    if b"stopcause-archive/" not in data:
        return None
    try:
        found = Manifest.model_validate_json(data)
    except ValidationError:
        raise InputError(f"{path} cannot be read. Take another copy of this archive; nothing was taken in.") from None
    if found.format != FORMAT:
        raise InputError(f"A newer stopcause wrote {folder} ({FORMAT} is known here). Upgrade; nothing was taken in.")
    return found


def check(folder: Path, manifest: Manifest) -> list[Path]:
    """Holds every file of an archive against its manifest.

    Returns:
        The files of records, the oldest day first.

    Raises:
        InputError: A file is missing, cut off, altered or not of this archive; names the first.
    """
    listed = {entry.name: entry for entry in manifest.files}
    for name in sorted({*listed, *_parts(folder)}):
        if fault := _fault(folder, name, listed):
            raise InputError(f"{folder} is no whole archive: {fault}. Copy it again; nothing was taken in.")
    return [folder / name for name in sorted(listed) if name.startswith("records/")]


def is_part(path: Path) -> bool:
    """Whether this looks like a file of an archive."""
    return _MEMBER.fullmatch("/".join(path.parts[-3:])) is not None


def _parts(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.parquet"):
        yield path.relative_to(folder).as_posix()


def _fault(folder: Path, name: str, listed: dict[str, FileEntry]) -> str:
    path, entry = folder / name, listed.get(name)
    if entry is None or not _MEMBER.fullmatch(name):
        return "it has a file that its manifest does not name"
    if not path.is_file():
        return f"{name} is missing"
    if path.stat().st_size != entry.bytes:
        return f"{name} has {path.stat().st_size} of {entry.bytes} bytes"
    return "" if entry_of(path, name) == entry else f"{name} was altered"


def lines_of(path: Path, rows: int = _ROWS) -> Iterator[list[Any]]:
    """The column `line` of a Parquet file, in pieces.

    Raises:
        InputError: It is no Parquet file, or has no such column of text.
    """
    try:
        with pq.ParquetFile(path) as file:
            if "line" not in file.schema_arrow.names or not _is_text(file.schema_arrow.field("line").type):
                raise InputError(f"{path} has no column `line` of text. Name a file of records.")
            for batch in file.iter_batches(rows, columns=["line"]):
                yield batch.column(0).cast(pa.large_binary()).to_pylist()
    except pa.ArrowException as error:
        raise InputError(f"{path} is no Parquet file, or is cut off. Take another copy of it.") from error


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
