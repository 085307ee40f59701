"""Retention by whole UTC days: runs that opened before a day go, with all of their records and verdicts.

Runs that wait, run or are not settled stay, and so do runs that take up one that stays. The journal loses their lines
first, segment by segment, then the store its rows. That it has begun is noted in the journal's folder: where it
was broken off, whoever opens the store next ends it before anything is taken in, so that store and journal have the
same runs again. Not here: asking whether to (`cli_keep`), and owning a store (`keeper`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import NamedTuple

import pydantic_core

from stopcause.classifier.policy import parse_duration
from stopcause.errors import InputError, StoreError
from stopcause.receipts import journal
from stopcause.receipts.journal import Journal
from stopcause.receipts.thinning import Thinned
from stopcause.store import beside, way_back
from stopcause.store.columns import utc
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.queries import text

NOTE = "forgetting"  # the file's name; it says the day


class Plan(NamedTuple):
    """What would go, and how many older runs stay: because they wait, run, are unsettled, or take up one that stays."""

    before: datetime
    runs: int
    records: int
    first: datetime | None
    last: datetime | None
    waiting: int
    running: int
    unsettled: int
    resuming: int
    copies: tuple[Path, ...]  # from before upgrades; they hold what goes, and cannot be read on from afterwards


class Forgotten(NamedTuple):
    """What went: runs and records of the store, lines and bytes of the journal, and its segments that are gone."""

    plan: Plan
    lines: int
    bytes: int
    segments: int


def first_day(said: str, now: datetime) -> datetime:
    """The UTC midnight that `30d` (so many days before now) or `2026-10-31` means.

    Raises:
        InputError: It is neither, or a day to come.
    """
    today = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
    try:
        day = date.fromisoformat(said) if "-" in said else (now.astimezone(UTC) - parse_duration(said)).date()
    except (ValueError, OverflowError):
        raise InputError(f"{said!r} is no day. Write a date, as 2026-10-31, or an age in days, as 30d.") from None
    midnight = datetime.combine(day, time(), UTC)
    if midnight > today:
        raise InputError(f"{said} is a day to come. The latest is {today:%Y-%m-%d}: it keeps the runs of today.")
    return midnight


def plan(store: DuckStore, before: datetime) -> Plan:
    """What opened before this UTC midnight and would go. Changes nothing.

    Raises:
        StoreError: The store was upgraded and not judged anew since; or the engine failed.
    """
    if store.ask(text("forget_unknown")).rows:
        raise StoreError("Not every run is judged anew since the upgrade. Let `runs` do it, then run this again.")
    asked = {"hour": int(before.timestamp() // 3600)}
    store.ask(text("forget_held"), asked)
    while True:
        store.ask(text("forget_plan"), asked)
        if not store.ask(text("forget_resumers")).rows:
            break
    (found,) = store.ask(text("forget_summary")).rows
    runs, records, first, last, waiting, running, unsettled, resuming = found
    copies = tuple(way_back.copies(store.path)) if store.path else ()
    return Plan(before, runs, records, utc(first), utc(last), waiting, running, unsettled, resuming, copies)


def forget(store: DuckStore, spool: Journal, before: datetime) -> Forgotten:
    """Forgets it. Both must be `owned`.

    Raises:
        StoreFullError: The disk took no more. Some lines may be gone, and no run that stays; run it again.
        StoreError: The journal or the store failed; the same holds.
    """
    planned = plan(store, before)
    if not planned.runs:
        return Forgotten(planned, 0, 0, 0)
    with _noted(spool, before):
        gone = _forget_lines(store, spool, planned.copies)
        store.remove_runs(before)
    return Forgotten(planned, *gone)


def finish(store: DuckStore, spool: Journal) -> bool:
    """Ends what was broken off: nothing came in since, so the same runs go as before.

    Returns:
        Whether there was anything to end.

    Raises:
        StoreFullError: The disk took no more; it can be tried again.
        StoreError: The journal or the store failed, or the note cannot be read; it can be tried again.
    """
    if not (note := spool.folder / NOTE).exists():
        return False
    if not forget(store, spool, _noted_day(note)).plan.runs:
        _drop(note)  # only this was left to do
    return True


def _noted_day(note: Path) -> datetime:
    try:
        day = datetime.fromisoformat(note.read_text("ascii"))
    except ValueError:
        day = None
    if day is None or day.tzinfo is None:
        raise StoreError(f"{note}: says no day before which to forget. Take it away, and run `forget` again.")
    return day


@contextlib.contextmanager
def _noted(spool: Journal, before: datetime) -> Iterator[None]:
    """Notes it where the lines are: who puts another journal in that place has nothing to end."""
    note = spool.folder / NOTE
    with beside.written(note) as draft:
        draft.write_text(before.isoformat(), "ascii")
    yield
    _drop(note)


def _drop(note: Path) -> None:
    note.unlink(missing_ok=True)
    beside.sync_folder(note.parent)


def _forget_lines(store: DuckStore, spool: Journal, copies: Sequence[Path]) -> Thinned:
    """Takes the lines out. Until the store's position is in a new segment, no segment that it may be in is touched."""
    store.commit((), (), spool.begin_segment())
    for copy in (*copies, spool.folder / journal.TORN_NAME):  # a torn line was never acknowledged
        copy.unlink(missing_ok=True)
    return spool.thin(lambda lines: _stay(store, lines))


def _stay(store: DuckStore, lines: Sequence[bytes]) -> list[bool]:
    """Which lines are not of a run that goes. What cannot be read stays: a newer version may know what it is."""
    gone = store.forgotten_of([_run_of(line) for line in lines])
    return [i not in gone for i in range(len(lines))]


def _run_of(line: bytes) -> str | None:
    try:
        value = pydantic_core.from_json(line)
    except ValueError:
        return None
    run_id = value.get("run_id") if isinstance(value, dict) else None
    return run_id if isinstance(run_id, str) else None
