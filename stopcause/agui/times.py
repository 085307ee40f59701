"""Times of the wire: ISO 8601 where people write them, milliseconds where machines do."""

from __future__ import annotations

import contextlib
import math
import re
from datetime import UTC, datetime

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+(?:Z|z|[+-][0-9]{2}:?[0-9]{2})?)?", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LATEST_MS = 253_402_300_799_000  # the end of the year 9999


def aware(moment: datetime | None) -> datetime:
    """A moment in UTC, as one without an offset is; the clock's, where nobody says one."""
    if moment is None:
        return datetime.now(UTC)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def read_time(value: object) -> datetime | None:
    """An ISO 8601 date or time, or None where it is none. Without an offset it is UTC; a date is its midnight."""
    if not isinstance(value, str) or not _DATE.fullmatch(text := value.strip()):
        return None
    with contextlib.suppress(ValueError, OverflowError):
        return aware(datetime.fromisoformat(text.upper()))
    return None


def read_timestamp(value: object) -> datetime | None:
    """An event's `timestamp`: milliseconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return datetime.fromtimestamp(value / 1000, UTC) if 0 < value <= _LATEST_MS else None


def read_duration_s(value: object) -> float | None:
    """`30s`, `5m`, `4h`, `2d` in seconds, as the policy writes them."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return float(int(found[1]) * _SECONDS[found[2]]) if found is not None else None
