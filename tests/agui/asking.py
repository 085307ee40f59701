"""Threads, inputs and answers for tests of the guard: small, and the same everywhere."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stopcause.agui import findings
from stopcause.agui.guard import Check, ResumeGuard
from stopcause.agui.values import Interrupt, RunSeen
from stopcause.agui.words import Ending, Mode
from stopcause.receipts.vocabulary import ApprovalKind, StopCause

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
APPROVE = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}


def asks(thread_id: str = "t1", run_id: str = "r1", *ids: str, **more: Any) -> RunSeen:  # noqa: ANN401 - any field
    """A run that asks for these, each for a call of its own."""
    fields = {"schema": APPROVE, **more}
    interrupts = tuple(Interrupt(each, ApprovalKind.TOOL_CALL, tool_call_id=f"tc-{each}", **fields) for each in ids)
    return RunSeen(
        thread_id, run_id, Mode.SPEC, Ending.INTERRUPT, StopCause.APPROVAL_PENDING, interrupts=interrupts, ended_at=NOW
    )


def paused(path: Path | None, *ids: str, **more: Any) -> ResumeGuard:  # noqa: ANN401 - as ResumeGuard
    """A guard whose thread waits for these, or for one."""
    guard = ResumeGuard(path, **more)
    guard.saw(asks("t1", "r1", *(ids or ("i-1",))))
    return guard


def names(check: Check) -> frozenset[str]:
    """What was found."""
    return findings.names(check.findings)


def given(thread_id: str, run_id: str, *resume: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A RunAgentInput with these answers."""
    answers = {"resume": list(resume)} if resume else {}
    return {"threadId": thread_id, "runId": run_id, "messages": [], "tools": [], "context": [], **answers}


def says(interrupt_id: str, *, approved: Any = True) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A yes, a no, or what else is to stand there."""
    return {"interruptId": interrupt_id, "status": "resolved", "payload": {"approved": approved}}


def gives_up(interrupt_id: str) -> dict[str, Any]:
    return {"interruptId": interrupt_id, "status": "cancelled"}


def doubling(keyword: str, levels: int, last: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A schema of a few lines that asks for 2^levels evaluations."""
    steps = {f"s{n}": {keyword: [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/s0", "$defs": {**steps, f"s{levels}": last}}
