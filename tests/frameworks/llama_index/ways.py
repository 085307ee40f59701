"""What a program can do with LlamaIndex, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from workflows import Context, Workflow
from workflows.events import HumanResponseEvent

import stopcause
from stopcause.receipts.hooks import llama_index
from stopcause.receipts.hooks.llama_index import waits as llama_index_waits
from stopcause.receipts.hooks.llama_index.agent import AgentCall
from stopcause.receipts.hooks.llama_index.call import WorkflowCall
from tests.frameworks.harness import Scripted
from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.models import Turn, agent, asked_of, call, say, settles

RUNNER: Any = llama_index._runner()
_TICKS = "_process_tick" if hasattr(RUNNER, "_process_tick") else "wait_for_tick"
_LAST_TURN = "_generate_early_stopping_response"
POINTS = [
    (Workflow, "run"), (RUNNER, "run"), (RUNNER, "process_command"), (RUNNER, _TICKS), (Context, "to_dict"),
    (Context, "from_dict"),
    *((owner, _LAST_TURN) for owner in (BaseWorkflowAgent, AgentWorkflow) if hasattr(owner, _LAST_TURN)),
]  # fmt: skip
FAULTS = [
    (WorkflowCall, "tick"), (WorkflowCall, "command"), (WorkflowCall, "model_event"), (llama_index_waits.Waits, "keep"),
    (llama_index_waits.Waits, "_allowed"), (llama_index_waits, "digest"),
]  # fmt: skip
ENDS = [
    *(
        (WorkflowCall, name)
        for name in ("cause", "is_first_end", "came_back", "failed", "read_result", "takes", "describe")
    ),
    (AgentCall, "read_result"),
]


class Seen:
    """What a program sees: events, results, exceptions, and that no run is current where it has none."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            self.told.append((type(value), bool(traceback.extract_tb(value.__traceback__)), value.args))
        else:
            self.told.append((type(value), str(value), stopcause.current_run()))

    async def reads(self, handler: Any) -> None:
        """All events, the framework's own too, and what comes of it."""
        async for event in handler.stream_events(expose_internal=True):
            self.told.append(type(event))
        try:
            self.tell(await handler)
        except BaseException as error:  # noqa: BLE001 - it is what is looked at
            self.tell(error)


async def _answers(seen: Seen) -> None:
    await seen.reads(agent(call(), call("breaks", "call-2"), say()).run(user_msg="Go."))


async def _limit(seen: Seen) -> None:
    await seen.reads(agent(call(), call(), say()).run(user_msg="Go.", max_iterations=2))


async def _forced(seen: Seen) -> None:
    made = agent(call(), call(), say(), early_stopping_method="generate")
    await seen.reads(made.run(user_msg="Go.", max_iterations=2))


async def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        await agent(Turn(error=error)).run(user_msg="Go.")
    assert raised.value is error
    seen.tell(raised.value)


async def _refused(seen: Seen) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared, with and without
        flows.Two().run(start_event=42)
    seen.tell(raised.value)


async def _runs_out(seen: Seen) -> None:
    await seen.reads(flows.OneSlow(timeout=0.05).run())


async def _waits(seen: Seen) -> None:
    handler = flows.WaitsFor(timeout=5).run()
    await asked_of(handler)
    handler.ctx.send_event(HumanResponseEvent(response="y"))
    seen.tell(await handler)


async def _keeps(seen: Seen) -> None:
    made = flows.Required(timeout=5)
    handler = made.run()
    await asked_of(handler)
    state = handler.ctx.to_dict()
    seen.told.append(sorted(state))
    await handler.cancel_run()
    handler = made.run(ctx=Context.from_dict(made, state))
    handler.ctx.send_event(HumanResponseEvent(response="y"))
    seen.tell(await handler)


async def _cancels(seen: Seen) -> None:
    handler = flows.OneSlow(timeout=5).run()
    await settles()
    await handler.cancel_run()
    await seen.reads(handler)


async def _leaves(seen: Seen) -> None:
    handler = flows.Two(timeout=5).run()
    stream = handler.stream_events()
    seen.tell(await anext(stream))
    await stream.aclose()
    seen.tell(await handler)


async def _nested(seen: Seen) -> None:
    made = flows.Outer(timeout=5)
    made.inner = lambda: flows.Fails(timeout=5).run()
    await seen.reads(made.run())


Way = Callable[[Seen], Coroutine[Any, Any, None]]
WAYS: list[Way] = [
    _answers, _limit, _forced, _fails, _refused, _runs_out, _waits, _keeps, _cancels, _leaves, _nested,
]  # fmt: skip
CHEAP: list[Way] = [_answers, _keeps, _nested]


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    asyncio.run(way(seen))
    return seen.told
