"""Generated records for the benches: as many kinds and fields as real runs have, the same on every machine.

About 2.2 records a run and 0.7 kB a line: a start, a receipt, and an outcome for every second run, an approval for
every twentieth.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)
NOW = START + timedelta(hours=12)
POLICY = {
    "policy": {"id": "bench", "version": "1"},
    "agents": [{"match": {"agent": "agent-*"}, "contract": "outcome", "stage": "enforce"}],
    "contracts": {"outcome": {"issuers": ["destination:system"]}},
}
_CAUSES = ("natural", "natural", "natural", "explicit_done", "step_limit", "time_limit", "tool_failure", "user_abort")


def lines(runs: int) -> Iterator[bytes]:
    """The NDJSON lines of so many runs, without newlines, in the order of time."""
    chance = random.Random(1)  # noqa: S311 - the same runs every time is the point
    for number in range(runs):
        for record in _run(number, chance):
            yield json.dumps(record, separators=(",", ":")).encode()


def _run(number: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    opened = START + timedelta(milliseconds=200 * number)
    ended = opened + timedelta(seconds=chance.randint(2, 90))
    cause = chance.choice(_CAUSES)
    yield _head(number, 1, "run.started", opened, chance) | _identity(number) | {"lease_s": 600, "limits": _limits()}
    stop = _head(number, 2, "run.stopped", ended, chance) | _identity(number) | _receipt(cause, opened, ended, chance)
    if number % 20 == 0:
        stop |= {"stop_cause": "approval_pending", "approvals": [_approval(number, ended)]}
    yield stop
    if number % 2:
        yield _head(number, 3, "outcome.recorded", ended + timedelta(seconds=5), chance) | {"outcome": _outcome(number)}


def _head(number: int, seq: int, kind: str, at: datetime, chance: random.Random) -> dict[str, Any]:
    stamp = int(at.timestamp() * 1000)
    return {
        "schema": "stopcause/1",
        "kind": kind,
        "record_id": f"{stamp >> 16:08x}-{stamp & 0xFFFF:04x}-7{seq:03x}-8000-{chance.getrandbits(48):012x}",
        "run_id": f"run-{number:08d}",
        "at": at.isoformat().replace("+00:00", "Z"),
        "boundary": "call",
        "adapter": "langgraph",
        "adapter_version": "0.1.0",
        "framework": "langgraph",
        "framework_version": "1.4.2",
        "trace_id": f"{chance.getrandbits(128):032x}",
        "span_id": f"{chance.getrandbits(64):016x}",
    }


def _identity(number: int) -> dict[str, Any]:
    return {
        "agent": f"agent-{number % 40}",
        "agent_version": f"2.{number % 3}.1",
        "service": "orders",
        "environment": "prod" if number % 5 else "staging",
        "model": "m-large-2",
        "provider": "acme",
        "thread_id": f"thread-{number // 3}",
    }


def _limits() -> list[dict[str, Any]]:
    return [{"name": "max_steps", "kind": "steps", "limit": 20, "unit": "step", "scope": "run"}]


def _receipt(cause: str, opened: datetime, ended: datetime, chance: random.Random) -> dict[str, Any]:
    steps = 20 if cause == "step_limit" else chance.randint(1, 19)
    return {
        "stop_cause": cause,
        "started_at": opened.isoformat().replace("+00:00", "Z"),
        "duration_s": (ended - opened).total_seconds(),
        "steps": steps,
        "step_unit": "step",
        "limits": _limits(),
        "tool_calls": chance.randint(0, 9),
        "pending_tool_calls": 0,
        "model_calls": steps,
        "conditions": [
            {"name": "max_steps", "kind": "steps", "fired": cause == "step_limit", "limit": 20, "observed": steps}
        ],
        "finish_reason": {"raw": "stop", "normalized": "stop", "source": "provider"},
        "usage": {
            "input_tokens": chance.randint(100, 9000),
            "output_tokens": chance.randint(10, 900),
            "cost_usd": 0.04,
        },
        "output_shape": "text",
    }


def _approval(number: int, at: datetime) -> dict[str, Any]:
    return {
        "approval_id": f"approval-{number}",
        "kind": "tool_call",
        "tool": "transfer_funds",
        "state": "routed",
        "owner": "team:treasury",
        "deadline": (at + timedelta(hours=4)).isoformat(),
        "resume_token": f"tok:{number}",
    }


def _outcome(number: int) -> dict[str, Any]:
    return {
        "outcome_id": f"outcome-{number}",
        "contract": "outcome",
        "check": "exists",
        "strength": "read_back",
        "polarity": "confirmed" if number % 10 else "refuted",
        "issuer": {"type": "destination", "id": "system"},
        "pre_state": "absent",
        "subject": f"sha256:{hashlib.sha256(str(number).encode()).hexdigest()}",
    }
