"""All the ways in which a run of LlamaIndex ends."""

from __future__ import annotations

from tests.frameworks.llama_index import paths_agents, paths_waits, paths_workflows

PATHS = [*paths_agents.PATHS, *paths_workflows.PATHS, *paths_waits.PATHS]
PROGRAM = ("TicketFlow", 2, None, "natural")  # a plain workflow: it calls no model
let_go = paths_waits.let_go
