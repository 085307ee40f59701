"""Records to a service: batches of NDJSON by POST, as the AI SDK's `httpSink` sends them.

Here: batches, and what becomes of one by its answer (`HttpSink`). Not here: the queue in front of it and the pauses
between tries (`writer`), the connection (`http_wire`).

No header and no address ever gets into a message: both may hold what opens a door.
"""

from __future__ import annotations

import errno
import logging
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from stopcause.receipts.http_wire import Wire
from stopcause.receipts.losses import lost_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

log = logging.getLogger("stopcause")

_MOST_LINES = 200  # of one request
_MOST_BYTES = 256 * 1024
_LONGEST_PAUSE_S = 300.0  # however long a receiver asks
_TAKEN, _ELSEWHERE, _ITS_FAULT = range(200, 300), range(300, 400), 500
_LATER = frozenset({408, 425, 429})
_PART_OF_IT = frozenset({400, 413, 422})  # may be about one line, or about the size: halves tell
_MEANT = {
    400: "it does not understand records: check that the address is the one for records",
    401: "set the header that it wants, as authorization",
    403: "set the header that it wants, as authorization",
    404: "check the address",
    405: "check the address",
    413: "its limit on the size of a request is too low",
}


class HttpSink:
    """Posts lines to a service. Used on the writer's thread.

    2xx means taken. 408, 425, 429, 5xx, a timeout and a broken connection are tried again, not before `Retry-After`
    where it is given. 400, 413 and 422 halve the batch, down to the line that is refused. Any other answer gives the
    batch up, and says so once. A redirect is not followed: where records go is the operator's to say.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 10.0) -> None:
        """Nothing is sent yet.

        Args:
            url: The service's address for records, as `https://stopcause.example/v1/records`.
            headers: Sent with each request, as `{"authorization": "Bearer ..."}`.
            timeout_s: How long the connection may be silent.

        Raises:
            ConfigurationError: One of them cannot be used.
        """
        self._wire = Wire(url, headers or {}, timeout_s)
        self._said: set[int] = set()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._asked: Sequence[bytes] | None = None  # what `write` was called with; not settled yet
        self._rest: list[Sequence[bytes]] = []  # its batches that are not settled, the next one last
        self._lost = 0  # of them
        self._not_before = 0.0

    def write(self, lines: Sequence[bytes]) -> int:
        """Returns once each line is taken or given up. Asked again with the same lines, it goes on where it was.

        Returns:
            How many records are lost with those that were given up.

        Raises:
            OSError: The receiver cannot be reached, or has no room now.
        """
        if time.monotonic() < self._not_before:
            raise _not_now("it asked for a pause")
        if lines is not self._asked:
            self._asked, self._rest, self._lost = lines, [*_batches(lines)][::-1], 0
        while self._rest:
            self._settle(self._rest[-1])
        self._asked = None
        return self._lost

    def close(self) -> None:
        """Lets go of the connection; in a forked child, also of what the parent was sending."""
        self._wire.close()
        self._begin_anew()

    def _settle(self, batch: Sequence[bytes]) -> None:
        status, pause = self._wire.post(b"\n".join(batch) + b"\n")
        if status in _LATER or status >= _ITS_FAULT:
            self._not_before = time.monotonic() + _seconds(pause)
            raise _not_now(f"it answered {status}")
        self._rest.pop()
        if status in _TAKEN:
            return
        if status in _PART_OF_IT and len(batch) > 1:
            half = len(batch) // 2
            self._rest += [batch[half:], batch[:half]]
        else:
            self._give_up(batch, status)

    def _give_up(self, batch: Sequence[bytes], status: int) -> None:
        self._lost += lost_with(batch)
        if status not in self._said:
            self._said.add(status)
            advice = "it is elsewhere: give its new address" if status in _ELSEWHERE else _MEANT.get(status)
            log.warning(
                "stopcause: HttpSink was answered %d, and those records are lost; %s", status, advice or "see its log"
            )


def _batches(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Lines in order, so many that a request is neither long nor large; one that is too large goes alone."""
    first, size = 0, 0
    for place, line in enumerate(lines):
        size += len(line) + 1
        if place > first and (size > _MOST_BYTES or place - first == _MOST_LINES):
            yield lines[first:place]
            first, size = place, len(line) + 1
    if lines:
        yield lines[first:]


def _not_now(why: str) -> OSError:
    """What the writer takes for a reason to ask again; it prints the code, not the words."""
    return OSError(errno.EAGAIN, why)


def _seconds(retry_after: str | None) -> float:
    """The pause that a receiver asks for, in seconds or by a date; 0 where it asks for none that can be read."""
    text = (retry_after or "").strip()
    try:
        pause = float(text) if text.isdecimal() else (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):  # no date, or one without a zone
        return 0.0
    return min(max(pause, 0.0), _LONGEST_PAUSE_S)
