"""Stores for the doctor to look at, and what it finds there."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.pipeline.doctor import visit
from stopcause.pipeline.keeper import Keeper
from stopcause.render.doctor import Check, Visit, visit_screen
from stopcause.render.hints import Caller
from stopcause.render.pen import WIDTH, Pen, cells

NOW = datetime.now(UTC).replace(microsecond=0)
LIMIT = [{"name": "steps", "kind": "steps", "limit": 20}]


def line(kind: str = "run.stopped", run_id: str = "r1", ago_s: float = 60, **fields: Any) -> bytes:  # noqa: ANN401
    at = (NOW - timedelta(seconds=ago_s)).isoformat()
    more = {"stop_cause": "natural", "steps": 3, "limits": LIMIT} if kind == "run.stopped" else {}
    said = {"schema": "stopcause/1", "kind": kind, "run_id": run_id, "at": at, "agent": "a", **more, **fields}
    return json.dumps(
        said if kind in ("run.stopped", "run.started") else {k: said[k] for k in said if k != "agent"}
    ).encode()


def well(path: Path) -> Path:
    """A well store with one run."""
    keep(path, line("run.started", ago_s=90, limits=LIMIT, seq=1), line(seq=2))
    return path


def keep(store: Path, *lines: bytes) -> None:
    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        assert keeper.accept(lines, NOW).errors == []


def visited(store: Path, policy: Path | None = None) -> Visit:
    return visit(store, store.parent / "spool", policy, NOW)


def check(store: Path, name: str) -> Check:
    return next(each for each in visited(store).checks if each.name == name)


def shown(found: Visit) -> list[str]:
    lines = visit_screen(found, Caller("stopcause"), Pen(zone=UTC))
    assert all(cells(each) <= WIDTH for each in lines if "stopcause " not in each and "/" not in each)
    return lines
