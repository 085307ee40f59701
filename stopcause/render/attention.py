"""What needs somebody, as a screen: two lines a group, what it is and what to do. And what was said, where it was.

Waits without a route are one row, because `waiting` lists them. Also here: the JSON beside a run that says what holds
of its group, and the screen of `triage`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from stopcause.classifier.verdict import VerdictName
from stopcause.render.caller import Hint
from stopcause.render.pen import WIDTH, Pen, age, cells, count, cut, fit, shared_widths, short_age
from stopcause.render.sentences import short_action
from stopcause.render.tables import window_line
from stopcause.render.views import Apart, Attention, Group, Marks, Said, Window

MOST = 20  # groups on a screen; the others are counted
_SECOND_LINE = 7  # where the second line of a group begins
_VERDICT = 20
_THOUSAND, _MILLION = 1_000, 1_000_000
_RUNS, _NAME = 4, 6  # cells of a count, and of a group's name
_TITLES = ("AGENT", "REASON", "OWNER")
_HIDING = ("acknowledged", "snoozed", "resolved")


_Looks = tuple[VerdictName, str | None, str, str | None]


class _Row(NamedTuple):
    """The cells of a group, and what its second line says: facts, then what to do."""

    name: str
    verdict: VerdictName
    agent: str
    reason: str
    runs: int
    last: str
    owner: str
    facts: str
    action: str


def attention_screen(found: Attention, window: Window, pen: Pen, *, everything: bool = False) -> list[str]:
    """What needs somebody: what it covers, the groups, what is left out and why.

    `everything`: every group, also those that are hidden, with what was said of them.
    """
    head = window_line(window, found.runs, found.agents, found.environments, pen)
    return [head, "", *attention_table(found, window, pen, everything=everything)]


def attention_table(found: Attention, window: Window, pen: Pen, *, everything: bool = False) -> list[str]:
    """What needs somebody, two lines a group; the waits without a route are one."""
    waits, others = _parted(found.groups)
    hidden = found.hidden if everything else ()
    shown = others if everything else others[:MOST]
    rows = [_wait_row(waits, window)] if waits else []
    twins = _twins((*shown, *hidden))
    rows += [_group_row(group, window, pen, twins) for group in (*shown, *hidden)]
    if not rows:
        return [f"Nothing needs you.{_hidden(found)}", *_apart(found, pen)]
    more = _more(others[len(shown) :])
    total = _total(waits, others) if waits or others else "Nothing needs you."
    return [*_lay_out(rows, pen), *more, "", total + _hidden(found, is_shown=bool(hidden)), *_apart(found, pen)]


def attention_commands(found: Attention) -> list[Hint]:
    """What to paste next: the most urgent group's newest run, a word about it, and the waits where there are some."""
    waits, others = _parted(found.groups)
    last = Hint(("waiting",), "who has to answer what") if waits else Hint(("runs",), "every run")
    first = others[0] if others else None
    if first is None:
        return [last]
    ack = Hint(("triage", "ack", first.name, "--reason", "known_cause"), "away until it gets worse")
    return [Hint(("explain",), "the newest run of that group", first.name), ack, last]


def _parted(groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """The waits without a route, and the others."""
    waits = [group for group in groups if group.verdict is VerdictName.WAITING_UNROUTED]
    return waits, [group for group in groups if group.verdict is not VerdictName.WAITING_UNROUTED]


# Rows -----------------------------------------------------------------------------------------------------------------


def _wait_row(waits: Sequence[Group], window: Window) -> _Row:
    agents = sorted({group.agent or "-" for group in waits})
    who = agents[0] if len(agents) == 1 else count(len(agents), "agent")
    number = sum(group.size for group in waits)
    reason = waits[0].reason if len(waits) == 1 else "see waiting"
    oldest = f"oldest {age(window.now - min(group.first for group in waits))}"
    last = short_age(window.now - max(group.last for group in waits))
    action = short_action(waits[0].action)
    return _Row("-", waits[0].verdict, who, reason, number, last, _owner(waits), oldest, action)


def _owner(groups: Sequence[Group]) -> str:
    owners = {group.owner for group in groups}
    return (owners.pop() or "-") if len(owners) == 1 else "several"


def _twins(groups: Sequence[Group]) -> set[_Looks]:
    """What several groups have in common on a screen although they differ in environment or cause."""
    seen = Counter(map(_looks, groups))
    return {looks for looks, number in seen.items() if number > 1}


def _looks(group: Group) -> _Looks:
    return group.verdict, group.agent, group.reason, group.detail


def _group_row(group: Group, window: Window, pen: Pen, twins: Collection[_Looks]) -> _Row:
    return _Row(
        name=group.name,
        verdict=group.verdict,
        agent=group.agent or "-",
        reason=group.reason,
        runs=group.size,
        last=short_age(window.now - group.last),
        owner=group.owner or "-",
        facts=_facts(group, window.now, pen, where=_looks(group) in twins),
        action="" if group.hidden else short_action(group.action),
    )


def _facts(group: Group, now: datetime, pen: Pen, *, where: bool) -> str:
    """What is worth knowing before what to do: marks, what was said, what its runs share."""
    if group.said and group.hidden:
        return said_words(group.said, now, pen)
    ended = f"was {group.said.action}: {group.said.over}" if group.said and group.said.over != "regressed" else ""
    cause = group.stop_cause if group.stop_cause != group.reason else None
    told = (*((group.environment, cause) if where else ()), mark_words(group.marks), ended, _detail(group))
    return ", ".join(part for part in told if part)


def mark_words(marks: Marks) -> str:
    """`regressed in 2.4.1 (resolved in 2.3.9)`, `escalating, 5 x its usual`, `new`."""
    parts = []
    if marks.regressed:
        version = f" in {marks.regressed.version}" if marks.regressed.version else ""
        before = f" (resolved in {marks.regressed.resolved_in})" if marks.regressed.resolved_in else ""
        parts.append(f"regressed{version}{before}")
    if marks.escalating is not None:
        parts.append(f"escalating, {short_count(round(marks.escalating))} x its usual")
    is_new = marks.new and not marks.regressed  # it was there before somebody resolved it
    return ", ".join([*parts, *["new"] * is_new])


def said_words(said: Said, now: datetime, pen: Pen) -> str:
    """What was said, by whom and when, and until when it holds."""
    version = f" in {said.in_version}" if said.in_version else ""
    by = f" by {said.actor}" if said.actor else ""
    why = ": " + " ".join(part for part in (said.reason, said.ticket) if part) if said.reason or said.ticket else ""
    return f"{said.action}{version} {age(now - said.at)} ago{by}{why}{_until(said, now, pen)}"


def _until(said: Said, now: datetime, pen: Pen) -> str:
    if said.over:
        return f"; {said.over}"
    runs = f", or {count(said.runs, 'more run')}" if said.runs is not None else ""
    if said.until is None:
        return runs
    near = said.until - now < timedelta(days=1)
    at = pen.clock(said.until) if near else f"{said.until.astimezone(pen.zone):%m-%d}"
    return f", until {at}{runs}"


def _detail(group: Group) -> str:
    """What the runs of a group share beside the reason."""
    if not group.detail or group.detail == "/":
        return ""
    if group.verdict is VerdictName.UNCERTAIN:
        return f"all on {group.detail.rstrip('/').replace('/', ' ').strip()}"
    words = {VerdictName.FAILED: "", VerdictName.FALSE_COMPLETE: "contract "}
    return f"{words.get(group.verdict, 'condition ')}{group.detail}"


def _lay_out(rows: Sequence[_Row], pen: Pen) -> list[str]:
    told = [_TITLES, *((row.agent, row.reason, row.owner) for row in rows)]
    needs = [max(map(cells, column)) for column in zip(*told, strict=True)]
    agent, reason, owner = shared_widths(needs, (13, 15, 9), (1, 0, 2))
    titles = f"{fit(_TITLES[0], agent)}  {fit(_TITLES[1], reason)}  RUNS  LAST  {_TITLES[2]}"
    lines = [f"{'GROUP':<7}{'VERDICT':<{_VERDICT}}{titles}"]
    for row in rows:
        ends = f"{short_count(row.runs):>{_RUNS}}  {row.last:>4}  {_owner_cell(row.owner, owner)}"
        head = f"{name_cell(row.name)}{pen.verdict(row.verdict, _VERDICT)}"
        lines.append(f"{head}{fit(row.agent, agent)}  {fit(row.reason, reason)}  {ends}")
        lines.append(" " * _SECOND_LINE + cut(_second(row, reason), WIDTH - _SECOND_LINE))
    return lines


def _second(row: _Row, width: int) -> str:
    """A reason that was cut is there whole, then the facts, then what to do."""
    facts = [part for part in ("" if cells(row.reason) <= width else row.reason, row.facts) if part]
    return ". ".join(part for part in (", ".join(facts), row.action) if part)


def name_cell(name: str) -> str:
    """A group's name in the first column: its last six letters at most, set in by one where there is room."""
    shown = name[-_NAME:]
    return f"{shown if len(shown) == _NAME else f' {shown}':<{_NAME + 1}}"


def short_count(number: int) -> str:
    """A count in four cells at most: `9999`, `12k`, `3M`."""
    if number < 10 * _THOUSAND:
        return str(number)
    return f"{number // _THOUSAND}k" if number < _MILLION else f"{number // _MILLION}M"


def _owner_cell(owner: str, width: int) -> str:
    """An owner that is too long goes without the word that says what kind it is."""
    return owner if cells(owner) <= width else cut(owner.rpartition(":")[2], width)


# What is left out -----------------------------------------------------------------------------------------------------


def _more(left: Sequence[Group]) -> list[str]:
    if not left:
        return []
    runs = count(sum(group.size for group in left), "run")
    return ["", f"... and {count(len(left), 'more group')}, {runs}: --agent for fewer, --all for all"]


def _total(waits: Sequence[Group], others: Sequence[Group]) -> str:
    runs = sum(group.size for group in (*waits, *others))
    open_waits = sum(group.size for group in waits)
    said = [count(len(others), "group")] if others else []
    said += [count(open_waits, "wait")] if open_waits else []
    return f"{' and '.join(said)}, {count(runs, 'run')}."


def _hidden(found: Attention, *, is_shown: bool = False) -> str:
    actions = [group.said.action for group in found.hidden if group.said]
    counted = [f"{actions.count(action)} {action}" for action in _HIDING if action in actions]
    head, tail = (" Without --all hidden: ", "") if is_shown else (" Hidden: ", " (--all)")
    return f"{head}{', '.join(counted)}{tail}" if counted else ""


def _apart(found: Attention, pen: Pen) -> list[str]:
    lines = []
    if found.unproven.runs:
        lines.append(f"{_of(found.unproven)} finished without proof (observe, no contract)")
    if found.pending.runs:
        until = f", settled by {pen.clock(found.pending.until)}" if found.pending.until else ""
        lines.append(f"{count(found.pending.runs, 'run')} finished, receipt pending{until}")
    if found.graced.runs:
        lines.append(f"{count(found.graced.runs, 'wait')} too young to need anybody (unrouted_grace)")
    heads = ("Not counted: ", *[" " * 13] * len(lines))
    apart = [cut(head + line, WIDTH) for head, line in zip(heads, lines, strict=False)]
    older = f"Older: {count(found.older, 'run')} of the last 30 d needed somebody, too: --since 30d"
    return [*apart, *[older] * bool(found.older)]


def _of(apart: Apart) -> str:
    return f"{count(apart.runs, 'run')} of {count(apart.agents, 'agent')}"


# For pipes ------------------------------------------------------------------------------------------------------------


def group_state(group: Group) -> dict[str, Any]:
    """What holds of a group, beside each of its runs. Others script against it."""
    return {
        "new": group.marks.new,
        "escalating": group.marks.escalating and round(group.marks.escalating, 1),
        "regressed": group.marks.regressed and group.marks.regressed._asdict(),
        "owner": group.owner,
        "hidden": group.hidden,
        "triage": group.said and {**group.said._asdict(), "over": group.said.over or None},
    }
