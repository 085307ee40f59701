"""Words and messages of LangChain as words of ours: finish reasons, what a list of messages ends with.

Read of a message: its type, status, ids and numbers, and whether there is content. Never the content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.vocabulary import Finish, OutputShape

if TYPE_CHECKING:
    from stopcause.receipts.run import Run

# Finish reasons as the integrations pass them on (`response_metadata` of their messages), by the providers' own lists:
# OpenAI, Anthropic, Google, Bedrock, Mistral, Cohere, Ollama.
FINISHES = {
    "stop": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "complete": Finish.STOP,
    "tool_calls": Finish.TOOL_CALLS,
    "tool_call": Finish.TOOL_CALLS,
    "tool_use": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "content_filtered": Finish.CONTENT_FILTER,
    "guardrail_intervened": Finish.CONTENT_FILTER,
    "safety": Finish.CONTENT_FILTER,
    "recitation": Finish.CONTENT_FILTER,
    "prohibited_content": Finish.CONTENT_FILTER,
    "blocklist": Finish.CONTENT_FILTER,
    "spii": Finish.CONTENT_FILTER,
    "refusal": Finish.REFUSAL,
    "error": Finish.ERROR,
    "malformed_function_call": Finish.ERROR,
    "pause_turn": Finish.PAUSE,
}
_FINISH_KEYS = ("finish_reason", "stop_reason", "done_reason")


class Ending(NamedTuple):
    """How a list of messages ends: calls that nobody answered, whether a tool's result is last, and what came out."""

    pending: int = 0
    tool_is_last: bool = False
    shape: OutputShape | None = None


def message_of(response: Any) -> Any:  # noqa: ANN401 - an LLMResult, and a message
    """The message of a model's answer; None where there is none (a model that only completes text has none)."""
    generations = getattr(response, "generations", None)
    first = generations[0][0] if generations and generations[0] else None
    return getattr(first, "message", None)


def note_answer(run: Run, message: Any, *, is_own: bool) -> None:  # noqa: ANN401 - an AIMessage
    """What a model's answer says in numbers and words. `is_own`: the agent's model, not one that a tool asked."""
    usage = getattr(message, "usage_metadata", None)
    if isinstance(usage, dict):
        run.add_usage(usage.get("input_tokens"), usage.get("output_tokens"))
    told = getattr(message, "response_metadata", None)
    if is_own and isinstance(told, dict):
        raw = next((told[key] for key in _FINISH_KEYS if isinstance(told.get(key), str)), None)
        run.finish_raw = raw
        run.finish = None if raw is None else finish_of(raw)
        model = told.get("model_name") or told.get("model")
        if run.model is None and isinstance(model, str):
            run.model = model


def finish_of(raw: str) -> Finish:
    """A provider's finish reason, in whatever case it writes it."""
    return FINISHES.get(raw.rpartition(".")[2].lower(), Finish.OTHER)


def ending_of(outputs: object) -> Ending:
    """What the last messages of a graph's state say; nothing where it keeps none."""
    messages = outputs.get("messages") if isinstance(outputs, dict) else None
    if not isinstance(messages, list) or not messages:
        return Ending()
    answered: set[object] = set()
    asked: list[object] = []
    for message in reversed(messages):
        kind = getattr(message, "type", None)
        if kind == "ai":
            asked = [call.get("id") for call in getattr(message, "tool_calls", None) or ()]
            break
        if kind == "tool":
            answered.add(getattr(message, "tool_call_id", None))
    last = messages[-1]
    is_tool = getattr(last, "type", None) == "tool" and getattr(last, "status", None) != "error"
    pending = sum(each not in answered for each in asked)
    return Ending(pending, is_tool, None if pending else _shape(outputs, last))


def failed_results(outputs: object) -> list[object]:
    """Of the tool results that a node returned, the ids of the calls that failed and were told so."""
    messages = outputs.get("messages") if isinstance(outputs, dict) else None
    failed = [each for each in messages if is_failed(each)] if isinstance(messages, list) else []
    return [getattr(each, "tool_call_id", None) for each in failed]


def is_failed(result: object) -> bool:
    """Whether a tool's result tells the model of a failure."""
    return getattr(result, "type", None) == "tool" and getattr(result, "status", None) == "error"


def _shape(outputs: object, last: Any) -> OutputShape:  # noqa: ANN401 - a message
    if isinstance(outputs, dict) and outputs.get("structured_response") is not None:
        return OutputShape.STRUCTURED
    return OutputShape.TEXT if getattr(last, "content", None) else OutputShape.NONE
