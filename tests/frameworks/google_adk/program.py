"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types


def close(ticket: int) -> dict[str, Any]:
    """Closes a ticket."""
    return {"closed": ticket}


class Canned(BaseLlm):
    """Answers as a provider would: first with a call, then with text."""

    turn: int = 0

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        del llm_request, stream
        self.turn += 1
        called = types.FunctionCall(name="close", id="call-1", args={"ticket": 7})
        part = types.Part(function_call=called) if self.turn == 1 else types.Part(text="Closed.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]), finish_reason=types.FinishReason.STOP)


agent = LlmAgent(name="ticket_agent", model=Canned(model="canned-1"), tools=[close])
runner = InMemoryRunner(agent)

if __name__ == "__main__":
    for event in asyncio.run(runner.run_debug("Close ticket 7.", quiet=True)):
        for part in event.content.parts if event.content else ():
            sys.stdout.write(part.text or "")
