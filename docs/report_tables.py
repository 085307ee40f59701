"""The generated parts of docs/reports.md, from the cards of the reports; in the style of `tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stopcause.pipeline import report as named
from stopcause.store.reports import REQUIRED, SHARED, Card, Parameter


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def reports() -> str:
    """Every report: what it answers, for whom, and what it takes beside what most take."""
    rows = ((f"[`{card.name}`](#{card.name})", card.question, card.reader, _own(card)) for card in named.cards())
    return _table(("report", "question", "for", "takes also"), rows)


def _own(card: Card) -> str:
    shared = {each.name for each in SHARED}
    own = [each for each in card.parameters if each.name not in shared]
    return ", ".join(f"`{each.name}`: {each.meaning} ({each.default})" for each in own)


def columns() -> str:
    """The columns of every report, and how far back it looks when nothing is said."""
    return "\n\n".join(_columns(card) for card in named.cards())


def _columns(card: Card) -> str:
    rows = ((f"`{each.name}`", each.kind, each.meaning) for each in card.columns)
    return f"### {card.name}\n\n{card.title}. {_takes(card)}\n\n" + _table(("column", "kind", "meaning"), rows)


def _takes(card: Card) -> str:
    return f"Takes {', '.join(map(_shown, card.parameters))}."


def _shown(parameter: Parameter) -> str:
    said = "required" if parameter.default == REQUIRED else parameter.default
    return f"`{parameter.name}`" + (f" ({said})" if said else "")
