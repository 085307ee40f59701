"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import AssistantMessage, TextBlock, Transport, query

TOOL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "close 7"}}
DONE = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "closed 7"}
SCRIPT: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-sonnet-4-5", "tools": ["Bash"]},
    {"type": "assistant", "message": {"id": "msg_1", "model": "claude-sonnet-4-5", "content": [TOOL]}},
    {"type": "user", "message": {"content": [DONE]}},
    {
        "type": "assistant",
        "message": {"id": "msg_2", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "Closed."}]},
    },
    {
        "type": "result", "subtype": "success", "duration_ms": 9, "duration_api_ms": 7, "is_error": False,
        "num_turns": 2, "session_id": "s", "stop_reason": "end_turn", "result": "Closed.",
        "terminal_reason": "completed",
    },
]  # fmt: skip


class Canned(Transport):
    """Answers as the command line would: first with a call, then with text."""

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


async def agent(prompt: str) -> str:
    """What it says last."""
    said = ""
    async for message in query(prompt=prompt, transport=Canned()):
        if isinstance(message, AssistantMessage):
            said = "".join(block.text for block in message.content if isinstance(block, TextBlock)) or said
    return said


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(agent("Close ticket 7.")))
