"""What hooks left in the spool, into a store: each record once, and a file goes only when all of it is there.

A run that began in a dead process's file and did not end in it is lost: it gets a `run.died`, which any receipt of a
better witness outranks. Lines that are no records are set aside as `ingest` does. What is taken in belongs to the store
that took it; two stores may both read what a live process writes, and one of them gets the end.
Here: files to records. Not here: what can be known of a file (`spool_files`).
"""

from __future__ import annotations

import contextlib
import io
import json
import operator
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from stopcause.pipeline import ingest
from stopcause.pipeline.ingest_sources import Source
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.spool_files import SpoolFile, Stretch, files_of, sweep
from stopcause.receipts import codec
from stopcause.receipts.codec import LineError
from stopcause.receipts.model import SCHEMA, RunStarted
from stopcause.receipts.spool import OpenRuns, is_mark

_FILES = 200  # that are open at once


class TakenIn(NamedTuple):
    """What came of a spool. `lost`: the runs whose process died; `cut`: last lines that a death left half written."""

    files: int = 0
    records: int = 0
    repeated: int = 0
    lost: tuple[str, ...] = ()
    cut: int = 0
    removed: int = 0
    set_aside: int = 0
    rejected_files: tuple[Path, ...] = ()
    unreadable: tuple[OSError, ...] = ()

    def plus(self, other: TakenIn) -> TakenIn:
        """Both together."""
        return TakenIn(*map(operator.add, self, other))


def take_in(spool: Path, keeper: Keeper, now: datetime) -> TakenIn:
    """Takes in what is new in a spool, and removes what nobody writes any more.

    Args:
        spool: The folder; it need not exist.
        keeper: Takes the records; its store has a file.
        now: The time at which runs are judged.

    Raises:
        StoreFullError: The disk took no more. No file of which a record is missing is removed.
        StoreError: The store failed; the same holds.
    """
    try:
        paths = files_of(spool)
    except OSError as error:
        return TakenIn(unreadable=(error,))
    total = TakenIn()
    for first in range(0, len(paths), _FILES):
        total = total.plus(_take_some(paths[first : first + _FILES], keeper, now))
    if paths:
        sweep(spool)
    return total


def _take_some(paths: Sequence[Path], keeper: Keeper, now: datetime) -> TakenIn:
    """Takes in some files together: one commit for all of them, where they are small."""
    with contextlib.ExitStack() as files:
        opened, refused = _open(paths, keeper, files)
        parts = [part for file in opened if (part := _Part(file)).is_wanted]
        # A process that dies as it changes files leaves its open runs in two of them: the later one says when.
        lost = list({(died.run_id, died.attempt): died for part in parts for died in part.lost()}.values())
        deaths = io.BytesIO(b"\n".join(died.line for died in lost))
        sources = [*(part.source for part in parts), Source("deaths", deaths, None, named=False)]
        report = ingest.ingest(sources, keeper, now, rejected_dir=paths[0].parent)
        removed = sum(part.finish() for part in parts)
    return TakenIn(
        len(parts),
        report.accepted,
        report.repeated,
        tuple(died.run_id for died in lost),
        sum(part.is_cut for part in parts),
        removed,
        report.set_aside,
        report.rejected_files,
        refused,
    )


def _open(
    paths: Sequence[Path], keeper: Keeper, files: contextlib.ExitStack
) -> tuple[list[SpoolFile], tuple[OSError, ...]]:
    opened: list[SpoolFile] = []
    refused: list[OSError] = []
    for path in paths:
        try:
            opened.append(files.enter_context(SpoolFile(path, keeper.store.path)))
        except FileNotFoundError:
            continue  # another store was faster
        except OSError as error:
            refused.append(error)
    return opened, tuple(refused)


class Died(NamedTuple):
    """A run that is lost, and the record that says so."""

    run_id: str
    attempt: int
    line: bytes


class _Part:
    """What is to be taken in of one file now."""

    def __init__(self, file: SpoolFile) -> None:
        self._file = file
        self._is_last = file.is_gone  # asked once, before it is read: what comes later is not lost by it
        self._end, self.is_cut = file.line_end(), False
        if self._is_last and self._end < file.size:
            self._end, self.is_cut = self._with_tail()
        stretch = cast("BinaryIO", Stretch(file, file.hint.taken, self._end))
        self.source = Source(file.path.name, stretch, None, named=False)

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to do."""
        return self._is_last or self._end > self._file.hint.taken

    def lost(self) -> list[Died]:
        """What died with a process: the same whenever this file is read."""
        if not self._file.is_dead:
            return []
        runs, last = OpenRuns(), b""
        for line in self._file.lines(0, self._end):
            runs.see(line)
            last = last if is_mark(line) else line
        return [] if self._file.is_broken else _died(runs.starts, last)

    def finish(self) -> bool:
        """What is in the store need not be read again; whether the file was removed."""
        if self._file.is_broken:
            return False
        if self._is_last:
            return self._file.remove()
        self._file.note(self._end)
        return False

    def _with_tail(self) -> tuple[int, bool]:
        """Where the file ends, and whether its last line is torn: that one was never acknowledged."""
        tail = os.pread(self._file.fd, codec.MAX_LINE_BYTES, self._end)
        is_whole = not isinstance(codec.read_line(tail), LineError)
        return (self._file.size, False) if is_whole else (self._end, True)


def _died(starts: Sequence[bytes], last: bytes) -> list[Died]:
    """Of each of these runs that its process is gone, as of the last record in its file.

    One that names no process is kept by an engine outside, and lives on.
    """
    begun = [record for record in map(codec.read_line, starts) if isinstance(record, RunStarted)]
    end = codec.read_line(last)
    moments = [each.at for each in (*begun, end) if not isinstance(each, LineError)]
    return [Died(each.run_id, each.attempt, _death(each, max(moments))) for each in begun if each.process is not None]


def _death(begun: RunStarted, at: datetime) -> bytes:
    """It has no id of its own: the reader makes one of its content, always the same."""
    died = {
        "schema": SCHEMA,
        "kind": "run.died",
        "run_id": begun.run_id,
        "attempt": begun.attempt,
        "at": at.isoformat(),
        "boundary": "platform",
        "adapter": "stopcause.spool",
        "reason": "lost",
    }
    return json.dumps(died, separators=(",", ":")).encode()
