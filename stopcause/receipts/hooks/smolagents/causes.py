"""smolagents: what its exceptions, step errors and finish reasons mean. Tables, and how they are looked up.

Every ordinary end is `explicit_done` and none is `natural`: the loop of a `ToolCallingAgent` and of a `CodeAgent` ends
only where the tool `final_answer` was called. A model that asks for nothing more has failed to answer, and is asked
again.

Sources: `utils.py` (the tree of `AgentError`), `agents.py` (`_run_stream`, `_step_stream`) and `models.py` of
smolagents 1.26, each compared with 1.20.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stopcause.receipts.faults import chain_of, is_time_out, provider_cause, status_of
from stopcause.receipts.vocabulary import Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

# What leaves the loop, by class. Of `AgentError` itself only the interruption does; all but `AgentGenerationError` are
# otherwise noted on their step, and the model is asked again.
BY_ERROR: Mapping[str, StopCause] = {
    "AgentGenerationError": StopCause.MODEL_FAILURE,  # what it came from may say more: quota, window, filter
    "AgentMaxStepsError": StopCause.STEP_LIMIT,  # never raised: the error of the step that was forced
    "AgentParsingError": StopCause.MALFORMED_CALL,
    "AgentToolCallError": StopCause.TOOL_FAILURE,
    "AgentToolExecutionError": StopCause.TOOL_FAILURE,
    "AgentExecutionError": StopCause.TOOL_FAILURE,
    "AgentError": StopCause.USER_ABORT,  # but only where `interrupt_switch` is set
}

# Errors of a step that went on, by class: whose they were. Those of a call of a tool are counted where it is called. A
# refused final answer is `AgentError` itself, and nobody's failure.
MODEL_ERRORS = frozenset({"AgentParsingError"})
CODE_ERRORS = frozenset({"AgentExecutionError"})

# The provider's own word, as it is in the `raw` answer: OpenAI's, LiteLLM's, of Hugging Face's inference, Bedrock's.
FINISHES: Mapping[str, Finish] = {
    "stop": Finish.STOP,
    "eos_token": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "tool_use": Finish.TOOL_CALLS,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "content_filtered": Finish.CONTENT_FILTER,
    "guardrail_intervened": Finish.CONTENT_FILTER,
    "refusal": Finish.REFUSAL,
    "malformed_model_output": Finish.ERROR,
    "malformed_tool_use": Finish.ERROR,
}

_QUOTA_STATUSES = (402, 429)


def class_of(error: object) -> str | None:
    """The nearest class of the framework's that the table has; None for what is not its own."""
    for kind in type(error).__mro__:
        if kind.__name__ in BY_ERROR and kind.__module__.partition(".")[0] == "smolagents":
            return kind.__name__
    return None


def cause_of(error: BaseException, *, is_interrupted: bool) -> StopCause | None:
    """What an exception that leaves the loop means; None where its class says nothing of the framework's."""
    name = class_of(error)
    if name is None or (name == "AgentError" and not is_interrupted):
        return None
    return model_cause(error) if name == "AgentGenerationError" else BY_ERROR[name]


def model_cause(error: BaseException) -> StopCause:
    """What an exception that came out of the model means: also a job queue's timer, which fired while it answered."""
    links = chain_of(error)
    if any(is_time_out(link) and not isinstance(link, TimeoutError) for link in links):
        return StopCause.TIME_LIMIT
    if any(status_of(link) in _QUOTA_STATUSES for link in links):
        return StopCause.QUOTA
    return provider_cause(error) or StopCause.MODEL_FAILURE


def finish_of(raw: Any) -> str | None:  # noqa: ANN401 - the provider's own answer, of any shape
    """The finish reason of a raw answer: of OpenAI's shape as objects or as JSON, or Bedrock's."""
    choices = _get(raw, "choices")
    reason = _get(choices[0], "finish_reason") if isinstance(choices, list) and choices else _get(raw, "stopReason")
    return reason if isinstance(reason, str) and reason else None


def _get(owner: Any, name: str) -> Any:  # noqa: ANN401
    with contextlib.suppress(Exception):  # a property of a client's may raise anything
        return owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)
    return None
