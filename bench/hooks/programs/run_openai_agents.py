"""An agent with one model call."""

from __future__ import annotations

import asyncio
from typing import Any

import agents
from agents import Agent, ModelResponse, Runner, Usage
from agents.models.interface import Model
from common import main, tracer_provider
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

agents.set_trace_processors([])


class Scripted(Model):
    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        text = ResponseOutputText(text="done", type="output_text", annotations=[], logprobs=[])
        item = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[item], usage=Usage(requests=1, input_tokens=5, output_tokens=5), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing here streams")


def openinference() -> None:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=tracer_provider())


def logfire() -> None:
    import logfire as fire

    fire.configure(send_to_logfire=False, console=False)
    fire.instrument_openai_agents()


loop = asyncio.new_event_loop()
agent = Agent("agent", model=Scripted())


def once() -> object:
    return loop.run_until_complete(Runner.run(agent, "hello"))


main(once, {"OpenInference": openinference, "Logfire": logfire})
