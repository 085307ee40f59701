"""Microsoft Agent Framework: what its exceptions, finish reasons, states and bounds mean. Tables, and one look-up.

Sources: `exceptions.py`, `_middleware.py`, `_types.py` (`FinishReasonLiteral`, `Content`), `_tools.py`
(`FunctionInvocationConfiguration`) and `_workflows/_events.py` of agent-framework-core 1.23, each compared with 1.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stopcause.receipts.faults import chain_of, is_cancelled, provider_cause
from stopcause.receipts.vocabulary import ApprovalKind, Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

# Exceptions by their class, anywhere in the chain. A provider's own exception behind a `MODEL_FAILURE` says more.
BY_ERROR: Mapping[str, StopCause] = {
    "AgentInvalidAuthException": StopCause.MODEL_FAILURE,
    "AgentInvalidRequestException": StopCause.INPUT_REJECTED,
    "AgentInvalidResponseException": StopCause.MODEL_FAILURE,
    "AgentContentFilterException": StopCause.CONTENT_FILTER,
    "ChatClientException": StopCause.MODEL_FAILURE,
    "ChatClientInvalidAuthException": StopCause.MODEL_FAILURE,
    "ChatClientInvalidRequestException": StopCause.MODEL_FAILURE,
    "ChatClientInvalidResponseException": StopCause.MODEL_FAILURE,
    "ChatClientContentFilterException": StopCause.CONTENT_FILTER,
    "ResponseInvalidatedException": StopCause.MODEL_FAILURE,
    "IntegrationContentFilterException": StopCause.CONTENT_FILTER,
    "ToolException": StopCause.TOOL_FAILURE,  # a tool's server cannot be reached; a call that fails ends no run
    "ToolExecutionException": StopCause.TOOL_FAILURE,
    "MiddlewareTermination": StopCause.GUARDRAIL,
    "MiddlewareFailure": StopCause.GUARDRAIL,  # "middleware that must abort the run (enforcement layers, guardrails)"
    "_UnknownFunctionCallError": StopCause.MALFORMED_CALL,  # `terminate_on_unknown_calls`
    "WorkflowConvergenceException": StopCause.STEP_LIMIT,
}

# `ChatResponse.finish_reason`. The list is open: a provider's other word is kept raw.
FINISHES: Mapping[str, Finish] = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "tool_calls": Finish.TOOL_CALLS,
    "content_filter": Finish.CONTENT_FILTER,
}

# `Content.type` of what an agent asks its caller for (`user_input_request`). Other types: input.
REQUESTS: Mapping[str, ApprovalKind] = {
    "function_approval_request": ApprovalKind.TOOL_CALL,
    "oauth_consent_request": ApprovalKind.SIGN_IN,
    "function_call": ApprovalKind.EXTERNAL,  # a tool that is only declared: the caller runs it
    "computer_tool_call": ApprovalKind.EXTERNAL,
}

# `WorkflowRunState` at the end. FAILED is followed by the exception, whose class says more.
STATES: Mapping[str, StopCause] = {
    "IDLE": StopCause.NATURAL,
    "IDLE_WITH_PENDING_REQUESTS": StopCause.INPUT_PENDING,
    "CANCELLED": StopCause.CALLER_ABORT,
}
UNDER_WAY = frozenset({"STARTED", "IN_PROGRESS", "IN_PROGRESS_PENDING_REQUESTS", "FAILED"})

TERMINATED = "middleware_termination"  # a middleware raised `MiddlewareTermination`; the caller sees an ordinary answer
STATE_FAILED = "workflow_failed"  # the reader left at the state, before the exception came

LOOP = "loop_max_iterations"  # `AgentLoopMiddleware`, which runs an agent again and again


class Bound(NamedTuple):
    """A bound of the function loop: the cause, and the kind and unit of its condition."""

    cause: StopCause
    kind: str
    unit: str | None


# `FunctionInvocationConfiguration`. Each of them only takes the tools away, asks the model once more and comes back
# with an ordinary answer. After errors in a row that answer was given without what the tools were for: the loop stopped
# because they failed, which is a failure and no bound of the operator's on work that went well.
BOUNDS: Mapping[str, Bound] = {
    "max_iterations": Bound(StopCause.STEP_LIMIT, "steps", "model_call"),
    "max_function_calls": Bound(StopCause.STEP_LIMIT, "steps", "tool_call"),
    "max_duration_seconds": Bound(StopCause.TIME_LIMIT, "time", "s"),
    "max_consecutive_errors_per_request": Bound(StopCause.TOOL_FAILURE, "custom", "error"),
}


def cause_of(error: BaseException) -> StopCause | None:
    """What the classes of an exception's chain say; None where they say nothing of the framework's."""
    if is_cancelled(error):
        return None
    for link in chain_of(error):
        kinds = (each for each in type(link).__mro__ if each.__module__.partition(".")[0] == "agent_framework")
        known = next((BY_ERROR[each.__name__] for each in kinds if each.__name__ in BY_ERROR), None)
        if known is StopCause.MODEL_FAILURE:
            return provider_cause(error) or known
        if known is not None:
            return known
    return None
