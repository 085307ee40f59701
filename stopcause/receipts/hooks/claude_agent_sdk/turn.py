"""Claude Agent SDK: one turn, from a prompt to its result, and the sub-agents in it. What their messages say.

Blocks are told by their class, and of a text or an input nothing is read. Names of tools and sub-agents are those that
the command line lists when a turn begins: a name that a model made up is nowhere taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stopcause.receipts.causes import Rank
from stopcause.receipts.hooks.call import Call
from stopcause.receipts.hooks.claude_agent_sdk import causes
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import (
    ABORTED,
    ApprovalKind,
    Boundary,
    Finish,
    FinishSource,
    OutputShape,
    StopCause,
)

if TYPE_CHECKING:
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.claude_agent_sdk.link import Link
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

_SYNTHETIC = "<synthetic>"  # the model of a message that the command line wrote itself
_USED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_QUESTION = "AskUserQuestion"  # a tool of the command line's: the permission that it asks for is the answer


class Asked(NamedTuple):
    """A call that was deferred, and the run that waits for it."""

    run_id: str
    tool_call_id: str


class Loop(Call):
    """A loop of a model and tools: a turn's, or a sub-agent's. A step is what `max_turns` counts.

    That is the first answer, and each one after tools have answered; when the command line only asks the model to go
    on, that is none.
    """

    def __init__(self, hook: Hook, run: Run, link: Link) -> None:
        super().__init__(hook, run)
        self.link = link
        self.has_begun = False  # whether anything was heard of it
        self.api_error: str | None = None
        self._answer: str | None = None
        self._is_due = True
        self._open: set[str] = set()
        self._invented: set[str] = set()
        self._failed: set[str] = set()
        run.step_unit, run.steps = "turn", run.steps or 0
        run.model_calls, run.tool_calls = run.model_calls or 0, run.tool_calls or 0

    def answered(self, message: Foreign) -> None:
        """An `AssistantMessage`: one block or several of one answer of the model."""
        if message.model == _SYNTHETIC:
            self.api_error = message.error
            return
        run = self.run
        if self.api_error is not None:
            self.api_error = None
            run.model_errors_recovered += 1
        if message.message_id is None or message.message_id != self._answer:
            self._answer = message.message_id
            run.model_calls = (run.model_calls or 0) + 1
            run.steps = (run.steps or 0) + self._is_due
            self._is_due = False
        for block in message.content:
            if type(block).__name__ == "ToolUseBlock":
                (self._open if self.link.has_tool(block.name) else self._invented).add(block.id)
        run.in_flight_tools = len(self._open)

    def told(self, message: Foreign) -> None:
        """A `UserMessage`: results of tools, or words that the command line put in."""
        if isinstance(message.content, str):
            return
        for block in message.content:
            if type(block).__name__ == "ToolResultBlock":
                self._result(block.tool_use_id, is_error=bool(block.is_error))
        self.run.in_flight_tools = len(self._open)

    def _result(self, call_id: str, *, is_error: bool) -> None:
        """A refused call has a result too: the refusal, as an error. It was not made."""
        run = self.run
        self._open.discard(call_id)
        self._is_due = True
        if call_id in self.link.refused:
            return
        if call_id in self._invented:
            self._invented.discard(call_id)
            run.tool_errors_recovered += is_error
            return
        run.tool_calls = (run.tool_calls or 0) + 1
        if is_error:
            self._failed.add(call_id)
            run.tool_errors_recovered += 1  # the model is told; an error of a tool never ends a turn
        else:
            run.progress("tool_result")
            self.executed(call_id)

    def executed(self, call_id: str) -> None:
        """A call has run: one that a permission was asked for, perhaps."""
        if call_id in self.link.allowed:
            self.link.allowed.discard(call_id)
            self.link.executed(call_id)

    def forget(self, call_id: str) -> None:
        """A call that is known only now to have been refused."""
        if call_id in self._failed:
            self._failed.discard(call_id)
            self.run.tool_errors_recovered -= 1
            self.run.tool_calls = (self.run.tool_calls or 0) - 1

    def ended(self) -> None:
        """The messages are over and there was no result: nobody knows how it ended."""
        if self.is_first_end():
            self.run.say(StopCause.STREAM_TRUNCATED, Rank.SIGNAL, Boundary.EVENT_STREAM, reason="no_result")
            self.run.end(boundary=Boundary.EVENT_STREAM)

    def say(self, cause: StopCause, reason: str | None) -> None:
        """The framework's own word on why it stops."""
        self.run.say(cause, Rank.SIGNAL, Boundary.CALLBACK, reason=reason, aborted=cause in ABORTED)


class Sub(Loop):
    """A sub-agent. Its receipt says how the command line says that it ended, and counts what it tells of it."""

    def __init__(self, hook: Hook, run: Run, link: Link, task_id: str) -> None:
        super().__init__(hook, run, link)
        self.task_id = task_id

    def over(self, status: str) -> None:
        """Its task is over."""
        cause = causes.BY_TASK_STATUS[status]
        if cause is not StopCause.NATURAL and not self.is_over:
            self.say(cause, f"task_{status}")
        self.came_back(None)


class Turn(Loop):
    """One turn."""

    is_prevented = False  # a hook of the operator's stopped the prompt: the model never saw it
    result: causes.Word | None = None  # what the result meant, once there is one
    resumes: Asked | None = None

    def describe(self) -> None:
        """What is known before it begins, of which the connection may know more when its first message comes."""
        run, link = self.run, self.link
        run.model = run.model or link.model
        run.thread_id = run.thread_id or link.thread
        for name, kind, unit in causes.BOUNDS.values():
            if (limit := link.limits.get(name)) is not None:
                run.limit(name, kind, limit, unit=unit)
        self.resumes = link.deferred()
        if self.resumes is not None:
            run.resumed(self.resumes.run_id, [self.resumes.tool_call_id])

    def executed(self, call_id: str) -> None:
        """A call has run; one that was deferred runs before anything else is said."""
        super().executed(call_id)
        if self.resumes is not None and call_id == self.resumes.tool_call_id:
            self.run.decided(call_id, "answered")
            self.run.executed(call_id)
            self.resumes = None

    # Permissions ------------------------------------------------------------------------------------------------------

    def asks(self, call_id: str, name: object, *, at_once: bool = True) -> None:
        """`can_use_tool` is called; the turn waits for that in this process, perhaps for a person."""
        kind = ApprovalKind.INPUT_REQUIRED if name == _QUESTION else ApprovalKind.TOOL_CALL
        self.run.waiting(
            call_id, kind, tool=self.link.tool(name), tool_call_id=call_id, boundary=Boundary.CALLBACK, at_once=at_once
        )  # fmt: skip

    def _refused(self, denials: list[Foreign]) -> None:
        """Calls that were not allowed, by whomever: a rule, a hook, or nobody who could be asked."""
        for denial in denials:
            if not isinstance(denial, dict):
                self.run.find("shape_changed", f"{self.hook.adapter}:permission_denials")
                continue
            call_id, name = denial.get("tool_use_id"), denial.get("tool_name")
            if isinstance(call_id, str) and call_id not in self.link.refused:
                self.forget(call_id)
                if self.resumes is None or call_id != self.resumes.tool_call_id:
                    self.asks(call_id, name, at_once=False)
                self.run.decided(call_id, "denied")

    # The end ----------------------------------------------------------------------------------------------------------

    def read_result(self, result: Foreign) -> None:
        """By its fields: what it used, what was refused, and why it is over."""
        self._count(result)
        self._refused(self.hook.read(self.run, result, "permission_denials", list) or [])
        stop_reason = self.hook.read(self.run, result, "stop_reason", str)
        is_error = bool(result.is_error)
        self.result = word = causes.of_result(
            is_error=is_error,
            subtype=self.hook.read(self.run, result, "subtype", str),
            terminal=self.hook.read(self.run, result, "terminal_reason", str),
            api=causes.of_api(self.api_error, stop_reason, result.api_error_status) if self._is_api(result) else None,
            is_aborted=self.run.abort_requested_ns is not None,
        )
        self._finish(stop_reason, is_error=is_error)
        if is_error:
            self.cut_off()
        if word.new is not None:
            self.run.find("vocabulary_new", word.new if is_identifier(word.new) else self.hook.adapter)
        self._say_why(word, result)

    def _is_api(self, result: Foreign) -> bool:
        return self.api_error is not None or result.subtype == "success" or result.api_error_status is not None

    def _count(self, result: Foreign) -> None:
        usage = result.usage if isinstance(result.usage, dict) else {}
        tokens = [usage[name] for name in _USED if type(usage.get(name)) is int]
        self.run.add_usage(sum(tokens) if tokens else None, usage.get("output_tokens"))
        self.run.cost_usd = self.link.cost_since(result.total_cost_usd)
        self.run.pending_tool_calls = len(self._open) + len(self._invented)
        if not result.is_error:  # the text of one that is an error is that of the error
            shape = OutputShape.TEXT if result.result else OutputShape.NONE
            self.run.output_shape = shape if result.structured_output is None else OutputShape.STRUCTURED

    def _finish(self, stop_reason: str | None, *, is_error: bool) -> None:
        """A message that stands for a failed call has a stop reason that no model gave."""
        if stop_reason is None or stop_reason == causes.DEFERRED or (is_error and stop_reason == "stop_sequence"):
            return
        self.run.finish, self.run.finish_raw = causes.FINISHES.get(stop_reason, Finish.OTHER), stop_reason
        self.run.finish_source = FinishSource.PROVIDER

    def _say_why(self, word: causes.Word, result: Foreign) -> None:
        bound = causes.BOUNDS.get(word.cause)
        if bound is not None:
            self._bounded(word.cause, *bound[:2], result)
        elif word.cause is StopCause.EXTERNAL_PENDING:
            self._deferred(result.deferred_tool_use)
        elif word.cause is StopCause.CALLER_ABORT and self.link.is_refusal_final:
            self.say(StopCause.APPROVAL_DENIED, word.reason)
        elif word.cause is not StopCause.NATURAL:
            self.say(word.cause, word.reason)
        else:
            self._finished(result)

    def _finished(self, result: Foreign) -> None:
        """It says that all is well."""
        if self.is_prevented:
            self.say(StopCause.GUARDRAIL, "prompt_stopped")
        elif self.run.finish is Finish.PAUSE:
            self.say(StopCause.SERVER_TOOL_LIMIT, "pause_turn")
        elif result.structured_output is not None and self.run.finish is Finish.TOOL_CALLS:
            self.say(StopCause.EXPLICIT_DONE, "structured_output")

    def _bounded(self, cause: StopCause, name: str, kind: str, result: Foreign) -> None:
        """The command line counts the budget over all turns of its session."""
        limit = next((each[2] for each in self.run.limits if each[0] == name), None)
        observed = self.run.steps if kind == "steps" else result.total_cost_usd
        self.run.bounded(cause, name, kind, limit=limit, observed=observed)

    def _deferred(self, call: Foreign) -> None:
        """A hook deferred a call: the session waits until somebody resumes it, and its id is what that needs."""
        call_id = self.hook.read(self.run, call, "id", str) or f"{self.run.run_id}/{causes.DEFERRED}"
        self._open.discard(call_id)
        self.run.pending_tool_calls = len(self._open)
        self.run.waiting(
            call_id, ApprovalKind.EXTERNAL, tool=self.link.tool(call.name), tool_call_id=call_id,
            resume_token=self.link.session if self.link.is_kept else None, resumable=self.link.is_kept,
            boundary=Boundary.CALLBACK,
        )  # fmt: skip
        self.link.wait(Asked(self.run.run_id, call_id))

    def cut_off(self) -> None:
        """It failed: a deferred call that has not run waits as before, and may be resumed again."""
        if self.resumes is not None:
            self.link.wait(self.resumes)

    def disconnected(self) -> None:
        """The program closed the connection in the middle of it."""
        if self.is_first_end():
            self.cut_off()
            self.run.say(StopCause.CALLER_ABORT, Rank.LEFT, Boundary.CALL, reason="disconnected", aborted=True)
            self.run.end()

    def cause(self, error: BaseException) -> StopCause | None:
        """By its class; an error that stands for a result carries the result's fields."""
        word = _of_result_error(error)
        if word is not None:
            self.reason = word.reason
            return word.cause
        code = getattr(error, "exit_code", None)
        self.reason = f"exit_{code}" if type(code) is int else None
        return causes.of_error(error, has_begun=self.has_begun)


def _of_result_error(error: BaseException) -> causes.Word | None:
    """A `ResultError` before its result was read: the command line failed while it was being connected."""
    if type(error).__name__ != "ResultError":
        return None
    subtype, status = getattr(error, "subtype", None), getattr(error, "api_error_status", None)
    api = causes.of_api(None, None, status) if subtype == "success" else None
    terminal = getattr(error, "terminal_reason", None)
    return causes.of_result(is_error=True, subtype=subtype, terminal=terminal, api=api)
