"""What the application sent, held against what its thread asks.

Rules: R15, R34, R50 to R54, R56 to R60, R62, R63, R65, R66.

The consumer answers for coverage, since it alone holds what the interrupted run asked (spec 1.0,
patterns/interrupt-resume). The guard says the same before an input is sent, by `guard_rules`; here it was sent. That an
input has not the shape of one is found where it is read (`inputs`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from stopcause.agui import schemas
from stopcause.agui.guard_rules import payload_faults
from stopcause.agui.resumes import Matched, is_expired, is_same
from stopcause.agui.scene import Scene
from stopcause.agui.schema_budget import one_budget
from stopcause.agui.values import NOTHING, Entry, Json, Raised, Thread
from stopcause.agui.words import ANSWERS, CANCELLED, RESOLVED, UNDER_WAY, UNSETTLED, Channel, State
from stopcause.errors import MissingExtraError

Ids = Iterable[str]
Unfit = Mapping[str, tuple[str, ...]]


def unfit(before: Thread, matched: Matched, payloads: Mapping[str, Json] | None, at: datetime | None) -> Unfit | None:
    """What is wrong with the payloads of these answers: the name of a finding -> interrupts. None: nobody looked.

    Where no schema can be read (the extra is not installed), nobody looks: that is no fault of the payloads.
    """
    if payloads is None:
        return None
    asked = [(each, entry) for each, entry in _resolved(before, matched) if _is_first(each) and not _late(each, at)]
    if any(each.interrupt.schema is not None for each, _ in asked) and not _reads_schemas():
        return None
    about: dict[str, list[str]] = defaultdict(list)
    with one_budget():
        for each, entry in asked:
            for name in payload_faults(each.interrupt, entry, payloads):
                about[name].append(each.interrupt.id)
    return {name: tuple(ids) for name, ids in about.items()} or NOTHING


def fits(before: Thread, matched: Matched, found: Unfit | None) -> Mapping[str, bool]:
    """Of the answers that were held to a schema, by interrupt: whether they fit."""
    if found is None:
        return NOTHING
    unsure = {each for name in ("SCHEMA_UNREADABLE", "PAYLOAD_TOO_LARGE") for each in found.get(name, ())}
    held = (each.interrupt for each, _ in _resolved(before, matched) if _is_first(each))
    wrong = found.get("PAYLOAD_SCHEMA_MISMATCH", ())
    return {each.id: each.id not in wrong for each in held if each.schema is not None and each.id not in unsure}


def _reads_schemas() -> bool:
    try:
        schemas.require()
    except MissingExtraError:
        return False
    return True


def _resolved(before: Thread, matched: Matched) -> Iterator[tuple[Raised, Entry]]:
    """Questions that an answer resolves, with it."""
    for place, entry in matched.taken.items():
        if entry.status == RESOLVED:
            yield before.raised[place], entry


def _is_first(raised: Raised) -> bool:
    return raised.state is State.OPEN


def _late(raised: Raised, at: datetime | None) -> bool:
    return is_expired(raised.interrupt, at)


# Runs and calls -------------------------------------------------------------------------------------------------------


def run_id_reused(scene: Scene) -> Ids:
    """Running once more takes a new id (spec 1.0, basic/transports): under the old one there are two ends.

    What a stream says of another run than it was asked for, nobody asked for.
    """
    given = scene.run.input
    is_asked = given is not None and not given.is_echo and given.run_id == scene.run.run_id
    return [scene.run.run_id] if is_asked and scene.run.run_id in scene.before.runs else []


def unanswered_call(scene: Scene) -> Ids:
    """What was left to the client comes back in the next input's messages (spec 1.0, events/tool-calls).

    A call that the policy calls a wait is asked for: that it has no answer is said there.
    """
    given = scene.run.input
    if given is None or not given.has_messages:
        return ()
    waits = {each.interrupt.tool_call_id for each in scene.before.raised if each.interrupt.channel is Channel.TOOL}
    return [call for call in scene.before.left if call not in given.answered and call not in waits]


# Which questions are answered -----------------------------------------------------------------------------------------


def resume_wrong_thread(scene: Scene) -> Ids:
    """The thread is the one that was interrupted (spec 1.0, patterns/interrupt-resume; before it, rule 1)."""
    return [each for each in _unknown(scene) if scene.is_elsewhere(each)]


def resume_unknown_id(scene: Scene) -> Ids:
    """Each entry names an interrupt of the run that it continues (the same page; before it, rule 2)."""
    return [each for each in _unknown(scene) if not scene.is_elsewhere(each)]


def _unknown(scene: Scene) -> list[str]:
    """One that is malformed is no answer, and is said to be so."""
    given = scene.run.input
    malformed = {each.id for each in (given.resume if given is not None else None) or () if each.status not in ANSWERS}
    return [each for each in scene.matched.unknown if each not in malformed]


def resume_stale_id(scene: Scene) -> Ids:
    """That run is the most recent one that was interrupted (the same page)."""
    lost = (each.interrupt.id for each in scene.raised(scene.matched.taken) if each.state is State.LOST)
    answered = (*scene.matched.repeated, *scene.matched.changed)
    return [*scene.matched.stale, *lost, *scene.ids(place for place in answered if not _is_of_last(scene, place))]


def _is_of_last(scene: Scene, place: int) -> bool:
    return scene.before.asks(scene.before.raised[place])


def input_unseen(scene: Scene) -> Ids:
    """Ours: a stream alone does not say what it was asked with."""
    is_asked = any(scene.before.asks(each) and each.state in UNSETTLED for each in scene.before.raised)
    return [scene.run.run_id] if scene.run.input is None and is_asked else []


def uncovered(scene: Scene) -> Ids:
    """The list covers every interrupt: answered, or given up. To leave one out is neither (the same page)."""
    return _left_open(scene) if scene.matched.has_entries else ()


def silent_continue(scene: Scene) -> Ids:
    """The same rule, where there is no list at all, or an empty one."""
    return () if scene.matched.has_entries else _left_open(scene)


def _left_open(scene: Scene) -> list[str]:
    asked = scene.raised(scene.matched.uncovered)
    return [each.interrupt.id for each in asked if each.interrupt.channel is not Channel.TOOL]


def resume_nothing_open(scene: Scene) -> Ids:
    """A list on a run that continues none answers nothing (the same page, error handling)."""
    matched = scene.matched
    is_idle = matched.is_unrecognised and not matched.uncovered and not _is_under_way(scene)
    return (*matched.stale, *_unknown(scene)) if is_idle else _unheard(scene)


def _is_under_way(scene: Scene) -> bool:
    """What was answered by a run that has not ended, or broke off, may still be asked for."""
    return any(scene.before.asks(each) and each.state in UNDER_WAY for each in scene.before.raised)


def _unheard(scene: Scene) -> Ids:
    """An answer by the channel before `resume` has no id: with nothing open it answers nothing, or is sent again."""
    return [scene.run.run_id] if _idle_answer(scene) is not None and not _sent_before(scene) else []


def _idle_answer(scene: Scene) -> Entry | None:
    """What that channel brings where nothing hears it."""
    given = scene.run.input
    if given is None or given.resume or scene.matched.has_entries:
        return None
    return next(iter(given.legacy_answers), None)


def _sent_before(scene: Scene) -> list[str]:
    """What it had answered before, in the same way."""
    answer = _idle_answer(scene)
    asked = [each for each in scene.before.raised if scene.before.asks(each)] if answer is not None else []
    return [each.interrupt.id for each in asked if each.answer and answer and is_same(each.answer, answer)]


# How they are answered ------------------------------------------------------------------------------------------------


def expired_answer(scene: Scene) -> Ids:
    """What the consumer judges to be expired is not answered; it may be given up (the same page)."""
    late = [each.interrupt.id for each, _ in _resolved(scene.before, scene.matched) if _late(each, scene.sent_at)]
    return [*late, *scene.ids(place for place in scene.matched.changed if _is_changed_late(scene, place))]


def _is_changed_late(scene: Scene, place: int) -> bool:
    """Nobody knows whether the answer under way arrived. Once it has expired, another may only give up."""
    raised = scene.before.raised[place]
    return raised.state in UNDER_WAY and _late(raised, scene.sent_at)


def expiry_not_judged(scene: Scene) -> Ids:
    """Ours: without a time nobody can tell."""
    if scene.sent_at is not None:
        return ()
    asked = (each.interrupt for each, _ in _resolved(scene.before, scene.matched))
    return [each.id for each in asked if each.expires_at is not None]


def resume_duplicate(scene: Scene) -> Ids:
    """One entry for each interrupt that is answered (the same page): of two the first counts."""
    return scene.matched.duplicates


def cancelled_payload(scene: Scene) -> Ids:
    """Who gives up leaves the payload out (contract before 1.0, resuming)."""
    given = scene.run.input
    entries = given.resume if given is not None and given.resume else ()
    return [each.id for each in entries if each.status == CANCELLED and each.has_payload]


def payload_schema_mismatch(scene: Scene) -> Ids:
    """A client validates before it submits (contract before 1.0, rule 6). A falsy payload is one."""
    return scene.unfit.get("PAYLOAD_SCHEMA_MISMATCH", ())


def schema_unreadable(scene: Scene) -> Ids:
    """Then the client cannot (contract before 1.0, rule 6)."""
    return scene.unfit.get("SCHEMA_UNREADABLE", ())


def payload_too_large(scene: Scene) -> Ids:
    """Ours: nobody holds so much against a schema."""
    return scene.unfit.get("PAYLOAD_TOO_LARGE", ())


def edits_not_offered(scene: Scene) -> Ids:
    """That the schema has `editedArgs` is what offers edits (contract before 1.0, approve with edits)."""
    asked = ((each.interrupt, entry) for each, entry in _resolved(scene.before, scene.matched) if _is_first(each))
    return [
        each.id
        for each, entry in asked
        if entry.is_edited
        and (each.schema is not None or each.schema_digest is None)  # else it was too large to be kept
        and not is_expired(each, scene.sent_at)
        and not schemas.offers_edits(each.schema)
    ]


def history_lost(scene: Scene) -> Ids:
    """A run that resumes carries the messages that there were (spec 1.0, patterns/interrupt-resume)."""
    given = scene.run.input
    if given is None or not given.has_messages:
        return ()
    asked = (each.interrupt for each, _ in _resolved(scene.before, scene.matched))
    calls = given.answered | given.calls.keys()
    return [each.id for each in asked if each.tool_call_id is not None and each.tool_call_id not in calls]


# Answers once more ----------------------------------------------------------------------------------------------------


def answer_changed(scene: Scene) -> Ids:
    """An answer that was taken stands: only the same may be sent again (contract before 1.0, rule 5)."""
    changed = (place for place in scene.matched.changed if _is_of_last(scene, place))
    return scene.ids(place for place in changed if not _is_changed_late(scene, place))


def replay(scene: Scene) -> Ids:
    """The same once more is safe (contract before 1.0, rule 5)."""
    again = [place for place, entry in scene.matched.taken.items() if _is_sent_again(scene, place, entry)]
    taken = (place for place in scene.matched.repeated if _is_of_last(scene, place))
    return [*scene.ids((*taken, *again)), *_sent_before(scene)]


def _is_sent_again(scene: Scene, place: int, entry: Entry) -> bool:
    """Whether another run had sent the same, and nobody knows what became of it."""
    raised = scene.before.raised[place]
    is_theirs = raised.state in UNDER_WAY and raised.answered_by != scene.run.run_id
    return is_theirs and raised.answer is not None and is_same(raised.answer, entry)


def input_unreadable(scene: Scene) -> Ids:
    """An input has a thread and a run (spec 1.0, basic/run-input)."""
    return [scene.run.run_id] if scene.is_unreadable else []


def two_channels(scene: Scene) -> Ids:
    """Ours: agents differ in which of the two they hear."""
    given = scene.run.input
    return [scene.run.run_id] if given is not None and given.resume and given.legacy_answers else []


RULES: Mapping[str, Callable[[Scene], Ids]] = {
    "RUN_ID_REUSED": run_id_reused,
    "UNANSWERED_CALL": unanswered_call,
    "RESUME_WRONG_THREAD": resume_wrong_thread,
    "RESUME_UNKNOWN_ID": resume_unknown_id,
    "RESUME_STALE_ID": resume_stale_id,
    "UNCOVERED": uncovered,
    "SILENT_CONTINUE": silent_continue,
    "EXPIRED_ANSWER": expired_answer,
    "EXPIRY_NOT_JUDGED": expiry_not_judged,
    "RESUME_DUPLICATE": resume_duplicate,
    "CANCELLED_PAYLOAD": cancelled_payload,
    "RESUME_NOTHING_OPEN": resume_nothing_open,
    "PAYLOAD_SCHEMA_MISMATCH": payload_schema_mismatch,
    "SCHEMA_UNREADABLE": schema_unreadable,
    "PAYLOAD_TOO_LARGE": payload_too_large,
    "HISTORY_LOST": history_lost,
    "EDITS_NOT_OFFERED": edits_not_offered,
    "ANSWER_CHANGED": answer_changed,
    "REPLAY": replay,
    "INPUT_UNSEEN": input_unseen,
    "INPUT_UNREADABLE": input_unreadable,
    "TWO_CHANNELS": two_channels,
}
