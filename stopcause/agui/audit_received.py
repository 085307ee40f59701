"""What the agent made of the answers that it got (R64, R70 to R88, R96, R97): whose fault is what `turns` saw happen.

A producer need not keep anything between runs (spec 1.0, patterns/interrupt-resume). What it must not do, it must not
do of what it could tell: that is in `_known`. What was wrong with the answers themselves is in `audit_answers`.

Where the texts are silent, this holds: a question that is asked again was not passed over, whatever its answer was. A
failure without a word why can be anything; that the same answers fail twice is a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from stopcause.agui import audit_answers, resumes
from stopcause.agui.cards import BY_NAME
from stopcause.agui.scene import Scene
from stopcause.agui.values import Entry, Interrupt, Json, Raised
from stopcause.agui.words import ANSWERS, CANCELLED, RESOLVED, Channel, Ending, Level, Mode, Side, State
from stopcause.receipts.vocabulary import Decision, StopCause

_REFUSES_AN_INPUT = frozenset({400, 409, 410, 422})
_BUSY = "THREAD_BUSY"  # the end of a code: somebody else runs the thread, and the answers may be sent again
_OUTSIDE = frozenset({StopCause.TIME_LIMIT, StopCause.CALLER_ABORT})
_ALLOWS_A_CALL = frozenset({Decision.APPROVED, Decision.EDITED})

Ids = Iterable[str]

# Answers to something else --------------------------------------------------------------------------------------------


def unrecognised_entry(scene: Scene) -> Ids:
    """The run SHOULD go on without it, and warn (spec 1.0, patterns/interrupt-resume)."""
    return scene.matched.unrecognised if scene.turned.is_past else ()


def unrecognised_entry_failed_run(scene: Scene) -> Ids:
    """The same rule, broken: the run failed by it. What has not the shape of an answer may fail it."""
    is_by_it = scene.turned.is_failed and _is_about_the_input(scene) and not scene.matched.uncovered
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


def action_on_unrecognised_answer(scene: Scene) -> Ids:
    """The same rule, where the only answers were to something else."""
    return _without_leave(scene) if scene.matched.is_unrecognised else ()


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


# Answers that were refused, and ought not -----------------------------------------------------------------------------


def expired_cancel_rejected(scene: Scene) -> Ids:
    """What has expired may be given up, and by coverage must be (spec 1.0, patterns/interrupt-resume)."""
    return _given_up_late(scene) if _refuses_a_fit_list(scene) else ()


def valid_resume_refused(scene: Scene) -> Ids:
    """The list is the consumer's complete statement, and is taken as such (the same page). False is an answer too."""
    is_another = not _refuses_a_fit_list(scene) or _given_up_late(scene)
    return () if is_another else scene.ids(scene.matched.taken)


def _given_up_late(scene: Scene) -> list[str]:
    taken = ((scene.before.raised[place].interrupt, entry) for place, entry in scene.matched.taken.items())
    return [each.id for each, entry in taken if entry.status == CANCELLED and resumes.is_expired(each, scene.sent_at)]


def _refuses_a_fit_list(scene: Scene) -> bool:
    """Whether all that is open was answered, nothing is wrong with it, and that was refused.

    An answer that was under way before may have arrived: then a refusal is right.
    """
    answers = scene.raised(scene.matched.taken)
    is_whole = bool(answers) and not scene.matched.uncovered and all(each.state is State.OPEN for each in answers)
    is_refused = scene.turned.is_failed and not scene.turned.came and not _is_busy(scene)
    return is_whole and is_refused and (_refuses(scene) or _fails_again(scene)) and not _has_faults(scene)


def _is_busy(scene: Scene) -> bool:
    return (scene.run.error_code or "").upper().endswith(_BUSY)


def _refuses(scene: Scene) -> bool:
    """HTTP says so, or the code of RUN_ERROR."""
    is_told = scene.run.ending is Ending.REFUSED
    return scene.run.http_status in _REFUSES_AN_INPUT if is_told else _is_about_the_input(scene)


def _is_about_the_input(scene: Scene) -> bool:
    return scene.run.cause is StopCause.INPUT_REJECTED


def _fails_again(scene: Scene) -> bool:
    """The same list, twice in a row, before any work: some integrations send RUN_ERROR without a code."""
    run, taken = scene.run, scene.matched.taken
    was = scene.raised(taken)
    has_worked = bool(run.calls or run.results or run.has_output)
    is_in_a_row = scene.before.refusals[0] > 0 and len({each.answered_by for each in was}) == 1
    if has_worked or not is_in_a_row or run.ending is not Ending.ERROR or run.cause in _OUTSIDE:
        return False
    pairs = zip(was, taken.values(), strict=True)
    return all(each.answer is not None and resumes.is_same(each.answer, entry) for each, entry in pairs)


def _has_faults(scene: Scene) -> bool:
    """Whether anything was wrong with what was sent, however little: then a refusal may be about that."""
    names = (name for name, rule in audit_answers.RULES.items() if any(True for _ in rule(scene)))
    return any(_weighs(name, scene.run.mode) for name in (*(each.name for each in scene.link.findings), *names))


def _weighs(name: str, mode: Mode) -> bool:
    card = BY_NAME[name]
    return card.side is Side.CONSUMER and card.level_in(mode) is not Level.NOTE


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
    "EXPIRED_CANCEL_REJECTED": expired_cancel_rejected,
    "VALID_RESUME_REFUSED": valid_resume_refused,
    "LOST_INTERRUPT": lost_interrupt,
    "THREAD_TOO_LONG": thread_too_long,
}
