"""The cards of AG-UI's rules as the screens, the docs and the store's report take them."""

from __future__ import annotations

import difflib
from pathlib import Path

from stopcause.agui.cards import BY_NAME, CARDS, ELSEWHERE, Card
from stopcause.agui.told import ADAPTER
from stopcause.agui.words import Mode, Section
from stopcause.classifier.fold import Run
from stopcause.classifier.verdict import Verdict
from stopcause.errors import InputError
from stopcause.render.agui_rules import RuleGroup, RuleLine
from stopcause.render.views import Breach
from stopcause.resources import data_folder

_MOMENTS = (  # up to which rule, and what these are about
    (19, "The stream"),
    (39, "How a run ends"),
    (49, "Subagents"),
    (69, "Answers, as they are sent"),
    (89, "Answers, once they were received"),
    (99, "What a thread waits for, and ours"),
)


def groups() -> tuple[RuleGroup, ...]:
    """Every rule, by the moment at which it counts."""
    found: dict[str, list[RuleLine]] = {heading: [] for _, heading in _MOMENTS}
    for card in CARDS:
        found[_moment(card)].append(line(card))
    return tuple(RuleGroup(heading, tuple(lines)) for heading, lines in found.items())


def _moment(card: Card) -> str:
    return next(heading for last, heading in _MOMENTS if int(card.rule[1:]) <= last)


def lines_of(name: str) -> tuple[RuleLine, ...]:
    """The cards of a rule (`R71`), or that of a finding (`ACTION_WITHOUT_ANSWER`), in any case.

    Raises:
        InputError: There is none; names what is near.
    """
    wanted = name.upper().replace("-", "_")
    found = [card for card in CARDS if wanted in (card.rule, card.name)]
    if wanted in ELSEWHERE:
        raise InputError(f"{name}: no finding stands for it: {ELSEWHERE[wanted]}")
    if not found:
        near = difflib.get_close_matches(wanted, [*BY_NAME, *{card.rule for card in CARDS}], 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`rules --agui` lists them"
        raise InputError(f"{name}: no rule of AG-UI; {hint}")
    return tuple(map(line, found))


def breaches(run: Run, verdict: Verdict) -> dict[str, Breach]:
    """The rules that findings of a run are of, by their codes; none where it did not come by AG-UI."""
    if not any(each.adapter == ADAPTER for records in run.attempts.values() for each in records):
        return {}
    cards = {each.code: BY_NAME.get(each.code.upper()) for each in verdict.findings}
    mode = Mode.LEGACY_OUTCOME if "no_version" in cards else Mode.SPEC
    return {code: Breach(card.rule, card.side, card.level_in(mode)) for code, card in cards.items() if card is not None}


def case_path(card: RuleLine) -> Path:
    """The file of the case in which it is found."""
    return data_folder("fixtures") / "agui" / "rules" / f"{card.failing}.json"


def _stands_in(section: Section) -> str:
    """The text that it is of, and what is said there."""
    text = {Section.OURS: "nowhere", Section.BEFORE: f"contract before 1.0, {section}"}
    return f"{text.get(section, f'specification 1.0, {section}')}: {section.meaning}"


def line(card: Card) -> RuleLine:
    """One card."""
    return RuleLine(
        rule=card.rule,
        finding=card.name,
        code=card.name.lower(),
        side=card.side,
        side_means=card.side.meaning,
        levels={mode: card.level_in(mode) for mode in Mode},
        level_means=card.level.meaning,
        section=card.section,
        stands_in=_stands_in(card.section),
        effect=card.effect,
        effect_means=card.effect.meaning,
        meaning=card.meaning,
        failing=card.failing,
        passing=card.passing,
    )
