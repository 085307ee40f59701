"""Agents that others manage, and agents in tools: children of the run that called them."""

from __future__ import annotations

import time
from typing import Any

from smolagents import tool

from tests.frameworks.harness import Path_
from tests.frameworks.smolagents.models import Turn, agent, call, code, coder, done, helper, say
from tests.frameworks.smolagents.paths_ends import LIMITED, UNPROVEN
from tests.frameworks.smolagents.paths_faults import MODEL_FAILED

_ASKS = call("helper", task="canary-7f3a", additional_args={})


@tool
def slow(key: str) -> str:
    """Takes a while.

    Args:
        key: what.
    """
    time.sleep(0.3)
    return key


@tool
def delegates(key: str) -> str:
    """Runs another agent.

    Args:
        key: what.
    """
    return str(agent(done(), name="inner").run(key))


def _managed(*turns: Turn, **more: Any) -> None:
    agent(_ASKS, done(), managed_agents=[helper(*turns, **more)]).run("Close it.")


def _managed_in_code(*turns: Turn) -> None:
    asks, says = code("x = helper(task='canary-7f3a')"), code("final_answer('x')")
    coder(asks, says, managed_agents=[helper(*turns)]).run("Close it.")


def _beside_a_tool() -> None:
    """In threads, which take no context with them in older versions."""
    calls = (("helper", {"task": "x", "additional_args": {}}), ("slow", {"key": "a"}))
    agent(Turn(calls=calls), done(), tools=[slow], managed_agents=[helper(done())]).run("Close it.")


PATHS = [
    Path_("managed", "It called an agent that it manages: a child.", UNPROVEN, lambda: _managed(done())),
    Path_(
        "managed-child",
        "It called an agent that it manages: the child is judged.",
        UNPROVEN,
        lambda: _managed(done()),
        judged=1,
    ),
    Path_(
        "managed-in-code",
        "Code called an agent that it manages: a child, though code runs in a thread.",
        UNPROVEN,
        lambda: _managed_in_code(done()),
        judged=1,
    ),
    Path_(
        "managed-beside-a-tool",
        "It called an agent that it manages beside a tool, in threads: a child.",
        UNPROVEN,
        _beside_a_tool,
        judged=1,
    ),
    Path_(
        "managed-fails",
        "The child's model failed; its parent was told and went on.",
        UNPROVEN,
        lambda: _managed(Turn(error=ValueError("canary-7f3a"))),
    ),
    Path_(
        "managed-failed",
        "The child's model failed: the child is judged.",
        MODEL_FAILED,
        lambda: _managed(Turn(error=ValueError("canary-7f3a"))),
        judged=1,
    ),
    Path_(
        "managed-failed-in-code",
        "Code called an agent that it manages, whose model failed.",
        MODEL_FAILED,
        lambda: _managed_in_code(Turn(error=ValueError("canary-7f3a"))),
        judged=1,
    ),
    Path_(
        "managed-limit",
        "The child was at its limit; its parent got an ordinary answer.",
        LIMITED,
        lambda: _managed(call(key="a"), say(), max_steps=1),
        judged=1,
    ),
    Path_(
        "agent-in-tool",
        "A tool runs another agent: its run is a child.",
        UNPROVEN,
        lambda: agent(call("delegates", key="a"), done(), tools=[delegates]).run("Close it."),
        judged=1,
    ),
]
