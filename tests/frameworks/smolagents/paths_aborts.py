"""Aborts: whoever called interrupted it, whoever read went away, whoever waited did not wait any longer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import Any

from smolagents import ActionStep

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.smolagents.models import Turn, agent, call, done, failing, say
from tests.frameworks.smolagents.paths_ends import LIMITED, UNPROVEN

ABORTED = ("BOUNDED_STOP", "caller_abort")
STOPPED = ("BOUNDED_STOP", "user_abort")


def _interrupts(_: Any, agent: Any) -> None:
    agent.interrupt()


def _interrupted(*turns: Turn, **more: Any) -> Any:
    return agent(*turns, step_callbacks={ActionStep: _interrupts}, **more).run("Close it.")


def _interrupted_at_once() -> None:
    """A stream that is interrupted before anybody reads it."""
    made = agent(done())
    stream = made.run("Close it.", stream=True)
    made.interrupt()
    failing(lambda: next(stream))


def _keyboard() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        agent(Turn(error=KeyboardInterrupt("canary-7f3a"))).run("Close it.")


def _leaves(kind: str) -> None:
    """Whoever reads closes the stream after the first item of a class; inside a step the framework cannot bear that."""
    stream = agent(call(key="a"), done()).run("Close it.", stream=True)
    next(item for item in stream if type(item).__name__ == kind)
    with contextlib.suppress(RuntimeError):
        stream.close()


def _forgets() -> None:
    stream = agent(call(key="a"), done()).run("Close it.", stream=True)
    next(item for item in stream if type(item).__name__ == "ActionStep")
    del stream
    gc.collect()


async def _timed_out(*turns: Turn) -> None:
    """An agent is not async: it runs in a thread, which goes on when nobody waits for it any more."""
    with contextlib.suppress(TimeoutError):
        async with stopcause.run("ticket-agent"), asyncio.timeout(0.3):
            work = asyncio.ensure_future(asyncio.to_thread(agent(*turns).run, "Close it."))
            await asyncio.shield(work)
    await work


async def _cancelled(*, is_in_block: bool) -> None:
    work: list[asyncio.Future[Any]] = []

    async def program() -> None:
        with stopcause.run("ticket-agent") if is_in_block else contextlib.nullcontext():
            work.append(asyncio.ensure_future(asyncio.to_thread(agent(done(pause=0.4)).run, "Close it.")))
            await asyncio.shield(work[0])

    task = asyncio.create_task(program())
    await asyncio.sleep(0.2)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await work[0]


PATHS = [
    Path_(
        "interrupted",
        "A callback interrupted it: seen before the next step.",
        STOPPED,
        lambda: failing(lambda: _interrupted(call(key="a"), done())),
    ),
    Path_("interrupted-at-once", "It was interrupted before its first step.", STOPPED, _interrupted_at_once),
    Path_(
        "interrupted-too-late",
        "It was interrupted at its last step, and finished all the same.",
        ("UNCERTAIN", "abort_not_observed"),
        lambda: _interrupted(done()),
    ),
    Path_(
        "interrupted-at-the-limit",
        "It was interrupted at the last step allowed, and its limit ended it.",
        LIMITED,
        lambda: _interrupted(call(key="a"), say(), max_steps=1),
    ),
    Path_("keyboard", "Ctrl-C while the model answered.", STOPPED, _keyboard),
    Path_(
        "reader-leaves",
        "Whoever read the stream closed it in the middle of a step.",
        ABORTED,
        lambda: _leaves("ToolCall"),
    ),
    Path_(
        "reader-leaves-after-step",
        "Whoever read the stream closed it after a step.",
        ABORTED,
        lambda: _leaves("ActionStep"),
    ),
    Path_(
        "reader-leaves-with-answer",
        "The reader closed it once it had the final answer: it was over.",
        UNPROVEN,
        lambda: _leaves("FinalAnswerStep"),
    ),
    Path_("reader-forgets", "Nobody reads the stream any more; it is collected.", ABORTED, _forgets),
    Path_(
        "timed-out",
        "The host's time limit fired while the agent's thread went on, with nothing done.",
        ("STUCK", "time_limit"),
        lambda: _timed_out(done(pause=0.5)),
    ),
    Path_(
        "timed-out-with-progress",
        "The host's time limit fired while the agent's thread went on; a tool had answered before.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _timed_out(call(key="a"), done(pause=0.5)),
    ),
    Path_(
        "cancelled-in-a-block",
        "The task around the host's block was cancelled.",
        ABORTED,
        lambda: _cancelled(is_in_block=True),
    ),
    Path_(
        "cancelled-around",
        "The task around it was cancelled, which does not reach a thread: it went on and finished.",
        UNPROVEN,
        lambda: _cancelled(is_in_block=False),
    ),
]
