"""What both taps share: a request and its response are watched as they pass, and leave records. No HTTP library here.

`Tap` is one place where AG-UI passes: its agent's name, and what it knows of the threads. `Passage` is one request with
its response. Their callers hand every byte on first and show it here afterwards; what fails here costs records only.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from stopcause.agui import told
from stopcause.agui.frames import Event, Frames
from stopcause.agui.guard_state import GuardState, StateError
from stopcause.agui.ids import safe
from stopcause.agui.inputs import read_input
from stopcause.agui.ledger import Ledger
from stopcause.agui.lifecycle import Watch
from stopcause.agui.tap_held import Held
from stopcause.agui.turns import FREES_ITS_ID
from stopcause.agui.values import UNNAMED, Begun, Input, Json, Link, RunSeen, Thread
from stopcause.agui.words import Ending
from stopcause.receipts import capture, process
from stopcause.receipts.faults import fault_of, provider_cause
from stopcause.receipts.vocabulary import Boundary, Kind, Sign, StopCause

if TYPE_CHECKING:
    from stopcause.agui.guard import ResumeGuard

log = logging.getLogger("stopcause")

MOST_ASKED = 10 * 2**20  # bytes of a request's body; the input of a longer one is not read
_STREAMS = frozenset({"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"})
_PROTOBUF = "application/vnd.ag-ui.event+proto"
_REFUSED = range(400, 600)
_ELSEWHERE = range(300, 400)  # a redirect is no refusal: the client may send the input again
_NOBODY = 503  # what stands for a server that was not there
_MOST_TRIES = 10_000  # runs that are known to have been refused, or to have broken off
_PROGRESS_S = 10.0  # at most one sign of life in so many seconds
_SIGNS = {
    "TEXT_MESSAGE_CONTENT": Sign.OUTPUT,
    "TEXT_MESSAGE_CHUNK": Sign.OUTPUT,
    "STATE_SNAPSHOT": Sign.STATE_CHANGE,
    "STATE_DELTA": Sign.STATE_CHANGE,
    "TOOL_CALL_RESULT": Sign.TOOL_RESULT,
}
_BY_WORTH = (Sign.HEARTBEAT, Sign.OUTPUT, Sign.STATE_CHANGE, Sign.TOOL_RESULT)
_P = ParamSpec("_P")
_said: set[object] = set()  # what this process has been told once


def quiet(method: Callable[Concatenate[Passage, _P], None]) -> Callable[Concatenate[Passage, _P], None]:
    """What is ours never raises into the host. Where it fails, this passage is watched no more."""

    @functools.wraps(method)
    def called(self: Passage, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        if self.is_over:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever a stream of anybody's makes of it
            self.is_over = True
            failed(method.__name__, error)

    return called


def failed(where: str, error: Exception) -> None:
    """Something of ours went wrong: said once a process for each type, and on the next record."""
    with contextlib.suppress(Exception):  # a log handler of the host's, say
        once(type(error), "stopcause: an AG-UI stream is watched no more (%s in %s)", type(error).__name__, where)
        if (writer := capture.writer()) is not None:
            writer.say("hook_failed", f"{told.ADAPTER}:{where}")


def once(what: object, message: str, *words: object) -> None:
    """A warning that this process is given once."""
    if what not in _said:
        _said.add(what)
        log.warning(message, *words)


def json_of(body: bytes) -> Json:
    """What a body says, or None where it is no JSON, or so deep that nobody reads it."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


class Tap:
    """One place where AG-UI passes: a middleware, or a transport.

    Args:
        agent: What the agent is called.
        guard: The consumer's. What it knows of a thread is what is known here.
        threads: A file that keeps what threads wait for; without it, or a guard, this process's memory does.
        is_home: Whether the runs live in this process: then its end is theirs.
    """

    def __init__(
        self,
        agent: str | None = None,
        *,
        guard: ResumeGuard | None = None,
        threads: str | Path | None = None,
        is_home: bool = False,
    ) -> None:
        self.agent, self.guard, self.threads, self.is_home = agent, guard, threads, is_home
        self._ledger = Ledger()
        self._state = None if threads is None else GuardState(Path(threads))
        self._tries: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()  # of all this: a transport is used from many threads

    def __reduce__(self) -> tuple[Callable[[], Tap], tuple[()]]:
        """A copy has eyes of its own: it knows nothing of what this one saw."""
        made = functools.partial(Tap, self.agent, guard=self.guard, threads=self.threads, is_home=self.is_home)
        return made, ()

    def passage(self) -> Passage | None:
        """One request and its response; None where nobody wants to know of it."""
        try:
            tells = not capture.is_off("agui")
            return Passage(self, tells=tells) if tells or self.guard is not None else None
        except Exception as error:  # noqa: BLE001 - a fault of ours
            failed("passage", error)
            return None

    def begun(self, run: Begun, *, tells: bool) -> None:
        """A run was seen to begin."""
        link = self._link_of(run, lambda: self._ledger.begun(run))
        if self.is_home and self._state is None and run.input is not None and run.input.resume and not link.answers:
            once(
                "threads", "stopcause: answers to what this process never asked; AguiMiddleware(threads=FILE) remembers"
            )
        if tells:
            self._tell(run, told.begun_records(run, link, self._source()))

    def went_on(self, run: Begun, sign: Sign, at: datetime) -> None:
        """A run gave a sign of life."""
        self._tell(run, [told.progress_record(run, sign, at, self._source())])

    def ended(self, run: RunSeen, *, tells: bool, error: Exception | None = None) -> None:
        """A run was seen to end, perhaps for the second time; `error` is what broke its stream off, here."""
        link = self._link_of(run, lambda: self._ledger.ended(run))
        if tells:
            drafts = told.ended_records(run, link, self._source())
            if error is not None and run.ending is Ending.TRUNCATED:
                drafts = [draft | _raised(error) if draft["kind"] == Kind.STOPPED else draft for draft in drafts]
            self._tell(run, drafts, is_receipt=True)
        if run.ending in FREES_ITS_ID:
            self._is_free(run)

    def _link_of(self, run: Begun | RunSeen, step: Callable[[], Link]) -> Link:
        """How a run hangs in its thread, by whoever knows the thread best: the guard, the file, or this process."""
        with self._lock:
            if self.guard is not None:
                before = self.guard.thread(run.thread_id)
                self.guard.saw(run)
                self._ledger.threads[run.thread_id] = before
            elif self._state is not None:
                return self._kept(run.thread_id, step, self._state)
            return step()

    def _kept(self, thread_id: str, step: Callable[[], Link], state: GuardState) -> Link:
        links: list[Link] = []

        def change(thread: Thread) -> Thread:
            self._ledger.threads[thread_id] = thread
            links.append(step())
            return self._ledger.threads[thread_id]

        try:
            state.change(thread_id, change)
        except StateError as error:
            once(
                error.word,
                "stopcause: what AG-UI threads wait for is in memory only: their file fails (%s)",
                error.word,
            )
        return links[0] if links else step()

    def _is_free(self, run: RunSeen) -> None:
        """Clients send what was refused, or broke off, again under the same id: the next one is another attempt."""
        with self._lock:
            key = run.thread_id, safe(run.run_id)
            self._tries[key] = self._tries.pop(key, 0) + 1
            if len(self._tries) > _MOST_TRIES:
                del self._tries[next(iter(self._tries))]

    def _tell(self, run: Begun | RunSeen, drafts: list[told.Draft], *, is_receipt: bool = False) -> None:
        if run.run_id == UNNAMED:  # nobody could find it, and all such would be one
            return
        for draft in drafts if self._tries else ():
            if tries := self._tries.get((run.thread_id, draft["run_id"])):
                draft["attempt"] = tries + 1
        capture.tell(drafts, is_receipt=is_receipt)

    def _source(self) -> told.Source:
        """What holds for records that are made now."""
        now = capture.configured_now()
        return told.Source(
            agent=self.agent, service=now.service, environment=now.environment, labels=now.labels, lease_s=now.lease_s,
            process=process.identity() if self.is_home else None, route_of=now.route_of,
        )  # fmt: skip


class Passage:
    """One request and its response. Its methods never raise.

    Attributes:
        is_over: Nothing more is wanted of it.
        given: The input, where somebody has read it before it was sent.
    """

    def __init__(self, tap: Tap, *, tells: bool) -> None:
        self.is_over = False
        self.given: Input | None = None
        self._tap, self._tells = tap, tells
        self._asked: list[bytes] = []
        self._size = 0
        self._frames: Frames | None = None
        self._held = Held()
        self._watch: Watch | None = None
        self._run: Begun | None = None  # that is open
        self._sign = Sign.HEARTBEAT
        self._told_at = 0.0

    @property
    def is_stream(self) -> bool:
        """Whether what comes from here on is to be shown."""
        return self._frames is not None and not self.is_over

    @quiet
    def asked(self, chunk: bytes) -> None:
        """A part of the request's body, kept as it is until the response begins."""
        self._size += len(chunk)
        if self._size <= MOST_ASKED:
            self._asked.append(chunk)
        else:
            self._asked.clear()

    @quiet
    def answered(self, status: int, content_type: str, encoding: str) -> None:
        """The response begins. One that is neither a refusal nor a stream of events is of no interest."""
        media = content_type.partition(";")[0].strip().lower()
        is_plain = encoding.strip().lower() in ("", "identity")
        if media in _STREAMS and status not in _REFUSED and is_plain:
            self._frames = Frames()
            return
        if media in _STREAMS or media == _PROTOBUF:
            once(media, "stopcause: an AG-UI stream that is compressed or protobuf is passed on and not read")
        if status in _REFUSED:
            self._refused(status)
        else:
            self.unanswered(has_left=status not in _ELSEWHERE)
        self.is_over = True

    @quiet
    def unanswered(self, *, has_left: bool) -> None:
        """There is no stream. The guard has to know; `has_left`: the input may have arrived, and been acted on."""
        if self._tap.guard is not None and self.given is not None:
            watch = Watch(self.given) if has_left else Watch(self.given, http_status=_NOBODY)
            for run in watch.close(_time_of(_now())):
                self._tap.guard.saw(run)
        self.is_over = True

    def _refused(self, status: int) -> None:
        if (given := self._input()) is not None:
            self._tell(Watch(given, http_status=status).close(_time_of(_now())))

    def keep(self, chunk: bytes) -> bool:
        """A part of the stream. Gives whether `read` is due once it has been handed on; most parts can wait."""
        if self._frames is None or self.is_over:
            return False
        try:  # here and not by `quiet`: this is the one method that is called often
            return self._held.add(bytes(chunk), _now())  # of bytes the same; a buffer may be used again
        except Exception as error:  # noqa: BLE001 - as `quiet`
            self.is_over = True
            failed("keep", error)
            return False

    @quiet
    def read(self) -> None:
        """Reads what was kept."""
        if self._frames is not None:
            for body, came_at in self._held.take():
                self._take(self._frames.feed(body), came_at)

    def passed(self, chunk: bytes) -> None:
        """A part of the stream, which has been handed on."""
        if self.keep(chunk):
            self.read()

    @quiet
    def ended(self, *, left_by_reader: bool = False, error: Exception | None = None) -> None:
        """Nothing more comes: the stream is over, its reader has left it, or the agent raised an error."""
        self.read()
        if self._frames is not None and not self.is_over:
            now = _now()
            self._take(self._frames.end(), now)
            self._tell(self._watching().close(_time_of(now), left_by_reader=left_by_reader), error)
        self.is_over = True

    def _watching(self) -> Watch:
        """Made at the stream's first byte: by then the whole input has been sent."""
        if self._watch is None:
            self._watch = Watch(self._input())
        return self._watch

    def _input(self) -> Input | None:
        """The input, where the request was one. What else it said is let go here."""
        body, self._asked = b"".join(self._asked), []
        return read_input(json_of(body)) if body else self.given

    def _take(self, events: list[Event], came_at: float) -> None:
        watch, at = self._watching(), _time_of(came_at)
        for event in events:
            if seen := watch.take(event, at):
                self._tell(seen)
            if not isinstance(event, tuple) and (sign := _SIGNS.get(event["type"])) is not None:
                self._sign = max(sign, self._sign, key=_BY_WORTH.index)
        if self._run is not None and abs(came_at - self._told_at) >= _PROGRESS_S:
            self._progressed(self._run, came_at)

    def _progressed(self, run: Begun, came_at: float) -> None:
        if self._tells:
            self._tap.went_on(run, self._sign, _time_of(came_at))
        self._sign, self._told_at = Sign.HEARTBEAT, came_at

    def _tell(self, seen: tuple[Begun | RunSeen, ...], error: Exception | None = None) -> None:
        for run in seen:
            if isinstance(run, Begun):
                self._run, self._sign, self._told_at = run, Sign.HEARTBEAT, _now()
                self._tap.begun(run, tells=self._tells)
            else:
                self._run = None
                self._tap.ended(run, tells=self._tells, error=error)


def _raised(error: Exception) -> told.Draft:
    """What an error says of an end, by its types."""
    fault = fault_of(error)
    cause = provider_cause(error) or StopCause.HOST_ERROR
    named = {"type": fault.type, "chain": list(fault.chain)} if fault.type else {}
    return {"stop_cause": cause, "boundary": Boundary.EXCEPTION, "error": named}


_now = time.time  # seconds since 1970


def _time_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
