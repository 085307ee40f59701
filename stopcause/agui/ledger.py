"""What a thread waits for, run by run: pure transitions of `values.Thread`, and how each run hangs in its thread.

    begun(thread, run)   the run's answers are under way
    ended(thread, run)   what became of them, which gated calls ran, what it asks, what is lost

Interrupts are known by thread, run that asked, and id: producers make the same ids in every thread and process. A run
is counted once: told again, it changes nothing; a late RUN_ERROR fails the run, and leaves its thread as it is.
Which answer answers what is in `resumes`, the steps of a run's end in `turns`, what a thread adds up to in `verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple, TypeVar

from stopcause.agui import audit, audit_answers, resumes
from stopcause.agui.findings import Finding, found
from stopcause.agui.scene import NO_REQUEST, Request, Scene
from stopcause.agui.turns import NOTHING_HAPPENED, Turn, Turned
from stopcause.agui.values import NOTHING, Begun, Link, Raised, RunSeen, Thread
from stopcause.agui.words import UNSETTLED, Ending, State

_K = TypeVar("_K")
_V = TypeVar("_V")

_MOST_THREADS = 10_000
_MOST_KEPT = 10_000  # of links, of runs that are open, and of interrupts with their threads
_LOOKED_AT = 64  # of the quietest threads, for one that waits for nothing


class _Start(NamedTuple):
    """A run that has begun, until it ends: what its scene will need."""

    before: Thread
    matched: resumes.Matched
    at: datetime | None
    unfit: Mapping[str, tuple[str, ...]]
    has_payloads: bool
    fits: Mapping[str, bool]
    request: Request


class _End(NamedTuple):
    """What the end of a run comes to."""

    thread: Thread
    link: Link
    turned: Turned


class Ledger:
    """The threads of any number of streams. Beyond `most`, those that were quiet for longest go, open ones last."""

    def __init__(self, most: int | None = None) -> None:
        self._most = _MOST_THREADS if most is None else most
        self.threads: dict[str, Thread] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._starts: dict[tuple[str, str], _Start] = {}
        self._asked_on: dict[str, str | None] = {}  # interrupt -> its thread; None: of several

    def begun(self, run: Begun, request: Request = NO_REQUEST) -> Link:
        """What the run's input says of its thread; its answers are under way from now on."""
        before = self._thread(run.thread_id)
        start = self._starts[run.thread_id, run.run_id] = _start(before, run, request)
        thread, link = _begun(before, run, start.matched)
        known = self._links.pop((run.thread_id, run.run_id), link)
        self._keep(thread, run.run_id, _with_findings(known, link))
        return link

    def ended(self, run: RunSeen, request: Request = NO_REQUEST) -> Link:
        """The whole link, that of `begun` included, with all that is found of the run in its thread.

        After a late RUN_ERROR it is more than it was.
        """
        before = self._thread(run.thread_id)
        end = _taken_in(before, run)
        known = self._links.pop((run.thread_id, run.run_id), end.link)
        whole = known if run.run_id in before.runs else end.link
        whole = _with_findings(whole._replace(findings=known.findings), end.link)
        start = self._start_of(before, run, request)
        if start is not None:
            whole = _looked_at(run, end._replace(link=whole), start, self._asked_on)
        self._keep(end.thread, run.run_id, whole)
        return whole

    def _start_of(self, before: Thread, run: RunSeen, request: Request) -> _Start | None:
        """How it began; None for a run that was told before: what there is to be found was found then."""
        start = self._starts.pop((run.thread_id, run.run_id), None)
        return start if start is not None or run.run_id in before.runs else _start(before, begun_of(run), request)

    def _thread(self, thread_id: str) -> Thread:
        return self.threads.pop(thread_id, None) or Thread(thread_id)

    def _keep(self, thread: Thread, run_id: str, link: Link) -> None:
        self.threads[thread.id] = thread
        self._links[thread.id, run_id] = link
        for each in link.asked:
            known = self._asked_on.pop(each.id, thread.id)
            self._asked_on[each.id] = thread.id if known == thread.id else None
        if len(self.threads) > self._most:
            quiet = list(islice(self.threads, _LOOKED_AT))
            del self.threads[next((each for each in quiet if not _waits(self.threads[each])), quiet[0])]
        _trim(self._links)
        _trim(self._starts)
        _trim(self._asked_on)


def _trim(kept: dict[_K, _V]) -> None:
    while len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]


def _start(before: Thread, run: Begun, request: Request) -> _Start:
    before = _without_answers_of(before, run.run_id)
    matched = resumes.match(before, run.run_id, run.input, run.at)
    unfit = audit_answers.unfit(before, matched, request.payloads, run.at)
    fits = audit_answers.fits(before, matched, unfit)
    return _Start(before, matched, run.at, unfit or NOTHING, unfit is not None, fits, request._replace(payloads=None))


def _looked_at(run: RunSeen, end: _End, start: _Start, asked_on: Mapping[str, str | None]) -> Link:
    """The link with what the audit finds, and whether the answers that were taken fit."""
    scene = Scene(
        before=start.before,
        after=end.thread,
        run=run,
        link=end.link,
        turned=end.turned,
        matched=start.matched,
        sent_at=start.at,
        unfit=start.unfit,
        has_payloads=start.has_payloads,
        capabilities=start.request.capabilities,
        is_unreadable=start.request.is_unreadable,
        is_elsewhere=lambda name: asked_on.get(name, run.thread_id) != run.thread_id,
    )
    return end.link._replace(
        decided=tuple(each._replace(is_fit=start.fits.get(each.interrupt_id)) for each in end.link.decided),
        findings=tuple(dict.fromkeys((*end.link.findings, *audit.look_at(scene)))),
    )


def _without_answers_of(thread: Thread, run_id: str) -> Thread:
    """The thread as it was when the run was asked for: a guard says that answers are sent before the run begins."""
    if not any(each.answered_by == run_id and each.state is State.SENT for each in thread.raised):
        return thread
    raised = (
        Raised(each.run_id, each.interrupt) if each.answered_by == run_id and each.state is State.SENT else each
        for each in thread.raised
    )
    return thread._replace(raised=tuple(raised))


def _with_findings(link: Link, other: Link) -> Link:
    return link._replace(findings=tuple(dict.fromkeys((*link.findings, *other.findings))))


def _waits(thread: Thread) -> bool:
    return any(each.state in UNSETTLED for each in thread.raised)


def begun(thread: Thread, run: Begun) -> tuple[Thread, Link]:
    """The thread once a run began: its answers are under way. Said twice, it is the same as once."""
    return _begun(thread, run, resumes.match(thread, run.run_id, run.input, run.at))


def _begun(thread: Thread, run: Begun, matched: resumes.Matched) -> tuple[Thread, Link]:
    if run.run_id in thread.runs:
        return thread, _link(thread, matched)._replace(findings=(found("RUN_TOLD_AGAIN", run.run_id, mode=run.mode),))
    if run.input is None:
        return thread, _link(thread, matched)
    raised = list(thread.raised)
    for place, entry in matched.taken.items():
        # What nobody knows of an earlier try stays so until this one got past it.
        state = State.UNKNOWN if raised[place].state is State.UNKNOWN else State.SENT
        raised[place] = raised[place]._replace(state=state, answer=entry, answered_by=run.run_id)
    moved_on = thread._replace(raised=tuple(raised))
    return moved_on, _link(moved_on, matched)._replace(findings=run.input.findings)


def _link(thread: Thread, matched: resumes.Matched) -> Link:
    """What a run takes up by its answers, and what they decide."""
    answered = [thread.raised[n] for n in sorted({*matched.own, *matched.taken})]
    if not answered:
        return Link()
    return Link(
        resumes_run_id=answered[-1].run_id,
        answers=tuple(dict.fromkeys(each.interrupt.id for each in answered)),
        decided=tuple(resumes.decided(each, each.answer) for each in answered if each.answer is not None),
    )


def ended(thread: Thread, run: RunSeen) -> tuple[Thread, Link]:
    """The thread once a run ended, whether it was said to begin or not, and the whole of its link.

    The link's `answers` leave out what is open again, and its `decided` are the answers that were taken for sure.
    """
    end = _taken_in(thread, run)
    return end.thread, end.link


def _taken_in(thread: Thread, run: RunSeen) -> _End:
    if run.run_id in thread.runs:
        return _End(thread, _again(thread, run), NOTHING_HAPPENED)
    thread, link = begun(thread, begun_of(run))
    turn = Turn(thread, run)
    turn.look()
    turn.settle()
    turn.ask()
    turn.lose()
    after = turn.thread()
    return _End(after, turn.link(link), turn.turned())


def begun_of(run: RunSeen) -> Begun:
    """The beginning of a run that was not said to begin, as one that was refused."""
    return Begun(run.thread_id, run.run_id, run.mode, run.input, run.began_at or run.ended_at)


def _again(thread: Thread, run: RunSeen) -> Link:
    """A run that was counted: what the thread remembers of it. Its answers are used up, even if it fails now."""
    link = _link(thread, resumes.match(thread, run.run_id, run.input, run.began_at))
    taken = {(each.run_id, each.interrupt.id) for each in thread.raised if each.state is State.CLOSED}
    return link._replace(
        decided=tuple(each for each in link.decided if (each.run_id, each.interrupt_id) in taken),
        asked=tuple(each.interrupt for each in thread.raised if each.run_id == run.run_id),
        findings=_found_again(run, link),
    )


def _found_again(run: RunSeen, link: Link) -> tuple[Finding, ...]:
    if run.is_late:
        return (found("ANSWER_CONSUMED_THEN_FAILED", *link.answers, mode=run.mode),) if link.answers else ()
    is_news = run.is_more or run.ending is Ending.REJECTED  # something came after the end that was counted
    return () if is_news else (found("RUN_TOLD_AGAIN", run.run_id, mode=run.mode),)
