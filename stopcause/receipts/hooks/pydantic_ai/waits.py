"""Deferred tools: what a run stops to wait for, and the run that brings the answers.

A wait is named by its tool call; the run that resumes it has the same conversation and the same call. In one process
the run that waited is remembered. In another it is the one that wrote the last answer of the history that is resumed:
Pydantic AI puts its run id on every message, and receipts have that id where the host gave none.

The paused state is the message history, and the host has it. So a resume token is given only where the host itself
named the conversation (`conversation_id=` or `conversation=`): then it keeps histories by that name. A conversation id
that the framework made up names nothing that is known to be kept, and whether the run can be resumed stays unsaid.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from stopcause.receipts.vocabulary import ApprovalKind, Decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stopcause.receipts.run import Run

_MOST = 20_000  # waits that are remembered
_QUESTION = "question"  # `CallDeferred(kind="question")`; 2.0 and 2.30 have none

_waiting: OrderedDict[tuple[str | None, str], str] = OrderedDict()


def wait_for(run: Run, requests: Any, conversation: str | None, token: str | None) -> None:  # noqa: ANN401
    """Notes each call of a `DeferredToolRequests` as a wait."""
    kinds = [(call, ApprovalKind.TOOL_CALL) for call in requests.approvals]
    kinds += [(call, _kind(requests, call.tool_call_id)) for call in requests.calls]
    metadata = getattr(requests, "metadata", None) or {}
    for call, kind in kinds:
        run.waiting(
            call.tool_call_id,
            kind,
            tool=call.tool_name,
            tool_call_id=call.tool_call_id,
            resume_token=token,
            metadata=metadata.get(call.tool_call_id),
        )
        _remember(conversation, call.tool_call_id, run.run_id)


def wait_for_response(run: Run, conversation: str | None, token: str | None) -> None:
    """Notes that the provider still works on the answer (`PendingModelResponse`)."""
    run.waiting(None, ApprovalKind.EXTERNAL, resume_token=token)
    _remember(conversation, "", run.run_id)


def resume(run: Run, results: Any, conversation: str | None, history: Sequence[Any]) -> frozenset[str]:  # noqa: ANN401
    """Links a run to the one that waited, with the decisions that it brings.

    Returns:
        The calls that were approved and are to run now.
    """
    if results is None:
        if history and getattr(history[-1], "state", None) == "suspended":
            run.resumed(_waiter(run, conversation, ("",), history))
        return frozenset()
    answers = {call_id: _decision(value) for call_id, value in results.approvals.items()}
    approved = frozenset(call_id for call_id, word in answers.items() if word is not Decision.DENIED)
    answers |= dict.fromkeys(results.calls, Decision.ANSWERED)
    run.resumed(_waiter(run, conversation, answers, history), answers)
    return approved


def given_name(options: Mapping[str, Any]) -> bool:
    """Whether the host named the conversation, so that the name leads to what it keeps."""
    return options.get("conversation_id") not in (None, "new") or options.get("conversation") is not None


def _kind(requests: Any, call_id: str) -> ApprovalKind:  # noqa: ANN401
    kind_of = getattr(requests, "kind", None)
    is_question = callable(kind_of) and kind_of(call_id) == _QUESTION
    return ApprovalKind.INPUT_REQUIRED if is_question else ApprovalKind.EXTERNAL


def _decision(value: object) -> Decision:
    """A value of `DeferredToolResults.approvals`: True, False, `ToolApproved` or `ToolDenied`."""
    if value is False or getattr(value, "kind", None) == "tool-denied":
        return Decision.DENIED
    return Decision.APPROVED if getattr(value, "override_args", None) is None else Decision.EDITED


def _waiter(run: Run, conversation: str | None, call_ids: Iterable[str], history: Sequence[Any]) -> str | None:
    """The run that waited: the host's own word, what is remembered here, or what the history tells."""
    known = (_waiting.get((conversation, call_id)) for call_id in call_ids)
    return run.resumes_run_id or next(filter(None, known), None) or _writer_of(history)


def _writer_of(history: Sequence[Any]) -> str | None:
    """The run that wrote the last answer of a history."""
    last = next((message for message in reversed(history) if message.kind == "response"), None)
    found = getattr(last, "run_id", None)
    return found if isinstance(found, str) else None


def _remember(conversation: str | None, call_id: str, run_id: str) -> None:
    _waiting[conversation, call_id] = run_id
    while len(_waiting) > _MOST:
        _waiting.popitem(last=False)
