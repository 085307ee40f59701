"""Claude Code: what an event of its hooks says of a turn, and the receipt of it. `claude_code` hands the events on.

What a turn did is read from its transcript (`transcript`): only counts and words of closed lists.

`Stop` and `SubagentStop` say that the model was done, `StopFailure` that a call of the API failed. What none of these
ended (interrupted, out of turns or of money) is found when the next prompt comes or the session ends: why it ended is
nowhere written, so its receipt does not say it. The id of a run comes from the session and the prompt: an event that
comes twice makes no second run.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stopcause.receipts import capture
from stopcause.receipts.causes import Rank
from stopcause.receipts.hooks.claude_agent_sdk import causes
from stopcause.receipts.hooks.claude_code import transcript
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import ApprovalKind, Boundary, Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stopcause.receipts.hooks.claude_code.transcript import Told
    from stopcause.receipts.run import Run

    Event = Mapping[str, Any]

NAME = "claude_code"
_ADAPTER = f"stopcause.{NAME}"
_AGENT = "claude"
_RUNS = uuid.uuid5(uuid.NAMESPACE_URL, _ADAPTER)
_SUB_AGENT = "subagent"  # the type of a task in the background that is one


def handle(event: Event) -> None:
    """An event of a hook. Those that end nothing are none of ours."""
    end = _ENDS.get(str(event.get("hook_event_name")))
    if end is not None:
        end(event)


def _stopped(event: Event) -> None:
    """The main agent is done, though sub-agents may work on."""
    run = _done(event, transcript.turn(_entries(event), event.get("prompt_id")), _AGENT)
    tasks = event.get("background_tasks")
    found = tasks if isinstance(tasks, list) else []
    run.children_open = sum(isinstance(task, dict) and task.get("type") == _SUB_AGENT for task in found)
    run.end(boundary=Boundary.CALLBACK)


def _failed(event: Event) -> None:
    """A call of the API failed for good. The word on it is one of a list."""
    error = event.get("error")
    told = transcript.turn(_entries(event), event.get("prompt_id"))
    _say_failed(event, told, error if isinstance(error, str) else told.api_error)


def _say_failed(event: Event, told: Told, error: str | None) -> None:
    run = _run(event, told, _AGENT)
    word = causes.of_api(error, told.stop_reason, told.api_status)
    if word.new is not None:
        run.find("vocabulary_new", word.new if is_identifier(word.new) else _ADAPTER)
    run.say(word.cause, Rank.SIGNAL, Boundary.CALLBACK, reason=word.reason)
    run.end(boundary=Boundary.CALLBACK)


def _sub_stopped(event: Event) -> None:
    """A sub-agent is done: a child of the turn that started it."""
    prompt, agent_id, kind = event.get("prompt_id"), event.get("agent_id"), event.get("agent_type")
    told = transcript.sub_agent(transcript.entries(Path(event["agent_transcript_path"])), prompt)
    run = _done(event, told, kind if isinstance(kind, str) else None, part=str(agent_id))
    run.parent_run_id = _run_id(event, told)
    run.end(boundary=Boundary.CALLBACK)


def _prompted(event: Event) -> None:
    """A new prompt. The turn before it may have ended without a word."""
    prompt = transcript.prompt_before(_entries(event), event.get("prompt_id"))
    if prompt is not None:
        _settle(event, prompt)


def _session_ended(event: Event) -> None:
    """The session is over, and its last turn may be so without a word."""
    prompt = event.get("prompt_id")
    if isinstance(prompt, str):
        _settle(event, prompt)


_ENDS: Mapping[str, Callable[[Event], None]] = {
    "Stop": _stopped,
    "StopFailure": _failed,
    "SubagentStop": _sub_stopped,
    "UserPromptSubmit": _prompted,
    "SessionEnd": _session_ended,
}


def _settle(event: Event, prompt: str) -> None:
    """A turn that no other event has ended.

    Of a call that failed it is said again: the command does not wait for `StopFailure`, and ends before that is heard.
    """
    told = transcript.turn(_entries(event), prompt)
    if told.is_failed:
        _say_failed(event, told, told.api_error)
    elif told.is_whole and not told.is_over:
        run = _run(event, told, _AGENT)
        run.say(StopCause.UNKNOWN, Rank.SIGNAL, Boundary.CALLBACK, reason="no_stop_event")
        run.end(boundary=Boundary.CALLBACK)


# The run --------------------------------------------------------------------------------------------------------------


def _entries(event: Event) -> list[dict[str, Any]]:
    return transcript.entries(Path(event["transcript_path"]))


def _run_id(event: Event, told: Told, part: str = "") -> str:
    return str(uuid.uuid5(_RUNS, f"{event.get('session_id')}/{told.prompt}/{part}"))


def _done(event: Event, told: Told, agent: str | None, part: str = "") -> Run:
    """A run whose model is done. Where the transcript is behind, what it says last is not why."""
    run = _run(event, told, agent, part)
    if not told.is_over:
        run.finish = run.finish_raw = run.pending_tool_calls = None
        run.find("receipt_incomplete", f"{_ADAPTER}:transcript")
    return run


def _run(event: Event, told: Told, agent: str | None, part: str = "") -> Run:
    """A run that began before this process: its receipt stands alone, and no start record is written of it now."""
    run = capture.begin(_ADAPTER, NAME, told.version, agent)
    run.identify(_run_id(event, told, part))
    run.thread_id = event.get("session_id")
    now = time.time_ns()
    run.is_started = True
    run.started_ns = min(told.started_ns or now, now)
    run.started_mono = time.monotonic_ns() - (now - run.started_ns)
    _count(run, told)
    return run


def _count(run: Run, told: Told) -> None:
    run.model, run.step_unit, run.steps = told.model, "turn", told.steps
    run.model_calls, run.tool_calls, run.pending_tool_calls = told.model_calls, told.tool_calls, told.pending
    run.tool_errors_recovered = told.tool_errors
    run.add_usage(told.input_tokens, told.output_tokens)
    if told.stop_reason is not None and (told.api_error is None or told.stop_reason != "stop_sequence"):
        run.finish, run.finish_raw = causes.FINISHES.get(told.stop_reason, Finish.OTHER), told.stop_reason
    for call_id, tool in told.refused:
        run.waiting(call_id, ApprovalKind.TOOL_CALL, tool=tool, tool_call_id=call_id, boundary=Boundary.CALLBACK)
        run.decided(call_id, "denied")
