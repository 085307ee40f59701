"""Where lines go: into the spool, to a service, into the application's own OpenTelemetry, to several, or nowhere.

A sink takes lines on the writer's thread. It raises where it could not take them, and is then asked again.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from stopcause.receipts.sinks_http import HttpSink
from stopcause.receipts.sinks_otel import OtelSink
from stopcause.receipts.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopcause.receipts.configuration import Sink

__all__ = ["HttpSink", "NullSink", "OtelSink", "Spool", "Tee"]

log = logging.getLogger("stopcause")


class NullSink:
    """Takes everything and keeps nothing."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Drops them."""

    def close(self) -> None:
        """Does nothing."""


class Tee:
    """One sink that has to have every line, and copies for others: `Tee(Spool(), OtelSink())`.

    Only the first is asked again where it could not take lines; until it has them, nobody else is given any. Each copy
    then gets them once: what it cannot take, it lacks. So no sink gets a line twice because another one failed.
    """

    def __init__(self, main: Sink, *copies: Sink) -> None:
        self._main = main
        self._copies = copies
        self._faulty: set[int] = set()

    def write(self, lines: Sequence[bytes]) -> int | None:
        """To the first, then to the copies. What the first gave up is lost; what a copy gave up is not."""
        lost = self._main.write(lines)
        for number, copy in enumerate(self._copies):
            try:
                copy.write(lines)
            except Exception as error:  # noqa: BLE001 - a copy of anybody's; the lines are safe in the first
                self._say(number, error)
        return lost

    def close(self) -> None:
        """Closes all of them."""
        for sink in (self._main, *self._copies):
            with contextlib.suppress(Exception):  # one that cannot close must not keep the others open
                sink.close()

    def _say(self, number: int, error: Exception) -> None:
        """Once a copy, by the kind of error."""
        if number not in self._faulty:
            self._faulty.add(number)
            log.warning(
                "stopcause: %s did not take records (%s); it lacks them, the first sink has them",
                type(self._copies[number]).__name__, type(error).__name__,
            )  # fmt: skip
