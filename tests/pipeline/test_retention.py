"""Forgetting by the day: what goes, what stays and why, and that a store made again from its journal lacks no run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import InputError, StoreError
from stopcause.pipeline import backup, publish, retention
from stopcause.pipeline.keeper import Keeper, journal_folder, owned
from stopcause.pipeline.retention import Forgotten, Plan
from stopcause.receipts import journal
from stopcause.receipts.journal import Journal
from stopcause.store import offline, way_back
from stopcause.store.duckdb_store import DuckStore
from tests.support import days
from tests.support.days import DAY, DAY_ONE, NOW, line, outcome, stopped, waiting

ROOT = Path(__file__).parents[2]


def day(number: int) -> datetime:
    """The UTC midnight with which a day of November begins; runs of day 0 open on the 1st."""
    return datetime(2026, 11, number, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.duckdb"


def keep(path: Path, lines: Sequence[bytes] | Iterator[bytes], now: datetime = NOW) -> None:
    with Keeper.open(path, DEFAULT_POLICY, now) as keeper:
        keeper.accept(lines, now)
        keeper.settle(now)


def planned(path: Path, before: datetime) -> Plan:
    with DuckStore.open(path) as store:
        return retention.plan(store, before)


def forgotten(path: Path, before: datetime) -> Forgotten:
    with owned(path) as (store, spool):
        return retention.forget(store, spool, before)


def runs_in(path: Path) -> list[str]:
    with DuckStore.open(path) as store:
        return [name for (name,) in store.ask("SELECT DISTINCT run_id FROM records ORDER BY run_id").rows]


def made_again(path: Path) -> Path:
    """The store as its journal makes it."""
    other = path.parent / "again" / "s.duckdb"
    shutil.rmtree(other.parent, ignore_errors=True)
    shutil.copytree(journal_folder(path), journal_folder(other))
    Keeper.open(other, DEFAULT_POLICY, NOW).close()
    return other


def same_records(path: Path) -> bool:
    return offline.file_digest(path)["records"] == offline.file_digest(made_again(path))["records"]


# Days -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("2026-11-03", day(3)),
        ("30d", datetime(2026, 10, 31, tzinfo=UTC)),
        ("1d", day(29)),
        ("0d", day(30)),
        ("36h", day(29)),
        ("2026-11-30", day(30)),
    ],
)
def test_a_day_is_a_utc_midnight(said: str, expected: datetime) -> None:
    assert retention.first_day(said, datetime(2026, 11, 30, 23, 59, tzinfo=UTC)) == expected
    ahead = datetime(2026, 12, 1, 1, 59, tzinfo=UTC).astimezone(tz=None) - timedelta(hours=2)
    assert retention.first_day(said, ahead) == expected


@pytest.mark.parametrize(
    "said", ["", "30", "d", "-1d", "2026-13-01", "2026-11-3", "yesterday", "2026-12-01", "9999999999d"]
)
def test_what_is_no_day_or_a_day_to_come_is_refused(said: str) -> None:
    with pytest.raises(InputError):
        retention.first_day(said, NOW)


# What goes, what stays ------------------------------------------------------------------------------------------------


def test_runs_that_opened_before_the_day_go_with_all_of_their_records(path: Path) -> None:
    days.filled(path).close()

    gone = forgotten(path, day(3))

    assert (gone.plan.runs, gone.plan.records, gone.plan.waiting, gone.lines) == (18, 54, 2, 54)
    assert runs_in(path) == ["r00-00009", "r01-00009", *(f"r02-{n:05d}" for n in range(10))]
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        assert keeper.store.counts().runs == 12
    assert same_records(path)


def test_a_preview_changes_nothing(path: Path) -> None:
    days.filled(path).close()
    before = offline.file_digest(path)

    assert planned(path, day(3)).runs == 18

    assert offline.file_digest(path) == before


def test_doing_it_again_finds_nothing(path: Path) -> None:
    days.filled(path).close()
    forgotten(path, day(3))
    before = offline.file_digest(path)

    again = forgotten(path, day(3))

    assert (again.plan.runs, again.lines, again.plan.waiting) == (0, 0, 2)
    assert offline.file_digest(path) == before


def test_a_record_that_came_late_does_not_keep_its_run(path: Path) -> None:
    keep(path, [stopped("old", DAY_ONE)])
    keep(path, [outcome("old", NOW)])

    assert forgotten(path, day(2)).plan.records == 2


def test_what_waits_runs_or_is_not_settled_stays(path: Path) -> None:
    keep(
        path,
        [
            stopped("done", DAY_ONE),
            waiting("waits", DAY_ONE),
            line("run.started", "runs", DAY_ONE, lease_s=90 * 86400),
            line("run.started", "open", DAY_ONE),
        ],
        DAY_ONE + timedelta(minutes=1),
    )

    found = planned(path, day(2))

    assert (found.runs, found.waiting, found.running, found.unsettled) == (1, 1, 1, 1)
    forgotten(path, day(2))
    assert runs_in(path) == ["open", "runs", "waits"]


def test_an_earlier_attempt_that_waited_does_not_keep_a_run_that_is_over(path: Path) -> None:
    keep(path, [waiting("r", DAY_ONE), stopped("r", DAY_ONE + DAY, attempt=2)])

    assert forgotten(path, day(2)).plan.runs == 1


def test_a_run_that_takes_up_one_that_stays_stays_too(path: Path) -> None:
    keep(
        path,
        [
            waiting("first", DAY_ONE),
            stopped("second", DAY_ONE, resumes_run_id="first", answers=["other"]),
            stopped("third", DAY_ONE, resumes_run_id="second"),
            stopped("fourth", DAY_ONE, resumes_run_id="never-seen"),
        ],
    )
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        verdicts = keeper.store.counts().verdicts

    gone = forgotten(path, day(2))

    kept = ["first", "second", "third"] if gone.plan.waiting else []
    assert runs_in(path) == kept
    assert gone.plan.resuming == 2
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        after = keeper.store.counts().verdicts
    assert after["WAITING"] == verdicts["WAITING"]


def test_a_run_that_takes_up_a_forgotten_one_is_judged_as_before(path: Path) -> None:
    keep(path, [waiting("old", DAY_ONE)])
    keep(path, [stopped("new", NOW - DAY, resumes_run_id="old", answers=["ap-old"])])
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        (before,) = [row for row in keeper.store.rows(limit=None) if row.run_id == "new"]

    assert forgotten(path, day(2)).plan.runs == 1

    with Keeper.open(path, days.OTHER_POLICY, NOW) as keeper:
        keeper.rejudge(NOW)
        (after,) = keeper.store.rows(limit=None)
        assert (after.verdict, after.reason) == (before.verdict, before.reason)
        assert keeper.unjudged == []
        taken = keeper.accept([outcome("new", NOW), outcome("old", NOW)], NOW)
        assert taken.accepted == 2
    assert runs_in(path) == ["new", "old"]  # a late word on a forgotten run begins it anew


def test_what_has_no_run_and_what_nobody_can_read_stays_in_the_journal(path: Path) -> None:
    triage = (
        b'{"schema":"stopcause/1","kind":"triage.updated","group":"g1","action":"acknowledged",'
        b'"at":"2026-11-01T00:00:00Z"}'
    )
    keep(path, [stopped("old", DAY_ONE), triage])
    with Journal(journal_folder(path)) as spool:
        spool.append([b'{"schema":"stopcause/9","run":"later"}', b"\xff no json"])
    keep(path, [])

    forgotten(path, day(2))

    left = [said for said, _ in journal.read(journal_folder(path))]
    assert len(left) == 3
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        assert keeper.store.counts().kinds == {"triage.updated": 1}


# The journal ----------------------------------------------------------------------------------------------------------


def small_segments(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three days, in many segments of the journal."""
    monkeypatch.setattr("stopcause.pipeline.keeper.Journal", lambda folder: Journal(folder, segment_bytes=4_000))
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        for number in range(3):
            for batch in range(5):
                keeper.accept(days.runs_of(number, 4, name=f"b{batch}-"), NOW)
        keeper.accept([waiting("waits", DAY_ONE)], NOW)
    monkeypatch.undo()


def test_segments_that_hold_nothing_else_are_removed_and_the_others_keep_their_order(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_segments(path, monkeypatch)
    before = [said for said, _ in journal.read(journal_folder(path))]

    gone = forgotten(path, day(2))

    after = [said for said, _ in journal.read(journal_folder(path))]
    assert gone.segments >= 5
    assert after == [said for said in before if said in set(after)]
    assert len(after) == len(before) - gone.lines
    assert same_records(path)


def test_the_store_goes_on_after_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_segments(path, monkeypatch)
    forgotten(path, day(3))
    keep(path, days.runs_of(5, 10))
    forgotten(path, day(4))

    assert len(runs_in(path)) == 11
    assert same_records(path)


def test_a_store_that_lags_behind_its_journal_is_not_touched(path: Path) -> None:
    keep(path, [stopped("old", DAY_ONE)])
    with Journal(journal_folder(path)) as spool:
        spool.append([stopped("late", DAY_ONE)])

    with pytest.raises(StoreError, match="Run it again"):
        forgotten(path, day(2))
    keep(path, [])
    assert forgotten(path, day(2)).plan.runs == 2


def test_a_store_that_is_not_judged_anew_since_its_upgrade_is_not_touched(path: Path) -> None:
    days.filled(path).close()
    days.as_of_0001(path)
    keep(path, [])

    with pytest.raises(StoreError, match="judged anew"):
        forgotten(path, day(2))


def test_copies_from_before_an_upgrade_go_too(path: Path) -> None:
    days.filled(path).close()
    days.as_of_0001(path)
    keep(path, [])
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        keeper.rejudge(NOW)
    (copy,) = way_back.copies(path)

    assert planned(path, day(2)).copies == (copy,)
    forgotten(path, day(2))

    assert way_back.copies(path) == []


class Broken(Exception):  # noqa: N818 - a moment, not an error of ours
    """Where a test breaks it off."""


@pytest.mark.parametrize("moment", range(12))
def test_broken_off_at_any_step_no_run_that_stays_is_lost_and_doing_it_again_ends_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    small_segments(path, monkeypatch)
    steps = iter(range(moment))

    def breaking(real: object) -> object:
        def step(*args: object, **more: object) -> object:
            if next(steps, None) is None:
                raise Broken
            return real(*args, **more)  # type: ignore[operator]

        return step

    for place in (
        "stopcause.store.duckdb_store.DuckStore.commit",
        "stopcause.store.duckdb_store.DuckStore.remove_runs",
        "stopcause.receipts.thinning.thin_segment",
        "stopcause.receipts.journal.Journal.begin_segment",
        "stopcause.receipts.journal.Journal.remove_before",
    ):
        monkeypatch.setattr(place, breaking(_resolved(place)))
    with pytest.raises(Broken):
        forgotten(path, day(2))
    monkeypatch.undo()

    stays = {"waits"} | {run for run in runs_in(path) if not run.endswith(tuple(f"00-{n:05d}" for n in range(4)))}
    assert stays <= set(runs_in(made_again(path)))
    forgotten(path, day(2))
    assert set(runs_in(path)) == stays == set(runs_in(made_again(path)))
    assert same_records(path)


def _resolved(place: str) -> object:
    module, _, name = place.rpartition(".")
    try:
        return getattr(__import__(module, fromlist=["_"]), name)
    except ModuleNotFoundError:
        outer, _, owner = module.rpartition(".")
        return getattr(getattr(__import__(outer, fromlist=["_"]), owner), name)


FULL = """
import resource, sys
from pathlib import Path
from stopcause.errors import StoreFullError
from stopcause.pipeline import retention
from stopcause.pipeline.keeper import owned
from tests.support import days
with owned(Path(sys.argv[1])) as (store, spool):
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    try:
        retention.forget(store, spool, days.DAY_ONE.replace(hour=0) + days.DAY)
    except StoreFullError as error:
        assert "Free space" in str(error), error
    else:
        raise SystemExit("it had room")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def test_a_full_disk_forgets_nothing_that_stays_and_the_next_time_ends_it(path: Path) -> None:
    days.filled(path, count=300).close()
    everything = set(runs_in(path))

    subprocess.run([sys.executable, "-c", FULL, str(path)], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})

    lines = [json.loads(line) for line, _position in journal.read(journal_folder(path))]
    assert set(runs_in(path)) == everything == {line["run_id"] for line in lines}
    assert not list(journal_folder(path).glob("*.new"))
    assert len(runs_in(made_again(path))) == 630  # whoever opens what has begun ends it
    forgotten(path, day(2))
    assert len(runs_in(path)) == 630
    assert same_records(path)


def test_room_is_used_again(path: Path) -> None:
    with days.filled(path, days=1, count=4_000):
        pass
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        keeper.accept(days.runs_of(1, 4_000), NOW)
    full = path.stat().st_size
    forgotten(path, day(2))
    keep(path, days.runs_of(2, 4_000))

    assert path.stat().st_size <= full * 1.2


def test_what_was_broken_off_is_ended_before_anything_comes_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days.filled(path).close()
    broken_off(path, day(2), monkeypatch)
    with owned(path) as (store, _spool):
        assert retention.plan(store, day(2)).runs > 0

    late = next(iter(days.runs_of(0, 1)))
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        assert retention.plan(keeper.store, day(2)).runs == 0
        assert not (journal_folder(path) / retention.NOTE).exists()
        keeper.accept([late], NOW)
        rows = keeper.store.ask("SELECT record_id, run_id FROM records ORDER BY ALL").rows
    path.unlink()
    with Keeper.open(path, DEFAULT_POLICY, NOW) as again:
        assert again.store.ask("SELECT record_id, run_id FROM records ORDER BY ALL").rows == rows


def test_sums_begin_anew_where_runs_were_forgotten(path: Path) -> None:
    """A counter that falls under one name would be read as a restart."""
    days.filled(path).close()
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        before = publish.source_of(keeper.store, "1")
    with owned(path) as (store, spool):
        assert publish.source_of(store, "1") == before
        assert retention.forget(store, spool, day(2)).plan.runs > 0
        after = publish.source_of(store, "1")
    assert after != before


def broken_off(path: Path, before: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are gone from the journal, rows are not from the store."""

    def stopped_here(*_: object) -> None:
        raise KeyboardInterrupt

    with owned(path) as (store, spool), monkeypatch.context() as broken:
        broken.setattr(DuckStore, "remove_runs", stopped_here)
        with pytest.raises(KeyboardInterrupt):
            retention.forget(store, spool, before)


def test_what_is_put_in_the_place_of_a_store_is_not_forgotten_for_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days.filled(path).close()
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        backup.write_backup(keeper, tmp_path / "b.tar", NOW)
    broken_off(path, day(2), monkeypatch)
    path.unlink()
    shutil.rmtree(journal_folder(path))
    backup.restore(tmp_path / "b.tar", path)

    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        assert keeper.store.counts().records == 87


@pytest.mark.parametrize(
    "content", ["", "2026-11-0", "2026-11-02T00:00:00", "2026-11-02T00:00:00+00:00 and more", "\xff"]
)
def test_a_note_that_says_no_day_is_said_to_be_so_and_forgets_nothing(path: Path, content: str) -> None:
    days.filled(path).close()
    note = journal_folder(path) / retention.NOTE
    note.write_text(content, "latin-1")

    with pytest.raises(StoreError, match=rf"{retention.NOTE}: says no day.*Take it away"):
        Keeper.open(path, DEFAULT_POLICY, NOW)
    note.unlink()
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        assert keeper.store.counts().records == 87
