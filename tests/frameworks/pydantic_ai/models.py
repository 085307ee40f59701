"""Models that follow a script: Pydantic AI's own `FunctionModel`, answering with one line of the script after another.

A line is a `ModelResponse`, an exception to raise, or a function that waits. Streamed or not, it is the same script.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

# Called where a model or a tool begins to hang: what cuts it off does not have to guess when.
hanging: ContextVar[Callable[[], Any]] = ContextVar("hanging", default=lambda: None)

Line: TypeAlias = ModelResponse | BaseException | Callable[[], Any]


def model(*script: Line, name: str = "scripted") -> FunctionModel:
    """A model that answers by its script."""
    lines = iter(script)

    async def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return await _next(lines)

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        for part in (await _next(lines)).parts:
            if isinstance(part, TextPart):
                for word in part.content.split():
                    yield f"{word} "
            elif isinstance(part, ToolCallPart):
                arguments = json.dumps(part.args)
                yield {0: DeltaToolCall(part.tool_name, arguments, tool_call_id=part.tool_call_id)}

    return FunctionModel(answer, stream_function=stream, model_name=name)


async def _next(lines: Iterator[Line]) -> ModelResponse:
    line = next(lines)
    if isinstance(line, BaseException):
        raise line
    if callable(line):
        await line()
        pytest.fail("it was to be cut off")
    return line


def text(words: str = "It is done.", finish: Any = "stop", tokens: tuple[int, int] = (10, 2)) -> ModelResponse:
    """An answer in words."""
    return _response([TextPart(words)] if words else [], finish, tokens)


def calls(*tools: str, finish: Any = "tool_call", tokens: tuple[int, int] = (10, 2), **arguments: Any) -> ModelResponse:
    """An answer that calls tools, with ids `call-1` and so on; each is given as `name` or `name:id`."""
    parts = []
    for number, tool in enumerate(tools, 1):
        name, _, call_id = tool.partition(":")
        parts.append(ToolCallPart(name, arguments, tool_call_id=call_id or f"call-{number}"))
    return _response(parts, finish, tokens)


def broken_call(tool: str) -> ModelResponse:
    """A call whose arguments end in the middle, because the answer was too long."""
    return _response([ToolCallPart(tool, '{"order": "A', tool_call_id="call-1")], "length", (10, 2))


def http(status: int) -> ModelHTTPError:
    """What a provider refuses a request with."""
    return ModelHTTPError(status, "scripted", body={"message": "canary-7f3a of a provider"})


async def forever() -> None:
    """Never answers, and says when it has begun not to."""
    hanging.get()()
    await asyncio.sleep(60)


def _response(parts: list[Any], finish: Any, tokens: tuple[int, int]) -> ModelResponse:
    usage = RequestUsage(input_tokens=tokens[0], output_tokens=tokens[1])
    return ModelResponse(parts, usage=usage, finish_reason=finish)
