"""Bytes of a stream -> events, as they arrive: frames of SSE, or lines of NDJSON.

Here is the framing (as the WHATWG text has it, and the reference client reads it: `event`, `id` and `retry` mean
nothing, one frame is one event) and what a frame is. What events mean is the lifecycle's; files are the reader's.
No frame is kept once it is read, and one that is too large is not kept at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from stopcause.agui.parsing import TooDeepError, read_json
from stopcause.agui.values import Json

LARGEST = 10_000_000  # bytes of one frame; the reference client's limit
_LARGE = 65_536  # bytes, from which on it pays to look at a frame before it is read
_MOST_BRACKETS = 250_000  # lists and objects of one frame: small ones take forty times as much memory as text
BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 256
_HEAD = re.compile(rb'\s*\{\s*"type"\s*:\s*"([A-Z_]{1,64})"(?:\s*,\s*"timestamp"\s*:\s*([0-9]{1,15})\s*[,}])?')

# Events that are all content, and nothing opens or closes with them: of large ones the head says enough. The field is
# the one that they must have, and it is given empty.
_SKIMMED: Mapping[bytes, tuple[str, Callable[[], Json]]] = {
    b"RAW": ("event", dict),
    b"STATE_SNAPSHOT": ("snapshot", dict),
    b"STATE_DELTA": ("delta", list),
}


class Unreadable(NamedTuple):
    """A frame that gave no event.

    Attributes:
        name: The finding that it is. What is nested too deep, or has too much in it, is too large as well.
        type: What its head says that it would have been.
        is_tail: The stream ended inside it: then it is no fault of its own, the stream is truncated.
    """

    name: Literal["FRAME_UNREADABLE", "FRAME_TOO_LARGE"]
    type: str | None = None
    is_tail: bool = False


Event: TypeAlias = Mapping[str, Json] | Unreadable


class Frames:
    """Takes a stream in chunks of any size, gives the events that are whole by then. Which form it has, it sees.

    An SSE stream has no line that begins with a bracket, as no field's name does; NDJSON has no other.
    """

    def __init__(self, largest: int = LARGEST) -> None:
        self._largest = largest
        self._lines = Lines(largest + len(b"data: "))
        self._take: Callable[[list[bytes]], list[Event]] = self._begin
        self._is_first = True
        self._frame: bytes | bytearray | None = None  # the one that is not over; of a large one a byte too many

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that end in this chunk."""
        return self._take(self._lines.feed(chunk))

    def end(self) -> list[Event]:
        """What the end of the stream makes of its tail: an event, where that is whole."""
        events = self._take(self._lines.end())
        self._close(events)
        return [each._replace(is_tail=True) if isinstance(each, Unreadable) else each for each in events]

    def _begin(self, lines: list[bytes]) -> list[Event]:
        """Until a line has something in it."""
        if self._is_first and lines:
            lines[0] = lines[0].removeprefix(BOM)
            self._is_first = False
        line = next((line for line in lines if is_filled(line)), None)
        if line is None:
            return []
        self._take = self._take_ndjson if line.lstrip()[:1] in b"{[" else self._take_sse
        return self._take(lines)

    def _take_sse(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._add(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                self._close(events)
            elif line == b"data":
                self._add(b"")
        return events

    def _take_ndjson(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            self._add(line)
            self._close(events)
        return events

    def _add(self, data: bytes) -> None:
        """One line more of the frame. Nearly all have only one, which is not copied."""
        if self._frame is None:
            self._frame = data
            return
        room = self._largest + 1 - len(self._frame)
        if isinstance(self._frame, bytes):
            self._frame = bytearray(self._frame)
        self._frame += (b"\n" + data)[: max(room, 0)]

    def _close(self, events: list[Event]) -> None:
        """Ends the frame. One without data, or with white space only, is none."""
        if self._frame is None:
            return
        frame, self._frame = bytes(self._frame), None
        if len(frame) > self._largest:
            events.append(Unreadable("FRAME_TOO_LARGE", type_of(frame)))
        elif is_filled(frame):
            events.append(read_event(frame))


class Lines:
    """Splits a stream into lines that end in LF, CRLF or CR. Of one that is longer than `longest` it keeps a byte more.

    Where a chunk ends in CR the line is over; an LF that comes next belongs to it.
    """

    def __init__(self, longest: int) -> None:
        self._most = longest + 1
        self._rest = bytearray()
        self._ends_in_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk, without their ends."""
        if self._ends_in_cr or b"\r" in chunk:
            chunk = self._with_plain_ends(chunk)
        lines = chunk.split(b"\n")
        if self._rest and len(lines) > 1:
            self._keep(lines[0])
            lines[:1] = self.end()
        self._keep(lines.pop())
        return lines

    def end(self) -> list[bytes]:
        """The line that has no end, where there is one."""
        lines = [bytes(self._rest)] if self._rest else []
        self._rest = bytearray()
        return lines

    def _keep(self, part: bytes) -> None:
        room = self._most - len(self._rest)
        self._rest += part if len(part) <= room else part[:room]

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        if self._ends_in_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._ends_in_cr = False
        self._ends_in_cr |= chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def read_event(frame: bytes) -> Event:
    """The event that a frame is."""
    if len(frame) >= _LARGE and (event := _at_a_glance(frame)):
        return event
    try:
        return as_event(read_json(frame))
    except ValueError as error:
        return unreadable(frame, error)


def unreadable(frame: bytes, error: ValueError) -> Unreadable:
    """A frame that `read_json` did not take."""
    is_ours = isinstance(error, TooDeepError)  # it may well be JSON
    return Unreadable("FRAME_TOO_LARGE" if is_ours else "FRAME_UNREADABLE", type_of(frame))


def as_event(value: Json) -> Event:
    """A value as an event: an object with a `type`. Which types there are is not known here."""
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        return value
    return Unreadable("FRAME_UNREADABLE")


def type_of(frame: bytes) -> str | None:
    """The type that stands at the head of a frame, where it does."""
    head = _HEAD.match(frame, 0, _HEAD_BYTES)
    return head[1].decode("ascii") if head else None


def _at_a_glance(frame: bytes) -> Event | None:
    """What a large frame is without being read, or None where it has to be."""
    head = _HEAD.match(frame, 0, _HEAD_BYTES)
    if head is not None and head[1] in _SKIMMED and frame[-_HEAD_BYTES:].rstrip().endswith(b"}"):
        field, empty = _SKIMMED[head[1]]
        event = {"type": head[1].decode("ascii"), field: empty()}
        return event if head[2] is None else {**event, "timestamp": int(head[2])}
    if frame.count(b"{") + frame.count(b"[") > _MOST_BRACKETS:
        return Unreadable("FRAME_TOO_LARGE", type_of(frame))
    return None


def is_filled(line: bytes) -> bool:
    """Whether it is more than white space."""
    return bool(line) and not line.isspace()
