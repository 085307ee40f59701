"""What became of each approval of a run: open, answered, denied, expired. The lines on approvals of the precedence.

An approval is merged from everything that was said about it: a later word replaces an earlier one, but a state that
closed it only gives way to another such state. Routes of the policy fill in an owner and a deadline where nobody gave
them. Waits come out in the order in which they were first mentioned.
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
    """Where an approval stands. Only those of `KEEPS_WAITING` keep a run waiting."""

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


KEEPS_WAITING = frozenset({Status.OPEN, Status.DECIDED})


class Wait(NamedTuple):
    """One approval as the rules see it. `approval_id` None: it is there, and nothing more is known of it."""

    approval_id: str | None
    kind: ApprovalKind
    status: Status
    missing: tuple[Missing, ...]
    evidence: tuple[str, ...]
    moments: tuple[datetime, ...]  # when what is missing can change by itself
    tool: str | None
    owner: str | None
    requested_at: datetime | None
    deadline: datetime | None
    expires_at: datetime | None
    resume_token: str | None
    decision: Decision | None
    decided_at: datetime | None
    actor: str | None
    executed: bool | None
    escalate: str | None  # the route's next in line
    answered_by: str | None  # the run that took it up
    overruled: bool  # a yes that became a no, or a no that became a yes


class Said(NamedTuple):
    """Something that was said about an approval, and when."""

    at: datetime
    attempt: int
    record_id: str
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
        """An observed abort closes every approval of its run; so does an engine that cuts off what has no time left."""
        return self.stop is not None and (is_observed_abort(self.stop) or _is_cut_off(self.stop))


def _is_cut_off(stop: RunStopped) -> bool:
    """A time limit that somebody outside enforced, and saw to be the end."""
    is_seen = stop.abort is not None and stop.abort.observed_at is not None
    return is_seen and stop.stop_cause is StopCause.TIME_LIMIT


class _Merged(NamedTuple):
    """An approval with everything that was said about it, its status, and the route that fills it in."""

    known: dict[str, Any]
    kind: ApprovalKind
    status: Status
    route: Route | None
    answered_by: str | None


def waits_of(said: Iterable[Said], situation: Situation) -> tuple[Wait, ...]:
    """Every approval of the attempt."""
    known = [*_merged(said).values()]
    if _has_unknown(known, situation):
        known.append({"approval_id": None, "requested_at": situation.stop.at if situation.stop else None})
    merged = [_weighed(each, situation) for each in known]
    decisions = [each.known["decided_at"] for each in merged if each.status is Status.DECIDED]
    # A run resumes when all of it is decided: until then no answer is late in being delivered.
    undecided = any(each.status is Status.OPEN for each in merged)
    last_decision = None if undecided else max(decisions, default=None)
    return tuple(_wait(each, situation, last_decision) for each in merged)


def _has_unknown(known: Sequence[Mapping[str, Any]], situation: Situation) -> bool:
    """Whether something waits that nothing was said about: a cause without an approval, a child without one."""
    children = waiting_children(situation.stop)
    told = {each["raised_by"] for each in known if each.get("raised_by")}
    return children > len(told) or (situation.cause in vocabulary.WAITING and not known)


def waiting_children(stop: RunStopped | None) -> int:
    """How many child runs wait: open approvals of which nothing more is known."""
    return stop.children.waiting if stop is not None and stop.children is not None else 0


# Merging --------------------------------------------------------------------------------------------------------------


def _merged(said: Iterable[Said]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for word in said:
        known = merged.setdefault(word.approval.approval_id, {"requested_at": word.at})
        news = {name: value for name, value in vars(word.approval).items() if value is not None}
        _add(known, news, word.at)
    return merged


def _add(known: dict[str, Any], news: dict[str, Any], at: datetime) -> None:
    state = news.get("state")
    if state is ApprovalState.UNDELIVERED:
        known["undelivered"] = True
    elif state is ApprovalState.DELIVERED or news.get("delivered_at"):
        known["undelivered"] = False
    if state is ApprovalState.DECIDED and "decision" not in news and "decision" not in known:
        news["decision"] = Decision.ANSWERED  # decided, and nobody says how: not a no
    if news.get("decision", known.get("decision")) is not known.get("decision"):
        known["overruled"] = known.get("overruled", False) or _opposes(news["decision"], known.get("decision"))
        known["decided_at"] = at
    elif "decision" not in news:
        news.pop("actor", None)  # who passes a question on has not decided it
    if known.get("state") in _CLOSING and state not in _CLOSING:
        news.pop("state", None)
    known |= news


def _opposes(decision: Decision, before: Decision | None) -> bool:
    return before is not None and (decision in YES) is not (before in YES)


# Where it stands ------------------------------------------------------------------------------------------------------


def _weighed(known: dict[str, Any], situation: Situation) -> _Merged:
    kind = _kind(known, situation.cause)
    if known.get("executed") is None and known.get("tool_call_id") in situation.effect_keys:
        known["executed"] = True
    route = _route(known, kind, situation)
    covering = (each.run_id for each in situation.resumptions if each.covers(known["approval_id"]))
    answered_by = next(covering, None)
    status = _closed(known, situation) or (Status.ANSWERED if answered_by else None)
    return _Merged(known, kind, status or _open(known, situation, route), route, answered_by)


def _kind(known: Mapping[str, Any], cause: StopCause | None) -> ApprovalKind:
    """The kind that was said, else the one that the cause or a tool points to."""
    if known.get("kind"):
        return ApprovalKind(known["kind"])
    if cause is StopCause.INPUT_PENDING:
        return ApprovalKind.INPUT_REQUIRED
    if cause is StopCause.EXTERNAL_PENDING:
        return ApprovalKind.EXTERNAL
    return ApprovalKind.TOOL_CALL if known.get("tool") or known.get("tool_call_id") else ApprovalKind.CONFIRMATION


def _route(known: Mapping[str, Any], kind: ApprovalKind, situation: Situation) -> Route | None:
    if not situation.policy.routes:
        return None
    asked = situation.subject._replace(kind=kind, tool=known.get("tool"), raised_by=known.get("raised_by"))
    return situation.policy.route(asked)


def _closed(known: Mapping[str, Any], situation: Situation) -> Status | None:
    """What closed it, other than a run that takes it up; a no of a run that stopped to wait is weighed after that."""
    decision, state = known.get("decision"), known.get("state")
    if known.get("executed"):
        return Status.EXECUTED
    if situation.aborted:
        return Status.ABORTED
    if decision is Decision.CANCELLED or state is ApprovalState.WITHDRAWN:
        return Status.WITHDRAWN
    if state is ApprovalState.EXPIRED:
        return Status.EXPIRED
    if decision is None or _stopped_for(known, situation):
        return None
    return Status.DENIED if decision is Decision.DENIED else Status.PASSED


def _stopped_for(known: Mapping[str, Any], situation: Situation) -> bool:
    """Whether the run stopped to wait for this decision: then a run that takes it up closes it, not the decision."""
    if situation.stop is None:
        return False
    return situation.cause in vocabulary.WAITING or known["decided_at"] > situation.stop.at


def _open(known: Mapping[str, Any], situation: Situation, route: Route | None) -> Status:
    if known.get("decision") is Decision.DENIED or situation.cause is StopCause.APPROVAL_DENIED:
        return Status.DENIED
    if situation.cause is StopCause.APPROVAL_EXPIRED:
        return Status.EXPIRED
    expires_at = known.get("expires_at")
    if expires_at and situation.now >= expires_at:
        return Status.EXPIRED if route and route.on_expiry == "BOUNDED_STOP" else Status.OVER
    return Status.DECIDED if known.get("decision") else Status.OPEN


# What it lacks --------------------------------------------------------------------------------------------------------


def _wait(it: _Merged, situation: Situation, last_decision: datetime | None) -> Wait:
    known, used = _filled_in(it)
    name = known["approval_id"]
    where = f"approval:{name}" if name else "children.waiting" if waiting_children(situation.stop) else "stop_cause"
    decided = last_decision if it.status is Status.DECIDED else None
    resume_due = decided + situation.policy.defaults.resume_due if decided else None
    return Wait(
        approval_id=name,
        kind=it.kind,
        status=it.status,
        missing=_lacking(known, it.status, situation.now, resume_due),
        evidence=(where, f"policy:{situation.policy.name}") if used else (where,),
        moments=_moments(known, it.status, situation.now, resume_due),
        tool=known.get("tool"),
        owner=known.get("owner"),
        requested_at=known.get("requested_at"),
        deadline=known.get("deadline"),
        expires_at=known.get("expires_at"),
        resume_token=known.get("resume_token"),
        decision=known.get("decision"),
        decided_at=known.get("decided_at"),
        actor=known.get("actor"),
        executed=known.get("executed"),
        escalate=it.route.escalate if it.route else None,
        answered_by=it.answered_by if it.status is Status.ANSWERED else None,
        overruled=known.get("overruled", False),
    )


def _filled_in(it: _Merged) -> tuple[dict[str, Any], bool]:
    """The approval with what its route gives, and whether the route decided anything."""
    known, route = it.known, it.route
    if route is None or it.status not in (Status.OPEN, Status.OVER, Status.EXPIRED):
        return known, False
    given: dict[str, Any] = {}
    if route.owner and not known.get("owner"):
        given["owner"] = route.owner
    if route.due is not None and not known.get("deadline") and known["requested_at"]:
        given["deadline"] = known["requested_at"] + route.due
    planned = it.status is Status.EXPIRED and route.on_expiry == "BOUNDED_STOP"
    return known | given, bool(given) or planned


def _lacking(
    known: Mapping[str, Any], status: Status, now: datetime, resume_due: datetime | None
) -> tuple[Missing, ...]:
    """What an approval that keeps the run waiting lacks."""
    if status not in KEEPS_WAITING:
        return ()
    undecided, deadline = status is Status.OPEN, known.get("deadline")
    facts = (
        (Missing.OWNER, undecided and not known.get("owner")),
        (Missing.DEADLINE, undecided and not deadline and not known.get("expires_at")),
        (Missing.OVERDUE, undecided and deadline is not None and now >= deadline),
        (Missing.RESUME_TOKEN, not known.get("resume_token")),
        (Missing.RESUMABLE_TARGET, known.get("resumable") is False),
        (Missing.DELIVERY, known.get("undelivered") or (resume_due is not None and now >= resume_due)),
    )
    return tuple(name for name, lacks in facts if lacks)


def _moments(
    known: Mapping[str, Any], status: Status, now: datetime, resume_due: datetime | None
) -> tuple[datetime, ...]:
    if status not in KEEPS_WAITING:
        return ()
    first = known.get("deadline") if status is Status.OPEN else resume_due
    return tuple(at for at in (first, known.get("expires_at")) if at and at > now)
