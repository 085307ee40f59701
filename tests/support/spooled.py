"""Spools for tests: real processes that leave runs in them and die, and what a store has of it afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.spool import TakenIn, take_in
from stopcause.receipts.spool import Spool
from stopcause.store.rows import VerdictRow

ROOT = Path(__file__).parents[2]
NOW = datetime.now(UTC).replace(microsecond=0)
STOPCAUSE = (sys.executable, "-m", "stopcause")


def line(kind: str, run_id: str, ago_s: float = 60, **fields: object) -> bytes:
    """A record as our own writer makes it."""
    at = (NOW - timedelta(seconds=ago_s)).isoformat()
    record_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{kind} {run_id} {ago_s}"))
    said = {"schema": "stopcause/1", "kind": kind, "record_id": record_id, "run_id": run_id}
    return json.dumps({**said, "attempt": 1, "at": at, **fields}, separators=(",", ":")).encode()


def started(run_id: str, ago_s: float = 60, **fields: object) -> bytes:
    """A run that says something every five minutes, of a process that is not said to live here."""
    process = {"boot_id": "b", "pid": 2**22 + 1, "started": 1}
    return line("run.started", run_id, ago_s, **{"agent": "a", "lease_s": 300.0, "process": process, **fields})


def stopped(run_id: str, ago_s: float = 50) -> bytes:
    """Its end."""
    return line("run.stopped", run_id, ago_s, agent="a", stop_cause="natural", steps=3)


def left(folder: Path, *lines: bytes) -> Path:
    """The file of a process that wrote these lines and is no more."""
    spool = Spool(folder)
    spool.write(lines)
    path = spool.path
    spool.close()
    assert path is not None
    return path


def taken_in(store: Path, spool: Path, now: datetime = NOW) -> TakenIn:
    """Opens the store and takes the spool in."""
    with Keeper.open(store, DEFAULT_POLICY, now) as keeper:
        taken = take_in(spool, keeper, now)
        keeper.settle(now)
        return taken


def verdicts(store: Path, now: datetime = NOW) -> dict[str, str]:
    """Of each run the verdict and its reason."""
    with Keeper.open(store, DEFAULT_POLICY, now) as keeper:
        keeper.settle(now)
        return {row.run_id: _said(row) for row in keeper.store.rows(limit=None)}


def _said(row: VerdictRow) -> str:
    return f"{row.verdict or 'RUNNING'} {row.reason}"


def records(store: Path) -> list[tuple[str, str]]:
    """Kind and run of every record of a store, as often as it is there."""
    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        return sorted((str(kind), str(run)) for kind, run in keeper.store.ask("SELECT kind, run_id FROM records").rows)


def environment(spool: Path, **more: str) -> dict[str, str]:
    """Of a process that leaves its records in this spool."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "STOPCAUSE_SPOOL": str(spool), **more}


@contextmanager
def process(program: str, spool: Path, *arguments: object, **more: str) -> Iterator[subprocess.Popen[str]]:
    """A process with this program. It is killed at the end."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    env = environment(spool, **more)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=env) as child:
        try:
            yield child
        finally:
            child.kill()


def said_by(child: subprocess.Popen[str]) -> str:
    """Its next line."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


def run(arguments: Sequence[str], spool: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [*STOPCAUSE, *arguments]
    env = environment(spool, **more)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env=env)


def objects(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What it printed into a pipe."""
    assert done.returncode == 0, done.stderr
    return [json.loads(each) for each in done.stdout.splitlines()]
