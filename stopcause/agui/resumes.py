"""Which question each answer of an input answers, and what a decision it is.

An answer is held against its thread: taken where its interrupt is open, repeated where the same was said before,
unrecognised where nothing of the kind was asked. Nothing is changed here: `ledger` does that, and the guard has its own
rules for what may be sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from stopcause.agui.values import Decided, Entry, Input, Interrupt, Raised, Thread
from stopcause.agui.words import ANSWERS, CANCELLED, RESOLVED, UNANSWERED, UNDER_WAY, Channel, State
from stopcause.receipts.vocabulary import ApprovalKind, Decision

ALLOWS = frozenset({Decision.APPROVED, Decision.EDITED, Decision.ANSWERED})
_WAS_ANSWERED = UNDER_WAY | {State.CLOSED}


class Matched(NamedTuple):
    """The answers of an input, by what they answer. Numbers are places in `thread.raised`.

    Attributes:
        taken: Questions that this run is the first to answer.
        own: Those that it is known to have answered, because it was matched before.
        repeated: Answered by another run, in the same way, and that was taken.
        changed: Answered by another run, in another way.
        stale: Ids of an earlier run's questions, or of one that is no longer asked.
        unknown: Ids that nobody raised, and entries that are no answer.
        duplicates: Ids with more than one entry; the first counts.
        uncovered: Places of open questions without an entry.
        has_entries: Whether there was any answer at all.
    """

    taken: Mapping[int, Entry]
    own: tuple[int, ...] = ()
    repeated: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    stale: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    uncovered: tuple[int, ...] = ()
    has_entries: bool = False

    @property
    def unrecognised(self) -> tuple[str, ...]:
        """Ids of the entries that answer nothing."""
        return (*self.stale, *self.unknown)

    @property
    def is_unrecognised(self) -> bool:
        """Whether there are answers, and none of them is one to anything that was asked."""
        return bool(self.unrecognised) and not (self.taken or self.own or self.repeated or self.changed)


NOTHING_SAID = Matched({})


def decision_of(entry: Entry, kind: ApprovalKind) -> Decision:
    """What an answer decides. A bare true or false decides only where that was asked."""
    if entry.status == CANCELLED:
        return Decision.CANCELLED
    yes = entry.bare if kind is ApprovalKind.CONFIRMATION and entry.approved is None else entry.approved
    if yes is False:
        return Decision.DENIED
    if entry.is_edited:
        return Decision.EDITED
    return Decision.APPROVED if yes else Decision.ANSWERED


def decided(raised: Raised, answer: Entry) -> Decided:
    """What an answer decides, as it is told."""
    decision = decision_of(answer, raised.interrupt.kind)
    return Decided(raised.run_id, raised.interrupt.id, decision, digest=answer.digest or None)


def match(thread: Thread, run_id: str, given: Input | None, at: datetime | None) -> Matched:
    """Hold an input's answers against its thread, as of `at`. What a run was matched with before, it is again."""
    if given is None:
        return NOTHING_SAID
    entries, duplicates = _entries(thread, run_id, given)
    places = _Places(thread, run_id, has_entries=bool(entries))
    found_as = [(place := places.of(entry), entry, _how(thread, place, entry, run_id, at)) for entry in entries]

    def places_of(how: _How) -> tuple[int, ...]:
        return tuple(place for place, _, said in found_as if said is how and place is not None)

    def ids_of(how: _How) -> tuple[str, ...]:
        return tuple(entry.id for _, entry, said in found_as if said is how)

    taken = {place: entry for place, entry, how in found_as if how is _How.TAKEN and place is not None}
    return Matched(
        taken=taken,
        own=places_of(_How.OWN),
        repeated=places_of(_How.REPEATED),
        changed=places_of(_How.CHANGED),
        stale=ids_of(_How.STALE),
        unknown=ids_of(_How.UNKNOWN),
        duplicates=duplicates,
        uncovered=tuple(place for place in places.open if place not in taken),
        has_entries=bool(entries),
    )


class _How(Enum):
    """What an answer is to its thread, as the fields of `Matched` have it."""

    TAKEN = "taken"
    OWN = "own"
    REPEATED = "repeated"
    CHANGED = "changed"
    STALE = "stale"
    UNKNOWN = "unknown"


def _how(thread: Thread, place: int | None, entry: Entry, run_id: str, at: datetime | None) -> _How:
    if place is None or entry.status not in ANSWERS:
        return _How.UNKNOWN
    each = thread.raised[place]
    if each.state in UNANSWERED:
        return _How.TAKEN if thread.asks(each) else _How.STALE
    if each.answered_by == run_id:  # if it broke off, this is its second try
        return _How.TAKEN if each.state is State.UNKNOWN else _How.OWN
    if each.answer is None or each.state not in _WAS_ANSWERED:
        return _How.STALE
    if not is_same(each.answer, entry):
        return _How.TAKEN if _gives_up_late(each, entry, at) else _How.CHANGED
    # One that is not closed may never have arrived: it is this run's now.
    return _How.REPEATED if each.state is State.CLOSED else _How.TAKEN


def _gives_up_late(raised: Raised, entry: Entry, at: datetime | None) -> bool:
    """The one way past an expired question whose answer may never have arrived: it can only be given up."""
    is_settled = raised.state is State.CLOSED
    return entry.status == CANCELLED and not is_settled and is_expired(raised.interrupt, at)


def is_same(one: Entry, other: Entry) -> bool:
    """Whether two answers say the same: an absent payload and null differ."""
    return (one.status, one.digest) == (other.status, other.digest)


class _Places:
    """Where in a thread an id is looked for: what this run answered before, then the paused run, then earlier ones.

    Most runs of a long thread answer nothing: for them no table is made.
    """

    def __init__(self, thread: Thread, run_id: str, *, has_entries: bool) -> None:
        self._own: dict[str, int] = {}
        self._paused: dict[str, int] = {}
        self._earlier: dict[str, int] = {}
        paused, is_open = thread.paused_run, State.OPEN
        self.open = [n for n, each in enumerate(thread.raised) if each.run_id == paused and each.state is is_open]
        for place, each in enumerate(thread.raised if has_entries else ()):
            if each.answered_by == run_id and each.state not in UNANSWERED:
                self._own[each.interrupt.id] = place
            home = self._paused if thread.asks(each) else self._earlier
            home[each.interrupt.id] = place

    def of(self, entry: Entry) -> int | None:
        tables = (self._own, self._paused, self._earlier)
        return next((table[entry.id] for table in tables if entry.id in table), None)


# Entries --------------------------------------------------------------------------------------------------------------


def _entries(thread: Thread, run_id: str, given: Input) -> tuple[list[Entry], tuple[str, ...]]:
    """The answers of an input, one for each id, and the ids that had more. `resume` counts before the old channel."""
    entries: dict[str, Entry] = {}
    duplicates: dict[str, None] = {}
    said = given.resume or tuple(_by_the_old_channel(thread, run_id, given.legacy_answers))
    for entry in (*said, *_by_messages(thread, run_id, given)):
        first = entries.get(entry.id)
        if first is not None:
            duplicates[entry.id] = None
        if first is None or first.status not in ANSWERS:  # what is no answer hides none
            entries[entry.id] = entry
    return list(entries.values()), tuple(duplicates)


def _by_the_old_channel(thread: Thread, run_id: str, answers: Sequence[Entry]) -> Iterator[Entry]:
    """One answer without an id is one to everything that the paused run asks."""
    for answer in answers:
        if answer.id:
            yield answer
            continue
        for each in thread.raised:
            is_asked = thread.asks(each) and each.state is State.OPEN
            if (is_asked or each.answered_by == run_id) and each.interrupt.channel is not Channel.TOOL:
                yield answer._replace(id=each.interrupt.id)


def _by_messages(thread: Thread, run_id: str, given: Input) -> Iterator[Entry]:
    """A call to the client's own tool that is a wait is answered by a message with its result."""
    for each in thread.raised if given.answered else ():
        if each.interrupt.channel is not Channel.TOOL or each.interrupt.tool_call_id not in given.answered:
            continue
        if each.answered_by == run_id or (thread.asks(each) and each.state in UNANSWERED):
            yield Entry(each.interrupt.id, RESOLVED, "", has_payload=True)


def is_expired(interrupt: Interrupt, at: datetime | None) -> bool:
    """Whether its hard expiry was over: now or before is over (spec 1.0, patterns/interrupt-resume)."""
    return at is not None and interrupt.expires_at is not None and interrupt.expires_at <= at
