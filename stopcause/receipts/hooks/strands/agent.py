"""Strands: one invocation of an agent. What its hook events, the items of its stream and its result say.

Names of tools are those of tools that the agent has: a name that a model made up is nowhere taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, provider_cause
from stopcause.receipts.hooks.strands import causes
from stopcause.receipts.hooks.strands.call import Asked, Call
from stopcause.receipts.vocabulary import ApprovalKind, Boundary, Finish, FinishSource, OutputShape, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting

_LIMITS = {"turns": ("steps", "turn"), "total_tokens": ("tokens", "token"), "output_tokens": ("tokens", "token")}
_CHECKPOINT = "checkpoint"


def begin(
    hook: Hook, agent: Foreign, waiting: Waiting[Asked], args: tuple[Any, ...], given: Mapping[str, Any]
) -> AgentCall | None:
    """An invocation of `stream_async`, with the arguments that it was called with."""
    return _begun(AgentCall, hook, agent, waiting, args[0] if args else given.get("prompt"), given)


def begin_structured(hook: Hook, agent: Foreign, waiting: Waiting[Asked]) -> AgentCall | None:
    """An invocation of `structured_output_async`."""
    return _begun(AnswerCall, hook, agent, waiting, None, {})


def _begun(
    kind: type[AgentCall], hook: Hook, agent: Foreign, waiting: Waiting[Asked], prompt: object, given: Mapping[str, Any]
) -> AgentCall | None:
    run = hook.begin()
    if run is None:
        return None
    call = kind(hook, run, agent, waiting)
    if hook.is_tested:
        with hook.guard("describe"):
            call.describe(prompt, given)
    return call.begin()


class AgentCall(Call):
    """One invocation of an agent."""

    has_begun = False  # whether the framework took the input
    is_denied = False
    is_model_denied = False
    is_ended_by_hook = False
    model_fault: BaseException | None = None
    _failed_models = 0
    _cancel_signal: Any = None

    def describe(self, prompt: object, given: Mapping[str, Any]) -> None:
        """What is known before it begins."""
        run, read = self.run, self.hook.read
        run.agent = run.agent or read(run, self.owner, "name", str)
        run.step_unit = "turn"
        run.steps = run.steps or 0
        config = getattr(self.owner.model, "__dict__", {}).get(
            "config"
        )  # as all of Strands' models keep it; a host's own may not
        if isinstance(config, dict) and isinstance(config.get("model_id"), str):
            run.model = config["model_id"]
        run.provider = _provider(self.owner)
        run.labels = run.labels or read(run, self.owner, "trace_attributes", dict)
        self.lives(read(run, self.owner, "_session_manager", object))
        self._bound(given.get("limits"))
        self._cancel_signal = given.get("cancel_signal")
        self.resume(prompt)
        self._continue(prompt)

    def _bound(self, limits: object) -> None:
        for name, (kind, unit) in _LIMITS.items():
            value = limits.get(name) if isinstance(limits, dict) else None
            if type(value) is int:
                self.run.limit(name, kind, value, unit=unit)
            elif value is not None:
                self.run.find("refused_value", f"{self.hook.adapter}:limits.{name}")

    def _continue(self, prompt: object) -> None:
        """A checkpoint is resumed by one block as the input; the last run that paused here is the one."""
        asked = self._waiting.of(self.place, _CHECKPOINT)
        if asked is not None and isinstance(prompt, dict) and "checkpointResume" in prompt:
            self.answered[_CHECKPOINT] = asked
            self.run.resumed(asked.run_id, {f"{asked.run_id}/{_CHECKPOINT}": "answered"})

    # Items ------------------------------------------------------------------------------------------------------------

    def item(self, item: Foreign) -> None:
        """Turns, tokens, interrupts that a tool raised, and the result.

        Some items carry the host's own `invocation_state` beside them, so a key alone says nothing.
        """
        if not isinstance(item, dict):
            return
        if not self.hook.is_tested:
            if "result" in item:
                self.came_back(item["result"])
        elif len(item) == 1 and "start_event_loop" in item:
            self.run.steps = (self.run.steps or 0) + 1
        elif len(item) == 1 and "event" in item:
            self._chunk(item["event"])
        elif "tool_interrupt_event" in item:
            self._tool_asked(item["tool_interrupt_event"])
        elif "result" in item and type(item["result"]).__name__ == "AgentResult":
            self.returned(item["result"])

    def _chunk(self, chunk: object) -> None:
        told = chunk.get("metadata") if isinstance(chunk, dict) else None
        usage = told.get("usage") if isinstance(told, dict) else None
        if isinstance(usage, dict):
            self.run.add_usage(usage.get("inputTokens"), usage.get("outputTokens"))

    def _tool_asked(self, told: Foreign) -> None:
        """Interrupts of a call. Those of its hook are known already; the others its tool has raised, for an answer."""
        call_id = told["tool_use"].get("toolUseId")
        tool = self.owner.tool_registry.registry.get(told["tool_use"].get("name"))
        asked = Asked(ApprovalKind.INPUT_REQUIRED, None if tool is None else tool.tool_name, call_id)
        for interrupt in told["interrupts"]:
            self.asked.setdefault(str(interrupt.id), asked)

    # Events -----------------------------------------------------------------------------------------------------------

    def _before_invocation(self, event: Foreign, _: Sequence[Any]) -> None:
        self.has_begun = True
        self.is_denied = bool(getattr(event, "cancel", False))
        self.taken()

    def _before_model(self, event: Foreign, interrupts: Sequence[Any]) -> None:
        self.is_model_denied = bool(getattr(event, "cancel", False))
        self._confirm(event, interrupts)

    def _after_model(self, event: Foreign, _: Sequence[Any]) -> None:
        run = self.run
        self.model_fault = event.exception
        if event.exception is not None:
            self._failed_models += event.exception is not self.host_fault  # a hook's error passes here as well
            return
        if self.is_model_denied:
            return
        run.model_errors_recovered += self._failed_models
        self._failed_models = 0
        run.model_calls = (run.model_calls or 0) + 1
        reason = self.hook.read(run, event, "stop_response.stop_reason", str)
        if reason is not None:
            run.finish, run.finish_raw = causes.FINISHES.get(reason, Finish.OTHER), reason
            run.finish_source = FinishSource.CLIENT if reason == "cancelled" else FinishSource.PROVIDER

    def _confirm(self, _event: Foreign, interrupts: Sequence[Any]) -> None:
        for interrupt in interrupts:
            self.asked[str(interrupt.id)] = Asked()

    def _before_tool(self, event: Foreign, interrupts: Sequence[Any]) -> None:
        tool = None if event.selected_tool is None else event.selected_tool.tool_name
        for interrupt in interrupts:
            self.asked[str(interrupt.id)] = Asked(ApprovalKind.TOOL_CALL, tool, event.tool_use.get("toolUseId"))
        if not interrupts:
            self.decided(event.tool_use.get("toolUseId"), is_denied=bool(event.cancel_tool))
            self.run.in_flight_tools += not event.cancel_tool

    def _after_tool(self, event: Foreign, _: Sequence[Any]) -> None:
        run = self.run
        is_denied = getattr(event, "cancel_message", None) is not None
        if not is_denied:
            run.in_flight_tools = max(run.in_flight_tools - 1, 0)
            if event.selected_tool is not None:
                run.tool_calls = (run.tool_calls or 0) + 1
            self.executed(event.tool_use.get("toolUseId"))
        if event.result.get("status") == "success":
            run.progress("tool_result")
        elif not is_denied:
            run.tool_errors_recovered += 1  # the model is told; an error of a tool never ends a run

    def _after_tools(self, event: Foreign, _: Sequence[Any]) -> None:
        self.is_ended_by_hook = bool(event.end_turn)

    events: Mapping[str, Callable[[Any, Any, Sequence[Any]], None]] = {
        "BeforeInvocationEvent": _before_invocation,
        "BeforeModelCallEvent": _before_model,
        "AfterModelCallEvent": _after_model,
        "BeforeToolsEvent": _confirm,
        "BeforeToolCallEvent": _before_tool,
        "AfterToolCallEvent": _after_tool,
        "AfterToolsEvent": _after_tools,
    }

    # The end ----------------------------------------------------------------------------------------------------------

    def read_result(self, result: Foreign) -> None:
        """By its stop reason."""
        reason = self.hook.read(self.run, result, "stop_reason", str)
        is_structured = getattr(result, "structured_output", None) is not None
        self.run.output_shape = OutputShape.STRUCTURED if is_structured else _shape(result)
        if reason in ("end_turn", "stop_sequence", "tool_use"):
            self._finished(reason, is_structured=is_structured)
        elif reason == "interrupt":
            self.wait(result.interrupts or ())
        elif reason == "checkpoint":
            self._checkpoint()
        elif reason == "cancelled":
            self._cancelled()
        elif reason is not None and reason.startswith("limit_"):
            self._limit(reason, result)
        elif (cause := causes.BY_STOP_REASON.get(reason or "")) is not None:
            self._say(cause, None)

    def _say(self, cause: StopCause, reason: str | None, *, aborted: bool = False) -> None:
        self.run.say(cause, Rank.SIGNAL, Boundary.CALLBACK, reason=reason, aborted=aborted)

    def _finished(self, reason: str, *, is_structured: bool) -> None:
        """An ordinary end, unless a hook made it."""
        if self.is_denied:
            self._say(StopCause.GUARDRAIL, causes.INVOCATION_DENIED)
        elif self.is_model_denied:
            self._say(StopCause.GUARDRAIL, causes.MODEL_DENIED)
        elif self.is_ended_by_hook:
            self._say(StopCause.EXPLICIT_DONE, causes.ENDED_BY_HOOK)
        elif reason == "tool_use":
            self._say(causes.BY_STOP_REASON[reason], causes.STRUCTURED if is_structured else None)

    def _cancelled(self) -> None:
        """`agent.cancel()` sets the agent's signal, as a caller's signal does; a deferred cancel sets none.

        Source: `Agent.cancel`, and `multiagent/graph.py`, which tells them apart in the same way.
        """
        signal = getattr(self.owner, "cancel_signal", None)
        if signal is not None and not signal.is_set():
            self._say(StopCause.EXPLICIT_DONE, causes.ENDED_BY_TOOL)
            self.run.finish = self.run.finish if self.run.finish is not Finish.INTERRUPTED else None
        else:
            is_callers = self._cancel_signal is not None and self._cancel_signal.is_set()
            cause = causes.BY_STOP_REASON["cancelled"]
            self._say(cause, "cancel_signal" if is_callers else "cancelled", aborted=True)

    def _checkpoint(self) -> None:
        """A durable pause. Where the conversation is kept too, in a session, that names the paused state."""
        run_id = self.run.run_id
        self.run.waiting(
            f"{run_id}/{_CHECKPOINT}", ApprovalKind.EXTERNAL,
            resume_token=self.resume_token, resumable=True if self.session else None,
        )  # fmt: skip
        self._waiting.add(self.place, _CHECKPOINT, Asked(ApprovalKind.EXTERNAL, run_id=run_id))

    def _limit(self, reason: str, result: Foreign) -> None:
        """A bound of `limits`. What it was compared with is the framework's own count (`_check_limits`)."""
        name = reason.removeprefix("limit_")
        limit = next((each[2] for each in self.run.limits if each[0] == name), None)
        counted = getattr(result.metrics, "latest_agent_invocation", None)
        usage = getattr(counted, "usage", None) or {}
        observed = {
            "turns": len(getattr(counted, "cycles", ())),
            "total_tokens": usage.get("totalTokens"),
            "output_tokens": usage.get("outputTokens"),
        }.get(name)
        kind = _LIMITS.get(name, ("custom", None))[0]
        cause = causes.BY_STOP_REASON.get(reason, StopCause.STEP_LIMIT)
        self.run.bounded(cause, name, kind, limit=limit, observed=observed)

    def failed(self, error: BaseException) -> None:
        """As for every invocation; and whether a model's error ended it."""
        if not self.is_over and self._failed_models:
            self.run.model_errors_terminal = 1 if self.model_fault in chain_of(error) else 0
        super().failed(error)
        self.model_fault = None

    def cause(self, error: BaseException) -> StopCause | None:
        """By its class; else by where it came from: before the input was taken, or from the model."""
        known = super().cause(error)
        if known is not None or not isinstance(error, Exception) or not self.hook.is_tested:
            return known
        if not self.has_begun and isinstance(error, TypeError | ValueError | KeyError):
            return StopCause.INPUT_REJECTED  # an unanswered interrupt, a wrong limit, an input of a wrong shape
        if self.model_fault is not None and self.model_fault in chain_of(error):
            return provider_cause(error) or StopCause.MODEL_FAILURE
        return None


class AnswerCall(AgentCall):
    """One call of `structured_output`: the model is asked once, and there is no result of an agent."""

    def read_result(self, result: Foreign) -> None:  # noqa: ARG002 - the answer itself, which is content
        """It came."""
        self.run.steps = self.run.model_calls = 1
        self.run.output_shape = OutputShape.STRUCTURED


def _provider(agent: Foreign) -> str | None:
    """The module of the model's class, where it is one of Strands' own: `strands.models.bedrock` is bedrock."""
    package, _, name = type(agent.model).__module__.rpartition(".")
    return name if package == "strands.models" else None


def _shape(result: Foreign) -> OutputShape | None:
    """By the keys of the last message's blocks: what they hold is not read, but whether it is empty.

    Where a call is the last thing that the model said, what came out is the tool's, and is not known here.
    """
    blocks = result.message.get("content") or ()
    if any(block.get("text") or block.get("citationsContent") for block in blocks):
        return OutputShape.TEXT
    return None if any("toolUse" in block for block in blocks) else OutputShape.NONE
