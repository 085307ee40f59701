"""What is around a run: cancellation, timers, the host's own block, runs beside and inside each other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    RunConfig,
    RunContextWrapper,
    Runner,
    SessionABC,
    function_tool,
)

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.openai_agents.models import MARKER, agent, calls, expires, says, slow_after
from tests.frameworks.openai_agents.paths_ends import DONE, STEPS, TOOL, look_up, run
from tests.frameworks.openai_agents.paths_streams import ABORTED


@function_tool
async def wait_long(context: RunContextWrapper[Callable[[], Any]], note: str) -> str:
    """A tool that somebody has to cut off; it tells when it has begun."""
    context.context()
    await asyncio.sleep(60)
    return note


def waiter() -> Agent[Any]:
    """An agent whose tool takes too long."""
    return agent(calls("wait_long"), tools=[wait_long])


async def cancelled() -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(Runner.run(waiter(), MARKER, context=begun.set))
    await begun.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def timed_out() -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None) as timer:
            await Runner.run(agent(slow_after(expires(timer))), MARKER)


async def timed_out_in_block() -> None:
    with contextlib.suppress(TimeoutError):
        async with stopcause.run("ticket-desk"), asyncio.timeout(None) as timer:
            await Runner.run(agent(slow_after(expires(timer))), MARKER)


async def timed_out_in_block_with_tool() -> None:
    with contextlib.suppress(TimeoutError):
        async with stopcause.run("ticket-desk"), asyncio.timeout(None) as timer:
            await Runner.run(waiter(), MARKER, context=expires(timer))


async def one_receipt() -> None:
    async with stopcause.run("ticket-desk", thread_id="thread-1"):
        await Runner.run(agent(calls("look_up"), says(), tools=[look_up]), MARKER)


async def two_in_block() -> None:
    async with stopcause.run("ticket-desk"):
        await Runner.run(agent(says()), MARKER)
        await Runner.run(agent(says(), name="billing"), MARKER)


async def in_parallel() -> None:
    first = asyncio.create_task(Runner.run(agent(says()), MARKER))
    await asyncio.sleep(0)
    await asyncio.gather(first, Runner.run(agent(says(), name="billing"), MARKER))


def nesting(inner: Agent[Any], **tool: Any) -> Agent[Any]:
    """An agent that has another as a tool."""
    made = inner.as_tool(tool_name="ask_billing", tool_description="Asks.", **tool)
    return agent(calls("ask_billing", arguments='{"input": "canary7f3a"}'), says(), tools=[made])


def never_done() -> Agent[Any]:
    return agent(calls("look_up"), calls("look_up", first=2), tools=[look_up], name="billing")


def judged_by_agent() -> Agent[Any]:
    """An agent with an input guardrail that asks another agent, which is never done."""

    async def judge(*_: Any) -> GuardrailFunctionOutput:
        await Runner.run(never_done(), MARKER, max_turns=1)
        raise AssertionError

    return agent(says(), input_guardrails=[InputGuardrail(judge, run_in_parallel=False)])


class Late(SessionABC):
    """A session that has its id only once it was written to, as `OpenAIConversationsSession`."""

    session_settings = None

    def __init__(self) -> None:
        self._items: list[Any] = []

    @property
    def session_id(self) -> str:
        """Its id, or an error."""
        if not self._items:
            raise ValueError(MARKER)
        return "chat-10"

    async def get_items(self, limit: int | None = None, **_: Any) -> list[Any]:
        """All of them."""
        return self._items[-limit:] if limit else list(self._items)

    async def add_items(self, items: list[Any], **_: Any) -> None:
        """Writes, and has its id."""
        self._items += items

    async def pop_item(self) -> Any:
        """The last one."""
        return self._items.pop()

    async def clear_session(self) -> None:
        """Lets go of all."""
        self._items.clear()


LABELLED = RunConfig(
    workflow_name=MARKER, group_id="chat-9", trace_metadata={"team": "billing", "note": MARKER}, tracing_disabled=True
)

PATHS = [
    Path_("cancelled", "the task is cancelled while a tool runs", ABORTED, cancelled),
    Path_("timed-out", "a timer of the caller's: in here only the cancellation is seen", ABORTED, timed_out),
    Path_(
        "timed-out-in-block",
        "the host's block sees the timer; nothing useful had come",
        ("STUCK", "time_limit"),
        timed_out_in_block,
    ),
    Path_(
        "timed-out-in-block-with-tool",
        "the same while a tool runs, which is progress",
        ("BOUNDED_STOP", "time_limit"),
        timed_out_in_block_with_tool,
    ),
    Path_("one-receipt", "the host's block and the run in it are one run", DONE, one_receipt),
    Path_("two-in-block", "the second run in a block is a child", DONE, two_in_block, judged=1),
    Path_("parallel", "two runs at once, neither inside the other", DONE, in_parallel, judged=1),
    Path_(
        "nested", "an agent as a tool is a run of its own", DONE, run(lambda: nesting(agent(says(), name="billing")))
    ),
    Path_(
        "nested-step-limit",
        "the inner run hits its limit; the SDK makes an answer of that, and the outer run finishes",
        DONE,
        run(lambda: nesting(never_done(), max_turns=1)),
    ),
    Path_(
        "nested-step-limit-inner",
        "the same, the inner run",
        STEPS,
        run(lambda: nesting(never_done(), max_turns=1)),
        judged=1,
    ),
    Path_(
        "nested-step-limit-raised",
        "the inner run's limit ends the outer one: to that one it is a tool that failed",
        TOOL,
        run(lambda: nesting(never_done(), max_turns=1, failure_error_function=None)),
    ),
    Path_(
        "guardrail-agent-fails",
        "the agent that a guardrail asks hits its limit: the program around the agent failed, no guardrail tripped",
        ("FAILED", "host_error"),
        run(judged_by_agent),
    ),
    Path_(
        "late-session",
        "the session names the thread at the end; before its first write it has no name",
        DONE,
        lambda: Runner.run(agent(says()), MARKER, session=Late()),
    ),
    Path_(
        "labels-without-tracing",
        "allowed metadata becomes labels, group_id the thread; tracing is off",
        DONE,
        run(lambda: agent(calls("look_up"), says(), tools=[look_up]), run_config=LABELLED),
        options={"label_keys": ["team"]},
    ),
]
