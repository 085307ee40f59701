"""Answers that were refused and ought not to have been: to all that is open, and nothing wrong with them.

Rules: R87, R88.

A producer is not asked to check answers, and may (contract before 1.0, rules 6 to 8). So a refusal is blamed only where
nothing excuses it: of a payload that nobody saw, or a time that nobody told, it is not said that it was fit. And a
failure without a word why can be anything; that the same answers fail twice is a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from stopcause.agui import audit_answers, resumes
from stopcause.agui.cards import BY_NAME
from stopcause.agui.scene import Scene
from stopcause.agui.values import Entry, Interrupt
from stopcause.agui.words import CANCELLED, Ending, Level, Mode, Side, State
from stopcause.receipts.vocabulary import ApprovalKind, StopCause

_REFUSES_AN_INPUT = frozenset({400, 410, 422})  # 409 mostly says that the thread is busy
_BUSY = "THREAD_BUSY"  # the end of a code: somebody else runs the thread, and the answers may be sent again
_OUTSIDE = frozenset({StopCause.TIME_LIMIT, StopCause.CALLER_ABORT})
_NEEDS_A_YES = frozenset({ApprovalKind.TOOL_CALL, ApprovalKind.CONFIRMATION})


def expired_cancel_rejected(scene: Scene) -> Iterable[str]:
    """What has expired may be given up, and by coverage must be (spec 1.0, patterns/interrupt-resume)."""
    return _given_up_late(scene) if _refuses_a_fit_list(scene) else ()


def valid_resume_refused(scene: Scene) -> Iterable[str]:
    """The list is the consumer's complete statement, and is taken as such (the same page). False is an answer too."""
    is_another = not _refuses_a_fit_list(scene) or _given_up_late(scene)
    return () if is_another else scene.ids(scene.matched.taken)


def blames_the_input(scene: Scene) -> bool:
    """Whether the run failed by what it was sent, as HTTP or the code of its RUN_ERROR says."""
    run = scene.run
    is_said = run.cause is StopCause.INPUT_REJECTED and not _is_busy(scene)
    return scene.turned.is_failed and (
        run.http_status in _REFUSES_AN_INPUT if run.ending is Ending.REFUSED else is_said
    )


def _is_busy(scene: Scene) -> bool:
    return (scene.run.error_code or "").upper().endswith(_BUSY)


def _given_up_late(scene: Scene) -> list[str]:
    return [
        each.id
        for each, entry in _answers(scene)
        if entry.status == CANCELLED and resumes.is_expired(each, scene.sent_at)
    ]


def _answers(scene: Scene) -> list[tuple[Interrupt, Entry]]:
    return [(scene.before.raised[place].interrupt, entry) for place, entry in scene.matched.taken.items()]


def _refuses_a_fit_list(scene: Scene) -> bool:
    if not scene.turned.is_failed or scene.turned.came or not _covers_all(scene):
        return False
    if not (blames_the_input(scene) or _fails_again(scene)):
        return False
    return all(_is_fit(scene, each, entry) for each, entry in _answers(scene)) and not _has_faults(scene)


def _fails_again(scene: Scene) -> bool:
    """The same list, twice in a row, before any work: some integrations send RUN_ERROR without a code."""
    run, taken = scene.run, scene.matched.taken
    was = scene.raised(taken)
    has_worked = bool(run.calls or run.results or run.has_output)
    is_in_a_row = scene.before.refusals[0] > 0 and len({each.answered_by for each in was}) == 1
    is_theirs = run.ending is Ending.ERROR and run.cause not in _OUTSIDE and not _is_busy(scene)
    if has_worked or not (is_theirs and is_in_a_row):
        return False
    pairs = zip(was, taken.values(), strict=True)
    return all(each.answer is not None and resumes.is_same(each.answer, entry) for each, entry in pairs)


# That nothing was wrong with it ---------------------------------------------------------------------------------------


def _covers_all(scene: Scene) -> bool:
    """An answer that was under way before may have arrived then: to refuse it now is right."""
    answers = scene.raised(scene.matched.taken)
    return bool(answers) and not scene.matched.uncovered and all(each.state is State.OPEN for each in answers)


def _is_fit(scene: Scene, asked: Interrupt, entry: Entry) -> bool:
    """Whether it is known to be in time, and to be what was asked for; to give up always is."""
    if entry.status == CANCELLED:
        return True
    at = scene.run.ended_at or scene.sent_at
    is_in_time = asked.expires_at is None or (at is not None and not resumes.is_expired(asked, at))
    return is_in_time and entry.has_payload and _is_clear(scene, asked, entry)


def _is_clear(scene: Scene, asked: Interrupt, entry: Entry) -> bool:
    """What was held against a schema is; without one, a yes or no to what needs one."""
    if asked.schema_digest is not None:
        return scene.has_payloads and asked.schema is not None and bool(scene.run.input and scene.run.input.resume)
    return asked.kind not in _NEEDS_A_YES or (entry.approved, entry.bare) != (None, None)


def _has_faults(scene: Scene) -> bool:
    """Whether anything was wrong with what was sent, however little: then a refusal may be about that."""
    names = (name for name, rule in audit_answers.RULES.items() if any(True for _ in rule(scene)))
    told = (each.name for each in scene.link.findings)
    return bool(scene.unfit) or any(_weighs(name, scene.run.mode) for name in (*told, *names))


def _weighs(name: str, mode: Mode) -> bool:
    card = BY_NAME[name]
    return card.side is Side.CONSUMER and card.level_in(mode) is not Level.NOTE


RULES: Mapping[str, Callable[[Scene], Iterable[str]]] = {
    "EXPIRED_CANCEL_REJECTED": expired_cancel_rejected,
    "VALID_RESUME_REFUSED": valid_resume_refused,
}
