"""Cases of AG-UI: exchanges, and what has to be said of them. The same files and the same `replay` as all cases.

Such a case may expect something of its runs, its threads and its findings; of the guard that saw its exchanges, about
an input that is to be sent next; and of an agent that receives one. Not here: how an ordinary case is read (`cases`).
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.agui.guard import ResumeGuard
from stopcause.agui.values import NOTHING
from stopcause.agui.verdicts import Judged
from stopcause.classifier.policy import Policy, policy_from_mapping
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import InputError, PolicyError
from stopcause.pipeline import agui, agui_case_shape, agui_check, agui_receive, cases
from stopcause.pipeline.agui_case_repeats import repeated
from stopcause.pipeline.agui_case_shape import UNREADABLE
from stopcause.pipeline.case_fields import Fields
from stopcause.render.views import AssertionResult, CaseResult

_OF_RUN = ("ending", "stop_cause", "verdict", "reason", "mode")


class ThreadCase(NamedTuple):
    """A history of exchanges with what must be said of it, as the file has them."""

    id: str
    why: str
    now: datetime
    policy: Mapping[str, Any] | None
    exchanges: tuple[Mapping[str, Any], ...]
    expected: Mapping[str, Any]
    check: Mapping[str, Any] | None
    receive: Mapping[str, Any] | None
    path: Path


def load_thread_cases(paths: Iterable[Path]) -> Iterator[ThreadCase]:
    """The AG-UI cases of files and folders.

    Raises:
        InputError: A field that is missing or wrong; names file, line and field.
    """
    for path in cases.case_files(paths):
        for place, value in cases.values_of(path):
            if cases.is_thread_case(value):
                yield _case(Fields(value, path, place), path)


def _case(fields: Fields, path: Path) -> ThreadCase:
    agui_case_shape.require(fields)
    expected = fields.find("expected", dict) or NOTHING
    if fields.find("receive", dict) is None and not expected.get("threads"):
        raise fields.wrong("expected", "`threads`, with the `thread_verdict` of each")
    return ThreadCase(
        id=fields.get("id", str),
        why=fields.find("why", str) or "",
        now=fields.time("now"),
        policy=fields.find("policy", dict),
        exchanges=tuple(repeated(fields.find("exchanges", list) or [])),
        expected=expected,
        check=fields.find("check", dict),
        receive=fields.find("receive", dict),
        path=path,
    )


def check_received(case: ThreadCase) -> AssertionResult:
    """Whether an agent that receives the input of a case is told what it must be."""
    fault = next(agui_receive.faults(case.receive or NOTHING, case.now), None)
    return AssertionResult(case.id, case.why, fault, "answers received")


def check_thread_case(case: ThreadCase, policy: Policy | None = None) -> CaseResult:
    """What is said of a case, beside what must be: of the last thread that it names, and the first thing amiss."""
    guard = ResumeGuard()
    stream = io.BytesIO("\n".join(_lines(case.exchanges)).encode())
    audit = agui.audit_stream(stream, str(case.path), policy or _policy_of(case), case.now, also=guard.saw)
    wanted = case.expected["threads"][-1]
    thread = next((each for each in audit.threads if each.thread_id == wanted.get("thread_id")), None)
    verdict = thread.verdict if thread else None
    expected = wanted.get("thread_verdict")
    fault = next(_faults(case, audit, guard), None)
    return CaseResult(
        id=case.id,
        name=case.path.stem if case.path.suffix == ".json" else case.id,
        path=case.path,
        why=case.why,
        run_id=(thread.run_id if thread else None) or case.id,
        expected_verdict=VerdictName(expected) if expected else None,
        expected_reason=None,
        verdict=verdict,
        reason=thread.reason if thread else "",
        rule="thread",
        stop_cause=None,
        fault=fault,
    )


def _lines(exchanges: Iterable[Any]) -> Iterator[str]:
    """As NDJSON, an event a line: what no reader keeps of it is passed over by itself."""
    for exchange in exchanges:
        events = exchange.get("events") if isinstance(exchange, dict) else None
        lines = events if isinstance(events, list) else ()
        yield json.dumps({**exchange, "events": []} if lines else exchange)
        yield from map(json.dumps, lines)


def _policy_of(case: ThreadCase) -> Policy:
    try:
        return policy_from_mapping(case.policy)
    except PolicyError as error:
        raise InputError(f"{case.path}: policy.{error}") from None


# What falls short -----------------------------------------------------------------------------------------------------


def _faults(case: ThreadCase, audit: agui.Audit, guard: ResumeGuard) -> Iterator[str]:
    yield from _run_faults(case.expected.get("runs", ()), audit)
    yield from _thread_faults(case.expected.get("threads", ()), audit)
    yield from agui_receive.finding_faults(case.expected, audit.findings)
    if case.check is not None:
        yield from _check_faults(case.check, case, guard)


def _run_faults(wanted: Iterable[Mapping[str, Any]], audit: agui.Audit) -> Iterator[str]:
    for each in wanted:
        got = [_said_of(run) for run in audit.runs if run.run.run_id == each["run_id"]]
        if not got:
            yield f"run {each['run_id']} was not seen"
        for name in each.keys() & set(_OF_RUN) if got else ():
            if got[-1][name] != each[name]:
                yield f"run {each['run_id']}: {name} is {got[-1][name]}, not {each[name]}"


def _said_of(run: Judged) -> dict[str, Any]:
    verdict = run.verdict
    return {
        "ending": run.run.ending,
        "stop_cause": run.run.cause,
        "mode": run.run.mode,
        "verdict": verdict.verdict if verdict else None,
        "reason": verdict.reason if verdict else None,
    }


def _thread_faults(wanted: Iterable[Mapping[str, Any]], audit: agui.Audit) -> Iterator[str]:
    threads = {thread.thread_id: thread for thread in audit.threads}
    for each in wanted:
        thread = threads.get(each["thread_id"])
        if thread is None:
            yield f"thread {each['thread_id']} was not seen"
            continue
        if "thread_verdict" in each and thread.verdict != each["thread_verdict"]:
            yield f"thread {each['thread_id']}: {thread.verdict}, not {each['thread_verdict']}"
        if "reason" in each and thread.reason != each["reason"]:
            yield f"thread {each['thread_id']}: reason {thread.reason}, not {each['reason']}"
        is_open = sorted(wait.interrupt_id for wait in thread.open)
        if "open" in each and is_open != sorted(each["open"]):
            yield f"thread {each['thread_id']}: open is {is_open}, not {sorted(each['open'])}"


def _check_faults(wanted: Mapping[str, Any], case: ThreadCase, guard: ResumeGuard) -> Iterator[str]:
    now = Fields(wanted, case.path, "check.").time("now") if "now" in wanted else case.now
    with _as_it_stands(wanted, guard) as guard_then:
        check = agui_check.check_input(guard_then, wanted.get("input"), now).check
    if check.refused is not wanted.get("refused", check.refused):
        yield f"the guard {'refuses' if check.refused else 'passes'} the input"
    for fault in agui_receive.finding_faults(wanted, check.findings):
        yield f"the guard: {fault}"


@contextlib.contextmanager
def _as_it_stands(wanted: Mapping[str, Any], guard: ResumeGuard) -> Iterator[ResumeGuard]:
    """The guard at that moment: with answers under way, or with a file that is none of its own."""
    if wanted.get("sent") is not None:
        guard.sent(wanted["sent"])
    if wanted.get("state") != UNREADABLE:
        yield guard
        return
    with tempfile.TemporaryDirectory() as folder, _unheard():
        file = Path(folder) / "guard.db"
        file.write_bytes(b"no file of a guard's")
        yield ResumeGuard(file)


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """What is broken here the case has broken: nobody has to be told."""
    logger = logging.getLogger("stopcause")
    logger.disabled, was = True, logger.disabled
    try:
        yield
    finally:
        logger.disabled = was
