"""What a run waits for, in a reader's words: who answers, until when, and how the run resumes.

Taken from the run's own records, with the route of the policy where nobody gave an owner or a deadline. Whether it is
open and what it lacks is the classifier's word; here is only the rest of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from stopcause.classifier.approvals import Status, Wait
from stopcause.classifier.fold import Facts, Run
from stopcause.classifier.policy import Subject
from stopcause.classifier.verdict import Verdict, VerdictName
from stopcause.receipts import model
from stopcause.receipts.model import Approval
from stopcause.render.views import WaitLine

_OPEN = frozenset({Status.OPEN, Status.DECIDED})


def wait_lines(run: Run, facts: Facts, verdict: Verdict) -> list[WaitLine]:
    """A row for each approval that keeps the run waiting."""
    said = merged(run, facts.attempt)
    name = verdict.verdict or VerdictName.WAITING
    return [
        _line(wait, said.get(wait.approval_id or "", {}), facts, name, verdict.agent)
        for wait in facts.waits
        if wait.status in _OPEN
    ]


def merged(run: Run, attempt: int) -> dict[str, dict[str, Any]]:
    """What was said about each approval of an attempt; a later word replaces an earlier one."""
    known: dict[str, dict[str, Any]] = {}
    for at, approval in _said(run, attempt):
        fields = known.setdefault(approval.approval_id, {"requested_at": at})
        news = {name: value for name, value in vars(approval).items() if value is not None}
        if "decision" in news and "decision" not in fields:
            fields["decided_at"] = at
        fields |= news
    return known


def _said(run: Run, attempt: int) -> Iterator[tuple[datetime, Approval]]:
    for number, records in run.attempts.items():
        for record in records:
            if isinstance(record, model.ApprovalUpdated):  # a decision may bear another attempt's number
                yield record.at, record.approval
            elif isinstance(record, model.RunStopped) and number == attempt:
                for each in record.approvals or ():
                    yield record.at, each


def _line(wait: Wait, said: dict[str, Any], facts: Facts, name: VerdictName, agent: str | None) -> WaitLine:
    owner, deadline = said.get("owner"), said.get("deadline")
    since = said.get("requested_at") or (facts.stop.at if facts.stop else facts.last_at)
    route = facts.policy.route(_subject(wait, said, facts))
    if route is not None:
        owner = owner or route.owner
        deadline = deadline or (since + route.due if route.due else None)
    return WaitLine(
        approval_id=wait.approval_id,
        run_id=facts.run_id,
        verdict=name,
        agent=agent,
        waits_for=f"tool {said['tool']}" if said.get("tool") else str(wait.kind),
        owner=owner,
        since=since,
        deadline=deadline,
        expires_at=said.get("expires_at"),
        decision=wait.decision,
        decided_at=said.get("decided_at"),
        actor=wait.actor,
        resume_token=said.get("resume_token"),
        missing=tuple(wait.missing),
    )


def _subject(wait: Wait, said: dict[str, Any], facts: Facts) -> Subject:
    """Who asks, as a route's `match` sees it: the receipt's word, else the start's."""
    fields = ("agent", "agent_version", "environment", "framework", "model", "provider", "service")
    told = [record for record in (facts.stop, facts.start) if record is not None]
    values = {field: next((v for r in told if (v := getattr(r, field))), None) for field in fields}
    return Subject(**values, kind=wait.kind, tool=said.get("tool"), raised_by=said.get("raised_by"))
