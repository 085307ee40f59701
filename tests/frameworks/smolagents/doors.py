"""Marked text through everything of smolagents that takes some. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

from typing import Any

from smolagents import ActionStep, tool

import stopcause
from tests.frameworks.marks import PROSE, WORD
from tests.frameworks.smolagents.models import Turn, agent, call, code, coder, done, failing, helper, say


@tool
def leaks(text: str) -> str:
    """Gives back what it gets: canary-7f3a is here.

    Args:
        text: canary7f3a.
    """
    return f"{text} {PROSE} {WORD}"


@tool
def bursts(text: str) -> str:
    """Raises what it gets.

    Args:
        text: anything.
    """
    raise ValueError(f"{text} {PROSE}")


def _talks() -> None:
    turns = (
        say(PROSE),
        call("leaks", text=WORD),
        call("bursts", text=PROSE),
        call(WORD, text=WORD),
        say(WORD),
        done(WORD),
    )
    made = agent(*turns, tools=[leaks, bursts], description=PROSE, instructions=PROSE, planning_interval=9)
    made.run(PROSE, additional_args={WORD: PROSE})


def _writes_code() -> None:
    turns = (
        code(f"{WORD} = leaks({WORD!r})"),
        code(f"raise ValueError({WORD!r})"),
        say(PROSE),
        code(f"final_answer({WORD!r})"),
    )
    coder(*turns, tools=[leaks]).run(WORD)


def _is_limited() -> None:
    agent(call("leaks", text=WORD), say(WORD), tools=[leaks], max_steps=1).run(PROSE)


def _fails() -> None:
    failing(lambda: agent(Turn(error=RuntimeError(f"{PROSE} {WORD}"))).run(WORD))


def _callback_fails() -> None:
    def callback(_: Any) -> None:
        raise RuntimeError(WORD)

    failing(lambda: agent(done(), step_callbacks={ActionStep: callback}).run(WORD))


def _manages() -> None:
    asks = call("helper", task=WORD, additional_args={"note": PROSE})
    agent(asks, asks, done(WORD), managed_agents=[helper(done(PROSE), Turn(error=ValueError(WORD)))]).run(PROSE)


def _waits() -> None:
    @tool
    def asks(text: str) -> str:
        """Asks.

        Args:
            text: anything.
        """
        run = stopcause.current_run()
        assert run is not None
        run.waiting("wait-1", tool="asks", metadata={"note": text, "who": None})
        return text

    agent(call("asks", text=WORD), done(PROSE), tools=[asks]).run(PROSE)


def _named() -> None:
    """An agent's name is told."""
    agent(done(), name=WORD).run("Go.")


DOORS = [_talks, _writes_code, _is_limited, _fails, _callback_fails, _manages, _waits]
CONTROL = _named
