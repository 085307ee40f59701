"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it."""

from __future__ import annotations

import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class Canned(GenericFakeChatModel):
    """Answers as a provider would: first with a call, then with text."""

    def bind_tools(self, *_: Any, **__: Any) -> Canned:
        return self


def close(ticket: int) -> str:
    """Closes a ticket."""
    return f"closed {ticket}"


answers = [
    AIMessage("", tool_calls=[{"name": "close", "args": {"ticket": 7}, "id": "call-1"}]),
    AIMessage("Closed.", response_metadata={"finish_reason": "stop"}),
]
agent = create_agent(Canned(messages=iter(answers)), [close], name="ticket-agent")

if __name__ == "__main__":
    sys.stdout.write(agent.invoke({"messages": [("user", "Close ticket 7.")]})["messages"][-1].content)
