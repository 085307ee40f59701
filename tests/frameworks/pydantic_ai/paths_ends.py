"""Runs that end by themselves: with words, with data, or cut off by the model's own limits."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models.fallback import FallbackModel

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.pydantic_ai.agents import PROMPT, Answer, agent, expecting, with_model
from tests.frameworks.pydantic_ai.models import broken_call, calls, http, model, text

_DONE = ("FALSE_COMPLETE", "no_contract")
_CAPPED = ("BOUNDED_STOP", "output_cap")
_FILTERED = ("FAILED", "content_filter")


async def _in_parallel() -> None:
    first, second = agent(calls("look_up"), text()), agent(text(), name="second-agent")
    async with stopcause.run("both", run_id="both"):
        await first.run(PROMPT)
        await second.run(PROMPT)


async def _in_block() -> None:
    async with stopcause.run(thread_id="thread-7") as run:
        await agent(calls("look_up"), text()).run(PROMPT)
        assert run.model_calls == 2


async def _nested() -> None:
    await _parent(agent(text(), name="child-agent")).run(PROMPT)


async def _nested_shared() -> None:
    outer = agent(calls("ask"), text(), name="parent-agent")
    inner = agent(calls("look_up"), text(), name="child-agent")

    @outer.tool
    async def ask(ctx: RunContext[None]) -> str:
        return str((await inner.run(PROMPT, usage=ctx.usage)).output)

    await outer.run(PROMPT)


def _parent(child: Any) -> Any:
    made = agent(calls("ask"), text(), name="parent-agent")

    @made.tool_plain
    async def ask() -> str:
        return str((await child.run(PROMPT)).output)

    return made


async def _gathered() -> None:
    async def one(name: str) -> None:
        await agent(calls("look_up"), text(), name=name).run(PROMPT)

    async with stopcause.run("caller", run_id="caller"):
        await asyncio.gather(one("agent-a"), one("agent-b"))


def _path(name: str, why: str, expected: tuple[str, str], run: Any, **options: Any) -> Path_:
    return Path_(name, why, expected, run, **options)


PATHS = [
    _path("natural", "The model answers; nothing proves that anything was done.", _DONE,
          lambda: asyncio.to_thread(agent(text()).run_sync, PROMPT)),
    _path("natural-after-tool", "A tool ran, and the model answers.", _DONE,
          lambda: agent(calls("look_up"), text()).run(PROMPT)),
    _path("output-tool", "The model calls the output tool: it says that it is done.", _DONE,
          lambda: agent(calls("final_result", order="A-7"), output=Answer).run(PROMPT)),
    _path("output-tool-second-try", "The output tool's arguments did not fit at first.", _DONE,
          lambda: agent(calls("final_result"), calls("final_result", order="A-7"), output=Answer).run(PROMPT)),
    _path("length-with-text", "The text was cut off by the model's output limit, and comes back as a result.", _CAPPED,
          lambda: agent(text(finish="length")).run(PROMPT)),
    _path("length-empty", "Nothing but thought fit into the output limit.", _CAPPED,
          expecting(UnexpectedModelBehavior, lambda: agent(text("", finish="length")).run(PROMPT))),
    _path("length-in-call", "A tool call was cut off in its arguments, again and again.", _CAPPED,
          expecting(UnexpectedModelBehavior, lambda: agent(broken_call("numbered"), broken_call("numbered"),
                                                           broken_call("numbered")).run(PROMPT))),
    _path("filter-with-text", "The provider's filter cut the text, which comes back as a result.", _FILTERED,
          lambda: agent(text(finish="content_filter")).run(PROMPT)),
    _path("filter-empty", "The provider's filter left nothing.", _FILTERED,
          expecting(UnexpectedModelBehavior, lambda: agent(text("", finish="content_filter")).run(PROMPT))),
    _path("finish-error", "The provider says that its answer failed; the text comes back as a result.",
          ("FAILED", "model_failure"), lambda: agent(text(finish="error")).run(PROMPT)),
    _path("no-finish-reason", "The provider gives no finish reason: absent is not unknown.", _DONE,
          lambda: agent(text(finish=None)).run(PROMPT)),
    _path("fallback-recovered", "The first model failed, the second answered.", _DONE,
          lambda: with_model(FallbackModel(model(http(500)), model(text(), name="second"))).run(PROMPT)),
    _path("host-block", "The host's own block and the agent's run are one receipt.", _DONE, _in_block),
    _path("host-block-two-runs", "Two agents in one block: the first is the block's, the second its child.", _DONE,
          _in_parallel),
    _path("gathered", "Two agents at once in one block.", _DONE, _gathered),
    _path("nested", "An agent in a tool of another is its child.", _DONE, _nested),
    _path("nested-shared-usage", "The child counts on the parent's usage; each receipt has what came since its start.",
          _DONE, _nested_shared, judged=1),
]  # fmt: skip
