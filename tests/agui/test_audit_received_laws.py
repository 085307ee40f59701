"""What the audit says of agents that keep the rules, and of those that do not, on any history of inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.cards import BY_NAME
from stopcause.agui.reader import Exchange
from stopcause.agui.words import Level, Mode, Side
from stopcause.pipeline import agui
from tests.agui.asking import NOW
from tests.agui.producers import MAKERS, TURNS, Agent, Forgetful, Hasty, Stubborn, Turn
from tests.support.laws import tried_on

MODES = st.sampled_from([Mode.SPEC, Mode.LEGACY_OUTCOME])
OF_ANSWERS = frozenset(f"R{number}" for number in range(70, 89)) - {"R78"}
WITHOUT_LEAVE = {"ACTION_WITHOUT_ANSWER", "ACTION_ON_UNRECOGNISED_ANSWER"}


def exchanges(agent: Agent, turns: list[Turn]) -> Iterator[Exchange]:
    """A minute apart."""
    for number, turn in enumerate(turns):
        now = NOW + timedelta(minutes=number)
        calls = [{"id": each["toolCallId"], "function": {"name": "send"}} for each in agent.open.values()]
        said = [{"id": "a1", "role": "assistant", "toolCalls": calls}] if calls and turn.shows_calls else []
        asked: dict[str, Any] = {"threadId": "t1", "runId": f"r{number}", "messages": said, "resume": turn.answers}
        yield Exchange(asked, iter(agent.run(asked, turn.asks, now)), sent_at=now)


def blamed(agent: Agent, turns: list[Turn]) -> set[str]:
    """The rules of answers that it broke and must keep."""
    found = agui.audit(exchanges(agent, turns), None, NOW + timedelta(hours=1)).findings
    must = [each for each in found if (each.side, each.level) == (Side.PRODUCER, Level.MUST)]
    return {each.name for each in must if BY_NAME[each.name].rule in OF_ANSWERS}


@given(TURNS, MODES, st.sampled_from(MAKERS))
@tried_on(400, deadline=None)
def test_an_agent_that_does_what_it_is_told_is_blamed_for_nothing(
    turns: list[Turn], mode: Mode, make: Callable[[Mode], Agent]
) -> None:
    assert blamed(make(mode), turns) == set()


@given(TURNS, TURNS.filter(lambda turns: any(turn.asks for turn in turns)), MODES)
@tried_on(100, deadline=None)
def test_one_that_acts_on_any_input_is_found_out(first: list[Turn], last: list[Turn], mode: Mode) -> None:
    """At the latest when an input without any answer comes while something is open."""
    silent = Turn([], [], shows_calls=True)
    asking = next(turn for turn in last if turn.asks)

    assert blamed(Hasty(mode), [*first, asking, silent]) & WITHOUT_LEAVE


@pytest.mark.parametrize("mode", [Mode.SPEC, Mode.LEGACY_OUTCOME])
@given(TURNS)
@tried_on(50, deadline=None)
def test_one_that_drops_what_has_no_answer_is_found_out(mode: Mode, first: list[Turn]) -> None:
    """Where the messages show the gated call; before 1.0, always."""
    asking = Turn([], [{"reason": "tool_call"}], shows_calls=False)
    silent = Turn([], [], shows_calls=mode is Mode.SPEC)

    found = blamed(Forgetful(mode), [*first, asking, silent])

    assert found >= {"UNCOVERED_MISHANDLED"}
    assert ("SUCCESS_OVER_OPEN_INTERRUPT" in found) or mode is not Mode.SPEC


ANSWERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("confirmation", {"payload": False}),
    ("tool_call", {"payload": {"approved": False}}),
    ("input_required", {"payload": 0}),
    ("input_required", {"payload": ""}),
    ("input_required", {"payload": None}),
    ("tool_call", {"payload": {"approved": True}}),
    ("tool_call", {"status": "cancelled"}),
)


@pytest.mark.parametrize("mode", [Mode.SPEC, Mode.LEGACY_OUTCOME])
@pytest.mark.parametrize(("reason", "answer"), ANSWERS)
def test_one_that_takes_no_answer_is_found_out(reason: str, answer: dict[str, Any], mode: Mode) -> None:
    """False, zero and nothing are answers, too."""
    asking = Turn([], [{"reason": reason}], shows_calls=False)
    answering = Turn([{"interruptId": "i-1", "status": "resolved", **answer}], [], shows_calls=True)

    assert blamed(Agent(mode), [asking, answering]) == set()
    assert blamed(Stubborn(mode), [asking, answering]) == {"VALID_RESUME_REFUSED"}
