"""The rules of AG-UI that an audit holds streams and answers against: the list, one card, and rows.

Values come in by shape, as for all of AG-UI.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stopcause.render.pen import Pen, fit, paragraph

_CASES = "fixtures/agui/rules"
_RULE, _LEVEL, _SIDE, _INDENT = 5, 8, 10, 17


class RuleLine(NamedTuple):
    """A rule. `levels` by contract, the newest first; what is a word of a closed list is beside what it means.

    `failing` and `passing` are cases, by their ids.
    """

    rule: str
    finding: str
    code: str
    side: str
    side_means: str
    levels: Mapping[str, str]
    level_means: str
    section: str
    stands_in: str
    effect: str
    effect_means: str
    meaning: str
    failing: str
    passing: str


class RuleGroup(NamedTuple):
    """Rules of one moment, under one heading."""

    heading: str
    lines: tuple[RuleLine, ...]


def rules_screen(groups: Sequence[RuleGroup], elsewhere: Mapping[str, str], pen: Pen) -> Iterator[str]:
    """Every rule in two lines, by the moment at which it counts; then those for which no finding stands."""
    yield "Levels are those of AG-UI 1.0, in brackets those of the contract before it."
    for group in groups:
        yield ""
        yield pen.bold(group.heading)
        for line in group.lines:
            yield from _listed(line, pen)
    yield ""
    yield pen.bold("No finding stands for")
    for rule, why in elsewhere.items():
        yield from paragraph(f"  {rule}", why, _RULE + 2)


def _listed(line: RuleLine, pen: Pen) -> Iterator[str]:
    newest, before = _two_levels(line.levels)
    level = fit(newest, _LEVEL)
    marked = level.replace(newest, pen.bold(newest), 1) if newest == "MUST" else level
    aside = f" [{before}]" if before != newest else ""
    yield f"  {fit(line.rule, _RULE)}{marked}{fit(line.side, _SIDE)}{line.finding}{aside}"
    yield from (pen.dim(text) for text in paragraph("", line.meaning, _RULE + 2))


def card_screen(lines: Sequence[RuleLine], pen: Pen) -> Iterator[str]:
    """The whole of some rules."""
    for number, line in enumerate(lines):
        if number:
            yield ""
        yield f"{line.rule} {pen.bold(line.finding)}"
        yield from paragraph("  What", line.meaning, _INDENT)
        yield from paragraph("  Whose", f"{line.side}: {line.side_means}", _INDENT)
        yield from paragraph("  How much", f"{_levels(line.levels)}: {line.level_means}", _INDENT)
        yield from paragraph("  Stands in", line.stands_in, _INDENT)
        yield from paragraph("  Verdict", line.effect_means, _INDENT)
        yield from paragraph("  Found in", f"{_CASES}/{line.failing}.json", _INDENT)
        yield from paragraph("  Not found in", f"{_CASES}/{line.passing}.json", _INDENT)


def _levels(levels: Mapping[str, str]) -> str:
    newest, before = _two_levels(levels)
    return newest if before == newest else f"{newest}, before 1.0 {before}"


def _two_levels(levels: Mapping[str, str]) -> tuple[str, str]:
    newest, *older = levels.values()
    return newest, older[-1]


def rule_objects(lines: Sequence[RuleLine]) -> list[dict[str, Any]]:
    """The cards as rows: words of closed lists without what they mean."""
    return [
        {
            "rule": line.rule,
            "finding": line.finding,
            "code": line.code,
            "side": line.side,
            "level": dict(line.levels),
            "section": line.section,
            "effect": line.effect,
            "meaning": line.meaning,
            "failing": line.failing,
            "passing": line.passing,
        }
        for line in lines
    ]
