"""Files of many threads: what the ledger of a tap forgets, an audit does not, and its time grows with its length."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from stopcause.agui import ids, ledger
from stopcause.agui.reader import Exchange
from stopcause.pipeline import agui, agui_views

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def exchanges(number: int) -> list[Exchange]:
    return [exchange(f"t{each}") for each in range(number)]


def exchange(thread_id: str) -> Exchange:
    run: dict[str, Any] = {"threadId": thread_id, "runId": "r1"}
    asks = {"type": "interrupt", "interrupts": [{"id": "i-1", "reason": "confirmation"}]}
    events = [{"type": "RUN_STARTED", **run}, {"type": "RUN_FINISHED", **run, "outcome": asks}]
    return Exchange(run, iter(events))


def test_an_audit_forgets_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_MOST_THREADS", 3)
    audit = agui.audit(exchanges(9), None, NOW)
    assert [thread.verdict for thread in audit.threads] == ["WAITING_UNROUTED"] * 9


def test_a_view_looks_at_each_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = agui.audit(exchanges(50), None, NOW)
    looked: list[str] = []

    def safe(text: str) -> str:
        looked.append(text)
        return ids.safe(text)

    monkeypatch.setattr(agui_views, "safe", safe)
    view = agui_views.audit_file_view("x", audit)
    assert [len(thread.runs) for thread in view.threads] == [1] * 50
    assert len(looked) <= 5 * 50
