"""A verdict and the facts that it rests on, as the row that the store keeps of it."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter

from stopcause.classifier.engine import detail_of
from stopcause.classifier.fold import Facts
from stopcause.classifier.verdict import Finding, Verdict
from stopcause.receipts import model
from stopcause.store.rows import VerdictRow

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


def verdict_row(facts: Facts, verdict: Verdict, opened_at: datetime) -> VerdictRow:
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


def _finding(finding: Finding) -> str:
    return finding.code if finding.where is None else f"{finding.code}={finding.where}"
