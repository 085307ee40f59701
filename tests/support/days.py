"""Stores with runs of several days, for what works by the day: archives, backups, retention, kills."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from stopcause.classifier.policy import DEFAULT_POLICY, policy_from_mapping
from stopcause.pipeline.keeper import Keeper
from stopcause.store.queries import text

__all__ = ["DEFAULT_POLICY", "Keeper"]  # what every test of a store of days needs

DAY_ONE = datetime(2026, 11, 1, 6, tzinfo=UTC)
DAY = timedelta(days=1)
NOW = datetime(2026, 11, 30, tzinfo=UTC)
PAUSED = "thread-7.step-2"  # where a run resumes
OTHER_POLICY = policy_from_mapping({"agents": [{"match": {"agent": "*"}, "owner": "team:other"}]})


def line(kind: str, run_id: str, at: datetime, **fields: object) -> bytes:
    """A record with an id of its own, made of what it says."""
    head = {"schema": "stopcause/1", "kind": kind, "run_id": run_id, "at": at.isoformat()}
    return json.dumps(head | fields).encode()


def stopped(run_id: str, at: datetime, **fields: object) -> bytes:
    """A run that ended."""
    return line("run.stopped", run_id, at, **{"stop_cause": "natural", "agent": "a1", "steps": 3} | fields)


def waiting(run_id: str, at: datetime, **fields: object) -> bytes:
    """A run that waits for an approval, with a resume token."""
    approval: dict[str, object] = {
        "approval_id": f"ap-{run_id}",
        "state": "routed",
        "kind": "tool_call",
        "tool": "pay",
        "owner": "team:x",
    }
    approval |= {"deadline": "2027-01-01T00:00:00Z", "resume_token": PAUSED}
    return line("run.stopped", run_id, at, stop_cause="approval_pending", agent="a1", approvals=[approval | fields])


def outcome(run_id: str, at: datetime) -> bytes:
    """A late look at the destination."""
    said = {"outcome_id": f"o-{run_id}", "strength": "read_back", "polarity": "confirmed", "pre_state": "absent"}
    return line("outcome.recorded", run_id, at, outcome=said | {"issuer": {"type": "destination", "id": "db"}})


def runs_of(day: int, count: int, name: str = "r") -> Iterator[bytes]:
    """A day's runs: a start, a receipt and a late outcome each; every tenth waits instead."""
    for n in range(count):
        run_id, at = f"{name}{day:02d}-{n:05d}", DAY_ONE + day * DAY + timedelta(seconds=n)
        yield line("run.started", run_id, at, agent="a1", environment="prod")
        if n % 10 == 9:
            yield waiting(run_id, at + timedelta(seconds=1))
        else:
            yield stopped(run_id, at + timedelta(seconds=1), reason_code="x" * 120)
            yield outcome(run_id, at + timedelta(hours=5))


def filled(path: Path | None, days: int = 3, count: int = 10) -> Keeper:
    """An open keeper on a store with so many runs on each of so many days, judged at NOW."""
    keeper = Keeper.open(path, DEFAULT_POLICY, NOW)
    for day in range(days):
        keeper.accept(runs_of(day, count), NOW)
    return keeper


def as_of_0001(path: Path) -> None:
    """Makes a store one that the first version wrote: the same rows, without what came since."""
    old = path.with_name("old.duckdb")
    with duckdb.connect(":memory:") as engine:
        engine.execute(f"ATTACH '{path}' AS new (READ_ONLY)").fetchall()
        engine.execute(f"ATTACH '{old}' AS old").fetchall()
        engine.execute("USE old").fetchall()
        engine.execute(text("migration_0001")).fetchall()
        for (table,) in engine.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'old'").fetchall():
            names = ", ".join(engine.sql(f"FROM old.{table} LIMIT 0").columns)
            engine.execute(f"INSERT INTO {table} SELECT {names} FROM new.{table}").fetchall()  # noqa: S608
        engine.execute("UPDATE verdicts SET classifier_version = '1'").fetchall()
        engine.execute("CREATE TABLE schema_migrations (name VARCHAR, applied_at TIMESTAMP)").fetchall()
        engine.execute("INSERT INTO schema_migrations VALUES ('0001_tables', now()::TIMESTAMP)").fetchall()
        engine.execute("CHECKPOINT old").fetchall()
    old.replace(path)


def lines_in(path: Path) -> list[str]:
    """The lines of a store at rest, in their order."""
    with duckdb.connect(str(path), read_only=True) as engine:
        return [said for (said,) in engine.execute("SELECT line FROM records").fetchall()]


def hidden(folder: Path) -> list[str]:
    """What somebody began in a folder and did not end."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
