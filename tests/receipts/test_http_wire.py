"""The one connection: what is an address and a header, whose proxy it goes through, and what is never said aloud."""

from __future__ import annotations

import logging
import socket
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any

import pytest

import stopcause
from stopcause.errors import ConfigurationError
from stopcause.receipts import capture
from stopcause.receipts.sinks import HttpSink
from tests.receipts.conftest import Make
from tests.receipts.receivers import Reply, Service, raw_service, replies, service, unused_port

KEY = "canary-7f3a-key"
LINES = [b'{"n":%d}' % number for number in range(5)]


def test_a_proxy_is_asked_for_the_whole_address(monkeypatch: pytest.MonkeyPatch, http_sink: Make) -> None:
    with service() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//user:p%40ss@").removesuffix("/v1/records"))
        sink = http_sink("http://records.example/v1/records")
        assert (sink.write(LINES), sink.write(LINES)) == (0, 0)

        request = proxy.requests[0]
        assert (request.path, request.headers["host"]) == ("http://records.example/v1/records", "records.example")
        assert request.headers["proxy-authorization"] == "Basic dXNlcjpwQHNz"


def test_a_proxy_gives_a_tunnel_for_https(monkeypatch: pytest.MonkeyPatch, http_sink: Make) -> None:
    seen: list[bytes] = []

    def refusing(connection: socket.socket, came: bytes) -> None:
        seen.append(came)
        connection.sendall(b"HTTP/1.1 403 no\r\n\r\n")

    with raw_service(refusing) as proxy:
        monkeypatch.setenv("https_proxy", proxy.removeprefix("http://").removesuffix("/v1/records"))
        with pytest.raises(OSError, match="403"):
            http_sink("https://records.example/v1/records", headers={"authorization": KEY}).write(LINES)
    assert seen[0].startswith(b"CONNECT records.example:443 HTTP/1.")
    assert KEY.encode() not in b"".join(seen), "a proxy never sees our headers"


def test_no_proxy_for_whom_it_is_not_meant(monkeypatch: pytest.MonkeyPatch, http_sink: Make) -> None:
    with service() as came:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_port()}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")

        assert http_sink(came.url).write(LINES) == 0


# What it takes, and what it says --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "stopcause.example",
            "ftp://a/b",
            "http://",
            "https://:80/x",
            "http://a:99999/",
            "http://a:0/",
            "http://[a/",
        ),
        *("http://a b/", "http://a/\r\nx: y", "http://ä/", "file:///etc/passwd", None, 7),
    ],
)
def test_no_address(url: Any) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match="url must be where records go, as https://"):
        HttpSink(url)


def test_a_password_does_not_belong_into_an_address() -> None:
    with pytest.raises(ConfigurationError) as caught:
        HttpSink(f"https://user:{KEY}@stopcause.example/v1/records")

    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "headers",
    [
        *({"authorization": f"{KEY}\r\nx: y"}, {"authorization": f"{KEY} \u2028"}, {"authorization": 7}),
        *({f"{KEY}:": "x"}, {"": "x"}, {"a b": "x"}),
    ],
)
def test_no_header(headers: Any) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match="headers") as caught:
        HttpSink("https://stopcause.example/v1/records", headers=headers)

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "10", None])
def test_no_time(seconds: Any) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match="timeout_s"):
        HttpSink("https://stopcause.example/v1/records", timeout_s=seconds)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://127.0.0.1:{port}", "/"),
        ("http://127.0.0.1:{port}/a/b?c=d#e", "/a/b?c=d"),
        ("http://127.0.0.1:{port}/?c", "/?c"),
    ],
)
def test_the_address_is_used_as_it_is(url: str, target: str, http_sink: Make) -> None:
    with service() as came:
        http_sink(url.format(port=came.url.split(":")[2].split("/")[0])).write(LINES)

        assert came.requests[0].path == target


def test_neither_header_nor_content_is_in_any_log(
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    http_sink: Make,
) -> None:
    monkeypatch.setattr(HTTPConnection, "debuglevel", 1)  # a process that prints all its HTTP
    script = replies(*(Reply(status, {"retry-after": "0"}) for status in (400, 503, 302, 401)), Reply(hang_up=True))
    with caplog.at_level(logging.DEBUG), ExitStack() as stack:
        came: Service = stack.enter_context(service(script))
        sink = http_sink(f"{came.url}?token={KEY}", headers={"authorization": KEY, "x-tenant": KEY})
        for _ in range(6):
            stack.enter_context(capture.configured(sink=sink))
            stopcause.run("canary7f3a").start().end()
            stopcause.flush(5)
        said = caplog.text + "".join(capfd.readouterr()) + repr(sink) + repr(sink._wire)

    assert came.requests
    assert all(KEY in request.headers["authorization"] for request in came.requests), "it was there to be found"
    assert caplog.records
    assert "canary" not in said
