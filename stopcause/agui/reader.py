"""Files of streams -> exchanges: an input, and the events that answered it.

Read are SSE, NDJSON of events or of exchanges, and JSON documents: a recording (a list of exchanges), a list of events,
a case with `exchanges`, or one of them alone. Which it is, the first line says. An exchange is
`{"input", "events"?, "sent_at"?, "http_status"?, "capabilities"?}`; in NDJSON the events of the lines after it are its
own too, and a line that is a RunAgentInput begins one as well.

SSE and NDJSON are read as they come and keep nothing; a document has to be read whole, and is capped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from json import JSONDecodeError
from typing import BinaryIO, NamedTuple, TypeAlias

from stopcause.agui.frames import (
    BOM,
    LARGEST,
    Event,
    Frames,
    Lines,
    Unreadable,
    as_event,
    is_filled,
    read_event,
    type_of,
    unreadable,
)
from stopcause.agui.inputs import read_input
from stopcause.agui.parsing import DEEPEST, TooDeepError, read_json
from stopcause.agui.times import read_time, read_timestamp
from stopcause.agui.values import Json
from stopcause.errors import InputError

__all__ = ["Event", "Exchange", "Frames", "Unreadable", "read_exchanges"]

LARGEST_DOCUMENT = 256_000_000  # bytes
_MB = 1_000_000
_CHUNK = 262_144
_LONGEST_BEGINNING = 65_536  # bytes, within which the first line tells the form
_STATUSES = range(100, 600)
_AROUND = 8  # levels of a document around an event
_PARTS = frozenset({"input", "events", "sent_at", "http_status", "capabilities"})
_OF_INPUTS = frozenset({"messages", "resume", "tools"})  # no event without a type has one of these beside its ids
_END = re.compile(rb"[\r\n]")
_FIELD = re.compile(rb"(?:data|event|id|retry)?:|data$")  # of SSE; what begins with a colon is a comment
_OPENED = re.compile(rb"[\[{,:]\s*$")  # so ends the first line of an object that goes on over several
_EXCHANGE = re.compile(rb'\s*\{\s*"(?:input|events|exchanges|sent_at|http_status|capabilities)"')
_NO_TEXT = {  # by the first bytes of a file
    b"\x1f\x8b": "it is compressed; unpack it first, as by `gzip -dc`",
    b"\x28\xb5\x2f\xfd": "it is compressed; unpack it first, as by `zstd -dc`",
    b"PK\x03\x04": "it is an archive; unpack it first",
    b"\xff\xfe": "it is UTF-16; write it in UTF-8",
    b"\xfe\xff": "it is UTF-16; write it in UTF-8",
}


class Exchange(NamedTuple):
    """One request and the stream that came back. `input` is as it was sent, `events` come as they are read.

    `broken_line`: it begins with a line of this number, of which nothing can be read: half of one, perhaps.
    """

    input: Json | None
    events: Iterator[Event]
    sent_at: datetime | None = None
    http_status: int | None = None
    capabilities: Json = None  # what the agent declares, where somebody wrote it down
    broken_line: int | None = None


class _Head(NamedTuple):
    """What stands in a file before the events of an exchange."""

    input: Json | None = None
    sent_at: datetime | None = None
    http_status: int | None = None
    capabilities: Json = None
    broken_line: int | None = None


_Row: TypeAlias = _Head | Event


def read_exchanges(file: BinaryIO) -> Iterator[Exchange]:
    """The exchanges of a file, in order. What the caller leaves of one's events is passed over.

    Raises:
        InputError: It cannot be read at all. The message names the line, not the file, and quotes nothing.
    """
    rows = _rows_of_file(file)
    row = next(rows, None)
    while row is not None:
        head = row if isinstance(row, _Head) else _Head()
        events = _Events(rows, None if isinstance(row, _Head) else row)
        yield Exchange(head.input, events, *head[1:])
        row = events.skip()


class _Events:
    """The rows up to the next head: the events of one exchange."""

    def __init__(self, rows: Iterator[_Row], first: Event | None) -> None:
        self._rows = rows if first is None else chain([first], rows)
        self._next: _Head | None = None
        self._is_over = False

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        row = None if self._is_over else next(self._rows, None)
        if row is None or isinstance(row, _Head):
            self._next = row or self._next
            self._is_over = True
            raise StopIteration
        return row

    def skip(self) -> _Head | None:
        """Passes over what is left; gives the head that ended it."""
        for _ in self:
            pass
        return self._next


# Forms ---------------------------------------------------------------------------------------------------------------


def _rows_of_file(file: BinaryIO) -> Iterator[_Row]:
    chunks = _chunks(file)
    begun = _beginning(chunks)
    if (magic := next(filter(begun.startswith, _NO_TEXT), None)) is not None:
        raise InputError(_NO_TEXT[magic])
    chunks = chain([begun], chunks)
    line, *more = _END.split(begun.lstrip(), maxsplit=1)
    if line.startswith(b"[") or (line.startswith(b"{") and more and _OPENED.search(line)):
        return _rows(_document(chunks))
    if line.startswith(b"{"):
        return _rows_of_lines(chunks)
    if line and not _FIELD.match(line):
        raise InputError("line 1: neither SSE nor JSON; give a stream as it was sent, NDJSON or a recording")
    return _events_of_stream(chunks)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    read = getattr(file, "read1", file.read)  # of a pipe what is there, and not first a whole chunk
    while chunk := read(_CHUNK):
        yield chunk


def _beginning(chunks: Iterator[bytes]) -> bytes:
    """As many chunks as it takes to see the first line that has something in it."""
    begun = b""
    for chunk in chunks:
        begun = (begun + chunk).removeprefix(BOM)
        if len(begun) >= _LONGEST_BEGINNING or _END.search(begun.lstrip()):
            break
    return begun


def _events_of_stream(chunks: Iterator[bytes]) -> Iterator[Event]:
    frames = Frames()
    for chunk in chunks:
        yield from frames.feed(chunk)
    yield from frames.end()


def _rows_of_lines(chunks: Iterator[bytes]) -> Iterator[_Row]:
    lines, number = Lines(LARGEST), 0
    for chunk in chunks:
        for line in lines.feed(chunk):
            number += 1
            yield from _rows_of_line(line, number)
    for line in lines.end():
        rows = list(_rows_of_line(line, number + 1))
        for row in rows:  # one in a whole exchange is no tail of a stream
            yield row._replace(is_tail=True) if len(rows) == 1 and isinstance(row, Unreadable) else row


def _rows_of_line(line: bytes, number: int) -> Iterable[_Row]:
    """An event, or the head of an exchange and those events that are in its own line."""
    if not is_filled(line):
        return ()
    if len(line) <= LARGEST:
        return (read_event(line),) if type_of(line) else _rows_of_parts(line, number)
    if _EXCHANGE.match(line):
        raise InputError(f"line {number}: more than {LARGEST // _MB} MB; write its events in lines after it")
    return (Unreadable("FRAME_TOO_LARGE", type_of(line)),)


def _rows_of_parts(line: bytes, number: int) -> Iterable[_Row]:
    try:
        return _rows(read_json(line, around=_AROUND))
    except ValueError as error:
        # Half an exchange is whoever's fault that wrote the file: no stream of an agent has one.
        return (_Head(broken_line=number) if _EXCHANGE.match(line) else unreadable(line, error),)


# Documents -----------------------------------------------------------------------------------------------------------


def _document(chunks: Iterator[bytes]) -> Json:
    text = b"".join(_capped(chunks))
    try:
        return read_json(text, around=_AROUND)
    except TooDeepError:
        message = f"nested deeper than {DEEPEST} levels; write NDJSON, of which only the deep line is passed over"
    except JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        message = f"{place}: no JSON from here on; a document is one value, several are one a line (`jq -c .`)"
    except ValueError:
        message = "no JSON: it has NaN or Infinity in it; write null in their place"
    raise InputError(message)


def _capped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > LARGEST_DOCUMENT:
            most = LARGEST_DOCUMENT // _MB
            raise InputError(f"a JSON document of more than {most} MB; write NDJSON, one exchange or event a line")
        yield chunk


def _rows(value: Json) -> Iterator[_Row]:
    if isinstance(value, list):
        for each in value:
            yield from _rows(each)
    elif isinstance(value, dict) and not isinstance(value.get("type"), str):
        yield from _rows_of_object(value)
    else:
        yield as_event(value)


def _rows_of_object(value: dict[str, Json]) -> Iterator[_Row]:
    """Those of a case, of an exchange, or of an input alone; anything else is an event without a type."""
    if isinstance(value.get("exchanges"), list):
        yield from _rows(value["exchanges"])
    elif not _PARTS.isdisjoint(value):
        when, status = _moment(value.get("sent_at")), _status(value.get("http_status"))
        yield _Head(value.get("input"), when, status, value.get("capabilities"))
        events = value.get("events")
        yield from map(as_event, events if isinstance(events, list) else [] if events is None else [events])
    elif not _OF_INPUTS.isdisjoint(value) and read_input(value) is not None:
        yield _Head(value)
    else:
        yield as_event(value)


def _moment(value: Json) -> datetime | None:
    return read_time(value) or read_timestamp(value)


def _status(value: Json) -> int | None:
    return value if isinstance(value, int) and value in _STATUSES else None
