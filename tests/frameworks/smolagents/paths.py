"""All the ways in which a run of smolagents ends."""

from __future__ import annotations

from tests.frameworks.smolagents import paths_aborts, paths_ends, paths_faults, paths_managed, paths_waits

PATHS = [*paths_ends.PATHS, *paths_faults.PATHS, *paths_aborts.PATHS, *paths_managed.PATHS, *paths_waits.PATHS]
PROGRAM = ("ticket_agent", 2, 1, "explicit_done")
