"""Which gated calls came back in a run, and whether anybody had allowed them. Whose fault it is: `audit_received`.

Evidence is a TOOL_CALL_RESULT, or a tool's message in a snapshot that is there for the first time: some producers tell
a resumed call only that way. What the input's own messages had is none. A result says that the call ended, not that it
did what it is for; behind an answer that gives up, producers send one that says just that.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from stopcause.agui import resumes
from stopcause.agui.values import Interrupt, Raised, Result, RunSeen, Thread
from stopcause.agui.words import UNANSWERED, UNSETTLED, State

_NOBODY: Mapping[int, State] = {}


class Came(NamedTuple):
    """One interrupt whose call came back, as the thread had it before.

    Attributes:
        place: In `thread.raised`.
        is_first: It is the first time since it was asked for.
        is_repeat: It is an event, and an earlier run had one.
    """

    place: int
    raised: Raised
    is_first: bool
    is_repeat: bool

    @property
    def is_without_answer(self) -> bool:
        """Whether nobody had answered."""
        return self.raised.state in UNANSWERED

    @property
    def is_answered(self) -> bool:
        """Whether an answer had been given, of whatever kind."""
        return self.raised.answer is not None and not self.is_without_answer

    @property
    def is_allowed(self) -> bool:
        """Whether the last answer to it allows the call."""
        answer = self.raised.answer
        return answer is not None and resumes.decision_of(answer, self.raised.interrupt.kind) in resumes.ALLOWS


class Evidence(NamedTuple):
    """What a run's results say. Places are those of `thread.raised`.

    Attributes:
        came: Every interrupt whose call came back.
        states: Where that leaves them.
        executed: Gated calls that ran as allowed, for the first time: (run, interrupt).
        bypassed: Those that nobody had allowed.
        presumed: Those of a run whose input nobody saw: it brought the answer, it seems.
        before: The thread's results so far; `new`: those of this run.
    """

    came: tuple[Came, ...] = ()
    states: Mapping[int, State] = _NOBODY
    executed: tuple[tuple[str, str], ...] = ()
    bypassed: tuple[tuple[str, str], ...] = ()
    presumed: tuple[int, ...] = ()
    before: tuple[Result, ...] = ()
    new: tuple[Result, ...] = ()

    def results(self, asked: Iterable[Interrupt]) -> tuple[Result, ...]:
        """The thread's results with these. A call that is asked for again may run again: its events count no more."""
        again = {each.tool_call_id for each in asked}
        known = (*self.before, *self.new)
        if not _of(known, again):
            return known
        return tuple(each._replace(is_event=False) if each.tool_call_id in again else each for each in known)


def read_results(thread: Thread, run: RunSeen) -> Evidence:
    """Hold a run's results against what earlier runs of its thread had asked for."""
    new = tuple(_new_results(thread, run))
    if not new:
        return Evidence(before=thread.results)
    came = tuple(_came_back(thread, run, new))
    without = [each for each in came if each.is_without_answer]
    answered = [each for each in came if each.is_answered]
    is_known = run.input is not None
    states = {each.place: State.BYPASSED if is_known else State.CLOSED for each in without}
    states |= {each.place: State.CLOSED for each in answered if each.raised.state is not State.BYPASSED}
    return Evidence(
        came=came,
        states=states,
        executed=tuple(_key(each) for each in answered if each.is_first and each.is_allowed),
        bypassed=tuple(_key(each) for each in without) if is_known else (),
        presumed=() if is_known else tuple(each.place for each in without),
        before=thread.results,
        new=new,
    )


def _of(results: Iterable[Result], calls: Container[str | None]) -> list[Result]:
    """Those of these calls: of a thread's many, a run's few."""
    return [each for each in results if each.tool_call_id in calls]


def _new_results(thread: Thread, run: RunSeen) -> Iterator[Result]:
    """Events, one a call, and messages of snapshots that are there for the first time."""
    if not run.results:
        return
    known = _of(thread.results, {each.tool_call_id for each in run.results})
    seen = {(each.tool_call_id, each.message_id) for each in known}
    calls = {each.tool_call_id for each in known}
    told = run.input.answered if run.input is not None else frozenset()
    events: set[str] = set()
    for each in run.results:
        call, key = each.tool_call_id, (each.tool_call_id, each.message_id)
        if each.is_event:
            is_new = call not in events
            events.add(call)
        else:
            is_new = call not in told and key not in seen and (each.message_id is not None or call not in calls)
        if is_new:
            seen.add(key)
            calls.add(call)
            yield each


def _came_back(thread: Thread, run: RunSeen, new: tuple[Result, ...]) -> Iterator[Came]:
    """For each call, what the last run before this one asked of it: perhaps more than one question."""
    calls = {each.tool_call_id for each in new}
    known = _of(thread.results, calls)
    events_before = {each.tool_call_id for each in known if each.is_event}
    before = {each.tool_call_id for each in known}
    events = {each.tool_call_id for each in new if each.is_event}
    asked = [
        (place, each, call)
        for place, each in enumerate(thread.raised)
        if (call := each.interrupt.tool_call_id) in calls
        and each.state is not State.MOVED
        and each.run_id != run.run_id
    ]
    last = {call: each.run_id for _, each, call in asked}
    for place, each, call in asked:
        if each.run_id == last[call]:
            is_first = each.state in UNSETTLED or call not in before
            yield Came(place, each, is_first, call in events and call in events_before)


def _key(came: Came) -> tuple[str, str]:
    return came.raised.run_id, came.raised.interrupt.id
