"""Agent Framework: what invocations of agents and of workflows have in common: their place in the context, their waits.

Not here: what their answers and events mean (`agent`, `workflow`).
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of
from stopcause.receipts.hooks import call
from stopcause.receipts.hooks.agent_framework.causes import cause_of
from stopcause.receipts.vocabulary import ApprovalKind, Boundary, StopCause

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from contextvars import Token

    from stopcause.receipts.hooks.agent_framework.contents import Asked
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run

open_call: ContextVar[Call | None] = ContextVar("stopcause_agent_framework_call", default=None)

_GRANTED = "granted"  # beside a place: what was answered there and has not run


class Call(call.Call):
    """One invocation. As a context manager, it is current while the framework's own code works."""

    _taken: frozenset[str] = frozenset()  # approvals that its input answers
    place: object = None  # what keeps its state, where an answer will be looked for

    def __init__(self, hook: Hook, run: Run, owner: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run)
        self.owner = owner
        self.outer = open_call.get()
        self.children: dict[str, str] = {}  # by approval id, the run inside that asked
        self.child_fault: tuple[BaseException, StopCause] | None = None
        self.waiting = waiting
        self.answered: dict[str, Asked] = {}
        self._outer_token: Token[Call | None] | None = None

    def __enter__(self) -> Self:
        self._outer_token = open_call.set(self)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._outer_token is not None:
            with contextlib.suppress(ValueError):  # a stream may be finalised in another context
                open_call.reset(self._outer_token)

    @property
    def keeps_children(self) -> bool:
        """Whether the state of the agents inside it is kept with its own."""
        return False

    @property
    def is_inside(self) -> bool:
        """Whether it is at work already, in this context."""
        return open_call.get() is self

    def ending(self, how: str) -> AbstractContextManager[object]:
        """The guard around its end."""
        return self.hook.ending(how, self.run)

    def cause(self, error: BaseException) -> StopCause | None:
        """What an exception means: as a run inside has said of the same one, else by its class."""
        if self.child_fault is not None and self.child_fault[0] in chain_of(error):
            return self.child_fault[1]
        return cause_of(error)

    def failed(self, error: BaseException) -> None:
        """An exception leaves it; what is around it learns why, so that it says the same."""
        if self.outer is not None and not self.is_over and isinstance(error, Exception):
            cause = self.cause(error)
            self.outer.child_fault = None if cause is None else (error, cause)
        super().failed(error)

    def left(self) -> None:
        """Its reader went away; or we did, in the middle of it, and nobody saw its end."""
        if not self.is_over and not self.hook.is_on:
            self.run.say(StopCause.UNKNOWN, Rank.SIGNAL, Boundary.CALLBACK, reason="hook_off")
        super().left()

    def is_first_end(self) -> bool:
        """Whether it is over only now. An exception that is kept keeps every frame that it left."""
        self.child_fault = None
        return super().is_first_end()

    # Waits ------------------------------------------------------------------------------------------------------------

    def wait(self, asked: Asked, **how: Any) -> None:  # noqa: ANN401 - what `Run.waiting` takes
        """It stops to wait for this; whoever answers at its place resumes it."""
        approval_id, kept = asked.approval_id, asked._replace(run_id=self.run.run_id, metadata=None)
        self.run.waiting(
            approval_id, asked.kind, tool=asked.tool, tool_call_id=asked.tool_call_id,
            raised_by=self.children.get(asked.inner or approval_id), metadata=asked.metadata, **how,
        )  # fmt: skip
        self.waiting.add(self.place, approval_id, kept)
        if asked.kind == ApprovalKind.EXTERNAL and asked.tool_call_id is not None:
            self.waiting.add(self.place, asked.tool_call_id, kept)  # what came of a call names the call
        if self.outer is not None:
            self.outer.children[approval_id] = self.run.run_id

    def resume(self, place: object, answers: dict[str, str], last: set[str]) -> None:
        """Its input answers what a run has waited for. What nobody here waits for counts if it comes last.

        A history is sent again and again, and the answers in it were taken long ago.
        """
        known = {each: asked for each in answers if (asked := self.waiting.of(place, each)) is not None}
        taken = {each: decision for each, decision in answers.items() if each in known or each in last}
        taken = {known[each].approval_id if each in known else each: decision for each, decision in taken.items()}
        if taken:
            self.answered = {asked.approval_id: asked for asked in known.values()}
            self.run.resumed(next((asked.run_id for asked in known.values()), None), taken)
            self.waiting.forget(place, known)
            self._taken = frozenset(taken)
            for approval_id, asked in self.answered.items():
                self.waiting.add((_GRANTED, self.place), approval_id, asked)

    def executed(self, approval_id: str) -> None:
        """The call that an approval gated has run, in this run or in one inside it.

        It may have been given to an earlier run that then waited for another. One that nobody waited for was given by
        a rule of the program's, and is none.
        """
        granted = self.waiting.of((_GRANTED, self.place), approval_id)
        if approval_id in self._taken:
            self.run.executed(approval_id)
        elif granted is not None:
            self.run.executed(approval_id, granted.run_id)
        self.waiting.forget((_GRANTED, self.place), (approval_id,))
        self.answered.pop(approval_id, None)
        if self.outer is not None:
            same = [each for each, asked in self.outer.answered.items() if approval_id in (each, asked.inner)]
            for each in same:
                self.outer.executed(each)

    def cut_off(self) -> None:
        """It failed: what was answered and has not been carried out waits as before, and may be answered again."""
        for approval_id, asked in self.answered.items():
            self.waiting.add(self.place, approval_id, asked)
