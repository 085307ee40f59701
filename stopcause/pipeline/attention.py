"""What needs somebody, and in which order. Groups come from verdict rows; waits and windows from the keeper.

Here: the order of the plan, what the stage and the grace time hold back, and what is counted apart. Not here: triage
(what people said about a group), which comes with its own records, and the layout.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from stopcause.classifier.policy import AgentEntry, Policy, Subject
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import NotFoundError
from stopcause.pipeline.keeper import Keeper
from stopcause.render.sentences import action_of
from stopcause.render.views import Apart, Attention, Explained, Group, GroupNote, Revision, RunLine, WaitLine, Window
from stopcause.render.waits import wait_lines
from stopcause.store.rows import VerdictRow

_REFUTED = "receipt_refuted"
_PENDING = "receipt_pending"
_ATTENTION = "attention"
_GROUP_NAME = re.compile(r"[0-9a-f]{4}|[0-9a-f]{6}|[0-9a-f]{12}")
_SHORT_NAME = 4  # a group's, as lists show it; a run's has six
_MINUTE = timedelta(minutes=1)
_MEMORY = timedelta(days=30)  # how far back a group is looked for: older than that it is new again
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


def attend(
    rows: Iterable[VerdictRow],
    policy: Policy,
    now: datetime,
    before: Before = NOTHING_BEFORE,
    *,
    everything: bool = False,
) -> Attention:
    """Group what needs somebody, the most urgent first.

    Args:
        rows: The current row of each run of the window, and of every wait however old.
        policy: Says stages, owners and the grace time.
        now: The time that ages and the grace time count to.
        before: Tells a bounded stop that is new from one that has been seen; without it none is new.
        everything: Whether what is counted apart becomes groups too.
    """
    kept = list(rows)
    sorted_out: dict[str, list[VerdictRow]] = defaultdict(list)
    for row in kept:
        pile = _pile(row, policy, now, before)
        sorted_out[_ATTENTION if everything and pile else pile].append(row)
    needing = _by_fingerprint(sorted_out[_ATTENTION])
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


def _pile(row: VerdictRow, policy: Policy, now: datetime, before: Before) -> str:
    """Where a row goes: attention, one of the piles that are counted apart, or nowhere (the empty word)."""
    if row.verdict == VerdictName.WAITING_UNROUTED:
        waits_since = row.stopped_at or row.last_at  # one that lies ahead, by a clock that does, grants no time
        return "graced" if waits_since <= now < waits_since + policy.defaults.unrouted_grace else _ATTENTION
    if row.verdict == VerdictName.FALSE_COMPLETE:
        return _false_complete(row, policy)
    if row.verdict == VerdictName.BOUNDED_STOP:
        return _ATTENTION if before.anything and row.fingerprint not in before.groups else "seen"
    always = (VerdictName.STUCK, VerdictName.FAILED, VerdictName.UNCERTAIN)
    return _ATTENTION if row.verdict in always else ""


def _false_complete(row: VerdictRow, policy: Policy) -> str:
    if row.reason == _PENDING:
        return "pending"
    if entry_of(row, policy).stage == "observe":
        return "unproven"
    return _ATTENTION if row.contract or row.reason == _REFUTED else "unproven"


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


# From the keeper ------------------------------------------------------------------------------------------------------


def window(now: datetime, span: timedelta, words: str, newest_at: datetime | None) -> Window:
    """What a list covers: `span` back from now, or from the newest record where that is older."""
    end = min(now, newest_at) if newest_at else now
    words = re.sub(r"(?<=\d)(?=[a-z])", " ", words)
    return Window(now=now, span=words, since=end - span, newest_at=newest_at, by_newest=now - end >= _MINUTE)


class Scope(NamedTuple):
    """What a list is about. `everything`: from the first record on, and with what is counted apart otherwise."""

    window: Window
    agent: str | None = None
    verdicts: tuple[VerdictName | None, ...] = ()
    everything: bool = False

    @property
    def since(self) -> datetime | None:
        """From when on; None is from the first record."""
        return None if self.everything else self.window.since


class Found(NamedTuple):
    """What needs somebody, and the rows behind it, the newest first."""

    attention: Attention
    rows: list[VerdictRow]


def rows_of(keeper: Keeper, scope: Scope) -> list[VerdictRow]:
    """The runs of a scope, the newest first."""
    return keeper.store.rows(verdicts=scope.verdicts, agent=scope.agent, since=scope.since, limit=None)


def attention_of(keeper: Keeper, scope: Scope) -> Found:
    """What needs somebody in a scope, and every wait however old. The keeper has been settled as of its `now`."""
    rows = _with_old_waits(keeper, scope)
    before = NOTHING_BEFORE if scope.since is None else _before(keeper, scope, scope.since)
    found = attend(rows, keeper.policy, scope.window.now, before, everything=scope.everything)
    shown = {group.fingerprint for group in found.groups}
    return Found(found, [row for row in rows if row.fingerprint in shown])


def _with_old_waits(keeper: Keeper, scope: Scope) -> list[VerdictRow]:
    rows = rows_of(keeper, scope)
    wanted = scope.verdicts or (VerdictName.WAITING_UNROUTED,)
    if VerdictName.WAITING_UNROUTED in wanted:
        rows += keeper.store.rows(verdicts=(VerdictName.WAITING_UNROUTED,), agent=scope.agent, limit=None)
    return list({(row.run_id, row.attempt): row for row in rows}.values())


def _before(keeper: Keeper, scope: Scope, since: datetime) -> Before:
    bounded = keeper.store.rows(
        verdicts=(VerdictName.BOUNDED_STOP,), agent=scope.agent, since=since - _MEMORY, limit=None
    )
    older = {row.fingerprint for row in bounded if row.opened_at < since}
    if older:
        return Before(anything=True, groups=older)
    return Before(anything=keeper.store.counts().runs > len(keeper.store.rows(since=since, limit=None)))


def wait_lines_of(keeper: Keeper, now: datetime) -> list[WaitLine]:
    """Everything that waits for somebody: what lacks something first, then by how soon it is due."""
    found = [line for facts, verdict in keeper.waits(now) for line in wait_lines(facts, verdict)]
    return sorted(found, key=_wait_order)


def _wait_order(wait: WaitLine) -> tuple[bool, datetime, str]:
    return not wait.missing, wait.since, wait.approval_id or wait.run_id


def explained(keeper: Keeper, name: str, now: datetime) -> Explained:
    """All about a run, or about the newest run of a group.

    Raises:
        NotFoundError: No run or group is called that, or several are; says what was looked for.
    """
    detail = keeper.detail(_run_named(keeper, name, now), now)
    row = detail.history[-1] if detail.history else None
    group = _alike(keeper, row, detail.verdict.group) if row else []
    history = [_revision(each) for each in detail.history if each.attempt == detail.facts.attempt]
    return Explained(detail.run, detail.facts, detail.verdict, history, _note(detail.verdict.group, group))


def _alike(keeper: Keeper, row: VerdictRow, fingerprint: str) -> list[VerdictRow]:
    """The runs of a group, from a while before this one on."""
    since = row.opened_at - _MEMORY
    asked = keeper.store.rows(
        verdicts=(row.verdict,), agent=row.agent, environment=row.environment, since=since, limit=None
    )
    return [each for each in asked if each.fingerprint == fingerprint]


def _run_named(keeper: Keeper, name: str, now: datetime) -> str:
    """The run that a name means. A name of four is a group's first; a longer one is a run's, where one is called so."""
    if not _GROUP_NAME.fullmatch(name):
        return name
    if len(name) > _SHORT_NAME:
        with contextlib.suppress(NotFoundError):
            return keeper.store.find_run(name)
    return _newest_of_group(keeper, name, now - _MEMORY) or _newest_of_group(keeper, name, None) or name


def _newest_of_group(keeper: Keeper, name: str, since: datetime | None) -> str | None:
    """The newest run of the only group whose fingerprint ends so."""
    rows = [row for row in keeper.store.rows(since=since, limit=None) if row.fingerprint.endswith(name)]
    if len({row.fingerprint for row in rows}) != 1:
        return None
    return max(rows, key=lambda row: (row.last_at, row.run_id)).run_id


def _revision(row: VerdictRow) -> Revision:
    return Revision(row.as_of, VerdictName(row.verdict) if row.verdict else None, row.reason)


def _note(fingerprint: str, group: Sequence[VerdictRow]) -> GroupNote | None:
    """How many others ended the same way; none where the run is alone, or is told at another time than its row."""
    return GroupNote(fingerprint, len(group) - 1, min(row.last_at for row in group)) if group[1:] else None


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
