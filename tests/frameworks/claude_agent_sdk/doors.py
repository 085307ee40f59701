"""Marked text through all of the Claude Agent SDK that takes some. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIJSONDecodeError,
    PermissionResultDeny,
    ProcessError,
)

from tests.frameworks.claude_agent_sdk.models import (
    ANSWERED,
    Wire,
    ask,
    asks,
    call,
    came,
    failed,
    init,
    options,
    result,
    said,
    say,
    task,
    used,
)
from tests.frameworks.marks import PROSE, WORD

DEFERRED: dict[str, Any] = {"terminal_reason": "tool_deferred", "deferred_tool_use": used(name=WORD)}


async def _plays(*script: Any) -> None:
    await ask(ClaudeAgentOptions(system_prompt=PROSE), PROSE, transport=Wire(script))


async def _talks() -> None:
    """The real command line: prompt, system prompt, arguments, results, an invented tool, an answer."""
    turns = (call(command=f"echo {WORD}; false"), call(WORD, "toolu_2", text=PROSE), say(PROSE))
    await ask(options(*turns, system_prompt=PROSE), f"{PROSE} {WORD}")


async def _waits() -> None:
    await _plays(init(), said(used()), result(result=WORD, **DEFERRED))


async def _errors() -> None:
    await _plays(init(), said(WORD), failed("api_error"), ProcessError(PROSE, exit_code=1, stderr=WORD))


async def _garbled() -> None:
    await _plays(init(), CLIJSONDecodeError(WORD, ValueError(PROSE)))


async def _refused() -> None:
    denial = {"tool_name": WORD, "tool_use_id": "toolu_1", "tool_input": {"command": PROSE}}
    await _plays(init(), said(used(name=WORD)), came(is_error=True), result(permission_denials=[denial]))


async def _hands_over() -> None:
    await _plays(
        init("Task"), said(used(name="Task")), task("task_started", subagent_type=WORD, prompt=PROSE),
        said(WORD, parent="toolu_1"), task("task_updated", patch={"status": "failed", "error": WORD}), came(), result(),
    )  # fmt: skip


async def _prose() -> None:
    await _plays(init(), said(PROSE), result(PROSE, terminal_reason=PROSE, stop_reason=PROSE))


async def _asks() -> None:
    async def can_use_tool(*_: Any) -> Any:
        return PermissionResultDeny(message=PROSE)

    agents = {"helper": AgentDefinition(description=PROSE, prompt=WORD)}
    given = ClaudeAgentOptions(can_use_tool=can_use_tool, agents=agents)
    script = [init(), said(used(name=WORD)), asks(name=WORD), ANSWERED, came(is_error=True), result(result=WORD)]
    async with ClaudeSDKClient(given, Wire(script)) as client:
        await client.query(PROSE)
        async for _ in client.receive_response():
            pass


async def _named() -> None:
    """The name of a tool that there is is told."""
    await _plays(init(WORD), said(used(name=WORD)), result(**DEFERRED))


DOORS = [_talks, _waits, _errors, _garbled, _refused, _hands_over, _prose, _asks]
CONTROL = _named
