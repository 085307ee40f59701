"""Files and streams into a keeper, in batches: what is a record is kept, what is none is set aside and named.

Reading twice changes nothing. Here: batches, counts, the report. Not here: what a source may look like
(`ingest_sources`), where bad lines go (`ingest_rejects`), and what happens to a batch (`keeper`).
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from stopcause.pipeline.ingest_rejects import Rejects
from stopcause.pipeline.ingest_sources import Bad, NoRecordsError, Source, expand, read_source
from stopcause.pipeline.keeper import Keeper
from stopcause.receipts.codec import AnyRecord, Kept, LineError
from stopcause.receipts.model import UnknownRecord

Progress = Callable[[int, int | None], None]  # bytes done, bytes in all (None: not known)
_BATCH_RECORDS = 50_000
_BATCH_BYTES = 32 * 1024 * 1024  # a record is some ten times as large in memory as in its line
_NAMED_ERRORS = 5


class IngestReport(NamedTuple):
    """What became of it all. `lines` = `accepted` + `repeated` + `set_aside`; blank lines do not count."""

    files: int
    lines: int
    accepted: int
    repeated: int
    set_aside: int
    rejected_files: tuple[Path, ...]
    newest_at: datetime | None  # the latest `at` of what was read
    empty: tuple[str, ...]  # sources without a line
    passed_over: tuple[str, ...]  # files of folders that hold no records
    first_errors: tuple[tuple[str, LineError], ...]  # the first few, with their sources
    unknown_kinds: int  # records of a kind that this version does not know: kept, and not judged
    unknown_words: int  # records with a word that its list does not have: read as unknown
    unknown_fields: int  # records with fields that this version does not know: kept in `extra`, or only counted


def ingest(
    sources: Sequence[Path | BinaryIO | Source],
    keeper: Keeper,
    now: datetime,
    *,
    progress: Progress | None = None,
    rejected_dir: Path | None = None,
) -> IngestReport:
    """Reads all sources into the keeper. What is reported is durable.

    Args:
        sources: Files, folders (their `.json`, `.jsonl` and `.ndjson` files, at any depth), open binary streams,
            and sources that are made already.
        keeper: Takes the records.
        now: The time at which runs are judged.
        progress: Called after each chunk with bytes read, and bytes in all.
        rejected_dir: Where bad lines go; None is beside their source.

    Raises:
        InputError: A source is not there, cannot be read, or was named and holds no records. What came before it is
            kept.
        StoreFullError: The disk took no more. Free space and run it again: what is kept already changes nothing.
        StoreError: The store failed; the same holds.
    """
    found = expand(sources)
    sizes = [source.size for source in found]
    desk = _Desk(keeper, now, _Meter(progress, None if None in sizes else sum(size or 0 for size in sizes)))
    with _collector_paused():
        try:
            for source in found:
                desk.read(source, rejected_dir)
        finally:
            desk.flush()  # a source that cannot be read does not cost those before it
    return desk.report()


class _Meter:
    """Adds up bytes for whoever watches."""

    def __init__(self, progress: Progress | None, total: int | None) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def took(self, count: int) -> None:
        self._done += count
        if self._progress:
            self._progress(self._done, self._total)

    @property
    def done(self) -> int:
        return self._done


class _Desk:
    """Collects records to batches, across sources, and counts."""

    def __init__(self, keeper: Keeper, now: datetime, meter: _Meter) -> None:
        self._keeper, self._now, self._meter = keeper, now, meter
        self._batch: list[Kept] = []
        self._flushed_at = 0  # bytes
        self._files = self._lines = self._accepted = self._repeated = self._set_aside = 0
        self._unknown_kinds = self._unknown_words = self._unknown_fields = 0
        self._rejected: list[Path] = []
        self._empty: list[str] = []
        self._passed_over: list[str] = []
        self._errors: list[tuple[str, LineError]] = []
        self._newest: datetime | None = None

    def read(self, source: Source, rejected_dir: Path | None) -> None:
        before = self._lines
        with Rejects(source, rejected_dir) as rejects:
            try:
                self._read(source, rejects)
            except NoRecordsError:
                if source.named:
                    raise
                self._passed_over.append(source.name)
                return
        self._files += 1
        self._set_aside += rejects.count
        if rejects.path:
            self._rejected.append(rejects.path)
        if self._lines == before:
            self._empty.append(source.name)

    def _read(self, source: Source, rejects: Rejects) -> None:
        for read in read_source(source, self._meter.took):
            self._lines += 1
            if isinstance(read, Bad):
                rejects.add(read)
                if len(self._errors) < _NAMED_ERRORS:
                    self._errors.append((source.name, read.error))
                continue
            self._batch.append(read)
            self._note(read.record)
            if len(self._batch) >= _BATCH_RECORDS or self._meter.done - self._flushed_at >= _BATCH_BYTES:
                self.flush()

    def _note(self, record: AnyRecord) -> None:
        """Counts what was read otherwise than it was written: a misspelt word costs a right verdict."""
        if record.extra:
            self._unknown_fields += 1
        if isinstance(record, UnknownRecord):
            self._unknown_kinds += 1
        elif record.findings and any(finding.code == "vocabulary_new" for finding in record.findings):
            self._unknown_words += 1

    def flush(self) -> None:
        """Hands the batch over; what is new of it is durable and judged then."""
        batch, self._batch = self._batch, []
        self._flushed_at = self._meter.done
        if not batch:
            return
        newest = max(kept.record.at for kept in batch)
        self._newest = newest if self._newest is None else max(newest, self._newest)
        taken = self._keeper.add(batch, self._now)
        self._accepted += taken.accepted
        self._repeated += taken.repeated
        del batch, taken
        gc.collect(1)  # only what this batch left behind

    def report(self) -> IngestReport:
        return IngestReport(
            self._files,
            self._lines,
            self._accepted,
            self._repeated,
            self._set_aside,
            tuple(self._rejected),
            self._newest,
            tuple(self._empty),
            tuple(self._passed_over),
            tuple(self._errors),
            self._unknown_kinds,
            self._unknown_words,
            self._unknown_fields,
        )


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Without the cyclic collector: it would walk every record of a batch again and again, and they have no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
