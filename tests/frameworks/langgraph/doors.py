"""Marked text through everything of LangGraph that takes some. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

import contextlib
from typing import Any

from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelCallLimitMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, call, graph, say
from tests.frameworks.marks import PROSE, WORD

ASK = {"messages": [("user", f"{PROSE} {WORD}")]}
ABOUT: Any = {"metadata": {"note": PROSE, "word": WORD}, "tags": [WORD], "run_name": WORD}


def leaks(text: str) -> str:
    """Gives back what it gets."""
    return f"{text} {PROSE} {WORD}"


def bursts(text: str) -> str:
    """Raises what it gets."""
    raise ValueError(f"{text} {PROSE}")


def _talks() -> None:
    made = agent(
        call("leaks", text=WORD), call(WORD, text=PROSE), say("stop", WORD), tools=[leaks, bursts], system_prompt=PROSE
    )
    made.invoke(ASK, ABOUT | models.thread())


def _streams() -> None:
    made = agent(call("leaks", text=WORD), say("stop", WORD), tools=[leaks], system_prompt=WORD)
    modes: Any = ["values", "updates", "messages", "debug", "custom", "tasks", "checkpoints"]
    assert list(made.stream(ASK, ABOUT, stream_mode=modes))


def _tool_fails() -> None:
    with contextlib.suppress(ValueError):
        agent(call("bursts", text=WORD), tools=[bursts]).invoke(ASK, ABOUT)


def _model_fails() -> None:
    with contextlib.suppress(RuntimeError):
        agent(RuntimeError(f"{PROSE} {WORD}")).invoke(ASK, ABOUT)


def _node_fails() -> None:
    def burst(_state: models.State) -> models.State:
        raise KeyError(WORD) from ValueError(PROSE)

    with contextlib.suppress(KeyError):
        graph(burst).invoke({"done": [WORD, PROSE]}, ABOUT)


def _gated(*decisions: Any) -> None:
    middleware = [HumanInTheLoopMiddleware(interrupt_on={"leaks": True}, description_prefix=PROSE)]
    made = agent(
        call("leaks", "leaks", text=WORD), say("stop", WORD), tools=[leaks], middleware=middleware,
        checkpointer=InMemorySaver(),
    )  # fmt: skip
    config = ABOUT | models.thread()
    made.invoke(ASK, config)
    made.invoke(Command(resume={"decisions": decisions}), config)


def _is_answered() -> None:
    edit = {"type": "edit", "edited_action": {"name": "leaks", "args": {"text": PROSE}}}
    _gated(edit, {"type": "reject", "message": WORD})


def _asks() -> None:
    def ask(_state: models.State) -> models.State:
        given = interrupt({"action_requests": [{"name": WORD, "args": {WORD: PROSE}}], "who": "team:a", "note": WORD})
        return {"done": [interrupt(WORD), interrupt({"type": "tool_approval", "name": WORD, "note": PROSE}), given]}

    made, config = graph(ask, checkpointer=InMemorySaver()), ABOUT | models.thread()
    made.invoke({"done": [WORD]}, config)
    made.invoke(Command(resume={"decisions": [{"type": WORD, "message": PROSE}]}), config)
    made.invoke(Command(resume=WORD), config)
    made.invoke(Command(resume=PROSE), config)


def _is_bounded() -> None:
    limit = ModelCallLimitMiddleware(run_limit=1)
    agent(call("leaks", text=WORD), tools=[leaks], middleware=[limit]).invoke(ASK, ABOUT)


def _is_refused() -> None:
    with contextlib.suppress(Exception):
        graph(models.collect).invoke({WORD: PROSE}, ABOUT)


def _named() -> None:
    """An agent's name is told."""
    agent(say(), name=WORD).invoke(ASK)


DOORS = [_talks, _streams, _tool_fails, _model_fails, _node_fails, _is_answered, _asks, _is_bounded, _is_refused]
CONTROL = _named
