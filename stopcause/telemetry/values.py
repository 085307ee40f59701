"""What is sent: events and counts, as values that know nothing of a store or of the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from stopcause.receipts.vocabulary import Word

Scalar = str | bool | int | float | tuple[str, ...]


class Event(NamedTuple):
    """One verdict as a log record. `at`: when it came about; `observed_at`: when it was judged. Ids are hex."""

    name: str
    at: datetime
    observed_at: datetime
    severity: str  # INFO, WARN or ERROR
    body: str
    attributes: Mapping[str, Scalar]
    trace_id: str | None = None
    span_id: str | None = None
    sampled: bool = False

    def as_object(self) -> dict[str, Any]:
        """For a pipe."""
        return {**self._asdict(), "attributes": dict(self.attributes)}


class Series(NamedTuple):
    """One series of a counter: its labels, and the sum of all history."""

    metric: str
    labels: Mapping[str, str | bool]
    value: int

    def as_object(self) -> dict[str, Any]:
        """For a pipe."""
        return {**self._asdict(), "labels": dict(self.labels)}


class Source(NamedTuple):
    """Who sends. A counter starts at `since`: a receiver that sees another start takes it for a reset."""

    instance_id: str
    version: str
    since: datetime


class Signal(Word):
    """What kind of telemetry a request carries; the word is the last part of its path."""

    LOGS = "logs", "events"
    METRICS = "metrics", "series"


class Answer(NamedTuple):
    """What became of one request. `fault` says in words why not all of it was taken; '' where all was."""

    taken: int
    fault: str = ""
    answered: bool = True  # False: there is nobody, so that sending more makes no sense
