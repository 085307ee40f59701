"""An agent with one model call. Strands traces by itself once there is an SDK, so that is the peer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from common import main, tracer_provider
from strands import Agent
from strands.models.model import Model


class Scripted(Model):
    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> dict[str, str]:
        return {"model_id": "scripted"}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise AssertionError("nothing here asks for structured output")
        yield  # an async generator, as the base class has it

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


loop = asyncio.new_event_loop()


def once() -> object:
    return loop.run_until_complete(Agent(Scripted(), callback_handler=None).invoke_async("hello"))


main(once, {"Strands' own spans": tracer_provider})
