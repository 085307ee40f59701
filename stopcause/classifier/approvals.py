"""What became of each approval of a run: open, answered, denied, expired. The lines on approvals of the precedence.

An approval is merged from everything that was said about it; a later word replaces an earlier one, but what closed it
stays closed. Routes of the policy fill in an owner and a deadline where nobody gave them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from stopcause.classifier.policy import Policy, Route, Subject
from stopcause.classifier.terminals import is_observed_abort
from stopcause.classifier.verdict import Missing
from stopcause.receipts import vocabulary
from stopcause.receipts.model import Approval, RunStopped
from stopcause.receipts.vocabulary import ApprovalKind, ApprovalState, Decision, StopCause

YES = frozenset({Decision.APPROVED, Decision.EDITED, Decision.ANSWERED})
NO = frozenset({Decision.DENIED, Decision.CANCELLED})
_CLOSING = frozenset({ApprovalState.DECIDED, ApprovalState.EXPIRED, ApprovalState.WITHDRAWN})


class Status(Enum):
    """Where an approval stands. Only OPEN and DECIDED keep a run waiting."""

    OPEN = "open"
    DECIDED = "decided"  # yes was said, and no run has taken it up yet
    PASSED = "passed"  # yes was said, and the run went on
    EXECUTED = "executed"
    ANSWERED = "answered"  # a run that resumes this one covers it
    DENIED = "denied"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"  # handled
    OVER = "over"  # past its hard expiry, and nobody handled that
    ABORTED = "aborted"


class Wait(NamedTuple):
    """One approval as the rules see it."""

    approval_id: str | None
    kind: ApprovalKind
    status: Status
    missing: tuple[Missing, ...] = ()
    decision: Decision | None = None
    actor: str | None = None
    executed: bool | None = None
    tool_call_id: str | None = None
    evidence: tuple[str, ...] = ()
    moments: tuple[datetime, ...] = ()


class Said(NamedTuple):
    """Something that was said about an approval, and when."""

    at: datetime
    approval: Approval


class Resumption(NamedTuple):
    """A run that takes this one up. `answers` None covers everything."""

    run_id: str
    answers: frozenset[str] | None

    def covers(self, approval_id: str | None) -> bool:
        """Whether it answers that approval; one of which nothing is known is answered by any resumption."""
        return self.answers is None or approval_id is None or approval_id in self.answers


class Situation(NamedTuple):
    """What the approvals of an attempt have to know about it."""

    stop: RunStopped | None
    cause: StopCause | None
    subject: Subject
    resumptions: Sequence[Resumption]
    effect_keys: frozenset[str]  # effects that somebody confirmed; one may bear the id of a gated call
    policy: Policy
    now: datetime

    @property
    def aborted(self) -> bool:
        """An observed abort closes every approval of its run."""
        return self.stop is not None and is_observed_abort(self.stop)


def children_wait(stop: RunStopped | None) -> bool:
    """Whether a child run waits: an open approval of which nothing more is known."""
    return stop is not None and stop.children is not None and stop.children.waiting > 0


def waits_of(said: Iterable[Said], situation: Situation) -> tuple[Wait, ...]:
    """Every approval of the attempt, in the order in which they were first mentioned."""
    merged = list(_merged(said).values())
    decided = [at for each in merged if (at := each.get("decided_at"))]
    waits = [_wait(each, situation, max(decided, default=None)) for each in merged]
    if children_wait(situation.stop) or (situation.cause in vocabulary.WAITING and not waits):
        waits.append(_unknown_wait(situation))
    if any(each.status is Status.OPEN for each in waits):
        # A run resumes when all of it is decided: until then no answer is late in being delivered.
        waits = [_without_delivery_clock(each) for each in waits]
    return tuple(waits)


def _merged(said: Iterable[Said]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for at, approval in said:
        known = merged.setdefault(approval.approval_id, {"requested_at": at})
        news = {name: value for name, value in approval.__dict__.items() if value is not None}
        if known.get("state") in _CLOSING and news.get("state") not in _CLOSING:
            news.pop("state", None)
        if _is_new_decision(known, news):
            known["decided_at"] = at
        known |= news
    return merged


def _is_new_decision(known: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """Said for the first time, or said otherwise than before."""
    if "decision" in news:
        return news["decision"] is not known.get("decision")
    return news.get("state") is ApprovalState.DECIDED and "decided_at" not in known


def _unknown_wait(situation: Situation) -> Wait:
    """A wait of which nothing is known but that it is there."""
    status = Status.OPEN
    if situation.aborted:
        status = Status.ABORTED
    elif any(each.covers(None) for each in situation.resumptions):
        status = Status.ANSWERED
    lacking = (Missing.OWNER, Missing.DEADLINE, Missing.RESUME_TOKEN) if status is Status.OPEN else ()
    place = "children.waiting" if children_wait(situation.stop) else "stop_cause"
    return Wait(None, _kind({}, situation.cause), status, lacking, evidence=(place,))


def _kind(known: Mapping[str, Any], cause: StopCause | None) -> ApprovalKind:
    """The kind that was said, else the one that the cause or a tool points to."""
    if known.get("kind"):
        return ApprovalKind(known["kind"])
    if cause is StopCause.INPUT_PENDING:
        return ApprovalKind.INPUT_REQUIRED
    if cause is StopCause.EXTERNAL_PENDING:
        return ApprovalKind.EXTERNAL
    return ApprovalKind.TOOL_CALL if known.get("tool") or known.get("tool_call_id") else ApprovalKind.CONFIRMATION


def _wait(known: dict[str, Any], situation: Situation, last_decision: datetime | None) -> Wait:
    kind = _kind(known, situation.cause)
    route = _route(known, kind, situation)
    if known.get("executed") is None and known.get("tool_call_id") in situation.effect_keys:
        known["executed"] = True
    status = _status(known, situation, route)
    named = [f"approval:{known['approval_id']}"]
    if route and status in (Status.OPEN, Status.OVER, Status.EXPIRED) and _apply(route, known):
        named.append(f"policy:{situation.policy.name}")
    missing, moments = _lacking(known, status, situation, last_decision)
    return Wait(
        known["approval_id"],
        kind,
        status,
        missing,
        known.get("decision"),
        known.get("actor"),
        known.get("executed"),
        known.get("tool_call_id"),
        tuple(named),
        moments,
    )


def _route(known: Mapping[str, Any], kind: ApprovalKind, situation: Situation) -> Route | None:
    if not situation.policy.routes:
        return None
    asked = situation.subject._replace(kind=kind, tool=known.get("tool"), raised_by=known.get("raised_by"))
    return situation.policy.route(asked)


def _apply(route: Route, known: dict[str, Any]) -> bool:
    """Fill in what nobody gave; say whether the route decided anything."""
    used = route.on_expiry == "BOUNDED_STOP" and known.get("expires_at") is not None
    if route.owner and not known.get("owner"):
        known["owner"], used = route.owner, True
    if route.due and not known.get("deadline"):
        known["deadline"], used = known["requested_at"] + route.due, True
    return used


def _status(known: Mapping[str, Any], situation: Situation, route: Route | None) -> Status:
    closed = _closed(known, situation)
    if closed:
        return closed
    decision = known.get("decision") or (known.get("state") is ApprovalState.DECIDED and Decision.APPROVED)
    if decision and not _waits_for(known, situation):
        return Status.PASSED
    expires_at = known.get("expires_at")
    if expires_at and situation.now >= expires_at:
        return Status.EXPIRED if route and route.on_expiry == "BOUNDED_STOP" else Status.OVER
    return Status.DECIDED if decision else Status.OPEN


def _closed(known: Mapping[str, Any], situation: Situation) -> Status | None:
    if known.get("executed"):
        return Status.EXECUTED
    if situation.aborted:
        return Status.ABORTED
    if any(each.covers(known["approval_id"]) for each in situation.resumptions):
        return Status.ANSWERED
    if known.get("decision") is Decision.DENIED:
        return Status.DENIED
    if known.get("decision") is Decision.CANCELLED or known.get("state") is ApprovalState.WITHDRAWN:
        return Status.WITHDRAWN
    return Status.EXPIRED if known.get("state") is ApprovalState.EXPIRED else None


def _waits_for(known: Mapping[str, Any], situation: Situation) -> bool:
    """Whether the run stopped to wait for this decision: then only a resume closes it, not the decision."""
    if situation.stop is None:
        return False
    return situation.cause in vocabulary.WAITING or known["decided_at"] > situation.stop.at


def _lacking(
    known: Mapping[str, Any], status: Status, situation: Situation, last_decision: datetime | None
) -> tuple[tuple[Missing, ...], tuple[datetime, ...]]:
    """What an approval that keeps the run waiting lacks, and the moments at which that can change by itself."""
    if status not in (Status.OPEN, Status.DECIDED):
        return (), ()
    deadline, expires_at = known.get("deadline"), known.get("expires_at")
    resume_due = last_decision + situation.policy.defaults.resume_due if last_decision else None
    undecided = status is Status.OPEN
    late = not undecided and resume_due is not None and situation.now >= resume_due
    facts = (
        (Missing.OWNER, undecided and not known.get("owner")),
        (Missing.DEADLINE, undecided and not deadline and not expires_at),
        (Missing.OVERDUE, undecided and deadline is not None and situation.now >= deadline),
        (Missing.RESUME_TOKEN, not known.get("resume_token")),
        (Missing.RESUMABLE_TARGET, known.get("resumable") is False),
        (Missing.DELIVERY, late or known.get("state") is ApprovalState.UNDELIVERED),
    )
    moments = (deadline, expires_at) if undecided else (resume_due, expires_at)
    return tuple(name for name, lacks in facts if lacks), tuple(at for at in moments if at and at > situation.now)


def _without_delivery_clock(wait: Wait) -> Wait:
    if wait.status is not Status.DECIDED:
        return wait
    return wait._replace(missing=tuple(each for each in wait.missing if each is not Missing.DELIVERY))
