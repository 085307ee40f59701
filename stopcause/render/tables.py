"""Lists: runs, what needs somebody, the rules. Lines of text, none wider than 80 columns.

A cell is never wrapped: it is cut with an ellipsis. Two lines a group: what it is, then what to do.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from stopcause.classifier import rules as cards
from stopcause.classifier.verdict import Verdict, VerdictName
from stopcause.render.caller import Hint
from stopcause.render.pen import (
    RUNNING,
    WIDTH,
    Pen,
    age,
    cells,
    count,
    cut,
    fit,
    paragraph,
    shared_widths,
    short_age,
    short_names,
)
from stopcause.render.sentences import short_action
from stopcause.render.views import Apart, Attention, Group, RunLine, Window

_SECOND_LINE = 7  # where the second line of a group begins
_VERDICT = 20
_RUN_ROOM, _AGENT = 17, 10  # what an id may take, and what an agent's name keeps
_STEPS = 5
_AS_OF = 30  # the end of a first line: the time and its offset


# Runs -----------------------------------------------------------------------------------------------------------------


def window_line(window: Window, runs: int, agents: int, environments: Sequence[str], pen: Pen) -> str:
    """The first line of a list: what it covers, and as of when."""
    last = f"last {window.span} of records" if window.by_newest else f"last {window.span}"
    said = f"{last if window.span else 'all'}: {count(runs, 'run')} of {count(agents, 'agent')}."
    head = f"{environments[0]}, {said}" if len(environments) == 1 else ""
    if not head or cells(head) > WIDTH - _AS_OF:
        head = said[0].upper() + said[1:]
    return f"{cut(head, WIDTH - _AS_OF)} As of {pen.time(window.now)}"


def runs_screen(lines: Sequence[RunLine], window: Window, pen: Pen, *, most: int | None = None) -> list[str]:
    """A list of runs: what it covers, the newest `most` of them, how many got which verdict."""
    agents = {line.agent for line in lines}
    head = window_line(window, len(lines), len(agents), (), pen)
    if not lines:
        return [head, "", "No run matches."]
    shown = lines if most is None else lines[:most]
    counted = counts_lines([line.verdict for line in lines])
    if len(shown) < len(lines):
        counted.append(f"Shown: the newest {len(shown)}; --all has every one")
    return [head, "", *runs_table(shown, window, pen), "", *counted]


def runs_table(lines: Sequence[RunLine], window: Window, pen: Pen) -> list[str]:
    """Runs, one a line, in the order in which they come."""
    rows = [(line.run_id, line.agent, line.reason) for line in lines]
    last = [short_age(window.now - line.last_at) if line.last_at else "-" for line in lines]
    ends = [f"{_steps(line):>7}{at:>6}" for line, at in zip(lines, last, strict=True)]
    return _run_rows(rows, [line.verdict for line in lines], (f"{'STEPS':>7}{'LAST':>6}", *ends), pen)


def _run_rows(
    rows: Sequence[tuple[str, str | None, str]], verdicts: Sequence[VerdictName | None], ends: Sequence[str], pen: Pen
) -> list[str]:
    """A title, then a line for each run: its name, verdict, agent and reason, and what stands at the end."""
    names = short_names([run_id for run_id, _agent, _reason in rows], _RUN_ROOM)
    told = [("RUN", "AGENT", "REASON"), *((names[run_id], agent or "-", reason) for run_id, agent, reason in rows)]
    needs = [max(map(cells, column)) for column in zip(*told, strict=True)]
    run = needs[0]  # it has to be pasted: others are cut, it is not
    rest = WIDTH - run - _VERDICT - len(ends[0]) - 4
    agent, reason = shared_widths(needs[1:], (_AGENT, rest - _AGENT), (1, 0))
    lines = []
    for number, ((name, who, why), end) in enumerate(zip(told, ends, strict=True)):
        verdict = pen.verdict(verdicts[number - 1], _VERDICT) if number else f"{'VERDICT':<{_VERDICT}}"
        lines.append(f"{fit(name, run)}  {verdict}{fit(who, agent)}  {fit(why, reason)}{end}")
    return lines


def _steps(line: RunLine) -> str:
    if line.steps is None:
        return "-"
    both = f"{line.steps}/{line.step_limit:.0f}" if line.step_limit else str(line.steps)
    if len(both) <= _STEPS:
        return both
    return str(line.steps) if line.steps < 10**_STEPS else f"{line.steps:.0e}".replace("+0", "")


def verdicts_table(verdicts: Sequence[Verdict], pen: Pen) -> list[str]:
    """Verdicts of runs that are in no store, one a line."""
    rows = [(each.run_id, each.agent, each.reason) for each in verdicts]
    ends = [f"  {'RETRY':<11}", *(f"  {each.retry:<11}" for each in verdicts)]
    table = _run_rows(rows, [each.verdict for each in verdicts], ends, pen)
    return [*(line.rstrip() for line in table), "", *counts_lines([each.verdict for each in verdicts])]


def counts_lines(names: Sequence[VerdictName | None]) -> list[str]:
    """How many runs got which verdict."""
    found = [(name, sum(each is name for each in names)) for name in (*VerdictName, None)]
    said = ", ".join(f"{number}\N{NO-BREAK SPACE}{name or RUNNING}" for name, number in found if number)
    head = f"{count(len(names), 'run')}: "
    lines = paragraph(head, said, len(head)) if said else ["No run."]
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


# Attention ------------------------------------------------------------------------------------------------------------


def attention_screen(found: Attention, window: Window, pen: Pen) -> list[str]:
    """What needs somebody: what it covers, the groups, what is left out and why."""
    head = window_line(window, found.runs, found.agents, found.environments, pen)
    return [head, "", *attention_table(found, window, pen)]


def attention_table(found: Attention, window: Window, pen: Pen) -> list[str]:
    """What needs somebody, two lines a group; the waits without a route are one."""
    waits = [group for group in found.groups if group.verdict is VerdictName.WAITING_UNROUTED]
    others = [group for group in found.groups if group.verdict is not VerdictName.WAITING_UNROUTED]
    rows = [_wait_row(waits, window)] if waits else []
    rows += [_group_row(group, others, window) for group in others]
    if not rows:
        return [
            "Nothing needs you.",
            *_apart(found, pen),
        ]
    return [*_lay_out(rows, pen), "", _total(waits, others), *_apart(found, pen)]


_Row = tuple[str, VerdictName, str, str, int, str, str, str]


def _wait_row(waits: Sequence[Group], window: Window) -> _Row:
    agents = sorted({agent for group in waits for agent in group.agents})
    who = agents[0] if len(agents) == 1 else count(len(agents), "agent")
    number = sum(group.size for group in waits)
    reason = waits[0].reason if len(waits) == 1 else "see waiting"
    oldest = f"oldest {age(window.now - min(group.first for group in waits))}. "
    last = short_age(window.now - max(group.last for group in waits))
    return ("-", waits[0].verdict, who, reason, number, last, _owner(waits), oldest + short_action(waits[0].action))


def _owner(groups: Sequence[Group]) -> str:
    owners = {group.owner for group in groups}
    return (owners.pop() or "-") if len(owners) == 1 else "several"


def _group_row(group: Group, others: Sequence[Group], window: Window) -> _Row:
    who = group.agents[0] if len(group.agents) == 1 else count(len(group.agents), "agent")
    facts = ", ".join(part for part in ("new" if group.new else "", _detail(group)) if part)
    second = f"{facts}. {short_action(group.action)}" if facts else short_action(group.action)
    last = short_age(window.now - group.last)
    name = group_name(group.fingerprint, [each.fingerprint for each in others])
    return (name, group.verdict, who or "-", group.reason, group.size, last, group.owner or "-", second)


def group_name(fingerprint: str, others: Sequence[str]) -> str:
    """The end of a fingerprint: four letters, or six where four would be another group's too."""
    short = fingerprint[-4:]
    return short if sum(each.endswith(short) for each in others) <= 1 else fingerprint[-6:]


def _detail(group: Group) -> str:
    """What the runs of a group share beside the reason."""
    if not group.detail or group.detail == "/":
        return ""
    if group.verdict is VerdictName.UNCERTAIN:
        return f"all on {group.detail.rstrip('/').replace('/', ' ').strip()}"
    words = {VerdictName.FAILED: "", VerdictName.FALSE_COMPLETE: "contract "}
    return f"{words.get(group.verdict, 'condition ')}{group.detail}"


def _lay_out(rows: Sequence[_Row], pen: Pen) -> list[str]:
    needs = [max(map(cells, column)) for column in zip(*((row[2], row[3], row[6]) for row in rows), strict=True)]
    agent, reason, owner = shared_widths(needs, (13, 15, 9), (1, 0, 2))
    titles = f"{'GROUP':<7}{'VERDICT':<{_VERDICT}}{fit('AGENT', agent)}  {fit('REASON', reason)}  RUNS  LAST  OWNER"
    lines = [titles]
    for name, verdict, who, why, number, last, whose, second in rows:
        cells_of = f"{fit(who, agent)}  {fit(why, reason)}  {number:>4}  {last:>4}  {_owner_cell(whose, owner)}"
        lines.append(f" {name:<6}{pen.verdict(verdict, _VERDICT)}{cells_of}")
        said = second if cells(why) <= reason else f"{why}. {second}"
        lines.append(" " * _SECOND_LINE + cut(said, WIDTH - _SECOND_LINE))
    return lines


def attention_commands(found: Attention) -> list[Hint]:
    """What to paste next: the most urgent group's newest run, and the waits where there are some."""
    waits = [group for group in found.groups if group.verdict is VerdictName.WAITING_UNROUTED]
    others = [group for group in found.groups if group.verdict is not VerdictName.WAITING_UNROUTED]
    names = [each.fingerprint for each in others]
    last = Hint(("waiting",), "who has to answer what") if waits else Hint(("runs",), "every run")
    return [
        *(Hint(("explain",), "the newest run of that group", group_name(each, names)) for each in names[:1]),
        last,
    ]


def _owner_cell(owner: str, width: int) -> str:
    """An owner that is too long goes without the word that says what kind it is."""
    return owner if cells(owner) <= width else cut(owner.rpartition(":")[2], width)


def _total(waits: Sequence[Group], others: Sequence[Group]) -> str:
    runs = sum(group.size for group in (*waits, *others))
    open_waits = sum(group.size for group in waits)
    said = [count(len(others), "group")] if others else []
    said += [count(open_waits, "wait")] if open_waits else []
    return f"{' and '.join(said)}, {count(runs, 'run')}"


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
    return [cut(head + line, WIDTH) for head, line in zip(heads, lines, strict=False)]


def _of(apart: Apart) -> str:
    return f"{count(apart.runs, 'run')} of {count(apart.agents, 'agent')}"


# Rules ----------------------------------------------------------------------------------------------------------------


def rules_screen(pen: Pen) -> list[str]:
    """The cards, in the order in which the rules are tried."""
    lines = ["First match wins. A rule that needs evidence which contradicts itself does not", "match."]
    for number, card in enumerate(cards.RULES, 1):
        lines += ["", f"{number} {pen.verdict(card.verdict)}"]
        for head, text in (
            ("when", card.matches_when),
            ("here", card.stands_here),
            ("do", card.action),
            ("retry", card.retry),
            ("reasons", ", ".join(card.reasons)),
        ):
            lines += _labelled(head, text)
    return lines


def _labelled(head: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(text, WIDTH - 10, break_on_hyphens=False)
    return [f"  {head:<8}{wrapped[0]}", *(" " * 10 + line for line in wrapped[1:])]
