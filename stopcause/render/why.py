"""Why this rule, and why not the ones before it: one short phrase a rule, taken from the run's own facts.

A phrase states a fact that this rule reads. It never guesses: what was not recorded is said to be not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from stopcause.classifier import contradictions, engine
from stopcause.classifier.approvals import KEEPS_WAITING, Status, Wait
from stopcause.classifier.contradictions import Voided
from stopcause.classifier.fold import Facts
from stopcause.classifier.rules import Rule
from stopcause.classifier.verdict import Missing, Verdict
from stopcause.receipts import vocabulary
from stopcause.receipts.vocabulary import LimitKind, StopCause
from stopcause.render.answered import unresumed
from stopcause.render.pen import age, count, whole_or_tail

_ID_WIDTH = 16


class Step(NamedTuple):
    """A rule that was tried, and the fact that made it match or not."""

    number: int
    rule: Rule
    matched: bool
    phrase: str


def steps(facts: Facts, verdict: Verdict) -> list[Step]:
    """The rules in the order in which they were tried. None where the run still runs."""
    gone = contradictions.void(facts)
    return [
        Step(number, rule, matched, _YES[rule.id](facts, verdict) if matched else _NO[rule.id](facts, gone))
        for number, (rule, matched) in enumerate(engine.trace(facts), 1)
    ]


# Why not --------------------------------------------------------------------------------------------------------------


def _not_failed(facts: Facts, gone: Voided) -> str:
    if facts.disputed:
        return "the records of its end disagree"
    if facts.cause in facts.policy.failed_causes:
        if facts.died is not None:
            return "the process is gone, but the run waits"
        return f"{facts.cause} is voided by {gone.reason}"
    if facts.cause in vocabulary.FAILED:
        return f"the policy counts {facts.cause} as a bound"
    return _recovered(facts) or "no failure ended it"


def _recovered(facts: Facts) -> str:
    stop = facts.stop
    for what, counts in (("tool", stop and stop.tool_errors), ("model", stop and stop.model_errors)):
        if counts and counts.recovered:
            return f"{count(counts.recovered, f'{what} error')}, recovered"
    return ""


def _not_waiting(facts: Facts, gone: Voided) -> str:
    lacking = [name for wait in facts.waits if wait.status in KEEPS_WAITING for name in wait.missing]
    if lacking and not gone.bits & contradictions.WAIT:
        return lacks(tuple(dict.fromkeys(lacking)))
    return _no_wait(facts, gone)


def lacks(missing: Sequence[str]) -> str:
    """What a wait lacks, in words: `missing owner, deadline`, `overdue`."""
    absent = [name for name in missing if name != Missing.OVERDUE]
    said = [f"missing {', '.join(absent)}"] if absent else []
    return "; ".join([*said, "overdue"] if Missing.OVERDUE in missing else said)


def _no_wait(facts: Facts, gone: Voided) -> str:
    if gone.bits & contradictions.WAIT and facts.waits:
        return f"the wait is voided by {gone.reason or gone.others[0]}"
    if not facts.waits:
        return "no open approval"
    wait = facts.waits[0]
    return f"{_approval(wait)} is {_STATUS[wait.status]}"


def _approval(wait: Wait) -> str:
    return f"approval {whole_or_tail(wait.approval_id, _ID_WIDTH)}" if wait.approval_id else "what it waits for"


_STATUS: Final[Mapping[Status, str]] = {
    Status.OPEN: "open",
    Status.DECIDED: "decided, not taken up yet",
    Status.PASSED: "decided, and it went on",
    Status.EXECUTED: "executed",
    Status.ANSWERED: "answered by another run",
    Status.DENIED: "denied",
    Status.WITHDRAWN: "withdrawn",
    Status.EXPIRED: "expired, and handled",
    Status.OVER: "past its hard expiry",
    Status.ABORTED: "closed by the abort",
}


def status_words(status: Status) -> str:
    """Where an approval stands, in words."""
    return _STATUS[status]


def _not_stuck(facts: Facts, gone: Voided) -> str:
    if _is_open(facts):
        return "no lease is known" if facts.lease_ends is None else "its lease is not over"
    if facts.cause is StopCause.TIME_LIMIT and gone.bits & contradictions.TIME_BOUND:
        return f"the time limit is voided by {gone.reason}"
    if facts.cause is StopCause.TIME_LIMIT:
        return _progress(facts)
    return "no time limit, guard or lease ended it"


def _progress(facts: Facts) -> str:
    if facts.stop is None or facts.progress_at is None:
        return "no useful progress" if facts.progress_known else "nothing is known of progress"
    if facts.progress_at >= facts.stop.at:
        return "progress up to the stop"
    return f"progress {age(facts.stop.at - facts.progress_at)} before the stop"


def _not_bounded(facts: Facts, gone: Voided) -> str:
    if _is_open(facts):
        return "nothing ended it"
    cause = facts.cause
    if (cause in facts.policy.bounded_causes or cause in vocabulary.ABORTED) and gone.reason:
        return f"{cause} is voided by {gone.reason}"
    if cause in vocabulary.WAITING:
        return "the wait was not refused and did not expire"
    return _condition(facts) or "no bound and no abort ended it"


def _condition(facts: Facts) -> str:
    """What the run's step limit, or another condition that was asked, says against a bound."""
    stop = facts.stop
    asked = stop.conditions or () if stop else ()
    for each in asked:
        if each.fired is False:
            limit = f" {_number(each.limit)}" if each.limit is not None else ""
            observed = f" (observed {_number(each.observed)})" if each.observed is not None else ""
            return f"{each.name}{limit} did not fire{observed}"
    fired = next((each.name for each in asked if each.fired and each.kind is not LimitKind.TOOL_CALL), None)
    if fired:
        return f"{fired} fired, yet the run's cause is {facts.cause}"
    return _steps_below_limit(facts)


def _steps_below_limit(facts: Facts) -> str:
    stop, start = facts.stop, facts.start
    limits = (stop.limits if stop else None) or (start.limits if start else None) or ()
    limit = next((each.limit for each in limits if each.kind is LimitKind.STEPS and each.limit), None)
    if stop is None or stop.steps is None or limit is None or stop.steps >= limit:
        return ""
    return f"step limit {_number(limit)} was not reached ({count(stop.steps, 'step')})"


def _number(value: float | None) -> str:
    return f"{value:g}" if value is not None and value < 1e6 else f"{value:.0f}"  # noqa: PLR2004 - %g would go scientific


def _not_verified(facts: Facts, gone: Voided) -> str:
    if facts.cause not in vocabulary.FINISHED:
        return _unfinished(facts)
    if gone.bits & (contradictions.FINISH | contradictions.RECEIPTS):
        what = "finish" if gone.bits & contradictions.FINISH else "receipt"
        return f"the {what} is voided by {gone.reason or gone.others[0]}"
    if facts.stop and facts.stop.children and facts.stop.children.open:
        return f"{count(facts.stop.children.open, 'child run')} open"
    return _unproven(facts)


def _unfinished(facts: Facts) -> str:
    if facts.disputed:
        return "the records of its end disagree"
    return "it has not ended" if _is_open(facts) else f"it did not finish: {facts.cause}"


_FAULTS: Final[Mapping[str, str]] = {
    "receipt_refuted": "is refuted",
    "receipt_stale": "is stale",
    "receipt_weak": "is too weak",
    "self_claim_only": "is the run's own claim",
}


def _unproven(facts: Facts) -> str:
    outcome = whole_or_tail(next(iter(facts.proof.evidence), "outcome:").removeprefix("outcome:"), _ID_WIDTH)
    if facts.proof.fault:
        return f"outcome {outcome} {_FAULTS[facts.proof.fault]}"
    if outcome:
        return "a check of the contract has no receipt" if facts.contract else f"outcome {outcome} proves nothing"
    return "no receipt from outside the run"


def _not_false(facts: Facts, gone: Voided) -> str:
    return _not_verified(facts, gone)


def _is_open(facts: Facts) -> bool:
    return facts.stop is None and facts.died is None and not facts.disputed


# Why ------------------------------------------------------------------------------------------------------------------


def _failed(facts: Facts, _verdict: Verdict) -> str:
    if facts.died is not None:
        return f"the process is gone: {facts.died.reason or 'nobody says how'}"
    error = facts.stop.error if facts.stop else None
    by = error and (error.tool or error.type)
    return f"{facts.cause} ended it" + (f" ({by})" if by else "")


def _waiting(facts: Facts, verdict: Verdict) -> str:
    if verdict.reason == "answered":
        return f"answered by run {verdict.resolved_by}" if verdict.resolved_by else "answered, and the call ran"
    if answered := unresumed(facts, verdict):
        return f"{count(len(answered), 'approval')}, decided; no run has resumed it"
    waits = sum(wait.status in KEEPS_WAITING for wait in facts.waits)
    return f"{count(waits, 'open approval')}, routed and not due yet"


def _unrouted(_facts: Facts, verdict: Verdict) -> str:
    return lacks(verdict.missing)


def _stuck(facts: Facts, verdict: Verdict) -> str:
    if verdict.reason == "lease_expired" and facts.lease_ends:
        return f"its lease ended {age(facts.now - facts.lease_ends)} ago"
    if verdict.reason == "approval_expired":
        over = next(wait for wait in facts.waits if wait.status is Status.OVER)
        return f"{_approval(over)} is past its hard expiry"
    if verdict.reason == StopCause.TIME_LIMIT:
        return f"time_limit, {_progress(facts)}"
    return f"{facts.cause} ended it"


def _bounded(facts: Facts, verdict: Verdict) -> str:
    fired = next((each for each in (facts.stop.conditions or () if facts.stop else ()) if each.fired), None)
    if fired is None:
        return f"{verdict.reason} ended it"
    observed = "" if fired.observed is None else f" at {_number(fired.observed)}"
    limit = "" if fired.limit is None else f" of {_number(fired.limit)}"
    return f"{fired.name} fired{observed}{limit}"


def _verified(facts: Facts, _verdict: Verdict) -> str:
    first, *others = [name.removeprefix("outcome:") for name in facts.proof.evidence]
    said = f"outcome {whole_or_tail(first, _ID_WIDTH)} confirms it"
    return f"{said}, and {len(others)} more" if others else said


def _false(facts: Facts, verdict: Verdict) -> str:
    if verdict.reason in ("open_children", "denied", "empty_output"):
        return f"finished, and {_FALSE[verdict.reason]}"
    if verdict.reason == "receipt_pending":
        return "finished, contract not met yet"
    if facts.proof.fault and not facts.contract_name:
        return f"finished, and {_unproven(facts)}"
    return "finished, contract not met" if facts.contract_name else "finished, and no contract says what for"


_FALSE: Final[Mapping[str, str]] = {
    "open_children": "what it started is still open",
    "denied": "what it asked for was denied",
    "empty_output": "nothing came out",
}


def _uncertain(_facts: Facts, verdict: Verdict) -> str:
    return _UNKNOWN.get(verdict.reason, "the evidence contradicts itself")


_UNKNOWN: Final[Mapping[str, str]] = {
    "run_open": "it began, and nothing says that it ended",
    "cause_missing": "no cause was recorded",
    "stream_truncated": "the stream ended without its last event",
}

_NO: Final[Mapping[str, Callable[[Facts, Voided], str]]] = {
    "failed": _not_failed,
    "waiting": _not_waiting,
    "waiting_unrouted": _no_wait,
    "stuck": _not_stuck,
    "bounded_stop": _not_bounded,
    "verified_complete": _not_verified,
    "false_complete": _not_false,
}
_YES: Final[Mapping[str, Callable[[Facts, Verdict], str]]] = {
    "failed": _failed,
    "waiting": _waiting,
    "waiting_unrouted": _unrouted,
    "stuck": _stuck,
    "bounded_stop": _bounded,
    "verified_complete": _verified,
    "false_complete": _false,
    "uncertain": _uncertain,
}
