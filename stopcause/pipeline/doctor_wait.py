"""Waiting for the first record of a store: looks into journal and spool now and then, opens and locks nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from stopcause.pipeline.doctor_files import last_lines, lines_of
from stopcause.pipeline.keeper import journal_folder
from stopcause.pipeline.spool_files import files_of
from stopcause.receipts import codec
from stopcause.receipts.codec import LineError
from stopcause.render.doctor import Arrived

_EVERY_S = 0.5


def wait_for_record(store: Path, spool: Path, timeout_s: float) -> Arrived | None:
    """The newest record, as soon as there is one; None where none came in time.

    Args:
        store: The database file; neither it nor its journal needs to exist.
        spool: Where hooks leave their records.
        timeout_s: Seconds to wait at most.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        if (found := next(_newest(store, spool), None)) is not None:
            return found
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(_EVERY_S, left))


def _newest(store: Path, spool: Path) -> Iterator[Arrived]:
    """The newest record of each place that has one."""
    for where, folder, lines in _places(store, spool):
        for line in reversed(lines):
            read = codec.read_line(line)
            if not isinstance(read, LineError):
                yield Arrived(
                    where,
                    folder,
                    read.kind,
                    getattr(read, "run_id", None),
                    getattr(read, "agent", None),
                    read.adapter,
                    read.at,
                )
                break


def _places(store: Path, spool: Path) -> Iterator[tuple[str, Path, list[bytes]]]:
    """Where a record can have arrived: what kind of place, which, and its last lines."""
    yield "journal", journal_folder(store), list(last_lines(journal_folder(store)))
    for path in reversed(files_of(spool)):
        yield "spool", spool, lines_of(path)
