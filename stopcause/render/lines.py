"""JSON for pipes: one object a line, times in UTC with Z, nulls kept, no grouping. Others script against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stopcause.classifier import rules
from stopcause.classifier.verdict import Verdict
from stopcause.render.pen import utc_text
from stopcause.render.sentences import action_of
from stopcause.render.views import AssertionResult, CaseResult, Explained, Replay, WaitLine

VERDICT_FIELDS = Verdict._fields


def as_line(value: object) -> str:
    """Any of the values here as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return utc_text(value)
    raise TypeError(type(value).__name__)


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """A verdict with the fields of the plan."""
    findings = [{"code": each.code, "where": each.where} for each in verdict.findings]
    return {**verdict._asdict(), "findings": findings}


def explained_object(it: Explained) -> dict[str, Any]:
    """The same with the rule of AG-UI that a finding is of, where it is of one: `rule`, `side` and `level`."""
    made = verdict_object(it.verdict)
    for each in made["findings"]:
        if (breach := it.breaches.get(each["code"])) is not None:
            each.update(breach._asdict())
    return made


def row_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same from a row of the store. It keeps no record ids: `explain RUN` has them."""
    made = {**row, "group": row["fingerprint"], "action": action_of(row["rule"]), "record_ids": None}
    made["findings"] = [_finding(text) for text in row["findings"]]
    return {field: made[field] for field in VERDICT_FIELDS}


def _finding(text: str) -> dict[str, str | None]:
    code, _, where = text.partition("=")
    return {"code": code, "where": where or None}


def wait_object(wait: WaitLine) -> dict[str, Any]:
    """A wait. The resume token names a paused state; it opens nothing."""
    return wait._asdict()


def rule_objects() -> list[dict[str, Any]]:
    """The cards of the rules, in their order."""
    return [
        {"order": order, **{name: value for name, value in card._asdict().items() if name != "match"}}
        for order, card in enumerate(rules.RULES, 1)
    ]


def replay_objects(result: Replay) -> list[dict[str, Any]]:
    """Each case and assertion as it was found."""
    return [*map(_case, result.cases), *map(_assertion, result.assertions)]


def _case(case: CaseResult) -> dict[str, Any]:
    return {
        "id": case.id,
        "ok": case.ok,
        "verdict": case.verdict,
        "reason": case.reason,
        "rule": case.rule,
        "expected_verdict": case.expected_verdict,
        "expected_reason": case.expected_reason,
        "fault": case.fault,
        "why": case.why,
    }


def _assertion(assertion: AssertionResult) -> dict[str, Any]:
    return {"id": assertion.id, "ok": assertion.ok, "fault": assertion.fault, "why": assertion.why}
