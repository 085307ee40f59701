"""What the hook keeps in memory for a run that goes on later: nothing of what the program asks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from workflows import Workflow

import stopcause
from stopcause.receipts.hooks.llama_index.waits import Kept, Waits
from stopcause.receipts.testing import recorded
from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.models import asked_of


@pytest.mark.parametrize("flow", [flows.Required, flows.WaitsFor], ids=lambda flow: flow.__name__)
@pytest.mark.parametrize(("keys", "left"), [({}, None), ({"owner": "who"}, {"who": "finance"})], ids=["none", "one"])
def test_of_a_question_only_what_may_be_told_is_kept(
    flow: type[Workflow], keys: dict[str, str], left: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Kept] = []
    original = Waits.keep

    def keep(self: Waits, state: Any) -> Any:
        found = original(self, state)
        assert found is not None
        kept.append(found[1])
        return found

    async def program() -> None:
        handler = flow(timeout=5).run()
        await asked_of(handler)
        handler.ctx.to_dict()
        await handler.cancel_run()

    monkeypatch.setattr(Waits, "keep", keep)
    stopcause.instrument("llama_index")
    try:
        with recorded(approval_keys=keys):
            asyncio.run(program())
    finally:
        stopcause.uninstrument("llama_index")
    ((wait,),) = [each.waits for each in kept]
    assert wait.metadata == left
    assert not any(isinstance(each, flows.Question) for each in wait)
