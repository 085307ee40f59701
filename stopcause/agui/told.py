"""Runs and links as records of the wire format. Drafts: who keeps them, checks and writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from stopcause.agui.values import NOTHING, Begun, Link, RunSeen

Draft = dict[str, Any]


class Source(NamedTuple):
    """What the host says of the agent behind the stream, as `receipts.configuration` has it.

    Attributes:
        route_of: (agent, kind, tool) -> a route with `owner`, `due_s` and `expires_s`, or None.
        now: The caller's clock, where a stream says no time.
    """

    agent: str | None = None
    service: str | None = None
    environment: str | None = None
    labels: Mapping[str, str] = NOTHING
    lease_s: float | None = None
    process: Mapping[str, Any] | None = None
    route_of: Callable[[object, object, object], Any] | None = None
    now: datetime | None = None


def begun_records(run: Begun, link: Link, source: Source) -> list[Draft]:
    """`run.started`."""
    return []


def ended_records(run: RunSeen, link: Link, source: Source) -> list[Draft]:
    """`run.stopped`, and what became of approvals of earlier runs."""
    return []
