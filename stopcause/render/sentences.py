"""One sentence for each reason, and one for each answer to "may I retry?". The cards say the rest.

A sentence says what the reason means for the person who reads it. The list is closed: a test walks the cards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stopcause.classifier import rules
from stopcause.classifier.fold import Facts
from stopcause.classifier.verdict import Missing, Retry, Verdict, VerdictName
from stopcause.receipts.vocabulary import StopCause
from stopcause.render.answered import delivery_words, unresumed
from stopcause.render.views import Explained

_ROUTED = "who answers, until when and where it resumes are known."

REASONS: Final[Mapping[str, str]] = {
    # FAILED
    "tool_failure": "A tool failed, nothing recovered it, and that ended the loop.",
    "model_failure": "The model or its provider failed, and that ended the loop.",
    "content_filter": "The provider's filter cut the answer; what came before it may be half a thing.",
    "refusal": "The model declined the task.",
    "malformed_call": "The model's tool call could not be read, and that ended the loop.",
    "quota": "A quota or rate limit ended it; the work itself was not at fault.",
    "host_error": "The program around the agent raised; the loop never came to an end of its own.",
    "self_reported_failure": "The agent itself says that it failed; a claim against oneself is believed.",
    "process_lost": "The process is gone; nobody will finish this run.",
    "input_rejected": "The input was refused before any step.",
    # WAITING
    "tool_call": f"It waits for a yes to a tool call; {_ROUTED}",
    "input_required": f"It waits for an answer; {_ROUTED}",
    "confirmation": f"It waits for a confirmation; {_ROUTED}",
    "external": f"It waits for another system's result; {_ROUTED}",
    "sign_in": f"It waits for a sign-in; {_ROUTED}",
    "answered": "It stopped to wait, it was answered, and another run went on with it.",
    # WAITING_UNROUTED
    "owner": "It waits, and nobody is named to answer.",
    "deadline": "It waits, and no time is set by which to answer.",
    "overdue": "It waits, and the time to answer is over.",
    "resume_token": "It waits, and nothing names the paused state that an answer would resume.",
    "resumable_target": "It waits, and the paused state is gone: an answer has nowhere to go.",
    "delivery": "It waits: the question did not reach its owner, or the answer did not reach the run.",
    # STUCK
    "lease_expired": "It has said nothing for longer than its lease, and nothing ended it.",
    "loop_guard": "A detector saw it repeat itself and ended it.",
    "retry_storm": "Retries went on and on without getting anywhere.",
    # BOUNDED_STOP
    "step_limit": "The step limit ended it; what is there is as far as it got.",
    "token_budget": "The token budget ended it; what is there is as far as it got.",
    "cost_budget": "The cost budget ended it; what is there is as far as it got.",
    "output_cap": "The model's output limit cut the answer off; the end of it is missing.",
    "context_limit": "The context window was full; what is there is as far as it got.",
    "server_tool_limit": "The provider paused its own tool loop, and nobody continued it.",
    "guardrail": "A guardrail of the operator's ended it, as it is meant to.",
    "approval_denied": "It asked, the answer was no (or it was given up), and that ended it.",
    "user_abort": "The user stopped it, and the loop obeyed.",
    "caller_abort": "The calling program cancelled it, and the loop obeyed.",
    "platform_abort": "The platform stopped it on purpose, and the loop obeyed.",
    # VERIFIED_COMPLETE
    "receipt": "The loop ended, and somebody independent saw the work at its destination.",
    # FALSE_COMPLETE
    "open_children": "It says that it is done, and runs that it started are still open.",
    "denied": "It went on after a no and finished; nothing shows that the work was done another way.",
    "receipt_refuted": "Somebody looked at the destination, and the work is not there.",
    "receipt_stale": "The receipt is older than the run, or what it shows was there before: it proves nothing new.",
    "receipt_weak": "There is a receipt, and it proves less than the contract asks for.",
    "self_claim_only": "Only the run itself vouches for the work; that is a claim, not a proof.",
    "empty_output": "It ended with nothing to show, and nobody vouches for the work.",
    "receipt_pending": "No receipt from outside the run yet; one may still come.",
    "receipt_missing": "No receipt from outside the run; finishing is a claim, not a proof.",
    "no_contract": "Nobody said what must be true when it is done, and nobody vouches for the work.",
    # UNCERTAIN
    "two_terminals": "Two records that weigh the same disagree on how it ended.",
    "stream_rejected": "The stream broke its protocol; nothing that it said can be relied on.",
    "outcome_type_unknown": "The stream ended in a way that this version does not know.",
    "pending_tool_calls": "The finish looks natural, yet tool calls were left unanswered.",
    "limit_overrun": "More steps than its limit allows: the count and the limit do not belong together.",
    "limit_not_reached": "A bound is claimed, and its own numbers are below the limit.",
    "condition_not_fired": "A bound is claimed, and its own condition says that it did not fire.",
    "finish_unknown": "The model's finish reason says nothing, so the finish cannot be believed.",
    "finish_mismatch": "The model's finish reason is not that of a finish.",
    "unsafe_step_executed": "Calls of a step that was cut off were executed; their arguments may be half.",
    "effect_after_stop": "Something happened after the stop: the run was not over when it said so.",
    "duplicate_effect": "The same thing was done twice at the destination.",
    "approval_bypassed": "A call that needed a decision ran without one.",
    "approval_mismatch": "The decision and what ran do not agree, or a machine made the decision.",
    "nested_disagreement": "It finished, and it names an error that nothing recovered.",
    "abort_not_observed": "An abort was asked for, and nothing shows that the loop obeyed.",
    "negative_duration": "It ended before it began: the clocks are wrong, and so is any time limit.",
    "run_open": "It began and never ended; no lease says how long to wait for more.",
    "cause_missing": "No cause was recorded for its stop.",
    "stream_truncated": "The stream ended without its last event; nobody knows how the run ended.",
    "running": "It runs, and its lease is valid.",
}

# A word that means another thing under another verdict.
_UNDER: Final[Mapping[tuple[VerdictName, str], str]] = {
    (VerdictName.STUCK, "time_limit"): "Time ran out, and nothing useful had happened for a while.",
    (VerdictName.BOUNDED_STOP, "time_limit"): "The time limit ended it while it was getting somewhere.",
    (VerdictName.STUCK, "approval_expired"): "The approval that it waits for ran out, and nobody handled that.",
    (VerdictName.BOUNDED_STOP, "approval_expired"): "The approval ran out, that was handled, and it ended the run.",
    (VerdictName.FAILED, "guardrail"): "A guardrail ended it, and the policy counts that as a failure.",
    (VerdictName.FAILED, "output_cap"): "The output limit cut the answer off, and the policy counts that as a failure.",
    (VerdictName.BOUNDED_STOP, "quota"): "A quota or rate limit ended it, and the policy counts that as a bound.",
    (VerdictName.BOUNDED_STOP, "refusal"): "The model declined the task, and the policy counts that as a bound.",
    (
        VerdictName.BOUNDED_STOP,
        "content_filter",
    ): "The provider's filter cut the answer, and the policy counts that as a bound.",
}


def reason_sentence(name: VerdictName | None, reason: str, cause: str | None = None) -> str:
    """What a reason means, under its verdict and, where that makes a difference, after that stop cause.

    Raises:
        KeyError: A word that no card has.
    """
    if reason == "receipt_missing" and cause == StopCause.EXPLICIT_DONE:
        return "No receipt from outside the run; calling done is a claim, not a proof."
    return (name and _UNDER.get((name, reason))) or REASONS[reason]


def why_sentence(it: Explained) -> str:
    """What the reason means for this run, where its own facts say which of two things it is."""
    verdict, facts = it.verdict, it.facts
    if verdict.reason == "cause_missing" and ("vocabulary_new", "stop_cause") in verdict.findings:
        return "Its stop cause is no word of this version's list, so it is read as unknown."
    if verdict.reason == "run_open" and facts.start is None:
        return "Only later facts were recorded of it: no start, and no stop."
    if verdict.reason == Missing.DELIVERY:
        return f"It waits: {delivery_words(facts)}."
    return reason_sentence(verdict.verdict, verdict.reason, facts.cause)


def short_action(action: str) -> str:
    """The first half of a card's action: what fits beside other things on a line."""
    head = action
    for end in (";", ", then"):
        head = head.partition(end)[0]
    return head.rstrip(".") + "."


ACTIONS: Final[Mapping[str, str]] = {rule.id: rule.action for rule in rules.RULES}
NO_ACTION = "Nothing to do yet."


def action_of(rule_id: str) -> str:
    """The action of a rule's card, for rows that only name the rule."""
    return ACTIONS.get(rule_id, NO_ACTION)


def retry_sentence(facts: Facts, verdict: Verdict) -> str:
    """Why the answer to "may I retry?" is what it is, from this run's own facts."""
    if verdict.retry is Retry.CHECK_FIRST:
        return f"{_calls(facts)}; look at the destination before it runs again."
    if verdict.retry is Retry.SAFE:
        return "no tool was called, so nothing can happen twice."
    if verdict.retry is Retry.LATER:
        return "when the quota is back."
    if verdict.retry is Retry.RESUME:
        if unresumed(facts, verdict):
            return "resume it with the answer; do not start it again."
        return "answer it; a second start would ask again."
    return _why_not(verdict)


def _calls(facts: Facts) -> str:
    calls = facts.stop.tool_calls if facts.stop else None
    if calls == 0:
        return "what it did is contradicted"
    if calls is None:
        return "how many tools ran is not known"
    return "1 tool call ran" if calls == 1 else f"{calls} tool calls ran"


def _why_not(verdict: Verdict) -> str:
    if verdict.verdict is None:
        return "it still runs."
    if verdict.verdict is VerdictName.VERIFIED_COMPLETE:
        return "the work is there; a second run could do it twice."
    if verdict.reason == "answered":
        return "another run went on with it."
    return "there is an effect too many already; another run could add one."
