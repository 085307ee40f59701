"""All the ways in which a turn of the Claude Agent SDK ends."""

from __future__ import annotations

from tests.frameworks.claude_agent_sdk import paths_clients, paths_ends, paths_real, paths_waits

PATHS = [*paths_real.PATHS, *paths_ends.PATHS, *paths_clients.PATHS, *paths_waits.PATHS]
PROGRAM = ("claude", 2, 1, "natural")
