"""All the ways in which a run of Pydantic AI ends."""

from __future__ import annotations

from tests.frameworks.pydantic_ai import paths_bounds, paths_ends, paths_failures, paths_streams, paths_waits

PATHS = [
    *paths_ends.PATHS, *paths_failures.PATHS, *paths_bounds.PATHS, *paths_streams.PATHS, *paths_waits.PATHS,
]  # fmt: skip
