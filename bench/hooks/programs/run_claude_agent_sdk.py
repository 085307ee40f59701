"""An agent with one model call, played by a transport: starting the command line would hide everything else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import claude_agent_sdk
from claude_agent_sdk import Transport
from common import main, tracer_provider

SCRIPT: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "s", "model": "scripted", "tools": []},
    {"type": "assistant", "message": {"id": "m", "model": "scripted", "content": [{"type": "text", "text": "done"}]}},
    {
        "type": "result", "subtype": "success", "duration_ms": 9, "duration_api_ms": 7, "is_error": False,
        "num_turns": 1, "session_id": "s", "stop_reason": "end_turn", "result": "done", "terminal_reason": "completed",
    },
]  # fmt: skip


class Scripted(Transport):
    def __init__(self) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue()

    async def connect(self) -> None:
        pass

    async def write(self, data: str) -> None:
        said = json.loads(data)
        if said["type"] == "control_request":
            answer = {"subtype": "success", "request_id": said["request_id"], "response": {}}
            self.queue.put_nowait({"type": "control_response", "response": answer})
        else:
            for each in (*SCRIPT, None):
                self.queue.put_nowait(each)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (each := await self.queue.get()) is not None:
            yield each

    async def close(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass


def openinference() -> None:
    from openinference.instrumentation.claude_agent_sdk import ClaudeAgentSDKInstrumentor

    ClaudeAgentSDKInstrumentor().instrument(tracer_provider=tracer_provider())


loop = asyncio.new_event_loop()


async def asked() -> list[Any]:
    return [message async for message in claude_agent_sdk.query(prompt="hello", transport=Scripted())]


def once() -> object:
    return loop.run_until_complete(asked())


main(once, {"OpenInference": openinference})
