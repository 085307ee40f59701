"""Ids that writers make: UUIDs in the order of time, so that what was written together lies together."""

from __future__ import annotations

import os

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62


def new_id(now_ns: int) -> str:
    """A UUIDv7 for a moment in nanoseconds (RFC 9562, 5.7)."""
    entropy = int.from_bytes(os.urandom(10), "big")
    value = (
        (now_ns // 1_000_000) << 80 | _VERSION_7 | (entropy >> 68 & 0xFFF) << 64 | _VARIANT | entropy & (1 << 62) - 1
    )
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
