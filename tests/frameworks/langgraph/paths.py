"""All the ways in which a run of LangGraph ends."""

from __future__ import annotations

from tests.frameworks.langgraph import paths_ends, paths_faults, paths_limits, paths_waits

PATHS = [*paths_ends.PATHS, *paths_limits.PATHS, *paths_faults.PATHS, *paths_waits.PATHS]

let_go = paths_faults.let_go  # after each: closes the streams that a path left open

PROGRAM = ("ticket-agent", 3, 1, "natural")  # supersteps
