"""What an operator should believe of a run: the words, and the value that carries them. No logic is here."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from stopcause.receipts.vocabulary import StopCause, Word

CLASSIFIER_VERSION = "3"


class VerdictName(Word):
    """The eight verdicts, in the order in which they are tried."""

    FAILED = "FAILED", "the loop stopped because of a failure that nothing recovered"
    WAITING = "WAITING", "it waits, and somebody who can answer knows"
    WAITING_UNROUTED = "WAITING_UNROUTED", "it waits, and nobody is sure to answer"
    STUCK = "STUCK", "it used its time without getting anywhere"
    BOUNDED_STOP = "BOUNDED_STOP", "a bound, a guardrail, a denial or an abort ended it"
    VERIFIED_COMPLETE = "VERIFIED_COMPLETE", "it finished, and the destination vouches for the work"
    FALSE_COMPLETE = "FALSE_COMPLETE", "it finished, and nobody vouches for the work"
    UNCERTAIN = "UNCERTAIN", "the evidence contradicts itself, or there is none"


class Missing(Word):
    """What a wait lacks, in the order in which it is named."""

    OWNER = "owner", "nobody is named to answer"
    DEADLINE = "deadline", "no time is set by which to answer"
    OVERDUE = "overdue", "the time to answer is over"
    RESUME_TOKEN = "resume_token", "nothing names the paused state"
    RESUMABLE_TARGET = "resumable_target", "the paused state is gone"
    DELIVERY = "delivery", "the question did not reach its owner, or the answer did not reach the run"


class Retry(Word):
    """Whether to start it again."""

    RESUME = "resume", "answer it; do not start it again"
    NO = "no", "do not: there is nothing to gain, or something to break"
    LATER = "later", "when the quota is back"
    SAFE = "safe", "nothing was called, so nothing can happen twice"
    CHECK_FIRST = "check_first", "look at the destination first: something may already be there"


class Finding(NamedTuple):
    """A fact worth saying that does not by itself decide."""

    code: str
    where: str | None = None


class Verdict(NamedTuple):
    """A verdict on one attempt of a run, and everything that it points at. `verdict` is None while it runs."""

    run_id: str
    attempt: int
    thread_id: str | None
    agent: str | None
    environment: str | None
    verdict: VerdictName | None
    reason: str
    rule: str
    stop_cause: StopCause | None
    evidence: tuple[str, ...]
    findings: tuple[Finding, ...]
    missing: tuple[Missing, ...]
    action: str
    retry: Retry
    group: str
    settled: bool
    judge_again_at: datetime | None
    resolved_by: str | None
    policy_version: str
    policy_digest: str
    classifier_version: str
    as_of: datetime
    record_ids: tuple[str, ...]
