"""An agent with one model call, which calls the tool that means done."""

from __future__ import annotations

from typing import Any

from common import main, tracer_provider
from smolagents import LogLevel, Model, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole


class Scripted(Model):
    def generate(self, *_: Any, **__: Any) -> ChatMessage:
        function = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": "done"})
        call = ChatMessageToolCall(function=function, id="call-1", type="function")
        return ChatMessage(MessageRole.ASSISTANT, tool_calls=[call])


def openinference() -> None:
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor

    SmolagentsInstrumentor().instrument(tracer_provider=tracer_provider())


agent = ToolCallingAgent([], Scripted(), verbosity_level=LogLevel.OFF)


def once() -> object:
    return agent.run("hello")


main(once, {"OpenInference": openinference})
