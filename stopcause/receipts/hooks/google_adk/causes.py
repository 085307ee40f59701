"""Google ADK: what its finish reasons, error codes, exceptions and callbacks mean. Tables, and how they are looked up.

Sources: `google/genai/types.py` (`FinishReason`, `BlockedReason`), `models/llm_response.py`, `events/_abort_events.py`,
`flows/llm_flows/core/_model_call.py`, `agents/invocation_context.py` and `errors/` of google-adk 2.13 with google-genai
2.34, each compared with 2.0 and 1.75.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopcause.receipts.faults import chain_of, is_cancelled, provider_cause
from stopcause.receipts.vocabulary import Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

# `Event.finish_reason`: the model's own word. ADK's other providers translate theirs into these.
FINISHES: Mapping[str, Finish] = {
    "STOP": Finish.STOP,  # also where the answer is a call
    "MAX_TOKENS": Finish.LENGTH,
    "SAFETY": Finish.CONTENT_FILTER,
    "RECITATION": Finish.CONTENT_FILTER,
    "BLOCKLIST": Finish.CONTENT_FILTER,
    "PROHIBITED_CONTENT": Finish.CONTENT_FILTER,
    "SPII": Finish.CONTENT_FILTER,
    "IMAGE_SAFETY": Finish.CONTENT_FILTER,
    "IMAGE_PROHIBITED_CONTENT": Finish.CONTENT_FILTER,
    "IMAGE_RECITATION": Finish.CONTENT_FILTER,
    "LANGUAGE": Finish.ERROR,
    "MALFORMED_FUNCTION_CALL": Finish.ERROR,
    "UNEXPECTED_TOOL_CALL": Finish.ERROR,
    "TOO_MANY_TOOL_CALLS": Finish.ERROR,
    "NO_IMAGE": Finish.ERROR,
    "CONTINUATION": Finish.PAUSE,
    "OTHER": Finish.OTHER,
    "IMAGE_OTHER": Finish.OTHER,
    "FINISH_REASON_UNSPECIFIED": Finish.UNKNOWN,
}

# `Event.error_code`: an event without an answer, with which the run ends as if all were well. The finish reason, why
# the prompt was blocked, or a word of ADK's own.
BY_CODE: Mapping[str, StopCause] = {
    "MAX_TOKENS": StopCause.OUTPUT_CAP,
    "SAFETY": StopCause.CONTENT_FILTER,
    "RECITATION": StopCause.CONTENT_FILTER,
    "BLOCKLIST": StopCause.CONTENT_FILTER,
    "PROHIBITED_CONTENT": StopCause.CONTENT_FILTER,
    "SPII": StopCause.CONTENT_FILTER,
    "IMAGE_SAFETY": StopCause.CONTENT_FILTER,
    "IMAGE_PROHIBITED_CONTENT": StopCause.CONTENT_FILTER,
    "IMAGE_RECITATION": StopCause.CONTENT_FILTER,
    "JAILBREAK": StopCause.CONTENT_FILTER,
    "MODEL_ARMOR": StopCause.CONTENT_FILTER,
    "MALFORMED_FUNCTION_CALL": StopCause.MALFORMED_CALL,
    "UNEXPECTED_TOOL_CALL": StopCause.MALFORMED_CALL,
    "TOO_MANY_TOOL_CALLS": StopCause.MALFORMED_CALL,
    "JSON_PARSE_ERROR": StopCause.MALFORMED_CALL,
    "LANGUAGE": StopCause.MODEL_FAILURE,
    "OTHER": StopCause.MODEL_FAILURE,
    "NO_IMAGE": StopCause.MODEL_FAILURE,
    "IMAGE_OTHER": StopCause.MODEL_FAILURE,
    "CONTINUATION": StopCause.MODEL_FAILURE,
    "FINISH_REASON_UNSPECIFIED": StopCause.MODEL_FAILURE,
    "BLOCKED_REASON_UNSPECIFIED": StopCause.MODEL_FAILURE,
    "UNKNOWN_ERROR": StopCause.MODEL_FAILURE,
    "MODEL_RETURNED_NO_CONTENT": StopCause.MODEL_FAILURE,
    "CASCADE_TURN_FAILED": StopCause.MODEL_FAILURE,
    "INVOCATION_ABORTED": StopCause.CALLER_ABORT,  # the program's `abort_signal`
}

# Exceptions of ADK's own by their class, anywhere in the chain.
BY_ERROR: Mapping[str, StopCause] = {
    "LlmCallsLimitExceededError": StopCause.STEP_LIMIT,
    "NodeTimeoutError": StopCause.TIME_LIMIT,
    "SessionNotFoundError": StopCause.INPUT_REJECTED,
    "InvocationNotFoundError": StopCause.INPUT_REJECTED,
    "StaleSessionError": StopCause.HOST_ERROR,  # somebody else wrote to the session
    "ToolExecutionError": StopCause.TOOL_FAILURE,
}

# Calls that ADK makes itself, to ask the program for something: what they ask for (`utils/_function_call_names.py`).
REQUEST_CONFIRMATION = "adk_request_confirmation"
REQUEST_CREDENTIAL = "adk_request_credential"
REQUEST_INPUT = "adk_request_input"

NODE_CONFIRMATION = "wf_tool_confirmation:"  # how the id of a call for input begins that asks for a yes to a tool

# Reasons beside a cause.
RUN_ANSWERED = "before_run_callback"  # a plugin's content instead of the run
AGENT_ANSWERED = "before_agent_callback"  # a callback's content instead of the agent that was to run
MODEL_ANSWERED = "before_model_callback"  # a callback's answer instead of the model's
ESCALATED = "escalated"  # `EventActions.escalate`
TASK_DONE = "finish_task"  # the tool with which an agent in mode `task` says that it is done
ENDED = "end_invocation"  # `InvocationContext.end_invocation`, set by a tool: the model is not asked again
TOOL_IS_LAST = "skip_summarization"  # `EventActions.skip_summarization`: what a tool gave is the answer


def cause_of(error: BaseException) -> StopCause | None:
    """What the classes of an exception's chain say; None where they say nothing of ADK's or of a provider's."""
    if is_cancelled(error):
        return None
    for link in chain_of(error):
        kind = type(link)
        if kind.__module__.startswith("google.adk.") and kind.__name__ in BY_ERROR:
            return BY_ERROR[kind.__name__]
    return provider_cause(error)
