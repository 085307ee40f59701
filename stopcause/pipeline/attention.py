"""What needs somebody, and in which order. Groups come counted from the store; what was said of them from `triage`.

Here: the order of the plan, what the stage, the grace time and people's words hold back, and what is counted apart.
Also the other questions of lists: the newest runs, the waits, one run with its group. Not here: the layout.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from stopcause.classifier.verdict import VerdictName
from stopcause.errors import NotFoundError
from stopcause.pipeline import agui_rules, groups, triage
from stopcause.pipeline.groups import DAY_ONE, Asked, Facts, Found, Rate
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.triage import Standing
from stopcause.render.sentences import action_of
from stopcause.render.views import (
    Apart,
    Attention,
    Explained,
    Group,
    GroupNote,
    Listed,
    Marks,
    Revision,
    RunLine,
    WaitLine,
    Window,
)
from stopcause.render.waits import wait_lines
from stopcause.store.columns import naive
from stopcause.store.queries import text
from stopcause.store.rows import VerdictRow

_REFUTED = "receipt_refuted"
_ATTENTION, _BOUNDED = "attention", "bounded"
_SHORT_NAME = 4  # a group's, as lists show it; a run's has six
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_ORDER: Final = (
    VerdictName.WAITING_UNROUTED,
    _REFUTED,
    VerdictName.STUCK,
    VerdictName.FAILED,
    VerdictName.FALSE_COMPLETE,
    VerdictName.UNCERTAIN,
    VerdictName.BOUNDED_STOP,
)
_NO_MARKS, _NOTHING_SAID = Marks(), Standing()


# What a list is about -------------------------------------------------------------------------------------------------


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
    def since(self) -> datetime:
        """From when on."""
        return DAY_ONE if self.everything else self.window.since

    @property
    def asked(self) -> Asked:
        """The same as a question to the store."""
        now, newest_at = self.window.now, self.window.newest_at
        return Asked(
            since=self.since,
            marked=self.window.since,
            span=(min(now, newest_at) if newest_at else now) - self.window.since,
            now=now,
            verdicts=tuple(str(each or "") for each in self.verdicts),
            agent=self.agent,
        )


# Runs -----------------------------------------------------------------------------------------------------------------


def rows_of(keeper: Keeper, scope: Scope, most: int | None = None) -> list[VerdictRow]:
    """The runs of a scope, the newest first, as many as are printed."""
    return keeper.store.rows(verdicts=scope.verdicts, agent=scope.agent, since=scope.since, limit=most)


def listed(keeper: Keeper, scope: Scope, rows: Sequence[VerdictRow]) -> Listed:
    """The rows as a list, with how many runs there are of each verdict, and how many are older than the list."""
    asked = scope.asked
    chosen = {"since": naive(asked.since), "verdicts": list(asked.verdicts), "agent": asked.agent}
    verdicts: Counter[VerdictName | None] = Counter()
    agents, older = set(), 0
    for verdict, agent, is_older, runs in keeper.store.ask(text("run_counts"), chosen).rows:
        if is_older:
            older += runs
        else:
            verdicts[VerdictName(verdict) if verdict else None] += runs
            agents.add(agent)
    return Listed(tuple(run_lines(rows)), dict(verdicts), len(agents), older)


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


# Attention ------------------------------------------------------------------------------------------------------------


def attention_of(keeper: Keeper, scope: Scope) -> Attention:
    """What needs somebody in a scope, and every wait however old. The keeper has been settled as of its `now`."""
    asked, now = scope.asked, scope.window.now
    found = _merged(groups.found(keeper, asked)) if scope.everything else groups.found(keeper, asked)
    needing = [each for each in found if each.pile in (_ATTENTION, _BOUNDED)]
    marked = _marks(keeper, needing, asked)
    stands = triage.standings(keeper, {each.fingerprint: each.due for each in needing}, now)
    names = groups.short_names({each.fingerprint for each in found})
    made = [
        _group(each, names[each.fingerprint], marked[each.fingerprint], stands.get(each.fingerprint, _NOTHING_SAID))
        for each in needing
    ]
    kept = sorted((each for each in made if scope.everything or _needs_somebody(each)), key=_urgency)
    covered = groups.totals(keeper, asked)
    return Attention(
        groups=tuple(each for each in kept if not each.hidden),
        hidden=tuple(each for each in kept if each.hidden),
        runs=covered.runs,
        agents=covered.agents,
        environments=covered.environments,
        unproven=_apart(found, "unproven"),
        pending=_apart(found, "pending"),
        graced=_apart(found, "graced"),
        older=0 if scope.everything else groups.older(keeper, asked),
    )


def _merged(found: Iterable[Found]) -> list[Found]:
    """Every group whole and in sight, whatever becomes of its runs otherwise."""
    whole: dict[str, Found] = {}
    for each in found:
        other = whole.get(each.fingerprint)
        whole[each.fingerprint] = each if other is None else _together(each, other)
    return [each._replace(pile=_ATTENTION) for each in whole.values()]


def _together(one: Found, other: Found) -> Found:
    newest = max(one, other, key=lambda each: (each.last_at, each.run_id))
    dues = [each.due for each in (one, other) if each.due]
    return newest._replace(
        size=one.size + other.size,
        timely=one.timely + other.timely,
        first_at=min(one.first_at, other.first_at),
        due=min(dues, default=None),
    )


def _needs_somebody(group: Group) -> bool:
    """A bound that fired as it usually does needs nobody."""
    is_bounded = group.verdict is VerdictName.BOUNDED_STOP
    return not is_bounded or group.marks.new or group.marks.escalating is not None


def _marks(keeper: Keeper, found: Sequence[Found], asked: Asked) -> dict[str, Marks]:
    rates = groups.rates(keeper, [each.fingerprint for each in found], asked) if found else None
    if rates is None:
        return {each.fingerprint: _NO_MARKS for each in found}
    return {each.fingerprint: _marked(each.timely, rates[each.fingerprint]) for each in found}


def _marked(timely: int, rate: Rate) -> Marks:
    return Marks(new=timely > 0 and not rate.known, escalating=groups.escalation(timely, rate.usual))


def _group(found: Found, name: str, marks: Marks, stands: Standing) -> Group:
    return Group(
        fingerprint=found.fingerprint,
        name=name,
        verdict=VerdictName(found.verdict),
        reason=found.reason,
        stop_cause=found.stop_cause,
        agent=found.agent,
        environment=found.environment,
        size=found.size,
        first=found.first_at,
        last=found.last_at,
        owner=stands.owner or found.owner,
        action=action_of(found.rule),
        stage=found.stage,
        detail=found.detail,
        missing=found.missing,
        run_id=found.run_id,
        due=found.due,
        marks=marks._replace(regressed=stands.regressed),
        said=stands.said,
    )


def _urgency(group: Group) -> tuple[int, float, str]:
    """The plan's order; inside a place the newest first."""
    place = _REFUTED if group.reason == _REFUTED else group.verdict
    return _ORDER.index(place), -group.last.timestamp(), group.fingerprint


def _apart(found: Iterable[Found], pile: str) -> Apart:
    piled = [each for each in found if each.pile == pile]
    until = max((each.again_at for each in piled if each.again_at), default=None)
    return Apart(sum(each.size for each in piled), len({each.agent for each in piled}), until)


def rows_behind(keeper: Keeper, scope: Scope, shown: Sequence[Group]) -> Iterator[VerdictRow]:
    """The runs of these groups in a scope, the newest first."""
    return groups.rows_of(keeper, [each.fingerprint for each in shown], scope.since)


def chosen(keeper: Keeper, scope: Scope, agent: str | None, *, hidden: bool) -> list[Group]:
    """The groups that need somebody in a scope, of agents whose name has this pattern; `hidden`: the others too."""
    found = attention_of(keeper, scope)
    every = (*found.groups, *found.hidden) if hidden else found.groups
    return [each for each in every if agent is None or fnmatchcase(each.agent or "", agent)]


# Waits ----------------------------------------------------------------------------------------------------------------


def wait_lines_of(keeper: Keeper, now: datetime) -> list[WaitLine]:
    """Everything that waits for somebody: what lacks something first, then by how soon it is due."""
    found = [line for facts, verdict in keeper.waits(now) for line in wait_lines(facts, verdict)]
    return sorted(found, key=_wait_order)


def _wait_order(wait: WaitLine) -> tuple[bool, datetime, str]:
    return not wait.missing, wait.since, wait.approval_id or wait.run_id


# One run --------------------------------------------------------------------------------------------------------------


def explained(keeper: Keeper, name: str, now: datetime) -> Explained:
    """All about a run, or about the newest run of a group.

    Raises:
        NotFoundError: No run or group is called that, or several are; says what was looked for.
    """
    run_id, by_group = _run_named(keeper, name, now)
    detail = keeper.detail(run_id, now)
    history = [_revision(each) for each in detail.history if each.attempt == detail.facts.attempt]
    note = _note(keeper, detail.verdict.group, now, always=by_group)
    breaches = agui_rules.breaches(detail.run, detail.verdict)
    return Explained(detail.run, detail.facts, detail.verdict, history, note, breaches)


def _run_named(keeper: Keeper, name: str, now: datetime) -> tuple[str, bool]:
    """The run that a name means, and whether it is a group's newest.

    A name of four is a group's first; a longer one is a run's, where one is called so.
    """
    if not groups.NAME.fullmatch(name):
        return name, False
    if len(name) > _SHORT_NAME:
        with contextlib.suppress(NotFoundError):
            return keeper.store.find_run(name), False
    called = groups.called(keeper, name, now)
    if not called:
        return name, False
    fingerprint = groups.only(called, name)
    return groups.facts_of(keeper, [fingerprint], now)[fingerprint].run_id, True


def _revision(row: VerdictRow) -> Revision:
    return Revision(row.as_of, VerdictName(row.verdict) if row.verdict else None, row.reason)


def _note(keeper: Keeper, fingerprint: str, now: datetime, *, always: bool) -> GroupNote | None:
    """The run's group; none where the run is alone, nothing was said of it, and nobody asked for the group.

    There is none either where the run is told at another time than its row.
    """
    group = groups.facts_of(keeper, [fingerprint], now).get(fingerprint)
    if group is None:
        return None
    stands = triage.standings(keeper, {fingerprint: group.due}, now).get(fingerprint, _NOTHING_SAID)
    if not (always or group.size > 1 or stands.said or stands.owner):
        return None
    needs = group.verdict in _ORDER
    return GroupNote(
        fingerprint=fingerprint,
        others=group.size - 1,
        first=group.first_at,
        last=group.last_at,
        owner=stands.owner or group.owner,
        marks=_marks_of(keeper, group, now)._replace(regressed=stands.regressed) if needs else _NO_MARKS,
        said=stands.said,
        differs=groups.differences(keeper, group, now) if needs else (),
    )


def _marks_of(keeper: Keeper, group: Facts, now: datetime) -> Marks:
    """The marks of one group over the last day of runs, as the list shows them that covers a day."""
    covered = window(now, _DAY, "", keeper.store.newest_at(groups.latest(now, keeper.policy)))
    scope = Scope(covered, group.agent, (VerdictName(group.verdict),))
    same = [each for each in groups.found(keeper, scope.asked) if each.fingerprint == group.fingerprint]
    return _marks(keeper, same, scope.asked)[group.fingerprint] if same else _NO_MARKS
