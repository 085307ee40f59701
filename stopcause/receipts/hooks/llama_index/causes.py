"""LlamaIndex: what its exceptions, events and a model's finish reasons mean. Tables, and how they are looked up.

Sources: `workflows/errors.py`, `workflows/events.py` and `runtime/control_loop` of llama-index-workflows 2.26, compared
with 2.10; `core/agent/workflow/base_agent.py` and `multi_agent_workflow.py` of llama-index-core 0.14.25, compared with
0.14.0.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from stopcause.receipts.faults import chain_of, is_cancelled
from stopcause.receipts.vocabulary import Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Exceptions by their class. `WorkflowRuntimeError` is not here: an agent at its `max_iterations` raises it, and so does
# a step that returns what is no event; the counters tell them apart.
BY_ERROR: Mapping[str, StopCause] = {
    "WorkflowTimeoutError": StopCause.TIME_LIMIT,  # of a run that waits: it is still a wait, which has expired
    "WorkflowCancelledByUser": StopCause.CALLER_ABORT,  # `handler.cancel_run()`: the program's call, whoever asked it
}

# Raised by `Workflow.run` itself, before any step. `WorkflowValidationError` and `WorkflowConfigurationError` are about
# the program: `host_error`, by the common map.
REFUSED: Mapping[str, StopCause] = {
    "WorkflowRuntimeError": StopCause.INPUT_REJECTED,  # the start event cannot be made from what was given
    "ContextStateError": StopCause.INPUT_REJECTED,  # the context is of a run that still goes on
    "ContextSerdeError": StopCause.INPUT_REJECTED,
    "ValueError": StopCause.INPUT_REJECTED,  # what was given as the start event is none
    "ValidationError": StopCause.INPUT_REJECTED,  # pydantic's, of an agent's start event
}

# How a run comes back: by the event that ended it, or by the step that returned it.
RETURN_DIRECT = "return_direct"  # a tool whose result is the answer
IDLE_RELEASED = "IdleReleasedEvent"  # a server lets go of a run that waits; it is resumed from its store
CANCELLED = "cancel_run"

# A model's own word, in lower case, as the providers' raw answers have it.
FINISHES: Mapping[str, Finish] = {
    "stop": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "complete": Finish.STOP,
    "completed": Finish.STOP,
    "tool_calls": Finish.TOOL_CALLS,
    "tool_use": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "tool_call": Finish.TOOL_CALLS,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "content_filtered": Finish.CONTENT_FILTER,
    "guardrail_intervened": Finish.CONTENT_FILTER,
    "prohibited_content": Finish.CONTENT_FILTER,
    "blocklist": Finish.CONTENT_FILTER,
    "spii": Finish.CONTENT_FILTER,
    "safety": Finish.CONTENT_FILTER,
    "recitation": Finish.CONTENT_FILTER,
    "refusal": Finish.REFUSAL,
    "error": Finish.ERROR,
    "malformed_function_call": Finish.ERROR,
    "pause_turn": Finish.PAUSE,
}
_FINISH_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_USAGES = ("usage", "usage_metadata")
_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "inputTokens")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "outputTokens")
# Every model of LlamaIndex's is called through the decorators of this module, so its errors pass through it.
_MODEL_MODULE = "llama_index.core.llms.callbacks"


def cause_of(error: BaseException) -> StopCause | None:
    """What the class of an exception says; None where it says nothing of the workflows'."""
    return BY_ERROR.get(type(error).__name__) if is_workflows(error) else None


def refusal_of(error: BaseException) -> StopCause | None:
    """The same for what `Workflow.run` raises itself."""
    return REFUSED.get(type(error).__name__) if isinstance(error, Exception) else None


def is_workflows(error: BaseException) -> bool:
    """Whether it is a class of the workflows' own."""
    return type(error).__module__.partition(".")[0] == "workflows"


def is_models(error: BaseException) -> bool:
    """Whether it came out of a call of a model: by the modules of the frames that it left, never by its text."""
    return not is_cancelled(error) and any(_MODEL_MODULE in _modules(link) for link in chain_of(error))


def _modules(error: BaseException) -> Iterator[object]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_globals.get("__name__")
        trace = trace.tb_next


def is_a(kind: Any, name: str) -> bool:  # noqa: ANN401 - a class of the framework's, or what should be one
    """Whether a class is the framework's of this name, or made from it."""
    return isinstance(kind, type) and name in _names(kind)


@functools.lru_cache(maxsize=1024)
def _names(kind: Any) -> frozenset[str]:  # noqa: ANN401 - as above
    """The framework's classes that it is made from. Asked many times in a run, so remembered."""
    return frozenset(
        each.__name__ for each in kind.__mro__ if each.__module__.partition(".")[0] in ("workflows", "llama_index")
    )


def finish_of(raw: Any) -> str | None:  # noqa: ANN401 - a provider's raw answer, of any shape
    """The finish reason in a raw answer: at its top, or in its first choice or candidate."""
    for place in (raw, _first(_get(raw, "choices")), _first(_get(raw, "candidates"))):
        for key in _FINISH_KEYS:
            value = _get(place, key)
            word = value if isinstance(value, str) else getattr(value, "name", None)
            if isinstance(word, str) and word:
                return str(word)
    return None


def usage_of(raw: Any) -> tuple[int | None, int | None]:  # noqa: ANN401 - a provider's raw answer, of any shape
    """Input and output tokens of a raw answer."""
    usage = next((found for name in _USAGES if (found := _get(raw, name)) is not None), None)
    return _number(usage, _INPUT), _number(usage, _OUTPUT)


def _number(usage: Any, names: tuple[str, ...]) -> int | None:  # noqa: ANN401 - a provider's own
    return next((value for name in names if type(value := _get(usage, name)) is int), None)


def _get(owner: Any, name: str) -> Any:  # noqa: ANN401 - a provider's own
    return owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)


def _first(values: Any) -> Any:  # noqa: ANN401 - a provider's own
    return values[0] if isinstance(values, list) and values else None
