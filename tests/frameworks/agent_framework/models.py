"""A model that plays a script, and the agents, tools and middleware of the paths. All else is the framework's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)
from agent_framework.observability import ChatTelemetryLayer


class Turn(NamedTuple):
    """One answer of the model: text, or calls as (tool, id, arguments), or more; or an error.

    `act` is called first, then comes a pause in seconds.
    """

    text: str | None = None
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    stop: str | None = None
    error: BaseException | None = None
    pause: float = 0.0
    tokens: tuple[int, int] = (20, 5)
    background: str | None = None
    more: tuple[Any, ...] = ()
    act: Callable[[], Any] | None = None


def say(text: str = "Done.", **more: Any) -> Turn:
    """The model answers."""
    return Turn(text=text, **more)


def call(name: str = "look_up", call_id: str = "call-1", /, **given: Any) -> Turn:
    """The model asks for a tool."""
    return Turn(calls=((name, call_id, given),))


def contents(turn: Turn) -> list[Content]:
    """The parts of an answer."""
    said = [] if turn.text is None else [Content.from_text(turn.text)]
    asked = [
        Content.from_function_call(call_id, name, arguments=json.dumps(given)) for name, call_id, given in turn.calls
    ]
    return [*said, *asked, *turn.more]


class Plain(BaseChatClient):
    """Plays turns, at once or as a stream of one update for each part. It has none of the framework's layers."""

    OTEL_PROVIDER_NAME = "scripted"

    def __init__(self, *, turns: Iterable[Turn], **more: Any) -> None:
        super().__init__(**more)
        self._turns = iter(turns)
        self.choices: list[Any] = []

    def _inner_get_response(self, *, stream: bool, options: Any, **_: Any) -> Any:
        self.choices.append(options.get("tool_choice"))
        if not stream:
            return self._whole()
        return ResponseStream(self._updates(), finalizer=ChatResponse.from_updates)

    async def _next(self) -> Turn:
        turn = next(self._turns)
        if turn.act is not None:
            turn.act()
        if turn.pause:
            await asyncio.sleep(turn.pause)
        if turn.error is not None:
            raise turn.error
        return turn

    async def _whole(self) -> ChatResponse:
        turn = await self._next()
        return ChatResponse(
            messages=[Message("assistant", contents(turn))], model="scripted-1", finish_reason=_finish(turn),
            usage_details=_usage(turn), continuation_token=_token(turn),
        )  # fmt: skip

    async def _updates(self) -> AsyncIterator[ChatResponseUpdate]:
        turn = await self._next()
        for content in contents(turn):
            yield ChatResponseUpdate(contents=[content], role="assistant", model="scripted-1")
        yield ChatResponseUpdate(
            contents=[Content.from_usage(_usage(turn))], role="assistant", finish_reason=_finish(turn),
            continuation_token=_token(turn),
        )  # fmt: skip


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, Plain):
    """The same with the layers that the framework's own clients have."""


class Looping(FunctionInvocationLayer, Plain):
    """The same with the function loop alone."""


def _finish(turn: Turn) -> Any:
    return turn.stop or ("tool_calls" if turn.calls else "stop")


def _usage(turn: Turn) -> Any:
    spent, said = turn.tokens
    return {"input_token_count": spent, "output_token_count": said, "total_token_count": spent + said}


def _token(turn: Turn) -> Any:
    return None if turn.background is None else {"response_id": turn.background}


@tool
def look_up(key: str = "a") -> str:
    """Looks something up."""
    return f"value of {key}"


@tool
def breaks() -> str:
    """Always fails."""
    raise ValueError("canary-7f3a in a tool")


@tool
async def slow() -> str:
    """Takes longer than anybody waits."""
    await asyncio.sleep(5)
    return "late"


@tool
async def dawdle() -> str:
    """Takes a little while."""
    await asyncio.sleep(0.05)
    return "there"


@tool(approval_mode="always_require")
def pay(amount: int = 1) -> str:
    """Pays, once somebody has said so."""
    return f"paid {amount}"


TOOLS = (look_up, breaks, slow, dawdle, pay)


def agent(*turns: Turn, tools: Sequence[Any] = TOOLS, name: str | None = "clerk", **more: Any) -> Agent:
    """An agent that plays these turns. What bounds its loop is given as `limits`."""
    client = more.pop("client", Scripted)(turns=turns, **_configured(more.pop("limits", None)))
    return Agent(client, name=name, tools=list(tools), **more)


def _configured(limits: Any) -> dict[str, Any]:
    return {} if limits is None else {"function_invocation_configuration": limits}


def answer(result: Any, *, approved: bool = True) -> Message:
    """The input that answers all that a result asks for."""
    return Message("user", [each.to_function_approval_response(approved) for each in result.user_input_requests])


async def failing(work: Any) -> None:
    """Awaits what is meant to raise."""
    try:
        await work
    except Exception:  # noqa: BLE001 - that it raises is all that is wanted
        return
    raise AssertionError("it was to raise")


async def read(stream: Any) -> list[Any]:
    """All that a stream has."""
    return [each async for each in stream]


def middleware(kind: Callable[[Any], Any], process: Callable[[Any, Callable[[], Any]], Any]) -> Any:
    """A middleware of a kind (`agent_middleware`, `function_middleware`, `chat_middleware`) from one function."""

    async def called(context: Any, call_next: Callable[[], Any]) -> None:
        await process(context, call_next)

    return kind(called)
