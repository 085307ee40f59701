"""LlamaIndex: what a workflow waits for.

A workflow does not end at a wait. It is idle until an event comes from outside, and its own time limit goes on: when
that is over, the run dies, and the answer with it. So a wait is one only once nothing else moves (`WorkflowIdleEvent`),
and the moment at which it expires is known from its beginning.

A wait is asked for by a step that returns an `InputRequiredEvent`, or by `ctx.wait_for_event`. The ids that the
framework gives it are made from what is waited for, which is content: they are numbered here.
"""

from __future__ import annotations

import hashlib
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.hooks.llama_index.causes import is_a
from stopcause.receipts.vocabulary import ApprovalKind, Decision, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.run import Run


class Kept(NamedTuple):
    """A run whose paused state the program has kept, and the waits that are open in it, in order."""

    run_id: str
    waits: tuple[Wait, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        """The approvals of that run."""
        return tuple(wait.approval_id for wait in self.waits if wait.approval_id)


class Wait(NamedTuple):
    """One wait.

    Attributes:
        key: The framework's own id of it; None where a step returned `InputRequiredEvent`. Never recorded.
        kind: What is waited for.
        tool: The tool that asks.
        tool_call_id: Its call.
        metadata: Of the event that the program told its readers, what `configure(approval_keys=...)` names.
        approval_id: Ours, once it is a wait.
        origin: The approval of the run that this one resumes.
        expires: Seconds since the epoch at which `wait_for_event` gives up.
    """

    key: str | None = None
    kind: ApprovalKind = ApprovalKind.INPUT_REQUIRED
    tool: str | None = None
    tool_call_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    approval_id: str | None = None
    origin: str | None = None
    expires: float | None = None


class Waits:
    """What one run waits for.

    Attributes:
        is_idle: Whether nothing of the workflow moves.
        dies_at: When its own time limit ends it, in seconds since the epoch.
        has_expired: Whether a wait of its own time was over, and its step was told so.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._open: list[Wait] = []
        self._number = 0
        self.is_idle = False
        self.is_kept = False
        self.dies_at: float | None = None
        self.has_expired = False

    @property
    def cause(self) -> StopCause | None:
        """What it waits for, where nothing else moves."""
        if not self.is_idle or not self._open:
            return None
        is_human = any(wait.kind is ApprovalKind.INPUT_REQUIRED for wait in self._open)
        return StopCause.INPUT_PENDING if is_human else StopCause.EXTERNAL_PENDING

    # It asks ----------------------------------------------------------------------------------------------------------

    def asked(self, event: Foreign) -> None:
        """A step returned an `InputRequiredEvent`."""
        self._open.append(Wait(metadata=self._allowed(event)))

    def waited(self, added: Foreign, tool: tuple[str | None, str | None]) -> None:
        """A step called `ctx.wait_for_event`. It is called again each time its step is, with the same id."""
        if any(wait.key == added.waiter_id for wait in self._open):
            return
        is_human = is_a(added.event_type, "HumanResponseEvent") or is_a(type(added.waiter_event), "InputRequiredEvent")
        kind = ApprovalKind.INPUT_REQUIRED if is_human else ApprovalKind.EXTERNAL
        self._open.append(Wait(added.waiter_id, kind, *tool, metadata=self._allowed(added.waiter_event)))

    def _allowed(self, event: Foreign) -> dict[str, Any] | None:
        """Of an event's fields, declared ones and others, those that may be told: the rest is content and not kept."""
        keys = self._run.config.approval_keys.values()
        if event is None or not keys:
            return None
        return {key: value for key, value in {**event.__dict__, **dict(event.items())}.items() if key in keys}

    def expires(self, key: str, seconds: float) -> None:
        """The framework will end this wait by itself."""
        moment = time.time() + seconds
        self._open = [wait._replace(expires=moment) if wait.key == key else wait for wait in self._open]

    def taken_up(self, kept: Kept | None, waiters: list[Foreign]) -> None:
        """A run that goes on from a paused state has the waits of that state."""
        known = {wait.key: wait for wait in kept.waits} if kept else {}
        for wait in kept.waits if kept else ():
            if wait.key is None:
                self._open.append(wait._replace(approval_id=None, origin=wait.approval_id))
        for waiter in waiters:
            before = known.get(waiter.waiter_id, Wait(waiter.waiter_id, _kind(waiter.waiting_for_event)))
            self._open.append(before._replace(approval_id=None, origin=before.approval_id, expires=None))

    # It waits ---------------------------------------------------------------------------------------------------------

    def idle(self, *, accepts_human: bool) -> None:
        """Nothing moves any more until something comes from outside.

        Args:
            accepts_human: Whether a step takes a person's answer: with nothing else asked for, that is what is due.
        """
        if not self._open and accepts_human:
            self._open.append(Wait())
        self.is_idle = True
        self._open = [wait if wait.approval_id else self._begun(wait) for wait in self._open]

    def moves(self) -> None:
        """A step begins: what was kept of the paused state is not its newest any more."""
        self.is_idle = self.is_kept = False

    def _begun(self, wait: Wait) -> Wait:
        """It is a wait now. A state that the program has kept does not die with this run."""
        self._number += 1
        begun = wait._replace(approval_id=f"{self._run.run_id}/wait-{self._number}")
        moments = [moment for moment in (self.dies_at, wait.expires) if moment is not None and not self.is_kept]
        self._run.waiting(
            begun.approval_id, wait.kind, tool=wait.tool, tool_call_id=wait.tool_call_id,
            expires_at=datetime.fromtimestamp(min(moments), UTC) if moments else None,
            resumable=True if self.is_kept else None, metadata=wait.metadata, at_once=True,
        )  # fmt: skip
        return begun

    def keep(self, state: Mapping[str, Any]) -> tuple[str, Kept] | None:
        """The program takes the paused state out: by what it is known again, and what is open in it."""
        if self.cause is None:
            return None
        self.outlives()
        return digest(state), Kept(self._run.run_id, tuple(self._open))

    def outlives(self) -> None:
        """The paused state is kept by somebody else: what was to expire with this run now does not.

        A moment that was told cannot be taken back, so the wait in the kept state is another one.
        """
        if self.is_kept:
            return
        self.is_kept = True
        before, self._open = self._open, [self._begun(wait) for wait in self._open]
        for wait in before:
            self._run.decided(str(wait.approval_id), Decision.CANCELLED)

    # It is over -------------------------------------------------------------------------------------------------------

    def answered(self, key: str | None) -> None:
        """The event came: the oldest wait of this id has its answer."""
        wait = self._taken(key)
        if wait is None:
            return
        if wait.approval_id is not None:
            self._run.decided(wait.approval_id, Decision.ANSWERED)
        if wait.origin is not None:
            self._run.decided(wait.origin, Decision.ANSWERED)
            self._run.executed(wait.origin)

    def gave_up(self, key: str) -> None:
        """Nobody answered in the time of this wait, and its step is told so by an exception."""
        self.has_expired = True
        wait = self._taken(key)
        if wait is not None and wait.approval_id is not None:
            self._run.expired(wait.approval_id)

    def left_over(self) -> None:
        """It finished without them: nobody waits for these any more."""
        for wait in self._open:
            if wait.approval_id is not None:
                self._run.decided(wait.approval_id, Decision.CANCELLED)
        self._open.clear()

    def _taken(self, key: str | None) -> Wait | None:
        wait = next((each for each in self._open if each.key == key), None)
        if wait is not None:
            self._open.remove(wait)
        return wait


def digest(state: Mapping[str, Any]) -> str:
    """What a kept state is known by, in this process only: it is content, and is nowhere written."""
    return hashlib.sha256(json.dumps(state, sort_keys=True, default=repr).encode()).hexdigest()


def _kind(event_type: object) -> ApprovalKind:
    return ApprovalKind.INPUT_REQUIRED if is_a(event_type, "HumanResponseEvent") else ApprovalKind.EXTERNAL
