"""The door: records, a policy and a time in; verdicts out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from stopcause.classifier import contradictions, fold, rules
from stopcause.classifier.fold import Facts, Run
from stopcause.classifier.policy import Policy
from stopcause.classifier.rules import Match, Rule
from stopcause.classifier.verdict import CLASSIFIER_VERSION, Finding, Retry, Verdict, VerdictName
from stopcause.receipts import model
from stopcause.receipts.vocabulary import Boundary, StopCause

RUNNING = "running"
_WAITS = frozenset({VerdictName.WAITING, VerdictName.WAITING_UNROUTED})
_DO_NOT_REPEAT = frozenset({"duplicate_effect", "effect_after_stop"})


def judge_all(
    records: Iterable[model.Record | model.UnknownRecord], policy: Policy, now: datetime
) -> Iterator[Verdict]:
    """A verdict on the latest attempt of every run among the records."""
    runs = fold.group(records)
    resumers = resumers_by_run(runs.values())
    for run in runs.values():
        yield judge_run(run, policy, now, resumers.get(run.run_id, ()))


def judge_run(
    run: Run, policy: Policy, now: datetime, resumers: Sequence[Run] = (), attempt: int | None = None
) -> Verdict:
    """A verdict on one attempt of a run (the latest, where none is named)."""
    return judge(fold.facts_of(run, attempt or run.latest, policy, now, resumers))


def resumers_by_run(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Who says to take up whom."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        for resumed in dict.fromkeys(run.links()):
            found.setdefault(resumed, []).append(run)
    return found


def resumers_of(run: Run, runs: Iterable[Run]) -> list[Run]:
    """The runs that say that they take this one up."""
    return resumers_by_run(runs).get(run.run_id, [])


def judge(facts: Facts) -> Verdict:
    """The verdict on an attempt: the first rule that matches."""
    gone = contradictions.void(facts)
    if rules.is_running(facts):
        return _running(facts, gone)
    for rule in rules.RULES:
        match = rule.match(facts, gone)
        if match is not None:
            return _verdict(facts, gone, rule, match)
    raise AssertionError("the last rule always matches")


class Tried(NamedTuple):
    """A rule that was tried on the way to a verdict."""

    rule: Rule
    matched: bool


def trace(facts: Facts) -> tuple[Tried, ...]:
    """The rules in the order in which they were tried, up to the one that matched. For `explain`."""
    gone = contradictions.void(facts)
    tried: list[Tried] = []
    for rule in () if rules.is_running(facts) else rules.RULES:
        tried.append(Tried(rule, rule.match(facts, gone) is not None))
        if tried[-1].matched:
            break
    return tuple(tried)


def _running(facts: Facts, gone: contradictions.Voided) -> Verdict:
    moments = (facts.lease_ends,) if facts.lease_ends else ()
    match = Match(RUNNING, ("lease_s",), moments=moments, settled=False)
    return _fill(facts, match, None, RUNNING, "Nothing to do yet.", gone)


def _verdict(facts: Facts, gone: contradictions.Voided, rule: Rule, match: Match) -> Verdict:
    return _fill(facts, match, rule.verdict, rule.id, rule.action, gone)


def _fill(
    facts: Facts, match: Match, name: VerdictName | None, rule: str, action: str, gone: contradictions.Voided
) -> Verdict:
    agent, environment = facts.subject.agent, facts.subject.environment
    answered = match.reason == "answered"
    late = match.settled and _is_late_span(facts)
    moments = match.moments
    if late:
        moments = (*moments, facts.last_at + facts.policy.defaults.settle)
    if facts.findings and _is_ahead(facts):
        moments = (*moments, facts.last_at - facts.policy.defaults.clock_skew)
    return Verdict(
        run_id=facts.run_id,
        attempt=facts.attempt,
        thread_id=facts.thread_id,
        agent=agent,
        environment=environment,
        verdict=name,
        reason=str(match.reason),
        rule=rule,
        stop_cause=facts.cause,
        evidence=match.evidence,
        findings=_findings(facts, match, gone),
        missing=match.missing,
        action=_ANSWERED if answered else action,
        retry=_retry(facts, name, gone, answered=answered),
        group=_group(name, match.reason, facts.cause, agent, environment, detail_of(facts, name)),
        settled=match.settled and not late,
        judge_again_at=min((at for at in moments if at > facts.now), default=None) if moments else None,
        resolved_by=_resolved_by(facts) if answered else None,
        policy_version=facts.policy.version,
        policy_digest=facts.policy.digest,
        classifier_version=CLASSIFIER_VERSION,
        as_of=facts.now,
        record_ids=facts.record_ids,
    )


_ANSWERED = "Nothing to do: another run went on with it."


def _resolved_by(facts: Facts) -> str | None:
    return next((wait.answered_by for wait in facts.waits if wait.answered_by), None)


def _is_ahead(facts: Facts) -> bool:
    return any(finding.code == "clock_ahead" for finding in facts.findings)


def _is_late_span(facts: Facts) -> bool:
    """A run that is only known from spans may still get late ones."""
    spans = facts.stop is not None and facts.stop.boundary is Boundary.SPAN
    return spans and facts.now < facts.last_at + facts.policy.defaults.settle


def _retry(facts: Facts, name: VerdictName | None, gone: contradictions.Voided, *, answered: bool) -> Retry:
    if name is None or name is VerdictName.VERIFIED_COMPLETE or answered:
        return Retry.NO
    if name in _WAITS:
        return Retry.RESUME
    if gone.bits and not _DO_NOT_REPEAT.isdisjoint(gone.codes):
        return Retry.NO
    if facts.cause is StopCause.QUOTA and name is not VerdictName.UNCERTAIN:
        return Retry.LATER
    # An earlier attempt may have called tools, whatever this one says of itself.
    unharmed = facts.stop is not None and facts.stop.tool_calls == 0 and facts.attempt == 1 and not gone.bits
    return Retry.SAFE if unharmed else Retry.CHECK_FIRST


def _findings(facts: Facts, match: Match, gone: contradictions.Voided) -> tuple[Finding, ...]:
    found = match.findings + facts.findings
    if gone.bits:
        found += tuple(Finding(code) for code in gone.codes if code != match.reason)
    if facts.waits:
        overruled = (wait for wait in facts.waits if wait.overruled)
        found += tuple(Finding("decision_overruled", f"approval:{wait.approval_id}") for wait in overruled)
    if facts.stop is not None:
        found += _counted(facts.stop)
    return tuple(dict.fromkeys(found)) if found else ()


def _counted(stop: model.RunStopped) -> tuple[Finding, ...]:
    """What a receipt counts beside its cause."""
    found: list[Finding] = []
    if stop.tool_errors and stop.tool_errors.recovered:
        found.append(Finding("recovered_tool_errors", str(stop.tool_errors.recovered)))
    if stop.model_errors and stop.model_errors.recovered:
        found.append(Finding("recovered_model_errors", str(stop.model_errors.recovered)))
    if stop.children and stop.children.failed:
        found.append(Finding("children_failed", str(stop.children.failed)))
    if stop.plan_items and stop.plan_items.open:
        found.append(Finding("plan_items_open", str(stop.plan_items.open)))
    if stop.forced_wrapup:
        found.append(Finding("forced_wrapup"))
    return tuple(found)


def detail_of(facts: Facts, name: VerdictName | None) -> str:
    """What tells groups of one reason apart: failed tool, error type, condition, contract, or the hook's version."""
    stop = facts.stop
    if name is VerdictName.UNCERTAIN:
        seen = facts.identity
        return f"{seen.adapter or ''}/{seen.adapter_version or ''}" if seen else ""
    if name is VerdictName.FALSE_COMPLETE:
        return facts.contract_name or ""
    if stop is None:
        return ""
    if stop.error is not None and name is VerdictName.FAILED:
        return stop.error.tool or stop.error.type or ""
    return next((each.name for each in stop.conditions or () if each.fired), "")


@lru_cache(maxsize=8192)
def _group(*parts: str | None) -> str:
    """The fingerprint: runs that went wrong in the same way share it."""
    text = "\x1f".join(part or "" for part in parts)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
