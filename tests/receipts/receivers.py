"""A service that records are really sent to: it keeps what comes, and answers as it is told."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """What to answer a request with. `after` seconds; `hang_up` closes the connection in place of an answer."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes = b"{}"
    after: float = 0
    hang_up: bool = False


class Request(NamedTuple):
    """What came."""

    method: str
    path: str
    headers: Mapping[str, str]
    lines: list[bytes]
    port: int  # of the sender: the same one means the same connection


Script = Callable[[Request, int], Reply]  # the request, how many came before it


def replies(*script: Reply) -> Script:
    """These, one after the other; then yes."""
    return lambda _request, number: script[number] if number < len(script) else Reply()


class Service:
    """Everything that came to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Request] = []
        self.taken: list[bytes] = []  # lines of those that were answered with 2xx


@contextlib.contextmanager
def service(script: Script = lambda _request, _number: Reply()) -> Iterator[Service]:
    """A service on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): text for name, text in self.headers.items()}
            request = Request(self.command, self.path, headers, body.splitlines(), self.client_address[1])
            reply = script(request, len(came.requests))
            came.requests.append(request)
            time.sleep(reply.after)
            if reply.hang_up:
                self.close_connection = True
                return
            if reply.status // 100 == 2:
                came.taken += request.lines
            with contextlib.suppress(OSError):  # a sender that did not wait
                self._answer(reply)

        def _answer(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, text in {"content-length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST  # noqa: N815 - the library's own name

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    came = Service(f"http://127.0.0.1:{server.server_port}/v1/records")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def raw_service(answer: Callable[[Any, bytes], None]) -> Iterator[str]:
    """A server that speaks by itself: `answer` gets each connection, and what came first over it."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    answer(connection, connection.recv(65536))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/records"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`
        listener.close()
        thread.join(2)


def unused_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
