"""Rows for a store, with everything that a test does not care about filled in."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stopcause.store.duckdb_store import DuckStore
from stopcause.store.rows import RecordRow, VerdictRow

if TYPE_CHECKING:
    pass

T0 = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)


def record(run_id: str | None = "r1", at: datetime = T0, **changes: object) -> RecordRow:
    row = RecordRow(
        record_id=str(uuid.uuid4()),
        kind="run.stopped",
        run_id=run_id,
        attempt=1,
        event_at=at,
        opened_at=at,
        resumes_run_id=None,
        line=b'{"schema":"stopcause/1"}',
    )
    return row._replace(**changes)  # type: ignore[arg-type]


def verdict(run_id: str = "r1", **changes: object) -> VerdictRow:
    values: dict[str, object] = dict.fromkeys(VerdictRow._fields)
    values |= {"run_id": run_id, "attempt": 1, "opened_at": T0, "revision": 1, "sign": 1, "verdict": "FAILED"}
    values |= {"reason": "tool_failure", "rule": "failed", "stop_cause": "tool_failure", "retry": "check_first"}
    values |= {
        "evidence": ("stop_cause", "error"),
        "findings": (),
        "missing": (),
        "fingerprint": "abc",
        "settled": True,
    }
    values |= {"policy_version": "1", "policy_digest": "d1", "classifier_version": "1", "as_of": T0, "last_at": T0}
    values |= {"is_latest": True, "stage": "observe", "has_on_bound": False, "waits": ()}
    return VerdictRow(**{**values, **changes})  # type: ignore[arg-type]


def columns_of(store: DuckStore, table: str) -> list[str]:
    query = "SELECT column_name FROM duckdb_columns() WHERE table_name = $table ORDER BY column_index"
    return [name for (name,) in store._ask(query, {"table": table})]
