"""Temporal: what a workflow says of a wait. `workflow.wait_condition` alone is a condition like any other.

    with approval("refund", owner="team:billing", timeout=timedelta(hours=4)) as asked:
        await workflow.wait_condition(lambda: self.answer is not None, timeout=asked.timeout)
        asked.decided("approved" if self.answer else "denied")
    ...
    asked.executed()

It is recorded when the workflow begins to wait, and when it is answered; of history that is run again nothing is. Where
the hook is off it does nothing.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from temporalio import workflow

from stopcause.receipts.hooks.temporal.workflow import executions
from stopcause.receipts.vocabulary import ApprovalKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from types import TracebackType

    from stopcause.receipts.hooks.temporal.workflow import Execution


class Asked:
    """A wait of a workflow, as the block around it.

    Attributes:
        timeout: For `wait_condition`, as it was given.
    """

    def __init__(self, approval_id: str, facts: dict[str, Any], timeout: timedelta | None) -> None:
        self._approval_id = approval_id
        self._facts = facts
        self._is_decided = False
        self.timeout = timeout

    def __enter__(self) -> Self:
        with _open() as execution:
            if execution is not None:
                execution.waits(self._approval_id, self._facts, self.timeout)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Left without a word of a decision, it was answered; by a time-out, nobody answered in time."""
        if kind is None and not self._is_decided:
            self.decided("answered")
        elif isinstance(error, TimeoutError):
            with _open() as execution:
                if execution is not None:
                    execution.expires(self._approval_id, error)

    def decided(self, decision: str) -> None:
        """What was decided: a word of `Decision`."""
        self._is_decided = True
        with _open() as execution:
            if execution is not None:
                execution.decided(self._approval_id, decision)

    def executed(self) -> None:
        """What it was asked for has been done."""
        with _open() as execution:
            if execution is not None:
                execution.executed(self._approval_id)


def approval(  # noqa: PLR0913 - what can be known of a wait
    approval_id: str,
    kind: str = ApprovalKind.CONFIRMATION,
    *,
    tool: str | None = None,
    owner: str | None = None,
    deadline: datetime | None = None,
    timeout: timedelta | None = None,
    metadata: object = None,
) -> Asked:
    """A wait for something that only the outside can give, for use inside a workflow.

    Args:
        approval_id: What the answer names; of this workflow's waits no other has it.
        kind: A word of `ApprovalKind`.
        tool: The activity that is gated.
        owner: Who answers; without one the configured route says.
        deadline: Until when, softly.
        timeout: How long at all; give `asked.timeout` to `wait_condition`.
        metadata: Only the keys that `configure(approval_keys=...)` names are read.
    """
    facts = {"kind": kind, "tool": tool, "owner": owner, "deadline": deadline, "metadata": metadata}
    return Asked(approval_id, facts, timeout)


@contextlib.contextmanager
def _open() -> Iterator[Execution | None]:
    """The execution that this code is part of, unless it is over. What goes wrong in the block is ours alone."""
    execution = executions.get(workflow.info().run_id) if workflow.in_workflow() else None
    if execution is None or execution.is_over:
        yield None
        return
    with execution.hook.guard("approval"):
        yield execution
