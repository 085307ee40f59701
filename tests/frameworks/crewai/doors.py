"""Marked text through everything of CrewAI that takes some. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

# First: it sets what the framework reads as it is imported.
from tests.frameworks.crewai.models import Turn, act, agent, call, crew, failing, say

# isort: split
from typing import Any
from unittest import mock

from crewai.flow.flow import start
from crewai.flow.human_feedback import human_feedback
from crewai.tools import tool

from tests.frameworks.crewai.flows import Asking, Desk, Quick, store
from tests.frameworks.crewai.paths_waits import Answers
from tests.frameworks.marks import PROSE, WORD

ROLES: dict[str, Any] = {"role": WORD, "goal": PROSE, "backstory": WORD}


@tool("leaks")
def leaks(text: str = "") -> str:
    """Gives back what it gets."""
    return f"{text} {PROSE} {WORD}"


@tool("bursts")
def bursts(text: str = "") -> str:
    """Raises what it gets."""
    raise ValueError(f"{text} {PROSE}")


def _crew(*turns: Turn, **more: Any) -> Any:
    doing = {"description": PROSE, "expected_output": WORD, "name": WORD} | more.pop("doing", {})
    return crew(*turns, of={"tools": [leaks, bursts], **ROLES} | more.pop("of", {}), doing=doing, **more)


def _talks() -> None:
    given = f'{{"text": "{WORD}"}}'
    made = _crew(call("leaks", given), call("bursts", given), call(WORD, given), say(WORD))
    made.security_config.fingerprint.metadata = {"note": PROSE, "word": WORD}
    made.kickoff(inputs={"topic": WORD})


def _talks_in_text() -> None:
    turns = [act("leaks", f'{{"text": "{WORD}"}}'), act(WORD), act("bursts"), say(f"Final Answer: {WORD}")]
    _crew(*turns, of={"llm": {"is_calling": False}}).kickoff()


def _is_alone() -> None:
    agent(call("leaks", f'{{"text": "{WORD}"}}'), say(WORD), tools=[leaks], **ROLES).kickoff(WORD)


def _fails() -> None:
    failing(_crew(*[Turn(error=RuntimeError(f"{PROSE} {WORD}"))] * 3).kickoff)


def _is_refused() -> None:
    doing = {"guardrail": lambda _: (False, WORD), "guardrail_max_retries": 0}
    failing(_crew(say(PROSE), doing=doing).kickoff)


def _is_reviewed() -> None:
    with mock.patch("builtins.input", side_effect=[WORD, ""]):
        _crew(say(WORD), say(WORD), say(WORD), doing={"human_input": True}).kickoff()


class Reviewed(Quick):
    """Asks for feedback with content in all of its places."""

    @start()
    @human_feedback(message=PROSE, provider=Desk(), metadata={"who": PROSE, "note": WORD})
    def draft(self) -> str:
        return WORD


def _waits() -> None:
    flow = Reviewed(persistence=store())
    flow.kickoff(inputs={"note": WORD})
    Reviewed.from_pending(flow.flow_id, flow.persistence).resume(WORD)


def _asks() -> None:
    Asking(input_provider=Answers([WORD])).kickoff(inputs={"note": PROSE})


def _named() -> None:
    """A crew's name is told."""
    crew(say(), name=WORD).kickoff()


DOORS = [_talks, _talks_in_text, _is_alone, _fails, _is_refused, _is_reviewed, _waits, _asks]
CONTROL = _named
