"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TESTING": "true", "CREWAI_STORAGE_DIR": tempfile.mkdtemp()}

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool


@tool("close")
def close(ticket: int) -> str:
    """Closes a ticket."""
    return f"closed {ticket}"


class Canned(BaseLLM):
    """Answers as a provider would: first with a call, then with text."""

    turn: int = 0

    def supports_function_calling(self) -> bool:
        return True

    def call(self, *_: Any, **__: Any) -> Any:
        self.turn += 1
        if self.turn > 1:
            return "Closed."
        return [{"id": "call-1", "type": "function", "function": {"name": "close", "arguments": '{"ticket": 7}'}}]


clerk = Agent(role="clerk", goal="Closed tickets.", backstory="Patient.", llm=Canned(model="canned"), tools=[close])
task = Task(description="Close ticket {ticket}.", expected_output="One word.", agent=clerk)
crew = Crew(name="ticket-agent", agents=[clerk], tasks=[task])

if __name__ == "__main__":
    sys.stdout.write(str(crew.kickoff(inputs={"ticket": 7})))
