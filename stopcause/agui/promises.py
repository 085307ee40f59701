"""What the end of a run says beside what its stream showed. None of it is fatal; all of it is somebody's mistake.

Sources: spec 1.0, events/tool-calls (frontend tools, `pendingToolCallIds`), events/lifecycle (cancelled runs, usage),
events/subagents (suspended).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stopcause.agui.course import Course, End, Event
from stopcause.agui.ids import key_of
from stopcause.agui.values import Json
from stopcause.agui.words import Ending

Said = tuple[str, list[str]]  # the name of a finding, and what it is about


def findings_about(course: Course, event: Event, end: End) -> Iterator[Said]:
    """What is to be said about RUN_FINISHED; nothing where the list is empty."""
    outcome = event.get("outcome")
    if course.tools:
        yield "FABRICATED_RESULT", [call for call in course.frontend if call in course.results]
        yield "FRONTEND_AS_INTERRUPT", _asked_for(course, end)
    if end.ending is Ending.SUCCESS:
        listed = outcome.get("pendingToolCallIds") if isinstance(outcome, dict) else None
        yield "PENDING_LIST_MISMATCH", _not_as_listed(course, listed)
        yield "PENDING_LIST_ABSENT", [] if listed else [call for call in course.calls if call not in course.results]
    if end.ending is Ending.INTERRUPT:
        yield "SUSPENDED_UNKNOWN_INTERRUPT", _unknown(course, {each.id for each in end.interrupts})
    if end.ending is Ending.CANCELLED and event.get("result") is not None:
        yield "CANCELLED_WITH_RESULT", [course.run_id]


def _asked_for(course: Course, end: End) -> list[str]:
    """Interrupts for calls that are the client's to answer anyway, by a message."""
    if end.ending is not Ending.INTERRUPT:
        return []
    return [each.id for each in end.interrupts if each.tool_call_id in course.frontend]


def _not_as_listed(course: Course, said: Json) -> list[str]:
    """A list that is there and not empty names exactly the calls without a result event, in the order of the calls."""
    if not isinstance(said, list) or not said:
        return []
    left = [call for call in course.calls if not any(each.is_event for each in course.results.get(call, ()))]
    listed = [key_of(each) for each in said if isinstance(each, str)]
    return [] if listed == left else _differing(listed, left)


def _differing(listed: Sequence[str], left: Sequence[str]) -> list[str]:
    """Those that only one of the two has; all where only the order differs."""
    return sorted(set(listed) ^ set(left)) or list(left)


def _unknown(course: Course, asked: set[str]) -> list[str]:
    return [each for names in course.suspended.values() for each in names if each not in asked]


# Counts of tokens -----------------------------------------------------------------------------------------------------

_PARTS = (  # of a usage entry, and what each is a part of
    ("cachedInputTokens", "inputTokens"),
    ("cacheWriteInputTokens", "inputTokens"),
    ("reasoningTokens", "outputTokens"),
)


def adds_up(usage: Event) -> bool:
    """Whether the total is input and output, and no part more than its whole (spec 1.0, events/lifecycle)."""
    total, parts = usage.get("totalTokens"), (usage.get("inputTokens"), usage.get("outputTokens"))
    is_sum = total is None or None in parts or total == sum(each for each in parts if each is not None)
    return is_sum and all(_is_part(usage.get(part), usage.get(whole)) for part, whole in _PARTS)


def _is_part(part: Json, whole: Json) -> bool:
    return part is None or whole is None or bool(part <= whole)
