"""Marked text through everything of Google ADK that takes some. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

from typing import Any

from google.adk.agents.run_config import RunConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext

from tests.frameworks.google_adk.models import Desk, Turn, agent, call, failing, kept, say
from tests.frameworks.google_adk.paths_ends import Plugin, answer, content
from tests.frameworks.google_adk.paths_waits import signs_in
from tests.frameworks.marks import PROSE, WORD

NOTED = RunConfig(custom_metadata={"note": PROSE, "word": WORD})


def leaks(text: str, tool_context: ToolContext) -> dict[str, Any]:
    """Gives back what it gets."""
    tool_context.state[WORD] = PROSE
    return {WORD: f"{text} {PROSE}"}


def bursts(text: str) -> dict[str, Any]:
    """Raises what it gets."""
    raise ValueError(f"{text} {PROSE} {WORD}")


def asks(tool_context: ToolContext) -> dict[str, Any]:
    """Asks with what it knows."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint=PROSE, payload={"owner": WORD})
    return {WORD: PROSE}


async def _talks() -> None:
    made = agent(call("leaks", text=WORD), say(WORD), tools=[leaks], instruction=PROSE, description=WORD)
    await Desk(made).run(PROSE, NOTED, state_delta={WORD: PROSE})


async def _invents() -> None:
    def answered(**_: Any) -> dict[str, Any]:
        return {WORD: PROSE}

    await Desk(agent(call(WORD, text=WORD), say(PROSE), on_tool_error_callback=answered)).run(WORD)


async def _waits() -> None:
    desk = Desk(agent(call("asks"), say(PROSE), say(WORD), tools=[asks]), service=kept())
    await desk.run(PROSE, NOTED)
    await desk.run(desk.answer({"confirmed": True, "hint": PROSE, "payload": WORD}))


async def _is_denied() -> None:
    desk = Desk(agent(call("asks"), say(PROSE), say(WORD), tools=[asks]))
    await desk.run(PROSE)
    await desk.run(desk.answer({"confirmed": False, "payload": WORD}))


async def _signs_in() -> None:
    await Desk(agent(call("signs_in"), say(WORD), tools=[signs_in])).run(WORD)


async def _tool_fails() -> None:
    await failing(Desk(agent(call("bursts", text=WORD), tools=[bursts])).run(WORD))


async def _model_fails() -> None:
    await failing(Desk(agent(Turn(error=RuntimeError(f"{PROSE} {WORD}")))).run(WORD))


async def _callbacks() -> None:
    plugins = [Plugin("before_model_callback", lambda: answer(WORD))]
    await Desk(agent(say()), plugins=plugins).run(PROSE)
    await Desk(agent(say()), plugins=[Plugin("before_run_callback", lambda: content(WORD))]).run(PROSE)


async def _as_tool() -> None:
    inner = agent(say(WORD), name="expert", instruction=PROSE)
    await Desk(agent(call("expert", request=PROSE), say(WORD), tools=[AgentTool(inner)])).run(WORD, NOTED)


async def _named() -> None:
    """An agent's name is told."""
    await Desk(agent(say(), name=WORD)).run()


DOORS = [_talks, _waits, _is_denied, _signs_in, _tool_fails, _model_fails, _callbacks, _as_tool, _invents]
CONTROL = _named
