"""Evidence that contradicts itself is voided, not averaged. One function a code, in the order in which codes are named.

Each card says what is seen and which evidence that voids. A rule that needs voided evidence does not match, and the run
falls through to UNCERTAIN with the code; where the run's own cause did not need it, the code is only a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stopcause.classifier.approvals import NO, YES, Status, Wait
from stopcause.classifier.fold import Facts
from stopcause.receipts import vocabulary
from stopcause.receipts.model import RunStopped
from stopcause.receipts.vocabulary import Finish, StopCause

# Kinds of evidence, as bits: a rule needs some, a contradiction voids some.
FAILURE = 1 << 0
WAIT = 1 << 1
FINISH = 1 << 2
RECEIPTS = 1 << 3
STEP_BOUND = 1 << 4
TOKEN_BOUND = 1 << 5
COST_BOUND = 1 << 6
TIME_BOUND = 1 << 7
OUTPUT_BOUND = 1 << 8
OTHER_BOUND = 1 << 9
GUARDRAIL = 1 << 10
DENIAL = 1 << 11
EXPIRY = 1 << 12
ABORT = 1 << 13
NO_PROGRESS = 1 << 14
NOT_KNOWN = 1 << 15
EVERYTHING = (1 << 16) - 1
OWN_BOUND = 0  # whichever bound the run's own cause claims

_BOUNDS: dict[StopCause | None, int] = {
    StopCause.STEP_LIMIT: STEP_BOUND,
    StopCause.TOKEN_BUDGET: TOKEN_BOUND,
    StopCause.COST_BUDGET: COST_BOUND,
    StopCause.TIME_LIMIT: TIME_BOUND,
    StopCause.OUTPUT_CAP: OUTPUT_BOUND,
    StopCause.CONTEXT_LIMIT: OTHER_BOUND,
    StopCause.SERVER_TOOL_LIMIT: OTHER_BOUND,
    StopCause.GUARDRAIL: GUARDRAIL,
    StopCause.APPROVAL_DENIED: DENIAL,
    StopCause.APPROVAL_EXPIRED: EXPIRY,
}
NEEDED_BY: dict[StopCause | None, int] = {
    None: NOT_KNOWN,
    **dict.fromkeys(vocabulary.FINISHED, FINISH),
    **_BOUNDS,
    **dict.fromkeys(vocabulary.ABORTED, ABORT),
    **dict.fromkeys(vocabulary.NO_PROGRESS, NO_PROGRESS),
    **dict.fromkeys(vocabulary.WAITING, WAIT),
    **dict.fromkeys(vocabulary.FAILED, FAILURE),
    **dict.fromkeys(vocabulary.NOT_KNOWN, NOT_KNOWN),
}

_SAYS_NOTHING = frozenset({Finish.OTHER, Finish.UNKNOWN})
_NOT_DONE = frozenset({Finish.INTERRUPTED, Finish.LENGTH, Finish.CONTENT_FILTER, Finish.REFUSAL, Finish.ERROR})
_NOT_NATURAL = _NOT_DONE | {Finish.TOOL_CALLS, Finish.PAUSE}
_UNSAFE = frozenset({Finish.LENGTH, Finish.CONTENT_FILTER, Finish.ERROR})
_COUNTED = frozenset({StopCause.STEP_LIMIT, StopCause.TOKEN_BUDGET, StopCause.COST_BUDGET})


class Contradiction(NamedTuple):
    """A card: the code, when it is seen, what it voids (bits), and the check."""

    code: str
    seen_when: str
    voids: int
    check: Callable[[Facts, RunStopped], bool]


def _stream_rejected(_facts: Facts, stop: RunStopped) -> bool:
    return stop.stop_cause is StopCause.STREAM_REJECTED


def _outcome_type_unknown(_facts: Facts, stop: RunStopped) -> bool:
    return stop.stop_cause is StopCause.UNKNOWN and stop.reason_code == "outcome_type_unknown"


def _pending_tool_calls(facts: Facts, stop: RunStopped) -> bool:
    return facts.cause is StopCause.NATURAL and bool(stop.pending_tool_calls)


def _limit_overrun(facts: Facts, stop: RunStopped) -> bool:
    """21 steps against 20 do not show that the limit fired, but that count and limit do not belong together."""
    if not facts.step_limits or stop.steps is None:
        return False
    counted = stop.steps - 1 if stop.forced_wrapup else stop.steps
    return counted > min(facts.step_limits)


def _limit_not_reached(facts: Facts, stop: RunStopped) -> bool:
    if facts.cause not in _COUNTED:
        return False
    counted = [(c.observed, c.limit) for c in facts.claimed if c.limit is not None and c.observed is not None]
    if counted:
        return all(observed < limit for observed, limit in counted)
    limits = facts.step_limits if facts.cause is StopCause.STEP_LIMIT else ()
    return bool(limits) and stop.steps is not None and stop.steps < min(limits)


def _condition_not_fired(facts: Facts, _stop: RunStopped) -> bool:
    said = [each.fired for each in facts.claimed if each.fired is not None] if facts.claimed else ()
    return bool(said) and not any(said)


def _finish_unknown(_facts: Facts, stop: RunStopped) -> bool:
    return stop.finish_reason is not None and stop.finish_reason.normalized in _SAYS_NOTHING


def _finish_mismatch(facts: Facts, stop: RunStopped) -> bool:
    if stop.finish_reason is None or facts.cause not in vocabulary.FINISHED:
        return False
    against = _NOT_NATURAL if facts.cause is StopCause.NATURAL else _NOT_DONE
    return stop.finish_reason.normalized in against


def _unsafe_step_executed(_facts: Facts, stop: RunStopped) -> bool:
    """Calls of a step that was cut off may have run with half their arguments."""
    if stop.unsafe_steps:
        return True
    if stop.steps != 1 or stop.finish_reason is None or stop.finish_reason.normalized not in _UNSAFE:
        return False
    return (stop.tool_calls or 0) > (stop.pending_tool_calls or 0)


def _effect_after_stop(facts: Facts, stop: RunStopped) -> bool:
    return bool(stop.effects_after_stop) or facts.late_signs


def _duplicate_effect(facts: Facts, _stop: RunStopped) -> bool:
    return bool(facts.effects) and any(len(keys) > 1 for keys in facts.effects.values())


def _approval_bypassed(facts: Facts, _stop: RunStopped) -> bool:
    return bool(facts.waits) and any(wait.executed and wait.decision is None for wait in facts.waits)


def _approval_mismatch(facts: Facts, _stop: RunStopped) -> bool:
    finished = facts.cause in vocabulary.FINISHED
    return bool(facts.waits) and any(_mismatches(wait, finished=finished) for wait in facts.waits)


def _mismatches(wait: Wait, *, finished: bool) -> bool:
    by_machine = wait.decision is not None and (wait.actor or "").startswith(("bot:", "run:"))
    denied_yet_ran = wait.decision in NO and bool(wait.executed)
    dropped = finished and wait.decision in YES and wait.executed is False and wait.status is Status.PASSED
    return by_machine or denied_yet_ran or dropped


def _nested_disagreement(facts: Facts, stop: RunStopped) -> bool:
    if stop.error is None or facts.cause not in vocabulary.FINISHED:
        return False
    return not any(counts and counts.recovered for counts in (stop.tool_errors, stop.model_errors))


def _abort_not_observed(_facts: Facts, stop: RunStopped) -> bool:
    return stop.abort is not None and stop.abort.requested_at is not None and stop.abort.observed_at is None


def _negative_duration(facts: Facts, stop: RunStopped) -> bool:
    """It ended before it began: the clocks are wrong, and so is every time limit that they measured."""
    latest = stop.at + facts.policy.defaults.clock_skew
    began = facts.started_at is not None and facts.started_at > latest
    return began or (stop.started_at is not None and stop.started_at > latest)


TWO_TERMINALS = "two_terminals"
_FINISH_AND_RECEIPTS = FINISH | RECEIPTS
_CUT_BOUNDS = OUTPUT_BOUND | STEP_BOUND | TOKEN_BOUND | COST_BOUND
CONTRADICTIONS = (
    Contradiction(
        "stream_rejected",
        "the stream broke its protocol",
        EVERYTHING & ~FAILURE,
        _stream_rejected,
    ),
    Contradiction(
        "outcome_type_unknown",
        "the stream ended in a way that this version does not know",
        EVERYTHING & ~FAILURE,
        _outcome_type_unknown,
    ),
    Contradiction(
        "pending_tool_calls",
        "the finish is natural, yet calls are unanswered",
        FINISH,
        _pending_tool_calls,
    ),
    Contradiction(
        "limit_overrun",
        "more steps than an enforced step limit allows (one more with forced_wrapup)",
        STEP_BOUND | FINISH,
        _limit_overrun,
    ),
    Contradiction(
        "limit_not_reached",
        "a step, token or cost bound is claimed below its limit",
        OWN_BOUND,
        _limit_not_reached,
    ),
    Contradiction(
        "condition_not_fired",
        "the condition of the bound that is claimed says that it did not fire",
        OWN_BOUND,
        _condition_not_fired,
    ),
    Contradiction(
        "finish_unknown",
        "the finish reason says nothing",
        FINISH,
        _finish_unknown,
    ),
    Contradiction(
        "finish_mismatch",
        "the finish reason is not one of a finish",
        FINISH,
        _finish_mismatch,
    ),
    Contradiction(
        "unsafe_step_executed",
        "calls of a step that was cut off were executed",
        FINISH | _CUT_BOUNDS,
        _unsafe_step_executed,
    ),
    Contradiction(
        "effect_after_stop",
        "something happened after the stop",
        FINISH | GUARDRAIL | DENIAL | EXPIRY,
        _effect_after_stop,
    ),
    Contradiction(
        "duplicate_effect",
        "two effects on one subject",
        _FINISH_AND_RECEIPTS,
        _duplicate_effect,
    ),
    Contradiction(
        "approval_bypassed",
        "a gated call ran without a decision",
        _FINISH_AND_RECEIPTS | WAIT,
        _approval_bypassed,
    ),
    Contradiction(
        "approval_mismatch",
        "approved and never run, denied and yet run, or decided by a machine",
        _FINISH_AND_RECEIPTS,
        _approval_mismatch,
    ),
    Contradiction(
        "nested_disagreement",
        "it finished, yet it names an error that nothing recovered",
        FINISH,
        _nested_disagreement,
    ),
    Contradiction(
        "abort_not_observed",
        "an abort was asked for and never observed",
        FINISH | ABORT,
        _abort_not_observed,
    ),
    Contradiction(
        "negative_duration",
        "it ended before it began",
        TIME_BOUND,
        _negative_duration,
    ),
)


class Voided(NamedTuple):
    """What stands of the evidence: the bits that are gone, the code that took what the run needed, the other codes."""

    bits: int = 0
    reason: str | None = None
    others: tuple[str, ...] = ()


NOTHING_VOIDED = Voided()
_CHECKS = tuple((card, card.check) for card in CONTRADICTIONS)


def void(facts: Facts) -> Voided:
    """Hold the facts of an attempt against every card."""
    if facts.disputed:
        return Voided(EVERYTHING & ~WAIT, TWO_TERMINALS)
    stop = facts.stop
    if stop is None:
        return NOTHING_VOIDED
    seen = [card for card, check in _CHECKS if check(facts, stop)]
    if not seen:
        return NOTHING_VOIDED
    needed = NEEDED_BY[facts.cause]
    return _weigh(seen, needed, needed | (WAIT if _keeps_waiting(facts) else 0))


def _weigh(seen: list[Contradiction], own: int, needed: int) -> Voided:
    bits, reason, others = 0, None, []
    for card in seen:
        voids = card.voids or own
        bits |= voids
        if reason is None and voids & needed:
            reason = card.code
        else:
            others.append(card.code)
    return Voided(bits, reason, tuple(others))


def _keeps_waiting(facts: Facts) -> bool:
    """Whether it needs the evidence of a wait: it still waits, or would if the gated call had not run undecided."""
    keeps = (Status.OPEN, Status.DECIDED)
    return any(wait.status in keeps or (wait.executed and wait.decision is None) for wait in facts.waits)
