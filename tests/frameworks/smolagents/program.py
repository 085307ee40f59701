"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it."""

from __future__ import annotations

import sys
from typing import Any

from smolagents import LogLevel, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole


@tool
def close(ticket: int) -> str:
    """Closes a ticket.

    Args:
        ticket: its number.
    """
    return f"closed {ticket}"


class Canned(Model):
    """Answers as a provider would: first with a call, then with the one that means done."""

    def __init__(self) -> None:
        super().__init__()
        self._answers = iter([("close", {"ticket": 7}), ("final_answer", {"answer": "Closed."})])

    def generate(self, *_: Any, **__: Any) -> ChatMessage:
        name, given = next(self._answers)
        function = ChatMessageToolCallFunction(name=name, arguments=given)
        call = ChatMessageToolCall(function=function, id="call-1", type="function")
        return ChatMessage(MessageRole.ASSISTANT, tool_calls=[call])


agent = ToolCallingAgent([close], Canned(), name="ticket_agent", verbosity_level=LogLevel.OFF)

if __name__ == "__main__":
    sys.stdout.write(str(agent.run("Close ticket 7.")))
