"""A model that plays a script, and the agents and tools of the paths. All else is the framework's own.

Annotations are no strings here: the framework looks at those of a tool for its context.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, NamedTuple

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from workflows import Context
from workflows.events import HumanResponseEvent, InputRequiredEvent


class Turn(NamedTuple):
    """One answer of the model: text, or calls as (tool, id, input); or an error; after a pause in seconds."""

    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    finish: str | None = None
    error: BaseException | None = None
    pause: float = 0.0
    tokens: tuple[int, int] = (20, 5)

    @property
    def raw(self) -> dict[str, Any]:
        """The answer as a provider has it."""
        reason = self.finish or ("tool_calls" if self.calls else "stop")
        usage = {"prompt_tokens": self.tokens[0], "completion_tokens": self.tokens[1]}
        return {"choices": [{"finish_reason": reason}], "usage": usage}


def say(text: str = "Done.", **more: Any) -> Turn:
    """The model answers."""
    return Turn(text=text, **more)


def call(name: str = "look_up", call_id: str = "call-1", /, **given: Any) -> Turn:
    """The model asks for a tool."""
    return Turn(calls=((name, call_id, given),))


class Scripted(FunctionCallingLLM):
    """Plays turns, streamed or at once."""

    _turns: Any = PrivateAttr()

    def __init__(self, turns: Iterable[Turn]) -> None:
        super().__init__()
        self._turns = iter(turns)

    @property
    def metadata(self) -> Any:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, model_name="scripted-1")

    async def _next(self) -> Any:
        turn: Turn = next(self._turns)
        if turn.pause:
            await asyncio.sleep(turn.pause)
        if turn.error is not None:
            raise turn.error
        message = ChatMessage(role="assistant", content=turn.text, additional_kwargs={"calls": turn.calls})
        return ChatResponse(message=message, delta=turn.text, raw=turn.raw)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[Any], **_: Any) -> Any:  # noqa: ARG002 - the decorator asks for it by name
        return await self._next()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[Any], **_: Any) -> Any:  # noqa: ARG002 - as above
        async def answer() -> AsyncGenerator[Any, None]:
            yield await self._next()

        return answer()

    def get_tool_calls_from_response(self, response: Any, **_: Any) -> Any:
        calls = response.message.additional_kwargs.get("calls", ())
        return [ToolSelection(tool_id=call_id, tool_name=name, tool_kwargs=given) for name, call_id, given in calls]

    def _prepare_chat_with_tools(self, chat_history: Any = None, **_: Any) -> Any:
        return {"messages": chat_history or []}

    def chat(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("agents ask for streams of chat with tools, and for nothing else")

    stream_chat = complete = stream_complete = chat

    async def acomplete(self, *_: Any, **__: Any) -> Any:
        return CompletionResponse(text="")

    astream_complete = acomplete


def look_up(key: str = "a") -> str:
    """Looks something up."""
    return f"value of {key}"


async def pay(amount: int = 1) -> str:
    """Pays."""
    return f"paid {amount}"


def breaks() -> str:
    """Always fails."""
    raise ValueError("canary-7f3a in a tool")


async def slow() -> str:
    """Takes longer than anybody waits."""
    await asyncio.sleep(5)
    return "late"


async def ask(ctx: Context) -> str:
    """Asks a person."""
    question = InputRequiredEvent(note="canary-7f3a", who="finance")
    answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=question, waiter_id="canary-7f3a")
    return f"they say {answer.response}"


def answer_now(key: str = "a") -> str:
    """Its result is the answer."""
    return f"value of {key}"


TOOLS = (look_up, pay, breaks, slow, ask)
DIRECT = FunctionTool.from_defaults(answer_now, return_direct=True)


def agent(*turns: Turn, tools: Iterable[Any] = TOOLS, name: str = "clerk", **more: Any) -> FunctionAgent:
    """An agent that plays these turns."""
    return FunctionAgent(name=name, description="canary-7f3a", llm=Scripted(turns), tools=list(tools), **more)


async def settles() -> None:
    """Goes on when all that could move has moved: turns of the loop, since time passes faster where others work."""
    for _ in range(300):
        await asyncio.sleep(0)


async def comes_to(handler: Any, kind: type) -> None:
    """Reads the stream until there is such an event, and all after it stands still."""
    async for event in handler.stream_events():
        if isinstance(event, kind):
            return await settles()
    raise AssertionError("it never came to that")


async def asked_of(handler: Any) -> None:
    """Until somebody is asked."""
    await comes_to(handler, InputRequiredEvent)


async def failing(made: Any) -> None:
    """Awaits what is meant to raise."""
    try:
        await made
    except Exception:  # noqa: BLE001 - that it raises is all that is wanted
        return
    raise AssertionError("it was to raise")
