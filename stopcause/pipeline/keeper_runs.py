"""Which runs a batch of records concerns, and what is to be appended for their verdicts. Reads the store, never writes.

A record concerns its own run, and the run that its run takes up. A run is judged whole: outcomes, decisions and starts
of one attempt reach into the others, so all of its attempts are judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from stopcause.classifier import engine, fold
from stopcause.classifier.fold import Facts, Run
from stopcause.classifier.policy import Policy
from stopcause.classifier.verdict import Verdict
from stopcause.pipeline.rows import same_verdict, verdict_row
from stopcause.receipts import codec, model
from stopcause.receipts.codec import AnyRecord, Kept
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.rows import RecordRow, VerdictRow

_LINKING = (model.RunStarted, model.RunStopped)
_WITHOUT_LIFE = (model.OutcomeRecorded, model.ApprovalUpdated)


class Loaded(NamedTuple):
    """Runs with all of their records, and who takes up whom."""

    runs: dict[str, Run]
    opened_at: dict[str, datetime]
    stored: frozenset[str]  # runs that had records before this batch
    resumers: dict[str, list[Run]]
    concerned: Collection[str]  # the runs to judge; one that nothing is recorded of is not in `runs`


class Unjudged(NamedTuple):
    """A run that the classifier failed on, and the type of the error that it raised."""

    run_id: str
    error: str


def load_for(store: DuckStore, fresh: Sequence[AnyRecord]) -> Loaded:
    """What new records concern: they are part of the runs that come back."""
    touched = {record.run_id: None for record in fresh if not isinstance(record, model.TriageUpdated) and record.run_id}
    return _load(store, list(touched), fresh)


def load_runs(store: DuckStore, run_ids: Collection[str]) -> Loaded:
    """The same for runs as they are stored; only these are `concerned`."""
    loaded = _load(store, run_ids, ())
    return loaded._replace(concerned=run_ids)


def resumer_lines(store: DuckStore, run_ids: Collection[str]) -> dict[str, list[bytes]]:
    """For each of these runs that others take up, the lines of those others; nothing is decoded."""
    pairs = store.resumers_of(run_ids)
    lines: dict[str, list[bytes]] = {}
    for stored in store.records_of({resumer for _, resumer in pairs}):
        lines.setdefault(stored.run_id, []).append(stored.line)
    found: dict[str, list[bytes]] = {}
    for run_id, resumer in pairs:
        found.setdefault(run_id, []).extend(lines.get(resumer, ()))
    return found


def _load(store: DuckStore, run_ids: Collection[str], fresh: Sequence[AnyRecord]) -> Loaded:
    records, is_empty = _Records(), store.is_empty()
    if not is_empty:
        records.add_stored(store, run_ids)
    records.add(fresh)
    concerned = list(dict.fromkeys([*run_ids, *records.links]))
    if not is_empty:
        resumers = [resumer for _, resumer in store.resumers_of(concerned)]
        others = dict.fromkeys([*concerned, *resumers])
        records.add_stored(store, [run_id for run_id in others if run_id not in records.asked])
    runs = {run_id: _in_order(run) for run_id, run in fold.group(records.all).items()}
    return Loaded(runs, records.opened_at, frozenset(records.stored), _resumers(runs, records.linking), concerned)


class _Records:
    """Records as they are collected for one batch."""

    def __init__(self) -> None:
        self.all: list[AnyRecord] = []
        self.opened_at: dict[str, datetime] = {}
        self.asked: set[str] = set()  # runs whose stored records are in `all`
        self.stored: set[str] = set()  # those of them that have any
        self.links: dict[str, None] = {}  # runs that one of these takes up
        self.linking: dict[str, None] = {}  # the runs that do

    def add_stored(self, store: DuckStore, run_ids: Collection[str]) -> None:
        lines = store.records_of(run_ids)
        self.asked.update(run_ids)
        self.stored.update(line.run_id for line in lines)
        self.opened_at |= {line.run_id: line.opened_at for line in lines}
        read = (codec.read_line(line.line) for line in lines)
        self.add(record for record in read if not isinstance(record, codec.LineError))

    def add(self, records: Iterable[AnyRecord]) -> None:
        for record in records:
            self.all.append(record)
            if isinstance(record, model.TriageUpdated) or record.run_id is None:
                continue
            if record.run_id not in self.opened_at:
                self.opened_at[record.run_id] = record.at
            if isinstance(record, _LINKING) and record.resumes_run_id:
                self.links[record.resumes_run_id] = None
                self.linking[record.run_id] = None


def _in_order(run: Run) -> Run:
    """Attempts in their order, whatever order their records came in."""
    return run if len(run.attempts) == 1 else Run(run.run_id, dict(sorted(run.attempts.items())))


def _resumers(runs: dict[str, Run], linking: Iterable[str]) -> dict[str, list[Run]]:
    """Who takes up whom, the earliest first."""
    found = engine.resumers_by_run(runs[run_id] for run_id in linking)
    for each in found.values():
        each.sort(key=_first_seen)
    return found


def _first_seen(run: Run) -> tuple[datetime, str]:
    return min(record.at for records in run.attempts.values() for record in records), run.run_id


def judged_rows(loaded: Loaded, policy: Policy, now: datetime) -> tuple[list[VerdictRow], list[Unjudged]]:
    """A first revision for every attempt of the concerned runs; the runs that the classifier failed on have none."""
    rows: list[VerdictRow] = []
    unjudged: list[Unjudged] = []
    for run_id in loaded.concerned:
        if (run := loaded.runs.get(run_id)) is not None:
            resumers, opened_at = loaded.resumers.get(run_id, ()), loaded.opened_at[run_id]
            judged = judge(run, _lived(run), policy, now, resumers)
            if isinstance(judged, Unjudged):
                unjudged.append(judged)
            else:
                latest = run.latest
                rows += [
                    verdict_row(facts, verdict, opened_at, is_latest=facts.attempt == latest)
                    for facts, verdict in judged
                ]
    return rows, unjudged


def judge(
    run: Run, attempts: Iterable[int], policy: Policy, now: datetime, resumers: Sequence[Run]
) -> list[tuple[Facts, Verdict]] | Unjudged:
    """Facts and verdict of each of these attempts. A run that the classifier fails on costs no other its verdict."""
    try:
        facts = [fold.facts_of(run, attempt, policy, now, resumers) for attempt in attempts]
        return [(each, engine.judge(each)) for each in facts]
    except Exception as error:  # noqa: BLE001 - whatever it is, the record is kept, and the keeper says which run
        return Unjudged(run.run_id, type(error).__name__)


def _lived(run: Run) -> Collection[int]:
    """The attempts to judge. One that only outcomes and decisions speak of is none, unless there is no other."""
    if len(run.attempts) == 1:
        return run.attempts
    lived = [number for number, records in run.attempts.items() if any(map(_is_life, records))]
    return lived or [run.latest]


def _is_life(record: model.RunRecord) -> bool:
    return not isinstance(record, _WITHOUT_LIFE)


def changes(judged: Sequence[VerdictRow], current: dict[tuple[str, int], VerdictRow]) -> list[VerdictRow]:
    """What to append so that `judged` becomes current: new revisions, and what they supersede with sign -1.

    Args:
        judged: All attempts that their runs have now.
        current: The newest revisions of those runs. An attempt that is no longer judged only loses its row.
    """
    rows: list[VerdictRow] = []
    for row in judged:
        old = current.pop((row.run_id, row.attempt), None)
        if old is None:
            rows.append(row)
        elif old.sign < 0:
            rows.append(row._replace(revision=old.revision + 1))
        elif not same_verdict(row, old):
            rows += (old._replace(sign=-1), row._replace(revision=old.revision + 1))
    return rows + [gone._replace(sign=-1) for gone in current.values() if gone.sign > 0]


def record_rows(fresh: Sequence[Kept], opened_at: dict[str, datetime]) -> list[RecordRow]:
    """The rows of new records, with their lines."""
    return [_record_row(record, line, opened_at) for record, line in fresh]


def _record_row(record: AnyRecord, line: bytes, opened_at: dict[str, datetime]) -> RecordRow:
    run_id = None if isinstance(record, model.TriageUpdated) else record.run_id
    opened = record.at if run_id is None else opened_at[run_id]
    resumes = record.resumes_run_id if isinstance(record, _LINKING) else None
    return RecordRow(record.record_id or "", record.kind, run_id, record.attempt, record.at, opened, resumes, line)
