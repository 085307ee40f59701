"""Which process this is, so that its death can be proved: boot, pid and start, as the wire format has them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any


@cache
def identity() -> dict[str, Any]:
    """`boot_id`, `pid` and `started` (clock ticks since boot); what a system does not tell is absent."""
    found: dict[str, Any] = {"pid": os.getpid()}
    if boot_id := _read("/proc/sys/kernel/random/boot_id"):
        found["boot_id"] = boot_id
    if (ticks := started_at(os.getpid())) is not None:
        found["started"] = ticks
    return found


def started_at(pid: int) -> int | None:
    """When a process began, in clock ticks since boot; None where there is none, or the system does not say."""
    stat = _read(f"/proc/{pid}/stat")
    if stat is None:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return int(fields[19]) if len(fields) > 19 and fields[19].isdigit() else None  # noqa: PLR2004 - proc(5), field 22


def _read(path: str) -> str | None:
    """As bytes first: other codecs than UTF-8 are imported when they are used, and a fork in the midst breaks that."""
    try:
        return Path(path).read_bytes().decode("utf-8", "replace").strip() or None
    except OSError:
        return None
