"""What a thread waits for, or how it ended: the thread verdict. Derived from its runs, never stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from stopcause.agui.findings import Finding
from stopcause.agui.values import Link, RunSeen, Thread
from stopcause.agui.words import State
from stopcause.classifier.approvals import Wait
from stopcause.classifier.policy import Policy
from stopcause.classifier.verdict import Missing, Verdict, VerdictName
from stopcause.receipts.model import Record


class OpenWait(NamedTuple):
    """An interrupt that its thread still waits for. Ids are safe to show."""

    interrupt_id: str
    run_id: str
    state: State
    missing: tuple[Missing, ...]
    wait: Wait | None


class ThreadVerdict(NamedTuple):
    """What an operator should believe of a thread. `run_id` is its latest run. `verdict` is None while that runs."""

    thread_id: str
    verdict: VerdictName | None
    reason: str
    open: tuple[OpenWait, ...]
    run_id: str | None
    findings: tuple[Finding, ...]


class Judged(NamedTuple):
    """Runs by what their records say: verdicts and waits, by run id as records have it."""

    verdicts: Mapping[str, Verdict]
    waits: Mapping[str, tuple[Wait, ...]]


def judge_runs(records: Iterable[Record], policy: Policy, now: datetime) -> Judged:
    """The verdict on every run among the records, and its waits."""
    return Judged({}, {})


def judge_thread(
    thread: Thread, runs: Sequence[RunSeen], links: Mapping[str, Link], judged: Judged
) -> ThreadVerdict:
    """The thread's verdict. `runs` are its runs as they ended, `links` by given run id."""
    return ThreadVerdict(thread.id, None, "running", (), None, ())
