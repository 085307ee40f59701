"""How a course ends, and what is told of it: RUN_FINISHED, RUN_ERROR, the end of a stream -> RunSeen.

What an outcome is is in the specification (events/lifecycle, interrupt-resume). Two rules here are ours: a question is
never passed over (a run that asks waits, whatever its outcome says), and what is fatal is told apart from what a run
says of itself: only a run that reports its own failure has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from stopcause.agui import endings, interrupts, promises
from stopcause.agui.course import Course, End, Event, Moment
from stopcause.agui.findings import Finding, found
from stopcause.agui.ids import key_of, name_of, word_or_none
from stopcause.agui.shapes import OUTCOMES, USAGE, WHOLE
from stopcause.agui.values import Interrupt, Json, RunSeen, Usage
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.receipts.model import MAX_INTEGER
from stopcause.receipts.vocabulary import ApprovalKind, StopCause

_UNKNOWN = "unknown"
_MOST_ENTRIES = 1000


class _Outcome(NamedTuple):
    """What RUN_FINISHED says: success where it says nothing."""

    word: str = "success"
    asks: tuple[interrupts.Ask, ...] = ()


def finish(course: Course, event: Event, moment: Moment, waits: Callable[[str], bool]) -> End:
    """RUN_FINISHED. `waits`: whether a call to this tool of the client's own is a wait."""
    course.close_all()
    course.has_output = course.has_output or event.get("result") is not None
    outcome = _outcome(course, event)
    _pending_field(course, event)
    end = _ENDS[outcome.word](course, outcome, moment.time)
    if end.ending is Ending.SUCCESS:
        end = _with_frontend(course, end, event.get("outcome"), waits)
    end = _with_claim(course, end, endings.read_claim(event.get("metadata")))
    _look_at(course, event, end)
    return end._replace(at=moment.time, usage=_usage(course, event.get("usage")))


def fail(course: Course, event: Event, moment: Moment) -> End:
    """RUN_ERROR. After RUN_FINISHED the run has failed too; what it asked for is still what it asked for."""
    before = course.end
    course.make(course.chunks.finish())
    code = word_or_none(event.get("code"))
    usage = _usage(course, event.get("usage"))
    end = End(Ending.ERROR, endings.cause_of_code(code), moment.time, error_code=code, usage=usage)
    if before is None:
        return end
    course.blame("LATE_ERROR")
    kept = usage if usage != Usage() else before.usage
    return end._replace(interrupts=before.interrupts, receipt=before.receipt, usage=kept, is_late=True)


def truncate(course: Course, at: datetime | None, *, left_by_reader: bool) -> End:
    """The stream is over, and the run is not."""
    last = course.last.time
    idle = max((at - last).total_seconds(), 0.0) if at is not None and last is not None else None
    if left_by_reader:
        return End(Ending.TRUNCATED, StopCause.CALLER_ABORT, at or last, reason="reader_left", idle_s=idle)
    course.blame("TRUNCATED")
    return End(Ending.TRUNCATED, StopCause.STREAM_TRUNCATED, at or last, idle_s=idle)


def overtaken(course: Course) -> End:
    """Another run began before this one was over. That is fatal to it."""
    return End(Ending.TRUNCATED, StopCause.STREAM_TRUNCATED, course.last.time)


def unseen(course: Course, kind: str, moment: Moment) -> End:
    """The event that ends it was too large to be read. That it failed shows; how it finished, nobody knows."""
    if kind == "RUN_ERROR":
        return fail(course, {}, moment)
    return End(Ending.UNKNOWN_OUTCOME, StopCause.UNKNOWN, moment.time, reason="frame_too_large")


def refuse(course: Course, http_status: int, at: datetime | None) -> End:
    """The request was refused: no run began (spec 1.0, basic/transports)."""
    course.blame("INPUT_REFUSED")
    return End(Ending.REFUSED, StopCause.INPUT_REJECTED, at, reason=f"http_{http_status}")


# What RUN_FINISHED says ---------------------------------------------------------------------------------------------


def _outcome(course: Course, event: Event) -> _Outcome:
    value = event.get("outcome")
    if not isinstance(value, dict):
        return _Outcome()
    course.has_outcome = True
    kind = value.get("type")
    word = kind if isinstance(kind, str) else _UNKNOWN
    shape = OUTCOMES.get(word)
    if shape is None:
        course.blame("UNKNOWN_OUTCOME")
        return _Outcome(_UNKNOWN)
    sound = course.is_sound(value, shape, "RUN_FINISHED.outcome")
    said = value.get("interrupts") if sound else None
    asked = said if isinstance(said, list) else []
    if word == "interrupt" and sound and not asked:
        course.blame("EMPTY_INTERRUPT")
    if word != "interrupt" and asked:
        course.blame("OUTCOME_CONTRADICTION")
    return _Outcome(word, interrupts.read_interrupts(asked, course.run_id, course.blame))


def _pending_field(course: Course, event: Event) -> None:
    """A field `interrupt` of the event itself, as before there were outcomes."""
    value = event.get("interrupt")
    asked = value if isinstance(value, list) else [value]
    for each in (each for each in asked[: interrupts.MOST] if isinstance(each, dict)):
        course.ask(interrupts.read_pending(each, course.run_id, len(course.asks) + 1))


def _settled(course: Course, asks: Iterable[interrupts.Ask], at: datetime | None) -> tuple[Interrupt, ...]:
    known = {**(course.given.calls if course.given is not None else {}), **course.named, **course.calls}
    return tuple(each.settled(at, known) for each in asks)


def _interrupted(course: Course, outcome: _Outcome, at: datetime | None) -> End:
    """The outcome names what is asked for. CUSTOM events beside it tell the same once more, or should."""
    asks: Sequence[interrupts.Ask] = outcome.asks or list(course.asks.values())
    if outcome.asks and course.asks and len(course.asks) != len(outcome.asks):
        course.blame("LEGACY_COUNT_MISMATCH")
    asked = _settled(course, asks, at)
    return End(Ending.INTERRUPT, interrupts.cause_of(asked), interrupts=asked)


def _succeeded(course: Course, outcome: _Outcome, at: datetime | None) -> End:
    """A success, unless something was asked for on the way, and is still open."""
    if outcome.asks:  # a contradiction: fatal, and what was asked stays known
        return End(Ending.SUCCESS, StopCause.NATURAL, interrupts=_settled(course, outcome.asks, at))
    if course.asks:
        is_old_way = course.mode is not Mode.SPEC and not course.has_outcome
        course.blame("LEGACY_INTERRUPT" if is_old_way else "INTERRUPT_AS_SUCCESS")
        return _interrupted(course, outcome, at)
    if course.suspended:
        course.blame("INTERRUPT_AS_SUCCESS", *course.suspended)
        asked = tuple(_suspended(course.suspended))
        return End(Ending.INTERRUPT, interrupts.cause_of(asked), interrupts=asked)
    return End(Ending.SUCCESS, StopCause.NATURAL)


def _cancelled(_course: Course, _outcome: _Outcome, _at: datetime | None) -> End:
    """It waits for nothing, whatever it asked on the way. Who stopped it only a receipt can say."""
    return End(Ending.CANCELLED, StopCause.CALLER_ABORT)


def _unknown(course: Course, _outcome: _Outcome, at: datetime | None) -> End:
    asked = _settled(course, course.asks.values(), at)
    return End(Ending.UNKNOWN_OUTCOME, StopCause.UNKNOWN, reason="outcome_type_unknown", interrupts=asked)


_ENDS: Mapping[str, Callable[[Course, _Outcome, datetime | None], End]] = {
    "success": _succeeded,
    "interrupt": _interrupted,
    "cancelled": _cancelled,
    _UNKNOWN: _unknown,
}


def _suspended(waiting: Mapping[str, tuple[str, ...]]) -> Iterable[Interrupt]:
    for subagent, names in waiting.items():
        yield from (Interrupt(name, ApprovalKind.EXTERNAL, raised_by=subagent) for name in names)


def _with_frontend(course: Course, end: End, outcome: Json, waits: Callable[[str], bool]) -> End:
    """A run that stopped on calls of the client's own tools is a success; the policy may call some of them a wait."""
    _trust_pending(course, outcome)
    left = _unanswered(course)
    asking = [call for call in left if call in course.frontend and waits(course.frontend[call])]
    if not asking:
        return end
    asked = tuple(
        Interrupt(call, ApprovalKind.INPUT_REQUIRED, Channel.TOOL, tool_call_id=call, tool=course.calls[call])
        for call in asking
    )
    return end._replace(cause=StopCause.INPUT_PENDING, interrupts=(*end.interrupts, *asked))


def _trust_pending(course: Course, outcome: Json) -> None:
    """Where nobody knows the client's tools, `pendingToolCallIds` says which calls are the client's."""
    said = outcome.get("pendingToolCallIds") if isinstance(outcome, dict) else None
    if course.given is not None or not isinstance(said, list):
        return
    for call in (key_of(each) for each in said if isinstance(each, str)):
        if call in course.calls:
            course.frontend.setdefault(call, course.calls[call] or call)


def _unanswered(course: Course) -> list[str]:
    return [call for call in course.calls if call not in course.results]


def _with_claim(course: Course, end: End, claim: endings.Claim) -> End:
    """What the producer's own receipt says beside its stream. That a call waits, the policy says, and not a receipt."""
    if not claim.is_whole:
        course.blame("RECEIPT_UNREADABLE")
    ending, cause, finding = endings.cause_beside(end.ending, end.cause, claim.cause)
    if any(each.channel is Channel.TOOL for each in end.interrupts):
        return end._replace(receipt=claim.fields)
    if finding is not None:
        course.blame(finding)
    return end._replace(ending=ending, cause=cause, receipt=claim.fields)


def _look_at(course: Course, event: Event, end: End) -> None:
    known = None
    if course.given is not None and not course.given.is_echo:
        known = frozenset({*course.calls, *course.named, *course.given.calls, *course.given.answered})
    about_asked = interrupts.findings_about(end.interrupts, known)
    for name, about in (*about_asked, *promises.findings_about(course, event, end)):
        if about:
            course.blame(name, *about)


def _usage(course: Course, entries: Json) -> Usage:
    """The sums over its entries; model and provider where there is one only."""
    if not isinstance(entries, list):
        return Usage()
    told = [
        each for each in entries[:_MOST_ENTRIES] if isinstance(each, dict) and course.is_sound(each, USAGE, "usage")
    ]
    if len(told) < len(entries[:_MOST_ENTRIES]) or any(each[name] < 0 for each in told for name in _counts(each)):
        course.blame("MALFORMED", "usage")
    if not all(map(promises.adds_up, told)):
        course.blame("USAGE_INCONSISTENT", "usage")
    models, providers = ({each.get(name) for each in told} for name in ("model", "provider"))
    model, provider = (each.pop() if len(each) == 1 else None for each in (models, providers))
    return Usage(
        input_tokens=_sum(each.get("inputTokens") for each in told),
        output_tokens=_sum(each.get("outputTokens") for each in told),
        model=name_of(model),
        provider=word_or_none(provider),
    )


def _counts(entry: Event) -> Iterable[str]:
    return (name for name, kinds in USAGE.kinds.items() if kinds is WHOLE and entry.get(name) is not None)


def _sum(counts: Iterable[Json]) -> int | None:
    known = [int(each) for each in counts if each is not None and each >= 0]
    return min(sum(known), MAX_INTEGER) if known else None


# What is told -----------------------------------------------------------------------------------------------------


def seen(course: Course, end: End, http_status: int | None) -> RunSeen:
    """The run as it stands. What is fatal makes it one that nobody may believe, but for a failure that it reports."""
    left = _unanswered(course)
    theirs = tuple(call for call in left if call in course.frontend)
    if theirs and end.ending in (Ending.SUCCESS, Ending.INTERRUPT):
        course.blame("FRONTEND_PENDING", *theirs)
    mode = course.mode
    findings = tuple(found(name, *about, mode=mode) for name, about in course.found.items())
    ending, cause, reason = _believed(end, findings)
    return RunSeen(
        thread_id=course.thread_id,
        run_id=course.run_id,
        mode=mode,
        ending=ending,
        cause=cause,
        reason=reason,
        error_code=end.error_code,
        is_late=end.is_late,
        protocol_version=course.declared.version,
        http_status=http_status,
        input=course.given,
        interrupts=end.interrupts,
        calls=dict(course.calls),
        pending=tuple(call for call in left if call not in course.frontend),
        left=theirs,
        results=tuple(each for told in course.results.values() for each in told),
        steps=course.counts.get("STEP_STARTED"),
        subagents=course.items.subagents(),
        usage=end.usage,
        has_output=course.has_output,
        began_at=course.began.time,
        ended_at=end.at,
        last_event_at=course.last.time,
        progress_at=course.progress.time,
        made_progress=course.made_progress,
        idle_s=end.idle_s,
        counts=dict(course.counts),
        receipt=end.receipt,
        findings=findings,
    )


def _believed(end: End, findings: Sequence[Finding]) -> tuple[Ending, StopCause, str | None]:
    fatal = next((each for each in findings if each.fatal), None)
    if fatal is None or end.ending in (Ending.ERROR, Ending.REFUSED):
        return end.ending, end.cause, end.reason
    return Ending.REJECTED, StopCause.STREAM_REJECTED, fatal.code
