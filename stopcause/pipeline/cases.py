"""Case files: the one loader of what `replay`, `classify`, `explain`, the demo and the tests read.

Here: a case and its records as values, from one JSON file, from NDJSON, or from a folder of both; the assertions about
stop conditions that stand beside cases; the verdict on a case. Not here: what a verdict is held against (`replay`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.classifier import engine, fold
from stopcause.classifier.fold import Facts, Run
from stopcause.classifier.policy import DEFAULT_POLICY, Policy, policy_from_mapping
from stopcause.classifier.verdict import Verdict, VerdictName
from stopcause.errors import InputError, PolicyError
from stopcause.pipeline import agui_rules
from stopcause.pipeline.case_fields import Fields
from stopcause.pipeline.ingest_sources import REJECTED
from stopcause.receipts import codec
from stopcause.render.views import Explained

ASSERTIONS = "assertions.json"
_SUFFIXES = (".json", ".jsonl", ".ndjson")


class Case(NamedTuple):
    """One run, or a few that belong together, with the verdict that it must get.

    `records` are as the file has them. `run_id` None is the first record's run, `attempt` None its latest one;
    `expected_reason` None is any reason.
    """

    id: str
    source: str
    why: str
    now: datetime
    policy: Mapping[str, Any] | None
    records: tuple[Mapping[str, Any], ...]
    expected_verdict: VerdictName | None
    expected_reason: str | None
    run_id: str | None
    attempt: int | None
    history: Mapping[str, Any] | None
    path: Path


class Check(NamedTuple):
    """A history of completed steps, and the names of the conditions that must fire over it."""

    history: Mapping[str, Any]
    fired: tuple[str, ...]


class Assertion(NamedTuple):
    """A statement about stop conditions alone: it holds where all of its checks do."""

    id: str
    why: str
    checks: tuple[Check, ...]
    path: Path


def load_cases(paths: Iterable[Path]) -> Iterator[Case]:
    """The cases of files and folders; folders are walked in name order.

    Raises:
        InputError: No such file, no case in it, or a field that is missing or wrong; names file, line and field.
    """
    for path in case_files(paths):
        if path.name != ASSERTIONS:
            for place, value in values_of(path):
                if not is_thread_case(value):
                    yield _case(value, path, place)


def load_assertions(paths: Iterable[Path]) -> Iterator[Assertion]:
    """The assertions in every `assertions.json` of files and folders.

    Raises:
        InputError: As `load_cases`.
    """
    for path in case_files(paths):
        if path.name == ASSERTIONS:
            entries = _parse(path, _text(path))
            for number, entry in enumerate(entries if isinstance(entries, list) else [entries]):
                yield _assertion(entry, path, f"[{number}]: ")


def case_of(value: object, path: Path) -> Case:
    """A case from a parsed JSON value.

    Raises:
        InputError: It is no case; names the field.
    """
    return _case(value, path, "")


def is_case(value: object) -> bool:
    """Whether a parsed JSON value means to be a case: a record has no records of its own."""
    return isinstance(value, dict) and "records" in value


def is_thread_case(value: object) -> bool:
    """Whether it means to be a case of AG-UI (`agui_cases`): exchanges instead of records."""
    return isinstance(value, dict) and ("exchanges" in value or "receive" in value)


def records_of(case: Case) -> list[codec.AnyRecord]:
    """The records of a case, read as the wire format is.

    Raises:
        InputError: A record that is none; names it and its field.
    """
    records = []
    for number, value in enumerate(case.records):
        read = codec.read_value(value)
        if isinstance(read, codec.LineError):
            place = f"records[{number}].{read.field}"
            raise InputError(f"{case.path}: {place}: {read.reason}; expected {read.expected}")
        records.append(read)
    return records


def policy_of(case: Case) -> Policy:
    """The policy that a case brings; the defaults where it brings none.

    Raises:
        InputError: A policy that cannot be used; names its faults.
    """
    try:
        return policy_from_mapping(case.policy)
    except PolicyError as error:
        raise InputError(f"{case.path}: policy: {error}") from None


class Situation(NamedTuple):
    """The run of a case, with the runs that take it up, and what it adds up to."""

    run: Run
    resumers: Sequence[Run]
    facts: Facts


def situation_of(case: Case, policy: Policy | None = None) -> Situation:
    """The run that a case is about, as the classifier reads it.

    Args:
        case: The case.
        policy: The policy to use in place of the case's own.

    Raises:
        InputError: A bad record or policy, or a run or attempt that its records do not have.
    """
    runs = fold.group(records_of(case))
    run_id = case.run_id or next(iter(runs), None)
    if run_id not in runs:
        raise InputError(f"{case.path}: run_id: no record is of that run; leave it out to take the first record's")
    run = runs[str(run_id)]
    attempt = case.attempt or run.latest
    if attempt not in run.attempts:
        raise InputError(f"{case.path}: attempt: no record is of that attempt; leave it out to take the latest")
    resumers = engine.resumers_of(run, runs.values())
    return Situation(run, resumers, fold.facts_of(run, attempt, policy or policy_of(case), case.now, resumers))


def judge_case(case: Case, policy_override: Policy | None = None) -> Verdict:
    """The verdict on a case, as of its own `now`.

    Raises:
        InputError: As `situation_of`.
    """
    return engine.judge(situation_of(case, policy_override).facts)


class Input(NamedTuple):
    """What `classify` and `explain FILE` were given: cases or records, and the lines that are neither."""

    cases: tuple[Case, ...] = ()
    records: tuple[codec.AnyRecord, ...] = ()
    errors: tuple[codec.LineError, ...] = ()


def read_input(path: Path, content: bytes) -> Input:
    """Cases or NDJSON records, told apart by the first line; a bad line never costs the good ones.

    Args:
        path: What messages call it.
        content: All of it.

    Raises:
        InputError: A case that cannot be read.
    """
    first = content.lstrip().partition(b"\n")[0]
    if is_case(_json_or_none(first)):
        lines = enumerate(content.split(b"\n"), 1)
        return Input(cases=tuple(_case(_json_or_none(line), path, f"line {n}: ") for n, line in lines if line.strip()))
    if is_case(whole := _json_or_none(content)):
        return Input(cases=(case_of(whole, path),))
    read = list(codec.read_lines(content.split(b"\n")))
    return Input(
        records=tuple(each for each in read if not isinstance(each, codec.LineError)),
        errors=tuple(each for each in read if isinstance(each, codec.LineError)),
    )


def read_bytes(path: Path) -> bytes:
    """A file's bytes.

    Raises:
        InputError: No such file, or one that cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give a file or a folder that is there") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check what it is and who may read it") from None


def explain_input(given: Input, policy: Policy | None, now: datetime | None) -> Explained | None:
    """The first run of what was given, with all that it points at; None where nothing could be read.

    Raises:
        InputError: As `situation_of`.
    """
    if given.cases:
        case = given.cases[0]
        run, _resumers, facts = situation_of(case._replace(now=now or case.now), policy)
        return _explained(run, facts)
    runs = fold.group(given.records)
    if not runs:
        return None
    run = next(iter(runs.values()))
    resumers = engine.resumers_of(run, runs.values())
    facts = fold.facts_of(run, run.latest, policy or DEFAULT_POLICY, now or datetime.now(UTC), resumers)
    return _explained(run, facts)


def _explained(run: Run, facts: Facts) -> Explained:
    verdict = engine.judge(facts)
    return Explained(run, facts, verdict, breaches=agui_rules.breaches(run, verdict))


def runs_in(given: Input) -> int:
    """How many runs were given: one a case, and those of the records."""
    return len(given.cases) + len(fold.group(given.records))


def judge_input(given: Input, policy: Policy | None, now: datetime | None) -> Iterator[Verdict]:
    """A verdict on every run of what was given; a case brings its own policy and time where none are named."""
    for case in given.cases:
        yield from engine.judge_all(records_of(case), policy or policy_of(case), now or case.now)
    if given.records:
        yield from engine.judge_all(given.records, policy or DEFAULT_POLICY, now or datetime.now(UTC))


def _json_or_none(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


# Reading --------------------------------------------------------------------------------------------------------------


def case_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files of files and folders that hold cases or assertions, folders in name order.

    Raises:
        InputError: A folder without any.
    """
    for path in paths:
        if path.is_dir():
            found = sorted(each for each in path.rglob("*") if _holds_cases(each))
            if not found:
                raise InputError(f"{path}: no case files in it; a case file ends in {', '.join(_SUFFIXES)}")
            yield from found
        else:
            yield path


def _holds_cases(path: Path) -> bool:
    return path.suffix in _SUFFIXES and not path.name.endswith(REJECTED) and path.is_file()


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: invalid UTF-8 at byte {error.start + 1}; save it as UTF-8") from None


def values_of(path: Path) -> Iterator[tuple[str, object]]:
    """The JSON values of a case file with the place to name in a message: one of .json, one a line of the others."""
    text = _text(path)
    if path.suffix == ".json":
        yield "", _parse(path, text)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}: ", _parse(path, line, number)


def _parse(path: Path, text: str, number: int = 0) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {number or error.lineno}, column {error.colno}"
        raise InputError(f"{path}: {place}: broken JSON; mend it there, or see fixtures/README.md") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deep; a case file has six levels") from None


def _case(value: object, path: Path, place: str) -> Case:
    fields = Fields(value, path, place)
    expected = Fields(fields.get("expected", dict), path, f"{place}expected.")
    records = fields.get("records", list)
    if not records:
        raise fields.wrong("records", "at least one record in the wire format")
    return Case(
        id=fields.get("id", str),
        source=fields.find("source", str) or "",
        why=fields.find("why", str) or "",
        now=fields.time("now"),
        policy=fields.find("policy", dict),
        records=tuple(records),
        expected_verdict=expected.verdict("verdict"),
        expected_reason=expected.find("reason", str),
        run_id=fields.find("run_id", str),
        attempt=fields.find("attempt", int),
        history=fields.find("history", dict),
        path=path,
    )


def _assertion(value: object, path: Path, place: str) -> Assertion:
    fields = Fields(value, path, place)
    checks = [Fields(each, path, f"{place}checks[{n}].") for n, each in enumerate(fields.get("checks", list))]
    return Assertion(
        id=fields.get("id", str),
        why=fields.find("why", str) or "",
        checks=tuple(Check(each.get("history", dict), tuple(each.get("fired", list))) for each in checks),
        path=path,
    )
