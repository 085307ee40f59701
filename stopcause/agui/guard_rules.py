"""What is wrong with an input that is about to be sent, given its thread: rules R50 to R65. Pure; the guard calls it.

The consumer answers for coverage, since it alone holds what the interrupted run asked (spec 1.0, interrupt-resume).
Which answer answers which question is in `resumes`; here is what may not be sent, and what is worth knowing.

Where the texts are silent, this holds:
- A list that repeats answers which were taken, and answers what is still open, is fine: the first are REPLAY, the
  others are held against every rule. A list that leaves the taken ones out is fine too: only what is open is demanded.
- An answer whose run has not ended, or broke off, may be sent once more as it was, and in no other way; a run without
  answers may start beside it. Once it has expired it may only be given up: nobody knows whether it ever arrived.
- The channel before `resume` answers a thread that asked by CUSTOM events, and no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from stopcause.agui import resumes, schemas
from stopcause.agui.cards import CARDS
from stopcause.agui.findings import Finding, found
from stopcause.agui.resumes import Matched
from stopcause.agui.schema_budget import one_budget
from stopcause.agui.schemas import Held
from stopcause.agui.values import Entry, Input, Interrupt, Json, Raised, Thread
from stopcause.agui.words import ANSWERS, CANCELLED, Channel, Level, Side, State

_UNDER_WAY = {State.SENT: "ANSWER_UNDER_WAY", State.UNKNOWN: "ANSWER_FATE_UNKNOWN"}
_HELD = {
    Held.MISMATCH: "PAYLOAD_SCHEMA_MISMATCH",
    Held.UNREADABLE: "SCHEMA_UNREADABLE",
    Held.TOO_LARGE: "PAYLOAD_TOO_LARGE",
}
_BY_OTHERS = frozenset({"RESUME_STALE_ID", "UNCOVERED", "SILENT_CONTINUE", "ANSWER_CHANGED"})
_REFUSE = frozenset({Level.MUST, Level.SHOULD})
_ORDER = {card.name: place for place, card in enumerate(CARDS)}

Fault = tuple[str, str]  # the finding's name, and the id that it is about; "" is about the input


class Asked(NamedTuple):
    """An input that is about to be sent.

    Attributes:
        payloads: By digest, as given.
        is_elsewhere: Whether an interrupt of this id is known on another thread.
    """

    thread: Thread
    given: Input
    payloads: Mapping[str, Json]
    now: datetime
    is_elsewhere: Callable[[str], bool]


def findings_of(asked: Asked) -> tuple[Finding, ...]:
    """Each once, with all ids that it is about, after what is wrong with the input's own shape."""
    ids: dict[str, dict[str, None]] = defaultdict(dict)
    with one_budget():
        for name, each in _faults(asked._replace(given=without_old_channel(asked.thread, asked.given))):
            ids[name].update({each: None} if each else {})
    ordered = sorted(ids, key=_ORDER.__getitem__)
    return (*asked.given.findings, *(found(name, *ids[name]) for name in ordered))


def refuses(finding: Finding) -> bool:
    """Whether it keeps an input from being sent.

    That there are more answers than are read (`INPUT_TOO_LARGE`) need not: no run asks for so much, so that some of
    those before are refused.
    """
    return finding.side is Side.CONSUMER and finding.level in _REFUSE


def overtaken(thread: Thread, given: Input, now: datetime) -> tuple[Finding, ...]:
    """What others may have done to a thread since an input was checked: answered it, or asked for something else."""
    asked = Asked(thread, given, {}, now, lambda _: False)
    return tuple(each for each in findings_of(asked) if each.name in _BY_OTHERS)


def without_old_channel(thread: Thread, given: Input) -> Input:
    """The input as its thread hears it: what `forwardedProps.command.resume` brings is an answer before 1.0 only."""
    asks = [each for each in thread.raised if thread.asks(each)]
    is_old = bool(asks) and all(each.interrupt.channel is Channel.CUSTOM for each in asks)
    return given if is_old else given._replace(legacy_answers=())


def _faults(asked: Asked) -> Iterator[Fault]:
    matched = resumes.match(asked.thread, asked.given.run_id, asked.given, asked.now)
    yield from _coverage(asked, matched)
    yield from (("RESUME_DUPLICATE", each) for each in matched.duplicates)
    yield from _unrecognised(asked, matched)
    yield from _under_way(asked.thread)
    for place, entry in matched.taken.items():
        raised = asked.thread.raised[place]
        if raised.state is State.LOST:  # nobody asks for it any more
            yield "RESUME_STALE_ID", raised.interrupt.id
        elif raised.state not in _UNDER_WAY:
            yield from _answer(asked, raised.interrupt, entry)
    for raised, entry in _again(asked, matched):
        yield from _once_more(asked, raised, entry)


# The list as a whole --------------------------------------------------------------------------------------------------


def _coverage(asked: Asked, matched: Matched) -> Iterator[Fault]:
    name = "UNCOVERED" if matched.has_entries else "SILENT_CONTINUE"
    for place in matched.uncovered:
        yield name, asked.thread.raised[place].interrupt.id


def _unrecognised(asked: Asked, matched: Matched) -> Iterator[Fault]:
    """Answers to something that this thread does not ask. One that is malformed is no answer, and is said to be so."""
    malformed = {entry.id for entry in asked.given.resume or () if entry.status not in ANSWERS}
    unknown = [each for each in matched.unknown if each not in malformed]
    yield from (("RESUME_STALE_ID", each) for each in matched.stale)
    for each in unknown:
        yield "RESUME_WRONG_THREAD" if asked.is_elsewhere(each) else "RESUME_UNKNOWN_ID", each
    is_idle = matched.is_unrecognised and not matched.uncovered and not any(_under_way(asked.thread))
    if is_idle and (matched.stale or unknown):
        yield "RESUME_NOTHING_OPEN", ""


def _under_way(thread: Thread) -> Iterator[Fault]:
    for each in thread.raised:
        if thread.asks(each) and each.state in _UNDER_WAY:
            yield _UNDER_WAY[each.state], each.interrupt.id


# One answer -----------------------------------------------------------------------------------------------------------


def _answer(asked: Asked, interrupt: Interrupt, entry: Entry) -> Iterator[Fault]:
    """The first answer to something open."""
    if interrupt.is_expiry_unreadable:
        yield "EXPIRY_UNREADABLE", interrupt.id
    if entry.status == CANCELLED:
        if entry.has_payload:
            yield "CANCELLED_PAYLOAD", interrupt.id
    elif resumes.is_expired(interrupt, asked.now):
        yield "EXPIRED_ANSWER", interrupt.id
    else:
        yield from ((name, interrupt.id) for name in payload_faults(interrupt, entry, asked.payloads))


def payload_faults(interrupt: Interrupt, entry: Entry, payloads: Mapping[str, Json]) -> Iterator[str]:
    """What is wrong with the payload of an answer that resolves; nothing where the interrupt describes none."""
    if interrupt.schema is None and interrupt.schema_digest is not None:
        yield "SCHEMA_UNREADABLE"  # it was too large to be kept
        return
    if entry.is_edited and not schemas.offers_edits(interrupt.schema):
        yield "EDITS_NOT_OFFERED"
    by_list = entry.digest in payloads or not entry.has_payload  # that of the old channel is not held against anything
    if interrupt.schema is not None and by_list:
        held = schemas.hold(interrupt.schema, payloads.get(entry.digest))
        if held in _HELD:
            yield _HELD[held]


def _again(asked: Asked, matched: Matched) -> Iterator[tuple[Raised, Entry]]:
    """Answers to what was answered before, by this very run too, beside where that stands."""
    raised_before = asked.thread.raised
    answers = asked.given.resume or asked.given.legacy_answers
    entries = {entry.id: entry for entry in reversed(answers)}  # of two to one question the first counts
    retried = (place for place in matched.taken if raised_before[place].state in _UNDER_WAY)
    for place in (*matched.own, *matched.repeated, *matched.changed, *retried):
        raised = raised_before[place]
        entry = entries.get(raised.interrupt.id, entries.get(""))
        if entry is not None:  # a wait of the client's own is answered by a message
            yield raised, entry


def _once_more(asked: Asked, raised: Raised, entry: Entry) -> Iterator[Fault]:
    """An answer to what was answered: fine if it is the same, and of the last run that asked."""
    if not asked.thread.asks(raised):
        yield "RESUME_STALE_ID", raised.interrupt.id
        return
    is_same = raised.answer is not None and resumes.is_same(raised.answer, entry)
    is_late = raised.state in _UNDER_WAY and resumes.is_expired(raised.interrupt, asked.now)
    if is_late and not (is_same and entry.status == CANCELLED):
        yield from _answer(asked, raised.interrupt, entry)  # it may be given up, and no more
    else:
        yield "REPLAY" if is_same else "ANSWER_CHANGED", raised.interrupt.id
