"""A complete list of answers to what a thread waits for, built one by one; nothing that a guard would refuse.

    resume = guard.answers("thread-1").approve("int-1").deny("int-2").cancel_rest().build()

The answers themselves are in the list and nowhere else: an error names interrupts, never what was said to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Self

from stopcause.agui import guard_rules, resumes, schemas
from stopcause.agui.findings import found
from stopcause.agui.inputs import read_answer
from stopcause.agui.schemas import Held
from stopcause.agui.values import Interrupt, Json, Thread
from stopcause.agui.words import CANCELLED, RESOLVED, Channel
from stopcause.errors import ResumeRefusedError
from stopcause.receipts.vocabulary import ApprovalKind

_ABSENT: Json = object()  # a payload that is not there, which is another answer than null


class Answers:
    """The answers of one input. An interrupt may be answered again: the last answer counts.

    Args:
        thread: What is known of the thread. What it waits for is `waiting`.
        now: By when something has expired: that may only be cancelled.
    """

    def __init__(self, thread: Thread, now: datetime) -> None:
        asked = (each.interrupt for each in thread.open() if each.interrupt.channel is not Channel.TOOL)
        self.waiting: Mapping[str, Interrupt] = {each.id: each for each in asked}
        self._now = now
        self._entries: dict[str, Json] = {}

    def __repr__(self) -> str:
        """How many are answered; not how."""
        return f"<Answers to {len(self._entries)} of {len(self.waiting)}>"

    @property
    def missing(self) -> tuple[str, ...]:
        """What has no answer yet."""
        return tuple(each for each in self.waiting if each not in self._entries)

    def resolve(self, interrupt_id: str, payload: Json = _ABSENT) -> Self:
        """Answers it. False, 0, "" and None are answers.

        Raises:
            ResumeRefusedError: It is not open, it has expired, or the payload is not what it asked for.
        """
        interrupt = self._open(interrupt_id)
        if resumes.is_expired(interrupt, self._now):
            raise _refused("EXPIRED_ANSWER", interrupt_id)
        said = {} if payload is _ABSENT else {"payload": payload}
        entry = read_answer(interrupt_id, RESOLVED, said)
        for name in guard_rules.payload_faults(interrupt, entry, {entry.digest: payload} if said else {}):
            if guard_rules.refuses(found(name)):
                raise _refused(name, interrupt_id)
        self._entries[interrupt_id] = {"interruptId": interrupt_id, "status": RESOLVED, **said}
        return self

    def approve(self, interrupt_id: str, edited_args: Mapping[str, Json] | None = None) -> Self:
        """Says yes, in the form that it asked for; with the whole of the call's new arguments, where it offers edits.

        Raises:
            ResumeRefusedError: As `resolve`; and where no form of a yes is what it asked for.
        """
        if edited_args is not None:
            return self.resolve(interrupt_id, {"approved": True, "editedArgs": dict(edited_args)})
        return self.resolve(interrupt_id, _word(self._open(interrupt_id), is_yes=True))

    def deny(self, interrupt_id: str) -> Self:
        """Says no, in the form that it asked for: a no is an answer, and not a giving up.

        Raises:
            ResumeRefusedError: As `approve`.
        """
        return self.resolve(interrupt_id, _word(self._open(interrupt_id), is_yes=False))

    def cancel(self, interrupt_id: str) -> Self:
        """Gives it up: the only thing that may be said to one that has expired.

        Raises:
            ResumeRefusedError: It is not open.
        """
        self._open(interrupt_id)
        self._entries[interrupt_id] = {"interruptId": interrupt_id, "status": CANCELLED}
        return self

    def cancel_rest(self) -> Self:
        """Gives up everything that has no answer yet."""
        for each in self.missing:
            self.cancel(each)
        return self

    def build(self) -> list[Json]:
        """The list for `RunAgentInput.resume`, in the order in which they were asked.

        Raises:
            ResumeRefusedError: Something has no answer; names it.
        """
        if missing := self.missing:
            raise _refused("UNCOVERED", *missing)
        return [self._entries[each] for each in self.waiting]

    def _open(self, interrupt_id: str) -> Interrupt:
        if interrupt_id not in self.waiting:
            raise _refused("RESUME_UNKNOWN_ID", interrupt_id)
        return self.waiting[interrupt_id]


def _word(interrupt: Interrupt, *, is_yes: bool) -> Json:
    """A yes or no: as the schema has it; without one, a confirmation is a boolean (the contract before 1.0)."""
    forms: tuple[Json, ...] = ({"approved": is_yes}, is_yes)
    if interrupt.schema is None:
        return forms[interrupt.kind is ApprovalKind.CONFIRMATION]
    return next((each for each in forms if schemas.hold(interrupt.schema, each) is Held.FITS), forms[0])


def _refused(name: str, *ids: str) -> ResumeRefusedError:
    finding = found(name, *ids)
    return ResumeRefusedError(f"{name} {' '.join(finding.ids)}: no list of answers was built.", (finding,))
