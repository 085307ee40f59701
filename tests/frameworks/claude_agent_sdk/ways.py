"""What a program can do with the Claude Agent SDK, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    ProcessError,
    query,
)
from claude_agent_sdk._internal.client import InternalClient
from claude_agent_sdk._internal.query import Query

import stopcause
from stopcause.receipts.hooks.claude_agent_sdk.link import Link
from stopcause.receipts.hooks.claude_agent_sdk.turn import Loop, Turn
from tests.frameworks.claude_agent_sdk.models import (
    ANSWERED,
    INTERRUPTED,
    Wire,
    asks,
    came,
    failed,
    init,
    result,
    said,
    task,
    used,
)
from tests.frameworks.harness import Scripted

POINTS = [
    (InternalClient, "process_query"), (ClaudeSDKClient, "connect"), (ClaudeSDKClient, "query"),
    (ClaudeSDKClient, "receive_messages"), (ClaudeSDKClient, "interrupt"), (ClaudeSDKClient, "disconnect"),
    (Query, "_handle_control_request"), (Query, "__init__"),
]  # fmt: skip
FAULTS = [(Link, "begin"), (Link, "item"), (Link, "asks"), (Link, "answers"), (Turn, "describe")]
ENDS = [
    (Loop, name) for name in ("cause", "is_first_end", "came_back", "failed", "ended", "left", "answered")
]  # fmt: skip
# A stream of messages that is left early is not closed by the SDK.
NOISE = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
CALL = (init("Bash", "Task"), said(used()))


class Seen:
    """What a program sees: messages, calls of its callbacks and hooks, exceptions, the run that is open for it."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            self.told.append((type(value), value.args, bool(traceback.extract_tb(value.__traceback__))))
            self.told.append((type(value.__cause__), type(value.__context__)))
        else:
            self.told.append((re.sub(r"msg_\d+", "msg", repr(value)), stopcause.current_run()))

    async def can_use_tool(self, name: str, given: Any, context: Any) -> Any:
        self.told.append(("asked", name, given, type(context)))
        return PermissionResultAllow(updated_input={"command": "else"})

    async def reads(self, script: Any, **more: Any) -> None:
        """One query, read to its end."""
        try:
            async for message in query(prompt="Go.", options=ClaudeAgentOptions(**more), transport=Wire(script)):
                self.tell(message)
        except Exception as error:  # noqa: BLE001 - it is compared
            self.tell(error)


async def _answers(seen: Seen) -> None:
    await seen.reads([*CALL, came(), task("task_started"), said("Yes."), result()])


async def _fails(seen: Seen) -> None:
    await seen.reads([*CALL, failed("max_turns", "error_max_turns"), ProcessError("as it is", exit_code=1)])


async def _breaks(seen: Seen) -> None:
    await seen.reads([init(), Scripted("as it is")])


async def _no_message(seen: Seen) -> None:
    await seen.reads([init(), {"type": "result"}])


async def _refused(seen: Seen) -> None:
    """What the SDK refuses before it connects."""
    given = ClaudeAgentOptions(can_use_tool=seen.can_use_tool, permission_prompt_tool_name="theirs")
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared, with and without
        await anext(aiter(query(prompt="Go.", options=given)))
    seen.tell(raised.value)


async def _leaves(seen: Seen) -> None:
    stream: Any = query(prompt="Go.", transport=Wire([*CALL, 5.0]))
    seen.tell(await anext(stream))
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def _throws(seen: Seen) -> None:
    stream: Any = query(prompt="Go.", transport=Wire([*CALL, 5.0]))
    seen.tell(await anext(stream))
    with pytest.raises(Scripted) as raised:
        await stream.athrow(Scripted("thrown in"))
    seen.tell(raised.value)


async def _cancels(seen: Seen) -> None:
    running = asyncio.create_task(seen.reads([*CALL, 5.0]))
    await asyncio.sleep(0.05)
    running.cancel("why")
    with pytest.raises(asyncio.CancelledError) as raised:
        await running
    seen.tell(raised.value)


async def _client(seen: Seen) -> None:
    scripts = [*CALL, asks(), ANSWERED, came(), said("Yes."), result()], [init(), INTERRUPTED, failed("aborted_tools")]
    given = ClaudeAgentOptions(can_use_tool=seen.can_use_tool, hooks={"Stop": [HookMatcher(hooks=[])]})
    async with ClaudeSDKClient(given, Wire(*scripts, stays=True)) as client:
        for _ in scripts:
            seen.tell(await client.query("Go."))
            if _ is scripts[1]:
                seen.tell(await client.interrupt())
            async for message in client.receive_response():
                seen.tell(message)
    seen.tell(client._query)


async def _not_connected(seen: Seen) -> None:
    client = ClaudeSDKClient()
    for work in (client.query("Go."), client.interrupt(), anext(aiter(client.receive_messages()))):
        with pytest.raises(Exception, match="Not connected") as raised:
            await work
        seen.tell(raised.value)
    seen.tell(await client.disconnect())


Way = Callable[[Seen], Coroutine[Any, Any, None]]
UNSEEN: list[Way] = [_not_connected]  # there is no turn, so there is no run
WAYS: list[Way] = [
    _client, _answers, _fails, _breaks, _no_message, _refused, _leaves, _throws, _cancels, *UNSEEN,
]  # fmt: skip


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    asyncio.run(way(seen))
    return seen.told
