"""Claude Code: what a transcript says of one turn. A pure reading of its lines: counts, words of closed lists, times.

A transcript is one JSON object a line, written as the session goes on (`~/.claude/projects/<folder>/<session>.jsonl`;
that of a sub-agent lies beside it). Looked at are types and ids of entries, the prompt's id, the model, stop reasons
and usage of answers, ids and names of calls, and whether a result is an error. No text, input or result is looked at.

Source: transcripts that Claude Code 2.1.332 and 2.1.218 write in the tests, and the reader in `_internal/sessions.py`
of claude-agent-sdk.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    Entry = dict[str, Any]

_MOST_BYTES = 32 * 1024 * 1024  # of the end of a transcript; a turn that is longer is counted from there on
_SYNTHETIC = "<synthetic>"  # the model of an answer that no model gave
_USED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# Tools that every session has. Others are known where the transcript lists them as used (`tools-used`).
_TOOLS = frozenset(
    {
        "Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "ExitPlanMode", "Glob", "Grep", "KillShell",
        "MultiEdit", "NotebookEdit", "Read", "Skill", "Task", "TaskStop", "TodoWrite", "ToolSearch", "WebFetch",
        "WebSearch", "Write",
    }
)  # fmt: skip


class Told(NamedTuple):
    """One turn, or one sub-agent.

    Attributes:
        prompt: The id of its prompt.
        version: That of Claude Code.
        started_ns: When its first entry was written.
        steps: Answers that were the first or came after tools had answered.
        refused: Calls that were not allowed: ids, and the tools where they are known.
        stop_reason: Of the last answer; None where the model never answered.
        is_failed: Whether the last answer stands for a call of the API that failed.
        api_error: The word on such a call.
        is_over: Whether the last answer asks for nothing more.
        is_whole: Whether its beginning was found.
    """

    prompt: str | None
    version: str | None = None
    model: str | None = None
    started_ns: int | None = None
    steps: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    pending: int = 0
    refused: tuple[tuple[str, str | None], ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    stop_reason: str | None = None
    api_error: str | None = None
    api_status: int | None = None
    is_failed: bool = False
    is_over: bool = False
    is_whole: bool = True


def entries(path: Path) -> list[Entry]:
    """The end of a transcript. A line that is no object is left out: the last one may be half written."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _MOST_BYTES))
        lines = file.read().splitlines()
    found = (_entry(line) for line in lines)
    return [entry for entry in found if entry is not None]


def _entry(line: bytes) -> Entry | None:
    try:
        found = json.loads(line)
    except ValueError:  # half written, or cut where the reading began
        return None
    return found if isinstance(found, dict) else None


def prompt_before(found: Sequence[Entry], prompt: str | None) -> str | None:
    """The last prompt that is not this one."""
    prompts = (_text(entry.get("promptId")) for entry in reversed(found) if entry.get("type") == "user")
    return next((each for each in prompts if each is not None and each != prompt), None)


def turn(found: Sequence[Entry], prompt: str | None) -> Told:
    """A turn of the main agent: what was written from its prompt on, until the next one's."""
    first = next((i for i, entry in enumerate(found) if _is_prompt(entry, prompt)), None)
    if first is None:
        return Told(prompt, is_whole=False)
    later = (i for i in range(first, len(found)) if found[i].get("promptId") not in (None, prompt))
    mine = [entry for entry in found[first : next(later, len(found))] if not entry.get("isSidechain")]
    return _Reading(_tools(found)).read(prompt, mine)


def sub_agent(found: Sequence[Entry], prompt: str | None) -> Told:
    """A sub-agent, from a transcript of its own."""
    return _Reading(_tools(found)).read(prompt, found)


def _is_prompt(entry: Entry, prompt: str | None) -> bool:
    return entry.get("type") == "user" and not entry.get("isSidechain") and entry.get("promptId") == prompt


def _tools(found: Iterable[Entry]) -> frozenset[str]:
    listed = (entry.get("tools") for entry in found if entry.get("type") == "tools-used")
    return _TOOLS.union(name for names in listed if isinstance(names, list) for name in names if isinstance(name, str))


class _Reading:
    """What has been read so far."""

    def __init__(self, tools: frozenset[str]) -> None:
        self._tools = tools
        self._calls: dict[str, str | None] = {}  # calls that have no result yet, and their tools
        self._refused: list[tuple[str, str | None]] = []
        self._usage: dict[str, tuple[int, int]] = {}  # by answer: each of its entries says the whole
        self._steps = self._done = self._errors = 0
        self._is_due = True
        self._model: str | None = None
        self._last: Entry = {}

    def read(self, prompt: str | None, mine: Sequence[Entry]) -> Told:
        """All of it."""
        for entry in mine:
            message = entry.get("message")
            if isinstance(message, dict) and entry.get("type") == "assistant":
                self._answer(entry, message)
            elif isinstance(message, dict) and entry.get("type") == "user":
                self._results(entry, message)
        return self._told(prompt, mine)

    def _answer(self, entry: Entry, message: Entry) -> None:
        self._last = entry
        if message.get("model") == _SYNTHETIC:
            return
        self._model = _text(message.get("model")) or self._model
        answer = _text(message.get("id")) or f"#{len(self._usage)}"
        self._steps += self._is_due and answer not in self._usage
        self._is_due = False
        self._usage[answer] = _tokens(message.get("usage"))
        for block in _blocks(message):
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                name = _text(block.get("name"))
                self._calls[block["id"]] = name if name in self._tools else None

    def _results(self, entry: Entry, message: Entry) -> None:
        decision = entry.get("permissionDecision")
        is_refused = isinstance(decision, dict) and decision.get("decision") == "reject"
        for block in _blocks(message):
            if block.get("type") != "tool_result" or not isinstance(block.get("tool_use_id"), str):
                continue
            tool = self._calls.pop(block["tool_use_id"], None)
            self._is_due, self._last = True, entry
            if is_refused:
                self._refused.append((block["tool_use_id"], tool))
            else:
                self._done += 1
                self._errors += block.get("is_error") is True

    def _told(self, prompt: str | None, mine: Sequence[Entry]) -> Told:
        message = self._last.get("message", {})
        is_failed = self._last.get("isApiErrorMessage") is True
        stop_reason = _text(message.get("stop_reason"))
        status = self._last.get("apiErrorStatus")
        return Told(
            prompt=prompt,
            version=_text(mine[-1].get("version")) if mine else None,
            model=self._model,
            started_ns=_time(mine[0].get("timestamp")) if mine else None,
            steps=self._steps,
            model_calls=len(self._usage),
            tool_calls=self._done,
            tool_errors=self._errors,
            pending=len(self._calls),
            refused=tuple(self._refused),
            input_tokens=sum(each[0] for each in self._usage.values()) if self._usage else None,
            output_tokens=sum(each[1] for each in self._usage.values()) if self._usage else None,
            stop_reason=stop_reason,
            api_error=_text(self._last.get("error")) if is_failed else None,
            api_status=status if is_failed and type(status) is int else None,
            is_failed=is_failed,
            is_over=is_failed or stop_reason not in (None, "tool_use"),
        )


def _blocks(message: Entry) -> list[Entry]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _tokens(usage: object) -> tuple[int, int]:
    if not isinstance(usage, dict):
        return 0, 0
    values = [value if type(value := usage.get(name)) is int else 0 for name in (*_USED, "output_tokens")]
    return sum(values[:-1]), values[-1]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _time(value: object) -> int | None:
    """Nanoseconds since 1970."""
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1e9) if isinstance(value, str) else None
    except ValueError:
        return None
