"""A crew of one agent with one task and one model call."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from common import main, tracer_provider

# Before the framework is imported: it would send telemetry, and keep its state in a home folder.
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TESTING": "true", "CREWAI_STORAGE_DIR": tempfile.mkdtemp()}

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM


class Scripted(BaseLLM):
    def call(self, *_: Any, **__: Any) -> str:
        return "Thought: done.\nFinal Answer: done"


def once() -> object:
    return crew.kickoff()


def openinference() -> None:
    from openinference.instrumentation.crewai import CrewAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=tracer_provider())


agent = Agent(role="clerk", goal="An answer.", backstory="Patient.", llm=Scripted(model="scripted"))
crew = Crew(agents=[agent], tasks=[Task(description="hello", expected_output="A word.", agent=agent)])
main(once, {"OpenInference": openinference})
