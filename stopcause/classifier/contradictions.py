"""Evidence that contradicts itself is voided, not averaged. One function a code, in the order in which codes are named.

Each card says what is seen and which evidence that voids. A rule that needs voided evidence does not match, and the run
falls through to UNCERTAIN with the code; where the run's own cause did not need it, the code is only a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stopcause.classifier.approvals import KEEPS_WAITING, NO, YES, Status, Wait
from stopcause.classifier.fold import Facts
from stopcause.receipts import vocabulary
from stopcause.receipts.model import Condition, RunStopped
from stopcause.receipts.vocabulary import Finish, LimitKind, StopCause

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
OWN_BOUND = None  # whichever bound the run's own cause claims

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
    """A card: the code, when it is seen, the fields that show it, what it voids (bits), and the check."""

    code: str
    seen_when: str
    shown_by: tuple[str, ...]
    voids: int | None
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
    claimed = facts.claimed or _counting_else(stop)
    counted = [(c.observed, c.limit) for c in claimed if c.limit is not None and c.observed is not None]
    if counted:
        return all(observed < limit for observed, limit in counted)
    if claimed and not facts.claimed:
        return False  # how far it came is not said, and the run's own steps do not tell
    limits, used = _limits_and_use(facts, stop)
    return bool(limits) and used is not None and used < min(limits)


def _counting_else(stop: RunStopped) -> tuple[Condition, ...]:
    """Bounds that fired and count something else than the run's steps: iterations of a loop in it.

    One without a limit counts nothing: a condition of the application's own, which takes no bound's place.
    """
    custom = [each for each in stop.conditions or () if each.kind is LimitKind.CUSTOM and each.fired]
    return tuple([each for each in custom if each.limit is not None])


def _limits_and_use(facts: Facts, stop: RunStopped) -> tuple[Sequence[float], float | None]:
    """Where no condition counted: the limits of the kind that is claimed, and what the receipt says was used.

    A later attempt is left out: its count says nothing about a limit over the whole run.
    """
    usage = stop.usage
    if facts.attempt > 1:
        return (), None
    if facts.cause is StopCause.STEP_LIMIT:
        return facts.step_limits, stop.steps
    if usage is None:
        return (), None
    if facts.cause is StopCause.COST_BUDGET:
        return _limits(stop, LimitKind.COST), usage.cost_usd
    known = usage.input_tokens is not None and usage.output_tokens is not None
    total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return _limits(stop, LimitKind.TOKENS), total if known else None


def _limits(stop: RunStopped, kind: LimitKind) -> list[float]:
    return [each.limit for each in stop.limits or () if each.kind is kind and each.limit]


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


def _duplicate_effect(facts: Facts, _stop: RunStopped | None = None) -> bool:
    return bool(facts.effects) and any(len(keys) > 1 for keys in facts.effects.values())


def _approval_bypassed(facts: Facts, _stop: RunStopped | None = None) -> bool:
    return bool(facts.waits) and any(wait.executed and wait.decision is None for wait in facts.waits)


def _approval_mismatch(facts: Facts, _stop: RunStopped | None = None) -> bool:
    finished = facts.cause in vocabulary.FINISHED
    return bool(facts.waits) and any(_mismatches(wait, finished=finished) for wait in facts.waits)


def _mismatches(wait: Wait, *, finished: bool) -> bool:
    by_machine = wait.decision is not None and (wait.actor or "").startswith(("bot:", "run:"))
    denied_yet_ran = wait.decision in NO and bool(wait.executed)
    dropped = finished and wait.decision in YES and wait.executed is False and wait.status is Status.PASSED
    return by_machine or denied_yet_ran or dropped


def _nested_disagreement(facts: Facts, stop: RunStopped) -> bool:
    filled = stop.error is not None and any(value is not None for value in vars(stop.error).values())
    if not filled or facts.cause not in vocabulary.FINISHED:
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
        ("stop_cause",),
        EVERYTHING & ~FAILURE,
        _stream_rejected,
    ),
    Contradiction(
        "outcome_type_unknown",
        "the stream ended in a way that this version does not know",
        ("stop_cause", "reason_code"),
        EVERYTHING & ~FAILURE,
        _outcome_type_unknown,
    ),
    Contradiction(
        "pending_tool_calls",
        "the finish is natural, yet calls are unanswered",
        ("stop_cause", "pending_tool_calls"),
        FINISH,
        _pending_tool_calls,
    ),
    Contradiction(
        "limit_overrun",
        "more steps than an enforced step limit allows (one more with forced_wrapup)",
        ("steps", "limits", "conditions"),
        STEP_BOUND | FINISH,
        _limit_overrun,
    ),
    Contradiction(
        "limit_not_reached",
        "a step, token or cost bound is claimed below its limit",
        ("stop_cause", "conditions", "limits", "steps", "usage"),
        OWN_BOUND,
        _limit_not_reached,
    ),
    Contradiction(
        "condition_not_fired",
        "the condition of the bound that is claimed says that it did not fire",
        ("stop_cause", "conditions"),
        OWN_BOUND,
        _condition_not_fired,
    ),
    Contradiction(
        "finish_unknown",
        "the finish reason says nothing",
        ("finish_reason",),
        FINISH,
        _finish_unknown,
    ),
    Contradiction(
        "finish_mismatch",
        "the finish reason is not one of a finish",
        ("stop_cause", "finish_reason"),
        FINISH,
        _finish_mismatch,
    ),
    Contradiction(
        "unsafe_step_executed",
        "calls of a step that was cut off were executed",
        ("unsafe_steps", "finish_reason", "tool_calls"),
        FINISH | _CUT_BOUNDS,
        _unsafe_step_executed,
    ),
    Contradiction(
        "effect_after_stop",
        "something happened after the stop",
        ("effects_after_stop", "run.progress"),
        FINISH | GUARDRAIL | DENIAL | EXPIRY,
        _effect_after_stop,
    ),
    Contradiction(
        "duplicate_effect",
        "two effects on one subject",
        ("outcomes",),
        _FINISH_AND_RECEIPTS,
        _duplicate_effect,
    ),
    Contradiction(
        "approval_bypassed",
        "a gated call ran without a decision",
        ("approvals",),
        _FINISH_AND_RECEIPTS | WAIT,
        _approval_bypassed,
    ),
    Contradiction(
        "approval_mismatch",
        "approved and never run, denied and yet run, or decided by a machine",
        ("approvals",),
        _FINISH_AND_RECEIPTS,
        _approval_mismatch,
    ),
    Contradiction(
        "nested_disagreement",
        "it finished, yet it names an error that nothing recovered",
        ("stop_cause", "error"),
        FINISH,
        _nested_disagreement,
    ),
    Contradiction(
        "abort_not_observed",
        "an abort was asked for and never observed",
        ("abort",),
        FINISH | ABORT,
        _abort_not_observed,
    ),
    Contradiction(
        "negative_duration",
        "it ended before it began",
        ("started_at", "at"),
        TIME_BOUND,
        _negative_duration,
    ),
)


_OF_ANY_RUN = {
    "duplicate_effect": _duplicate_effect,
    "approval_bypassed": _approval_bypassed,
    "approval_mismatch": _approval_mismatch,
}


class Voided(NamedTuple):
    """What stands of the evidence: the bits that are gone, the code that took what the run needed, the other codes."""

    bits: int = 0
    reason: str | None = None
    others: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()  # the fields that show the reason

    @property
    def codes(self) -> tuple[str, ...]:
        """Every code that was seen."""
        return (self.reason, *self.others) if self.reason else self.others


NOTHING_VOIDED = Voided()
_CHECKS = tuple((card, card.check) for card in CONTRADICTIONS)


def void(facts: Facts) -> Voided:
    """Hold the facts of an attempt against every card. What needs no receipt is looked for in open runs, too."""
    if facts.disputed:
        return Voided(EVERYTHING & ~WAIT, TWO_TERMINALS, shown_by=("stop_cause", "reason_code", "boundary"))
    stop = facts.stop
    if stop is not None:
        seen = [card for card, check in _CHECKS if check(facts, stop)]
    elif facts.waits or facts.effects:
        seen = [card for card in CONTRADICTIONS if card.code in _OF_ANY_RUN and _OF_ANY_RUN[card.code](facts)]
    else:
        return NOTHING_VOIDED
    return _weigh(seen, facts) if seen else NOTHING_VOIDED


def _weigh(seen: list[Contradiction], facts: Facts) -> Voided:
    own = NEEDED_BY[facts.cause]
    needed = own | _needed_by_waits(facts)
    taken = next((card for card in seen if (card.voids or own) & needed), None)
    bits = 0
    for card in seen:
        bits |= own if card.voids is OWN_BOUND else card.voids
    others = tuple(card.code for card in seen if card is not taken)
    return Voided(bits, taken and taken.code, others, taken.shown_by if taken else ())


def _needed_by_waits(facts: Facts) -> int:
    """What evidence the approvals of a run call for, beside what its cause does."""
    needed = 0
    for wait in facts.waits:
        if wait.status in KEEPS_WAITING or (wait.executed and wait.decision is None):
            needed |= WAIT
        if facts.cause in vocabulary.WAITING:
            needed |= _END_OF_WAIT.get(wait.status, 0)
            if wait.executed and wait.decision in NO:
                needed |= FINISH  # the gated call ran, so something finished
    return needed


_END_OF_WAIT = {Status.DENIED: DENIAL, Status.WITHDRAWN: DENIAL, Status.EXPIRED: EXPIRY, Status.OVER: EXPIRY}
