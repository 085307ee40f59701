"""Permissions that the program is asked for, and calls that are deferred, which a transport plays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from claude_agent_sdk import (
    PermissionResultAllow,
    PermissionResultDeny,
)

from tests.frameworks.claude_agent_sdk import models
from tests.frameworks.claude_agent_sdk.models import (
    ANSWERED,
    INTERRUPTED,
    SESSION,
    came,
    failed,
    init,
    result,
    said,
    used,
)
from tests.frameworks.claude_agent_sdk.paths_clients import client, interrupts
from tests.frameworks.claude_agent_sdk.paths_ends import CALL, plays
from tests.frameworks.claude_agent_sdk.paths_real import UNPROVEN
from tests.frameworks.harness import Path_

ROUTED = {"route": {"owner": "finance", "due_s": 3600}}
_REFUSALS = [{"tool_name": "Bash", "tool_use_id": "toolu_1"}]


def _asks(answer: Any, *script: Any, name: str = "Bash", pause: float = 0.0) -> Callable[[], Any]:
    """The program is asked in the middle of a turn."""

    async def can_use_tool(*_: Any) -> Any:
        await asyncio.sleep(pause)
        return answer

    tools = init("Bash", "AskUserQuestion")
    asked = [tools, said(used(name=name)), models.asks(name=name)]
    return lambda: client([*asked, *script], can_use_tool=can_use_tool)


async def _interrupted_while_asked() -> None:
    async def can_use_tool(*_: Any) -> Any:
        await asyncio.sleep(5)

    cancels = {"type": "control_cancel_request", "request_id": "ask-toolu_1"}
    script = [*CALL, models.asks(), INTERRUPTED, cancels, 0.02, failed("aborted_tools", stop_reason=None)]
    await client(script, more=interrupts, can_use_tool=can_use_tool)


async def _resumed(*script: Any) -> None:
    """A call was deferred, and the session is resumed."""
    waits = result(terminal_reason="tool_deferred", stop_reason="tool_deferred", deferred_tool_use=used(), result="")
    await plays(*CALL, waits)()
    await plays(*script, resume=SESSION)()


_GOES_ON = (came(), init(), said("It is closed."), result())
_DEFERRED = result(terminal_reason="tool_deferred", stop_reason="tool_deferred", deferred_tool_use=used(), result="")


PATHS = [
    Path_(
        "asked-and-allowed", "The program was asked and said yes; the call failed, and the model went on.", UNPROVEN,
        _asks(PermissionResultAllow(), ANSWERED, came(is_error=True), said("No."), result()),
    ),
    Path_(
        "question-answered", "The model had a question, and the program answered it.", UNPROVEN,
        _asks(PermissionResultAllow(), ANSWERED, came(), said("Yes."), result(), name="AskUserQuestion"),
    ),
    Path_(
        "permission-denied", "The program said no, and the model finished.", ("FALSE_COMPLETE", "denied"),
        _asks(PermissionResultDeny(), ANSWERED, came(is_error=True), said("No."), result(permission_denials=_REFUSALS)),
    ),
    Path_(
        "interrupted-while-asked", "The program interrupted while it was asked: what it was asked is withdrawn.",
        ("BOUNDED_STOP", "caller_abort"), _interrupted_while_asked,
    ),
    Path_(
        "hook-denies", "A hook of the program's refused the call; the model went on.", ("FALSE_COMPLETE", "denied"),
        plays(*CALL, came(is_error=True), said("No."), result(permission_denials=_REFUSALS)),
    ),
    Path_(
        "deferred", "A call was deferred, and nobody is named who answers.", ("WAITING_UNROUTED", "owner"),
        plays(*CALL, _DEFERRED),
    ),
    Path_(
        "deferred-routed", "A call was deferred, somebody answers, and the session names the paused state.",
        ("WAITING", "external"), plays(*CALL, _DEFERRED), ROUTED,
    ),
    Path_(
        "deferred-overdue", "Routed, and nobody resumed it in time.", ("WAITING_UNROUTED", "overdue"),
        plays(*CALL, _DEFERRED), ROUTED, after_s=4000.0,
    ),
    Path_(
        "deferred-not-kept", "A call was deferred in a session that is not kept.", ("WAITING_UNROUTED", "resume_token"),
        plays(*CALL, _DEFERRED, extra_args={"no-session-persistence": None}), ROUTED,
    ),
    Path_("deferred-finished", "The run that took it up finished.", UNPROVEN, lambda: _resumed(*_GOES_ON), judged=1),
    Path_(
        "deferred-refused", "Resumed, and the call was refused.", ("FALSE_COMPLETE", "denied"),
        lambda: _resumed(came(is_error=True), init(), said("No."), result(permission_denials=_REFUSALS)),
        judged=1,
    ),
    Path_(
        "deferred-failed", "The run that was to take it up failed before the call: it still waits.",
        ("WAITING", "external"), lambda: _resumed(init(), failed("turn_setup_failed")), ROUTED,
    ),
]  # fmt: skip
