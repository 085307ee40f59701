"""Claude Agent SDK: what the words of its results and the classes of its exceptions mean. Tables, and who asks them.

Sources: `types.py`, `_errors.py` and `_internal/query.py` of claude-agent-sdk 0.2.189, compared with 0.2.126; what the
command lines that those bring (2.1.332, 2.1.218) list as the words of a result, and what they were seen to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stopcause.receipts.faults import is_cancelled
from stopcause.receipts.vocabulary import Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

# `ResultMessage.terminal_reason`: why the loop of the command line ended. Says more than the subtype.
BY_TERMINAL_REASON: Mapping[str, StopCause] = {
    "completed": StopCause.NATURAL,
    "max_turns": StopCause.STEP_LIMIT,
    "budget_exhausted": StopCause.COST_BUDGET,
    "aborted_streaming": StopCause.CALLER_ABORT,
    "aborted_tools": StopCause.CALLER_ABORT,  # but where a permission was refused with `interrupt`: approval_denied
    "tool_deferred": StopCause.EXTERNAL_PENDING,
    "tool_deferred_unavailable": StopCause.TOOL_FAILURE,  # what was deferred is not there any more
    "background_requested": StopCause.UNKNOWN,  # it goes on where nobody sees it
    "stop_hook_prevented": StopCause.GUARDRAIL,  # a hook of the operator's said `continue: false`
    "hook_stopped": StopCause.GUARDRAIL,
    "prompt_too_long": StopCause.CONTEXT_LIMIT,  # these three are one to the command line too: "context_limit"
    "blocking_limit": StopCause.CONTEXT_LIMIT,
    "rapid_refill_breaker": StopCause.CONTEXT_LIMIT,
    "image_error": StopCause.INPUT_REJECTED,
    "api_error": StopCause.MODEL_FAILURE,  # but see BY_API_ERROR
    "model_error": StopCause.MODEL_FAILURE,
    "malformed_tool_use_exhausted": StopCause.MALFORMED_CALL,
    "structured_output_retry_exhausted": StopCause.MODEL_FAILURE,
    "turn_setup_failed": StopCause.HOST_ERROR,
}

# `ResultMessage.subtype`, where no terminal reason came: an older command line, or one that never got to its loop.
BY_SUBTYPE: Mapping[str, StopCause] = {
    "success": StopCause.NATURAL,  # but with `is_error`: the last call of the API failed
    "error_max_turns": StopCause.STEP_LIMIT,
    "error_max_budget_usd": StopCause.COST_BUDGET,
    "error_max_structured_output_retries": StopCause.MODEL_FAILURE,
    "error_during_execution": StopCause.HOST_ERROR,
}

# `AssistantMessage.error` of the message that stands for a failed call of the API.
BY_API_ERROR: Mapping[str, StopCause] = {
    "authentication_failed": StopCause.MODEL_FAILURE,
    "oauth_org_not_allowed": StopCause.MODEL_FAILURE,
    "account_on_hold": StopCause.MODEL_FAILURE,
    "verification_required": StopCause.MODEL_FAILURE,
    "cloud_credential_error": StopCause.MODEL_FAILURE,
    "billing_error": StopCause.QUOTA,
    "rate_limit": StopCause.QUOTA,
    "overloaded": StopCause.MODEL_FAILURE,
    "invalid_request": StopCause.MODEL_FAILURE,
    "model_not_found": StopCause.MODEL_FAILURE,
    "server_error": StopCause.MODEL_FAILURE,
    "max_output_tokens": StopCause.OUTPUT_CAP,
    "unknown": StopCause.MODEL_FAILURE,
}
_QUOTA_STATUSES = (402, 429)

# `ResultMessage.stop_reason`: the model's own word, as the Messages API has it.
FINISHES: Mapping[str, Finish] = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "tool_use": Finish.TOOL_CALLS,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
    "pause_turn": Finish.PAUSE,
}
DEFERRED = "tool_deferred"  # a word of the command line's own in the same place; no model said it

# The condition that a bound stands for, as `ClaudeAgentOptions` names it, its kind and its unit.
BOUNDS: Mapping[StopCause, tuple[str, str, str]] = {
    StopCause.STEP_LIMIT: ("max_turns", "steps", "turn"),
    StopCause.COST_BUDGET: ("max_budget_usd", "cost", "usd"),
}

# Classes of `_errors.py`. A connection that fails before the first message never had a process.
BY_ERROR: Mapping[str, StopCause] = {
    "CLINotFoundError": StopCause.HOST_ERROR,
    "CLIConnectionError": StopCause.PROCESS_LOST,
    "ProcessError": StopCause.PROCESS_LOST,
    "CLIJSONDecodeError": StopCause.STREAM_REJECTED,
    "MessageParseError": StopCause.STREAM_REJECTED,
}

# `status` of a task that is a sub-agent, of a `task_notification` or a `task_updated`; others go on.
BY_TASK_STATUS: Mapping[str, StopCause] = {
    "completed": StopCause.NATURAL,
    "failed": StopCause.HOST_ERROR,
    "stopped": StopCause.CALLER_ABORT,
    "killed": StopCause.CALLER_ABORT,
}


class Word(NamedTuple):
    """What a result means. `new`: a word that the tables do not have."""

    cause: StopCause
    reason: str | None = None
    new: str | None = None


def of_result(
    *, is_error: bool, subtype: str | None, terminal: str | None, api: Word | None, is_aborted: bool = False
) -> Word:
    """A result by its terminal reason, else its subtype; `is_error` counts before either says that all was well.

    Args:
        is_error: As the result has it. `success` with it is a call of the API that failed.
        subtype: As the result has it.
        terminal: Its terminal reason.
        api: What is known of a call of the API that failed, as `of_api` gives it.
        is_aborted: Whether somebody asked for an interrupt; without a terminal reason nothing else says so.
    """
    if is_error and api is not None and terminal in (None, "completed", "api_error", "model_error"):
        return api
    table, word = (BY_TERMINAL_REASON, terminal) if terminal is not None else (BY_SUBTYPE, subtype)
    if terminal is None and is_aborted and is_error:
        return Word(StopCause.CALLER_ABORT, "interrupted")
    cause = table.get(word or "")
    if cause is None:
        return Word(StopCause.UNKNOWN, "no_reason", word)
    return Word(cause) if cause is StopCause.NATURAL else Word(cause, word)


def of_api(error: str | None, stop_reason: str | None, status: int | None) -> Word:
    """A call of the API that failed: the model declined, or the provider did; by its own word, else by the status."""
    if stop_reason == "refusal":
        return Word(StopCause.REFUSAL, stop_reason)
    known = BY_API_ERROR.get(error or "")
    if known is not None:
        return Word(known, error)
    cause = StopCause.QUOTA if status in _QUOTA_STATUSES else StopCause.MODEL_FAILURE
    return Word(cause, None if status is None else f"status_{status}", error)


def of_error(error: BaseException, *, has_begun: bool) -> StopCause | None:
    """What the class of an exception says; None where it is none of the SDK's."""
    if is_cancelled(error):
        return None
    for kind in type(error).__mro__:
        if kind.__module__.partition(".")[0] == "claude_agent_sdk" and kind.__name__ in BY_ERROR:
            cause = BY_ERROR[kind.__name__]
            return StopCause.HOST_ERROR if cause is StopCause.PROCESS_LOST and not has_begun else cause
    return None
