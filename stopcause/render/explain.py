"""One run, explained: a good incident note. What it is, why, why not otherwise, what was seen, what to do.

As a screen of 80 columns, and as the few lines of Markdown that fit an incident channel.
"""

from __future__ import annotations

from datetime import datetime

from stopcause.classifier import rules
from stopcause.classifier.contradictions import void
from stopcause.classifier.fold import Facts
from stopcause.classifier.policy import DEFAULT_CONTRACT
from stopcause.classifier.verdict import Finding, Missing, VerdictName
from stopcause.receipts import vocabulary
from stopcause.receipts.model import Usage
from stopcause.receipts.vocabulary import LimitKind
from stopcause.render import pen as hand
from stopcause.render import seen, sentences, why
from stopcause.render.answered import delivery_words, resume_action, unresumed, unresumed_sentence
from stopcause.render.attention import mark_words, said_words
from stopcause.render.pen import WIDTH, Pen, age, count, cut, fit
from stopcause.render.views import Difference, Explained, GroupNote

_INDENT = 6
_UNPROVEN = frozenset({"receipt_missing", "receipt_pending", "receipt_stale", "receipt_weak", "self_claim_only"})


def explain_screen(it: Explained, pen: Pen) -> list[str]:
    """The whole note as lines."""
    blocks = (
        _head(it, pen),
        _why(it),
        _rules(it, pen),
        _evidence(it),
        _next(it),
        _history(it, pen),
    )
    lines: list[str] = []
    for block in blocks:
        lines += [*block, ""] if block else []
    return lines[:-1]


# What it is -----------------------------------------------------------------------------------------------------------


def _head(it: Explained, pen: Pen) -> list[str]:
    verdict, policy = it.verdict, it.facts.policy
    rule = f"rule {_number(verdict.rule)} of {len(rules.RULES)}, " if verdict.verdict else ""
    right = cut(f"{rule}policy {policy.id} {policy.version}", WIDTH // 2)
    left = fit(verdict.reason, WIDTH - 21 - hand.cells(right))
    title = f"{pen.verdict(verdict.verdict, 19)}  {pen.bold(left)}{right}"
    return [title, cut(_who(it), WIDTH), cut(_numbers(it, pen), WIDTH), *_kin(it)]


def _number(rule_id: str) -> int:
    return next((number for number, rule in enumerate(rules.RULES, 1) if rule.id == rule_id), 0)


def _who(it: Explained) -> str:
    identity, verdict = it.facts.identity, it.verdict
    version = identity.agent_version if identity else None
    parts = [
        f"run {hand.whole_or_tail(verdict.run_id, 40)}",
        f"attempt {verdict.attempt}",
        " ".join(part for part in (verdict.agent, version) if part),
        verdict.environment or "",
        f"model {identity.model}" if identity and identity.model else "",
    ]
    return ", ".join(part for part in parts if part)


def _kin(it: Explained) -> list[str]:
    """The runs that it belongs to, by names that `explain` takes."""
    identity = it.facts.identity
    if identity is None:
        return []
    others = (
        ("started by run", identity.parent_run_id),
        ("resumes run", identity.resumes_run_id),
        ("resumed by run", it.verdict.resolved_by),
    )
    said = ", ".join(f"{how} {hand.whole_or_tail(run_id, 40)}" for how, run_id in others if run_id)
    return [cut(said, WIDTH)] if said else []


def _numbers(it: Explained, pen: Pen) -> str:
    stop = it.facts.stop
    parts = [pen.time(it.facts.started_at or it.facts.last_at, seconds=True)]
    if stop is not None:
        duration = stop.duration_s
        if duration is None and it.facts.started_at is not None:
            duration = (stop.at - it.facts.started_at).total_seconds()
        parts += [
            _seconds(duration),
            _steps(it.facts),
            _calls(stop.tool_calls),
            _cost(stop.usage),
        ]
    return ", ".join(part for part in parts if part)


def _seconds(duration: float | None) -> str:
    if duration is None or duration < 0:
        return ""
    return f"{duration:.3g} s" if duration < 100 else f"{duration:.0f} s"  # noqa: PLR2004 - three digits are enough


def _steps(facts: Facts) -> str:
    stop = facts.stop
    if stop is None or stop.steps is None:
        return ""
    limits = stop.limits or (facts.start.limits if facts.start else None) or ()
    set_before = (each.limit for each in limits if each.kind is LimitKind.STEPS)
    asked = (each.limit for each in stop.conditions or () if each.kind is LimitKind.STEPS)
    limit = next((each for each in (*set_before, *asked) if each), None)
    return f"{stop.steps} of {count(int(limit), 'step')}" if limit else count(stop.steps, "step")


def _calls(calls: int | None) -> str:
    return "" if calls is None else count(calls, "tool call")


def _cost(usage: Usage | None) -> str:
    return "" if usage is None or usage.cost_usd is None else f"USD {usage.cost_usd:.2f}"


# Why ------------------------------------------------------------------------------------------------------------------


def _why(it: Explained) -> list[str]:
    return hand.paragraph("Why", _why_text(it), _INDENT)


def _why_text(it: Explained) -> str:
    """Who said what, where somebody did; else what the reason means."""
    answered = unresumed(it.facts, it.verdict)
    said = unresumed_sentence(answered, it.facts) if answered else _proof(it) or sentences.why_sentence(it)
    return f"{_finish(it)} {said}".lstrip()


def _finish(it: Explained) -> str:
    """How the loop ended, where the verdict is about what the end is worth."""
    if it.verdict.verdict is not VerdictName.FALSE_COMPLETE and it.verdict.verdict is not VerdictName.VERIFIED_COMPLETE:
        return ""
    ways = {
        vocabulary.StopCause.NATURAL: "The loop ended by itself.",
        vocabulary.StopCause.EXPLICIT_DONE: "The agent called done.",
    }
    return ways.get(it.facts.cause, "") if it.facts.cause else ""


def _proof(it: Explained) -> str:
    """Who said what of the contract, where somebody did."""
    if it.verdict.reason not in ("receipt_refuted", "receipt"):
        return ""
    name = next(iter(it.facts.proof.evidence), "").removeprefix("outcome:")
    found = [look for look in seen.looks(it) if look.outcome.outcome_id == name]
    if not found or it.facts.stop is None:
        return ""
    outcome, at, _where = found[-1]
    issuer = f"{outcome.issuer.type}:{outcome.issuer.id or '-'}" if outcome.issuer else "nobody named"
    contract = f"contract {it.facts.contract_name}" if it.facts.contract_name else "the work"
    said = "is refuted by" if it.verdict.reason == "receipt_refuted" else "is confirmed by"
    return f"{contract[0].upper()}{contract[1:]} {said} {issuer}{_when(at, it.facts.stop.at, outcome.strength)}."


def _when(at: datetime, stopped_at: datetime, strength: str | None) -> str:
    how = f", {strength}" if strength else ""
    span = at - stopped_at
    return f"{how} {age(abs(span))} {'before' if span.total_seconds() < 0 else 'after'} the stop"


# Why not otherwise ----------------------------------------------------------------------------------------------------


def _rules(it: Explained, pen: Pen) -> list[str]:
    tried = why.steps(it.facts, it.verdict)
    if not tried:
        return ["Rules none is tried while the run has a valid lease"]
    lines = []
    for step in tried:
        head = "Rules " if step.number == 1 and not step.matched else "   -> " if step.matched else " " * _INDENT
        said = "yes  " if step.matched else "no   "
        lines.append(f"{head}{step.number} {pen.verdict(step.rule.verdict, 21)}{said}{cut(step.phrase, 46)}")
    return lines if lines[0].startswith("Rules") else ["Rules", *lines]


# What was seen --------------------------------------------------------------------------------------------------------


def _evidence(it: Explained) -> list[str]:
    lines = [f"{'Evidence':<47}{'seen at':<14}by"]
    for row in seen.exhibits(it):
        value = f"{fit(row.value, seen.VALUE_WIDTH)} {fit(row.seen_at, 13)} {row.by}"
        lines.append(cut(f"{'':6}{fit(row.name, 14)} {value}".rstrip(), WIDTH))
        lines += [cut(f"{'':21}{more}", WIDTH) for more in row.more]
    return [*lines, *_findings(it)]


def _findings(it: Explained) -> list[str]:
    gone = void(it.facts)
    codes = [code for code in (gone.reason, *gone.others) if code]
    others = [each for each in it.verdict.findings if each.code not in codes]
    found = [_finding(it, each) for each in others]
    lines = hand.paragraph(f"{'':6}contradictions ", ", ".join(codes) or "none", 21)
    return lines + hand.paragraph(f"{'':6}findings", ", ".join(found), 21) if found else lines


def _finding(it: Explained, finding: Finding) -> str:
    """With its place; of AG-UI with the rule that it is of, and whose that is."""
    said = f"{finding.code}\N{NO-BREAK SPACE}{finding.where}" if finding.where else finding.code
    breach = it.breaches.get(finding.code)
    return said if breach is None else f"{said} ({breach.rule} {breach.side} {breach.level})"


# What to do -----------------------------------------------------------------------------------------------------------


def _next(it: Explained) -> list[str]:
    verdict = it.verdict
    missing = _missing(it)
    lines = hand.paragraph("Missing", missing, 8) if missing else []
    lines += hand.paragraph("Do", _action(it) + _on_bound(it), _INDENT)
    return lines + hand.paragraph("Retry", f"{verdict.retry}: {sentences.retry_sentence(it.facts, verdict)}", _INDENT)


def _action(it: Explained) -> str:
    answered = unresumed(it.facts, it.verdict)
    return resume_action(answered, it.facts) if answered else it.verdict.action


def _on_bound(it: Explained) -> str:
    runbook = it.facts.entry.on_bound
    return f" On a bound: {runbook}" if runbook and it.verdict.verdict is VerdictName.BOUNDED_STOP else ""


def _missing(it: Explained) -> str:
    """What would change the verdict: parts of a wait, or the receipt that the contract asks for."""
    if it.verdict.missing:
        return "; ".join(f"{each} ({_meaning(Missing(each), it)})" for each in it.verdict.missing)
    if it.verdict.reason not in _UNPROVEN or it.facts.contract_name is None:
        return ""
    contract = it.facts.contract or DEFAULT_CONTRACT
    issuers = " or ".join(contract.issuers) or "anyone but the run"
    return f"an outcome receipt for contract {it.facts.contract_name}, at least {contract.min_strength}, from {issuers}"


def _meaning(missing: Missing, it: Explained) -> str:
    return delivery_words(it.facts) if missing is Missing.DELIVERY else missing.meaning


# How it came here -----------------------------------------------------------------------------------------------------


def _history(it: Explained, pen: Pen) -> list[str]:
    lines = []
    for number, each in enumerate(it.history if len(it.history) > 1 else ()):
        head = "History " if number == 0 else " " * 8
        lines.append(f"{head}{_moment(it, each.as_of, pen)}  {_revision(each.verdict, each.reason, pen)}")
    return lines + (_group(it.group, it.facts.now, pen) if it.group else []) + _links(it)


def _group(group: GroupNote, now: datetime, pen: Pen) -> list[str]:
    """How many runs ended the same way and since when, what is worth saying of them, how they differ from others."""
    last = f", last {age(now - group.last)} ago" if group.last else ""
    runs = f"{count(group.others + 1, 'run')}, first {pen.time(group.first)}{last}"
    told = [f"{group.fingerprint[-4:]}: {runs}"]
    told += [marks] if (marks := mark_words(group.marks)) else []
    told += [said_words(group.said, now, pen)] if group.said else []
    lines = [cut(f"{'' if number else 'Group':<8}{text}", WIDTH) for number, text in enumerate(told)]
    return lines + [
        cut(f"{'':<8}{'' if number else 'differs in':<11}{each}", WIDTH)
        for number, each in enumerate(map(_difference, group.differs))
    ]


def _difference(each: Difference) -> str:
    inside, outside = f"{each.inside}/{each.of_inside}", f"{each.outside}/{each.of_outside}"
    return f"{fit(f'{each.field} {each.value}', 36)}  {inside} v {outside}"


def _moment(it: Explained, at: datetime, pen: Pen) -> str:
    """The clock alone on the day that the head names."""
    first = it.facts.started_at or it.facts.last_at
    same_day = at.astimezone(pen.zone).date() == first.astimezone(pen.zone).date()
    return pen.clock(at, seconds=True) if same_day else pen.time(at, seconds=True)


def _revision(name: VerdictName | None, reason: str, pen: Pen) -> str:
    return f"{pen.verdict(name, 19)} {cut(reason, 24)}"


def _links(it: Explained) -> list[str]:
    stop = it.facts.stop
    values = {"trace_id": stop and stop.trace_id, "run_id": it.facts.run_id, "agent": it.verdict.agent}
    links = []
    for name, template in it.facts.policy.links.items():
        known = all(value or f"{{{key}}}" not in template for key, value in values.items())
        if known:
            url = template
            for key, value in values.items():
                url = url.replace(f"{{{key}}}", str(value))
            links.append(f"{name} {url}")
    return [f"Links   {link}" for link in links if len(link) <= WIDTH - 8]


# The note for the incident channel ------------------------------------------------------------------------------------


def explain_note(it: Explained, pen: Pen) -> list[str]:
    """Three lines of Markdown; they name what a reader in a channel needs first."""
    verdict = it.verdict
    who = ", ".join(part for part in (_agent(it), verdict.environment, f"run {verdict.run_id}") if part)
    group = it.group
    runs = f"{group.others + 1} runs since {pen.time(group.first)}. " if group and group.others else ""
    named = (group.owner if group else None) or it.facts.entry.owner
    owner = f" Owner {named}." if named else ""
    return [
        f"**{verdict.verdict or hand.RUNNING} ({verdict.reason})** {who}",
        _why_text(it),
        f"{runs}{_action(it)} Retry: {verdict.retry}.{owner}",
    ]


def _agent(it: Explained) -> str:
    identity = it.facts.identity
    return " ".join(part for part in (it.verdict.agent, identity.agent_version if identity else None) if part)
