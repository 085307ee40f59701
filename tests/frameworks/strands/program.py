"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from typing import Any

from strands import Agent, tool
from strands.models.model import Model


@tool
def close(ticket: int) -> str:
    """Closes a ticket.

    Args:
        ticket: its number.
    """
    return f"closed {ticket}"


class Canned(Model):
    """Answers as a provider would: first with a call, then with text."""

    def __init__(self) -> None:
        self.turn = 0

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncGenerator[dict[str, Any], None]:
        yield {}

    async def stream(self, *_: Any, **__: Any) -> AsyncGenerator[dict[str, Any], None]:
        self.turn += 1
        yield {"messageStart": {"role": "assistant"}}
        if self.turn == 1:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": "close", "toolUseId": "call-1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"ticket": 7}'}}}}
        else:
            yield {"contentBlockDelta": {"delta": {"text": "Closed."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if self.turn == 1 else "end_turn"}}


agent = Agent(model=Canned(), tools=[close], name="ticket-agent", callback_handler=None)

if __name__ == "__main__":
    sys.stdout.write(str(agent("Close ticket 7.")))
