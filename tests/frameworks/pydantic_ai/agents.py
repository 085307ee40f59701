"""The agents that the paths run: a few tools, and what a path needs to say in one line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelRetry
from pydantic_ai.models import Model

from tests.frameworks.harness import Scripted
from tests.frameworks.pydantic_ai import models

PROMPT = "Close order canary-7f3a A-7."


class Answer(BaseModel):
    """A structured output."""

    order: str


def agent(*script: models.Line, output: Any = str, name: str = "order-agent", **options: Any) -> Agent[None, Any]:
    """An agent with the tools of these paths and a scripted model."""
    return with_tools(Agent(models.model(*script), name=name, output_type=output, **options))


def with_model(model: Model, **options: Any) -> Agent[None, Any]:
    """The same with another model."""
    return with_tools(Agent(model, name="order-agent", **options))


def waiting(*script: models.Line, **options: Any) -> Agent[None, Any]:
    """An agent that may end by waiting."""
    return agent(*script, output=[str, DeferredToolRequests], **options)


def with_tools(made: Agent[None, Any]) -> Agent[None, Any]:
    """Gives an agent the tools."""
    for tool in (look_up, breaks, hangs, asks_again, numbered):
        made.tool_plain(tool)
    made.tool_plain(pay, requires_approval=True)
    return made


async def look_up() -> str:
    """Returns at once."""
    return "canary-7f3a of a tool"


async def breaks() -> str:
    """Raises an error of its own."""
    raise Scripted("canary-7f3a of a tool")


async def hangs() -> str:
    """Never returns."""
    await models.forever()
    return ""


async def asks_again() -> str:
    """Wants to be called otherwise, always."""
    raise ModelRetry("canary-7f3a: not like this")


async def numbered(count: int) -> int:
    """Takes a number."""
    return count


async def pay() -> str:
    """Is gated."""
    return "paid"


def expecting(kind: type[BaseException], run: Callable[[], Any]) -> Callable[[], Any]:
    """A path that ends with an exception, which is expected and goes no further."""

    async def expected() -> None:
        try:
            made = run()
            if asyncio.iscoroutine(made):
                await made
        except kind:
            return
        pytest.fail(f"no {kind.__name__}")

    return expected
