"""Runs that a bound or an abort ended."""

from __future__ import annotations

import asyncio
import contextlib
from decimal import Decimal
from typing import Any

from pydantic_ai import ConcurrencyLimit, RunContext, exceptions
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.pydantic_ai.agents import PROMPT, agent, expecting
from tests.frameworks.pydantic_ai.models import calls, forever, hanging, text

_STEPS = ("BOUNDED_STOP", "step_limit")
_TOKENS = ("BOUNDED_STOP", "token_budget")
_ABORTED = ("BOUNDED_STOP", "caller_abort")
_LIMIT = exceptions.UsageLimitExceeded
_SOON, _LATER = 0.05, 1.0  # seconds


def _limited(*script: Any, usage: RunUsage | None = None, **limits: Any) -> Any:
    return expecting(_LIMIT, lambda: agent(*script).run(PROMPT, usage_limits=UsageLimits(**limits), usage=usage))


async def _nested_shared() -> None:
    limits = UsageLimits(request_limit=2)
    parent, child = agent(calls("ask"), name="parent-agent"), agent(calls("look_up"), text(), name="child-agent")

    @parent.tool
    async def ask(ctx: RunContext[None]) -> str:
        return str((await child.run(PROMPT, usage=ctx.usage, usage_limits=limits)).output)

    await parent.run(PROMPT, usage_limits=limits)


async def _too_dear() -> None:
    dear, options = text(), {"cost_limit": Decimal("0.25")}
    dear.usage = RequestUsage(input_tokens=10, output_tokens=2, cost=Decimal("0.5"))
    await _limited(dear, **options)()


async def _nested_own() -> None:
    parent, child = agent(calls("ask"), name="parent-agent"), agent(calls("look_up"), name="child-agent")

    @parent.tool_plain
    async def ask() -> str:
        return str((await child.run(PROMPT, usage_limits=UsageLimits(request_limit=1))).output)

    await parent.run(PROMPT)


async def _too_many() -> None:
    limits: Any = ConcurrencyLimit(max_running=1, max_queued=0)
    made = agent(calls("hangs"), max_concurrency=limits)
    first = await _hanging(made)
    with contextlib.suppress(exceptions.ConcurrencyLimitExceeded):
        await made.run(PROMPT)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first


async def _hanging(made: Any) -> asyncio.Task[Any]:
    """The task of a run, when it has come to where it hangs."""
    hangs = asyncio.Event()
    hanging.set(hangs.set)
    task = asyncio.create_task(made.run(PROMPT))
    async with asyncio.timeout(30):
        await hangs.wait()
    return task


async def _cancelled() -> None:
    task = await _hanging(agent(calls("hangs")))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _outer_timeout(*script: Any) -> None:
    with contextlib.suppress(TimeoutError):
        async with stopcause.run("order-agent"), asyncio.timeout(None) as timer:
            hanging.set(lambda: timer.reschedule(0))
            await agent(*script).run(PROMPT)


async def _bare_timeout() -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None) as timer:
            hanging.set(lambda: timer.reschedule(0))
            await agent(forever).run(PROMPT)


async def _cancels_itself() -> None:
    made = agent(calls("give_up"), text())

    @made.tool
    async def give_up(ctx: RunContext[None]) -> str:
        ctx.cancel()
        await asyncio.sleep(0)
        return "too late"

    await made.run(PROMPT)


def _kind(name: str) -> Any:
    """A class that the oldest version does not have."""
    return getattr(exceptions, name, AssertionError)


PATHS = [
    Path_("request-limit", "The next request would be one too many.", _STEPS,
          _limited(calls("look_up"), request_limit=1)),
    Path_("request-limit-shared-usage", "Two of three requests were used before: one was left for this run.", _STEPS,
          _limited(calls("look_up"), usage=RunUsage(requests=2, input_tokens=20), request_limit=3)),
    Path_("tool-calls-limit", "The calls of one answer were more than are left.", _STEPS,
          _limited(calls("look_up"), calls("look_up:call-2", "look_up:call-3"), tool_calls_limit=2)),
    Path_("tool-calls-limit-last-request", "Both limits are reached at once; the calls came first.", _STEPS,
          _limited(calls("look_up"), tool_calls_limit=0, request_limit=1)),
    Path_("input-tokens-limit", "The requests were longer than allowed, taken together.", _TOKENS,
          _limited(calls("look_up", tokens=(30, 2)), input_tokens_limit=25)),
    Path_("output-tokens-limit", "The answers were longer than allowed, taken together.", _TOKENS,
          _limited(calls("look_up"), text(tokens=(10, 9)), output_tokens_limit=8)),
    Path_("total-tokens-limit", "Requests and answers were longer than allowed.", _TOKENS,
          _limited(text(tokens=(40, 9)), total_tokens_limit=45)),
    Path_("one-request-limit", "One request was longer than allowed for one.", _TOKENS,
          _limited(calls("look_up"), text(tokens=(60, 2)), per_request_input_tokens_limit=50)),
    Path_("cost-limit", "The answer was dearer than allowed.", ("BOUNDED_STOP", "cost_budget"), _too_dear),
    Path_("nested-shared-limit", "An agent in a tool used up the limit that it shares with its parent.", _STEPS,
          expecting(_LIMIT, _nested_shared)),
    *(
        Path_(f"nested-own-limit-{side}", f"An agent in a tool reached a limit of its own: {why}", expected,
              expecting(_LIMIT, _nested_own), judged=judged)
        for judged, (side, why, expected) in enumerate((
            ("parent", "to its parent, the tool failed.", ("FAILED", "tool_failure")),
            ("child", "its own end.", _STEPS),
        ))
    ),
    Path_("too-many-runs", "The agent's own limit on runs at once refused this one.", ("FAILED", "quota"), _too_many,
          judged=1),
    Path_("timeout", "The run's own time was over, and nothing had come of it.", ("STUCK", "time_limit"),
          expecting(_kind("RunTimedOut"), lambda: agent(forever).run(PROMPT, timeout=_SOON))),
    Path_("timeout-after-tool", "The run's own time was over; a tool had returned before.",
          ("BOUNDED_STOP", "time_limit"),
          expecting(_kind("RunTimedOut"), lambda: agent(calls("look_up"), forever).run(PROMPT, timeout=_LATER))),
    Path_("outer-timeout", "A timer of the host's, inside its block, cut the run off.", ("STUCK", "time_limit"),
          lambda: _outer_timeout(forever)),
    Path_("outer-timeout-in-tool", "The same while a tool was running: it was getting somewhere.",
          ("BOUNDED_STOP", "time_limit"), lambda: _outer_timeout(calls("hangs"))),
    Path_("bare-timeout", "A timer that nobody told us of looks like a cancellation, and was one.", _ABORTED,
          _bare_timeout),
    Path_("cancelled", "The task was cancelled while a tool ran.", _ABORTED, _cancelled),
    Path_("cancels-itself", "A tool cancelled the run that it is part of.", _ABORTED,
          expecting(_kind("RunCancelled"), _cancels_itself)),
]  # fmt: skip
