"""Why a run stopped, as the layers around it said: each says what it saw, and closing picks one of them.

Here: what may be said (`Said`), whose word counts first (`Rank`), and the pick. Nothing here knows a framework: the
maps from its classes and words to causes are at the top of its hook.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from stopcause.receipts.vocabulary import FINISHED, Boundary, Finish, StopCause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopcause.receipts.faults import Fault


class Rank(IntEnum):
    """Whose word it is. The lower number counts; of two that are equal, the first that was said.

    A reader that leaves a stream says less than a wait or a bound that the framework had told before: leaving is how
    many programs take a wait.
    """

    HOST = 0  # the program named it: `stop`
    RAISED = 1  # an exception left the loop, and its class says why
    SIGNAL = 2  # the framework's own field or event says so
    LEFT = 3  # whoever read the stream went away
    RETURNED = 4  # the loop came back, and nothing more was said


class Said(NamedTuple):
    """One layer's word on why it stopped. `aborted`: that an abort was seen to end it."""

    rank: Rank
    cause: StopCause
    boundary: Boundary
    reason: str | None = None
    fault: Fault | None = None
    aborted: bool = False


# What the model's last finish reason makes of a loop that came back by itself.
BY_FINISH = {
    Finish.LENGTH: StopCause.OUTPUT_CAP,
    Finish.CONTENT_FILTER: StopCause.CONTENT_FILTER,
    Finish.REFUSAL: StopCause.REFUSAL,
    Finish.ERROR: StopCause.MODEL_FAILURE,
    Finish.INTERRUPTED: StopCause.STREAM_TRUNCATED,
}


def pick(said: Sequence[Said]) -> Said:
    """The word that counts; where nobody said anything, that nobody did."""
    return min(said, key=lambda each: each.rank, default=Said(Rank.RETURNED, StopCause.UNKNOWN, Boundary.CALL))


def final(said: Sequence[Said], finish: Finish | None, *, is_forced: bool) -> Said:
    """The word that stands in the receipt. `is_forced`: that the last turn was forced by a bound."""
    chosen = _by_finish(pick(said), finish)
    return _wrapped_up(said, chosen) if is_forced and chosen.cause in FINISHED else chosen


def _by_finish(chosen: Said, finish: Finish | None) -> Said:
    """A natural end is one only where the model's last answer was whole."""
    if chosen.rank is Rank.RETURNED and chosen.cause is StopCause.NATURAL and finish in BY_FINISH:
        return chosen._replace(cause=BY_FINISH[finish])
    return chosen


def _wrapped_up(said: Sequence[Said], chosen: Said) -> Said:
    """A last turn that a bound forced looks like an end: the bound that fired is the cause."""
    signals = [each for each in said if each.rank is Rank.SIGNAL and each.cause not in FINISHED]
    return signals[0] if signals else chosen._replace(cause=StopCause.STEP_LIMIT)


def later(said: Sequence[Said], chosen: Said) -> tuple[StopCause, ...]:
    """What else was said, each cause once. That a loop came back says nothing beside a cause."""
    others = (each.cause for each in said if each.cause is not chosen.cause)
    return tuple(dict.fromkeys(cause for cause in others if cause not in FINISHED))
