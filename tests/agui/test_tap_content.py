"""Of what passes a tap no content comes out: not in lines, not in logs, not in errors."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from stopcause.agui.guard import ResumeGuard
from stopcause.agui.tap_asgi import AguiMiddleware
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.errors import ResumeRefusedError
from stopcause.receipts.testing import recorded
from tests.agui.tapped import OURS, answering, breaking, finished, input_of, served, sse, started, streaming

Json = Any
MARK = "canary-7f3a"
PROSE = f"{MARK} is here"


def _asked(run_id: str, **more: Json) -> dict[str, Json]:
    """An input that is full of it."""
    messages = [{"id": "u1", "role": "user", "content": PROSE, "name": PROSE}]
    tools = [{"name": "show", "description": PROSE, "parameters": {"title": PROSE}}]
    context = [{"description": PROSE, "value": PROSE}]
    forwarded = {PROSE: PROSE, "command": {"resume": PROSE}}
    return input_of(
        run_id, messages=messages, tools=tools, context=context, state={PROSE: PROSE}, forwardedProps=forwarded, **more
    )


def _resume(interrupt_id: str = "i1") -> list[Json]:
    payload = {"approved": True, PROSE: PROSE}
    return [{"interruptId": interrupt_id, "status": "resolved", "payload": payload, "metadata": {PROSE: PROSE}}]


_INTERRUPT = {
    "id": "i1", "reason": PROSE, "message": PROSE, "toolCallId": "c1", "metadata": {PROSE: PROSE, "note": PROSE},
    "responseSchema": {"type": "object", "title": PROSE, "description": PROSE, "default": PROSE, "examples": [PROSE]},
}  # fmt: skip
EVENTS: dict[str, list[Json]] = {
    "r1": [
        started("r1"),
        {"type": "STEP_STARTED", "stepName": PROSE},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "role": "assistant", "delta": PROSE},
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": PROSE},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": PROSE}]},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "u1", "role": "user", "content": PROSE}]},
        {"type": "RAW", "event": {"text": PROSE}, "source": PROSE},
        {"type": "CUSTOM", "name": PROSE, "value": PROSE},
        {"type": PROSE, PROSE: PROSE},
        {"type": "STEP_FINISHED", "stepName": PROSE},
        finished("r1", outcome={"type": "interrupt", "interrupts": [_INTERRUPT]}, metadata={PROSE: PROSE}),
    ],
    "r2": [
        started("r2"),
        {"type": "TOOL_CALL_RESULT", "messageId": "m2", "toolCallId": "c1", "content": PROSE, "role": "tool"},
        {"type": "RUN_ERROR", "message": PROSE, "code": PROSE},
    ],
    "r3": [started("r3"), finished("r3", result={PROSE: PROSE}, outcome={"type": PROSE})],
    "r4": [{"type": "RUN_ERROR", "message": PROSE}],
    "r5": [started("r5"), PROSE, {PROSE: PROSE}, finished("r5")],
}


def _answer(given: Json) -> Response:
    if given["runId"] == "r6":
        return Response(PROSE, 422)
    return streaming([sse(EVENTS[given["runId"]]), f"data: {PROSE}\n\n: {PROSE}\n\n".encode()])


def _all_of(url: str, client: httpx.Client) -> None:
    where = f"{url}/?q={MARK}"
    for run_id in (*EVENTS, "r6"):
        resume = {"resume": _resume()} if run_id == "r2" else {}
        client.post(where, json=_asked(run_id, **resume), headers={"authorization": MARK, "x-own": MARK})


@pytest.mark.parametrize("fault", [None, *OURS])
def test_no_content_in_lines_and_logs(
    fault: str | None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = AguiMiddleware(answering(_answer), "clerk")
    with (
        recorded() as receipts,
        caplog.at_level(logging.DEBUG, "stopcause"),
        served(app) as url,
        httpx.Client(transport=AguiTransport(agent="clerk")) as client,
    ):
        if fault is not None:
            breaking(monkeypatch, fault)
        _all_of(url, client)
        monkeypatch.undo()
        lines = b"\n".join(receipts.lines)
    assert [line for line in lines.splitlines() if MARK.encode() in line] == []
    assert MARK not in "\n".join(f"{r.getMessage()} {r.exc_info}" for r in caplog.records if r.name == "stopcause")
    if fault is None:
        assert lines.count(b'"run.stopped"') >= 2 * len(EVENTS)


def test_no_content_in_a_refusal() -> None:
    """Ids are in it, and those that are no identifiers as a hash."""
    with (
        recorded(),
        served(answering(_answer)) as url,
        httpx.Client(transport=AguiTransport(guard=ResumeGuard())) as client,
    ):
        client.post(url, json=_asked("r1"))
        with pytest.raises(ResumeRefusedError) as refused:
            client.post(url, json=_asked("r2", resume=_resume(PROSE)))
    assert MARK not in json.dumps([str(refused.value), refused.value.findings])
