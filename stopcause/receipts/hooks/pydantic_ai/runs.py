"""One run of a Pydantic AI agent as the hook sees it: what is known when it starts, its tools, and how it ended.

Everything here is called inside a guard. Nothing of the agent's is held after the end; of a tool's exception only its
identity is kept while it travels.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, is_cancelled
from stopcause.receipts.hooks.pydantic_ai import causes, messages, waits
from stopcause.receipts.run import current
from stopcause.receipts.vocabulary import (
    Boundary,
    LimitKind,
    OutputShape,
    Sign,
    StopCause,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Token

    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

_DEFERRED = ("CallDeferred", "ApprovalRequired")  # raised by a tool that is to wait: no error
_AGAIN = ("ToolRetryError", "ToolFailedError")  # told to the model, which goes on
_COUNTS = ("requests", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "cost")


class Call(NamedTuple):
    """A tool call that is being executed. `is_valid`: the tool exists and its arguments fit it."""

    id: str
    tool: str | None
    is_valid: bool


class Watch:
    """A run while it goes on."""

    def __init__(self, hook: Hook, run: Run, options: Mapping[str, Any]) -> None:
        self.run = run
        self._hook = hook
        self._options = options
        self._agent_run: Any = None
        self._base: dict[str, float] = {}
        self._token: Token[Run | None] | None = None
        self._conversation: str | None = None
        self._approved: frozenset[str] = frozenset()
        self._calls: set[str] = set()
        self._faults: dict[object, str] = {}

    # It starts --------------------------------------------------------------------------------------------------------

    def described(self, agent_run: Any) -> str | None:  # noqa: ANN401 - `AgentRun`
        """The framework has set it up: what is known now is in the start record.

        Returns:
            The framework's own id of the run, by which its tools find it.
        """
        run, hook = self.run, self._hook
        self._agent_run = agent_run
        ctx = agent_run.ctx  # made anew each time it is asked for
        self._base = _numbers(hook.read(run, ctx, "state.usage", object))
        framework_id = hook.read(run, ctx, "state.run_id", str)
        if self._options.get("run_id") is None:
            run.identify(framework_id)
        self._conversation = hook.read(run, ctx, "state.conversation_id", str)
        run.thread_id = run.thread_id or self._conversation
        run.step_unit = causes.REQUESTS.unit
        run.model = run.model or hook.read(run, ctx, "deps.model.model_name", str)
        run.provider = run.provider or hook.read(run, ctx, "deps.model.system", str)
        run.labels = run.labels or hook.read(run, ctx, "state.metadata", dict)
        self._note_limits(hook.read(run, ctx, "deps.usage_limits", object))
        history = hook.read(run, ctx, "state.message_history", list) or []
        self._approved = waits.resume(run, self._options.get("deferred_tool_results"), self._conversation, history)
        return framework_id

    def enter(self) -> None:
        """It goes on; runs that begin inside it are its children."""
        self.run.start()
        self._token = current.set(self.run)

    def leave(self) -> None:
        """Gives the context back. A generator that is finalised elsewhere cannot; its context is gone with it."""
        token, self._token = self._token, None
        if token is not None:
            with contextlib.suppress(ValueError):
                current.reset(token)

    def _note_limits(self, limits: object) -> None:
        for name in causes.odd_limits(limits):
            self.run.find("shape_changed", f"{self._hook.adapter}:usage_limits.{name}")
        for counter, limit in causes.limits_of(limits, self._base):
            self.run.limit(counter.limit, counter.kind, limit, unit=counter.unit)
        timeout = self._options.get("timeout")
        if isinstance(timeout, int | float):
            self.run.limit("timeout", LimitKind.TIME, timeout, unit="s")

    # Its tools --------------------------------------------------------------------------------------------------------

    def tool_began(self, validated: Any) -> Call:  # noqa: ANN401 - `ValidatedToolCall`
        """A call goes to its tool; one that was refused before goes there too, and comes back at once."""
        known = validated.tool is not None
        call = Call(validated.call.tool_call_id, validated.call.tool_name if known else None, validated.args_valid)
        self._calls.add(call.id)
        if call.is_valid:
            self.run.tool_calls = (self.run.tool_calls or 0) + 1
            self.run.in_flight_tools += 1
        return call

    def tool_returned(self, call: Call) -> None:
        """It came back."""
        self.run.in_flight_tools -= 1
        self.run.progress(Sign.TOOL_RESULT)
        self._ran(call)

    def tool_raised(self, call: Call, error: BaseException) -> None:
        """It raised. One that was cancelled stays in flight: it never came back."""
        if is_cancelled(error):
            return
        name = type(error).__name__
        if call.is_valid:
            self.run.in_flight_tools -= 1
        if name in _DEFERRED:
            self.run.tool_calls = (self.run.tool_calls or 0) - call.is_valid
            return
        if call.is_valid:
            self._ran(call)
        if name not in _AGAIN:
            self._faults[_mark_of(error)] = call.tool or ""
        elif call.is_valid:
            self.run.tool_errors_recovered += 1
        else:
            self.run.model_errors_recovered += 1

    def _ran(self, call: Call) -> None:
        if call.id in self._approved:
            self.run.executed(call.id)

    # It ends ----------------------------------------------------------------------------------------------------------

    def ended(self, error: BaseException | None) -> None:
        """It is over: an exception, a result, or neither, where whoever drove it went away."""
        run, agent_run, self._agent_run = self.run, self._agent_run, None
        if agent_run is None:
            self._failed(error, messages.NOTHING, None)
            return
        ctx = agent_run.ctx
        seen = self._read(ctx)
        usage = self._count(ctx)
        result = self._hook.read(run, agent_run, "result", object)
        if error is not None:
            limits = self._hook.read(run, ctx, "deps.usage_limits", object)
            run.pending_tool_calls = len(seen.unanswered)
            self._failed(error, seen, causes.bound_of(limits, self._base, usage, seen))
        elif result is None:
            run.pending_tool_calls = len(seen.unanswered)
            run.end(GeneratorExit(), boundary=Boundary.EVENT_STREAM)
        else:
            self._returned(result)

    def has_result(self) -> bool:
        """Whether the loop came to its end: what the caller's block raises after that, or cancels, ended no run."""
        return self._agent_run is not None and self._agent_run.result is not None

    def abandoned(self) -> None:
        """Nobody closed it, and the last reference is gone."""
        if self.run.is_started and not self.run.is_closed:
            self.run.closed_by = "garbage_collection"
            self.ended(None)

    def _returned(self, result: Any) -> None:  # noqa: ANN401 - `AgentRunResult`
        run, output = self.run, result.output
        token = self._conversation if waits.given_name(self._options) else None
        kind = type(output).__name__ if type(output).__module__.startswith("pydantic_ai") else ""
        if kind == "DeferredToolRequests":
            waits.wait_for(run, output, self._conversation, token)
        elif kind == "PendingModelResponse":
            waits.wait_for_response(run, self._conversation, token)
        else:
            run.output_shape = _shape(output)
            if self._hook.read(run, result, "_output_tool_name", str) is not None:
                run.say(StopCause.EXPLICIT_DONE, Rank.SIGNAL, Boundary.CALL)
        run.end(boundary=Boundary.CALL, result=output)

    def _failed(self, error: BaseException | None, seen: messages.Seen, bound: causes.Bound | None) -> None:
        run = self.run
        tool = None if error is None else self._tool_of(error)
        word = causes.Word() if error is None else causes.word_of(error, seen, tool, bound)
        if word.bound is not None:
            self._note_bound(word.bound)
        run.tool_errors_terminal += word.cause is StopCause.TOOL_FAILURE
        run.model_errors_terminal += word.cause in _OF_THE_MODEL
        run.end(error, boundary=Boundary.EXCEPTION, cause=word.cause, reason=word.reason, tool=word.tool)

    def _note_bound(self, bound: causes.Bound) -> None:
        """The limit that fired. One on tool calls makes them the steps: only so do count and limit belong together."""
        counter = bound.counter
        self.run.condition(counter.limit, counter.kind, fired=True, limit=bound.limit, observed=bound.observed)
        if counter is causes.TOOL_CALLS:
            self.run.step_unit, self.run.steps = counter.unit, self.run.tool_calls or 0

    def _tool_of(self, error: BaseException) -> str | None:
        """The tool that an exception came out of; an empty name where the model made the tool up."""
        marks = map(_mark_of, chain_of(error))
        return next((self._faults[mark] for mark in marks if mark in self._faults), None) or None

    def _read(self, ctx: Any) -> messages.Seen:  # noqa: ANN401 - `GraphRunContext`
        run = self.run
        new = ctx.state.message_history[ctx.deps.new_message_index :]
        seen = messages.read(new, causes.BY_FINISH, self._calls)
        run.finish, run.finish_raw = seen.finish, seen.finish_raw
        run.model_calls = seen.responses
        run.model = seen.model or run.model
        run.model_errors_recovered += seen.retries
        return seen

    def _count(self, ctx: Any) -> dict[str, float]:  # noqa: ANN401
        """What this run used: a `usage` that runs share goes on counting, so what was there at the start comes off."""
        run = self.run
        now = _numbers(self._hook.read(run, ctx, "state.usage", object))
        used = {name: number - self._base.get(name, 0) for name, number in now.items()}
        run.steps = int(used.get("requests", 0))
        run.add_usage(int(used.get("input_tokens", 0)), int(used.get("output_tokens", 0)))
        if "cost" in used:
            run.cost_usd = (run.cost_usd or 0.0) + used["cost"]
        return used


_OF_THE_MODEL = (StopCause.MODEL_FAILURE, StopCause.QUOTA, StopCause.MALFORMED_CALL, StopCause.CONTENT_FILTER)


def _mark_of(error: BaseException) -> object:
    """What tells an exception from another without holding it: an address is soon used again, and a place is not."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return id(error), type(error), at and (at.tb_frame.f_code, at.tb_lasti)


def _numbers(usage: object) -> dict[str, float]:
    """The counters of a `RunUsage`; `cost` is a decimal, and None where no price is known."""
    found = {name: getattr(usage, name, None) for name in _COUNTS}
    return {name: causes.number(value) for name, value in found.items() if value is not None}


def _shape(output: object) -> OutputShape:
    """By its type, and whether there is anything; what it says is not looked at."""
    if isinstance(output, str):
        return OutputShape.TEXT if output else OutputShape.NONE
    return OutputShape.NONE if output is None else OutputShape.STRUCTURED
