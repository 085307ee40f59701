"""AG-UI values as the screens take them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stopcause.agui import cards
from stopcause.agui.course import UNRECOGNISED
from stopcause.agui.findings import Finding
from stopcause.agui.ids import safe
from stopcause.agui.verdicts import Judged, ThreadVerdict
from stopcause.agui.words import State
from stopcause.classifier.rules import RULES
from stopcause.classifier.verdict import VerdictName
from stopcause.pipeline.agui import Audit
from stopcause.pipeline.agui_check import CheckedInput
from stopcause.render.agui import AuditFile, Checked, Found, OpenLine, RunLine, ThreadLine


def audit_file_view(name: str, audit: Audit) -> AuditFile:
    """One file's history."""
    runs: dict[str, list[RunLine]] = {}
    for each in audit.runs:
        runs.setdefault(safe(each.run.thread_id), []).append(_run(each))
    threads = tuple(_thread(each, tuple(runs.get(each.thread_id, ()))) for each in audit.threads)
    return AuditFile(name, audit.events, threads)


def check_view(checked: CheckedInput) -> Checked:
    """An input that was checked."""
    return Checked(
        thread_id=safe(checked.thread_id),
        run_id=safe(checked.run_id),
        refused=checked.check.refused,
        answers=checked.answers,
        open=tuple(safe(each) for each in checked.open),
        findings=_found(checked.check.findings),
    )


def _thread(thread: ThreadVerdict, runs: tuple[RunLine, ...]) -> ThreadLine:
    return ThreadLine(
        thread_id=thread.thread_id,
        verdict=thread.verdict,
        reason=thread.reason,
        action=_action(thread, runs),
        waits=tuple(OpenLine(**wait._asdict()) for wait in thread.open),
        run_id=thread.run_id,
        findings=_found(thread.findings),
        runs=runs,
    )


_NOBODY_CAN = "Nobody can answer it any more: see whether the work was done without, else start it anew."
_ACTIONS = {  # of a thread, which has other ways out than a run
    "loop_guard": "It asks for the same again and again: read the rules that were broken, then give up or start anew.",
    "retry_storm": "The same answers fail again and again: read the rules that were broken, and who has to mend it.",
    "approval_expired": "Give up what has expired, by `cancelled`: nothing else may be sent.",
}


def _action(thread: ThreadVerdict, runs: Sequence[RunLine]) -> str:
    """That of its latest run where that is what the thread has come to; else that of the verdict itself."""
    if thread.open and all(wait.state == State.LOST for wait in thread.open):
        return _NOBODY_CAN
    if thread.verdict is VerdictName.STUCK and thread.open and thread.reason in _ACTIONS:
        return _ACTIONS[thread.reason]
    latest = next((run.verdict for run in reversed(runs) if run.run_id == thread.run_id), None)
    if latest is not None and latest.verdict is thread.verdict:
        return latest.action
    return next((rule.action for rule in RULES if rule.verdict is thread.verdict), "Nothing to do yet.")


def _run(judged: Judged) -> RunLine:
    run = judged.run
    return RunLine(
        run_id=safe(run.run_id),
        thread_id=safe(run.thread_id),
        ending=run.ending,
        mode=run.mode,
        is_late=run.is_late,
        stop_cause=run.cause,
        error_code=run.error_code,
        events=sum(run.counts.values()),
        unrecognised=run.counts.get(UNRECOGNISED, 0),
        verdict=judged.verdict,
        findings=_found((*run.findings, *judged.link.findings)),
    )


def _found(found: Iterable[Finding]) -> tuple[Found, ...]:
    return tuple(Found(*each, cards.BY_NAME[each.name].meaning) for each in dict.fromkeys(found))
