"""A folder for each framework: what its classes, fields and words mean, and where it is listened to.

Here: which hooks there are. A folder has a function `install`, which listens and gives back what undoes it, and the
framework's cause map as a table. It imports its framework inside `install`: this list is read in processes that have
none of them.

What hooks share is beside the folders: `guard` (nothing of ours raises; objects that may have changed shape are read
with care), `call` (an invocation and its one end), `wrapping` (a `Call` around a framework's function), and `waiting`
(which run waits for which answer).
"""

from __future__ import annotations

from typing import NamedTuple


class Spec(NamedTuple):
    """A hook.

    Attributes:
        name: What `instrument` and STOPCAUSE_DISABLED call it; its folder and its framework's name in records.
        distribution: The package whose version counts.
        trigger: The module whose import means that the framework is used; the hook is installed then.
        lowest: The oldest version that is tested.
        below: The first that is not. Outside, only exception classes are read, and receipts say so.
    """

    name: str
    distribution: str
    trigger: str
    lowest: str
    below: str


SPECS = (
    Spec("agent_framework", "agent-framework-core", "agent_framework", "1.0", "2"),
    Spec("claude_agent_sdk", "claude-agent-sdk", "claude_agent_sdk", "0.2.126", "0.3"),
    Spec("crewai", "crewai", "crewai", "1.15", "2"),
    Spec("google_adk", "google-adk", "google.adk.runners", "2.0", "3"),
    Spec("langgraph", "langgraph", "langgraph.pregel", "1.0", "1.3"),
    Spec("llama_index", "llama-index-workflows", "workflows", "2.10", "3"),
    Spec("openai_agents", "openai-agents", "agents", "0.20", "0.25"),
    Spec("pydantic_ai", "pydantic-ai-slim", "pydantic_ai", "2.0", "3"),
    Spec("smolagents", "smolagents", "smolagents", "1.20", "2"),
    Spec("strands", "strands-agents", "strands.agent.agent", "1.16", "2"),
    Spec("temporal", "temporalio", "temporalio", "1.20", "2"),
)
# Run by another program, and turned on by nobody here; STOPCAUSE_DISABLED turns it off all the same.
PROGRAMS = ("claude_code",)
# Put in front of a stream by the application itself (`stopcause.agui`); turned off in the same way.
TAPS = ("agui",)
