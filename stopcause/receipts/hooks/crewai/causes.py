"""CrewAI: what its exceptions and its models' finish reasons mean. Tables, and how an exception is looked up.

Many ends of CrewAI leave as a bare `Exception`, `ValueError` or `SystemExit` whose text says why. Texts are never read:
such an exception is known by its class and by the function of CrewAI's that raised it, the innermost of its traceback.

Sources: `agent/core.py`, `task.py`, `lite_agent.py`, `utilities/agent_utils.py`, `utilities/exceptions/`,
`hooks/dispatch.py`, `tools/tool_failure.py`, `llms/base_llm.py` and `flow/runtime/__init__.py` of crewai 1.15.30, each
compared with 1.15.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stopcause.receipts.faults import chain_of, is_cancelled, type_name
from stopcause.receipts.vocabulary import Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

# Exceptions of CrewAI's by their class, anywhere in the chain: an agent with a time limit wraps what it raised.
BY_ERROR: Mapping[str, StopCause] = {
    "HookAborted": StopCause.GUARDRAIL,
    "LLMCallBlockedError": StopCause.GUARDRAIL,
    "ToolExecutionFailedError": StopCause.TOOL_FAILURE,  # but of a repeated call: loop_guard
    "LLMContextLengthExceededError": StopCause.CONTEXT_LIMIT,
    "ConverterError": StopCause.MODEL_FAILURE,
    "HumanFeedbackCollapseError": StopCause.MODEL_FAILURE,
    "OutputParserError": StopCause.MALFORMED_CALL,
    "ToolUsageError": StopCause.TOOL_FAILURE,
    "HumanFeedbackPending": StopCause.INPUT_PENDING,  # a flow gives it back; from a crew it is raised
    "MCPConnectionError": StopCause.TOOL_FAILURE,
    "MCPAuthenticationError": StopCause.TOOL_FAILURE,
    "MCPHTTPError": StopCause.TOOL_FAILURE,
}

# The function that raised, and the class of what it raised.
BY_PLACE: Mapping[tuple[str, str], StopCause] = {
    ("_execute_with_timeout", "TimeoutError"): StopCause.TIME_LIMIT,  # max_execution_time
    ("_aexecute_with_timeout", "TimeoutError"): StopCause.TIME_LIMIT,
    ("_execute_single_listener", "RecursionError"): StopCause.STEP_LIMIT,  # max_method_calls
    ("_invoke_guardrail_function", "Exception"): StopCause.GUARDRAIL,  # guardrail_max_retries
    ("_ainvoke_guardrail_function", "Exception"): StopCause.GUARDRAIL,
    ("_process_kickoff_guardrail", "ValueError"): StopCause.GUARDRAIL,
    ("_prepare_llm_call", "ValueError"): StopCause.GUARDRAIL,  # a hook said no, in versions without a class for it
    ("_validate_and_finalize_llm_response", "ValueError"): StopCause.MODEL_FAILURE,  # it answered nothing
    ("handle_max_iterations_exceeded", "ValueError"): StopCause.MODEL_FAILURE,
    ("handle_context_length", "SystemExit"): StopCause.CONTEXT_LIMIT,  # respect_context_window=False
}

# Words of the providers that CrewAI has a client for, in lower case; it hands them on as they are.
FINISHES: Mapping[str, Finish] = {
    "stop": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "completed": Finish.STOP,
    "tool_calls": Finish.TOOL_CALLS,
    "tool_use": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "content_filtered": Finish.CONTENT_FILTER,
    "guardrail_intervened": Finish.CONTENT_FILTER,
    "safety": Finish.CONTENT_FILTER,
    "prohibited_content": Finish.CONTENT_FILTER,
    "blocklist": Finish.CONTENT_FILTER,
    "spii": Finish.CONTENT_FILTER,
    "refusal": Finish.REFUSAL,
    "pause_turn": Finish.PAUSE,
    "malformed_function_call": Finish.ERROR,
    "error": Finish.ERROR,
}

# Codes beside a cause.
ENDED_BY_TOOL = "result_as_answer"  # a tool whose result is the answer


class Origin(NamedTuple):
    """Where an exception was raised: the module and the function, as Python's own frames name them."""

    module: str
    function: str


def cause_of(error: BaseException) -> StopCause | None:
    """What the classes and places of an exception's chain say; None where they say nothing of CrewAI's.

    Of an interrupt only its own: what the run was busy with at that moment, even another's failure, is not why it ends.
    """
    if is_cancelled(error):
        return None
    for link in chain_of(error) if isinstance(error, Exception) else (error,):
        if (cause := _cause_of(link)) is not None:
            return cause
    return None


def _cause_of(link: BaseException) -> StopCause | None:
    name = type_name(type(link)) or ""
    if is_crewais(type(link).__module__) and name in BY_ERROR:
        return StopCause.LOOP_GUARD if _is_repeated(link) else BY_ERROR[name]
    origin = origin_of(link)
    return BY_PLACE.get((origin.function, name)) if is_crewais(origin.module) else None


def is_tool_failure(error: BaseException) -> bool:
    """Whether it is what a tool's policy raises, or the guard against the same call over and over."""
    return type(error).__name__ == "ToolExecutionFailedError" and is_crewais(type(error).__module__)


def _is_repeated(error: BaseException) -> bool:
    """Whether the failure that a tool's policy raised is that of a call made over and over (`ToolFailureReason`)."""
    reason = getattr(getattr(getattr(error, "record", None), "failure", None), "reason", None)
    return getattr(reason, "value", None) == "repeated_call"


def origin_of(error: BaseException) -> Origin:
    """The innermost frame that it left; empty for one that was never raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return Origin("", "")
    frame = trace.tb_frame
    return Origin(str(frame.f_globals.get("__name__")), frame.f_code.co_name)


def is_crewais(module: object) -> bool:
    """Whether a module is of the package itself."""
    return isinstance(module, str) and module.partition(".")[0] == "crewai"
