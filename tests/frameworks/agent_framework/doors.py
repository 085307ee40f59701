"""Marked text through everything of Agent Framework that takes some. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

from typing import Any

from agent_framework import AgentSession, Message, agent_middleware, chat_middleware, tool
from agent_framework._middleware import MiddlewareTermination
from agent_framework.exceptions import ChatClientException

from tests.frameworks.agent_framework.models import Turn, agent, answer, call, failing, middleware, read, say
from tests.frameworks.agent_framework.paths_workflows import Asks, Breaks, graph
from tests.frameworks.marks import PROSE, WORD

TEXTS: dict[str, Any] = {"instructions": PROSE, "description": WORD, "additional_properties": {"note": WORD}}


@tool(description=PROSE)
def leaks(text: str) -> str:
    """Gives back what it gets."""
    return f"{text} {PROSE} {WORD}"


@tool
def bursts(text: str) -> str:
    """Raises what it gets."""
    raise ValueError(f"{text} {PROSE}")


@tool(approval_mode="always_require")
def pays(text: str) -> str:
    """Gives back what it gets."""
    return text


CALLS = (call("leaks", text=WORD), call("bursts", "call-2", text=PROSE), call(WORD, "call-3", text=WORD))
TALK = (*CALLS, say(f"{PROSE} {WORD}"))


def _talker(*turns: Turn, **more: Any) -> Any:
    return agent(*turns, tools=[leaks, bursts, pays], **TEXTS, **more)


async def _talks() -> None:
    given = {"metadata": {"note": PROSE, "word": WORD}, "user": WORD}
    await _talker(*TALK).run([PROSE, Message("user", [WORD])], options=given, function_invocation_kwargs={"word": WORD})


async def _streams() -> None:
    await read(_talker(*TALK).run(PROSE, stream=True))


async def _is_bounded() -> None:
    await _talker(*TALK, limits={"max_iterations": 2}).run(PROSE)


async def _waits(*, approved: bool) -> None:
    made, session = _talker(call("pays", text=WORD), say(WORD)), AgentSession(session_id="desk-1")
    session.state["note"] = PROSE
    result = await made.run(PROSE, session=session)
    for request in result.user_input_requests:
        request.additional_properties["note"] = WORD
    await made.run(answer(result, approved=approved), session=session)


async def _approves() -> None:
    await _waits(approved=True)


async def _denies() -> None:
    await _waits(approved=False)


async def _fails() -> None:
    await failing(_talker(Turn(error=RuntimeError(f"{PROSE} {WORD}"))).run(WORD))
    await failing(_talker(Turn(error=ChatClientException(PROSE))).run(WORD))


async def _refuses() -> None:
    await failing(_talker(call(WORD), limits={"terminate_on_unknown_calls": True}).run(WORD))


async def _middleware() -> None:
    async def ends(*_: Any) -> None:
        raise MiddlewareTermination(PROSE, result=WORD)

    async def raises(*_: Any) -> None:
        raise RuntimeError(WORD)

    await _talker(say(), middleware=[middleware(agent_middleware, ends)]).run(PROSE)
    await failing(_talker(say(), middleware=[middleware(chat_middleware, raises)]).run(PROSE))


async def _workflow() -> None:
    await graph(_talker(*TALK), description=PROSE).run(WORD)
    await failing(graph(Breaks(id="breaks")).run(PROSE))


async def _workflow_asks() -> None:
    made = graph(Asks(id="asks"))
    await made.run(PROSE)
    await made.run(responses={"question-1": WORD})


async def _named() -> None:
    """An agent's name is told."""
    await failing(agent(Turn(error=RuntimeError()), name=WORD).run("Go."))


DOORS = [_talks, _streams, _is_bounded, _approves, _denies, _fails, _refuses, _middleware, _workflow, _workflow_asks]
CONTROL = _named
