"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework.observability import ChatTelemetryLayer


@tool
def close(ticket: int) -> str:
    """Closes a ticket."""
    return f"closed {ticket}"


class Canned(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, BaseChatClient):
    """Answers as a provider would: first with a call, then with text."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0

    async def _inner_get_response(self, **_: Any) -> ChatResponse:
        self.turn += 1
        if self.turn == 1:
            said = Content.from_function_call("call-1", "close", arguments='{"ticket": 7}')
            return ChatResponse(messages=[Message("assistant", [said])], finish_reason="tool_calls")
        return ChatResponse(messages=[Message("assistant", ["Closed."])], finish_reason="stop")


agent = Agent(Canned(), name="ticket-agent", tools=[close])


def ask(text: str) -> str:
    """Asks the agent, and waits for its answer."""
    return str(asyncio.run(agent.run(text)).text)


if __name__ == "__main__":
    sys.stdout.write(ask("Close ticket 7."))
