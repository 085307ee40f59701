"""Ends of the real command line: it is started as the SDK starts it, and only its provider is scripted."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import (
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
)

from tests.frameworks.claude_agent_sdk.models import Turn, ask, call, options, say
from tests.frameworks.harness import Path_

UNPROVEN = ("FALSE_COMPLETE", "no_contract")
_SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def _one(*turns: Turn, **more: Any) -> Any:
    return lambda: ask(options(*turns, **more))


def _hooked(event: str, output: Any, *turns: Turn) -> Any:
    """With a hook of the program's that always says the same."""

    async def hook(*_: Any) -> Any:
        return output

    return lambda: ask(options(*turns, hooks={event: [HookMatcher(hooks=[hook])]}))


def _decision(word: str) -> Any:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word}}


_STOPS = {"continue_": False, "stopReason": "canary-7f3a"}


def _permitted(answer: Any, *turns: Turn) -> Any:
    """With a callback that decides on permissions."""

    async def can_use_tool(*_: Any) -> Any:
        return answer

    async def run() -> None:
        async with ClaudeSDKClient(options(*turns, allowed_tools=[], can_use_tool=can_use_tool)) as client:
            await client.query("Close it.")
            async for _ in client.receive_response():
                pass

    return run


_TOUCHES = call("Bash", command="touch made", description="Makes it")


async def _resumed() -> None:
    """A hook defers a call; the session is resumed without that hook, and the call runs."""

    async def defer(*_: Any) -> Any:
        return _decision("defer")

    given = options(call(), say(), say(), hooks={"PreToolUse": [HookMatcher(hooks=[defer])]})
    (*_, last) = await ask(given)
    given.hooks, given.resume = None, last.session_id
    await ask(given, "Go on.")


async def _interrupted() -> None:
    async with ClaudeSDKClient(options(say(pause=1.0))) as client:
        await client.query("Close it.")
        async for message in client.receive_messages():
            if getattr(message, "subtype", None) == "init":
                await asyncio.sleep(0.1)
                await client.interrupt()
            elif isinstance(message, ResultMessage):
                break


_STARTS = call("Task", description="d", prompt="p", subagent_type="Explore", run_in_background=False)


PATHS = [
    Path_("natural", "A tool call and an answer; nobody looked at the destination.", UNPROVEN, _one(call(), say())),
    Path_(
        "max-turns", "As many turns as allowed, and the model wanted more.", ("BOUNDED_STOP", "step_limit"),
        _one(call(), max_turns=1),
    ),
    Path_("max-turns-reached", "Done on the last turn allowed.", UNPROVEN, _one(call(), say(), max_turns=2)),
    Path_(
        "asked-to-go-on", "An answer was cut off, and the command line had the model go on: no turn more.", UNPROVEN,
        _one(say(stop="max_tokens"), say(), max_turns=1),
    ),
    Path_(
        "budget", "The budget is used up with a call unanswered.", ("BOUNDED_STOP", "cost_budget"),
        _one(call(), max_budget_usd=0.00001),
    ),
    Path_(
        "rate-limit", "Success, says the subtype; an error, with status 429.", ("FAILED", "quota"),
        _one(Turn(status=429)),
    ),
    Path_(
        "refusal", "The model declined, twice.", ("FAILED", "refusal"), _one(say(stop="refusal"), say(stop="refusal")),
    ),
    Path_(
        "output-cap", "Every answer was cut off, and no more tries are allowed.", ("BOUNDED_STOP", "output_cap"),
        _one(*[say("It", stop="max_tokens")] * 4),
    ),
    Path_(
        "nobody-asked", "A permission was needed, and there was nobody to ask: it was refused.",
        ("FALSE_COMPLETE", "denied"), _one(_TOUCHES, say(), allowed_tools=[]),
    ),
    Path_(
        "allowed", "The program was asked and said yes; the call ran.", UNPROVEN,
        _permitted(PermissionResultAllow(), _TOUCHES, say()),
    ),
    Path_(
        "denied-for-good", "The program said no, and that this ends the turn.", ("BOUNDED_STOP", "approval_denied"),
        _permitted(PermissionResultDeny(message="canary-7f3a", interrupt=True), _TOUCHES, say()),
    ),
    Path_("deferred-resumed", "The session was resumed and the call ran.", ("WAITING", "answered"), _resumed),
    Path_(
        "hook-stops", "A hook of the program's stopped it after a tool.", ("BOUNDED_STOP", "guardrail"),
        _hooked("PostToolUse", _STOPS, call(), say()),
    ),
    Path_(
        "prompt-stopped", "A hook stopped the prompt: success, says the result, and no model was called.",
        ("BOUNDED_STOP", "guardrail"), _hooked("UserPromptSubmit", _STOPS, say()),
    ),
    Path_(
        "structured", "The structured answer is a call that ends the loop.", UNPROVEN,
        _one(call("StructuredOutput", number=7), output_format={"type": "json_schema", "schema": _SCHEMA}),
    ),
    Path_("sub-agent", "A sub-agent's run is a child.", UNPROVEN, _one(_STARTS, call("Bash", "toolu_2"), say(), say())),
    Path_(
        "no-session", "The session that was to be resumed is not there.", ("FAILED", "host_error"),
        _one(say(), resume="c0b1d2e3-ab4c-4d5e-8f6a-7b8c9d0e1f2b"),
    ),
    Path_(
        "interrupted", "The program interrupted its client, which was seen and ended the turn.",
        ("BOUNDED_STOP", "caller_abort"), _interrupted,
    ),
]  # fmt: skip
