"""The screens of `triage`: what a filter chose, before it is said, and what was said, after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from stopcause.render.attention import name_cell, said_words, short_count
from stopcause.render.pen import WIDTH, Pen, count, cut, fit
from stopcause.render.views import Group, TriageLine

MOST = 10  # groups of a preview or an answer; the others are counted
_VERBS = {
    "acknowledged": "Acknowledge",
    "snoozed": "Snooze",
    "resolved": "Resolve",
    "assigned": "Assign",
    "reopened": "Reopen",
}


def preview(groups: Sequence[Group], pen: Pen) -> list[str]:
    """The groups that a filter chose."""
    rows = [_row(each.name, pen.verdict(each.verdict, 20), each.agent, each.reason, each.size) for each in groups]
    return [*rows[:MOST], *_more(len(groups))]


def question(groups: Sequence[Group], action: str) -> str:
    """What is asked before it is said of all of them."""
    runs = count(sum(each.size for each in groups), "run")
    return f"{_VERBS[action]} {count(len(groups), 'group')}, {runs}?"


def triage_screen(told: Sequence[TriageLine], now: datetime, pen: Pen) -> list[str]:
    """What was said, and how long it hides each group."""
    runs = count(sum(each.runs for each in told), "run")
    first = told[0]
    owner = f" to {first.owner}" if first.owner else ""
    by = f" by {first.said.actor}" if first.said.actor else ""
    head = f"{first.said.action.capitalize()}{owner}: {count(len(told), 'group')}, {runs}{by}."
    lines = [cut(head, WIDTH), ""]
    for each in told[:MOST]:
        lines.append(_row(each.name, pen.verdict(each.verdict, 20), each.agent, each.reason, each.runs))
        lines += [cut(f"       {note}", WIDTH) for note in _notes(each, now, pen)]
    return [*lines, *_more(len(told))]


def _notes(each: TriageLine, now: datetime, pen: Pen) -> list[str]:
    if each.due is not None and each.due <= now:
        return ["stays in sight: a wait of it is due"]
    if each.due is not None:
        return [f"only until {pen.time(each.due)}, when a wait of it is due"]
    return [said_words(each.said, now, pen)] if each.said.until else []


def _row(name: str, verdict: str, agent: str | None, reason: str, runs: int) -> str:
    return f"{name_cell(name)}{verdict}{fit(agent or '-', 20)}  {fit(reason, 20)}  {short_count(runs):>4}"


def _more(number: int) -> list[str]:
    return [f" ... and {count(number - MOST, 'more group')}"] if number > MOST else []
