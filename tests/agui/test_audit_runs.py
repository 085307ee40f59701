"""What a run says of itself, where a case file cannot look."""

from __future__ import annotations

import pytest

from stopcause.agui.findings import names
from stopcause.agui.ledger import Ledger
from stopcause.agui.promises import adds_up
from stopcause.agui.scene import Request
from stopcause.agui.values import Json, RunSeen
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.receipts.vocabulary import StopCause
from tests.agui.seen import asked, run

BOTH = {"STATE_SNAPSHOT": 1, "MESSAGES_SNAPSHOT": 1}
BY_OUTCOME = run("r1", asks=(asked("i-1"),), counts=BOTH)
BY_CUSTOM = run("r1", asks=(asked("i-1", channel=Channel.CUSTOM),), counts=BOTH)


def found(seen: RunSeen, capabilities: Json = None) -> frozenset[str]:
    return names(Ledger().ended(seen, Request(capabilities=capabilities)).findings)


@pytest.mark.parametrize(
    ("seen", "interrupts", "is_found"),
    [
        (BY_OUTCOME, True, False),
        (BY_CUSTOM, True, True),
        (BY_OUTCOME, False, True),
        (BY_CUSTOM, False, True),
        (BY_CUSTOM, None, False),
        (BY_CUSTOM, "yes", False),
        (run("r1"), True, False),
        (run("r1"), False, False),
    ],
)
def test_what_an_agent_declares_is_held_against_how_it_asks(seen: RunSeen, interrupts: Json, is_found: bool) -> None:
    assert ("CAPABILITY_MISMATCH" in found(seen, {"humanInTheLoop": {"interrupts": interrupts}})) is is_found


@pytest.mark.parametrize("capabilities", [None, {}, [], "x", {"humanInTheLoop": None}, {"humanInTheLoop": []}])
def test_what_is_not_declared_is_no_no(capabilities: Json) -> None:
    assert found(BY_OUTCOME, capabilities) == found(BY_CUSTOM, capabilities) == frozenset()


@pytest.mark.parametrize(
    ("ending", "cause", "said"),
    [
        (Ending.SUCCESS, StopCause.USER_ABORT, {"STOP_AS_SUCCESS"}),
        (Ending.SUCCESS, StopCause.STEP_LIMIT, {"STOP_AS_SUCCESS"}),
        (Ending.SUCCESS, StopCause.OUTPUT_CAP, set()),
        (Ending.SUCCESS, StopCause.NATURAL, set()),
        (Ending.CANCELLED, StopCause.USER_ABORT, set()),
        (Ending.ERROR, StopCause.CALLER_ABORT, {"STOP_AS_ERROR"}),
        (Ending.ERROR, StopCause.TIME_LIMIT, set()),
        (Ending.TRUNCATED, StopCause.CALLER_ABORT, set()),
    ],
)
def test_a_run_that_was_stopped_on_purpose_says_so(ending: Ending, cause: StopCause, said: set[str]) -> None:
    assert found(run("r1", ending, cause=cause)) == said


@pytest.mark.parametrize("lacking", [*BOTH])
def test_both_snapshots_stand_before_a_question(lacking: str) -> None:
    assert found(BY_OUTCOME) == set()
    assert found(BY_OUTCOME._replace(counts={each: 1 for each in BOTH if each != lacking})) == {"NO_BOUNDARY_SNAPSHOT"}


def test_of_a_question_beside_an_ordinary_finish_no_text_asks_for_snapshots() -> None:
    assert found(BY_OUTCOME._replace(counts={"CUSTOM": 1}, mode=Mode.LEGACY_CUSTOM)) == set()


@pytest.mark.parametrize(
    ("usage", "fits"),
    [
        ({}, True),
        ({"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}, True),
        ({"inputTokens": 3, "outputTokens": 2, "totalTokens": 6}, False),
        ({"inputTokens": 3, "totalTokens": 6}, True),
        ({"inputTokens": 3, "cachedInputTokens": 3}, True),
        ({"inputTokens": 3, "cachedInputTokens": 4}, False),
        ({"outputTokens": 3, "reasoningTokens": 4}, False),
        ({"reasoningTokens": 4}, True),
    ],
)
def test_counts_of_tokens_add_up(usage: Json, fits: bool) -> None:
    assert adds_up(usage) is fits
