"""A verdict and the facts that it rests on, as the row that the store keeps of it."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter

from stopcause.classifier.approvals import KEEPS_WAITING, Status, Wait
from stopcause.classifier.engine import detail_of
from stopcause.classifier.fold import Facts
from stopcause.classifier.verdict import Finding, Verdict
from stopcause.receipts import model
from stopcause.receipts.vocabulary import LimitKind, Scope
from stopcause.store.rows import StoredWait, VerdictRow

# Fields that a row takes over as they are, in its order. Picked all at once: there is a row for every run that ends.
_OF_VERDICT = (
    *("thread_id", "agent", "environment", "verdict", "reason", "rule", "stop_cause", "evidence", "missing", "retry"),
    *("group", "settled", "judge_again_at", "resolved_by"),
    *("policy_version", "policy_digest", "classifier_version", "as_of"),
)
_OF_IDENTITY = (
    *("parent_run_id", "resumes_run_id", "agent_version", "service", "model", "provider"),
    *("framework", "framework_version", "adapter", "adapter_version"),
)
_OF_STOP = ("duration_s", "steps", "tool_calls")  # the source's own clock, never a difference of two
_OF_USAGE = ("input_tokens", "output_tokens", "cost_usd")
_TIMED_OUT = (Status.EXPIRED, Status.OVER)
_said = attrgetter(*_OF_VERDICT)
_identity_of = attrgetter(*_OF_IDENTITY)
_counted = attrgetter(*_OF_STOP)
_used = attrgetter(*_OF_USAGE)
_NOBODY = (None,) * len(_OF_IDENTITY)
_NOT_STOPPED = (None,) * (len(_OF_STOP) + len(_OF_USAGE))
_NOTHING_USED = (None,) * len(_OF_USAGE)
_NOT_JUDGED = frozenset({"opened_at", "revision", "sign", "as_of"})
_judged = attrgetter(*(name for name in VerdictRow._fields if name not in _NOT_JUDGED))


def same_verdict(one: VerdictRow, other: VerdictRow) -> bool:
    """Whether two rows say the same of an attempt. When that was judged makes no difference."""
    return bool(_judged(one) == _judged(other))


def verdict_row(facts: Facts, verdict: Verdict, opened_at: datetime, *, is_latest: bool = True) -> VerdictRow:
    """The first revision of a verdict on the attempt that `facts` tell of; `opened_at` is its run's."""
    ended = facts.stop or facts.died
    values = (
        *(verdict.run_id, verdict.attempt, opened_at, 1, 1),
        *_said(verdict),
        tuple(map(_finding, verdict.findings)) if verdict.findings else (),
        detail_of(facts, verdict.verdict) or None,
        facts.contract_name,
        *_identity(facts),
        *(facts.started_at, ended.at if ended else None, facts.last_at),
        min(facts.step_limits, default=None),
        *(_measured(facts.stop) if facts.stop else _NOT_STOPPED),
        *(is_latest, facts.entry.owner, facts.entry.stage, facts.entry.on_bound is not None),
        *_limits(facts),
        tuple(map(_stored_wait, facts.waits)) if facts.waits else (),
    )
    return VerdictRow._make(values)


def _measured(stop: model.RunStopped) -> tuple[float | None, ...]:
    return (*_counted(stop), *(_used(stop.usage) if stop.usage else _NOTHING_USED))


def _identity(facts: Facts) -> tuple[str | None, ...]:
    """Who it is: as the receipt says, which stands alone, else as the start said."""
    only = facts.stop or facts.start
    said: tuple[str | None, ...] = _identity_of(only) if only else _NOBODY
    if facts.start is None or only is facts.start or None not in said:
        return said
    return tuple([mine or other for mine, other in zip(said, _identity_of(facts.start), strict=True)])


def _limits(facts: Facts) -> tuple[float | None, ...]:
    """The least token, cost and time limit of the attempt; a thread's is not held against what one run used."""
    least: dict[LimitKind, float] = {}
    for bound in facts.bounds:
        of_thread = isinstance(bound, model.Limit) and bound.scope is Scope.THREAD
        if bound.limit is not None and not of_thread:
            least[bound.kind] = min(bound.limit, least.get(bound.kind, bound.limit))
    return tuple([least.get(kind) for kind in (LimitKind.TOKENS, LimitKind.COST, LimitKind.TIME)])


def _stored_wait(wait: Wait) -> StoredWait:
    is_open = wait.status in KEEPS_WAITING
    over = wait.expires_at if wait.status in _TIMED_OUT else None
    return StoredWait(
        approval_id=wait.approval_id,
        kind=wait.kind,
        tool=wait.tool,
        owner=wait.owner,
        since=wait.requested_at,
        due=None if wait.status is Status.DECIDED else wait.deadline,  # that was for the answer, which is there
        expires_at=wait.expires_at,
        ended_at=None if is_open else wait.decided_at or over,
        resolution=None if is_open else wait.status.value,
        missing=tuple(wait.missing),
    )


def _finding(finding: Finding) -> str:
    return finding.code if finding.where is None else f"{finding.code}={finding.where}"
