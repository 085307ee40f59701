"""An agent with one model call. The framework traces by itself once there is an SDK; OpenInference rewrites that."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    FunctionInvocationLayer,
    Message,
)
from agent_framework.observability import ChatTelemetryLayer
from common import main, tracer_provider


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, BaseChatClient):
    async def _inner_get_response(self, **_: Any) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", ["done"])], finish_reason="stop")


def openinference() -> None:
    from openinference.instrumentation.agent_framework import AgentFrameworkToOpenInferenceProcessor

    provider: Any = tracer_provider()
    provider.add_span_processor(AgentFrameworkToOpenInferenceProcessor())


agent = Agent(Scripted(), name="clerk")
loop = asyncio.new_event_loop()


def once() -> object:
    return loop.run_until_complete(agent.run("hello"))


main(once, {"Agent Framework's own spans": tracer_provider, "OpenInference": openinference})
