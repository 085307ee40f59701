"""A verdict and the facts that it rests on, as the row that the store keeps of it."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter

from stopcause.classifier.engine import _detail as detail_of
from stopcause.classifier.fold import Facts
from stopcause.classifier.verdict import Finding, Verdict
from stopcause.receipts import model
from stopcause.store.rows import VerdictRow

_NO_USAGE = model.Usage()
_IDENTITY = (
    *("parent_run_id", "resumes_run_id", "agent_version", "service", "model", "provider"),
    *("framework", "framework_version", "adapter", "adapter_version"),
)
_identity_of = attrgetter(*_IDENTITY)
_NOBODY = (None,) * len(_IDENTITY)
_NOT_JUDGED = frozenset({"opened_at", "revision", "sign", "as_of"})
_judged = attrgetter(*(name for name in VerdictRow._fields if name not in _NOT_JUDGED))


def same_verdict(one: VerdictRow, other: VerdictRow) -> bool:
    """Whether two rows say the same of an attempt. When that was judged makes no difference."""
    return bool(_judged(one) == _judged(other))


def verdict_row(facts: Facts, verdict: Verdict, opened_at: datetime) -> VerdictRow:
    """The first revision of a verdict on the attempt that `facts` tell of; `opened_at` is its run's."""
    stop = facts.stop
    usage = (stop.usage if stop else None) or _NO_USAGE
    parent, resumes, agent_version, service, model_name, provider, framework, *versions = _identity(facts)
    ended = stop or facts.died
    return VerdictRow(
        run_id=verdict.run_id,
        attempt=verdict.attempt,
        opened_at=opened_at,
        revision=1,
        sign=1,
        thread_id=verdict.thread_id,
        parent_run_id=parent,
        resumes_run_id=resumes,
        agent=verdict.agent,
        agent_version=agent_version,
        service=service,
        environment=verdict.environment,
        model=model_name,
        provider=provider,
        framework=framework,
        framework_version=versions[0],
        adapter=versions[1],
        adapter_version=versions[2],
        contract=facts.contract_name,
        verdict=verdict.verdict and str(verdict.verdict),
        reason=verdict.reason,
        rule=verdict.rule,
        stop_cause=verdict.stop_cause and str(verdict.stop_cause),
        detail=detail_of(facts, verdict.verdict) or None,
        evidence=verdict.evidence,
        findings=tuple(map(_finding, verdict.findings)) if verdict.findings else (),
        missing=tuple(map(str, verdict.missing)) if verdict.missing else (),
        retry=str(verdict.retry),
        fingerprint=verdict.group,
        settled=verdict.settled,
        judge_again_at=verdict.judge_again_at,
        resolved_by=verdict.resolved_by,
        policy_version=verdict.policy_version,
        policy_digest=verdict.policy_digest,
        classifier_version=verdict.classifier_version,
        as_of=verdict.as_of,
        started_at=facts.started_at,
        stopped_at=ended.at if ended else None,
        last_at=facts.last_at,
        duration_s=stop.duration_s if stop else None,  # the source's own clock, never a difference of two
        steps=stop.steps if stop else None,
        step_limit=min(facts.step_limits, default=None),
        tool_calls=stop.tool_calls if stop else None,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
    )


def _identity(facts: Facts) -> tuple[str | None, ...]:
    """Who it is: as the receipt says, which stands alone, else as the start said."""
    only = facts.stop or facts.start
    said: tuple[str | None, ...] = _identity_of(only) if only else _NOBODY
    if facts.start is None or only is facts.start or None not in said:
        return said
    return tuple(mine or other for mine, other in zip(said, _identity_of(facts.start), strict=True))


def _finding(finding: Finding) -> str:
    return finding.code if finding.where is None else f"{finding.code}={finding.where}"
