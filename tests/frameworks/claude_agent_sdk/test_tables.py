"""The tables of the hook have every word that the SDK and its command line have, and elsewhere only classes count."""

from __future__ import annotations

import asyncio
import inspect
import mmap
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import claude_agent_sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ProcessError, _errors, types

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.hooks.claude_agent_sdk import causes
from stopcause.receipts.testing import recorded
from tests.frameworks.claude_agent_sdk.models import Wire, ask, failed, init, result, said

_COMMAND = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
# Bases, and what says of a result what the result says.
_NO_CAUSE = {"ClaudeSDKError", "ResultError"}


def _lists(word: str) -> set[str]:
    """The words of all lists in the command line that have this one and nothing but words."""
    found: set[str] = set()
    with _COMMAND.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(b'"%s"' % word.encode())
        while at >= 0:
            listed = data[data.rfind(b"[", at - 1000, at) : data.find(b"]", at) + 1]
            if re.fullmatch(rb'\["[a-z_]+"(?:,"[a-z_]+")*\]', listed):
                found |= {each.decode() for each in re.findall(rb'"([a-z_]+)"', listed)}
            at = data.find(b'"%s"' % word.encode(), at + 1)
    return found


def test_every_terminal_reason_of_the_command_line_has_a_cause() -> None:
    words = _lists("rapid_refill_breaker") | _lists("structured_output_retry_exhausted")

    assert "max_turns" in words
    assert words <= set(causes.BY_TERMINAL_REASON)


def test_every_subtype_of_the_command_line_has_a_cause() -> None:
    words = _lists("error_max_budget_usd")

    assert "error_max_turns" in words
    assert words <= set(causes.BY_SUBTYPE)


def test_every_word_on_a_failed_call_has_a_cause() -> None:
    assert set(typing.get_args(types.AssistantMessageError)) <= set(causes.BY_API_ERROR)


def test_every_exception_of_the_sdk_was_thought_of() -> None:
    classes = {
        name
        for name, kind in inspect.getmembers(_errors, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == _errors.__name__
    }
    assert classes <= set(causes.BY_ERROR) | _NO_CAUSE


def test_every_status_of_a_task_is_known_or_goes_on() -> None:
    goes_on = {"pending", "running", "paused"}
    words = {*typing.get_args(types.TaskNotificationStatus), *typing.get_args(types.TaskUpdatedStatus)}
    assert words - goes_on == set(causes.BY_TASK_STATUS)


@pytest.fixture
def _other_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("claude_agent_sdk")
    yield
    stopcause.uninstrument("claude_agent_sdk")


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_the_end_and_exception_classes_are_seen() -> None:
    async def program() -> None:
        for end in (result(), failed("max_turns"), ProcessError("x", exit_code=1)):
            await ask(ClaudeAgentOptions(), transport=Wire([init(), said("It is closed."), end]))

    with recorded() as receipts:
        asyncio.run(program())
        stops = receipts.receipts
    assert [stop.stop_cause for stop in stops[:2]] == ["unknown", "unknown"]
    assert stops[2].stop_cause in ("host_error", "process_lost")
    assert all("untested_version" in [finding.code for finding in stop.findings or ()] for stop in stops)
