"""All the ways in which a run of the OpenAI Agents SDK ends."""

from __future__ import annotations

from tests.frameworks.openai_agents import paths_approvals, paths_ends, paths_outside, paths_streams

PATHS = [*paths_ends.PATHS, *paths_streams.PATHS, *paths_outside.PATHS, *paths_approvals.PATHS]
