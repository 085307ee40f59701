"""A model that plays a script, and the agents and tools of the paths. All else is the framework's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from types import SimpleNamespace
from typing import Any, NamedTuple

from smolagents import CodeAgent, LogLevel, Model, TokenUsage, Tool, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)


class Turn(NamedTuple):
    """One answer of the model: text, or calls as (tool, arguments); or an error; after a pause in seconds."""

    text: str | None = None
    calls: tuple[tuple[str, Any], ...] = ()
    finish: str | None = None
    error: BaseException | None = None
    pause: float = 0.0
    tokens: tuple[int, int] | None = (20, 5)


def say(text: str = "Done.", **more: Any) -> Turn:
    """The model answers with text."""
    return Turn(text=text, **more)


def call(name: str = "look_up", /, *, finish: str | None = None, **given: Any) -> Turn:
    """The model asks for a tool."""
    return Turn(calls=((name, given),), finish=finish)


def done(answer: Any = "Done.", **more: Any) -> Turn:
    """The model calls the tool that means done."""
    return Turn(calls=(("final_answer", {"answer": answer}),), **more)


def code(*lines: str, **more: Any) -> Turn:
    """The model writes code."""
    return Turn(text="<code>\n" + "\n".join(lines) + "\n</code>", **more)


class Scripted(Model):
    """Plays turns. Where a turn has a finish reason, the raw answer is there too, in OpenAI's shape."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        super().__init__(model_id="scripted-1")
        self._turns = iter(turns)

    def generate(self, *_: Any, **__: Any) -> ChatMessage:
        turn = next(self._turns)
        time.sleep(turn.pause)
        if turn.error is not None:
            raise turn.error
        raw = SimpleNamespace(choices=[SimpleNamespace(finish_reason=turn.finish)]) if turn.finish else None
        calls = [
            ChatMessageToolCall(function=ChatMessageToolCallFunction(given, name), id=f"call-{i}", type="function")
            for i, (name, given) in enumerate(turn.calls)
        ]
        usage = TokenUsage(*turn.tokens) if turn.tokens else None
        return ChatMessage(MessageRole.ASSISTANT, turn.text, calls or None, raw=raw, token_usage=usage)


class Streaming(Scripted):
    """The same, piece by piece."""

    def generate_stream(self, *_: Any, **__: Any) -> Generator[ChatMessageStreamDelta]:
        whole = self.generate()
        for word in str(whole.content).split(" "):
            yield ChatMessageStreamDelta(content=f"{word} ")
        yield ChatMessageStreamDelta(content="", token_usage=whole.token_usage)


@tool
def look_up(key: str) -> str:
    """Looks something up.

    Args:
        key: what.
    """
    return f"value of {key}"


@tool
def pay(amount: int) -> str:
    """Pays.

    Args:
        amount: how much.
    """
    return f"paid {amount}"


@tool
def breaks(key: str) -> str:
    """Always fails.

    Args:
        key: what.
    """
    raise ValueError(f"canary-7f3a {key}")


TOOLS = (look_up, pay, breaks)


def agent(*turns: Turn, tools: Iterable[Tool] = TOOLS, name: str | None = "clerk", **more: Any) -> ToolCallingAgent:
    """An agent that plays these turns by calling tools, and prints nothing."""
    return ToolCallingAgent(list(tools), Scripted(turns), name=name, verbosity_level=LogLevel.OFF, **more)


def coder(*turns: Turn, tools: Iterable[Tool] = TOOLS, name: str | None = "coder", **more: Any) -> CodeAgent:
    """The same, by writing code."""
    model = Streaming(turns) if more.get("stream_outputs") else Scripted(turns)
    return CodeAgent(list(tools), model, name=name, verbosity_level=LogLevel.OFF, **more)


def helper(*turns: Turn, **more: Any) -> ToolCallingAgent:
    """An agent that another one manages."""
    return agent(*turns, name="helper", description="Helps.", **more)


def failing(run: Callable[[], Any]) -> None:
    """Runs what is meant to raise."""
    try:
        run()
    except Exception:  # noqa: BLE001 - that it raises is all that is wanted
        return
    raise AssertionError("it was to raise")
