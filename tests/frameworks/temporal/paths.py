"""All the ways in which an execution ends, or does not."""

from __future__ import annotations

from tests.frameworks.temporal import paths_chains, paths_ends, paths_waits

PROGRAM = ("CloseTicket", 1, 1, "natural")

PATHS = [*paths_ends.PATHS, *paths_chains.PATHS, *paths_waits.PATHS]
