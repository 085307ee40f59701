"""What `export otlp` sent, as lines and as an object. Its values are handed in by the command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stopcause.classifier.verdict import VerdictName
from stopcause.render.pen import Pen, count


class Part(NamedTuple):
    """One signal: how many items there were, how many the receiver took. `off`: it is turned off."""

    size: int
    taken: int
    off: bool = False

    @property
    def whole(self) -> bool:
        """Whether all of it was taken."""
        return self.taken == self.size


class Sent(NamedTuple):
    """An export. `faults` say in words why not all of it was taken."""

    url: str
    protocol: str
    metric: str
    events: Part
    series: Part
    faults: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all of it was taken."""
        return self.events.whole and self.series.whole


def sent_screen(sent: Sent) -> list[str]:
    """Where to, how many, and of how many."""
    series = _part(sent.series, "series", "series", "OTEL_METRICS_EXPORTER")
    return [
        f"To {sent.url} ({sent.protocol}):",
        f"  {_part(sent.events, 'event', 'events', 'OTEL_LOGS_EXPORTER')}",
        f"  {series} of {sent.metric}",
    ]


def _part(part: Part, one: str, many: str, variable: str) -> str:
    if part.off:
        return f"no {many} ({variable} is none)"
    if part.whole:
        return f"{count(part.size, one, many)} taken"
    return f"{part.taken} of {count(part.size, one, many)} taken"


def sent_object(sent: Sent) -> dict[str, Any]:
    """The same for a pipe."""
    return {
        "endpoint": sent.url,
        "protocol": sent.protocol,
        "events": sent.events.size,
        "events_taken": sent.events.taken,
        "series": sent.series.size,
        "series_taken": sent.series.taken,
        "faults": list(sent.faults),
    }


def planned_screen(sent: Sent, verdicts: Mapping[VerdictName, int], pen: Pen) -> list[str]:
    """What would be sent: events by verdict, and how many series."""
    by_verdict = [f"  {pen.verdict(name, 20)} {verdicts[name]:>7}" for name in VerdictName if name in verdicts]
    return [
        f"Would go to {sent.url} ({sent.protocol}): {count(sent.events.size, 'event')}",
        *by_verdict,
        f"and {count(sent.series.size, 'series', 'series')} of {sent.metric}. Nothing was sent.",
    ]
