"""Every rule and contradiction says what it is for, and points at cases that show it."""

from __future__ import annotations

import pytest

from stopcause.classifier import contradictions
from stopcause.classifier.contradictions import CONTRADICTIONS
from stopcause.classifier.rules import RULES, Rule
from stopcause.classifier.verdict import VerdictName
from stopcause.pipeline import cases
from stopcause.receipts import vocabulary
from stopcause.receipts.vocabulary import StopCause
from stopcause.resources import data_folder

CASES = {case.id: case for case in cases.load_cases([data_folder("fixtures")])}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_field_of_a_card_is_empty(rule: Rule) -> None:
    assert all(rule)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_cases_of_a_card_show_its_verdict(rule: Rule) -> None:
    assert {CASES[name].expected_verdict for name in rule.cases} == {rule.verdict}


def test_every_reason_belongs_to_one_rule_but_time_and_expiry() -> None:
    counted = [reason for rule in RULES for reason in rule.reasons]
    shared = {reason for reason in counted if counted.count(reason) > 1}

    # A time limit is STUCK or BOUNDED_STOP by its progress, an expiry by whether somebody handled it.
    assert shared == {"time_limit", "approval_expired"}


def test_every_cause_leads_somewhere() -> None:
    named = {str(reason) for rule in RULES for reason in rule.reasons}
    ended = vocabulary.FAILED | vocabulary.BOUNDED | vocabulary.ABORTED | vocabulary.NO_PROGRESS

    assert set(map(str, ended)) <= named


def test_every_cause_needs_some_evidence() -> None:
    assert set(contradictions.NEEDED_BY) == {None, *StopCause}


def test_codes_are_named_once() -> None:
    codes = [card.code for card in CONTRADICTIONS]

    assert len(set(codes)) == len(codes)
    assert all(card.seen_when for card in CONTRADICTIONS)


def test_every_verdict_and_every_contradiction_has_a_case() -> None:
    reasons = {case.expected_reason for case in CASES.values()}

    assert {case.expected_verdict for case in CASES.values()} >= set(VerdictName)
    assert {card.code for card in CONTRADICTIONS} <= reasons
