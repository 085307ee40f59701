"""The examples of docs/ag-ui.md and docs/ag-ui-client.md run as they stand, with a reader's own things beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ASKS = [
    {"type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0"},
    {
        "type": "RUN_FINISHED",
        "threadId": "thread-1",
        "runId": "run-1",
        "outcome": {"type": "interrupt", "interrupts": [{"id": "int-1", "reason": "tool_call"}]},
    },
]
INPUT = {"threadId": "thread-1", "runId": "run-1", "messages": [], "tools": [], "context": []}


def example(page: str, word: str) -> str:
    (found,) = (code for code in EXAMPLE.findall((DOCS / page).read_text("utf-8")) if word in code)
    return str(found)


def test_the_guard_without_the_transport(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stream = [f"data: {json.dumps(event)}\n\n".encode() for event in ASKS]
    reader: dict[str, Any] = {"payload": INPUT, "stream": stream}

    exec(example("ag-ui-client.md", "guard.watching"), reader)  # noqa: S102 - the page's own code

    assert reader["payload"]["resume"] == [
        {"interruptId": "int-1", "status": "resolved", "payload": {"approved": True}}
    ]
    assert [each.name for each in reader["guard"].check(reader["payload"]).findings] == ["REPLAY", "ANSWER_UNDER_WAY"]


def test_an_agent_that_receives_answers() -> None:
    reader: dict[str, Any] = {}

    exec(example("ag-ui.md", "producer.receive"), reader)  # noqa: S102 - the page's own code

    bad = {**INPUT, "runId": "run-2", "resume": [{"interruptId": "int-1", "status": "resolved"}]}
    good = {**INPUT, "runId": "run-2", "resume": [{"interruptId": "int-1", "status": "cancelled"}]}
    asked = [{"id": "int-1", "reason": "tool_call"}]
    assert [event["type"] for event in reader["events"](asked, {"threadId": 1}, {})] == ["RUN_ERROR"]
    assert list(reader["events"](asked, good, {})) == []
    assert [event["code"] for event in reader["events"](asked, bad, {})] == ["INVALID_PAYLOAD"]
