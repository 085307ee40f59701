"""All the ways in which a run of Agent Framework ends."""

from __future__ import annotations

from tests.frameworks.agent_framework import (
    paths_bounds,
    paths_ends,
    paths_faults,
    paths_orchestrations,
    paths_waits,
    paths_workflows,
)

PATHS = [
    *paths_ends.PATHS,
    *paths_bounds.PATHS,
    *paths_faults.PATHS,
    *paths_waits.PATHS,
    *paths_workflows.PATHS,
    *paths_orchestrations.PATHS,
]
