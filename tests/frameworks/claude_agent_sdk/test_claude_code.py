"""The program that the hooks of the `claude` command run: with the real command, and with transcripts of its format."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest

from stopcause.receipts import model
from stopcause.receipts.hooks import claude_code
from stopcause.receipts.hooks.claude_code import events as claude_code_events
from stopcause.receipts.testing import recorded
from tests.frameworks.claude_agent_sdk.models import MODEL, Turn, call, home, options, say

_COMMAND = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
_EVENTS = ("Stop", "StopFailure", "SubagentStop", "SessionEnd", "UserPromptSubmit")
_SESSION, _PROMPT = "c0b1d2e3-ab4c-4d5e-8f6a-7b8c9d0e1f2a", "d0b1d2e3-ab4c-4d5e-8f6a-7b8c9d0e1f2b"
_STARTS = call("Task", description="d", prompt="p", subagent_type="Explore", run_in_background=False)


def _runs(spool: Path, *turns: Turn, count: int = 1, more: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What a session of the real command leaves in the spool, of so many runs, sorted by agents."""
    hook = {"type": "command", "command": f"{sys.executable} -m stopcause.receipts.hooks.claude_code"}
    settings = json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in _EVENTS}})
    arguments = [str(_COMMAND), "-p", "Close it.", "--settings", settings, "--model", MODEL, *more]
    environment = {**os.environ, **options(*turns).env, "STOPCAUSE_SPOOL": str(spool)}
    subprocess.run(
        [*arguments, "--allowedTools", "Bash"],
        cwd=home(), env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    until = time.monotonic() + 20
    while (
        len(lines := _lines(spool)) < count and time.monotonic() < until
    ):  # nobody waits for the program: it may be late
        time.sleep(0.05)
    return sorted((json.loads(line) for line in lines), key=lambda each: str(each["agent"]))


def _lines(spool: Path) -> list[str]:
    return [line for file in spool.rglob("*.ndjson") for line in file.read_text("utf-8").splitlines()[1:]]


def test_a_real_session_leaves_a_receipt_of_its_turn_and_its_sub_agent(tmp_path: Path) -> None:
    child, turn = _runs(tmp_path, _STARTS, call("Bash", "toolu_2"), say(), say(), count=2)

    assert (turn["kind"], turn["agent"], turn["stop_cause"], turn["steps"]) == ("run.stopped", "claude", "natural", 2)
    assert (turn["tool_calls"], turn["finish_reason"]["raw"], turn["model"]) == (1, "end_turn", MODEL)
    assert (child["agent"], child["stop_cause"], child["parent_run_id"]) == ("Explore", "natural", turn["run_id"])
    assert "findings" not in turn


def test_a_real_session_whose_provider_fails(tmp_path: Path) -> None:
    turn, *again = _runs(tmp_path, call(), Turn(status=429))

    assert {each["run_id"] for each in again} <= {turn["run_id"]}
    assert (turn["stop_cause"], turn["reason_code"], turn["tool_calls"]) == ("quota", "rate_limit", 1)


def test_a_real_session_that_ends_without_a_word_claims_no_finish(tmp_path: Path) -> None:
    (turn,) = _runs(tmp_path, call(), more=("--max-turns", "1"))

    assert (turn["stop_cause"], turn["reason_code"], turn["steps"]) == ("unknown", "no_stop_event", 1)


# Transcripts ----------------------------------------------------------------------------------------------------------


def _prompt(prompt: str = _PROMPT) -> dict[str, Any]:
    message = {"role": "user", "content": "canary-7f3a canary7f3a"}
    return {"type": "user", "promptId": prompt, "message": message, "timestamp": "2026-11-28T07:00:00.000Z"}


def _answer(stop: str | None = "end_turn", *calls: str, number: int = 1, **more: Any) -> dict[str, Any]:
    content: list[Any] = [{"type": "text", "text": "canary-7f3a"}]
    content += [{"type": "tool_use", "id": each, "name": "Bash", "input": {"x": "canary7f3a"}} for each in calls]
    message: dict[str, Any] = {"id": f"msg_{number}", "model": MODEL, "content": content, "stop_reason": stop}
    message["usage"] = {"input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 5}
    return {"type": "assistant", "message": message, "version": "2.1.332", **more}


def _came(call_id: str, *, is_error: bool = False, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "canary-7f3a", "is_error": is_error}
    return {"type": "user", "promptId": _PROMPT, "message": {"content": [block]}, "toolUseResult": "canary7f3a", **more}


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """Where the transcript is."""
    return tmp_path / f"{_SESSION}.jsonl"


def _tells(path: Path, entries: list[Any], event: str = "Stop", **more: Any) -> list[model.RunStopped]:
    """The receipts that an event leaves, with these entries in the transcript."""
    path.write_text("".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in entries), "utf-8")
    given = {"session_id": _SESSION, "transcript_path": str(path), "prompt_id": _PROMPT, "hook_event_name": event}
    with recorded() as receipts:
        claude_code_events.handle({**given, **more})
        assert b"canary" not in b"".join(receipts.lines)
        return receipts.receipts


def test_what_a_turn_did_is_counted(transcript: Path) -> None:
    entries = [
        _prompt("another"), _answer("tool_use", "other", number=9), _prompt(), _answer("tool_use", "a", "b"),
        _answer("tool_use", "a", "b"), _came("a"), _came("b", is_error=True), _answer(number=2),
    ]  # fmt: skip
    (stop,) = _tells(transcript, entries)

    assert (stop.stop_cause, stop.steps, stop.model_calls, stop.tool_calls) == ("natural", 2, 2, 2)
    assert (stop.thread_id, stop.framework_version, stop.pending_tool_calls) == (_SESSION, "2.1.332", 0)
    assert stop.tool_errors is not None
    assert stop.tool_errors.recovered == 1
    assert stop.usage is not None
    assert (stop.usage.input_tokens, stop.usage.output_tokens) == (50, 10)


def test_a_refused_call_is_a_wait_that_was_denied(transcript: Path) -> None:
    refused = _came("a", is_error=True, permissionDecision={"decision": "reject", "source": "user_reject"})
    (stop,) = _tells(transcript, [_prompt(), _answer("tool_use", "a"), refused, _answer(number=2)])
    (wait,) = stop.approvals or ()

    assert (wait.approval_id, wait.tool, wait.decision, stop.tool_calls) == ("a", "Bash", "denied", 0)


def test_a_name_that_no_tool_has_is_not_taken(transcript: Path) -> None:
    answer = _answer("tool_use")
    answer["message"]["content"] += [{"type": "tool_use", "id": "a", "name": "canary7f3a", "input": {}}]
    refused = _came("a", permissionDecision={"decision": "reject"})
    (stop,) = _tells(transcript, [_prompt(), answer, refused, _answer(number=2)])

    assert [each.tool for each in stop.approvals or ()] == [None]


def test_sub_agents_that_work_on_are_open_children(transcript: Path) -> None:
    tasks = [{"type": "subagent", "agent_type": "Explore"}, {"type": "shell", "command": "canary7f3a"}]
    (stop,) = _tells(transcript, [_prompt(), _answer()], background_tasks=tasks)

    assert stop.children is not None
    assert stop.children.open == 1


def test_an_event_that_comes_twice_makes_one_run(transcript: Path) -> None:
    (first,), (second,) = (_tells(transcript, [_prompt(), _answer()]) for _ in range(2))

    assert (first.run_id, first.stop_cause) == (second.run_id, second.stop_cause)


def test_a_transcript_that_is_behind_is_no_reason(transcript: Path) -> None:
    half = '{"type": "assistant", "mess'
    (stop,) = _tells(transcript, [_prompt(), _answer("tool_use", "a"), _came("a"), half])

    assert (stop.stop_cause, stop.finish_reason) == ("natural", None)
    assert [finding.code for finding in stop.findings or ()] == ["receipt_incomplete"]


@pytest.mark.parametrize(
    ("error", "stop_reason", "cause"),
    [("rate_limit", "stop_sequence", "quota"), ("overloaded", "stop_sequence", "model_failure"),
     ("invalid_request", "refusal", "refusal"), ("max_output_tokens", "stop_sequence", "output_cap")],
)  # fmt: skip
def test_a_call_that_failed(transcript: Path, error: str, stop_reason: str, cause: str) -> None:
    answer = _answer(stop_reason, error=error, isApiErrorMessage=True)
    (stop,) = _tells(transcript, [_prompt(), answer], "StopFailure", error=error)

    assert stop.stop_cause == cause


@pytest.mark.parametrize("event", ["SessionEnd", "UserPromptSubmit"])
def test_a_turn_that_nothing_ended_is_found_later(transcript: Path, event: str) -> None:
    now = _PROMPT if event == "SessionEnd" else "another"
    cut, over = [_prompt(), _answer("tool_use", "a")], [_prompt(), _answer()]

    assert [each.reason_code for each in _tells(transcript, cut, event, prompt_id=now)] == ["no_stop_event"]
    assert _tells(transcript, over, event, prompt_id=now) == []


def test_a_call_that_failed_is_told_again_when_the_session_ends(transcript: Path) -> None:
    entries = [_prompt(), _answer("stop_sequence", error="rate_limit", isApiErrorMessage=True)]
    (first,), (second,) = (
        _tells(transcript, entries, event, error="rate_limit") for event in ("StopFailure", "SessionEnd")
    )

    assert (first.run_id, first.stop_cause, first.reason_code) == (second.run_id, second.stop_cause, second.reason_code)


def test_other_events_leave_nothing(transcript: Path) -> None:
    assert _tells(transcript, [_prompt()], "PreToolUse") == []


# The program ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def _quiet() -> Iterator[None]:
    """It turns logging off, for its own process."""
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("given", ["", "no json", "[]", "{}", '{"hook_event_name": "Stop", "transcript_path": "/no"}'])
def test_it_prints_nothing_and_never_fails(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    monkeypatch.setattr(claude_code, "_is_child", lambda: True)
    with recorded() as receipts:
        assert claude_code.main() == 0
        assert receipts.receipts == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("word", ["1", "claude_code"])
def test_it_is_off_by_the_environment(word: str, transcript: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript.write_text(json.dumps(_prompt()) + "\n" + json.dumps(_answer()) + "\n", "utf-8")
    event = {"hook_event_name": "Stop", "transcript_path": str(transcript), "prompt_id": _PROMPT}
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        claude_code.work(json.dumps(event).encode())
        assert receipts.lines == []
