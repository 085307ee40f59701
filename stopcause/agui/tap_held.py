"""What a tap keeps of a stream for a moment, so that many small parts are read together and the dull ones not at all.

A streamed answer is some hundred frames that differ in a few words. A run of frames of one message is cut down to its
first here: whose words they are, and that there are some, is all that anybody reads of them.
"""

from __future__ import annotations

import re

_TELLING = b"RUN_"  # in the type of every event that begins or ends a run: that is read at once
_UNTIL_ITS_END = 100_000  # parts of a frame that is in many
_ITS_LAST = 3  # after one that ends a line: the empty line that ends the frame may come byte by byte
_MOST_BYTES = 64 * 1024
_MOST_PARTS = 256
_MOST_S = 1.0  # a part is said to have come when the last of those came that are read with it

_TEXT = rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))++'
_HEAD = (
    rb'data: ?\{"type": ?"(?:TEXT_MESSAGE_CONTENT|TOOL_CALL_ARGS|REASONING_MESSAGE_CONTENT)", ?'
    rb'"(?:messageId|toolCallId)": ?"[\w.:/@+=~-]{1,200}", ?"delta": ?"'
)
# Right after a frame. The same head again, and a whole JSON string: such a frame is well formed, and no other event.
_ALIKE = re.compile(rb"(?<=\n\n)((" + _HEAD + rb")" + _TEXT + rb'"\}\n\n)(?:\2' + _TEXT + rb'"\}\n\n)++')


class HeldParts:
    """Parts of a stream, in order, in groups that came within a second."""

    __slots__ = ("_at_once", "_bytes", "_came", "_older", "_parts", "_since", "_tail")

    def __init__(self) -> None:
        self._older: list[tuple[bytes, float]] = []  # groups before the last, and when their last parts came
        self._parts: list[bytes] = []
        self._since = self._came = 0.0
        self._bytes = self._at_once = 0
        self._tail = b""  # where a part did not end with a line

    def add(self, part: bytes, now: float) -> bool:
        """Adds a part that came now, in seconds since 1970; gives whether what is held is to be read."""
        is_late = not 0 <= now - self._since < _MOST_S
        if is_late or not self._parts:
            self._begin(now)
        self._parts.append(part)
        self._came = now
        self._bytes += len(part)
        if (self._tail or self._at_once or _TELLING in part or not part.endswith(b"\n")) and self._is_telling(part):
            return True
        return is_late or self._bytes >= _MOST_BYTES or len(self._parts) >= _MOST_PARTS

    def _begin(self, now: float) -> None:
        if self._parts:
            self._older.append((b"".join(self._parts), self._came))
            self._parts = []
        self._since = now

    def _is_telling(self, part: bytes) -> bool:
        """Whether a run begins or ends in it, or in a frame that it goes on with."""
        if _TELLING in part or _TELLING in self._tail + part[:3]:
            self._at_once = _UNTIL_ITS_END
        self._tail = b"" if part.endswith(b"\n") else (self._tail + part[-3:])[-3:]
        if not self._at_once:
            return False
        if part.endswith(b"\n\n"):
            self._at_once = 1
        elif part.endswith(b"\n"):
            self._at_once = min(self._at_once, _ITS_LAST)
        self._at_once -= 1
        return True

    def take(self) -> list[tuple[bytes, float]]:
        """What was held, each group with its time, and nothing is held any more. Dull frames are left out."""
        self._begin(self._since)
        taken, self._older, self._bytes = self._older, [], 0
        return [(thinned(body), came) for body, came in taken]


def thinned(body: bytes) -> bytes:
    """A part of a stream without frames that go on with the message, call or reasoning of the frame before them."""
    try:
        body.decode()  # what is no UTF-8 is read as it is, and found there
    except UnicodeDecodeError:
        return body
    return _ALIKE.sub(rb"\1", body)
