"""Events and counts to an OTLP receiver, with an answer for each request: how much of it was taken, and why not more.

The SDK makes the records and the sums; its OTLP exporters encode and send them, with their retries and with every
`OTEL_EXPORTER_OTLP_*` variable. What they do not say is in `answers`. One request at a time, each waited for: this is
for a command that a person or a timer runs, never for an agent's thread.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, Self

import requests
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetricExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetricExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData, NumberDataPoint
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
from opentelemetry.util.re import parse_env_headers

from stopcause.telemetry import names
from stopcause.telemetry.answers import Heard, ListeningAdapter, ListeningStub
from stopcause.telemetry.target import Target
from stopcause.telemetry.values import Answer, Event, Series, Signal, Source

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEVERITY = {"INFO": SeverityNumber.INFO, "WARN": SeverityNumber.WARN, "ERROR": SeverityNumber.ERROR}


class _Exporter(Protocol):
    def export(self, batch: Any, /) -> Any: ...  # noqa: ANN401 - records or metrics

    def shutdown(self) -> None: ...


class _Way(NamedTuple):
    """An exporter, and the ear that hears what it is answered."""

    exporter: _Exporter
    heard: Heard


class Sender:
    """Open ways to one receiver. Use it in a `with`."""

    def __init__(self, target: Target, source: Source) -> None:
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # what it says is said here, in our words
        self._source = source
        self._resource = _resource(source)
        self._ways = {signal: _WAYS[target.protocol](signal, target) for signal in Signal}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for way in self._ways.values():
            way.exporter.shutdown()

    def send_events(self, events: Sequence[Event]) -> Answer:
        """One request with these log records."""
        return self._send(Signal.LOGS, _log_records(events, self._resource), len(events))

    def send_counts(self, series: Sequence[Series], now: datetime) -> Answer:
        """One request with the sums of `names.RUNS` as of `now`: cumulative, whatever a variable prefers."""
        return self._send(Signal.METRICS, _sums(series, self._resource, self._source.since, now), len(series))

    def _send(self, signal: Signal, content: Any, size: int) -> Answer:  # noqa: ANN401 - records or metrics
        exporter, heard = self._ways[signal]
        heard.clear()
        if content is None:
            return Answer(0, "the SDK is turned off (OTEL_SDK_DISABLED)", answered=False)
        try:
            exported = exporter.export(content).name == "SUCCESS"
        except requests.RequestException:  # older exporters let it through; what happened was heard
            exported = False
        return heard.answer(size, exported=exported)


def _resource(source: Source) -> Resource:
    return Resource.create(
        {
            "service.name": names.SERVICE,
            "service.instance.id": source.instance_id,
            "service.version": source.version,
        }
    )


# Exporters ------------------------------------------------------------------------------------------------------------


def _http_way(signal: Signal, target: Target) -> _Way:
    heard = Heard(signal, target.url_of(signal))
    session = requests.Session()
    session.max_redirects = 0  # where data goes is the operator's to say
    for scheme in ("http://", "https://"):
        session.mount(scheme, ListeningAdapter(heard))
    make = HttpLogExporter if signal is Signal.LOGS else HttpMetricExporter
    endpoint = target.url_of(signal) if target.endpoint else None
    return _Way(make(endpoint=endpoint, headers=_headers(signal, target.headers), session=session), heard)


def _grpc_way(signal: Signal, target: Target) -> _Way:
    heard = Heard(signal, target.url_of(signal))
    make = _listening(GrpcLogExporter if signal is Signal.LOGS else GrpcMetricExporter, heard)
    return _Way(make(endpoint=target.endpoint, headers=_headers(signal, target.headers)), heard)


def _listening(kind: Any, heard: Heard) -> Any:  # noqa: ANN401 - a class of the SDK's, and one below it
    """The exporter's class, with a stub that tells what it is answered. Newer ones make it anew when they reconnect."""

    class Listening(kind):  # type: ignore[misc]  # of a class that is only known when this runs
        _client: Any

        def __init__(self, **options: Any) -> None:  # noqa: ANN401 - the exporter's own
            super().__init__(**options)
            if not isinstance(self._client, ListeningStub):
                self._client = ListeningStub(self._client, heard)

        def _initialize_channel_and_stub(self) -> None:
            super()._initialize_channel_and_stub()
            self._client = ListeningStub(self._client, heard)

    return Listening


def _headers(signal: Signal, given: Mapping[str, str]) -> dict[str, str] | None:
    """What is given on top of the variables: some exporters drop those where they are given any."""
    if not given:
        return None
    for_all, own = (os.environ.get(f"OTEL_EXPORTER_OTLP_{part}HEADERS", "") for part in ("", f"{signal.upper()}_"))
    return {**parse_env_headers(own or for_all, liberal=True), **{name.lower(): text for name, text in given.items()}}


_WAYS: Mapping[str, Callable[[Signal, Target], _Way]] = {"http": _http_way, "grpc": _grpc_way}


# What the SDK makes of values -----------------------------------------------------------------------------------------


def _log_records(events: Sequence[Event], resource: Resource) -> Sequence[Any] | None:
    """Log records of the SDK; None where it is turned off."""
    memory = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # its `__init__` has no annotations
    provider = LoggerProvider(resource, shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(memory))
    logger = provider.get_logger(names.SCOPE)
    for event in events:
        logger.emit(_log_record(event))
    made = memory.get_finished_logs()
    return made if len(made) == len(events) else None


def _log_record(event: Event) -> LogRecord:
    return LogRecord(
        timestamp=_nanoseconds(event.at),
        observed_timestamp=_nanoseconds(event.observed_at),
        context=_context(event),
        severity_number=_SEVERITY[event.severity],
        severity_text=event.severity,
        body=event.body,
        attributes=event.attributes,
        event_name=event.name,
    )


def _context(event: Event) -> Context:
    """The run's own span, so that a back end puts the verdict beside its trace."""
    trace_id, span_id = int(event.trace_id or "0", 16), int(event.span_id or "0", 16)
    flags = TraceFlags(TraceFlags.SAMPLED if event.sampled else TraceFlags.DEFAULT)
    span = NonRecordingSpan(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags))
    return set_span_in_context(span, Context())


def _sums(series: Sequence[Series], resource: Resource, since: datetime, now: datetime) -> MetricsData | None:
    """Cumulative sums of the SDK; None where it is turned off."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter(names.SCOPE)
    counter = meter.create_counter(names.RUNS.name, names.RUNS.unit, names.RUNS.meaning)
    for each in series:
        counter.add(each.value, dict(each.labels))
    made = reader.get_metrics_data()
    return _dated(made, _nanoseconds(since), _nanoseconds(now)) if made else None


def _dated(data: MetricsData, since: int, now: int) -> MetricsData:
    """The same with a start that stays: the SDK's is this process's, which each export would show as a reset."""
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for i, metric in enumerate(scope.metrics):
                points = [_point(point, since, now) for point in metric.data.data_points]
                changed: Any = dataclasses.replace(metric.data, data_points=points)  # type: ignore[arg-type]
                scope.metrics[i] = dataclasses.replace(metric, data=changed)  # type: ignore[index]
    return data


def _point(point: Any, since: int, now: int) -> NumberDataPoint:  # noqa: ANN401 - a counter's is a number
    made: NumberDataPoint = dataclasses.replace(point, start_time_unix_nano=since, time_unix_nano=now)
    return made


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000
