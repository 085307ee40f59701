"""A model that answers by a script, for both ends of the version range; the SDK's own `agents.testing` is only in one.

Texts, arguments and results that stand in here are markers: no byte of them may be found in what a hook records.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NamedTuple

import agents
from agents import Agent, ModelResponse, ModelSettings, OpenAIChatCompletionsModel, Usage
from agents.models.interface import Model
from openai import AsyncOpenAI
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
)
from openai.types.responses.response_output_item import McpApprovalRequest, McpCall
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage

MARKER = "canary-7f3a of a person"
MARKER_WORD = "canary7f3a"

agents.set_trace_processors([])  # spans as ever, and nothing that would send them anywhere


class Answer(NamedTuple):
    """One answer of the model: Responses items, and what it used."""

    items: Sequence[Any]
    output_tokens: int = 5


Step = Answer | BaseException | Callable[[], Any]  # a callable may be async; it gives an answer, or raises


def says(text: str = MARKER, *, status: str = "completed") -> Answer:
    """A message."""
    part = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return Answer([_message(part, status)])


def refuses() -> Answer:
    """A message that is a refusal."""
    return Answer([_message(ResponseOutputRefusal(refusal=MARKER, type="refusal"), "completed")])


def calls(*names: str, arguments: str | None = None, first: int = 1) -> Answer:
    """Calls of these tools, with the ids call-1, call-2 and so on."""
    text = json.dumps({"note": f"{MARKER} {MARKER_WORD}"}) if arguments is None else arguments
    return Answer(
        [
            ResponseFunctionToolCall(name=name, call_id=f"call-{number}", arguments=text, type="function_call")
            for number, name in enumerate(names, first)
        ]
    )


def asks_hosted(name: str = "pay") -> Answer:
    """What the provider sends when a hosted MCP server's tool wants a yes."""
    return Answer(
        [McpApprovalRequest(id="mcpr-1", arguments=MARKER, name=name, server_label="bank", type="mcp_approval_request")]
    )


def ran_hosted(name: str = "pay") -> Answer:
    """What it sends when that tool has run."""
    call = McpCall(
        id="mcp-1", arguments=MARKER, name=name, server_label="bank", type="mcp_call", approval_request_id="mcpr-1"
    )
    return Answer([call, *says().items])


class Scripted(Model):
    """Gives its steps in order, streamed or not."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.model = "scripted-1"

    async def get_response(self, *_args: Any, **_kwargs: Any) -> ModelResponse:
        """The next step."""
        answer = await self._next()
        usage = Usage(
            requests=1, input_tokens=10, output_tokens=answer.output_tokens, total_tokens=10 + answer.output_tokens
        )
        return ModelResponse(output=list(answer.items), usage=usage, response_id="resp-1")

    async def stream_response(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """The next step, as the one event that every stream ends with."""
        answer = await self._next()
        usage = ResponseUsage(
            input_tokens=10,
            input_tokens_details=InputTokensDetails.model_construct(cached_tokens=0, cache_write_tokens=0),
            output_tokens=answer.output_tokens,
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
            total_tokens=10 + answer.output_tokens,
        )
        whole = Response(
            id="resp-1", created_at=0, model=self.model, object="response", output=list(answer.items),
            parallel_tool_calls=True, tool_choice="auto", tools=[], usage=usage,
        )  # fmt: skip
        yield ResponseCompletedEvent(response=whole, sequence_number=0, type="response.completed")

    async def _next(self) -> Answer:
        step = self._steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        if not isinstance(step, Answer):
            step = step()
            if inspect.isawaitable(step):
                step = await step
        return step


async def slow() -> Answer:
    """An answer that nobody waits for."""
    await asyncio.sleep(60)
    return says()


def slow_after(cue: Callable[[], Any]) -> Step:
    """The same, once a path has been told that the model is being asked: no path depends on how fast a machine is."""

    def step() -> Any:
        cue()
        return slow()

    return step


def expires(timer: asyncio.Timeout) -> Callable[[], Any]:
    """A cue that lets a timer run out."""
    return lambda: timer.reschedule(0)


def agent(*steps: Step, name: str = "ticket-agent", **options: Any) -> Agent[Any]:
    """An agent on such a model; settings of a model among the options are the model's."""
    settings = {key: options.pop(key) for key in ("max_tokens", "timeout") if key in options}
    options.setdefault("instructions", f"{MARKER} {MARKER_WORD}")
    return Agent(name=name, model=Scripted(*steps), model_settings=ModelSettings(**settings), **options)


def completion(finish: Any, text: str, output_tokens: int) -> ChatCompletion:
    """What Chat Completions answers."""
    message = ChatCompletionMessage(role="assistant", content=text)
    used = CompletionUsage(prompt_tokens=10, completion_tokens=output_tokens, total_tokens=10 + output_tokens)
    return ChatCompletion(
        id="chat-1", created=0, model="chat-1", object="chat.completion", usage=used,
        choices=[Choice(finish_reason=finish, index=0, message=message)],
    )  # fmt: skip


def chatting(answer: ChatCompletion) -> Agent[Any]:
    """An agent on the SDK's own model for Chat Completions, whose client gives this answer."""

    async def create(**_: Any) -> ChatCompletion:
        return answer

    client: Any = AsyncOpenAI(api_key="none", base_url="https://provider.example/v1")
    client.chat.completions.create = create
    model = OpenAIChatCompletionsModel("chat-1", client)
    return Agent(name="ticket-agent", model=model, model_settings=ModelSettings(max_tokens=64))


def _message(part: Any, status: Any) -> ResponseOutputMessage:
    return ResponseOutputMessage(id="msg-1", type="message", role="assistant", status=status, content=[part])
