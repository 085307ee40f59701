"""What screens are made of: small values that `pipeline` fills and the other files here lay out.

They stand here, and not in `pipeline`, because an arrow points from there to here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from stopcause.classifier.fold import Facts, Run
from stopcause.classifier.verdict import Verdict, VerdictName
from stopcause.errors import Problem

# Replay


class CaseResult(NamedTuple):
    """A case beside its verdict. `fault` names what falls short: verdict, reason, or history and why."""

    id: str
    name: str  # its file's, where the file is the case
    path: Path
    why: str
    run_id: str
    expected_verdict: VerdictName | None
    expected_reason: str | None
    verdict: VerdictName | None
    reason: str
    rule: str
    stop_cause: str | None
    fault: str | None

    @property
    def ok(self) -> bool:
        """Whether it is as expected."""
        return self.fault is None


class AssertionResult(NamedTuple):
    """An assertion about stop conditions; `fault` says what falls short."""

    id: str
    why: str
    fault: str | None

    @property
    def ok(self) -> bool:
        """Whether it holds."""
        return self.fault is None


class Score(NamedTuple):
    """One verdict over all cases. Precision and recall are 0 to 1, None where nothing was given or expected."""

    verdict: VerdictName
    expected: int
    given: int
    precision: float | None
    recall: float | None


class Replay(NamedTuple):
    """A whole replay."""

    cases: tuple[CaseResult, ...]
    assertions: tuple[AssertionResult, ...]
    scores: tuple[Score, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing falls short."""
        return all(each.ok for each in self.cases) and all(each.ok for each in self.assertions)


# A policy


class Fault(NamedTuple):
    """A problem of a policy with the file that it is in."""

    file: Path
    problem: Problem

    def __str__(self) -> str:
        line = f":{self.problem.line}" if self.problem.line else ""
        return f"{self.file}{line}: {self.problem.place}: {self.problem.message}"


# Lists


class RunLine(NamedTuple):
    """A run in a list. `verdict` is None while it runs."""

    run_id: str
    verdict: VerdictName | None
    reason: str
    agent: str | None
    steps: int | None = None
    step_limit: float | None = None
    last_at: datetime | None = None
    retry: str | None = None


class Window(NamedTuple):
    """What a list covers. `newest_at` is the store's newest record; `by_newest`: the span ends there, not now."""

    now: datetime
    span: str
    since: datetime
    newest_at: datetime | None = None
    by_newest: bool = False


class Group(NamedTuple):
    """Verdicts with one fingerprint. `run_id` is the newest of them; `detail` tells groups of one reason apart."""

    fingerprint: str
    verdict: VerdictName
    reason: str
    agents: tuple[str, ...]
    size: int
    first: datetime
    last: datetime
    owner: str | None
    action: str
    stage: str
    detail: str | None
    missing: tuple[str, ...]
    run_id: str
    new: bool = False


class Apart(NamedTuple):
    """Runs that are counted beside the groups, because they are not attention."""

    runs: int = 0
    agents: int = 0
    until: datetime | None = None


class Attention(NamedTuple):
    """What needs somebody, in order, and what is left out and why."""

    groups: tuple[Group, ...]
    runs: int
    agents: int
    environments: tuple[str, ...]
    unproven: Apart  # finished without proof where the stage is observe, or with no contract
    pending: Apart  # a receipt may still come
    graced: Apart  # waits that are younger than `unrouted_grace`


class WaitLine(NamedTuple):
    """Something that a run waits for. `waits_for` is a kind, with the tool where there is one."""

    approval_id: str | None
    run_id: str
    verdict: VerdictName
    agent: str | None
    waits_for: str
    owner: str | None
    escalate: str | None  # who is next, once it is overdue
    since: datetime
    deadline: datetime | None
    expires_at: datetime | None
    decision: str | None
    decided_at: datetime | None
    actor: str | None
    resume_token: str | None
    missing: tuple[str, ...]


# One run


class Revision(NamedTuple):
    """A verdict that a run had, and since when."""

    as_of: datetime
    verdict: VerdictName | None
    reason: str


class GroupNote(NamedTuple):
    """The other runs of a run's group; `first` is the oldest of those that were looked at."""

    fingerprint: str
    others: int
    first: datetime


class Explained(NamedTuple):
    """A verdict with everything that it points at."""

    run: Run
    facts: Facts
    verdict: Verdict
    history: Sequence[Revision] = ()
    group: GroupNote | None = None
