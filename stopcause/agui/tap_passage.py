"""One request with its response, watched as they pass. Its callers hand every byte on first, and show it here then.

What it sees of runs goes to its `Tap`.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from stopcause.agui.frames import Event, Frames
from stopcause.agui.given import read_given
from stopcause.agui.lifecycle import Watch
from stopcause.agui.scene import NO_REQUEST, Request
from stopcause.agui.tap_faults import failed, once
from stopcause.agui.tap_held import HeldParts
from stopcause.agui.values import Begun, Input, Json, RunSeen
from stopcause.receipts.vocabulary import Sign

if TYPE_CHECKING:
    from stopcause.agui.tap import Tap

MOST_ASKED = 10 * 2**20  # bytes of a request's body; the input of a longer one is not read
_STREAMS = frozenset({"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"})
_PROTOBUF = "application/vnd.ag-ui.event+proto"
_REFUSED = range(400, 600)
_ELSEWHERE = range(300, 400)  # a redirect is no refusal: the client may send the input again
_NOBODY = 503  # what stands for a server that was not there
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
_now = time.time  # seconds since 1970


def json_of(body: bytes) -> Json:
    """What a body says, or None where it is no JSON, or so deep that nobody reads it."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _quiet(method: Callable[Concatenate[Passage, _P], None]) -> Callable[Concatenate[Passage, _P], None]:
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
        self._held = HeldParts()
        self._watch: Watch | None = None
        self._run: Begun | None = None  # that is open
        self._request = NO_REQUEST
        self._sign = Sign.HEARTBEAT
        self._told_at = 0.0

    @property
    def is_stream(self) -> bool:
        """Whether what comes from here on is to be shown."""
        return self._frames is not None and not self.is_over

    @_quiet
    def asked(self, chunk: bytes) -> None:
        """A part of the request's body, kept as it is until the response begins."""
        self._size += len(chunk)
        if self._size <= MOST_ASKED:
            self._asked.append(chunk)
        else:
            self._asked.clear()

    @_quiet
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

    @_quiet
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
        try:  # here and not by `_quiet`: this is the one method that is called often
            return self._held.add(bytes(chunk), _now())  # of bytes the same; a buffer may be used again
        except Exception as error:  # noqa: BLE001 - as `_quiet`
            self.is_over = True
            failed("keep", error)
            return False

    @_quiet
    def read(self) -> None:
        """Reads what was kept."""
        if self._frames is not None:
            for body, came_at in self._held.take():
                self._take(self._frames.feed(body), came_at)

    def passed(self, chunk: bytes) -> None:
        """A part of the stream, which has been handed on."""
        if self.keep(chunk):
            self.read()

    @_quiet
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
        """The input, where the request was one. What else it said is let go here, but for payloads of its answers."""
        body, self._asked = b"".join(self._asked), []
        given = read_given(json_of(body)) if body else None
        if given is None:
            return None if body else self.given
        self._request = Request(given.payloads)
        return given.input

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
                self._tap.begun(run, self._request, tells=self._tells)
            else:
                self._run = None
                self._tap.ended(run, self._request, tells=self._tells, error=error)
            self._request = NO_REQUEST  # they were looked at


def _time_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
