"""The table of rules: every card has its two cases and something that can find it, and every rule its card."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stopcause import agui
from stopcause.agui import audit, audit_answers, audit_received, audit_refused, audit_runs
from stopcause.agui.cards import BY_NAME, CARDS, ELSEWHERE, Card
from stopcause.agui.words import Effect, Level, Mode, Side
from stopcause.resources import data_folder

ROOM = Path(agui.__file__).parent
CASES = data_folder("fixtures") / "agui" / "rules"
BY_CARD = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
# Streams and ends, subagents, answers as they are sent, answers once received and what is ours.
NUMBERS = {*range(1, 37), *range(40, 47), *range(50, 63), *range(70, 95)}


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text("utf-8"))
    return found


def said(of: dict[str, Any], key: str) -> set[str]:
    """What a case says of findings, wherever it says it."""
    places = (of.get("expected"), of.get("check"), (of.get("receive") or {}).get("expected"))
    return {name for place in places if place for name in place.get(key, ())}


@BY_CARD
def test_it_is_found_in_one_case_and_not_in_the_one_beside_it(card: Card) -> None:
    assert card.name in said(case(card.failing), "findings")
    assert card.name in said(case(card.passing), "absent")


@BY_CARD
def test_some_module_names_it_beside_the_table(card: Card) -> None:
    assert card.name in named()


@cache
def named() -> frozenset[str]:
    trees = (ast.parse(path.read_text("utf-8")) for path in ROOM.glob("*.py") if path.name != "cards.py")
    constants = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(value for value in constants if isinstance(value, str))


def test_every_rule_of_the_audit_has_a_card() -> None:
    assert set(audit.RULES) <= set(BY_NAME)


@pytest.mark.parametrize(
    "module", [audit_answers, audit_received, audit_refused, audit_runs], ids=lambda each: each.__name__.split(".")[-1]
)
def test_a_module_of_the_audit_names_the_rules_that_it_holds_and_so_does_the_audit(module: ModuleType) -> None:
    held = {int(BY_NAME[name].rule[1:]) for name in module.RULES}
    own = next(line for line in (module.__doc__ or "").splitlines() if line.startswith("Rules: "))
    name = module.__name__.rpartition(".")[2]
    listed = next(line for line in (audit.__doc__ or "").splitlines() if line.strip().startswith(f"{name} "))

    assert set(numbers_in(own)) - UNHELD == set(numbers_in(listed)) - UNHELD == held


UNHELD = {int(rule[1:]) for rule in ELSEWHERE}


def numbers_in(text: str) -> Iterator[int]:
    """Of a list such as "R15, R50 to R54"."""
    for first, last in re.findall(r"R(\d+)(?: to R(\d+))?", text):
        yield from range(int(first), int(last or first) + 1)


def test_names_come_once_and_in_the_order_of_their_numbers() -> None:
    numbers = [int(card.rule[1:]) for card in CARDS]

    assert len(BY_NAME) == len(CARDS)
    assert numbers == sorted(numbers)


def test_every_number_has_a_finding_or_says_where_else_it_is_kept() -> None:
    found, elsewhere = ({int(rule[1:]) for rule in rules} for rules in ({card.rule for card in CARDS}, ELSEWHERE))

    assert not found & elsewhere
    assert found | elsewhere >= NUMBERS


@BY_CARD
def test_what_is_fatal_is_the_producer_s_and_a_must(card: Card) -> None:
    if card.effect is Effect.REJECTED:
        assert (card.side, card.level) == (Side.PRODUCER, Level.MUST)


@BY_CARD
def test_nobody_breaks_a_rule_of_the_auditor_s(card: Card) -> None:
    if card.side is Side.AUDITOR:
        assert {card.level_in(mode) for mode in Mode} <= {Level.WARN, Level.NOTE}


# What is said of the run in which it is found; a thread's own word is in the case.
_VERDICTS = {
    Effect.REJECTED: {"UNCERTAIN", "FAILED"},
    Effect.FAILED: {"FAILED"},
    Effect.CUT_OFF: {"UNCERTAIN", "STUCK"},
    Effect.UNKNOWN: {"UNCERTAIN"},
    Effect.TWICE: {"UNCERTAIN"},
    Effect.WAITS: {"WAITING", "WAITING_UNROUTED"},
    Effect.BOUNDED: {"BOUNDED_STOP"},
    Effect.RECEIPTS: {"FALSE_COMPLETE"},
    Effect.UNROUTED: {"WAITING_UNROUTED"},
    Effect.STAYS_OPEN: {"WAITING", "WAITING_UNROUTED"},
    Effect.UNCERTAIN: {"UNCERTAIN"},
    Effect.STUCK: {"STUCK"},
}


@BY_CARD
def test_the_case_in_which_it_is_found_shows_what_it_does(card: Card) -> None:
    if card.effect is Effect.NONE:
        return
    expected = case(card.failing)["expected"]
    verdicts = {run.get("verdict") for run in expected.get("runs", ())}
    verdicts |= {thread["thread_verdict"] for thread in expected["threads"]}
    assert verdicts & _VERDICTS[card.effect]
