"""The eight rules. Read from top to bottom: that is the precedence, and the first rule that matches wins.

A rule takes an attempt's facts and what is voided of them, and gives a `Match` or None. Its card, right below it, says
why it stands where it does. The last rule always matches. README, `stopcause rules` and `explain` come from the cards.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from stopcause.classifier import contradictions
from stopcause.classifier.approvals import KEEPS_WAITING, NO, YES, Status, Wait
from stopcause.classifier.contradictions import DENIAL, EXPIRY, FINISH, NEEDED_BY, RECEIPTS, WAIT, Voided
from stopcause.classifier.fold import Facts
from stopcause.classifier.verdict import Finding, Missing, VerdictName
from stopcause.receipts import vocabulary
from stopcause.receipts.vocabulary import OutputShape, StopCause

_OVER = frozenset({Status.OVER})
_ANSWERED = frozenset({Status.ANSWERED})
_EXPIRED = frozenset({Status.EXPIRED})
_SAID_NO = frozenset({Status.DENIED, Status.WITHDRAWN})


class Match(NamedTuple):
    """A rule that matched: the reason, the names of the fields that decided, and what follows from them."""

    reason: str
    evidence: tuple[str, ...]
    missing: tuple[Missing, ...] = ()
    findings: tuple[Finding, ...] = ()
    moments: tuple[datetime, ...] = ()
    settled: bool = True


class Rule(NamedTuple):
    """A card. `reasons` are in the order in which they are tried; `cases` are fixtures that show it."""

    id: str
    verdict: VerdictName
    matches_when: str
    reads: tuple[str, ...]
    stands_here: str
    reasons: tuple[str, ...]
    action: str
    retry: str
    cases: tuple[str, ...]
    match: Callable[[Facts, Voided], Match | None]


# 1 --------------------------------------------------------------------------------------------------------------------


def failed(facts: Facts, gone: Voided) -> Match | None:
    """The loop stopped because of a failure. A failed tool call somewhere in it is not enough."""
    if facts.cause not in facts.policy.failed_causes or gone.bits & NEEDED_BY[facts.cause]:
        return None
    if facts.died is None:
        return Match(facts.cause or "", ("stop_cause", *_named(facts, "error", "tool_errors", "finish_reason")))
    if _with_status(facts, KEEPS_WAITING | _ANSWERED):  # a paused run may be resumable although its process is gone
        return None
    return Match(StopCause.PROCESS_LOST, ("run.died",))


FAILED = Rule(
    id="failed",
    verdict=VerdictName.FAILED,
    matches_when="the loop stopped because of an unrecovered failure",
    reads=("stop_cause", "run.died"),
    stands_here="A failure that ended the run outweighs what else was going on: nobody will come back to it.",
    reasons=tuple(cause for cause in StopCause if cause in vocabulary.FAILED),
    action="Find what broke and whether it already acted, then decide on a retry.",
    retry="check_first; later for quota; safe when no tool was called",
    cases=("A09", "C39", "C43", "P16a", "P07d"),
    match=failed,
)

# 2 --------------------------------------------------------------------------------------------------------------------


def waiting(facts: Facts, gone: Voided) -> Match | None:
    """Everything that it waits for is routed; or it was answered, and another run went on with it."""
    if not facts.waits or gone.bits & WAIT:
        return None
    open_waits = _waiting(facts)
    if not open_waits:
        return _answered(facts)
    if any(wait.missing for wait in open_waits):
        return None
    return Match(open_waits[0].kind, _evidence(open_waits), moments=_moments(open_waits), settled=False)


def _answered(facts: Facts) -> Match | None:
    answered = _with_status(facts, _ANSWERED)
    if not answered and facts.cause in vocabulary.WAITING:
        # The gated call ran after a yes: it was taken up, though no run says so.
        answered = [wait for wait in facts.waits if wait.status is Status.EXECUTED and wait.decision in YES]
    if not answered or _with_status(facts, _OVER):
        return None
    return Match("answered", _evidence(answered))


WAITING = Rule(
    id="waiting",
    verdict=VerdictName.WAITING,
    matches_when="an approval is open, and every open one has an owner, a deadline and a resume token",
    reads=("approvals", "stop_cause"),
    stands_here="A wait is on purpose. It stays a wait, whatever bound fired while it waited.",
    reasons=(*vocabulary.ApprovalKind, "answered"),
    action="Get it answered before it is due.",
    retry="resume; no once it was answered",
    cases=("A07", "C56", "P16b", "P17b"),
    match=waiting,
)

# 3 --------------------------------------------------------------------------------------------------------------------


def waiting_unrouted(facts: Facts, gone: Voided) -> Match | None:
    """Something is missing for the wait to end by itself."""
    if not facts.waits or gone.bits & WAIT:
        return None
    open_waits = _waiting(facts)
    lacking = {name for wait in open_waits for name in wait.missing}
    if not lacking:
        return None
    missing = tuple(name for name in Missing if name in lacking)
    lame = [wait for wait in open_waits if wait.missing]
    return Match(missing[0], _evidence(lame), missing, moments=_moments(open_waits), settled=False)


WAITING_UNROUTED = Rule(
    id="waiting_unrouted",
    verdict=VerdictName.WAITING_UNROUTED,
    matches_when="an approval is open, and something is missing",
    reads=("approvals", "children.waiting", "stop_cause"),
    stands_here="Right behind the wait that is in order: the same pause, but nobody is sure to end it.",
    reasons=tuple(Missing),
    action="Name who answers, and who is next.",
    retry="resume",
    cases=("A08", "C67", "C73", "P11a"),
    match=waiting_unrouted,
)

# 4 --------------------------------------------------------------------------------------------------------------------


def stuck(facts: Facts, gone: Voided) -> Match | None:
    """It used its time without getting anywhere."""
    if _is_open(facts):
        return _lease_over(facts) or _approval_over(facts, gone)
    stands = not gone.bits & NEEDED_BY[facts.cause]
    if stands and facts.cause is StopCause.TIME_LIMIT and not _progressed(facts):
        unknown = () if facts.progress_known else (Finding("progress_unknown"),)
        return Match(StopCause.TIME_LIMIT, ("stop_cause", "progress"), findings=unknown)
    if stands and facts.cause in vocabulary.NO_PROGRESS:
        return Match(facts.cause or "", ("stop_cause", *_named(facts, "reason_code")))
    return _approval_over(facts, gone) or (_fell_silent(facts) if stands else None)


def _fell_silent(facts: Facts) -> Match | None:
    """A stream that was cut off after it had been silent for so long that nobody was working any more."""
    if facts.silence is None or facts.silence < facts.policy.defaults.stuck_after:
        return None
    return Match("lease_expired", ("stop_cause", "run.progress"))


def _approval_over(facts: Facts, gone: Voided) -> Match | None:
    over = _with_status(facts, _OVER)
    if not over or gone.bits & (WAIT | EXPIRY):
        return None
    moments = (facts.lease_ends,) if facts.lease_ends else ()
    return Match("approval_expired", _evidence(over), moments=moments)


def _lease_over(facts: Facts) -> Match | None:
    if facts.lease_ends is None or facts.now < facts.lease_ends:
        return None
    return Match("lease_expired", ("lease_s", "run.progress"))


STUCK = Rule(
    id="stuck",
    verdict=VerdictName.STUCK,
    matches_when="time ran out without useful progress; a guard saw it repeat itself; its lease or approval ran out",
    reads=("stop_cause", "progress", "run.progress", "lease_s", "approvals"),
    stands_here="Before the bounds: a time limit at the last allowed step is still a time limit.",
    reasons=("time_limit", "loop_guard", "retry_storm", "lease_expired", "approval_expired"),
    action="Read the last progress record; try one recovery with a limit.",
    retry="check_first; safe when no tool was called",
    cases=("A10", "C46", "C48", "P02b", "P17a", "P36b"),
    match=stuck,
)

# 5 --------------------------------------------------------------------------------------------------------------------


def bounded_stop(facts: Facts, gone: Voided) -> Match | None:
    """A bound did what it is for; a person said no; somebody stopped it."""
    if facts.cause in vocabulary.WAITING or _is_open(facts):
        return _ended_wait(facts, gone)
    if facts.cause not in facts.policy.bounded_causes and facts.cause not in vocabulary.ABORTED:
        return None
    if gone.bits & NEEDED_BY[facts.cause]:
        return None
    if facts.stop is not None and facts.stop.stop_cause in vocabulary.FINISHED:  # a bound behind a natural finish
        return Match(facts.cause or "", ("stop_cause", *_named(facts, "forced_wrapup", "pending_tool_calls", "steps")))
    signs = ("run.progress",) if facts.cause is StopCause.TIME_LIMIT and facts.stop and not facts.stop.progress else ()
    return Match(facts.cause or "", ("stop_cause", *_named(facts, "conditions", "abort", "progress"), *signs))


def _ended_wait(facts: Facts, gone: Voided) -> Match | None:
    """A run that stopped to wait, and whose wait was denied, given up, or expired as planned.

    An open run ends this way only by an expiry that its route calls planned, and once no lease says that it lives.
    """
    if gone.bits & WAIT:
        return None
    refused = _with_status(facts, _SAID_NO) if facts.cause in vocabulary.WAITING else []
    if refused and not gone.bits & DENIAL:
        withdrawn = any(wait.status is Status.WITHDRAWN for wait in refused)
        findings = (Finding("withdrawn"),) if withdrawn else ()
        return Match(StopCause.APPROVAL_DENIED, _evidence(refused), findings=findings)
    expired = _with_status(facts, _EXPIRED)
    if expired and not gone.bits & EXPIRY:
        return Match(StopCause.APPROVAL_EXPIRED, _evidence(expired))
    return None


BOUNDED_STOP = Rule(
    id="bounded_stop",
    verdict=VerdictName.BOUNDED_STOP,
    matches_when="a bound fired (time only with progress), a guardrail, a denial or expiry that ended it, an abort",
    reads=("stop_cause", "conditions", "abort", "progress", "approvals"),
    stands_here="Before the finishes: a receipt beside a bound does not make the run complete.",
    reasons=tuple(cause for cause in StopCause if cause in vocabulary.BOUNDED | vocabulary.ABORTED),
    action="Use what is there; start again only with a reason and a limit.",
    retry="check_first; safe when no tool was called",
    cases=("A05", "A06", "A11", "C19", "P05a"),
    match=bounded_stop,
)

# 6 --------------------------------------------------------------------------------------------------------------------


def verified_complete(facts: Facts, gone: Voided) -> Match | None:
    """It finished, and somebody independent looked at the destination."""
    if not _finished(facts, gone) or gone.bits & RECEIPTS or _open_children(facts):
        return None
    return Match("receipt", ("stop_cause", *facts.proof.evidence)) if facts.proof.met else None


VERIFIED_COMPLETE = Rule(
    id="verified_complete",
    verdict=VerdictName.VERIFIED_COMPLETE,
    matches_when="it finished, no child is open, and independent, fresh, strong enough receipts meet the contract",
    reads=("stop_cause", "children", "outcomes", "contract"),
    stands_here="The only good end, so everything that could speak against it was asked before.",
    reasons=("receipt",),
    action="Nothing to do.",
    retry="no",
    cases=("A01", "A03", "C41", "P05c", "P11c"),
    match=verified_complete,
)

# 7 --------------------------------------------------------------------------------------------------------------------


def false_complete(facts: Facts, gone: Voided) -> Match | None:
    """It finished, and nobody vouches for the work: the end of the loop proves only the end of the loop."""
    if not _finished(facts, gone):
        return None
    reason, evidence = _unproven(facts)
    if facts.contract is None:
        return Match(reason, ("stop_cause", *evidence))
    until = _pending_until(facts)
    if until is None or facts.now >= until:
        return Match(reason, ("stop_cause", *evidence))
    pending = "receipt_pending" if reason == "receipt_missing" else reason
    return Match(pending, ("stop_cause", *evidence), moments=(until,), settled=False)


def _unproven(facts: Facts) -> tuple[str, tuple[str, ...]]:
    """The first reason that applies, and what shows it; `receipt_missing` is split by time."""
    if _open_children(facts):
        return "open_children", ("children",)
    denied = [wait for wait in facts.waits if wait.decision in NO]
    if denied:
        return "denied", _evidence(denied)
    if facts.proof.fault:
        return facts.proof.fault, facts.proof.evidence
    if facts.stop and facts.stop.output_shape is OutputShape.NONE:
        return "empty_output", ("output_shape",)
    return ("receipt_missing", ("contract",)) if facts.contract else ("no_contract", ())


def _pending_until(facts: Facts) -> datetime | None:
    if facts.contract is None or facts.stop is None:
        return None
    settle = facts.contract.settle
    return facts.stop.at + (facts.policy.defaults.settle if settle is None else settle)


FALSE_COMPLETE = Rule(
    id="false_complete",
    verdict=VerdictName.FALSE_COMPLETE,
    matches_when="it finished, without that",
    reads=("stop_cause", "children", "approvals", "outcomes", "output_shape", "contract"),
    stands_here="Behind the verified finish: the same end, told apart only by a receipt from the destination.",
    reasons=(
        "open_children",
        "denied",
        "receipt_refuted",
        "receipt_stale",
        "receipt_weak",
        "self_claim_only",
        "empty_output",
        "receipt_pending",
        "receipt_missing",
        "no_contract",
    ),
    action="Look at the destination; if nothing is there, the work is open.",
    retry="check_first; safe when no tool was called",
    cases=("A02", "A04", "C79", "C85", "P05b", "P11b"),
    match=false_complete,
)

# 8 --------------------------------------------------------------------------------------------------------------------


def uncertain(facts: Facts, gone: Voided) -> Match:
    """What is left: evidence against itself, or none."""
    if gone.reason:
        return Match(gone.reason, gone.shown_by, moments=_late_span(facts), settled=not _late_span(facts))
    if _is_open(facts):
        return Match("run_open", ("run.started",), moments=_late_record(facts), settled=not _late_record(facts))
    if facts.cause is StopCause.STREAM_TRUNCATED:
        return Match("stream_truncated", ("stop_cause",), moments=_late_record(facts), settled=not _late_record(facts))
    return Match("cause_missing", ("stop_cause",))


def _late_span(facts: Facts) -> tuple[datetime, ...]:
    """Disputed terminals that spans tell of may still be derived anew."""
    disputed = facts.disputed and facts.told is not None and facts.told.boundary is vocabulary.Boundary.SPAN
    return _late_record(facts) if disputed else ()


def _late_record(facts: Facts) -> tuple[datetime, ...]:
    """Until when a record that says more may still be under way; empty once that time is over."""
    until = facts.last_at + facts.policy.defaults.settle
    return (until,) if facts.now < until else ()


UNCERTAIN = Rule(
    id="uncertain",
    verdict=VerdictName.UNCERTAIN,
    matches_when="the evidence contradicts itself, or no cause was recorded",
    reads=("everything",),
    stands_here="Last, so that it means what it says: nothing above could be believed.",
    reasons=(
        contradictions.TWO_TERMINALS,
        *(card.code for card in contradictions.CONTRADICTIONS),
        "run_open",
        "cause_missing",
        "stream_truncated",
    ),
    action="Get the missing evidence or a person's word first.",
    retry="check_first; no for a duplicate or late effect",
    cases=("C11", "C37", "C90", "C98", "P08c"),
    match=uncertain,
)

RULES = (
    FAILED,
    WAITING,
    WAITING_UNROUTED,
    STUCK,
    BOUNDED_STOP,
    VERIFIED_COMPLETE,
    FALSE_COMPLETE,
    UNCERTAIN,
)

# What the rules share -------------------------------------------------------------------------------------------------


def is_running(facts: Facts) -> bool:
    """No verdict yet: nothing ended it, nothing is waited for, and its lease is valid."""
    return (
        _is_open(facts)
        and facts.lease_ends is not None
        and facts.now < facts.lease_ends
        and not _with_status(facts, KEEPS_WAITING | {Status.OVER, Status.ANSWERED})
    )


def _is_open(facts: Facts) -> bool:
    return facts.stop is None and facts.died is None and not facts.disputed


def _with_status(facts: Facts, statuses: frozenset[Status]) -> list[Wait]:
    return [wait for wait in facts.waits if wait.status in statuses] if facts.waits else []


def _waiting(facts: Facts) -> list[Wait]:
    return _with_status(facts, KEEPS_WAITING)


def _evidence(waits: list[Wait]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for wait in waits for name in wait.evidence))


def _moments(waits: list[Wait]) -> tuple[datetime, ...]:
    return tuple(at for wait in waits for at in wait.moments)


def _named(facts: Facts, *fields: str) -> tuple[str, ...]:
    """Those of the fields that the receipt fills."""
    return tuple(name for name in fields if getattr(facts.stop, name, None) is not None)


def _progressed(facts: Facts) -> bool:
    """Something useful within `stuck_after` of the stop; a tool in flight counts, bytes and heartbeats do not."""
    if facts.progress_at is None or facts.stop is None:
        return False
    ago: timedelta = facts.stop.at - facts.progress_at
    return ago < facts.policy.defaults.stuck_after


def _finished(facts: Facts, gone: Voided) -> bool:
    return facts.cause in vocabulary.FINISHED and not gone.bits & FINISH


def _open_children(facts: Facts) -> bool:
    return facts.stop is not None and facts.stop.children is not None and facts.stop.children.open > 0
