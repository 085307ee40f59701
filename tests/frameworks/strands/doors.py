"""Marked text through everything of Strands that takes some. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

from typing import Any

from strands import tool
from strands.hooks import BeforeModelCallEvent
from strands.multiagent import GraphBuilder, Swarm

from tests.frameworks.marks import PROSE, WORD
from tests.frameworks.strands.models import Turn, agent, answers, answers_with, ask_before, call, failing, say


@tool
def leaks(text: str) -> str:
    """Gives back what it gets.

    Args:
        text: anything.
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
    made = agent(
        call("leaks", text=WORD), call("bursts", "call-2", text=PROSE), call(WORD, "call-3", text=WORD), say(WORD),
        tools=[leaks, bursts], system_prompt=PROSE, trace_attributes={"note": PROSE, "word": WORD},
    )  # fmt: skip
    made(PROSE, invocation_state={"result": WORD, "start_event_loop": WORD, "event": PROSE})


def _waits() -> None:
    made = agent(call("leaks", text=WORD), say(WORD), tools=[leaks], hooks=[ask_before("leaks", reason={"note": WORD})])
    made(answers(made(PROSE), WORD))


def _is_answered() -> None:
    made = agent(call("leaks", text=WORD), say(WORD), tools=[leaks], hooks=[ask_before("leaks", reason=PROSE)])
    made(answers(made(PROSE)))


def _fails() -> None:
    failing(lambda: agent(Turn(error=RuntimeError(f"{PROSE} {WORD}")))(WORD))


def _hook_fails() -> None:
    def callback(_: Any) -> None:
        raise RuntimeError(WORD)

    failing(lambda: agent(say(), hooks=[answers_with(BeforeModelCallEvent, callback)])(WORD))


def _graph() -> None:
    builder = GraphBuilder()
    builder.add_node(agent(call("leaks", text=WORD), say(PROSE), tools=[leaks], name="reader"), "reader")
    builder.build()(WORD)


def _swarm() -> None:
    hand = call("handoff_to_agent", agent_name="writer", message=PROSE, context={WORD: WORD})
    Swarm([agent(hand, say(WORD), name="reader"), agent(Turn(error=ValueError(WORD)), name="writer")])(PROSE)


def _named() -> None:
    """An agent's name is told."""
    agent(say(), name=WORD)("Go.")


DOORS = [_talks, _waits, _is_answered, _fails, _hook_fails, _graph, _swarm]
CONTROL = _named
