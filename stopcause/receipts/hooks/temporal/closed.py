"""Temporal: the receipt of an execution that ended without any code of a worker's, written by whoever sees it."""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, NamedTuple

from stopcause.receipts.causes import Rank
from stopcause.receipts.vocabulary import Boundary, LimitKind, StopCause

if TYPE_CHECKING:
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.temporal.known import Known


class Closed(NamedTuple):
    """An execution, as far as the one who sees its end knows it. `began_ns`: 0 where that is not known."""

    namespace: str
    workflow_id: str
    execution: str
    agent: str | None = None
    began_ns: int = 0


def write_closing(hook: Hook, known: Known, closed: Closed, how: tuple[StopCause, str]) -> None:
    """Its receipt. A worker's own word on the same attempt counts before this one."""
    run = Context().run(hook.begin, closed.agent)  # nobody's child, whoever looks
    attempt = known.attempt(closed.namespace, closed.execution)
    if run is None or not run.identify(attempt.run_id):
        return
    run.attempt, run.thread_id = attempt.number, closed.workflow_id
    run.go_on_here(closed.began_ns)
    cause, reason = how
    if cause is StopCause.TIME_LIMIT:
        run.condition("workflow_timeout", LimitKind.TIME, fired=True)
    run.say(cause, Rank.SIGNAL, Boundary.PLATFORM, reason=reason, aborted=cause is not StopCause.UNKNOWN)
    run.close()
