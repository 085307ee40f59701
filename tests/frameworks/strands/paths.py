"""All the ways in which a run of Strands ends."""

from __future__ import annotations

from tests.frameworks.strands import paths_ends, paths_faults, paths_multiagent, paths_waits

PATHS = [*paths_ends.PATHS, *paths_faults.PATHS, *paths_waits.PATHS, *paths_multiagent.PATHS]
