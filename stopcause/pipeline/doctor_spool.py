"""What waits in a spool: whose files these are, whether their processes live, and what the store lacks of them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from stopcause.pipeline.doctor_files import is_folder, listed, megabytes
from stopcause.pipeline.spool_files import SpoolFile, files_of, is_usual, opened
from stopcause.receipts import codec
from stopcause.receipts.codec import LineError
from stopcause.receipts.spool import is_mark
from stopcause.render.caller import Hint
from stopcause.render.doctor import Check, State
from stopcause.render.pen import age, count

_LIVES, _DEAD, _UNKNOWN = "of live processes", "of dead ones", "of hooks that cannot tell"
_FOR_THE_OLDEST = 100  # lines that are read to find a record


class _Waiting(NamedTuple):
    """One file. `records`: lines that the store lacks; `since`: the time of the first of them."""

    whose: str
    size: int
    records: int
    since: datetime | None


def check_spool(spool: Path, store: Path, now: datetime) -> Check:
    """How many files are there, and what of them is not in the store yet.

    Args:
        spool: The folder; it need not exist.
        store: The database file; it need not exist.
        now: The present time.
    """
    try:
        looked = [each if isinstance(each, OSError) else _look(each) for each in opened(files_of(spool), store)]
    except OSError as error:
        return Check("spool", State.BAD, f"{error.filename}: {error.strerror}", listed(spool))
    refused = [each for each in looked if isinstance(each, OSError)]
    found = [each for each in looked if isinstance(each, _Waiting)]
    if refused:
        said = f"{count(len(refused), 'file')} may not be read by this user, and nobody takes them in"
        return Check("spool", State.LOOK, said, listed(Path(refused[0].filename)))
    if not found:
        return Check("spool", State.OK, "nothing waits there" if is_folder(spool) else "there is none")
    waiting = sum(each.records for each in found)
    if not is_usual(store):
        return Check("spool", State.OK, f"{_whose(found)}; hooks report to the usual store, and not to this one")
    if not waiting:
        return Check("spool", State.OK, f"{_whose(found)}; all is taken in")
    said = f"{_whose(found)}; {count(waiting, 'record')} not taken in yet{_oldest(found, now)}"
    return Check("spool", State.LOOK, said, Hint(("runs",)))


def _whose(found: list[_Waiting]) -> str:
    """`3 files, 1.3 MB: 1 of live processes, 2 of dead ones`."""
    numbers = Counter(each.whose for each in found)
    kinds = ", ".join(f"{numbers[whose]} {whose}" for whose in (_LIVES, _DEAD, _UNKNOWN) if numbers[whose])
    return f"{count(len(found), 'file')}, {megabytes(sum(each.size for each in found))}: {kinds}"


def _oldest(found: list[_Waiting], now: datetime) -> str:
    since = min((each.since for each in found if each.since), default=None)
    return f", the oldest {age(now - since)} old" if since else ""


def _look(file: SpoolFile) -> _Waiting:
    whose = (_DEAD if file.is_dead else _LIVES) if file.is_locked else _UNKNOWN
    records, since = 0, None
    for line in file.lines(file.hint.taken, file.line_end()):
        if is_mark(line):
            continue
        records += 1
        if since is None and records <= _FOR_THE_OLDEST:
            since = _time_of(line)
    return _Waiting(whose, file.size, records, since)


def _time_of(line: bytes) -> datetime | None:
    read = codec.read_line(line)
    return None if isinstance(read, LineError) else read.at
