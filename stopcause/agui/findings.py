"""Something found in a stream, an input or a thread: which rule, whose fault it is, and how much it weighs.

The rules are in `cards`. What is fatal makes the stream one that a reader may not believe.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stopcause.agui.cards import BY_NAME
from stopcause.agui.ids import safe
from stopcause.agui.words import Level, Mode, Side

MOST_IDS = 16  # of one finding


class Finding(NamedTuple):
    """Something found. `ids` are safe to show: interrupts, calls, runs, or the name of a field."""

    rule: str
    name: str
    side: Side
    level: Level
    fatal: bool
    ids: tuple[str, ...]

    @property
    def code(self) -> str:
        """As a finding of a record."""
        return self.name.lower()


def found(name: str, *ids: str, mode: Mode = Mode.SPEC) -> Finding:
    """A finding of the table, about these ids, as it weighs in this mode."""
    card = BY_NAME[name]
    level = card.level_in(mode)
    is_fatal = card.is_fatal and level is card.level
    return Finding(card.rule, card.name, card.side, level, is_fatal, tuple(safe(each) for each in ids[:MOST_IDS]))


def names(findings: Iterable[Finding]) -> frozenset[str]:
    """Which ones there are."""
    return frozenset(each.name for each in findings)
