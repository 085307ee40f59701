"""Events -> runs: the state machine of a stream (spec 1.0, events/lifecycle). Nothing of what a run said is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from stopcause.agui.values import Begun, Input, RunSeen


def _no(_tool: str) -> bool:
    return False


class Watch:
    """One stream, any number of runs.

    Args:
        given: The input that asked for the stream, where it is known.
        http_status: What the request was answered with; one that is not 2xx has no stream.
        waits: Whether a call to this tool of the client's own is a wait.
    """

    def __init__(
        self, given: Input | None = None, *, http_status: int | None = None, waits: Callable[[str], bool] = _no
    ) -> None:
        self._given, self._http_status, self._waits = given, http_status, waits

    def take(self, event: Mapping[str, Any] | Any, at: datetime | None = None) -> tuple[Begun | RunSeen, ...]:
        """One event, or what stands for a frame that could not be read; `at` is when it came, where a clock saw it."""
        raise NotImplementedError

    def close(self, at: datetime | None = None, *, left_by_reader: bool = False) -> tuple[RunSeen, ...]:
        """The stream is over. `left_by_reader`: because its reader went away."""
        raise NotImplementedError
