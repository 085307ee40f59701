"""All the ways in which a run of LlamaIndex ends."""

from __future__ import annotations

from tests.frameworks.llama_index import paths_agents, paths_waits, paths_workflows

PATHS = [*paths_agents.PATHS, *paths_workflows.PATHS, *paths_waits.PATHS]
let_go = paths_waits.let_go
