"""All the ways in which a run of Google ADK ends."""

from __future__ import annotations

from tests.frameworks.google_adk import paths_agents, paths_ends, paths_faults, paths_waits

PATHS = [*paths_ends.PATHS, *paths_faults.PATHS, *paths_waits.PATHS, *paths_agents.PATHS]
PROGRAM = ("ticket_agent", 2, 1, "natural")  # names of agents are Python's
