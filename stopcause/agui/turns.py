"""One run's end, applied to its thread: which gated calls ran, what became of answers, what is asked, what is lost.

The steps have an order: a call that came back closes its question before the run's ending is asked, and what is asked
again is not lost. `ledger` takes them; nothing here outlives a run. What happened is told as it is (`Turned`): whose
fault it is, is said by `audit_received`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from stopcause.agui import resumes
from stopcause.agui.gated import Came, Evidence, read_results
from stopcause.agui.values import NOTHING, UNNAMED, Decided, Interrupt, Link, Raised, RunSeen, Thread
from stopcause.agui.words import UNANSWERED, UNDER_WAY, UNSETTLED, Ending, State
from stopcause.receipts.vocabulary import WAITING

LOOP = 3  # as many runs that end alike are one that goes round
_MOST_RUNS = 64  # that are remembered as counted
_MOST_ASKING = 8  # runs whose settled interrupts are kept
_MOST_RAISED = 4_000
_MOST_RESULTS = 512

_FAILED = frozenset({Ending.ERROR, Ending.REFUSED})
# One that was refused never began, and one that broke off may be tried again.
FREES_ITS_ID = frozenset({Ending.REFUSED, Ending.TRUNCATED})
_BROKEN = frozenset({Ending.TRUNCATED, Ending.REJECTED})


class Turned(NamedTuple):
    """What happened to a thread when a run ended in it. Interrupts are as they stand afterwards, but in `came`.

    Attributes:
        is_past: The run got past the questions that it came into.
        is_failed: It failed before it got there.
        came: Gated calls of earlier runs that came back.
        reopened: Its answers failed before their calls: open again.
        unknown: Its answers may have been taken, or not.
        consumed: Its answers were taken: their calls came back.
        again: Asked once more, each with the id that it has now.
        lost: Open before, and no longer asked for.
        known: Those of which the producer could tell: it had asked again, or their calls stand in the messages.
        forgotten: Open, and more than a thread keeps.
        circling: What is open, where the third run in a row ended alike.
    """

    is_past: bool = False
    is_failed: bool = False
    came: tuple[Came, ...] = ()
    reopened: tuple[Raised, ...] = ()
    unknown: tuple[Raised, ...] = ()
    consumed: tuple[Raised, ...] = ()
    again: tuple[tuple[Raised, str], ...] = ()
    lost: tuple[Raised, ...] = ()
    known: tuple[Raised, ...] = ()
    forgotten: tuple[Raised, ...] = ()
    circling: tuple[Raised, ...] = ()


NOTHING_HAPPENED = Turned()


class Turn:
    """One run's end, applied to its thread step by step. Places are those of `raised`, which only grows."""

    def __init__(self, thread: Thread, run: RunSeen) -> None:
        self.before = thread
        self.run = run
        self.raised = list(thread.raised)
        self.is_past = _had_finished(run) or run.ending not in _FAILED | _BROKEN
        self.is_failed = not _had_finished(run) and run.ending in _FAILED
        self.evidence = Evidence()
        own = run.run_id
        self.sent = [n for n, each in enumerate(self.raised) if each.answered_by == own and each.state in UNDER_WAY]
        self.moved: dict[int, str] = {}  # place -> the id under which it is asked again
        self.lost: list[int] = []
        self.forgotten: tuple[Raised, ...] = ()
        self.circling: tuple[Raised, ...] = ()
        self.same_set = thread.same_set

    def _set(self, place: int, state: State) -> None:
        self.raised[place] = self.raised[place]._replace(state=state)

    def _at(self, places: Iterable[int], *states: State) -> tuple[Raised, ...]:
        there = (self.raised[n] for n in places)
        return tuple(each for each in there if not states or each.state in states)

    # Which gated calls ran

    def look(self) -> None:
        """Results of gated calls that earlier runs asked for."""
        self.evidence = read_results(self.before, self.run)
        for place, state in self.evidence.states.items():
            self._set(place, state)

    # What became of the answers

    def settle(self) -> None:
        """An answer is taken, unless its run failed before the gated call, or broke off."""
        for place in self._waiting():
            self._set(place, self._fate_of(self.raised[place]))

    def _waiting(self) -> list[int]:
        """Its answers whose calls did not come back."""
        return [n for n in self.sent if n not in self.evidence.states]

    def _fate_of(self, sent: Raised) -> State:
        """Where an answer leaves its question whose gated call did not come back."""
        if self.is_past:
            return State.CLOSED
        return State.OPEN if self.is_failed and sent.state is State.SENT else State.UNKNOWN

    # What it asks

    def ask(self) -> None:
        """Its own interrupts, each id once. What is asked again moves here, and counts once."""
        asked: dict[str, Interrupt] = {}
        for each in self.run.interrupts if asks(self.run) else ():
            asked.setdefault(each.id, each)
        origins = _Origins(self.raised, asked.values(), self.run.run_id, {each.place for each in self.evidence.came})
        for interrupt in asked.values():
            self.raised.append(Raised(self.run.run_id, self._as_known(interrupt, origins.of(interrupt))))
        if asked:
            self.same_set = self.before.same_set + 1 if self._is_same_set(asked) else 1

    def _as_known(self, interrupt: Interrupt, place: int | None) -> Interrupt:
        """With what was said of the same question at `place`, which moves here."""
        if place is None or place in self.moved:
            return interrupt
        self.moved[place] = interrupt.id
        self._set(place, State.MOVED)
        return _completed(interrupt, self.raised[place].interrupt)

    def _is_same_set(self, asked: Mapping[str, Interrupt]) -> bool:
        """Whether it asks for all that the last run asked for, and nothing else."""
        paused = self.before.paused_run
        last = [n for n, each in enumerate(self.before.raised) if each.run_id == paused]
        return {self.moved.get(n) for n in last} == set(asked)

    # What nobody asks for any more

    def lose(self) -> None:
        """An open interrupt of an earlier run that a run got past, without an answer and without asking again."""
        if not self.is_past or self.run.input is None:
            return
        own, is_open = self.run.run_id, State.OPEN
        lost = [n for n, each in enumerate(self.raised) if each.state is is_open and each.run_id != own]
        for place in lost:
            self._set(place, State.LOST)
        self.lost = lost

    def _known(self) -> list[int]:
        """Which of the lost ones it could tell to be open: one that keeps nothing cannot (spec 1.0, Error Handling)."""
        if not self.lost:
            return []
        calls = self.run.input.calls if self.run.input is not None else NOTHING
        again = {each.interrupt.id for each in self.before.raised if each.state is State.MOVED}
        asked = {n: self.raised[n].interrupt for n in self.lost}
        return [n for n, each in asked.items() if each.tool_call_id in calls or each.id in again]

    # What it adds up to

    def thread(self) -> Thread:
        """The thread after this run."""
        asked = self._asked()
        kept = _worth_keeping(self.raised)
        has_open = any(each.state is State.OPEN for each in reversed(self.raised))  # what is open was asked of late
        after = self.before._replace(
            paused_run=self.run.run_id if asked else self.before.paused_run,
            raised=tuple(kept[-_MOST_RAISED:]),
            results=self.evidence.results(asked)[-_MOST_RESULTS:],
            same_set=self.same_set if has_open else 0,
            refusals=self._refusals() if has_open else (0, ""),
            runs=self._runs(),
            left=self.run.left if self.is_past else self.before.left,
        )
        self.forgotten = tuple(each for each in kept[:-_MOST_RAISED] if each.state in UNSETTLED)
        self.circling = after.open() if self._goes_round(after) else ()
        return after

    def _asked(self) -> tuple[Interrupt, ...]:
        return tuple(each.interrupt for each in self.raised[len(self.before.raised) :])

    def _runs(self) -> tuple[str, ...]:
        is_free = self.run.ending in FREES_ITS_ID or self.run.run_id == UNNAMED
        counted = () if is_free else (self.run.run_id,)
        return (*self.before.runs, *counted)[-_MOST_RUNS:]

    def _refusals(self) -> tuple[int, str]:
        """How many runs in a row failed alike. One that asks the same again has got nowhere, and is not counted."""
        number, refusal = self.before.refusals
        asks_the_same = self.same_set > max(self.before.same_set, 1)
        if (self.is_past and not asks_the_same) or (self.is_failed and self.evidence.states):
            return 0, ""
        if not self.is_failed:
            return number, refusal
        said = self.run.error_code or self.run.reason or ""
        return (number + 1 if said == refusal else 1), said

    def _goes_round(self, after: Thread) -> bool:
        fails_alike = self.is_failed and after.refusals[0] >= LOOP
        return fails_alike or (after.paused_run == self.run.run_id and after.same_set >= LOOP)

    def turned(self) -> Turned:
        """What happened. Last."""
        return Turned(
            is_past=self.is_past,
            is_failed=self.is_failed,
            came=self.evidence.came,
            reopened=self._at(self._waiting(), State.OPEN),
            unknown=self._at(self._waiting(), State.UNKNOWN),
            consumed=self._at(n for n in self.sent if n in self.evidence.states),
            again=tuple((self.raised[place], name) for place, name in self.moved.items()),
            lost=self._at(self.lost),
            known=self._at(self._known()),
            forgotten=self.forgotten,
            circling=self.circling,
        )

    def link(self, link: Link) -> Link:
        """The whole of how the run hangs in its thread: what it took up by an answer, or by asking again. Last, too.

        Of several runs whose questions it took up it names one: the last that asked.
        """
        answered = [n for n in self.sent if self.raised[n].state is not State.OPEN]
        taken_up = [self.raised[n] for n in sorted({*answered, *self.evidence.presumed, *self.moved})]
        resumed = link.resumes_run_id or (taken_up[-1].run_id if taken_up else None)
        return Link(
            resumes_run_id=resumed,
            answers=tuple(dict.fromkeys(each.interrupt.id for each in taken_up if each.run_id == resumed)),
            decided=tuple(self._decided()),
            executed=self.evidence.executed,
            bypassed=self.evidence.bypassed,
            lost=tuple((self.raised[n].run_id, self.raised[n].interrupt.id) for n in self.lost),
            asked=self._asked(),
            findings=link.findings,
        )

    def _decided(self) -> Iterator[Decided]:
        """The answers that this run shows to be taken, whichever run brought them: one may have broken off before."""
        for place in sorted({*self.sent, *self.evidence.states}):
            was, each = self.before.raised[place], self.raised[place]
            if each.state is State.CLOSED and was.state in UNDER_WAY and each.answer is not None:
                yield resumes.decided(each, each.answer)


def asks(run: RunSeen) -> bool:
    """Whether it stopped to ask; what a broken or failed stream was about to ask, it did not."""
    if run.ending is Ending.SUCCESS:  # with calls to the client's own tools that the policy calls waits
        return run.cause in WAITING
    return run.ending is Ending.INTERRUPT or _had_finished(run)


def _had_finished(run: RunSeen) -> bool:
    """Whether its RUN_ERROR came after its RUN_FINISHED."""
    return run.is_late and run.ending is Ending.ERROR


def _completed(interrupt: Interrupt, before: Interrupt) -> Interrupt:
    """What is asked again, with what was said of it the first time: a run may not see its call a second time."""
    return interrupt._replace(
        tool_call_id=interrupt.tool_call_id or before.tool_call_id,
        tool=interrupt.tool or before.tool,
        raised_by=interrupt.raised_by or before.raised_by,
        owner=interrupt.owner or before.owner,
        due=interrupt.due or before.due,
        due_in_s=interrupt.due_in_s or before.due_in_s,
    )


class _Origins:
    """Which earlier interrupt a new one is, asked again: that of the same id, else that of the same call."""

    def __init__(self, raised: list[Raised], asked: Collection[Interrupt], run_id: str, ran: set[int]) -> None:
        self._by_id: dict[str, int] = {}
        self._answered: dict[str, int] = {}
        self._by_call: dict[str, int] = {}
        self._raised = raised
        ids = {each.id for each in asked}
        calls = {each.tool_call_id for each in asked} - {None}
        for place, (_, interrupt, state, _, answered_by) in enumerate(raised if asked else ()):
            if (interrupt.id not in ids and interrupt.tool_call_id not in calls) or place in ran:
                continue  # where its call came back, it is another question that is asked
            if state in UNSETTLED:
                self._by_id[interrupt.id] = place
            elif state is State.CLOSED and answered_by == run_id:
                self._answered[interrupt.id] = place
            if state in UNANSWERED and interrupt.tool_call_id is not None:
                self._by_call[interrupt.tool_call_id] = place

    def of(self, interrupt: Interrupt) -> int | None:
        answered = self._answered.get(interrupt.id)
        if answered is not None and _is_same_question(self._raised[answered].interrupt, interrupt):
            return answered
        by_call = self._by_call.get(interrupt.tool_call_id) if interrupt.tool_call_id is not None else None
        return self._by_id.get(interrupt.id, by_call)


def _is_same_question(one: Interrupt, other: Interrupt) -> bool:
    """Whether an id that was answered stands for the same question still: it is unique in its run, and no further."""
    calls = {each.tool_call_id for each in (one, other) if each.tool_call_id is not None}
    return len(calls) <= 1 and (one.kind, one.schema_digest) == (other.kind, other.schema_digest)


def _worth_keeping(raised: list[Raised]) -> list[Raised]:
    """What may still matter: what is not settled, and everything of the last runs that asked."""
    last = _last_to_ask(raised)
    return [each for each in raised if each.state in UNSETTLED or each.run_id in last]


def _last_to_ask(raised: list[Raised]) -> set[str]:
    last: set[str] = set()
    for each in reversed(raised):
        if len(last) == _MOST_ASKING and each.run_id not in last:
            break
        last.add(each.run_id)
    return last
