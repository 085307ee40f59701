"""Temporal: what its failures mean. Tables, and how a chain of failures is looked up.

Sources: `temporalio/exceptions.py`, and `_run_top_level_workflow_function` in `worker/_workflow_instance.py` (what ends
a workflow, and what only fails a task of it), of temporalio 1.35, each compared with 1.20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.faults import chain_of
from stopcause.receipts.identifiers import is_identifier, is_personal
from stopcause.receipts.vocabulary import StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a failure says by its class. A child's failure came from another one, which says it.
BY_CLASS: Mapping[str, StopCause | None] = {
    "ActivityError": StopCause.TOOL_FAILURE,
    "NexusOperationError": StopCause.TOOL_FAILURE,
    "ChildWorkflowError": None,
    "ApplicationError": StopCause.HOST_ERROR,
    "ServerError": StopCause.HOST_ERROR,
    "WorkflowAlreadyStartedError": StopCause.HOST_ERROR,
    "ActivityAlreadyStartedError": StopCause.HOST_ERROR,
    "NexusOperationAlreadyStartedError": StopCause.HOST_ERROR,
    "InvalidVersioningOverrideError": StopCause.HOST_ERROR,
    "TimeoutError": StopCause.TIME_LIMIT,  # of a child; an activity's is below its ActivityError
    "TerminatedError": StopCause.PLATFORM_ABORT,
    "CancelledError": StopCause.CALLER_ABORT,
}

# How an execution closed without any code of a worker's: `WorkflowFailureError.cause` of the one who waits for it.
BY_CLOSING: Mapping[str, tuple[StopCause, str]] = {
    "TerminatedError": (StopCause.PLATFORM_ABORT, "terminated"),
    "TimeoutError": (StopCause.TIME_LIMIT, "timed_out"),
}

# `WorkflowExecutionStatus` by name, as `describe` tells it. Of those that a worker ends, its own receipt says more and
# counts before this one: they are for executions whose workers have no hook.
BY_STATUS: Mapping[str, tuple[StopCause, str]] = {
    "COMPLETED": (StopCause.NATURAL, "completed"),
    "FAILED": (StopCause.HOST_ERROR, "failed"),
    "CANCELED": (StopCause.CALLER_ABORT, "cancelled"),
    "TERMINATED": BY_CLOSING["TerminatedError"],
    "TIMED_OUT": BY_CLOSING["TimeoutError"],
}
STATUSES_THAT_GO_ON = frozenset({"RUNNING", "CONTINUED_AS_NEW", "PAUSED"})

# `RetryState` by name: that nothing is tried again, because a bound was reached.
RETRIES_ENDED = frozenset({"TIMEOUT", "MAXIMUM_ATTEMPTS_REACHED"})


class Failure(NamedTuple):
    """What a chain of failures says. `activity`: the error of the one that failed, where one did."""

    cause: StopCause | None
    reason: str | None
    activity: Any = None


def failure_of(error: BaseException) -> Failure:
    """The first link that says why; of a child's failure that is what it came from."""
    links = chain_of(error)
    for place, link in enumerate(links):
        cause = BY_CLASS.get(type(link).__name__) if _is_temporal_s(link) else None
        if cause is not None:
            is_activity = type(link).__name__ == "ActivityError"
            return Failure(cause, _reason(links[place:]), link if is_activity else None)
    return Failure(None, None)


def _reason(links: list[BaseException]) -> str | None:
    """A code: which timeout, or the name of the type that the failure was made from, where the chain has one."""
    for link in links:
        if not _is_temporal_s(link):
            continue
        said = getattr(link, "type", None)
        if type(link).__name__ == "ApplicationError" and isinstance(said, str) and _is_code(said):
            return said  # by convention the name of a class, which Temporal itself sets for exceptions of others
        if type(link).__name__ == "TimeoutError":
            return str(getattr(said, "name", "timeout")).lower()
        if type(link).__name__ == "CancelledError":
            return "cancelled"
    return None


def _is_code(text: str) -> bool:
    return is_identifier(text) and not is_personal(text)


def _is_temporal_s(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "temporalio"
