"""A wait whose every approval is decided, and that no run has resumed: what is said of it, and what to do.

The card of a wait speaks of an answer that is not there yet. Here it is there; only the way back to the run is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from stopcause.classifier.approvals import KEEPS_WAITING, Status, Wait
from stopcause.classifier.fold import Facts
from stopcause.classifier.verdict import Missing, Verdict, VerdictName
from stopcause.receipts.vocabulary import Decision
from stopcause.render.pen import age, count, whole_or_tail

_ID_WIDTH = 30
_WAITS = (VerdictName.WAITING, VerdictName.WAITING_UNROUTED)
_ASKED = "the question did not reach its owner"
_ANSWER = "the answer did not reach the run"


def unresumed(facts: Facts, verdict: Verdict) -> Sequence[Wait]:
    """The approvals that keep a run waiting, where all of them are decided; none where one is still open."""
    kept = [wait for wait in facts.waits if wait.status in KEEPS_WAITING] if verdict.verdict in _WAITS else []
    return kept if all(wait.status is Status.DECIDED for wait in kept) else []


def unresumed_sentence(waits: Sequence[Wait], facts: Facts) -> str:
    """Who answered it and when, and that nobody has taken that up."""
    last = max(waits, key=lambda wait: wait.decided_at or facts.last_at)
    what = f"Approval {whole_or_tail(last.approval_id or '-', _ID_WIDTH)} was"
    if len(waits) > 1:
        what = f"All {count(len(waits), 'approval')} were decided; the last was"
    done = "approved with edits" if last.decision is Decision.EDITED else str(last.decision)
    by = f" by {last.actor}" if last.actor else ""
    ago = f" {age(facts.now - last.decided_at)} ago" if last.decided_at else ""
    return f"{what} {done}{by}{ago}, and no run has resumed it."


def resume_action(waits: Sequence[Wait], facts: Facts) -> str:
    """How to go on: where it resumes, or what there is to find that by."""
    thread = f", thread {facts.thread_id}" if facts.thread_id else ""
    if any(Missing.RESUMABLE_TARGET in wait.missing for wait in waits):
        return f"Its paused state is gone: bring the answer to a person who can finish the work{thread}."
    tokens = list(dict.fromkeys(wait.resume_token for wait in waits if wait.resume_token))
    if any(not wait.resume_token for wait in waits):
        return f"Resume it with the answer; find its paused state first, for it has no resume token{thread}."
    return f"Resume it with the answer: resume token {', '.join(tokens)}{thread}."


def delivery_words(facts: Facts) -> str:
    """What was not delivered: a question that is still open, or an answer that is there."""
    lost = [wait for wait in facts.waits if Missing.DELIVERY in wait.missing]
    said = [_ASKED] * any(map(_is_open, lost)) + [_ANSWER] * any(not _is_open(wait) for wait in lost)
    return ", and ".join(said)


def _is_open(wait: Wait) -> bool:
    return wait.status is Status.OPEN
