"""What people and models wrote is in nothing that a guard keeps, says or raises, and its file is its owner's."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from stopcause.agui.guard import ResumeGuard, refusal
from stopcause.agui.lifecycle import Watch
from stopcause.agui.values import RunSeen
from stopcause.errors import ResumeRefusedError
from tests.agui.asking import NOW, given, names, paused, says

CANARY = "CANARY-7f3a"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guard.db"


def asking_with_content() -> RunSeen:
    schema = {
        "title": CANARY,
        "type": "object",
        "properties": {"approved": {"type": "boolean", "description": CANARY, "default": CANARY, "examples": [CANARY]}},
    }
    interrupt = {
        "id": "i-1",
        "reason": CANARY,
        "message": CANARY,
        "toolCallId": "tc-1",
        "responseSchema": schema,
        "metadata": {"raw": CANARY},
    }
    watch = Watch()
    events: list[dict[str, Any]] = [
        {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"},
        {"type": "TOOL_CALL_START", "toolCallId": "tc-1", "toolCallName": "pay"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "tc-1", "delta": CANARY},
        {"type": "TOOL_CALL_END", "toolCallId": "tc-1"},
        {
            "type": "RUN_FINISHED",
            "threadId": "t1",
            "runId": "r1",
            "outcome": {"type": "interrupt", "interrupts": [interrupt]},
        },
    ]
    runs = [run for event in events for run in watch.take(event)] + list(watch.close())
    return next(run for run in runs if isinstance(run, RunSeen))


def test_no_content_is_in_the_file_the_findings_the_errors_or_the_log(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guard = ResumeGuard(path)
    guard.saw(asking_with_content())
    bad = {"interruptId": "i-1", "status": "resolved", "payload": {"approved": CANARY}, "metadata": {"ag-ui": CANARY}}
    value = {**given("t1", "r2", bad), "messages": [{"id": "m", "role": "user", "content": CANARY}]}
    check = guard.check(value, NOW)
    assert names(check) == {"PAYLOAD_SCHEMA_MISMATCH", "RESERVED_KEY"}
    good = {"interruptId": "i-1", "status": "resolved", "payload": {"approved": True, "note": CANARY}}
    guard.sent({**value, "resume": [good]})
    with pytest.raises(ResumeRefusedError) as caught:
        guard.sent({**value, "runId": "r3", "resume": [bad]})
    builder = ResumeGuard(None)
    builder.saw(asking_with_content())
    with pytest.raises(ResumeRefusedError) as built:
        builder.answers("t1").resolve("i-1", {"approved": CANARY})
    told = [repr(check), str(refusal(check)), repr(guard.thread("t1")), caplog.text]
    told += [str(each.value) + repr(each.value.findings) for each in (caught, built)]
    told += [repr(builder.answers("t1").resolve("i-1", {"approved": True, "note": CANARY}))]
    assert not any(CANARY in text for text in told)
    stored = b"".join(each.read_bytes() for each in path.parent.iterdir())
    assert b"tc-1" in stored
    assert CANARY.encode() not in stored


def test_the_file_is_its_owners_alone(path: Path) -> None:
    guard = paused(path / "deep" / "down.db")
    assert not guard.check(given("t1", "r2", says("i-1")), NOW).refused
    files = [*(path / "deep").iterdir()]
    assert files
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
