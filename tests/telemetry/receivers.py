"""Receivers that OTLP is really sent to: an HTTP server and a gRPC server that decode what comes and answer as told."""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc

PROTOBUF = "application/x-protobuf"


class Reply(NamedTuple):
    """What to answer a request with. `after` seconds."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {"content-type": PROTOBUF}
    after: float = 0


Script = Callable[[str, int], Reply]  # path, how many requests came before; what to answer


def _accepting(_path: str, _number: int) -> Reply:
    return Reply()


class Received:
    """Everything that came, raw and decoded."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.logs: list[logs.ExportLogsServiceRequest] = []
        self.metrics: list[metrics.ExportMetricsServiceRequest] = []

    @property
    def records(self) -> list[Any]:
        """Every log record."""
        return [
            record
            for request in self.logs
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    @property
    def points(self) -> list[Any]:
        """Every data point of a sum."""
        return [
            point
            for request in self.metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.sum.data_points
        ]

    def resources(self) -> list[dict[str, str]]:
        """The resource of each request."""
        requests = [r for request in self.logs for r in request.resource_logs]
        requests += [r for request in self.metrics for r in request.resource_metrics]
        return [values(each.resource.attributes) for each in requests]

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """Keeps a request over HTTP."""
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.paths.append(path)
        self.headers.append({name.lower(): text for name, text in headers.items()})
        self.bodies.append(body)
        if path.endswith("/v1/logs"):
            self.logs.append(logs.ExportLogsServiceRequest.FromString(body))
        else:
            self.metrics.append(metrics.ExportMetricsServiceRequest.FromString(body))


def values(attributes: Any) -> dict[str, Any]:  # noqa: ANN401 - generated code has no types
    """Attributes as Python values."""
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:  # noqa: ANN401
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)


@contextlib.contextmanager
def http_receiver(script: Script = _accepting) -> Iterator[Received]:
    """A receiver over HTTP on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            number = len(received.paths)
            received.take(self.path, dict(self.headers.items()), body)
            reply = script(self.path, number)
            time.sleep(reply.after)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a sender that did not wait
                self.send_response(reply.status)
                for name, text in {**reply.headers, "content-length": str(len(reply.body))}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received = Received(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


Answering = Callable[[Any, Any], Any]  # request, context; the response


@contextlib.contextmanager
def grpc_receiver(answering: Answering | None = None) -> Iterator[Received]:
    """A receiver over gRPC on a free port."""

    def export_logs(request: Any, context: Any) -> Any:  # noqa: ANN401
        keep(received.logs, request, context)
        return answering(request, context) if answering else logs.ExportLogsServiceResponse()

    def export_metrics(request: Any, context: Any) -> Any:  # noqa: ANN401
        keep(received.metrics, request, context)
        return metrics.ExportMetricsServiceResponse()

    def keep(requests: list[Any], request: Any, context: Any) -> None:  # noqa: ANN401
        requests.append(request)
        received.bodies.append(request.SerializeToString())
        received.headers.append(dict(context.invocation_metadata()))

    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    add_logs: Any = logs_grpc.add_LogsServiceServicer_to_server  # generated, and without types
    add_metrics: Any = metrics_grpc.add_MetricsServiceServicer_to_server
    add_logs(_service(export_logs), server)
    add_metrics(_service(export_metrics), server)
    received = Received(f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    server.start()
    try:
        yield received
    finally:
        server.stop(None).wait()


def _service(export: Answering) -> Any:  # noqa: ANN401
    class Service:
        def Export(self, request: Any, context: Any) -> Any:  # noqa: ANN401, N802 - the service's own name
            return export(request, context)

    return Service()
