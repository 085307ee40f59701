"""Where lines go: into the spool, to a service, into the application's own OpenTelemetry, or past everybody.

A sink takes lines on the writer's thread. It raises where it could not take them, and is then asked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopcause.receipts.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NullSink", "Spool"]


class NullSink:
    """Takes everything and keeps nothing."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Drops them."""

    def close(self) -> None:
        """Does nothing."""
