"""What a receiver answered. The SDK's exporters do not say: they take 3xx for success and never read a rejection.

So the transport under each exporter is one that listens: an adapter of `requests` for HTTP, a stub around the stub for
gRPC. `Heard` keeps the last answer and turns it into words. A receiver's own words are cut to plain letters.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships without types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # the same
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from requests import PreparedRequest, Response, exceptions
from requests.adapters import HTTPAdapter

from stopcause.telemetry.target import shown
from stopcause.telemetry.values import Answer, Signal

_OK, _REDIRECTS, _ERRORS = range(200, 300), range(300, 400), 400
_WORDS = 120
_REJECTED = {Signal.LOGS: "rejected_log_records", Signal.METRICS: "rejected_data_points"}
_REJECTED_JSON = {Signal.LOGS: "rejectedLogRecords", Signal.METRICS: "rejectedDataPoints"}
_RESPONSE: dict[Signal, Any] = {Signal.LOGS: ExportLogsServiceResponse, Signal.METRICS: ExportMetricsServiceResponse}
_ADVICE = {
    401: "give --header, or OTEL_EXPORTER_OTLP_HEADERS",
    403: "give --header, or OTEL_EXPORTER_OTLP_HEADERS",
    404: "no OTLP over HTTP is there; give the right --endpoint",
    405: "no OTLP over HTTP is there; give the right --endpoint",
    413: "its limit on the size of a request is too low",
    429: "it has no room now; try again later",
    503: "it has no room now; try again later",
}
_NOBODY = "nothing answers at {url}; start a collector there, or give --endpoint"
_LATE = "{url} did not answer in time (OTEL_EXPORTER_OTLP_TIMEOUT, in seconds)"
_CODES = {
    "UNAVAILABLE": _NOBODY,
    "DEADLINE_EXCEEDED": _LATE,
    "UNAUTHENTICATED": "{url} wants to know who sends; give --header, or OTEL_EXPORTER_OTLP_HEADERS",
    "PERMISSION_DENIED": "{url} does not let this sender in; give --header, or OTEL_EXPORTER_OTLP_HEADERS",
    "UNIMPLEMENTED": "{url} does not take {signal} over gRPC; give the right --endpoint or --protocol",
}


class _Rejection(NamedTuple):
    items: int
    words: str


class Heard:
    """The last answer to the requests of one batch: a retry replaces what came before it."""

    def __init__(self, signal: Signal, url: str) -> None:
        self.signal = signal
        self.url = shown(url)
        self._fault: str | None = None
        self._rejected = 0
        self._answered = False
        self.clear()

    def clear(self) -> None:
        """Before a batch."""
        self._fault, self._rejected, self._answered = "the SDK sent nothing", 0, False

    def answer(self, size: int, *, exported: bool) -> Answer:
        """What became of a batch of `size`, of which the exporter says whether it was exported."""
        if self._fault is None and not exported:
            self._fault = f"{self.url} took it, and the exporter says that it failed"
        if self._fault is not None:
            return Answer(0, self._fault, self._answered) if not self._rejected else self._partly(size)
        return Answer(size)

    def _partly(self, size: int) -> Answer:
        return Answer(max(size - self._rejected, 0), self._fault or "")

    def _note(self, fault: str | None, *, rejected: int = 0, answered: bool = True) -> None:
        self._fault, self._rejected, self._answered = fault, rejected, answered

    def _took(self, rejection: _Rejection) -> None:
        if rejection.items:
            said = f"{self.url} rejected {rejection.items} of the {self.signal.meaning}{_quoted(rejection.words)}"
            self._note(said, rejected=rejection.items)
        else:
            self._note(None)

    # HTTP -------------------------------------------------------------------------------------------------------------

    def response(self, response: Response) -> None:
        """An answer over HTTP; only 2xx with the words of OTLP is a yes."""
        self.url = shown(response.url)
        status, body = response.status_code, response.content
        kind = response.headers.get("content-type", "")
        if status in _OK:
            rejection = _rejection(self.signal, body, kind)
            if rejection is None:
                self._note(f"{self.url} answered {status}, but not as an OTLP receiver does; give the right --endpoint")
            else:
                self._took(rejection)
        elif status in _REDIRECTS:
            self._note(f"{self.url} answered {status}: it is elsewhere now; give the right --endpoint")
        else:
            advice = _ADVICE.get(status)
            self._note(
                f"{self.url} answered {status}{_quoted(_status_words(body, kind))}{'; ' * bool(advice)}{advice or ''}"
            )

    def failure(self, error: Exception, url: str) -> None:
        """No answer over HTTP."""
        self.url = shown(url)
        if isinstance(error, exceptions.SSLError):
            said = "{url}: no trust between the two (TLS); see OTEL_EXPORTER_OTLP_CERTIFICATE"
        elif isinstance(error, exceptions.ConnectTimeout) or not isinstance(error, exceptions.Timeout):
            said = _NOBODY
        else:
            said = _LATE
        self._note(said.format(url=self.url), answered=False)

    # gRPC -------------------------------------------------------------------------------------------------------------

    def message(self, response: Any) -> None:  # noqa: ANN401 - either response
        """An answer over gRPC."""
        self._took(_rejection_in(self.signal, response))

    def code(self, code: str, words: str) -> None:
        """A refusal over gRPC, or nobody there."""
        said = _CODES.get(code)
        text = said.format(url=self.url, signal=self.signal) if said else f"{self.url} answered {code}{_quoted(words)}"
        self._note(text, answered=code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED"))


class ListeningAdapter(HTTPAdapter):
    """Sends as `requests` does, and tells what came back."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - passed on
        """One try; the exporter above decides about another."""
        try:
            response = super().send(request, *args, **kwargs)
            self._heard.response(response)
        except exceptions.RequestException as error:
            self._heard.failure(error, request.url or "")
            raise
        return response


class ListeningStub:
    """A gRPC stub whose answers are told."""

    def __init__(self, stub: Any, heard: Heard) -> None:  # noqa: ANN401 - generated code has no types
        self._stub = stub
        self._heard = heard

    def Export(self, **call: Any) -> Any:  # noqa: ANN401, N802 - the service's own name
        """One try; the exporter above decides about another."""
        try:
            response = self._stub.Export(**call)
        except Exception as error:
            code = getattr(error, "code", None)
            self._heard.code(code().name if callable(code) else type(error).__name__, _details(error))
            raise
        self._heard.message(response)
        return response


def _details(error: Exception) -> str:
    details = getattr(error, "details", None)
    return str(details() or "") if callable(details) else ""


def _rejection(signal: Signal, body: bytes, kind: str) -> _Rejection | None:
    """How much of a request a 2xx took after all; None where no OTLP receiver would answer so."""
    if not body:
        return _Rejection(0, "")
    if "json" in kind:
        return _rejection_in_json(signal, body)
    if kind.startswith("text/"):
        return None
    try:
        return _rejection_in(signal, _RESPONSE[signal].FromString(body))
    except DecodeError:
        return None


def _rejection_in(signal: Signal, response: Any) -> _Rejection:  # noqa: ANN401 - either response
    partial = response.partial_success
    return _Rejection(getattr(partial, _REJECTED[signal]), partial.error_message)


def _rejection_in_json(signal: Signal, body: bytes) -> _Rejection | None:
    try:
        partial = json.loads(body).get("partialSuccess") or {}
        return _Rejection(int(partial.get(_REJECTED_JSON[signal], 0)), str(partial.get("errorMessage", "")))
    except (ValueError, TypeError, AttributeError):
        return None


def _status_words(body: bytes, kind: str) -> str:
    """What a refusal says of itself: the message of a `google.rpc.Status`."""
    try:
        if "json" in kind:
            return str(json.loads(body).get("message", ""))
        return str(Status.FromString(body).message) if "protobuf" in kind else ""
    except (DecodeError, ValueError, AttributeError):
        return ""


def _quoted(words: str) -> str:
    """Another program's words, as far as a terminal can be trusted with them."""
    plain = " ".join(re.sub(r"[^ -~]", " ", words).split())[:_WORDS]
    return f" ({plain})" if plain else ""
