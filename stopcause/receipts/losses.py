"""What is lost with lines that a sink gives up: they, and those that they were to tell of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def lost_with(lines: Iterable[bytes]) -> int:
    """For what `write` returns. A line that says `dropped` takes that number with it; the next one has to say it."""
    return sum(1 + _told(line) for line in lines)


def _told(line: bytes) -> int:
    try:
        number = json.loads(line).get("dropped")
    except (ValueError, AttributeError):  # no line of ours
        return 0
    return number if isinstance(number, int) else 0
