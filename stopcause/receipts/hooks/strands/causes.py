"""Strands: what its stop reasons, exceptions and hook decisions mean. Tables, and how an exception is looked up.

Sources: `types/event_loop.py` (`StopReason`), `types/exceptions.py`, `event_loop/event_loop.py`, `agent/agent.py` and
`hooks/events.py` of strands-agents 1.62, each compared with 1.16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopcause.receipts.faults import chain_of, is_cancelled
from stopcause.receipts.vocabulary import Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

# `AgentResult.stop_reason`. What is not here came from a model provider of the host's: it came back, and the model's
# finish reason says the rest.
BY_STOP_REASON: Mapping[str, StopCause] = {
    "end_turn": StopCause.NATURAL,
    "stop_sequence": StopCause.NATURAL,
    "tool_use": StopCause.EXPLICIT_DONE,  # a tool that ends the loop, or the structured answer
    "limit_turns": StopCause.STEP_LIMIT,
    "limit_total_tokens": StopCause.TOKEN_BUDGET,
    "limit_output_tokens": StopCause.TOKEN_BUDGET,
    "interrupt": StopCause.APPROVAL_PENDING,
    "checkpoint": StopCause.EXTERNAL_PENDING,
    "cancelled": StopCause.CALLER_ABORT,  # but `after_current_tools`: explicit_done
    "content_filtered": StopCause.CONTENT_FILTER,
    "guardrail_intervened": StopCause.GUARDRAIL,
}

# `AfterModelCallEvent.stop_response.stop_reason`: the model's own word, as Strands' providers translate it.
FINISHES: Mapping[str, Finish] = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "tool_use": Finish.TOOL_CALLS,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filtered": Finish.CONTENT_FILTER,
    "guardrail_intervened": Finish.CONTENT_FILTER,
    "refusal": Finish.REFUSAL,
    "cancelled": Finish.INTERRUPTED,
    "pause_turn": Finish.PAUSE,
}

# Exceptions by their class, anywhere in the chain: `EventLoopException` only wraps what another raised.
BY_ERROR: Mapping[str, StopCause] = {
    "MaxTokensReachedException": StopCause.OUTPUT_CAP,
    "ContextWindowOverflowException": StopCause.CONTEXT_LIMIT,
    "ModelThrottledException": StopCause.QUOTA,
    "StructuredOutputException": StopCause.MODEL_FAILURE,
    "ConcurrencyException": StopCause.INPUT_REJECTED,
    "CheckpointException": StopCause.INPUT_REJECTED,
    "IdempotencyAbortedError": StopCause.CALLER_ABORT,
    "MCPClientInitializationError": StopCause.TOOL_FAILURE,
    "ToolProviderException": StopCause.TOOL_FAILURE,
}

# What a hook of the operator's may decide. All of these look like an ordinary end to the caller.
INVOCATION_DENIED = "invocation_cancelled"  # BeforeInvocationEvent.cancel
MODEL_DENIED = "model_call_cancelled"  # BeforeModelCallEvent.cancel
NODE_DENIED = "node_cancelled"  # BeforeNodeCallEvent.cancel_node
ENDED_BY_HOOK = "turn_ended_by_hook"  # AfterToolsEvent.end_turn
ENDED_BY_TOOL = "cancelled_after_tools"  # agent.cancel(after_current_tools=True)
STRUCTURED = "structured_output"  # the structured answer was given as a tool call


def cause_of(error: BaseException) -> StopCause | None:
    """What the classes of an exception's chain say; None where they say nothing of Strands'."""
    if is_cancelled(error):
        return None
    for link in chain_of(error):
        if type(link).__module__.partition(".")[0] == "strands" and type(link).__name__ in BY_ERROR:
            return BY_ERROR[type(link).__name__]
    return None
