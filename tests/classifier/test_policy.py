"""The policy: what it answers, and how it says what is wrong with it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.classifier.policy import (
    DEFAULT_CONTRACT,
    DEFAULT_POLICY,
    Subject,
    parse_duration,
    parse_policy,
    policy_from_mapping,
    shadowed,
    warnings,
)
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import PolicyError, Problem
from stopcause.receipts.vocabulary import StopCause


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text)
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('[polcy]\nid = "x"', "polcy", "did you mean policy?"),
        ('[defaults]\nstuck_aftr = "5m"', "defaults.stuck_aftr", "did you mean stuck_after?"),
        ('[[agents]]\nmatch = { agnt = "x" }', "agents[0].match.agnt", "did you mean agent?"),
        ('[[routes]]\nonwer = "x"', "routes[0].onwer", "did you mean owner?"),
        ('[contracts.a]\nisuers = ["x"]', "contracts.a.isuers", "did you mean issuers?"),
        ("[defaults]\nsettle = 10", "defaults.settle", "write 30s, 5m, 4h or 2d"),
        ('[defaults]\nsettle = "10 minutes"', "defaults.settle", "write 30s, 5m, 4h or 2d"),
        ('[[agents]]\nstage = "enforced"', "agents[0].stage", "'observe' or 'enforce'"),
        ('[verdicts]\nguardrail = "STUCK"', "verdicts.guardrail", "'FAILED' or 'BOUNDED_STOP'"),
        ('[verdicts]\ntool_failure = "BOUNDED_STOP"', "verdicts.tool_failure", "is not known here"),
        ("agents = 3", "agents", "is no list"),
        ("policy = 3", "policy", "is no table"),
        ('[[agents]]\ncontract = "two words"', "agents[0].contract", "is no identifier"),
        ("[[agents]]\nowner = 3", "agents[0].owner", "put it in quotes"),
        ("[policy", "file", "is no TOML"),
    ],
)
def test_a_fault_names_its_place_and_the_way_out(text: str, place: str, said: str) -> None:
    found = problems(text)

    assert [problem.place for problem in found] == [place]
    assert said in found[0].message


def test_all_faults_are_named_at_once() -> None:
    assert len(problems('[defaults]\na = 1\nb = 2\n[[routes]]\ndue = "x"')) == 3


def test_the_first_match_wins_and_an_absent_key_matches_only_a_star() -> None:
    policy = policy_from_mapping(
        {
            "agents": [
                {"match": {"agent": "a*", "environment": "prod"}, "contract": "first"},
                {"match": {"agent": "a*"}, "contract": "second"},
                {"match": {"environment": "*"}, "contract": "third"},
            ]
        }
    )

    assert policy.agent(Subject(agent="ab", environment="prod")).contract == "first"
    assert policy.agent(Subject(agent="ab")).contract == "second"
    assert policy.agent(Subject()).contract == "third"


def test_a_contract_that_is_named_but_undefined_has_the_defaults() -> None:
    assert DEFAULT_POLICY.contract("nowhere") is DEFAULT_CONTRACT
    assert DEFAULT_POLICY.contract(None) is None


def test_a_contract_that_is_named_and_not_defined_is_a_warning_with_the_nearest_name() -> None:
    policy = parse_policy('[[agents]]\ncontract = "invoice-create"\n[contracts.invoice-created]\n')

    (warning,) = warnings(policy)

    assert warning.place == "agents[0].contract"
    assert warning.warning
    assert "did you mean invoice-created?" in warning.message


def test_verdicts_move_only_what_may_move() -> None:
    policy = policy_from_mapping({"verdicts": {"guardrail": "FAILED", "quota": "BOUNDED_STOP"}})

    assert StopCause.GUARDRAIL in policy.failed_causes
    assert StopCause.GUARDRAIL not in policy.bounded_causes
    assert StopCause.QUOTA in policy.bounded_causes
    assert not policy.failed_causes & policy.bounded_causes
    assert VerdictName.FAILED


def test_the_digest_is_of_the_text() -> None:
    assert parse_policy("").digest == parse_policy("").digest
    assert parse_policy("").digest != parse_policy("# a comment").digest


@pytest.mark.parametrize(
    ("first", "second", "hidden"),
    [
        ("{}", '{ agent = "a" }', True),
        ('{ agent = "*" }', '{ agent = "a" }', True),
        ('{ agent = "a*" }', '{ agent = "ab", environment = "prod" }', True),
        ('{ agent = "a*" }', '{ agent = "a*" }', True),
        ('{ agent = "a*" }', '{ agent = "b" }', False),
        ('{ agent = "a*" }', '{ agent = "?b" }', False),
        ('{ agent = "a" }', '{ environment = "prod" }', False),
        ('{ agent = "a", environment = "prod" }', '{ agent = "a" }', False),
    ],
)
def test_entries_that_can_never_be_reached_are_named(first: str, second: str, hidden: bool) -> None:
    policy = parse_policy(f"[[agents]]\nmatch = {first}\n[[agents]]\nmatch = {second}\n")

    assert [problem.place for problem in shadowed(policy)] == (["agents[1]"] if hidden else [])


def test_a_duration_that_would_leave_the_calendar_is_refused() -> None:
    assert "at most 3650d" in problems('[defaults]\nclock_skew = "999999d"')[0].message


def test_two_checks_of_one_name_are_refused() -> None:
    found = problems('[[contracts.a.checks]]\nkind = "record"\n[[contracts.a.checks]]\nkind = "record"')

    assert "give each its own `name`" in found[0].message


@given(st.integers(min_value=0, max_value=3650), st.sampled_from("smhd"))
def test_durations_are_read_exactly(count: int, unit: str) -> None:
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]

    assert parse_duration(f"{count}{unit}") == timedelta(seconds=count * seconds)
