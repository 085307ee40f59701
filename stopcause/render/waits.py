"""What runs wait for, as rows and as a table: who answers, until when, and how the run resumes.

All of it is the classifier's word, which has filled in the policy's route where nobody gave an owner or a deadline.
"""

from __future__ import annotations

from collections.abc import Sequence

from stopcause.classifier.approvals import KEEPS_WAITING, Wait
from stopcause.classifier.fold import Facts
from stopcause.classifier.verdict import Missing, Verdict, VerdictName
from stopcause.render.pen import WIDTH, Pen, age, count, cut, fit, pasted, short_age, tail
from stopcause.render.views import WaitLine, Window
from stopcause.render.why import lacks


def wait_lines(facts: Facts, verdict: Verdict) -> list[WaitLine]:
    """A row for each approval that keeps the run waiting."""
    return [_line(wait, facts, verdict) for wait in facts.waits if wait.status in KEEPS_WAITING]


def _line(wait: Wait, facts: Facts, verdict: Verdict) -> WaitLine:
    return WaitLine(
        approval_id=wait.approval_id,
        run_id=facts.run_id,
        verdict=verdict.verdict or VerdictName.WAITING,
        agent=verdict.agent,
        waits_for=f"tool {wait.tool}" if wait.tool else str(wait.kind),
        owner=wait.owner,
        escalate=wait.escalate,
        since=wait.requested_at or (facts.stop.at if facts.stop else facts.last_at),
        deadline=wait.deadline,
        expires_at=wait.expires_at,
        decision=wait.decision,
        decided_at=wait.decided_at,
        actor=wait.actor,
        resume_token=wait.resume_token,
        missing=tuple(wait.missing),
    )


# The table ------------------------------------------------------------------------------------------------------------


def waiting_table(waits: Sequence[WaitLine], window: Window, pen: Pen, *, most: int | None = None) -> list[str]:
    """What waits, the worst first, two lines a wait; the first `most` of them."""
    if not waits:
        return [f"Nothing waits. As of {pen.time(window.now)}"]
    lines = [f"{count(len(waits), 'wait')}, {_routed(waits)}. As of {pen.time(window.now)}", ""]
    lines.append(f"   {'APPROVAL':<10}{'AGENT':<15}{'FOR':<19}{'OWNER':<15}{'AGE':<8}DUE")
    for wait in waits[:most]:
        lines.append(_wait_line(wait, window, pen))
        lines.append("   " + cut(_wait_note(wait, window, pen), WIDTH - 3))
    if most is not None and len(waits) > most:
        lines += ["", f"Shown: the first {most} of them; --all has every one"]
    return lines


def _routed(waits: Sequence[WaitLine]) -> str:
    unrouted = sum(wait.verdict is VerdictName.WAITING_UNROUTED for wait in waits)
    every = "all " if len(waits) > 1 else ""
    if unrouted == len(waits):
        return f"{every}unrouted"
    return f"{unrouted} of them unrouted" if unrouted else f"{every}routed"


def _wait_line(wait: WaitLine, window: Window, pen: Pen) -> str:
    text = (
        f"{fit(tail(wait.approval_id), 10)}{fit(cut(wait.agent or '-', 14), 15)}{fit(cut(wait.waits_for, 18), 19)}"
        f"{fit(cut(wait.owner or '-', 14), 15)}{age(window.now - wait.since):<8}{_due(wait, window)}"
    )
    return f"{pen.mark(wait.verdict)}  {text}"


def _due(wait: WaitLine, window: Window) -> str:
    if wait.decision:
        return "decided"
    due = min((at for at in (wait.deadline, wait.expires_at) if at), default=None)
    if due is None:
        return "-"
    return f"in {short_age(due - window.now)}" if due > window.now else f"{short_age(window.now - due)} late"


def _wait_note(wait: WaitLine, window: Window, pen: Pen) -> str:
    """What it lacks, or what was decided, or how it goes on; and the run, which `explain` takes."""
    run = pasted(wait.run_id)
    if wait.missing:
        next_one = f"; next {wait.escalate}" if wait.escalate and Missing.OVERDUE in wait.missing else ""
        return f"{_lacks(wait)}{_decided(wait, window)}{next_one}; run {run}"
    if wait.decision:
        return f"{_decided(wait, window).removeprefix(': ') or wait.decision}; run {run}"
    hard = f"; expires {pen.clock(wait.expires_at)} (hard, the producer's)" if wait.expires_at else ""
    return f"resume run {run} at {wait.resume_token}{hard}"


def _lacks(wait: WaitLine) -> str:
    """As `lacks`; of a question that did not reach its owner, that it is the question."""
    said = lacks(wait.missing)
    return said if wait.decision else said.replace("delivery", "delivery to its owner")


def _decided(wait: WaitLine, window: Window) -> str:
    if not wait.decision or wait.decided_at is None:
        return ""
    by = f" by {wait.actor}" if wait.actor else ""
    return f": {wait.decision} {age(window.now - wait.decided_at)} ago{by}, no run has resumed it"
