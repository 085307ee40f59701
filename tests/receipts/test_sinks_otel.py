"""Records through the application's own OpenTelemetry: the real SDK, and real bytes to a receiver."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import Logger, LoggerProvider, LogRecord, NoOpLoggerProvider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk import _logs as sdk
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider

import stopcause
from stopcause.receipts import capture, codec, model, sinks_otel
from stopcause.receipts.sinks import OtelSink, Tee
from stopcause.receipts.testing import MemorySink
from tests.telemetry.receivers import http_receiver, values

ROOT = Path(__file__).parents[2]


class Application:
    """An application that has set up its OpenTelemetry."""

    def __init__(self) -> None:
        self.exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # its `__init__` has no annotations
        self.provider = sdk.LoggerProvider(shutdown_on_exit=False)
        self.provider.add_log_record_processor(SimpleLogRecordProcessor(self.exporter))

    @property
    def events(self) -> list[Any]:
        return [each.log_record for each in self.exporter.get_finished_logs()]

    @property
    def records(self) -> list[model.Record]:
        """What is read back."""
        return [_read(event.attributes["stopcause.record"]) for event in self.events]


def _read(text: str) -> Any:  # noqa: ANN401 - a record; anything else fails the test that looks
    return codec.read_line(text.encode())


@pytest.fixture
def application() -> Iterator[Application]:
    made = Application()
    yield made
    made.provider.shutdown()


def test_each_record_is_an_event_that_reads_back(application: Application) -> None:
    lines = MemorySink()
    with capture.configured(sink=Tee(lines, OtelSink(application.provider))):
        with stopcause.run("invoice-agent", thread_id="t-1") as run:
            run.step(tool_calls=1)
            run.progress("tool_result")
            run.outcome("o-1", contract="c")
            run.waiting("a-1", tool="transfer", resume_token="thread:t-1")
        assert stopcause.flush()

    assert [event.event_name for event in application.events] == [
        "stopcause.run.started", "stopcause.run.progress", "stopcause.outcome.recorded", "stopcause.run.stopped",
    ]  # fmt: skip
    assert application.records == [codec.read_line(line) for line in lines.lines]
    assert [event.attributes["stopcause.record"].encode() for event in application.events] == lines.lines


def test_the_receipt_as_an_event(application: Application) -> None:
    with capture.configured(sink=OtelSink(application.provider)):
        with stopcause.run("invoice-agent") as run:
            run.step()
        assert stopcause.flush()
    event, record = application.events[-1], application.records[-1]

    assert event.event_name == "stopcause.run.stopped"
    assert event.body == "natural: invoice-agent"
    assert (event.severity_text, event.severity_number.name) == ("INFO", "INFO")
    assert event.timestamp == int(record.at.timestamp() * 1_000_000) * 1000
    assert event.observed_timestamp >= event.timestamp
    assert event.attributes["stopcause.stop.cause"] == "natural"
    assert event.attributes["log.record.uid"] == record.record_id
    scope = application.exporter.get_finished_logs()[-1].instrumentation_scope
    assert scope is not None
    assert (scope.name, scope.version) == ("stopcause", stopcause.__version__)


def test_an_event_stands_beside_its_trace(application: Application) -> None:
    with (
        capture.configured(sink=OtelSink(application.provider)),
        TracerProvider().get_tracer("t").start_as_current_span("agent") as span,
    ):
        stopcause.run("agent").start().end()
        assert stopcause.flush()

    context = span.get_span_context()
    assert {(each.trace_id, each.span_id, each.trace_flags) for each in application.events} == {
        (context.trace_id, context.span_id, 1)
    }


def test_without_a_trace_it_has_none(application: Application) -> None:
    with capture.configured(sink=OtelSink(application.provider)):
        stopcause.run("agent").start().end()
        assert stopcause.flush()

    assert {(each.trace_id, each.span_id) for each in application.events} == {(0, 0)}


@pytest.mark.parametrize("nobodys", [None, NoOpLoggerProvider()])
def test_without_a_provider_it_says_so_once_and_counts(
    nobodys: LoggerProvider | None,
    caplog: pytest.LogCaptureFixture,
    application: Application,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink = OtelSink(nobodys)
    with capture.configured(sink=sink):
        stopcause.run("first").start().end()
        assert stopcause.flush()
        stopcause.run("second").start().end()
        assert stopcause.flush()
        assert [record.getMessage() for record in caplog.records] == [
            "stopcause: OtelSink keeps nothing, because no OpenTelemetry logger provider is set up"
        ]
        if nobodys is None:  # it may be set up later
            monkeypatch.setattr(sinks_otel, "get_logger_provider", lambda: application.provider)
            stopcause.run("third").start().end()
            assert stopcause.flush()
            assert [each.dropped for each in application.records] == [4, None]


def test_a_processor_that_raises_costs_its_event_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    class Raising(Logger):
        emitted: list[LogRecord] = []  # noqa: RUF012 - one of it

        def emit(self, record: LogRecord | None = None, **_: Any) -> None:  # noqa: ANN401
            assert record is not None
            if record.event_name == "stopcause.run.started":
                raise ValueError("canary-7f3a")
            self.emitted.append(record)

        def enabled(self, **_: Any) -> bool:  # noqa: ANN401
            return True

    class Faulty(LoggerProvider):
        def get_logger(self, name: str, *_: Any, **__: Any) -> Logger:  # noqa: ANN401
            return Raising(name)

    with capture.configured(sink=OtelSink(Faulty())):
        for _ in range(3):
            stopcause.run("agent").start().end()
        assert stopcause.flush()

    assert [each.event_name for each in Raising.emitted] == ["stopcause.run.stopped"] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "stopcause: the application's OpenTelemetry does not take events (ValueError)"
    ]


def test_what_is_no_record_is_counted() -> None:
    application = Application()

    assert OtelSink(application.provider).write([b"nonsense", b"{}"]) == 2
    assert not application.events


def test_a_provider_that_is_shut_down_harms_nobody(application: Application) -> None:
    application.provider.shutdown()
    with capture.configured(sink=OtelSink(application.provider)):
        stopcause.run("agent").start().end()
        assert stopcause.flush()


def test_nothing_of_the_host_is_in_an_event_or_a_log(
    application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), capture.configured(sink=OtelSink(application.provider)):
        with pytest.raises(ValueError, match="canary"), stopcause.run("agent") as run:
            run.waiting("a-1", metadata={"note": "canary-7f3a of a wait"})
            raise ValueError("canary-7f3a is a text")
        assert stopcause.flush()

    assert len(application.events) == 2
    assert "canary" not in "".join(event.to_json() for event in application.exporter.get_finished_logs())
    assert "canary" not in caplog.text


def test_over_otlp_it_arrives_whole() -> None:
    lines = MemorySink()
    with http_receiver() as came:
        provider = sdk.LoggerProvider(shutdown_on_exit=False)
        provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{came.url}/v1/logs")))
        with capture.configured(sink=Tee(lines, OtelSink(provider))):
            with stopcause.run("invoice-agent") as run:
                run.step()
            assert stopcause.flush()
        provider.shutdown()
        events = [(record.event_name, values(record.attributes)) for record in came.records]

    assert [name for name, _ in events] == ["stopcause.run.started", "stopcause.run.stopped"]
    assert [attributes["stopcause.record"].encode() for _, attributes in events] == lines.lines
    assert events[1][1]["stopcause.step.count"] == 1


# The program sets up its OpenTelemetry after it has imported us, as programs do, and does not wait for anything.
PROGRAM = """
    import sys
    import stopcause
    from stopcause.receipts.sinks import OtelSink
    stopcause.configure(sink=OtelSink())
    from opentelemetry import _logs
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    provider = LoggerProvider()
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=sys.argv[1])))
    _logs.set_logger_provider(provider)
    with stopcause.run("agent"):
        pass
"""


def test_a_program_that_just_ends_loses_nothing() -> None:
    with http_receiver() as came:
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), f"{came.url}/v1/logs"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        names = [record.event_name for record in came.records]

    assert (done.returncode, done.stderr) == (0, "")
    assert names == ["stopcause.run.started", "stopcause.run.stopped"]


def test_the_sink_needs_the_api_alone() -> None:
    program = (
        "import sys, stopcause.receipts.sinks; print([m for m in sys.modules if m.startswith('opentelemetry.sdk')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"
