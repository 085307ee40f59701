"""Marked text through all paths of the OpenAI Agents SDK. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

from tests.frameworks import harness, marks
from tests.frameworks.openai_agents.models import MARKER, MARKER_WORD, agent, calls, says
from tests.frameworks.openai_agents.paths import PATHS
from tests.frameworks.openai_agents.paths_ends import look_up, run

assert (MARKER[:11].encode(), MARKER_WORD.encode()) == marks.MARKS


class Door:
    """A path; its models, tools and guardrails say the marks."""

    def __init__(self, path: harness.Path_) -> None:
        self.__name__ = path.id
        self.options = path.options
        self._run = path.run

    def __call__(self) -> None:
        harness._drive(self._run)


DOORS = [Door(path) for path in PATHS if not harness.differing("openai_agents", path.id).get("absent")]
CONTROL = run(lambda: agent(calls("look_up"), says(), name=MARKER_WORD, tools=[look_up]))  # an agent's name is told
