"""Bytes of a stream -> events, as they arrive: frames of SSE, or lines of NDJSON.

Here is the framing and what a frame is as JSON. What the events mean is the lifecycle's; files are the reader's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from stopcause.agui.values import Json


class Unreadable(NamedTuple):
    """A frame that gave no event.

    Attributes:
        name: The finding that it is.
        type: What its head says that it would have been.
        bytes: Its size, or what was seen of it before it was passed over.
        is_tail: The stream ended inside it: then it is no fault of its own, the stream is truncated.
    """

    name: Literal["FRAME_UNREADABLE", "FRAME_TOO_LARGE"]
    type: str | None = None
    bytes: int = 0
    is_tail: bool = False


Event: TypeAlias = Mapping[str, Json] | Unreadable


class Frames:
    """Takes a stream in chunks of any size, gives the events that are whole by then."""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that end in this chunk."""
        raise NotImplementedError

    def end(self) -> list[Event]:
        """What the end of the stream makes of its tail."""
        raise NotImplementedError
