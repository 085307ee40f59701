"""The evidence block of `explain`: what was seen, at which boundary, and by whom. Rows of four short texts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from stopcause.classifier.approvals import KEEPS_WAITING, Status, Wait
from stopcause.classifier.fold import Facts
from stopcause.receipts import model
from stopcause.receipts.model import Outcome, RunDied, RunStarted, RunStopped
from stopcause.render.pen import age, cells, count, whole_or_tail
from stopcause.render.views import Explained
from stopcause.render.why import lacks, status_words

_NOBODY = "-"
_ID_WIDTH = 12
VALUE_WIDTH = 25  # of the column for what an exhibit says


class Exhibit(NamedTuple):
    """A fact: what it is called, what it says, where it was seen and by whom. `more` are lines below it."""

    name: str
    value: str
    seen_at: str = ""
    by: str = ""
    more: tuple[str, ...] = ()


def exhibits(it: Explained) -> list[Exhibit]:
    """What is known of a run, the stop first."""
    rows = list(_end(it.facts))
    if it.facts.stop is not None:
        rows += _receipt(it.facts.stop)
    elif it.facts.progress_known:
        rows.append(_last_progress(it.facts))
    rows += [_wait(wait, it.facts.now) for wait in it.facts.waits]
    rows += [_outcome(look) for look in sorted(looks(it), key=lambda look: look.at)]
    return rows


def _end(facts: Facts) -> Iterator[Exhibit]:
    if facts.stop is not None:
        yield _cause(facts, facts.stop)
    elif facts.died is not None:
        yield _death(facts.died, facts.start)
    elif facts.disputed:
        said = [finding.where or "" for finding in facts.findings if finding.code == "terminal_disputed"]
        for told in said:
            cause, _, boundary = told.partition("@")
            yield Exhibit("stop_cause", f"{cause}, disputed", boundary, _NOBODY)
    elif facts.lease_ends is not None:
        over = facts.now - facts.lease_ends
        yield Exhibit("lease", f"over since {age(over)}" if over.total_seconds() >= 0 else f"{age(-over)} left")
    else:
        yield Exhibit("stop_cause", "none yet, and no lease")


def _last_progress(facts: Facts) -> Exhibit:
    """Of a run without a receipt: how long ago it last got somewhere."""
    return Exhibit("progress", f"{age(facts.now - facts.progress_at)} ago" if facts.progress_at else "none")


def _cause(facts: Facts, stop: RunStopped) -> Exhibit:
    said = stop.stop_cause if facts.cause == stop.stop_cause else f"{stop.stop_cause} -> {facts.cause}"
    code = (f"reason_code {stop.reason_code}",) if stop.reason_code else ()
    return Exhibit("stop_cause", said, stop.boundary or "not said", stop.adapter or stop.framework or _NOBODY, code)


def _death(died: RunDied, start: RunStarted | None) -> Exhibit:
    numbers = (("exit", died.exit_code), ("signal", died.signal))
    value = ", ".join([died.reason or "lost", *(f"{name} {number}" for name, number in numbers if number is not None)])
    pid = start.process.pid if start is not None and start.process is not None else None
    whose = () if pid is None else (f"process {pid}",)
    return Exhibit("run.died", value, died.boundary or "not said", died.adapter or _NOBODY, whose)


def _receipt(stop: RunStopped) -> Iterator[Exhibit]:
    boundary = stop.boundary or "not said"
    if stop.finish_reason is not None:
        finish = stop.finish_reason
        said = " -> ".join(word for word in (finish.raw, finish.normalized) if word) or "none"
        yield Exhibit("finish_reason", said, boundary, finish.source or _NOBODY)
    for condition in stop.conditions or ():
        yield Exhibit(f"{condition.kind} bound", _condition(condition), boundary, condition.name)
    for name, value in _facts_of(stop):
        if value:
            yield Exhibit(name, value, boundary)


def _condition(condition: model.Condition) -> str:
    said = {True: "fired", False: "did not fire", None: "not asked"}[condition.fired]
    numbers = [f"{number:.10g}" for number in (condition.observed, condition.limit) if number is not None]
    return f"{said}, {' of '.join(numbers)}" if numbers else said


def _facts_of(stop: RunStopped) -> Iterator[tuple[str, str]]:
    yield "error", _error(stop.error)
    yield "tool_errors", _errors(stop.tool_errors)
    yield "model_errors", _errors(stop.model_errors)
    yield "calls left", count(stop.pending_tool_calls, "call") if stop.pending_tool_calls else ""
    yield "progress", _progress(stop)
    yield "abort", _abort(stop)
    yield "children", _children(stop.children)
    yield "output", str(stop.output_shape or "") if stop.output_shape == "none" else ""
    yield "closed_by", stop.closed_by or ""


def _error(error: model.RunError | None) -> str:
    if error is None:
        return ""
    parts = (error.type, error.tool and f"tool {error.tool}", error.status and f"status {error.status}")
    return ", ".join(part for part in parts if part)


def _errors(counts: model.ErrorCounts | None) -> str:
    pairs = ((counts.terminal, "terminal"), (counts.recovered, "recovered")) if counts else ()
    return ", ".join(f"{number} {word}" for number, word in pairs if number)


def _progress(stop: RunStopped) -> str:
    progress = stop.progress
    if progress is None:
        return ""
    if progress.in_flight_tools:
        return f"{count(progress.in_flight_tools, 'tool')} in flight"
    if progress.last_at is not None:
        return f"last {age(stop.at - progress.last_at)} before the stop"
    return {True: "made", False: "none made", None: ""}[progress.made]


def _abort(stop: RunStopped) -> str:
    abort = stop.abort
    if abort is None:
        return ""
    said = "observed" if abort.observed_at else "asked for, not observed"
    return f"{said}, by {whole_or_tail(abort.actor, _ID_WIDTH)}" if abort.actor else said


def _children(children: model.Children | None) -> str:
    pairs = ((children.open, "open"), (children.failed, "failed"), (children.waiting, "waiting")) if children else ()
    return ", ".join(f"{number} {word}" for number, word in pairs if number)


def _wait(wait: Wait, now: datetime) -> Exhibit:
    name = f"approval {whole_or_tail(wait.approval_id, 5)}" if wait.approval_id else "approval"
    by = whole_or_tail(wait.actor, _ID_WIDTH) if wait.actor else _NOBODY
    asked, words = f"tool {wait.tool}" if wait.tool else str(wait.kind), status_words(wait.status)
    value = f"{asked}, {words}"
    fits = cells(value) <= VALUE_WIDTH
    route = _route(wait, now) if wait.status in KEEPS_WAITING else ""
    more = tuple(text for text in ("" if fits else asked, lacks(wait.missing), route) if text)
    return Exhibit(name, value if fits else words, "decision" if wait.actor else "", by, more)


def _route(wait: Wait, now: datetime) -> str:
    """Who answers, until when, and where the run resumes."""
    undecided = wait.status is Status.OPEN
    ends = (wait.deadline if undecided else None, wait.expires_at)
    due = min((at for at in ends if at), default=None)
    parts = (
        undecided and wait.owner and f"owner {wait.owner}",
        due and (f"due in {age(due - now)}" if due > now else f"{age(now - due)} late"),
        wait.resume_token and f"resume at {wait.resume_token}",
    )
    return ", ".join(part for part in parts if part)


class Look(NamedTuple):
    """A look at the destination, in whichever attempt it was recorded."""

    outcome: Outcome
    at: datetime
    where: str


def looks(it: Explained) -> Iterator[Look]:
    """Every look at the destination that the run has."""
    for records in it.run.attempts.values():
        for record in records:
            if isinstance(record, model.OutcomeRecorded):
                yield Look(record.outcome, record.outcome.observed_at or record.at, record.boundary or "")
            elif isinstance(record, model.RunStopped):
                for each in record.outcomes or ():
                    yield Look(each, each.observed_at or record.at, "in the receipt")


def _outcome(look: Look) -> Exhibit:
    outcome = look.outcome
    says = ", ".join(word for word in (outcome.strength, outcome.polarity) if word) or "says nothing"
    issuer = outcome.issuer
    details = (
        outcome.pre_state and f"pre_state {outcome.pre_state}",
        outcome.effect_key and f"effect {whole_or_tail(outcome.effect_key, _ID_WIDTH)}",
        outcome.check and f"check {outcome.check}",
    )
    return Exhibit(
        f"outcome {whole_or_tail(outcome.outcome_id, 6)}",
        says,
        issuer.type if issuer else look.where,
        (issuer.id if issuer else None) or _NOBODY,
        tuple(filter(None, (", ".join(part for part in details if part),))),
    )
