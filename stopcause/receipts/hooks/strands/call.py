"""Strands: what every invocation of an agent, graph or swarm has: its run, its place in the context, its waits.

Not here: what their events and results mean (`agent`, `multiagent`).
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from stopcause.receipts.faults import chain_of, is_cancelled
from stopcause.receipts.hooks import call
from stopcause.receipts.hooks.strands.causes import cause_of
from stopcause.receipts.identifiers import is_personal
from stopcause.receipts.vocabulary import ApprovalKind, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextvars import Token

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run

open_call: ContextVar[Call | None] = ContextVar("stopcause_strands_call", default=None)


class Asked(NamedTuple):
    """Who raised an interrupt, and for what. `run_id`: the child that asked, or the run that waits for it."""

    kind: str = ApprovalKind.CONFIRMATION
    tool: str | None = None
    tool_call_id: str | None = None
    run_id: str | None = None


class Call(call.Call):
    """One invocation. As a context manager, it is current while an item of its stream is being made."""

    # Hook events by the name of their class. Each method is given the event and the interrupts that it raised.
    events: Mapping[str, Callable[[Any, Any, Sequence[Any]], None]] = {}

    session: str | None = None  # the name of the session that keeps its state
    place: object = None  # what keeps its state: the session, else the live object
    keeps_children = False  # whether the state of the agents inside it is kept with its own

    def __init__(self, hook: Hook, run: Run, owner: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run)
        self.owner = owner
        self.outer = open_call.get()
        self.asked: dict[str, Asked] = {}
        self.answered: dict[str, Asked] = {}
        self.child_fault: tuple[BaseException, StopCause] | None = None
        self.is_child_cut_off = False
        self.host_fault: BaseException | None = None
        self._waiting = waiting
        self._outer_token: Token[Call | None] | None = None

    def __enter__(self) -> Self:
        self._outer_token = open_call.set(self)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._outer_token is not None:
            with contextlib.suppress(ValueError):  # a generator may be finalised in another context
                open_call.reset(self._outer_token)

    # How it goes ------------------------------------------------------------------------------------------------------

    def event(self, event: Foreign, interrupts: Sequence[Any]) -> None:
        """A hook event of this agent, graph or swarm, after all of the host's callbacks have seen it.

        A tool in the background may be done when its agent long is: that is not this run's any more.
        """
        note = self.events.get(type(event).__name__)
        if (
            note is not None
            and not self.is_over
            and self.owner is getattr(event, "agent", getattr(event, "source", None))
        ):
            note(self, event, interrupts)

    # How it ends; the first word counts -------------------------------------------------------------------------------

    def failed(self, error: BaseException) -> None:
        """An exception leaves it. A graph or swarm around it learns why, so that it says the same."""
        if self.outer is not None and not self.is_over:
            cause = self.cause(error)
            self.outer.is_child_cut_off = is_cancelled(error)
            self.outer.child_fault = None if cause is None else (error, cause)
        super().failed(error)

    def is_first_end(self) -> bool:
        """Whether it is over only now. An exception that is kept keeps every frame that it left."""
        is_first = super().is_first_end()
        if is_first:
            self.child_fault = self.host_fault = None
        return is_first

    def cause(self, error: BaseException) -> StopCause | None:
        """What an exception that leaves it means; None: the common map is asked."""
        if self.child_fault is not None and self.child_fault[0] is error:
            return self.child_fault[1]
        is_hosts = self.host_fault is not None and self.host_fault in chain_of(error)
        return StopCause.HOST_ERROR if is_hosts else cause_of(error)

    # Waits ------------------------------------------------------------------------------------------------------------

    def lives(self, manager: Foreign | None) -> None:
        """Where its state is kept."""
        self.session = None if manager is None else self.hook.read(self.run, manager, "session_id", str)
        self.run.thread_id = self.run.thread_id or self.session
        self.place = self.session or id(self.owner)

    @property
    def resume_token(self) -> str | None:
        """What names the paused state."""
        if self.session is not None and is_personal(self.session):
            self.run.find("refused_value", f"{self.hook.adapter}:session_id")
            return None
        return self.session

    def wait(self, interrupts: Sequence[Any]) -> None:
        """It stops for these interrupts.

        With a session they can be resumed from it, and its name is the resume token, unless it is a person's handle.
        Without one, only the live object keeps them: then there is no token, and nothing is said about `resumable`,
        which is true until the process ends.
        """
        keeper = self if self.session or self.outer is None or not self.outer.keeps_children else self.outer
        session, token = keeper.session, keeper.resume_token
        for interrupt in interrupts:
            interrupt_id = str(interrupt.id)
            asked = self._asked(interrupt_id)
            self.run.waiting(
                interrupt_id, asked.kind, tool=asked.tool, tool_call_id=asked.tool_call_id, raised_by=asked.run_id,
                resume_token=token, resumable=True if session else None, metadata=interrupt.reason,
            )  # fmt: skip
            call_id = None if asked.run_id else asked.tool_call_id  # a child's call is decided in the child
            self._waiting.add(self.place, interrupt_id, asked._replace(tool_call_id=call_id, run_id=self.run.run_id))
            if self.outer is not None:
                self.outer.asked[interrupt_id] = asked._replace(run_id=self.run.run_id)

    def _asked(self, interrupt_id: str) -> Asked:
        """Who asked. An agent that is a tool hands an interrupt on with its own words before the id."""
        inner = (each for known, each in self.asked.items() if each.run_id and interrupt_id.endswith(known))
        return next(inner, None) or self.asked.get(interrupt_id, Asked())

    def resume(self, prompt: object) -> None:
        """Its input answers interrupts: whose they are, and which. What the answers say is not read."""
        if not isinstance(prompt, list):
            return
        blocks = [block.get("interruptResponse") for block in prompt if isinstance(block, dict)]
        answers = [str(block["interruptId"]) for block in blocks if isinstance(block, dict) and "interruptId" in block]
        found = {each: asked for each in answers if (asked := self._waiting.of(self.place, each)) is not None}
        self.answered = found
        if answers:
            self.run.resumed(next((asked.run_id for asked in found.values()), None), answers)

    def taken(self) -> None:
        """The framework took the answers: another run cannot bring them again."""
        self._waiting.forget(self.place, self.answered)

    def cut_off(self) -> None:
        """It failed: what was answered and has not been carried out waits as before, and may be answered again."""
        for approval_id, asked in self.answered.items():
            self._waiting.add(self.place, approval_id, asked)

    def decided(self, tool_call_id: object, *, is_denied: bool) -> None:
        """The hook that asked before a call has let it through, or has cancelled it."""
        for approval_id, asked in self._answers_for(tool_call_id):
            if asked.kind == ApprovalKind.TOOL_CALL:
                self.run.decided(approval_id, "denied" if is_denied else "approved")
            if is_denied:
                del self.answered[approval_id]

    def executed(self, tool_call_id: object) -> None:
        """A call that was waited for has run: now also what its tool had asked for is answered."""
        for approval_id, asked in self._answers_for(tool_call_id):
            if asked.kind != ApprovalKind.TOOL_CALL:
                self.run.decided(approval_id, "answered")
            self.run.executed(approval_id)
            del self.answered[approval_id]

    def _answers_for(self, tool_call_id: object) -> list[tuple[str, Asked]]:
        if not self.answered or tool_call_id is None:
            return []
        return [each for each in self.answered.items() if each[1].tool_call_id == tool_call_id]
