"""Records into the application's own OpenTelemetry, as events of the logs signal. The API only: the SDK is theirs.

Each record is one event, `stopcause.` and its kind, with its line as `stopcause.record`: whoever gets all of them can
read back every run, also one that never stopped. What the application's processors do with an event is theirs, so
nothing is sent twice, and nobody learns here whether it arrived. Where that matters, keep a spool too (`Tee`).
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from opentelemetry._logs import Logger, LoggerProvider, LogRecord, SeverityNumber, get_logger_provider
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from stopcause import __version__
from stopcause.receipts import attributes, codec
from stopcause.receipts.losses import lost_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopcause.receipts.codec import AnyRecord

log = logging.getLogger("stopcause")

_YIELD_EVERY = 5  # records, of some 60 us each; then an event loop beside this thread may run
_YIELD_S = 0.0002
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOBODYS = "opentelemetry._logs"  # the API's own providers, which keep nothing


class OtelSink:
    """Emits every record through a logger provider. Used on the writer's thread."""

    def __init__(self, provider: LoggerProvider | None = None) -> None:
        """Nothing is emitted yet.

        Args:
            provider: The application's; without it the global one, once there is one.
        """
        self._given = provider
        self._logger: Logger | None = None
        self._said: set[str] = set()

    def write(self, lines: Sequence[bytes]) -> int:
        """Emits each line once.

        Returns:
            How many records are lost with those that met no provider, or one that raised. It never raises itself: asked
            again, it would emit others twice.
        """
        logger = self._logger = self._logger or self._found()
        if logger is None:
            self._say("OtelSink keeps nothing, because no OpenTelemetry logger provider is set up")
            return lost_with(lines)
        refused = []
        for number, line in enumerate(lines, 1):
            if not self._emit(logger, line):
                refused.append(line)
            if number % _YIELD_EVERY == 0:
                time.sleep(_YIELD_S)
        return lost_with(refused)

    def close(self) -> None:
        """Does nothing: the provider is the application's to shut down."""

    def _found(self) -> Logger | None:
        provider = self._given or get_logger_provider()
        if type(provider).__module__.startswith(_NOBODYS):
            return None
        return provider.get_logger(attributes.SCOPE, __version__)

    def _emit(self, logger: Logger, line: bytes) -> bool:
        record = codec.read_line(line)
        if isinstance(record, codec.LineError):
            return False
        try:
            logger.emit(_event_of(record, line))
        except Exception as error:  # noqa: BLE001 - a processor of the application's
            self._say(f"the application's OpenTelemetry does not take events ({type(error).__name__})")
            return False
        return True

    def _say(self, words: str) -> None:
        """Once each."""
        if words not in self._said:
            self._said.add(words)
            log.warning("stopcause: %s", words)


def _event_of(record: AnyRecord, line: bytes) -> LogRecord:
    """The event. Its severity is always INFO: what happened is told here, how bad it is the policy says elsewhere."""
    return LogRecord(
        timestamp=(record.at - _EPOCH) // timedelta(microseconds=1) * 1000,
        context=_context(record),
        severity_number=SeverityNumber.INFO,
        severity_text="INFO",
        body=attributes.body(record),
        attributes=attributes.attributes_of(record, line),
        event_name=attributes.event_name(record),
    )


def _context(record: AnyRecord) -> Context:
    """The run's own span, never one of this thread's."""
    trace_id, span_id = int(record.trace_id or "0", 16), int(record.span_id or "0", 16)
    flags = TraceFlags(TraceFlags.SAMPLED if record.sampled else TraceFlags.DEFAULT)
    span = NonRecordingSpan(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags))
    return set_span_in_context(span, Context())
