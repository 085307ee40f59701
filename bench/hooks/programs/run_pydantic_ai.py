"""An agent with one model call."""

from __future__ import annotations

import asyncio

from common import main
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("done")])


def logfire() -> None:
    import logfire as fire

    fire.configure(send_to_logfire=False, console=False)
    fire.instrument_pydantic_ai()


loop = asyncio.new_event_loop()
agent = Agent(FunctionModel(answer))


def once() -> object:
    return loop.run_until_complete(agent.run("hello"))


main(once, {"Logfire": logfire})
