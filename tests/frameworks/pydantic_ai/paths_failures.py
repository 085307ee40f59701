"""Runs that a failure ended, and failures that ended none."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent, ModelRetry, exceptions
from pydantic_ai.models.fallback import FallbackModel

import stopcause
from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.pydantic_ai.agents import PROMPT, agent, expecting, with_model
from tests.frameworks.pydantic_ai.models import calls, http, model, text

_DONE = ("FALSE_COMPLETE", "no_contract")
_TOOL = ("FAILED", "tool_failure")
_MODEL = ("FAILED", "model_failure")
_HOST = ("FAILED", "host_error")
_MISBEHAVED = exceptions.UnexpectedModelBehavior


async def _validator() -> None:
    made = agent(text(), text())

    @made.output_validator
    def refuse(_: str) -> str:
        raise ModelRetry("canary-7f3a: not good enough")

    await made.run(PROMPT)


async def _once_again() -> None:
    made, tries = agent(calls("once"), calls("once:call-2"), text()), []

    @made.tool_plain
    async def once() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ModelRetry("canary-7f3a: once more")
        return "well"

    await made.run(PROMPT)


async def _too_slow() -> None:
    made = agent(calls("waits"))

    @made.tool_plain
    async def waits() -> None:
        await asyncio.wait_for(asyncio.sleep(60), 0.01)

    async with stopcause.run("order-agent"):
        await made.run(PROMPT)


async def _failed_for_good() -> None:
    made = agent(calls("gives_up"), text())

    @made.tool_plain
    async def gives_up() -> str:
        raise exceptions.ToolFailed("canary-7f3a: it is gone")  # type: ignore[attr-defined, unused-ignore]

    await made.run(PROMPT)


async def _nested() -> None:
    parent, child = agent(calls("ask"), name="parent-agent"), agent(http(500), name="child-agent")

    @parent.tool_plain
    async def ask() -> str:
        return str((await child.run(PROMPT)).output)

    await parent.run(PROMPT)


async def _caller_raises() -> None:
    async with agent(calls("look_up"), text()).iter(PROMPT) as run:
        async for _node in run:
            raise Scripted("canary-7f3a of the host")


async def _unknown_output() -> None:
    made: Agent[None, Any] = agent(calls("pay"))
    await made.run(PROMPT)


def _context_window() -> BaseException:
    kind: Any = exceptions.ModelContextWindowExceededError  # type: ignore[attr-defined, unused-ignore]
    return kind("scripted", "canary-7f3a")  # type: ignore[no-any-return]


PATHS = [
    Path_("tool-raises", "A tool raised, and nothing caught it.", _TOOL,
          expecting(Scripted, lambda: agent(calls("breaks")).run(PROMPT))),
    Path_("tool-raises-beside-another", "A tool raised while another was running, which was cut off.", _TOOL,
          expecting(Scripted, lambda: agent(calls("hangs", "breaks")).run(PROMPT))),
    Path_("tool-retries-exhausted", "A tool asked for another try until there was none left.", _TOOL,
          expecting(_MISBEHAVED, lambda: agent(calls("asks_again"), calls("asks_again")).run(PROMPT))),
    Path_("tool-too-slow", "A tool gave up waiting for something. That is its failure, not the run's time limit.",
          _TOOL, expecting(TimeoutError, _too_slow)),
    Path_("tool-retry-recovered", "A tool asked for another try and got it.", _DONE, _once_again),
    Path_("tool-failed-recovered", "A tool said that it failed for good; the model went on.", _DONE, _failed_for_good),
    Path_("unknown-tool-recovered", "The model made up a tool, was told so, and answered.", _DONE,
          lambda: agent(calls("canary7f3a"), text()).run(PROMPT)),
    Path_("unknown-tool-exhausted", "The model made up a tool until its tries were over.", _MODEL,
          expecting(_MISBEHAVED, lambda: agent(calls("canary7f3a"), calls("canary7f3a")).run(PROMPT))),
    Path_("arguments-exhausted", "The arguments never fitted the tool.", ("FAILED", "malformed_call"),
          expecting(_MISBEHAVED,
                    lambda: agent(calls("numbered", count="x"), calls("numbered", count="y")).run(PROMPT))),
    Path_("output-refused", "The application's own validator refused each answer.", _MODEL,
          expecting(_MISBEHAVED, _validator)),
    Path_("model-empty", "The model says nothing, twice.", _MODEL,
          expecting(_MISBEHAVED, lambda: agent(text(""), text("")).run(PROMPT))),
    Path_("model-500", "The provider failed.", _MODEL,
          expecting(exceptions.ModelHTTPError, lambda: agent(http(500)).run(PROMPT))),
    Path_("model-429-after-tool", "The provider's rate limit ended a run that had already acted.", ("FAILED", "quota"),
          expecting(exceptions.ModelHTTPError, lambda: agent(calls("look_up"), http(429)).run(PROMPT))),
    Path_("model-context-window", "The request did not fit the model's window.", ("BOUNDED_STOP", "context_limit"),
          expecting(exceptions.ModelAPIError, lambda: agent(_context_window()).run(PROMPT))),
    Path_("fallback-all-failed", "Every model of a fallback failed.", _MODEL,
          expecting(ExceptionGroup,
                    lambda: with_model(FallbackModel(model(http(500)), model(http(503)))).run(PROMPT))),
    Path_("approval-not-foreseen", "A gated tool was called, and the agent cannot end by waiting.", _HOST,
          expecting(exceptions.UserError, _unknown_output)),
    Path_("no-model", "The run could not be set up.", _HOST,
          expecting(exceptions.UserError, lambda: Agent(name="order-agent").run(PROMPT))),
    Path_("caller-raises", "The program that drives the run raised.", _HOST, expecting(Scripted, _caller_raises)),
    Path_("nested-fails", "An agent in a tool failed, and the tool let it out.", _TOOL,
          expecting(exceptions.ModelHTTPError, _nested)),
]  # fmt: skip
