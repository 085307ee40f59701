"""The consumer's duty before it sends: may this input go out, given what its thread waits for?

    guard = ResumeGuard("guard.db")
    if (check := guard.check(payload)).refused: ...   # before a byte is sent
    guard.sent(payload)                               # durable, so that a crash forgets no answer
    for chunk in guard.watching(payload, stream): ... # what came back, as it comes

What it knows of a thread is `values.Thread`, moved on by `ledger`, and kept by `guard_state`; the rules are in
`guard_rules`. A guard knows what it saw: an answer to a run that it never saw answers nothing that is open.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from stopcause.agui import ledger, schemas
from stopcause.agui.answers import Answers
from stopcause.agui.findings import Finding, found
from stopcause.agui.frames import Event, Frames
from stopcause.agui.given import Given, read_given
from stopcause.agui.guard_rules import Asked, findings_of, overtaken, refuses, without_old_channel
from stopcause.agui.guard_state import GuardState, StateError
from stopcause.agui.lifecycle import Watch
from stopcause.agui.times import aware
from stopcause.agui.values import Begun, Input, Json, Raised, RunSeen, Thread
from stopcause.agui.words import UNDER_WAY, Mode, State
from stopcause.errors import ConfigurationError, ResumeRefusedError

log = logging.getLogger("stopcause")

_ANSWER_ALL = "`guard.answers(thread_id)` builds a list that answers what is open."
_WAYS_OUT = {
    "ANSWER_CHANGED": "It was answered before; once somebody saw that this was not taken: `guard.reopen(thread_id)`.",
    "GUARD_STATE_UNREADABLE": "The log names the guard's file, and what to do with it.",
    "INPUT_UNREADABLE": "Send a RunAgentInput, with threadId and runId.",
}
_MOST_UNSAVED = 1_000  # runs that a file in trouble has not taken yet
_MOST_FORGOTTEN = 10_000  # threads; beyond, none is known


class Check(NamedTuple):
    """Whether an input may be sent, and what was found."""

    refused: bool
    findings: tuple[Finding, ...]


class _Unsaved(NamedTuple):
    """A run that was seen, and is to be kept."""

    thread_id: str
    step: Callable[[Thread], Thread]


class ResumeGuard:
    """What the threads of one consumer wait for, and which inputs may go out. For any number of threads and processes.

    Args:
        path: The guard's own file, made where there is none; None keeps everything in memory. Of each agent another:
            two may have threads of one name.
        on_unreadable: What `check` says where that file cannot be used: it refuses, or it says so and goes on with
            what this process saw.

    Raises:
        ConfigurationError: `on_unreadable` is another word: it would let everything pass, or nothing.
        MissingExtraError: The extra `agui` is not installed: payloads could not be held against their schema.
    """

    def __init__(self, path: str | Path | None = None, *, on_unreadable: Literal["refuse", "allow"] = "refuse") -> None:
        if on_unreadable not in ("refuse", "allow"):
            raise ConfigurationError(f"on_unreadable must be 'refuse' or 'allow', not {on_unreadable!r}")
        schemas.require()
        self.path = None if path is None else Path(path)
        self.on_unreadable = on_unreadable
        self._state = GuardState(self.path)
        self._seen = GuardState(None)  # by this process, while the file is in trouble
        self._unsaved: deque[_Unsaved] = deque()
        self._forgotten: set[str] = set()  # threads of which a run could not be kept
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def check(self, input: Json, now: datetime | None = None) -> Check:  # noqa: A002 - what AG-UI calls it
        """Whether this RunAgentInput (JSON, or a model of the SDK) may be sent now. Changes nothing, never raises."""
        given = read_given(input)
        if given is None:
            return Check(refused=True, findings=(found("INPUT_UNREADABLE"),))
        try:
            return self._check(given, aware(now))
        except Exception as error:  # noqa: BLE001 - what was not looked at is not sent
            self._say("check", f"an input could not be checked ({type(error).__name__})")
            return Check(refused=True, findings=(found("INPUT_UNREADABLE"),))

    def _check(self, given: Given, now: datetime) -> Check:
        try:
            self._save(given.input.thread_id)
            findings = _look(self._state, given, now)
        except StateError as error:
            trouble = self._trouble(error)
            if self.on_unreadable == "refuse":
                return Check(refused=True, findings=(trouble,))
            findings = _look(self._seen, given, now)
            return Check(any(map(refuses, findings)), (*findings, trouble))
        return Check(any(map(refuses, findings)), findings)

    def sent(self, input: Json) -> None:  # noqa: A002 - what AG-UI calls it
        """This input is about to be sent: its answers are under way. Durable when this returns.

        Raises:
            ResumeRefusedError: Do not send it: somebody else has answered in another way since it was checked, or the
                thread asks for something else by now; or the guard's file cannot be written, and `on_unreadable` is
                `refuse`.
        """
        if (read := read_given(input)) is None:
            return
        given = read.input
        try:
            self._save(given.thread_id)
            self._state.change(given.thread_id, lambda thread: _sent(thread, given))
        except StateError as error:
            self._refuse(error)
            self._seen.change(given.thread_id, lambda thread: _sent(thread, given))

    def watching(self, input: Json, stream: Iterable[bytes]) -> Iterator[bytes]:  # noqa: A002 - what AG-UI calls it
        """Hands on the stream that answers an input, chunk by chunk, and sees what it says.

        Each chunk is read before it is handed on: a guard has to know of a question before somebody answers it.
        """
        given = read_given(input)
        watch, frames, is_left = Watch(given.input if given is not None else None), Frames(), False
        try:
            for chunk in stream:
                self._see(watch, frames.feed(chunk))
                yield chunk
        except GeneratorExit:
            is_left = True
            raise
        finally:
            self._see(watch, frames.end())
            for run in watch.close(left_by_reader=is_left):
                self.saw(run)

    def _see(self, watch: Watch, events: Iterable[Event]) -> None:
        try:
            for event in events:
                for run in watch.take(event):
                    self.saw(run)
        except Exception as error:  # noqa: BLE001 - the host's stream goes on
            self._say("watching", f"a stream could not be read ({type(error).__name__})")

    def saw(self, run: Begun | RunSeen) -> None:
        """What the stream said of a run: its beginning, and its end. Never raises; what cannot be kept now is later."""
        step = _begun(run) if isinstance(run, Begun) else _ended(run)
        try:
            if self.on_unreadable == "allow":
                self._seen.change(run.thread_id, step)
            with self._lock:
                self._unsaved.append(_Unsaved(run.thread_id, step))
                while len(self._unsaved) > _MOST_UNSAVED:
                    self._forgotten.add(self._unsaved.popleft().thread_id)
            self._save(run.thread_id)
        except StateError as error:
            self._trouble(error)
        except Exception as error:  # noqa: BLE001 - the host's stream goes on
            self._forget(run.thread_id, error)

    def knows(self, thread: Thread) -> None:
        """A thread as somebody else followed it, in place of every run that was seen of it. Never raises.

        A long history is kept once, and not anew for each of its runs.
        """
        try:
            self._state.change(thread.id, lambda _: thread)
        except StateError as error:
            self._trouble(error)

    def reopen(self, thread_id: str) -> tuple[str, ...]:
        """Somebody looked, and what was answered there was never taken: it is open again, for any answer.

        For an answer whose stream broke off, or whose sender died: nobody knows what became of it, so a guard lets it
        be sent once more as it was, and in no other way.

        Returns:
            The interrupts that are open again.

        Raises:
            ResumeRefusedError: The guard's file cannot be used.
        """
        again: dict[str, None] = {}

        def reopened(thread: Thread) -> Thread:
            again.update(dict.fromkeys(each.interrupt.id for each in thread.raised if _is_unsure(thread, each)))
            return _reopened(thread)

        try:
            self._save(thread_id)
            self._state.change(thread_id, reopened)
        except StateError as error:
            raise ResumeRefusedError(str(error), (self._trouble(error),)) from None
        return tuple(again)

    def thread(self, thread_id: str) -> Thread:
        """What is known of a thread, ids as the wire gives them; an empty one where nothing is."""
        try:
            return self._kept(thread_id)
        except StateError as error:
            self._trouble(error)
            return self._seen.thread(thread_id)

    def answers(self, thread_id: str, now: datetime | None = None) -> Answers:
        """Builds a complete list of answers to what this thread waits for.

        Raises:
            ResumeRefusedError: The guard's file cannot be used, and `on_unreadable` is `refuse`: what is open is not
                known.
        """
        try:
            return Answers(self._kept(thread_id), aware(now))
        except StateError as error:
            self._refuse(error)
            return Answers(self._seen.thread(thread_id), aware(now))

    def _kept(self, thread_id: str) -> Thread:
        self._save(thread_id)
        return self._state.thread(thread_id)

    def _save(self, thread_id: str) -> None:
        """Everything that was seen and is not kept yet, in its order. Raises where something of this thread is lost."""
        with self._lock:
            while self._unsaved:
                run = self._unsaved[0]
                try:
                    self._state.change(run.thread_id, run.step)
                except StateError:
                    raise
                except Exception as error:  # noqa: BLE001 - one thread's run is no reason to refuse all others
                    self._forget(run.thread_id, error)
                self._unsaved.popleft()
        if thread_id in self._forgotten or len(self._forgotten) > _MOST_FORGOTTEN:
            raise StateError("forgot", self.path)

    def _forget(self, thread_id: str, error: Exception) -> None:
        self._forgotten.add(thread_id)
        self._say("forgot", f"a run could not be kept ({type(error).__name__}); its thread is not known any more")

    def _refuse(self, error: StateError) -> None:
        """Raises, where the host did not choose to go on."""
        trouble = self._trouble(error)
        if self.on_unreadable == "refuse":
            raise ResumeRefusedError(str(error), (trouble,)) from None

    def _trouble(self, error: StateError) -> Finding:
        self._say(error.word, str(error))
        return found("GUARD_STATE_UNREADABLE", error.word)

    def _say(self, word: str, message: str) -> None:
        """Once for each kind of trouble: a service checks thousands of times."""
        if word not in self._said:
            self._said.add(word)
            log.error("stopcause: %s", message)


def refusal(check: Check) -> ResumeRefusedError:
    """A refused check as the error that stops the sending. It names findings and ids, and no answer."""
    faults = [each for each in check.findings if refuses(each)]
    if not faults:
        raise ValueError("a check that passes is no refusal")
    words = "; ".join(f"{each.name} {' '.join(each.ids)}".rstrip() for each in faults)
    way_out = _WAYS_OUT.get(faults[0].name, _ANSWER_ALL)
    return ResumeRefusedError(f"This input was not sent: {words}. {way_out}", check.findings)


def _look(state: GuardState, given: Given, now: datetime) -> tuple[Finding, ...]:
    def is_elsewhere(interrupt_id: str) -> bool:
        return state.is_known_elsewhere(interrupt_id, given.input.thread_id)

    thread = state.thread(given.input.thread_id)
    return findings_of(Asked(thread, given.input, given.payloads, now, is_elsewhere))


# Steps of a thread ----------------------------------------------------------------------------------------------------


def _begun(run: Begun) -> Callable[[Thread], Thread]:
    return lambda thread: ledger.begun(thread, run)[0]


def _ended(run: RunSeen) -> Callable[[Thread], Thread]:
    return lambda thread: ledger.ended(thread, run)[0]


def _is_unsure(thread: Thread, raised: Raised) -> bool:
    return thread.asks(raised) and raised.state in UNDER_WAY


def _reopened(thread: Thread) -> Thread:
    def reopened(raised: Raised) -> Raised:
        unsure = _is_unsure(thread, raised)
        return raised._replace(state=State.OPEN, answer=None, answered_by=None) if unsure else raised

    return thread._replace(raised=tuple(map(reopened, thread.raised)))


def _sent(thread: Thread, given: Input) -> Thread:
    """In one transaction with a last look: of two that go on from one question at the same time, one is too late."""
    heard, now = without_old_channel(thread, given), datetime.now(UTC)
    if late := overtaken(thread, heard, now):
        raise refusal(Check(refused=True, findings=late))
    return ledger.begun(thread, Begun(given.thread_id, given.run_id, Mode.SPEC, heard, now))[0]
