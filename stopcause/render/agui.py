"""What AG-UI streams say, as rows and as screens: runs and how they ended, threads and what they wait for, findings.

Values come in by shape, not by class: this room does not know that of AG-UI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from stopcause.classifier.verdict import Missing, Verdict, VerdictName
from stopcause.render.lines import verdict_object
from stopcause.render.pen import (
    WIDTH,
    Pen,
    cells,
    count,
    cut,
    fit,
    paragraph,
    short_age,
    short_names,
    utc_text,
    whole_or_tail,
)
from stopcause.render.why import lacks

_INDENT, _RUN, _ENDING, _VERDICT = 2, 8, 16, 20
_SAYS = WIDTH - _INDENT - _RUN - _ENDING - _VERDICT
_ID = 14
_LACKS = _INDENT + _ID + 22 + 16 + 9  # where it stands what a wait lacks
_OF_STREAM = ("ending", "is_late", "mode", "error_code", "events", "unrecognised")
_SHOWN = 20  # runs of a thread
_NAMED = 6  # runs of a finding


class Found(NamedTuple):
    """A finding, and what its name means."""

    rule: str
    name: str
    side: str
    level: str
    fatal: bool
    ids: tuple[str, ...]
    meaning: str


class RunLine(NamedTuple):
    """A run: how its stream ended, and the verdict on it."""

    run_id: str
    thread_id: str
    ending: str
    mode: str
    is_late: bool
    stop_cause: str
    error_code: str | None
    events: int
    unrecognised: int  # events of types that are not known
    verdict: Verdict | None
    findings: tuple[Found, ...]


class OpenLine(NamedTuple):
    """An open interrupt."""

    interrupt_id: str
    run_id: str
    kind: str
    state: str
    tool: str | None
    owner: str | None
    deadline: datetime | None
    expires_at: datetime | None
    requested_at: datetime | None
    missing: tuple[Missing, ...]
    resume_token: str | None


class ThreadLine(NamedTuple):
    """A thread: what it waits for or how it ended, and the runs that it is made of."""

    thread_id: str
    verdict: VerdictName | None
    reason: str
    action: str
    waits: tuple[OpenLine, ...]
    run_id: str | None
    findings: tuple[Found, ...]
    runs: tuple[RunLine, ...]


class AuditFile(NamedTuple):
    """One file's history."""

    name: str
    events: int
    threads: tuple[ThreadLine, ...]


class Checked(NamedTuple):
    """An input that was checked. `open` are the interrupts that it has to answer."""

    thread_id: str
    run_id: str
    refused: bool
    answers: int
    open: tuple[str, ...]
    findings: tuple[Found, ...]


# Rows -----------------------------------------------------------------------------------------------------------------


def audit_objects(files: Sequence[AuditFile]) -> Iterator[dict[str, Any]]:
    """The runs of each thread, then the thread; files in their order."""
    for file in files:
        for thread in file.threads:
            yield from (_run_object(run, file.name) for run in thread.runs)
            yield _thread_object(thread, file.name)


def _run_object(run: RunLine, file: str) -> dict[str, Any]:
    verdict: dict[str, Any] = {"run_id": run.run_id, "thread_id": run.thread_id}
    if run.verdict is not None:
        verdict |= verdict_object(run.verdict)
    ours = [finding_object(each) for each in run.findings]
    codes = {each["code"] for each in ours}
    others = [each for each in verdict.get("findings", ()) if each["code"] not in codes]
    about = {name: getattr(run, name) for name in _OF_STREAM} | {"file": file}
    return {"row": "run", **verdict, "findings": [*ours, *others], **about}


def _thread_object(thread: ThreadLine, file: str) -> dict[str, Any]:
    return {
        "row": "thread",
        "thread_id": thread.thread_id,
        "thread_verdict": thread.verdict,
        "reason": thread.reason,
        "action": thread.action,
        "open": [wait.interrupt_id for wait in thread.waits],
        "waits": [_wait_object(wait) for wait in thread.waits],
        "run_id": thread.run_id,
        "findings": [finding_object(each) for each in thread.findings],
        "file": file,
    }


def _wait_object(wait: OpenLine) -> dict[str, Any]:
    return {
        "interrupt_id": wait.interrupt_id,
        "run_id": wait.run_id,
        "state": wait.state,
        "kind": wait.kind,
        "tool": wait.tool,
        "owner": wait.owner,
        "requested_at": utc_text(wait.requested_at),
        "deadline": utc_text(wait.deadline),
        "expires_at": utc_text(wait.expires_at),
        "resume_token": wait.resume_token,
        "missing": list(wait.missing),
    }


def finding_object(found: Found) -> dict[str, Any]:
    """A finding as the others are (`code`, `where`), and whose it is."""
    made = {name: value for name, value in found._asdict().items() if name != "meaning"}
    return {"code": found.name.lower(), "where": next(iter(found.ids), None), **made, "ids": list(found.ids)}


def check_object(checked: Checked) -> dict[str, Any]:
    """Whether an input may be sent."""
    return {
        "row": "check",
        "refused": checked.refused,
        "findings": [finding_object(each) for each in checked.findings],
        "thread_id": checked.thread_id,
        "run_id": checked.run_id,
        "open": list(checked.open),
    }


# Screens --------------------------------------------------------------------------------------------------------------


def audit_screen(
    files: Sequence[AuditFile],
    now: datetime,
    pen: Pen,
    *,
    everything: bool = False,
    held_against: str | None = None,
) -> Iterator[str]:
    """Each thread with its runs (the last of them, or `everything`), what it waits for, and what was found.

    `held_against`: the contract that was chosen in place of what the streams declare.
    """
    if held_against is not None:
        yield f"Held against {held_against}, whatever the streams declare."
        yield ""
    for file in files:
        runs = sum(len(thread.runs) for thread in file.threads)
        what = f"{count(len(file.threads), 'thread')}, {count(runs, 'run')}, {count(file.events, 'event')}"
        yield f"{whole_or_tail(file.name, WIDTH - cells(what) - 2)}: {what}"
        for thread in file.threads:
            yield ""
            yield from _thread(thread, now, pen, len(thread.runs) if everything else _SHOWN)
        yield ""
    yield f"As of {pen.time(now)}"


def _thread(thread: ThreadLine, now: datetime, pen: Pen, most: int) -> Iterator[str]:
    room = WIDTH - _VERDICT - _SAYS
    head = f"thread {whole_or_tail(thread.thread_id, room - 8)}"
    yield f"{fit(head, room)}{pen.verdict(thread.verdict, _VERDICT)}{thread.reason}"
    names = _names([run.run_id for run in thread.runs], _RUN - 1)
    yield pen.dim(f"  {'RUN':<{_RUN}}{'ENDING':<{_ENDING}}{'VERDICT':<{_VERDICT}}STOP CAUSE, REASON")
    if (hidden := len(thread.runs) - most) > 0:
        yield pen.dim(f"  {count(hidden, 'earlier run')} (--all)")
    for run in thread.runs[-most:]:
        yield _run(run, names[run.run_id], pen)
    yield from _waits(thread.waits, now, pen)
    yield from _findings(thread, names, pen)
    yield from paragraph("  Do", thread.action, _INDENT + 17)


def _names(ids: Sequence[str], room: int) -> dict[str, str]:
    """As other lists name them; where the ends are the same, by how they begin."""
    names = short_names(ids, room)
    counted = Counter(names.values())
    return {each: name if counted[name] == 1 else cut(each, room) for each, name in names.items()}


def _run(run: RunLine, name: str, pen: Pen) -> str:
    ending = f"late {run.ending}" if run.is_late else run.ending
    reason = run.verdict.reason if run.verdict else ""
    says = run.stop_cause if reason in ("", run.stop_cause) else f"{run.stop_cause} {reason}"
    verdict = pen.verdict(run.verdict.verdict if run.verdict else None, _VERDICT)
    return f"  {fit(name, _RUN)}{fit(ending, _ENDING)}{verdict}{cut(says, _SAYS)}"


def _waits(waits: Sequence[OpenLine], now: datetime, pen: Pen) -> Iterator[str]:
    if not waits:
        return
    names = _names([wait.interrupt_id for wait in waits], _ID - 1)
    yield pen.dim(f"  {'WAITS FOR':<{_ID}}{'WHAT':<22}{'OWNER':<16}{'DUE':<9}MISSING")
    for wait in waits:
        what = f"tool {wait.tool}" if wait.tool else str(wait.kind)
        name = names[wait.interrupt_id]
        head = f"  {fit(name, _ID)}{fit(cut(what, 21), 22)}{fit(cut(wait.owner or '-', 15), 16)}"
        missing = lacks(wait.missing).removeprefix("missing ") if wait.missing else ""
        yield from paragraph(f"{head}{_due(wait, now)}", missing, _LACKS)
        if name != wait.interrupt_id:  # an answer needs all of it
            yield pen.dim(f"  id {wait.interrupt_id}")


def _due(wait: OpenLine, now: datetime) -> str:
    due = min((at for at in (wait.deadline, wait.expires_at) if at), default=None)
    if due is None:
        return "-"
    return f"in {short_age(due - now)}" if due > now else f"{short_age(now - due)} late"


def _findings(thread: ThreadLine, names: dict[str, str], pen: Pen) -> Iterator[str]:
    """Those of the thread and of its runs, the heaviest first; a finding of several runs once."""
    by_finding: dict[Found, list[str]] = {}
    for run in thread.runs:
        for each in run.findings:
            by_finding.setdefault(each._replace(ids=()), []).append(names[run.run_id])
    for each in thread.findings:
        by_finding.setdefault(each._replace(ids=()), [])
    for each, runs in sorted(by_finding.items(), key=lambda item: _weight(item[0])):
        yield from _finding(each, f"{each.meaning}{_where(runs, names)}", pen)


def _weight(found: Found) -> tuple[int, int]:
    """The heaviest first, and of those what one side has to see to together."""
    return _LEVELS.index(found.level), _SIDES.index(found.side)


def _where(runs: Sequence[str], names: dict[str, str]) -> str:
    """In which runs, where not in all of them."""
    in_runs = list(dict.fromkeys(runs))
    if not in_runs or len(in_runs) == len(names):
        return ""
    more = f" and {len(in_runs) - _NAMED} more" if len(in_runs) > _NAMED else ""
    return f" ({', '.join(in_runs[:_NAMED])}{more})"


_LEVELS = ("MUST", "SHOULD", "WARN", "NOTE")
_SIDES = ("producer", "consumer", "auditor")


def _finding(found: Found, says: str, pen: Pen) -> Iterator[str]:
    first, *more = paragraph("", f"{found.rule} {found.name}: {says}", _INDENT + 17)
    head = f"  {found.level:<7}{found.side:<10}"
    marked = head.replace(found.level, pen.bold(found.level), 1) if found.level == "MUST" else head
    yield marked + first[_INDENT + 17 :]
    yield from more


def check_screen(checked: Checked, pen: Pen) -> Iterator[str]:
    """Whether it may be sent, and if not, why."""
    of = f"run {cut(checked.run_id, 24)} of thread {cut(checked.thread_id, 24)}"
    if checked.refused:
        yield f"{pen.bold('Refused')}: {of}. Do not send it."
    else:
        yield f"May be sent: {of}, {count(checked.answers, 'answer')}."
    for each in sorted(checked.findings, key=_weight):
        about = f" ({', '.join(each.ids)})" if each.ids else ""
        yield from _finding(each, f"{each.meaning}{about}", pen)
    if checked.open:
        yield from paragraph("  Open", ", ".join(checked.open), _INDENT + 17)
