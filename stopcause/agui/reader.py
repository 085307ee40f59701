"""Files of streams -> exchanges: an input, and the events that answered it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, NamedTuple

from stopcause.agui.frames import Event, Frames, Unreadable
from stopcause.agui.values import Json

__all__ = ["Event", "Exchange", "Frames", "Unreadable", "read_exchanges"]


class Exchange(NamedTuple):
    """One request and the stream that came back. `input` is as it was sent, `events` come as they are read."""

    input: Json | None
    events: Iterator[Event]
    sent_at: datetime | None = None
    http_status: int | None = None


def read_exchanges(file: BinaryIO) -> Iterator[Exchange]:
    """The exchanges of a file, in order; what the caller leaves of one's events is passed over."""
    raise NotImplementedError
