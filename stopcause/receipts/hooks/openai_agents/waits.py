"""Approvals of the OpenAI Agents SDK: which run waits for which call, and which one answers it.

A paused run is a `RunState` in the program's hands. It has no name, so nothing here is a resume token: that only the
host can give (`configure(approval_keys=...)` over `RunConfig.trace_metadata`). Runs are linked inside one process by
call ids, which the model's provider makes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.vocabulary import Decision

if TYPE_CHECKING:
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

_MOST_WAITS = 20_000


class Waiter(NamedTuple):
    """A run that stopped to wait. `agent` tells a run from the nested one whose call it passes on."""

    agent: str | None
    run_id: str
    parent_run_id: str | None
    thread_id: str | None


class Waits:
    """Who waits for which call id, the newest 20,000."""

    def __init__(self) -> None:
        self._waiters: OrderedDict[str, tuple[Waiter, ...]] = OrderedDict()

    def of(self, call_id: str, agent: str | None) -> Waiter | None:
        """The run of this agent that waits for a call."""
        return next((each for each in self._waiters.get(call_id, ()) if each.agent == agent), None)

    def asker(self, call_id: str, run: Run) -> str | None:
        """The run inside this one that asked; after a resume it may stand inside the one that is resumed."""
        outer = {run.run_id, run.resumes_run_id or run.run_id}
        return next((each.run_id for each in self._waiters.get(call_id, ()) if each.parent_run_id in outer), None)

    def add(self, call_id: str, waiter: Waiter) -> None:
        """A run waits for a call. One that waits again after a resume takes the place of the one before it."""
        others = tuple(each for each in self._waiters.get(call_id, ()) if each.agent != waiter.agent)
        self._waiters[call_id] = (*others, waiter)
        while len(self._waiters) > _MOST_WAITS:
            self._waiters.popitem(last=False)


def note_waits(hook: Hook, waits: Waits, run: Run, agent: str | None, result: object, metadata: object) -> bool:
    """Whether the run stopped to wait: `RunResultBase.interruptions`, one `ToolApprovalItem` a call."""
    items = hook.read(run, result, "interruptions", list) or ()
    for item in items:
        call_id = call_id_of(item)
        run.waiting(
            call_id,
            tool=_tool_of(item),
            tool_call_id=call_id,
            raised_by=None if call_id is None else waits.asker(call_id, run),
            resumable=True,  # the result is back with the caller, and `to_state()` of it is all that a resume needs
            metadata=metadata,
        )
        if call_id is not None:
            waits.add(call_id, Waiter(agent, run.run_id, run.parent_run_id, run.thread_id))
    return bool(items)


def note_resume(waits: Waits, run: Run, agent: str | None, state: Any) -> frozenset[str]:  # noqa: ANN401 - a RunState
    """Says which run this one resumes, and what was decided.

    What is still open is no answer, and a run that brings none resumes nothing: it stops at once to wait again.

    Returns:
        The call ids that were approved: when one of them runs, that is an execution to tell of.
    """
    decided: dict[str, str | None] = {}
    resumed: Waiter | None = None
    for item in state.get_interruptions():
        call_id = call_id_of(item)
        if call_id is None:
            continue
        resumed = resumed or waits.of(call_id, agent)
        approved = _decision(state, item, call_id)
        if approved is not None:
            decided[call_id] = Decision.APPROVED if approved else Decision.DENIED
    if resumed is not None:
        run.thread_id = run.thread_id or resumed.thread_id
    if decided:
        known = None if resumed is None else resumed.run_id
        run.resumed(run.resumes_run_id or known, decided)  # the host's own word counts before ours
    return frozenset(call_id for call_id, decision in decided.items() if decision == Decision.APPROVED)


def _decision(state: Any, item: Any, call_id: str) -> bool | None:  # noqa: ANN401 - a RunState and one of its items
    """What the state says of a call. A nested run's call is decided in the nested state (`RunState.approve`)."""
    find_nested = getattr(state, "_find_nested_approval_state", None)
    nested = find_nested(item) if callable(find_nested) else None
    if nested is not None:
        state, item = nested
    answer = state._context.get_approval_status(  # noqa: SLF001 - a state has no other way to its approvals
        item.name or "", call_id, tool_namespace=getattr(item, "tool_namespace", None), existing_pending=item
    )
    return answer if isinstance(answer, bool) else None


def call_id_of(item: object) -> str | None:
    """The id that an answer names: the call's, or that of a hosted MCP server's request."""
    raw = getattr(item, "raw_item", None)
    found = (_of(raw, name) for name in ("call_id", "id"))
    return next((value for value in found if isinstance(value, str) and value), None)


def _tool_of(item: object) -> str | None:
    """The gated tool. The SDK asks only for calls that it has matched to a tool of the agent's.

    A hosted MCP server's request is the exception: its name comes with the model's answer and is matched to nothing.
    """
    if _of(getattr(item, "raw_item", None), "type") == "mcp_approval_request":
        return None
    name = getattr(item, "tool_name", None)
    return name if isinstance(name, str) else None


def _of(raw: object, name: str) -> object:
    """A field of a Responses item, which is a model or a dict."""
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
