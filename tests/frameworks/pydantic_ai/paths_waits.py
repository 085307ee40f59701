"""Runs that stop to wait, and the runs that bring the answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_ai import (
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDenied,
    capabilities,
    exceptions,
    output,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter

import stopcause
from stopcause.receipts.hooks.pydantic_ai import waits as pydantic_ai_waits
from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.pydantic_ai.agents import PROMPT, agent, expecting, waiting
from tests.frameworks.pydantic_ai.models import calls, text

_DONE = ("FALSE_COMPLETE", "no_contract")
_ANSWERED = ("WAITING", "answered")
_UNROUTED = ("WAITING_UNROUTED", "owner")
_ROUTE = {"route": {"owner": "team-payments", "due_s": 3600}}


async def _resumed(approval: Any, *more: Any) -> None:
    made = waiting(calls("pay"), text(), *more)
    first = await made.run(PROMPT)
    results = DeferredToolResults(approvals={"call-1": approval})
    await made.run(message_history=first.all_messages(), deferred_tool_results=results)


async def _elsewhere() -> None:
    """The history goes through a store, and the process that resumes remembers nothing."""
    made = waiting(calls("pay"), text())
    stored = (await made.run(PROMPT)).all_messages_json()
    pydantic_ai_waits._waiting.clear()
    results = DeferredToolResults(approvals={"call-1": True})
    await made.run(message_history=ModelMessagesTypeAdapter.validate_json(stored), deferred_tool_results=results)


async def _elsewhere_in_blocks() -> None:
    """The program has ids of its own, and says there which run it was: the framework's id names no receipt."""
    made = waiting(calls("pay"), text())
    with stopcause.run("order-desk", run_id="order-7"):
        stored = (await made.run(PROMPT)).all_messages_json()
    pydantic_ai_waits._waiting.clear()
    results = DeferredToolResults(approvals={"call-1": True})
    history = ModelMessagesTypeAdapter.validate_json(stored)
    with stopcause.run("order-desk", resumes="order-7"):
        await made.run(message_history=history, deferred_tool_results=results)


async def _half_answered() -> None:
    made = waiting(calls("pay:call-1", "pay:call-2"))
    first = await made.run(PROMPT)
    results = DeferredToolResults(approvals={"call-1": True})
    await made.run(message_history=first.all_messages(), deferred_tool_results=results)


async def _then_fails() -> None:
    made = waiting(calls("refund"))

    @made.tool_plain(requires_approval=True)
    async def refund() -> str:
        raise Scripted("canary-7f3a of a tool")

    first = await made.run(PROMPT)
    results = DeferredToolResults(approvals={"call-1": True})
    await made.run(message_history=first.all_messages(), deferred_tool_results=results)


def _deferring(error: BaseException, *more: Any) -> Any:
    made = waiting(calls("elsewhere"), *more)

    @made.tool_plain
    async def elsewhere() -> str:
        raise error

    return made


async def _external_answered() -> None:
    made = _deferring(CallDeferred(), text())
    first = await made.run(PROMPT)
    results = DeferredToolResults(calls={"call-1": "canary-7f3a of another system"})
    await made.run(message_history=first.all_messages(), deferred_tool_results=results)


async def _external() -> None:
    await _deferring(CallDeferred(metadata={"note": "canary-7f3a"})).run(PROMPT)


async def _question() -> None:
    asking: Any = CallDeferred
    await _deferring(asking(kind="question")).run(PROMPT)


async def _with_metadata() -> None:
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    metadata = {"team": "team-payments", "until": until, "note": "canary-7f3a"}
    made = _deferring(ApprovalRequired(metadata=metadata))
    await made.run(PROMPT, conversation_id="order-7")


async def _in_conversation() -> None:
    made = waiting(text(), calls("pay"))
    first: Any = await made.run(PROMPT)
    await made.run(PROMPT, conversation=first.conversation)


async def _batched() -> None:
    """The provider works on the answer in a batch; the run ends meanwhile, and another collects it."""
    options: dict[str, Any] = {"output": [str, output.PendingModelResponse], "capabilities": [_batching()]}
    made = agent(text(), **options)
    first = await made.run(PROMPT)
    await made.run(message_history=first.all_messages())


def _batching() -> Any:
    return capabilities.BatchModelRequests(max_requests=1)


async def _answered_inside() -> None:
    async def answer(_: Any, requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})

    handler = capabilities.HandleDeferredToolCalls(answer)
    await agent(calls("pay"), text(), capabilities=[handler]).run(PROMPT)


async def _nested() -> None:
    parent, child = agent(calls("ask"), text(), name="parent-agent"), waiting(calls("pay"), name="child-agent")

    @parent.tool_plain
    async def ask() -> str:
        answer = (await child.run(PROMPT)).output
        return "it waits" if isinstance(answer, DeferredToolRequests) else str(answer)

    await parent.run(PROMPT)


def _twice(
    name: str, why: str, run: Any, first: tuple[str, str], second: tuple[str, str], **options: Any
) -> list[Path_]:
    """The two sides of a path: the run that waited, and the one that brings the answer."""
    return [
        Path_(f"{name}-asked", f"{why} The run that waited.", first, run, judged=0, **options),
        Path_(f"{name}-resumed", f"{why} The run that went on.", second, run, judged=1, **options),
    ]


PATHS = [
    Path_("approval", "A gated call, and nobody was named who answers.", _UNROUTED,
          lambda: waiting(calls("pay")).run(PROMPT)),
    Path_("approval-owner-only", "Somebody answers, but nothing says what would be resumed.",
          ("WAITING_UNROUTED", "resume_token"), lambda: waiting(calls("pay")).run(PROMPT), options=_ROUTE),
    Path_("approval-routed", "Somebody answers, and the host named the conversation that it keeps.",
          ("WAITING", "tool_call"), lambda: waiting(calls("pay")).run(PROMPT, conversation_id="order-7"),
          options=_ROUTE),
    Path_("approval-by-metadata", "Owner and deadline come out of the deferral's metadata, as the host allowed.",
          ("WAITING", "tool_call"), _with_metadata,
          options={"approval_keys": {"owner": "team", "deadline": "until"}}),
    Path_("approval-in-conversation", "The host carries the conversation as one object, which has a name.",
          ("WAITING", "tool_call"), _in_conversation, options=_ROUTE, judged=1),
    Path_("two-approvals", "Two gated calls in one answer.", _UNROUTED,
          lambda: waiting(calls("pay:call-1", "pay:call-2")).run(PROMPT)),
    *_twice("approved", "The answer was yes.", lambda: _resumed(True), _ANSWERED, _DONE),
    *_twice("edited", "The answer was yes, with other arguments.",
            lambda: _resumed(ToolApproved(override_args={})), _ANSWERED, _DONE),
    *_twice("denied", "The answer was no, and the model was told so.",
            lambda: _resumed(ToolDenied("canary-7f3a")), _ANSWERED, ("FALSE_COMPLETE", "denied")),
    *_twice("approved-elsewhere", "Another process brings the answer, with the stored history.", _elsewhere,
            _ANSWERED, _DONE),
    *_twice("approved-elsewhere-in-block", "The same where the program has ids of its own, and says which run it was.",
            _elsewhere_in_blocks, _ANSWERED, _DONE),
    *_twice("approved-then-fails", "The gated call ran and failed.", expecting(Scripted, _then_fails),
            _ANSWERED, ("FAILED", "tool_failure")),
    *_twice("half-answered", "One of two answers came, which the framework refuses: both stay open.",
            expecting(exceptions.UserError, _half_answered), _UNROUTED, ("FAILED", "host_error")),
    Path_("external", "A call that another system has to answer.", _UNROUTED, _external),
    *_twice("external-answered", "Another system answered.", _external_answered, _ANSWERED, _DONE),
    Path_("approval-answered-inside", "The application answers while the run goes on: it never waits.", _DONE,
          _answered_inside),
    *_twice("batched", "The provider works on the answer for hours.", _batched, _ANSWERED, _DONE),
    Path_("question", "A tool asks a question.", _UNROUTED, _question),
    Path_("nested-waits", "An agent in a tool waits; the parent goes on as if it had not.",
          ("WAITING_UNROUTED", "owner"), _nested),
]  # fmt: skip
