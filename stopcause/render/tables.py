"""Lists: runs and the rules. Lines of text, none wider than 80 columns. A cell is never wrapped: an ellipsis cuts it.

Not here: what needs somebody (`attention`), and what waits (`waits`).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from stopcause.classifier import rules as cards
from stopcause.classifier.verdict import Verdict, VerdictName
from stopcause.render.pen import (
    RUNNING,
    WIDTH,
    Pen,
    cells,
    count,
    cut,
    fit,
    paragraph,
    shared_widths,
    short_age,
    short_names,
)
from stopcause.render.views import Listed, RunLine, Window

_VERDICT = 20
_RUN_ROOM, _AGENT = 17, 10  # what an id may take, and what an agent's name keeps
_STEPS = 5
_AS_OF = 30  # the end of a first line: the time and its offset


# Runs -----------------------------------------------------------------------------------------------------------------


def window_line(window: Window, runs: int, agents: int, environments: Sequence[str], pen: Pen) -> str:
    """The first line of a list: what it covers, and as of when."""
    last = f"last {window.span} of records" if window.by_newest else f"last {window.span}"
    said = f"{last if window.span else 'all'}: {count(runs, 'run')} of {count(agents, 'agent')}."
    head = f"{environments[0]}, {said}" if len(environments) == 1 and environments[0] else ""
    if not head or cells(head) > WIDTH - _AS_OF:
        head = said[0].upper() + said[1:]
    return f"{cut(head, WIDTH - _AS_OF)} As of {pen.time(window.now)}"


def runs_screen(listed: Listed, window: Window, pen: Pen) -> list[str]:
    """A list of runs: what it covers, the newest of them, how many got which verdict, what is left out."""
    total = sum(listed.verdicts.values())
    head = window_line(window, total, listed.agents, (), pen)
    older = [f"Older: {count(listed.older, 'run')} that this list leaves out; --all has every one"] * bool(listed.older)
    if not total:
        return [head, "", "No run matches.", *older]
    counted = counts_lines(listed.verdicts)
    if (shown := len(listed.lines)) < total:
        counted.append(f"Shown: the newest {shown}; --all has every one")
    return [head, "", *runs_table(listed.lines, window, pen), "", *counted, *older]


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
    counted = counts_lines(Counter(each.verdict for each in verdicts))
    return [*(line.rstrip() for line in table), "", *counted]


def counts_lines(counted: Mapping[VerdictName | None, int]) -> list[str]:
    """How many runs got which verdict."""
    found = [(name, counted.get(name, 0)) for name in (*VerdictName, None)]
    said = ", ".join(f"{number}\N{NO-BREAK SPACE}{name or RUNNING}" for name, number in found if number)
    head = f"{count(sum(counted.values()), 'run')}: "
    lines = paragraph(head, said, len(head)) if said else ["No run."]
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


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
