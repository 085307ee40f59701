"""No byte of what people wrote is in a record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stopcause.agui.told import Source
from stopcause.receipts.identifiers import is_identifier
from tests.agui.seen import NOON, drafts_of

MARK = "canary-4711"


def prose(place: str) -> str:
    return f"{MARK} {place} someone@example.org"


def test_no_byte_of_what_people_wrote_is_told() -> None:
    interrupt = {
        "id": prose("id"),
        "reason": prose("reason"),
        "message": prose("message"),
        "toolCallId": "tc-1",
        "responseSchema": {"title": prose("title"), "enum": [prose("enum")]},
        "expiresAt": prose("expiry"),
        "metadata": {"raw": prose("raw"), "stopcause": {"owner": prose("owner"), "due": prose("due")}},
    }
    asks = [
        {"type": "RUN_STARTED", "threadId": prose("thread"), "runId": prose("run"), "protocolVersion": prose("v")},
        {"type": "TOOL_CALL_START", "toolCallId": "tc-1", "toolCallName": prose("tool")},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "tc-1", "delta": prose("args")},
        {"type": "TOOL_CALL_END", "toolCallId": "tc-1"},
        {
            "type": "RUN_FINISHED",
            "threadId": prose("thread"),
            "runId": prose("run"),
            "outcome": {"type": "interrupt", "interrupts": [interrupt]},
            "usage": [{"model": prose("model"), "provider": prose("provider"), "inputTokens": 1}],
            "metadata": {"stopcause": {"reason_code": prose("code"), "error": {"type": prose("error")}}},
        },
    ]
    answer = {"interruptId": prose("id"), "status": "resolved", "payload": {"approved": True, "note": prose("note")}}
    fails = [
        {"type": "RUN_STARTED", "threadId": prose("thread"), "runId": prose("run-2")},
        {"type": "TOOL_CALL_RESULT", "messageId": prose("m"), "toolCallId": "tc-1", "content": prose("result")},
        {"type": "RUN_ERROR", "message": prose("failure"), "code": prose("code")},
    ]
    exchanges: list[Mapping[str, Any]] = [
        {"input": {"threadId": prose("thread"), "runId": prose("run"), "messages": []}, "events": asks},
        {
            "input": {"threadId": prose("thread"), "runId": prose("run-2"), "messages": [], "resume": [answer]},
            "events": fails,
        },
    ]
    drafts = list(drafts_of(exchanges, Source(agent="mailer", now=NOON)))

    assert {each["kind"] for each in drafts} == {"run.started", "run.progress", "run.stopped", "approval.updated"}
    assert MARK not in json.dumps(drafts)
    assert all(is_identifier(each["run_id"]) for each in drafts)


def test_words_with_spaces_are_no_name_of_a_tool_or_a_model() -> None:
    """Underscores would make one of them that every reader takes."""
    words = f"{MARK} tell nobody"
    calls = [{"id": "tc-2", "type": "function", "function": {"name": words, "arguments": "{}"}}]
    asks = [{"id": f"i-{n}", "reason": "tool_call", "toolCallId": f"tc-{n}"} for n in (1, 2)]
    events = [
        {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"},
        {"type": "TOOL_CALL_START", "toolCallId": "tc-1", "toolCallName": words},
        {"type": "TOOL_CALL_END", "toolCallId": "tc-1"},
        {
            "type": "RUN_FINISHED",
            "threadId": "t1",
            "runId": "r1",
            "outcome": {"type": "interrupt", "interrupts": asks},
            "usage": [{"model": words, "inputTokens": 1}],
        },
    ]
    messages = [{"id": "m1", "role": "assistant", "toolCalls": calls}]
    given = {"threadId": "t1", "runId": "r1", "messages": messages}

    drafts = list(drafts_of([{"input": given, "events": events}], Source(now=NOON)))

    assert len(drafts) == 2
    assert MARK not in json.dumps(drafts)
