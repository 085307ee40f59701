"""What `policy diff` reads beside a store: case files, and whatever `ingest` takes: records and archives of them.

A case is judged as of its own time, against its own policy where no other is named. Records may come in any order and
in any number: they go into a scratch store first, in memory where they are few, so that a run is judged whole.
An archive has no resume tokens, only the word that a run can be resumed; here that word stands for one.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from stopcause.classifier.policy import Policy
from stopcause.errors import InputError
from stopcause.pipeline import cases, keeper_runs
from stopcause.pipeline.ingest_sources import PARQUET, Bad, NoRecordsError, Source, expand, read_source
from stopcause.pipeline.policy_diff import Progress, Question, as_diff, in_batches
from stopcause.pipeline.policy_workers import Batch, Judge, Tally, Task, judge_batches
from stopcause.receipts import codec, model
from stopcause.receipts.codec import Kept
from stopcause.render.policy_diff import Diff
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.queries import text
from stopcause.store.rows import RecordRow

_IN_MEMORY_BYTES = 64 * 1024 * 1024
_BATCH_RECORDS = 50_000
_PART_RECORDS = 40_000  # whose lines are in memory at once
_PACKED = 6  # times smaller a file of Parquet is than its lines
_RESUMABLE = b'"resumable":true'

Complain = Callable[[str], None]


class Trial(NamedTuple):
    """What is tried on files. `old` None: each case's own policy; records then stand against `in_use`."""

    new: Policy
    old: Policy | None
    in_use: Policy
    now: datetime
    since: datetime | None = None
    span: str = ""


def diff_files(paths: Sequence[Path], trial: Trial, complain: Complain, progress: Progress | None = None) -> Diff:
    """What the new policy would say otherwise of the runs of files, folders and archives.

    Args:
        paths: Case files, files of records, folders of both, archives in Parquet.
        trial: The policies, and the time at which records are judged.
        complain: Is told of each line that is no record.
        progress: Called with how many runs are done.

    Raises:
        InputError: A file that is not there, cannot be read, or holds neither cases nor records.
        StoreError: A worker died, or there is no room for the scratch store.
    """
    sources = _sources(paths)
    case_files = [each for each in sources if _holds_cases(each)]
    files = [each for each in sources if each not in case_files]
    tally, errors, question = Tally(), _Errors(complain), _question(trial)
    _judge_cases(case_files, trial, tally)
    if files:
        with _scratch(files) as store:
            _fill(store, _records(files, errors))
            task = Task(question.old, question.new, question.now)
            tally.add(judge_batches(task, _batches(store, trial.since), progress=progress))
    found = as_diff(tally, question)._replace(set_aside=errors.count)
    if not files:
        found = found._replace(now=None)
        found = found if trial.old else found._replace(old=None, sections=())
    return found


def _question(trial: Trial) -> Question:
    return Question(trial.old or trial.in_use, trial.new, trial.now, span=trial.span)


# Telling apart --------------------------------------------------------------------------------------------------------


def _sources(paths: Sequence[Path]) -> list[Source]:
    """Every file of these; a folder that holds none is an error."""
    found: list[Source] = []
    for path in paths:
        inside = expand([path])
        if not inside:
            raise InputError(f"{path}: no records in it; give case files, NDJSON, or what `export parquet` made")
        found += [each for each in inside if Path(each.name).name != cases.ASSERTIONS]
    return found


def _holds_cases(source: Source) -> bool:
    """Whether a file begins with a case: one in a `.json`, or one a line. One of AG-UI is a case, without records."""
    path = Path(source.name)
    if path.suffix == PARQUET:
        return False
    if path.suffix == ".json" and (source.size or 0) <= _IN_MEMORY_BYTES:
        value = _json(cases.read_bytes(path))
        return cases.is_case(value) or cases.is_thread_case(value)
    try:
        with path.open("rb") as file:
            return cases.is_case(_json(next((line for line in file if line.strip()), b"")))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}. See to that file, then run again.") from error


def _json(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


# Cases ----------------------------------------------------------------------------------------------------------------


def _judge_cases(files: Sequence[Source], trial: Trial, tally: Tally) -> None:
    for case in cases.load_cases([Path(each.name) for each in files]) if files else ():
        old = trial.old or cases.policy_of(case)
        found = cases.situation_of(case, old)
        judge = Judge(Task(old, trial.new, case.now))
        judge.run(found.run, found.resumers, case.now, tally, name=case.id, attempt=found.facts.attempt)


# Records --------------------------------------------------------------------------------------------------------------


class _Errors:
    """Lines that are no records: told one by one, up to a few, and counted."""

    _NAMED = 5

    def __init__(self, complain: Complain) -> None:
        self.count = 0
        self._complain = complain

    def note(self, name: str, error: codec.LineError) -> None:
        """One more."""
        self.count += 1
        if self.count <= self._NAMED:
            self._complain(f"{name}: {error}")


def _records(files: Sequence[Source], errors: _Errors) -> Iterator[Kept]:
    for source in files:
        archived = source.name.endswith(PARQUET)
        try:
            for read in read_source(source, lambda _size: None):
                if isinstance(read, Bad):
                    errors.note(source.name, read.error)
                else:
                    yield _with_tokens(read) if archived else read
        except NoRecordsError:
            if source.named:
                raise


def _with_tokens(kept: Kept) -> Kept:
    """A record of an archive, with something in place of each resume token that was taken out of it."""
    if _RESUMABLE not in kept.line:
        return kept
    value = json.loads(kept.line)
    for approval in (value.get("approval"), *(value.get("approvals") or ())):
        if approval and approval.get("resumable") is True:
            approval.setdefault("resume_token", "archived")
    read = codec.keep_line(codec.value_line(value))
    return kept if isinstance(read, codec.LineError) else read


@contextlib.contextmanager
def _scratch(files: Sequence[Source]) -> Iterator[DuckStore]:
    """A store for as long as this lasts; on disk where there is much."""
    size = sum((each.size or 0) * (_PACKED if each.name.endswith(PARQUET) else 1) for each in files)
    with contextlib.ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="stopcause-")))
        yield undo.enter_context(DuckStore.open(folder / "scratch.duckdb" if size > _IN_MEMORY_BYTES else None))


def _fill(store: DuckStore, records: Iterator[Kept]) -> None:
    rows: list[RecordRow] = []
    for kept in records:
        if isinstance(kept.record, model.TriageUpdated) or kept.record.run_id is None:
            continue
        rows.append(keeper_runs.record_rows([kept], {kept.record.run_id: kept.record.at})[0])
        if len(rows) >= _BATCH_RECORDS:
            store.commit(rows, [])
            rows.clear()
    if rows:
        store.commit(rows, [])


def _batches(store: DuckStore, since: datetime | None) -> Iterator[Batch]:
    """All runs of a scratch store, each with the runs that take it up."""
    parts = -(-int(store.ask("SELECT count(*) FROM records").rows[0][0]) // _PART_RECORDS)
    for part in range(parts):
        lines: dict[str, list[bytes]] = {}
        for run_id, line in store.ask(text("policy_part"), {"parts": parts, "part": part}).rows:
            lines.setdefault(run_id, []).append(line.encode())
        for batch in in_batches(lines, keeper_runs.resumer_lines(store, lines) if lines else {}):
            yield batch._replace(since=since)
