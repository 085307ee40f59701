"""Stop receipts and what people say, as lines of the wire format, and stores that hold them. Times count from `NOW`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from stopcause.classifier.policy import Policy, policy_from_mapping
from stopcause.pipeline.attention import Scope, window
from stopcause.pipeline.keeper import Keeper
from stopcause.store.rows import VerdictRow

NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
POLICY = policy_from_mapping(
    {
        "agents": [
            {"match": {"agent": "watched-*"}, "contract": "c"},
            {"match": {"agent": "free-*"}, "stage": "enforce"},
            {"stage": "enforce", "owner": "team:x", "contract": "c"},
        ],
        "contracts": {"c": {"settle": "10m"}},
    }
)


def text(at: datetime) -> str:
    return at.isoformat()


def stop(run_id: str, ago: timedelta = HOUR, cause: str = "loop_guard", **fields: object) -> bytes:
    """A receipt of a run that started a minute before it stopped."""
    at = NOW - ago
    known: dict[str, Any] = {"agent": "a", "agent_version": "1.0", "environment": "prod", "stop_cause": cause}
    known |= {"started_at": text(at - timedelta(minutes=1)), "steps": 3}
    head = {"schema": "stopcause/1", "kind": "run.stopped", "run_id": run_id, "at": text(at)}
    return json.dumps({**head, **known, **fields}).encode()


def stops(number: int, ago: timedelta = HOUR, *, name: str = "r", **fields: Any) -> list[bytes]:  # noqa: ANN401
    """So many of them, a second apart, all in one group."""
    return [stop(f"{name}-{ago.total_seconds():.0f}-{i}", ago + timedelta(seconds=i), **fields) for i in range(number)]


def wait(run_id: str, ago: timedelta = HOUR, agent: str = "a", **approval: object) -> bytes:
    """A run that waits, and lacks what is not given."""
    asked = {"approval_id": f"approval-{run_id}", "kind": "tool_call", "tool": "pay", "state": "requested", **approval}
    return stop(run_id, ago, "approval_pending", agent=agent, approvals=[asked])


def finish(run_id: str, ago: timedelta = HOUR, **fields: object) -> bytes:
    """A run that ended by itself."""
    return stop(run_id, ago, "natural", **{"finish_reason": {"raw": "stop", "normalized": "stop"}, **fields})


def refuted(run_id: str, ago: timedelta = HOUR) -> bytes:
    outcome = {"outcome_id": f"o-{run_id}", "contract": "c", "strength": "read_back", "polarity": "refuted"}
    outcome |= {"issuer": {"type": "destination", "id": "db"}}  # type: ignore[dict-item]
    head = {"schema": "stopcause/1", "kind": "outcome.recorded", "run_id": run_id, "at": text(NOW - ago)}
    return json.dumps({**head, "outcome": outcome}).encode()


@contextmanager
def filled(*lines: bytes | Iterable[bytes], path: Path | None = None, policy: Policy = POLICY) -> Iterator[Keeper]:
    """A store that took these lines in and is settled as of `NOW`."""
    with Keeper.open(path, policy, NOW) as keeper:
        taken = keeper.accept([one for each in lines for one in ([each] if isinstance(each, bytes) else each)], NOW)
        assert taken.errors == []
        keeper.settle(NOW)
        yield keeper


def scope(since: timedelta = DAY, now: datetime = NOW, **chosen: Any) -> Scope:  # noqa: ANN401
    return Scope(window(now, since, "24h", now), **chosen)


def group_of(keeper: Keeper, run_id: str) -> str:
    return row_of(keeper, run_id).fingerprint


def row_of(keeper: Keeper, run_id: str) -> VerdictRow:
    (row,) = [row for row in keeper.store.rows(limit=None) if row.run_id == run_id]
    return row
