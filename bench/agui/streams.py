"""Streams for the benches: what a chat sends, and what two frameworks were recorded to send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "agui" / "recordings"
PIECES = 80  # of text, of the 100 events of a run


def prose(run: int) -> Iterator[dict[str, Any]]:
    """The 100 events of a run that calls two tools and says something."""
    ids, message = {"threadId": f"thread-{run % 50}", "runId": f"run-{run:08}"}, f"msg-{run:08}-4f2a-9c1e"
    yield {"type": "RUN_STARTED", **ids, "protocolVersion": "1.0"}
    for number in range(2):
        call = f"call-{run:08}-{number}"
        yield {"type": "STEP_STARTED", "stepName": f"node-{number}"}
        yield {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "look_up", "parentMessageId": message}
        for piece in ('{"account": ', '"4711", ', '"since": "2026-11-01"}'):
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": piece}
        yield {"type": "TOOL_CALL_END", "toolCallId": call}
        yield {"type": "TOOL_CALL_RESULT", "messageId": f"{call}-r", "toolCallId": call, "content": "three are open"}
        yield {"type": "STEP_FINISHED", "stepName": f"node-{number}"}
    yield {"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"}
    for number in range(PIECES):
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": f"piece {number} of it "}
    yield {"type": "TEXT_MESSAGE_END", "messageId": message}
    yield {"type": "RUN_FINISHED", **ids, "outcome": {"type": "success"}}


def recorded(times: int) -> Iterator[dict[str, Any]]:
    """The events of the recordings, again and again."""
    for path in sorted(RECORDINGS.glob("*.json")) * times:
        for exchange in json.loads(path.read_bytes())["exchanges"]:
            yield from exchange["events"]


def frame(event: dict[str, Any]) -> bytes:
    """An event as SSE, as compact as servers write it."""
    return b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n"
