"""Ends of a client's turns, and of sub-agents, which a transport plays."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ProcessError,
)

import stopcause
from tests.frameworks.claude_agent_sdk.models import (
    INTERRUPTED,
    Wire,
    came,
    failed,
    init,
    result,
    said,
    task,
    used,
)
from tests.frameworks.claude_agent_sdk.paths_ends import CALL, plays
from tests.frameworks.claude_agent_sdk.paths_real import UNPROVEN
from tests.frameworks.harness import Path_


async def client(*scripts: Any, more: Any = None, **options: Any) -> None:
    """A client that asks once for each script, and reads to the result."""
    wire = Wire(*scripts, stays=True)
    async with ClaudeSDKClient(ClaudeAgentOptions(**options), wire) as client:
        for number in range(len(scripts)):
            await client.query(f"Close it, {number}.")
            if more is not None:
                await more(client)
            async for _ in client.receive_response():
                pass


async def interrupts(client: Any) -> None:
    await asyncio.sleep(0.02)
    await client.interrupt()


async def _disconnects() -> None:
    async with ClaudeSDKClient(transport=Wire([*CALL, 5.0], stays=True)) as client:
        await client.query("Close it.")
        async for message in client.receive_messages():
            if type(message).__name__ == "AssistantMessage":
                break


async def _times_out(*, in_block: bool) -> None:
    block = stopcause.run("ticket-agent") if in_block else contextlib.nullcontext()
    with contextlib.suppress(TimeoutError):
        async with block, ClaudeSDKClient(transport=Wire([*CALL, 5.0], stays=True)) as client:
            await client.query("Close it.")
            async with asyncio.timeout(0.1):
                async for _ in client.receive_response():
                    pass


async def _reads_on() -> None:
    """A reader runs out of time, the program interrupts and reads what is left: the turn was interrupted."""
    script = [*CALL, INTERRUPTED, came(is_error=True), failed("aborted_tools", stop_reason=None)]
    async with ClaudeSDKClient(transport=Wire(script, stays=True)) as client:
        await client.query("Close it.")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                async for _ in client.receive_response():
                    pass
        await client.interrupt()
        async for _ in client.receive_response():
            pass


async def _connects() -> None:
    """The first prompt is given when it connects."""
    client = ClaudeSDKClient(transport=Wire([init(), said("It is closed."), result()], stays=True))
    await client.connect("Close it.")
    async for _ in client.receive_response():
        pass
    await client.disconnect()


async def _lost() -> None:
    async with ClaudeSDKClient(transport=Wire([*CALL, ProcessError("canary-7f3a", exit_code=137)])) as client:
        await client.query("Close it.")
        with contextlib.suppress(Exception):
            async for _ in client.receive_response():
                pass


# Sub-agents ----------------------------------------------------------------------------------------------------------

_STARTS = (init("Task", "Bash"), said(used(name="Task")), task("task_started"))
_WORKS = (said(used("toolu_2"), parent="toolu_1"), came("toolu_2", parent="toolu_1"))
_FINISHES = (came(), said("It is closed."), result())


def _task_ends(status: str) -> dict[str, Any]:
    return task("task_notification", status=status, output_file="canary-7f3a", summary="canary-7f3a")


PATHS = [
    Path_(
        "client-second-turn", "Two turns of a client; the second is judged.", UNPROVEN,
        lambda: client([*CALL, came(), said("It is."), result()], [init(), said("Yes."), result(total_cost_usd=0.003)]),
        judged=1,
    ),
    Path_("client-connects", "A client's first prompt is given when it connects.", UNPROVEN, _connects),
    Path_(
        "client-disconnects", "The client was closed in the middle of a turn.", ("BOUNDED_STOP", "caller_abort"),
        _disconnects,
    ),
    Path_(
        "client-timed-out", "A reader of a client's ran out of time, and the client was closed.",
        ("BOUNDED_STOP", "caller_abort"), lambda: _times_out(in_block=False),
    ),
    Path_(
        "client-timed-out-in-a-block", "The host's time limit fired with a tool in flight.",
        ("BOUNDED_STOP", "time_limit"), lambda: _times_out(in_block=True),
    ),
    Path_(
        "client-reads-on", "Out of time, the program interrupted the turn and read the rest of it.",
        ("BOUNDED_STOP", "caller_abort"), _reads_on,
    ),
    Path_("client-lost", "A client's command line was killed.", ("FAILED", "process_lost"), _lost),
    Path_(
        "interrupted-too-late", "An interrupt was asked for, and the turn finished all the same.",
        ("UNCERTAIN", "abort_not_observed"),
        lambda: client([init(), INTERRUPTED, said("It is closed."), result()], more=interrupts),
    ),
    Path_(
        "interrupted-older", "An older command line says an interrupt with the subtype alone.",
        ("BOUNDED_STOP", "caller_abort"),
        lambda: client([*CALL, INTERRUPTED, failed(None, stop_reason=None)], more=interrupts),
    ),
    Path_(
        "sub-agent-judged", "A sub-agent's run is a child, which is judged.", UNPROVEN,
        plays(*_STARTS, *_WORKS, _task_ends("completed"), *_FINISHES), judged=1,
    ),
    Path_(
        "sub-agent-fails", "A sub-agent failed; the model was told and went on.", UNPROVEN,
        plays(*_STARTS, _task_ends("failed"), *_FINISHES),
    ),
    Path_(
        "sub-agent-failed", "A sub-agent failed: the child is judged.", ("FAILED", "host_error"),
        plays(*_STARTS, _task_ends("failed"), *_FINISHES), judged=1,
    ),
    Path_(
        "sub-agent-stopped", "A sub-agent was stopped: the child is judged.", ("BOUNDED_STOP", "caller_abort"),
        plays(*_STARTS, task("task_updated", patch={"status": "killed"}), *_FINISHES), judged=1,
    ),
    Path_(
        "sub-agent-works-on", "The turn finished while a sub-agent still works.", ("FALSE_COMPLETE", "open_children"),
        plays(*_STARTS, *_FINISHES),
    ),
    Path_(
        "sub-agent-lost", "The messages were over while a sub-agent still worked: the child is judged.",
        ("UNCERTAIN", "stream_truncated"), plays(*_STARTS, *_FINISHES), judged=1,
    ),
]  # fmt: skip
