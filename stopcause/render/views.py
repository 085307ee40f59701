"""What screens are made of: small values that `pipeline` fills and the other files here lay out.

They stand here, and not in `pipeline`, because an arrow points from there to here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """An assertion that is no verdict; `fault` says what falls short, `about` what such assertions are called."""

    id: str
    why: str
    fault: str | None
    about: str = "stop-condition assertions"

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
    """A whole replay. `unreadable`: what is wrong with each file that could not be read."""

    cases: tuple[CaseResult, ...]
    assertions: tuple[AssertionResult, ...]
    scores: tuple[Score, ...]
    unreadable: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing of what was read falls short."""
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


class Listed(NamedTuple):
    """A list of runs. `lines` are the newest; `verdicts` and `agents` count all that match, `older` those left out."""

    lines: tuple[RunLine, ...]
    verdicts: dict[VerdictName | None, int]
    agents: int
    older: int


class Said(NamedTuple):
    """What somebody said about a group. `until`, or so many more `runs`, end it; `over`: why it hides it no longer."""

    action: str
    at: datetime
    actor: str | None
    reason: str | None = None
    ticket: str | None = None
    until: datetime | None = None
    runs: int | None = None
    in_version: str | None = None
    over: str = ""


class Regressed(NamedTuple):
    """That a group is back after its resolution: the version of its newest run, and what was said to mend it."""

    version: str | None
    resolved_in: str | None
    resolved_at: datetime


class Marks(NamedTuple):
    """What is worth saying of a group. `escalating`: how many times its usual rate; None where it is near that."""

    new: bool = False
    escalating: float | None = None
    regressed: Regressed | None = None


class Group(NamedTuple):
    """Verdicts with one fingerprint. `run_id` is the newest of them; `detail` tells groups of one reason apart.

    `name` is the end of the fingerprint that is this group's alone among those of the list. `due` is the first
    moment at which one of its waits is due.
    """

    fingerprint: str
    name: str
    verdict: VerdictName
    reason: str
    stop_cause: str | None
    agent: str | None
    environment: str | None
    size: int
    first: datetime
    last: datetime
    owner: str | None
    action: str
    stage: str
    detail: str | None
    missing: tuple[str, ...]
    run_id: str
    due: datetime | None = None
    marks: Marks = Marks()
    said: Said | None = None

    @property
    def hidden(self) -> bool:
        """Whether what was said about it still keeps it out of sight."""
        return self.said is not None and not self.said.over


class Apart(NamedTuple):
    """Runs that are counted beside the groups, because they are not attention."""

    runs: int = 0
    agents: int = 0
    until: datetime | None = None


class TriageLine(NamedTuple):
    """What was said of one group, as it was kept. `due`: the moment of a wait that ends it sooner than was asked."""

    name: str
    verdict: VerdictName
    agent: str | None
    reason: str
    runs: int
    said: Said
    owner: str | None = None
    due: datetime | None = None


class Attention(NamedTuple):
    """What needs somebody, in order, and what is left out and why. `hidden`: what was said about, out of sight."""

    groups: tuple[Group, ...]
    hidden: tuple[Group, ...]
    runs: int
    agents: int
    environments: tuple[str, ...]
    unproven: Apart  # finished without proof where the stage is observe, or with no contract
    pending: Apart  # a receipt may still come
    graced: Apart  # waits that are younger than `unrouted_grace`
    older: int = 0  # runs that needed somebody before the window, in the last 30 days


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


class Difference(NamedTuple):
    """A value that the runs of a group have far more often than the agent's other runs of the same time."""

    field: str
    value: str
    inside: int
    of_inside: int
    outside: int
    of_outside: int


class GroupNote(NamedTuple):
    """The group of a run: how many runs there are beside it, the oldest and the newest, and what is worth saying."""

    fingerprint: str
    others: int
    first: datetime
    last: datetime | None = None
    owner: str | None = None
    marks: Marks = Marks()
    said: Said | None = None
    differs: tuple[Difference, ...] = ()


class Breach(NamedTuple):
    """The rule of AG-UI that a finding is of: whose it is, and how much it weighs, in words."""

    rule: str
    side: str
    level: str


NO_BREACHES: Mapping[str, Breach] = {}


class Explained(NamedTuple):
    """A verdict with everything that it points at. `breaches`: of its findings those of AG-UI, by their codes."""

    run: Run
    facts: Facts
    verdict: Verdict
    history: Sequence[Revision] = ()
    group: GroupNote | None = None
    breaches: Mapping[str, Breach] = NO_BREACHES
