"""All the ways in which a run of CrewAI ends."""

from __future__ import annotations

from tests.frameworks.crewai import paths_ends, paths_faults, paths_flows, paths_waits

PATHS = [*paths_ends.PATHS, *paths_faults.PATHS, *paths_flows.PATHS, *paths_waits.PATHS]
