"""What a run's messages tell by their kinds: how it answered, what it asked for, what had to be asked again.

Only kinds, ids, counts and names of models are read; no part's content is touched. Kinds of both generations of the
2.x line: a retry is a `retry-prompt` part in 2.0, and in 2.68 a `retry-feedback` part or a return with an outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.vocabulary import Finish

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_ANSWERS = ("tool-return", "retry-prompt")


class Seen(NamedTuple):
    """What was read."""

    responses: int = 0
    model: str | None = None
    finish: Finish | None = None
    finish_raw: str | None = None
    inputs: int = 0  # input tokens of all answers
    last_input: int = 0  # of the last one
    calls: int = 0  # tool calls of the last answer
    unanswered: frozenset[str] = frozenset()  # those of them that nothing answered
    retries: int = 0  # answers that the model had to give again


NOTHING = Seen()


def read(messages: Sequence[Any], finishes: dict[str, Finish], tool_calls: Collection[str]) -> Seen:
    """Reads the new messages of a run.

    Args:
        messages: `AgentRun.new_messages()`.
        finishes: The framework's finish reasons, normalized.
        tool_calls: Ids of calls of tools that were counted where they ran; the others are calls for an output.
    """
    responses = [message for message in messages if message.kind == "response"]
    if not responses:
        return NOTHING
    last = responses[-1]
    parts = [part for message in messages if message.kind == "request" for part in message.parts]
    calls = [part.tool_call_id for part in last.parts if part.part_kind == "tool-call"]
    answered = {part.tool_call_id for part in parts if part.part_kind in _ANSWERS}
    raw = getattr(last, "finish_reason", None)
    return Seen(
        responses=len(responses),
        model=getattr(last, "model_name", None),
        finish=finishes.get(raw, Finish.OTHER) if isinstance(raw, str) else None,
        finish_raw=raw,
        inputs=sum(map(_input_of, responses)),
        last_input=_input_of(last),
        calls=len(calls),
        unanswered=frozenset(calls) - answered,
        retries=sum(_is_retry(part, tool_calls) for part in parts),
    )


def _input_of(response: Any) -> int:  # noqa: ANN401 - `ModelResponse`
    return getattr(getattr(response, "usage", None), "input_tokens", None) or 0


def _is_retry(part: Any, tool_calls: Collection[str]) -> bool:  # noqa: ANN401 - one of the framework's parts
    if part.part_kind == "retry-feedback":
        return True
    is_again = part.part_kind == "retry-prompt" or getattr(part, "outcome", None) == "retried"
    return is_again and part.tool_call_id not in tool_calls
