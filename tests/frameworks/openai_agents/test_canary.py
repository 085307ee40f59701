"""Names of hosted tools: what the model says, and so no name that may be told."""

from __future__ import annotations

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks import harness
from tests.frameworks.openai_agents.models import MARKER_WORD, agent, asks_hosted
from tests.frameworks.openai_agents.paths_approvals import hosted, paused


def test_the_name_of_a_hosted_tool_is_the_models_word_and_is_left_out() -> None:
    tools = hosted().tools
    stopcause.instrument("openai_agents")
    try:
        with recorded() as receipts:
            harness._drive(paused(lambda: agent(asks_hosted(MARKER_WORD), tools=tools)))
            assert MARKER_WORD.encode() not in b"\n".join(receipts.lines)
        assert receipts.stopped.approvals
    finally:
        stopcause.uninstrument("openai_agents")
