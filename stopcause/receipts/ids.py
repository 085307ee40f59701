"""Ids that writers make, UUIDs in the order of time so that what was written together lies together; and a host's."""

from __future__ import annotations

import os
import random
from uuid import UUID

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62
_LOW = (1 << 62) - 1

_random = random.Random()  # noqa: S311 - ids have to differ, not to be secret; our own, which no `seed` of a host's reaches


def new_id(now_ns: int) -> str:
    """A UUIDv7 for a moment in nanoseconds (RFC 9562, 5.7)."""
    entropy = _random.getrandbits(74)
    value = (now_ns // 1_000_000) << 80 | _VERSION_7 | (entropy >> 62) << 64 | _VARIANT | entropy & _LOW
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def id_text(value: object) -> str | None:
    """An id as the application has it: a text, a number or a UUID. Whether it is an identifier is seen to behind."""
    if isinstance(value, UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    return value or None if isinstance(value, str) else None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)  # else parent and child would make the same ids
