"""CrewAI: an agent asks its model, or waits for a person. Blocks around the functions in which it does.

No event tells of an answer that `max_iter` forced, of a model of a class of the program's own, or of a task's answer
that waits for a person.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stopcause.receipts.hooks.crewai.call import is_guarding, open_call, open_turn
from stopcause.receipts.vocabulary import ApprovalKind

if TYPE_CHECKING:
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook

_PENDING = "HumanFeedbackPending"


class Turn:
    """One answer of an agent's model, while it is waited for. A `with` block that lets everything through."""

    __slots__ = ("_hook", "_token", "call", "executor", "is_forced", "is_told")

    def __init__(self, hook: Hook, executor: Foreign, *, is_forced: bool) -> None:
        self._hook = hook
        self.call = None if is_guarding.get() else open_call.get()
        self.executor = executor
        self.is_forced = is_forced
        self.is_told = False

    def __enter__(self) -> None:
        self._token = open_turn.set(None if self.call is None else self)
        if self.call is not None and not self.call.is_over:
            with self._hook.guard("turn_begins"):
                self.call.turn_begins(self)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        with contextlib.suppress(ValueError):  # a coroutine may be closed in another context
            open_turn.reset(self._token)
        if self.call is not None and not self.call.is_over:
            with self._hook.guard("turn_ends"):
                self.call.turn_ends(self, error)


class Feedback:
    """A person looks at a task's answer (`Task.human_input`), and the run blocks meanwhile."""

    __slots__ = ("_approval_id", "_call", "_hook", "_turns")

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._call = open_call.get()
        self._approval_id: str | None = None
        self._turns = 0

    def __enter__(self) -> None:
        if self._call is not None and not self._call.is_over:
            with self._hook.guard("feedback"):
                self._turns = self._call.turns
                self._approval_id = self._call.ask(ApprovalKind.CONFIRMATION)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """What the agent does with the answer may fail, and is tried again; the answer was given all the same.

        A provider that asks elsewhere leaves by an exception, and the wait stays open; so does one that is interrupted.
        """
        call, is_over = self._call, kind is None or (issubclass(kind, Exception) and kind.__name__ != _PENDING)
        if call is not None and self._approval_id is not None and is_over:
            with self._hook.guard("feedback"):
                is_answered = kind is None or call.turns > self._turns
                call.run.decided(self._approval_id, "answered" if is_answered else "cancelled")
