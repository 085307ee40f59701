"""Strands: one invocation of a graph or a swarm. Its agents' runs are its children.

The result says only `failed`; which bound it was is worked out again from the same numbers, in the same order, as in
`GraphState.should_continue` and `SwarmState.should_continue`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import provider_cause
from stopcause.receipts.hooks.strands import causes
from stopcause.receipts.hooks.strands.call import Asked, Call
from stopcause.receipts.vocabulary import Boundary, Scope, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting

# Attribute of a graph or a swarm -> kind, unit, cause. In the order in which they are checked.
_BOUNDS = {
    "max_node_executions": ("steps", "node", StopCause.STEP_LIMIT),
    "max_handoffs": ("steps", "node", StopCause.STEP_LIMIT),
    "max_iterations": ("steps", "node", StopCause.STEP_LIMIT),
    "execution_timeout": ("time", "second", StopCause.TIME_LIMIT),
}


def begin(
    hook: Hook, owner: Foreign, waiting: Waiting[Asked], args: tuple[Any, ...], given: Mapping[str, Any]
) -> GraphCall | None:
    """An invocation of `stream_async`, with the arguments that it was called with."""
    run = hook.begin()
    if run is None:
        return None
    call = GraphCall(hook, run, owner, waiting)
    with hook.guard("describe"):
        call.describe(args[0] if args else given.get("task"))
    return call.begin()


class GraphCall(Call):
    """One invocation of a graph or a swarm."""

    keeps_children = True

    def describe(self, task: object) -> None:
        """What is known before it begins."""
        run = self.run
        run.agent = run.agent or self.hook.read(run, self.owner, "id", str)
        run.step_unit, run.steps = "node", run.steps or 0
        run.labels = run.labels or getattr(self.owner, "trace_attributes", None)
        self.lives(getattr(self.owner, "session_manager", None))
        for name, (kind, unit, _) in _BOUNDS.items():
            value = getattr(self.owner, name, None)
            if isinstance(value, int | float):
                run.limit(name, kind, value, unit=unit, scope=Scope.THREAD)  # an interrupt does not begin it anew
        self.resume(task)

    def item(self, item: Foreign) -> None:
        """A node that is done, and the result."""
        if not isinstance(item, dict):
            return
        if item.get("type") == "multiagent_node_stop":
            if _status(item.get("node_result")) == "completed":
                self.run.steps = (self.run.steps or 0) + 1
                self.run.progress("state_change")
        elif item.get("type") == "multiagent_result" or _status(item.get("result")) is not None:
            self.returned(item["result"])

    def _before_node(self, event: Foreign, interrupts: Sequence[Any]) -> None:
        if getattr(event, "cancel_node", False):
            self.reason = causes.NODE_DENIED
        for interrupt in interrupts:
            self.asked[str(interrupt.id)] = Asked()

    def _before_all(self, _event: Foreign, _: Sequence[Any]) -> None:
        self.taken()

    events: Mapping[str, Callable[[Any, Any, Sequence[Any]], None]] = {
        "BeforeMultiAgentInvocationEvent": _before_all,
        "BeforeNodeCallEvent": _before_node,
    }

    # The end ----------------------------------------------------------------------------------------------------------

    def read_result(self, result: Foreign) -> None:
        """By its status."""
        status = _status(result)
        if status == "interrupted":
            self.wait(result.interrupts)
        elif status == "failed":
            self._failed(result)

    def _failed(self, result: Foreign) -> None:
        failed = [node for node in result.results.values() if _status(node) == "failed"]
        if self.reason:
            self._say(StopCause.GUARDRAIL, self.reason)
        elif failed and isinstance(failed[-1].result, BaseException):
            self._say(self._cause_of_node(failed[-1]), None, failed[-1].result)
        elif failed:  # a node that was cancelled comes back as failed, without an error
            self.run.say(StopCause.CALLER_ABORT, Rank.SIGNAL, Boundary.CALLBACK, reason="cancelled", aborted=True)
        else:
            self._bound(result)

    def _say(self, cause: StopCause, reason: str | None, error: BaseException | None = None) -> None:
        self.run.say(cause, Rank.SIGNAL, Boundary.CALLBACK, reason=reason, error=error)

    def _cause_of_node(self, node: Foreign) -> StopCause:
        error: BaseException = node.result
        return self.cause(error) or provider_cause(error) or StopCause.HOST_ERROR

    def cause(self, error: BaseException) -> StopCause | None:
        """As its child said; a node that ran out of time raises an error of no class of its own."""
        if self.reason == causes.NODE_DENIED and isinstance(error, Exception):
            return StopCause.GUARDRAIL
        return super().cause(error) or (StopCause.TIME_LIMIT if self._is_time_out(error) else None)

    def _is_time_out(self, error: BaseException) -> bool:
        limit = getattr(self.owner, "node_timeout", None)
        nodes = getattr(self.owner.state, "results", {}).values()
        return limit is not None and any(each.result is error and each.execution_time >= limit * 1000 for each in nodes)

    def _bound(self, result: Foreign) -> None:
        state = self.owner.state
        # As the framework counts: what was done before an interrupt stays in it.
        done = len(getattr(state, "execution_order", None) or getattr(state, "node_history", None) or ())
        seconds = max(result.execution_time / 1000, (time.monotonic_ns() - self.run.started_mono) / 1e9)
        for name, (kind, _, cause) in _BOUNDS.items():
            limit = getattr(self.owner, name, None)
            if limit is not None and (done if kind == "steps" else seconds) >= limit:
                self.run.bounded(cause, name, kind, limit=limit, observed=done if kind == "steps" else None)
                return
        if self.is_child_cut_off:  # a swarm cancels a node whose time is over, and does not say so
            self._say(StopCause.TIME_LIMIT, "node_timeout")
        elif getattr(self.owner, "repetitive_handoff_detection_window", 0):
            self._say(StopCause.LOOP_GUARD, "repetitive_handoff")
        else:
            self._say(StopCause.UNKNOWN, "failed")


def _status(owner: Foreign) -> str | None:
    """The word of a `Status`."""
    value = getattr(getattr(owner, "status", None), "value", None)
    return value if isinstance(value, str) else None
