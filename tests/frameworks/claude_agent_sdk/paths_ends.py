"""Ends of `query()` that a transport plays: what the command line rarely says, and what ends it from outside."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ProcessError,
    query,
)

import stopcause
from tests.frameworks.claude_agent_sdk.models import (
    Wire,
    ask,
    came,
    failed,
    init,
    prompts,
    result,
    said,
    used,
)
from tests.frameworks.claude_agent_sdk.paths_real import UNPROVEN
from tests.frameworks.harness import Path_

CALL = (init(), said(used()))


def plays(*script: Any, **more: Any) -> Callable[[], Any]:
    return lambda: ask(ClaudeAgentOptions(**more), transport=Wire(script))


def _ends(end: dict[str, Any], **more: Any) -> Callable[[], Any]:
    """One answer, and this end."""
    return plays(init(), said("It is closed."), end, **more)


def _api(error: str, **more: Any) -> Callable[[], Any]:
    """A call of the API failed with this word."""
    end = result(is_error=True, terminal_reason="api_error", stop_reason="stop_sequence", **more)
    return plays(init(), said("canary-7f3a", error=error), end, ProcessError("canary-7f3a", exit_code=1))


class _Refuses(Wire):
    """A connection that there cannot be."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def connect(self) -> None:
        raise self._error


async def _in_a_block() -> None:
    with stopcause.run("ticket-agent", thread_id="thread-1"):
        await _ends(result())()


async def _error_in_a_block() -> None:
    """The error that follows the result leaves the host's block."""
    wire = Wire([*CALL, failed("max_turns", "error_max_turns"), ProcessError("canary-7f3a", exit_code=1)])
    with contextlib.suppress(Exception):
        async with stopcause.run("ticket-agent"):
            async for _ in query(prompt="Close it.", transport=wire):
                pass


async def _read(script: Any, seconds: float | None, *, in_block: bool = False) -> None:
    """Reads for a while."""
    block = stopcause.run("ticket-agent") if in_block else contextlib.nullcontext()
    with contextlib.suppress(TimeoutError):
        async with block, asyncio.timeout(seconds):
            async for _ in query(prompt="Close it.", transport=Wire(script)):
                pass


async def _cancelled() -> None:
    task_ = asyncio.create_task(_read([*CALL, 5.0], None))
    await asyncio.sleep(0.05)
    task_.cancel()
    await asyncio.wait([task_])


async def _leaves(*script: Any) -> None:
    stream = query(prompt="Close it.", transport=Wire(script))
    async for message in stream:
        if type(message).__name__ in ("AssistantMessage", "ResultMessage"):
            break
    await stream.aclose()
    await asyncio.sleep(0.05)


async def _forgets() -> None:
    async for message in query(prompt="Close it.", transport=Wire([*CALL, 5.0])):
        if type(message).__name__ == "AssistantMessage":
            break
    gc.collect()
    await asyncio.sleep(0.05)


async def _two_prompts() -> None:
    turn = (init(), said("It is closed."), result())
    async for _ in query(prompt=prompts("Close it.", "And now?"), transport=Wire(turn, turn)):
        pass


async def _side_by_side() -> None:
    await asyncio.gather(plays(init(), 0.05, said("One."), result())(), plays(init(), 0.2, said("Two."), result())())


def _by_terminal(word: str, verdict: tuple[str | None, str | None], why: str) -> Path_:
    """What only its terminal reason tells."""
    return Path_(word.replace("_", "-"), why, verdict, _ends(failed(word)))


PATHS = [
    Path_("in-a-block", "The host's own block and the query in it are one run.", UNPROVEN, _in_a_block),
    Path_(
        "max-turns-in-a-block", "The error that follows that result left the host's block: still the bound.",
        ("BOUNDED_STOP", "step_limit"), _error_in_a_block,
    ),
    Path_("side-by-side", "Two queries at once are two runs; the second is judged.", UNPROVEN, _side_by_side, judged=1),
    Path_(
        "two-prompts", "Two prompts in one stream are two turns; the second is judged.", UNPROVEN, _two_prompts,
        judged=1,
    ),
    Path_(
        "empty", "The turn came back with nothing.", ("FALSE_COMPLETE", "empty_output"),
        plays(init(), result(result="")),
    ),
    Path_(
        "pending-call", "It says completed, with a call unanswered.", ("UNCERTAIN", "pending_tool_calls"),
        plays(*CALL, result()),
    ),
    Path_(
        "tool-fails", "A tool failed; the model was told and went on.", UNPROVEN,
        plays(*CALL, came(is_error=True), said("No."), result()),
    ),
    Path_(
        "tool-invented", "The model called a tool that is not there, and went on.", UNPROVEN,
        plays(init(), said(used(name="canary7f3a")), came(is_error=True), said("No."), result()),
    ),
    Path_(
        "unknown-stop", "A stop reason that nobody knows is no proof of an end.", ("UNCERTAIN", "finish_unknown"),
        _ends(result(stop_reason="novel")),
    ),
    Path_(
        "unknown-terminal", "A terminal reason that nobody knows is no proof of an end.",
        ("UNCERTAIN", "cause_missing"), _ends(result(terminal_reason="novel")),
    ),
    Path_(
        "unknown-subtype", "An older command line with a subtype that nobody knows.", ("UNCERTAIN", "cause_missing"),
        _ends(result("novel", terminal_reason=None)),
    ),
    Path_(
        "subtype-alone", "An older command line says it with the subtype alone.", ("BOUNDED_STOP", "step_limit"),
        _ends(result("error_max_turns", terminal_reason=None)),
    ),
    Path_(
        "pause-turn", "The provider paused its own tools, and nothing continued it.",
        ("BOUNDED_STOP", "server_tool_limit"), _ends(result(stop_reason="pause_turn")),
    ),
    Path_(
        "stop-hook-stops", "A hook had the last word at the end.", ("BOUNDED_STOP", "guardrail"),
        _ends(result(terminal_reason="stop_hook_prevented")),
    ),
    Path_(
        "in-the-background", "It was sent to the background, where nobody sees it end.", ("UNCERTAIN", "cause_missing"),
        _ends(result(terminal_reason="background_requested")),
    ),
    Path_(
        "structured-never", "The model was told to give a structured answer, and never gave it.",
        ("FAILED", "model_failure"),
        _ends(failed("structured_output_retry_exhausted", "error_max_structured_output_retries")),
    ),
    _by_terminal("prompt_too_long", ("BOUNDED_STOP", "context_limit"), "The window is full."),
    _by_terminal(
        "blocking_limit", ("BOUNDED_STOP", "context_limit"), "The window is as full as the command line lets it be.",
    ),
    _by_terminal(
        "rapid_refill_breaker", ("BOUNDED_STOP", "context_limit"), "The window was emptied, and full again at once.",
    ),
    _by_terminal("image_error", ("FAILED", "input_rejected"), "An image could not be taken."),
    _by_terminal("model_error", ("FAILED", "model_failure"), "The model's stream broke."),
    _by_terminal(
        "malformed_tool_use_exhausted", ("FAILED", "malformed_call"),
        "The model's call could not be read, again and again.",
    ),
    _by_terminal(
        "tool_deferred_unavailable", ("FAILED", "tool_failure"), "What had been deferred was not there any more.",
    ),
    _by_terminal("turn_setup_failed", ("FAILED", "host_error"), "The turn could not be set up."),
    Path_(
        "server-error", "The provider failed.", ("FAILED", "model_failure"), _api("server_error", api_error_status=500),
    ),
    Path_(
        "no-key", "The provider did not know the key.", ("FAILED", "model_failure"),
        _api("authentication_failed", api_error_status=401),
    ),
    Path_("no-credit", "There is no credit left.", ("FAILED", "quota"), _api("billing_error")),
    Path_(
        "api-recovered", "A call of the API failed, and another one made up for it.", UNPROVEN,
        plays(init(), said("canary-7f3a", error="overloaded"), said("It is closed."), result()),
    ),
    Path_(
        "status-alone", "A word that nobody knows, and the status 429.", ("FAILED", "quota"),
        _api("novel", api_error_status=429),
    ),
    Path_(
        "no-result", "The messages were over without a result: nobody knows how it ended.",
        ("UNCERTAIN", "stream_truncated"), plays(*CALL, came()),
    ),
    Path_(
        "process-killed", "The command line was killed in the middle.", ("FAILED", "process_lost"),
        plays(*CALL, ProcessError("canary-7f3a", exit_code=137)),
    ),
    Path_(
        "connection-lost", "The connection broke in the middle.", ("FAILED", "process_lost"),
        plays(*CALL, CLIConnectionError("canary-7f3a")),
    ),
    Path_(
        "not-installed", "There is no command line.", ("FAILED", "host_error"),
        lambda: ask(ClaudeAgentOptions(), transport=_Refuses(CLINotFoundError("canary-7f3a"))),
    ),
    Path_(
        "not-json", "What came was no message.", ("UNCERTAIN", "stream_rejected"),
        plays(init(), CLIJSONDecodeError("canary-7f3a", ValueError())),
    ),
    Path_(
        "no-message", "A message without what it needs.", ("UNCERTAIN", "stream_rejected"),
        plays(init(), {"type": "assistant"}),
    ),
    Path_("cancelled", "Its task was cancelled while a tool ran.", ("BOUNDED_STOP", "caller_abort"), _cancelled),
    Path_(
        "timed-out", "A timer of the host's, around the query only: seen as a cancellation.",
        ("BOUNDED_STOP", "caller_abort"), lambda: _read([*CALL, 5.0], 0.1),
    ),
    Path_(
        "timed-out-in-a-block", "The host's time limit fired with a tool in flight.", ("BOUNDED_STOP", "time_limit"),
        lambda: _read([*CALL, 5.0], 0.1, in_block=True),
    ),
    Path_(
        "timed-out-stuck", "The host's time limit fired with nothing done.", ("STUCK", "time_limit"),
        lambda: _read([init(), 5.0], 0.1, in_block=True),
    ),
    Path_(
        "reader-leaves", "Whoever read the messages closed the stream.", ("BOUNDED_STOP", "caller_abort"),
        lambda: _leaves(*CALL, 5.0),
    ),
    Path_(
        "reader-leaves-with-result", "The reader closed it once it had the result: it was over.", UNPROVEN,
        lambda: _leaves(init(), result(), 5.0),
    ),
    Path_(
        "reader-forgets", "Nobody reads the stream any more; it is collected.", ("BOUNDED_STOP", "caller_abort"),
        _forgets,
    ),
    Path_(
        "own-turn", "A task in the background woke the session for a turn of its own, which is judged.", UNPROVEN,
        plays(init(), said("I wait."), result(), init(), said("It is closed."), result()), judged=1,
    ),
]  # fmt: skip
