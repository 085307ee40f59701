"""The demo's four parts as lines. Every number in them is handed in: counted and timed by who ran the part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stopcause.classifier.verdict import VerdictName
from stopcause.render.pen import WIDTH, Pen, count, cut, fit
from stopcause.render.replay import replay_total
from stopcause.render.sentences import reason_sentence
from stopcause.render.views import Attention, CaseResult, Explained, Group, Replay

_INDENT = " " * 5
_ROOM = WIDTH - len(_INDENT)
_SHOWN = 4


class Taken(NamedTuple):
    """What the demo's ingest did."""

    runs: int
    records: int
    set_aside: int


def opening(store: str, as_of: str) -> list[str]:
    """Where it happens and what it needs."""
    return [
        f"Store: {store}, made anew each time." if len(store) < WIDTH - 30 else f"Store: {cut(store, WIDTH - 7)}",
        "No network, no model. The fixtures are data; the verdicts are worked out now.",
        f"Judged as of each case's own time (parts 2 to 4: {as_of}).",
    ]


def replay_part(result: Replay, pair: Sequence[tuple[CaseResult, str]], seconds: float, pen: Pen) -> list[str]:
    """1/4: the published cases, and two of them that differ in one receipt."""
    lines = [f"1/4  Replay the {len(result.cases)} published cases", *_counts(result, pen)]
    lines += [_timed(replay_total(result, "published"), seconds), ""]
    lines.append(f"{_INDENT}Two runs, same loop, same last step, same stop_cause {pair[0][0].stop_cause}:")
    for case, proof in pair:
        lines.append(f"{_INDENT}  {fit(case.name, 20)} {pen.verdict(case.verdict, 20)} {fit(case.reason, 16)} {proof}")
    return [*lines, f"{_INDENT}The loop ended twice. The work is there once."]


def _counts(result: Replay, pen: Pen) -> list[str]:
    counted = [(name, sum(case.verdict is name for case in result.cases)) for name in VerdictName]
    cells = [f"{pen.verdict(name, 20)}{number:>2}" for name, number in counted if number]
    return [_INDENT + "   ".join(cells[first : first + 3]) for first in range(0, len(cells), 3)]


def _timed(text: str, seconds: float) -> str:
    return f"{_INDENT}{fit(text, _ROOM - 8)}{seconds:>6.2f} s"


def ingest_part(taken: Taken, seconds: float) -> list[str]:
    """2/4: recorded runs of a real framework."""
    told = f"{count(taken.runs, 'run')}, {count(taken.records, 'record')}, {taken.set_aside} set aside"
    return [
        f"2/4  Ingest {taken.runs} recorded AI SDK runs (the real `ai` 7 with a scripted model)",
        _timed(told, seconds),
    ]


def attention_part(found: Attention, command: str, pen: Pen) -> list[str]:
    """3/4: the groups, the most urgent first."""
    lines = [_titled("3/4  What needs somebody", command)]
    lines += [_group(group, pen) for group in found.groups[:_SHOWN]]
    more = len(found.groups) - _SHOWN
    return [*lines, f"{_INDENT}... and {count(more, 'more group')}"] if more > 0 else lines


def _group(group: Group, pen: Pen) -> str:
    what = f"{group.reason} +{len(group.missing) - 1}" if group.missing[1:] else group.reason
    told = f"{fit(group.run_id, 30)} {fit(what, 16)} {count(group.size, 'run'):>7}"
    return f"{_INDENT}{pen.verdict(group.verdict, 20)}{told}"


def _titled(title: str, command: str) -> str:
    return f"{title}{f'stopcause {command}':>{WIDTH - len(title)}}"


def why_part(it: Explained, command: str, pen: Pen) -> list[str]:
    """4/4: one false complete, in three lines."""
    verdict = it.verdict
    contract = f", and contract {it.facts.contract_name} is not met" if it.facts.contract_name else ""
    do = f"Do: {verdict.action[0].lower()}{verdict.action[1:]}"
    return [
        _titled("4/4  Why", command),
        f"{_INDENT}{pen.verdict(verdict.verdict, 20)}{cut(f'{verdict.stop_cause}{contract}', _ROOM - 20)}",
        _INDENT + cut(reason_sentence(verdict.verdict, verdict.reason, verdict.stop_cause), _ROOM),
        f"{_INDENT}{cut(do, _ROOM)}",
        f"{_INDENT}Retry: {verdict.retry}",
    ]
