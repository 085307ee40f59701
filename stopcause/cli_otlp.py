"""`stopcause export otlp`: verdicts for the collector, the logs and the dashboards that are there already."""
# ruff: noqa: PLC0415 - help takes 0.1 s; pydantic, duckdb and the SDK would add 0.6 s to it

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from stopcause import __version__
from stopcause import cli_shared as shared
from stopcause.errors import MissingExtraError
from stopcause.render.caller import Hint
from stopcause.render.door import Command, complain
from stopcause.render.options import Output, StorePath

if TYPE_CHECKING:  # what the command imports for itself
    from stopcause.pipeline.publish import Outgoing, Tally
    from stopcause.render.otlp import Sent
    from stopcause.render.screen import Screen
    from stopcause.telemetry.otlp_out import Sender
    from stopcause.telemetry.target import Target
    from stopcause.telemetry.values import Source

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(.*)", re.DOTALL)


class Protocol(StrEnum):
    """How OTLP is sent."""

    HTTP = "http"
    GRPC = "grpc"


def otlp(  # noqa: PLR0913 - one argument an option
    *,
    endpoint: Annotated[
        str | None, typer.Option("--endpoint", metavar="URL", help="The receiver; else OTEL_EXPORTER_OTLP_ENDPOINT.")
    ] = None,
    protocol: Annotated[
        Protocol | None, typer.Option("--protocol", help="Else OTEL_EXPORTER_OTLP_PROTOCOL, else http.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="A header of each request; repeatable.")
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="AGE", help="Events of verdicts given since: 30m, 24h, 7d.")
    ] = "24h",
    everything: Annotated[bool, typer.Option("--all", help="Events of every run.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent, and send nothing.")] = False,
    store: StorePath = None,
    output: Output = None,
) -> None:
    """Send verdicts as events, and settled runs as a counter, over OTLP.

    The counter covers all history, so sending it again changes nothing. Exit code 1 where not all of it was taken.
    """
    from stopcause.pipeline import publish
    from stopcause.render import otlp as screens
    from stopcause.render.screen import say
    from stopcause.telemetry import target as targets
    from stopcause.telemetry.names import RUNS
    from stopcause.telemetry.values import Signal

    screen = shared.screen_for(output, store)
    target = targets.target_of(protocol, endpoint, dict(map(_header, header or ())))
    off = [signal for signal in Signal if targets.is_off(signal)]
    parts = screens.Part(0, 0, Signal.LOGS in off), screens.Part(0, 0, Signal.METRICS in off)
    blank = screens.Sent(targets.shown(target.url), target.protocol, RUNS.name, *parts)
    with shared.reading(store, screen) as (keeper, now):
        window = shared.window_of(keeper, now, since, everything=everything)
        content = publish.outgoing(keeper.store, None if everything else window.since, off)
        if dry_run:
            _show_plan(screen, content, blank)
            return
        sender = _sender(target, publish.source_of(keeper.store, __version__))
        if content.held:
            keeper.close()  # nobody else has to wait for a slow receiver
        if screen.is_table:
            say([f"Sending to {blank.url} ..."])
        with sender:
            sent = _sent(publish.publish(content, sender, now), blank)
    screen.show(lambda _pen: screens.sent_screen(sent), lambda: [screens.sent_object(sent)])
    for fault in sent.faults:
        complain(f"stopcause: {fault}")
    shared.exit_unless(sent.whole)


def _header(text: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(text)
    if found is None or not found[2].isprintable():
        raise typer.BadParameter("write NAME=VALUE, as x-scope-orgid=prod", param_hint="--header")
    return found[1], found[2]


def _sender(target: Target, source: Source) -> Sender:
    """Open ways to the receiver.

    Raises:
        MissingExtraError: The SDK or its exporters are not there.
    """
    try:
        from stopcause.telemetry.otlp_out import Sender
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "stopcause":
            raise
        raise MissingExtraError("the OTLP exporter of OpenTelemetry", "server") from None
    return Sender(target, source)


def _sent(tallies: tuple[Tally, Tally], blank: Sent) -> Sent:
    events, series = tallies
    return blank._replace(
        events=blank.events._replace(size=events.size, taken=events.taken),
        series=blank.series._replace(size=series.size, taken=series.taken),
        faults=tuple({**events.faults, **series.faults}),
    )


def _show_plan(screen: Screen, content: Outgoing, blank: Sent) -> None:
    """What would leave this machine: on a terminal in numbers, in a pipe each event and series whole."""
    from stopcause.classifier.verdict import VerdictName
    from stopcause.render import otlp as screens
    from stopcause.telemetry.names import Attribute

    events = [event for batch in content.events or () for event in batch]
    series = content.series or []
    plan = blank._replace(
        events=blank.events._replace(size=len(events)), series=blank.series._replace(size=len(series))
    )
    verdicts = Counter(VerdictName(str(event.attributes[Attribute.VERDICT])) for event in events)
    screen.show(
        lambda pen: screens.planned_screen(plan, verdicts, pen),
        lambda: (each.as_object() for part in (events, series) for each in part),
    )
    screen.hint(Hint(("export", "otlp", "--dry-run", "-o", "jsonl"), "each of them, whole"))


def add_to(export: typer.Typer) -> None:
    """Registers this command in the group `export`."""
    export.command("otlp", cls=Command)(otlp)
