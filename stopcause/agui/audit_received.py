"""What the agent made of its answers: whose fault is what `turns` saw happen.

Rules: R30, R64, R70 to R77, R79 to R83, R85, R86, R96, R97.

A producer need not keep anything between runs (spec 1.0, patterns/interrupt-resume). What it must not do, it must not
do of what it could tell: that is in `_known`. What was wrong with the answers themselves is in `audit_answers`, and
what is a refusal without a reason in `audit_refused`.

Where the texts are silent, this holds: a question that is asked again was not passed over, whatever its answer was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from stopcause.agui import audit_refused, resumes
from stopcause.agui.scene import Scene
from stopcause.agui.values import Entry, Interrupt, Json, Raised
from stopcause.agui.words import ANSWERS, RESOLVED, Channel, Ending, Mode
from stopcause.receipts.vocabulary import Decision

_ALLOWS_A_CALL = frozenset({Decision.APPROVED, Decision.EDITED})

Ids = Iterable[str]

# Answers to something else --------------------------------------------------------------------------------------------


def unrecognised_entry(scene: Scene) -> Ids:
    """The run SHOULD go on without it, and warn (spec 1.0, patterns/interrupt-resume). One that acts is no such."""
    is_passed_over = scene.turned.is_past and not action_on_unrecognised_answer(scene)
    return scene.matched.unrecognised if is_passed_over else ()


def unrecognised_entry_failed_run(scene: Scene) -> Ids:
    """The same rule, broken: the run failed by it. What has not the shape of an answer may fail it."""
    is_by_it = audit_refused.blames_the_input(scene) and not scene.matched.uncovered
    malformed = _malformed(scene)
    return [each for each in scene.matched.unrecognised if is_by_it and each not in malformed]


def _malformed(scene: Scene) -> frozenset[str]:
    given = scene.run.input
    entries = given.resume if given is not None and given.resume else ()
    return frozenset(each.id for each in entries if each.status not in ANSWERS)


# Gated calls that came back -------------------------------------------------------------------------------------------


def action_without_answer(scene: Scene) -> Ids:
    """The interrupted action MUST NOT run on an absent entry (spec 1.0, patterns/interrupt-resume)."""
    return () if scene.matched.is_unrecognised else _without_leave(scene)


def action_on_unrecognised_answer(scene: Scene) -> list[str]:
    """The same rule, where the only answers were to something else."""
    return _without_leave(scene) if scene.matched.is_unrecognised else []


def _without_leave(scene: Scene) -> list[str]:
    """Of an input that nobody saw, nobody can say that it had no answer."""
    is_known = scene.run.input is not None
    return [each.raised.interrupt.id for each in scene.turned.came if is_known and each.is_without_answer]


def result_after_cancel(scene: Scene) -> Ids:
    """A call whose answer is no counts as not executed (contract before 1.0). Its result may say just that."""
    came = (each for each in scene.turned.came if each.is_first and each.is_answered)
    return [each.raised.interrupt.id for each in came if not each.is_allowed]


def duplicate_effect(scene: Scene) -> Ids:
    """The same answers once more must be safe (contract before 1.0, rule 5): a call that ran does not run again."""
    return [each.raised.interrupt.id for each in scene.turned.came if each.is_repeat]


def fabricated_result(scene: Scene) -> Ids:
    """A call that an earlier run left to the client is the client's to answer (spec 1.0, events/tool-calls)."""
    given = scene.run.input
    left = scene.before.left if given is not None and given.has_messages else ()
    if given is None or not left:
        return ()
    told = {each.tool_call_id for each in scene.run.results if each.is_event} - given.answered
    return [call for call in left if call in told]


# Open interrupts without an answer ------------------------------------------------------------------------------------


def success_over_open(scene: Scene) -> Ids:
    """A run MUST NOT succeed while an interrupt stands of which the producer could tell (spec 1.0, the same page)."""
    return _ids(_known(scene)) if scene.run.ending is Ending.SUCCESS else ()


def success_over_unseen(scene: Scene) -> Ids:
    """One that keeps nothing has no duty: then the fault is the consumer's, who left it without an answer."""
    if scene.run.ending is not Ending.SUCCESS:
        return ()
    known = {each.interrupt.id for each in _known(scene)}
    return [each for each in _ids(scene.turned.lost) if each not in known]


def uncovered_mishandled(scene: Scene) -> Ids:
    """It refuses, or asks again for all that is still open (spec 1.0). Before 1.0 it fails, whatever it could tell.

    What it stopped of on purpose it need not ask for.
    """
    if scene.run.ending not in (Ending.SUCCESS, Ending.INTERRUPT) or not scene.turned.is_past:
        return ()
    if scene.run.mode is Mode.SPEC:
        return _ids(_known(scene))
    uncovered = scene.raised(scene.matched.uncovered)
    return _ids(each for each in uncovered if each.interrupt.channel is not Channel.TOOL)


def _known(scene: Scene) -> tuple[Raised, ...]:
    """What it passed over and could tell to be open. One that keeps state, as it says, could tell of all."""
    return scene.turned.lost if _keeps_state(scene.capabilities) else scene.turned.known


def _keeps_state(capabilities: Json) -> bool:
    state = capabilities.get("state") if isinstance(capabilities, dict) else None
    return isinstance(state, dict) and state.get("persistentState") is True


# What the run did with a call that was asked for ----------------------------------------------------------------------


def call_reopened(scene: Scene) -> Ids:
    """A gated call is not begun anew, its result goes to the old one (contract before 1.0, tool-bound interrupts)."""
    return [name for name, agrees in _reopened(scene) if agrees]


def reopen_mismatch(scene: Scene) -> Ids:
    """A call may be opened again if it agrees with what it was (spec 1.0, events/tool-calls)."""
    return [name for name, agrees in _reopened(scene) if not agrees]


def _reopened(scene: Scene) -> Iterator[tuple[str, bool]]:
    """The gated calls of the last run that asked which begin again: whether it is the same tool, as far as is known."""
    if not scene.turned.is_past and not scene.turned.is_failed:
        return
    for each in scene.before.raised if scene.run.calls else ():
        name = each.interrupt.tool_call_id
        if name in scene.run.calls and scene.before.asks(each) and name is not None:
            tools = {each.interrupt.tool, scene.run.calls[name]} - {None}
            yield name, len(tools) < 2  # noqa: PLR2004 - two names of one call


def approved_not_executed(scene: Scene) -> Ids:
    """Ours: it was allowed, the run says that it is done, and the call never came back."""
    if scene.run.ending is not Ending.SUCCESS or not scene.turned.is_past:
        return ()
    came = {each.tool_call_id for each in (*scene.after.results, *scene.run.results)}
    return _ids(
        each
        for each, entry in _taken(scene)
        if resumes.decision_of(entry, each.interrupt.kind) in _ALLOWS_A_CALL
        and each.interrupt.tool_call_id is not None
        and each.interrupt.tool_call_id not in came
        and not _is_the_client_s(scene, each.interrupt)
    )


def _is_the_client_s(scene: Scene, interrupt: Interrupt) -> bool:
    tools = scene.run.input.tools if scene.run.input is not None else frozenset()
    return interrupt.channel is Channel.TOOL or interrupt.tool in tools or interrupt.tool_call_id in scene.run.left


# Answers that ought to have been refused ------------------------------------------------------------------------------


def bad_answer_swallowed(scene: Scene) -> Ids:
    """A payload that is missing or wrong is a RUN_ERROR, no silent failure (contract before 1.0, rules 6 and 8)."""
    unfit = scene.unfit.get("PAYLOAD_SCHEMA_MISMATCH", ())
    return _ids(
        each
        for each, entry in _taken(scene)
        if entry.status == RESOLVED and (each.interrupt.id in unfit or _lacks_payload(each, entry))
    )


def _lacks_payload(raised: Raised, entry: Entry) -> bool:
    return raised.interrupt.schema_digest is not None and not entry.has_payload


def late_answer_taken(scene: Scene) -> Ids:
    """An answer that comes when it has expired makes a RUN_ERROR (contract before 1.0, rule 7)."""
    return _ids(
        each
        for each, entry in _taken(scene)
        if entry.status == RESOLVED and resumes.is_expired(each.interrupt, scene.sent_at)
    )


def _taken(scene: Scene) -> Iterator[tuple[Raised, Entry]]:
    """What this run was the first to answer, and got past; what it asks once more it did not."""
    if not scene.turned.is_past:
        return
    again = {(each.run_id, each.interrupt.id) for each, _ in scene.turned.again}
    for place, entry in scene.matched.taken.items():
        raised = scene.before.raised[place]
        if (raised.run_id, raised.interrupt.id) not in again:
            yield raised, entry


# Where its answers and questions are left -----------------------------------------------------------------------------


def answer_fate_unknown(scene: Scene) -> Ids:
    """Ours: a stream that broke off does not say whether the answer was taken."""
    return _ids(scene.turned.unknown)


def resume_failed_still_open(scene: Scene) -> Ids:
    """Ours: of an answer whose run failed before the gated call no text speaks; it may be given again."""
    return _ids(scene.turned.reopened)


def answer_consumed_then_failed(scene: Scene) -> Ids:
    """Ours: the gated call came back and its run failed: the same answer must not be given again blindly."""
    return _ids(scene.turned.consumed) if scene.turned.is_failed else ()


def reinterrupt_loop(scene: Scene) -> Ids:
    """Ours: three in a row that end alike."""
    return _ids(scene.turned.circling)


def interrupt_id_drift(scene: Scene) -> Ids:
    """Ours: who kept the first id cannot answer by it any more."""
    return [name for each, name in scene.turned.again if each.interrupt.id != name]


def lost_interrupt(scene: Scene) -> Ids:
    """Ours: only what the most recent interrupted run asks can be answered (spec 1.0, patterns/interrupt-resume)."""
    return _ids(scene.turned.lost)


def thread_too_long(scene: Scene) -> Ids:
    """Ours: a thread has an end."""
    return _ids(scene.turned.forgotten)


def _ids(raised: Iterable[Raised]) -> list[str]:
    return [each.interrupt.id for each in raised]


RULES: Mapping[str, Callable[[Scene], Ids]] = {
    "FABRICATED_RESULT": fabricated_result,
    "ANSWER_FATE_UNKNOWN": answer_fate_unknown,
    "UNRECOGNISED_ENTRY": unrecognised_entry,
    "UNRECOGNISED_ENTRY_FAILED_RUN": unrecognised_entry_failed_run,
    "ACTION_WITHOUT_ANSWER": action_without_answer,
    "SUCCESS_OVER_OPEN_INTERRUPT": success_over_open,
    "SUCCESS_OVER_UNSEEN_INTERRUPT": success_over_unseen,
    "UNCOVERED_MISHANDLED": uncovered_mishandled,
    "RESULT_AFTER_CANCEL": result_after_cancel,
    "ACTION_ON_UNRECOGNISED_ANSWER": action_on_unrecognised_answer,
    "DUPLICATE_EFFECT": duplicate_effect,
    "CALL_REOPENED": call_reopened,
    "REOPEN_MISMATCH": reopen_mismatch,
    "APPROVED_NOT_EXECUTED": approved_not_executed,
    "RESUME_FAILED_STILL_OPEN": resume_failed_still_open,
    "ANSWER_CONSUMED_THEN_FAILED": answer_consumed_then_failed,
    "REINTERRUPT_LOOP": reinterrupt_loop,
    "INTERRUPT_ID_DRIFT": interrupt_id_drift,
    "BAD_ANSWER_SWALLOWED": bad_answer_swallowed,
    "LATE_ANSWER_TAKEN": late_answer_taken,
    "LOST_INTERRUPT": lost_interrupt,
    "THREAD_TOO_LONG": thread_too_long,
}
