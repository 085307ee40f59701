"""What needs somebody, and in which order. Groups come from verdict rows; waits and windows from the keeper.

Here: the order of the plan, what the stage and the grace time hold back, and what is counted apart. Not here: triage
(what people said about a group), which comes with its own records, and the layout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from stopcause.classifier.policy import AgentEntry, Policy, Subject
from stopcause.classifier.verdict import VerdictName
from stopcause.render.sentences import action_of
from stopcause.render.views import Apart, Attention, Group, RunLine, Window
from stopcause.store.rows import VerdictRow

_REFUTED = "receipt_refuted"
_PENDING = "receipt_pending"
_MINUTE = timedelta(minutes=1)
_ORDER: Final = (
    VerdictName.WAITING_UNROUTED,
    _REFUTED,
    VerdictName.STUCK,
    VerdictName.FAILED,
    VerdictName.FALSE_COMPLETE,
    VerdictName.UNCERTAIN,
    VerdictName.BOUNDED_STOP,
)


class Before(NamedTuple):
    """What the store knew before the window: whether anything, and the groups of bounded stops."""

    anything: bool = False
    groups: Collection[str] = ()


NOTHING_BEFORE = Before()


def attend(rows: Iterable[VerdictRow], policy: Policy, now: datetime, before: Before = NOTHING_BEFORE) -> Attention:
    """Group what needs somebody, the most urgent first.

    Args:
        rows: The current row of each run of the window, and of every wait however old.
        policy: Says stages, owners and the grace time.
        now: The time that ages and the grace time count to.
        before: Tells a bounded stop that is new from one that has been seen; without it none is new.
    """
    kept = list(rows)
    sorted_out: dict[str, list[VerdictRow]] = defaultdict(list)
    for row in kept:
        sorted_out[_pile(row, policy, now, before)].append(row)
    needing = _by_fingerprint(sorted_out["attention"])
    groups = [_group(fingerprint, found, policy, before) for fingerprint, found in needing.items()]
    return Attention(
        groups=tuple(sorted(groups, key=_urgency)),
        runs=len(kept),
        agents=len({row.agent for row in kept}),
        environments=tuple(sorted({row.environment for row in kept if row.environment})),
        unproven=_apart(sorted_out["unproven"]),
        pending=_apart(sorted_out["pending"]),
        graced=_apart(sorted_out["graced"]),
    )


def needs(
    rows: Iterable[VerdictRow], policy: Policy, now: datetime, before: Before = NOTHING_BEFORE
) -> list[VerdictRow]:
    """The rows that `attend` puts into groups, for a list of runs."""
    return [row for row in rows if _pile(row, policy, now, before) == "attention"]


def _pile(row: VerdictRow, policy: Policy, now: datetime, before: Before) -> str:
    """Where a row goes: attention, one of the piles that are counted apart, or nowhere."""
    if row.verdict == VerdictName.WAITING_UNROUTED:
        waits_since = row.stopped_at or row.last_at
        return "graced" if now < waits_since + policy.defaults.unrouted_grace else "attention"
    if row.verdict == VerdictName.FALSE_COMPLETE:
        return _false_complete(row, policy)
    if row.verdict == VerdictName.BOUNDED_STOP:
        return "attention" if before.anything and row.fingerprint not in before.groups else ""
    always = (VerdictName.STUCK, VerdictName.FAILED, VerdictName.UNCERTAIN)
    return "attention" if row.verdict in always else ""


def _false_complete(row: VerdictRow, policy: Policy) -> str:
    if row.reason == _PENDING:
        return "pending"
    proven_by = entry_of(row, policy)
    observed = proven_by.stage == "observe" or row.contract is None
    return "unproven" if observed else "attention"


def entry_of(row: VerdictRow, policy: Policy) -> AgentEntry:
    """What the policy says about the agent of a row."""
    return policy.agent(
        Subject(
            agent=row.agent,
            agent_version=row.agent_version,
            environment=row.environment,
            framework=row.framework,
            model=row.model,
            provider=row.provider,
            service=row.service,
        )
    )


def _by_fingerprint(rows: Iterable[VerdictRow]) -> dict[str, list[VerdictRow]]:
    groups: dict[str, list[VerdictRow]] = defaultdict(list)
    for row in rows:
        groups[row.fingerprint].append(row)
    return groups


def _group(fingerprint: str, rows: Sequence[VerdictRow], policy: Policy, before: Before) -> Group:
    newest = max(rows, key=lambda row: (row.last_at, row.run_id))
    entry = entry_of(newest, policy)
    return Group(
        fingerprint=fingerprint,
        verdict=VerdictName(str(newest.verdict)),
        reason=newest.reason,
        agents=tuple(sorted({row.agent or "-" for row in rows})),
        size=len(rows),
        first=min(row.stopped_at or row.last_at for row in rows),
        last=newest.last_at,
        owner=entry.owner,
        action=action_of(newest.rule),
        stage=entry.stage,
        detail=newest.detail,
        missing=newest.missing,
        run_id=newest.run_id,
        new=before.anything and fingerprint not in before.groups and newest.verdict == VerdictName.BOUNDED_STOP,
    )


def _urgency(group: Group) -> tuple[int, float, str]:
    """The plan's order; inside a place the newest first."""
    place = _REFUTED if group.reason == _REFUTED else group.verdict
    return _ORDER.index(place), -group.last.timestamp(), group.fingerprint


def _apart(rows: Sequence[VerdictRow]) -> Apart:
    until = max((row.judge_again_at for row in rows if row.judge_again_at), default=None)
    return Apart(len(rows), len({row.agent for row in rows}), until)


# Lists ----------------------------------------------------------------------------------------------------------------


def window(now: datetime, span: timedelta, words: str, newest_at: datetime | None) -> Window:
    """What a list covers: `span` back from now, or from the newest record where that is older."""
    end = min(now, newest_at) if newest_at else now
    return Window(now=now, span=words, since=end - span, newest_at=newest_at, by_newest=now - end >= _MINUTE)


def run_lines(rows: Iterable[VerdictRow]) -> list[RunLine]:
    """Rows as lines of a list."""
    return [
        RunLine(
            run_id=row.run_id,
            verdict=VerdictName(row.verdict) if row.verdict else None,
            reason=row.reason,
            agent=row.agent,
            steps=row.steps,
            step_limit=row.step_limit,
            last_at=row.last_at,
            retry=row.retry,
        )
        for row in rows
    ]
