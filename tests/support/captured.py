"""What the core hook's tests share: an error of the host's own, and the verdict on what was recorded."""

from __future__ import annotations

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.receipts.testing import Recorded


class Wrong(Exception):  # noqa: N818 - it is only raised to be caught
    """An error of the host's own."""


def verdict_of(found: Recorded, run_id: str | None = None) -> tuple[str | None, str | None]:
    records = found.records
    runs = fold.group(records)
    run = runs[run_id or records[0].run_id]  # type: ignore[union-attr]
    now = max(record.at for record in records)
    facts = fold.facts_of(run, run.latest, DEFAULT_POLICY, now, engine.resumers_of(run, runs.values()))
    verdict = engine.judge(facts)
    return verdict.verdict, verdict.reason
