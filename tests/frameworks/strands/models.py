"""A model that plays a script, and the agents, tools and hooks of the paths. All else is the framework's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any, NamedTuple

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookRegistry
from strands.models.model import Model

Event = dict[str, Any]


class Turn(NamedTuple):
    """One answer of the model: text, or calls as (tool, id, input); or an error; after a pause in seconds."""

    text: str | None = None
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    stop: str | None = None
    error: BaseException | None = None
    pause: float = 0.0
    tokens: tuple[int, int] = (20, 5)


def say(text: str = "Done.", **more: Any) -> Turn:
    """The model answers."""
    return Turn(text=text, **more)


def call(name: str = "look_up", call_id: str = "call-1", /, **given: Any) -> Turn:
    """The model asks for a tool."""
    return Turn(calls=((name, call_id, given),))


class Scripted(Model):
    """Plays turns; each of its answers is streamed as a provider would."""

    def __init__(self, turns: Iterable[Turn], model_id: str = "scripted-1") -> None:
        self.config = {"model_id": model_id}
        self._turns = iter(turns)

    def update_config(self, **config: Any) -> None:
        self.config.update(config)

    def get_config(self) -> Event:
        return self.config

    async def structured_output(self, output_model: Any, *_: Any, **__: Any) -> AsyncGenerator[Event, None]:
        turn = next(self._turns)
        if turn.error is not None:
            raise turn.error
        yield {"output": output_model(**json.loads(turn.text or "{}"))}

    async def stream(self, *_: Any, **__: Any) -> AsyncGenerator[Event, None]:
        turn = next(self._turns)
        if turn.pause:
            await asyncio.sleep(turn.pause)
        if turn.error is not None:
            raise turn.error
        yield {"messageStart": {"role": "assistant"}}
        if turn.text is not None:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": turn.text}}}
            yield {"contentBlockStop": {}}
        for name, call_id, given in turn.calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": call_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": turn.stop or ("tool_use" if turn.calls else "end_turn")}}
        spent, said = turn.tokens
        usage = {"inputTokens": spent, "outputTokens": said, "totalTokens": spent + said}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


@tool
def look_up(key: str = "a") -> str:
    """Looks something up.

    Args:
        key: what.
    """
    return f"value of {key}"


@tool
def pay(amount: int = 1) -> str:
    """Pays.

    Args:
        amount: how much.
    """
    return f"paid {amount}"


@tool
def breaks() -> str:
    """Always fails."""
    raise ValueError("canary-7f3a in a tool")


@tool
async def slow() -> str:
    """Takes longer than anybody waits."""
    await asyncio.sleep(5)
    return "late"


def agent(*turns: Turn, tools: Iterable[Any] = (look_up, pay, breaks, slow), name: str = "clerk", **more: Any) -> Agent:
    """An agent that plays these turns, and prints nothing."""
    return Agent(model=Scripted(turns), tools=list(tools), name=name, callback_handler=None, **more)


class On:
    """A hook provider: one callback for one event."""

    def __init__(self, event: type, callback: Callable[[Any], Any]) -> None:
        self._event, self._callback = event, callback

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        registry.add_callback(self._event, self._callback)


def ask_before(name: str, *, reason: Any = None) -> On:
    """Asks a person before a tool runs, and cancels the call where the answer is not y."""

    def callback(event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == name and event.interrupt("approval", reason=reason) != "y":
            event.cancel_tool = "canary-7f3a: no"

    return On(BeforeToolCallEvent, callback)


def answers(result: Any, answer: str = "y") -> list[Event]:
    """The input that answers everything that a result waits for."""
    return [{"interruptResponse": {"interruptId": each.id, "response": answer}} for each in result.interrupts]


def answers_with(event_type: type, callback: Callable[[Any], Any]) -> On:
    """A hook that calls a function."""
    return On(event_type, callback)


def failing(run: Callable[[], Any]) -> None:
    """Runs what is meant to raise."""
    try:
        run()
    except Exception:  # noqa: BLE001 - that it raises is all that is wanted
        return
    raise AssertionError("it was to raise")


def setting(event_type: type, name: str, value: Any) -> On:
    """A hook that sets an attribute of an event."""
    return On(event_type, lambda event: setattr(event, name, value))
