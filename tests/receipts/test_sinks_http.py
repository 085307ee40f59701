"""Records to a service over real HTTP: each is taken once, or given up by itself and counted; headers stay ours."""

from __future__ import annotations

import email.utils
import errno
import logging
import os
import socket
import ssl
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import stopcause
from stopcause.receipts import capture, codec, model, sinks_http
from stopcause.receipts.sinks import HttpSink
from tests.receipts.conftest import Make
from tests.receipts.receivers import Reply, Request, raw_service, replies, service, unused_port

ROOT = Path(__file__).parents[2]
KEY = "canary-7f3a-key"
AGAIN = os.strerror(errno.EAGAIN)
LINES = [b'{"n":%d}' % number for number in range(5)]


def sent(sink: HttpSink, lines: Sequence[bytes], tries: int = 20) -> int:
    """As the writer sends: the same lines again, until they are settled."""
    for _ in range(tries):
        try:
            return sink.write(lines)
        except OSError:
            time.sleep(0.01)
    raise AssertionError("never settled")


def test_a_run_arrives_as_the_lines_that_a_spool_would_hold(http_sink: Make) -> None:
    with service() as came:
        with capture.configured(sink=http_sink(came.url, headers={"Authorization": f"Bearer {KEY}"})):
            with stopcause.run("invoice-agent") as run:
                run.step(tool_calls=1)
            assert stopcause.flush()

        found = [codec.read_line(line) for line in came.taken]
        assert [type(each) for each in found] == [model.RunStarted, model.RunStopped]
        request = came.requests[0]
        assert (request.method, request.path) == ("POST", "/v1/records")
        assert request.headers["content-type"] == "application/x-ndjson"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["user-agent"] == f"stopcause/{stopcause.__version__}"


def test_one_connection_serves_many_requests(http_sink: Make) -> None:
    with service() as came:
        sink = http_sink(came.url)
        for _ in range(3):
            assert sink.write(LINES) == 0
        sink.close()

        assert len({request.port for request in came.requests}) == 1
        assert came.taken == LINES * 3


def test_a_connection_that_was_closed_while_idle_is_no_failure(http_sink: Make) -> None:
    with service(replies(Reply(), Reply(hang_up=True))) as came:
        sink = http_sink(came.url)
        sink.write(LINES)

        assert sink.write(LINES) == 0
        assert came.taken == LINES * 2


def test_a_request_is_neither_long_nor_large(http_sink: Make) -> None:
    lines = [b"%05d" % number for number in range(450)]
    large = [b"x" * 200_000, b"y" * 100_000, b"z" * 300_000, b"small"]
    with service() as came:
        sink = http_sink(came.url)
        sink.write(lines)
        sink.write(large)

        assert [len(request.lines) for request in came.requests] == [200, 200, 50, 1, 1, 1, 1]
        assert came.taken == lines + large
        assert sink.write([]) == 0


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 599])
def test_what_may_pass_is_asked_again_with_what_is_left(status: int, http_sink: Make) -> None:
    lines = [b"%d" % number for number in range(500)]
    with service(replies(Reply(), Reply(status), Reply(status))) as came:
        sink = http_sink(came.url)
        with pytest.raises(BlockingIOError):
            sink.write(lines)
        with pytest.raises(BlockingIOError):
            sink.write(lines)

        assert sink.write(lines) == 0
        assert came.taken == lines, "no line is sent twice that was taken"
        assert [len(request.lines) for request in came.requests] == [200, 200, 200, 200, 100]


def test_a_pause_that_is_asked_for_is_kept(http_sink: Make) -> None:
    with service(replies(Reply(429, {"retry-after": "1"}))) as came:
        sink = http_sink(came.url)
        begun = time.monotonic()
        with pytest.raises(BlockingIOError):
            sink.write(LINES)
        with pytest.raises(BlockingIOError):
            sink.write(LINES)
        assert len(came.requests) == 1, "nothing is sent before"

        assert sent(sink, LINES, 300) == 0
        assert 0.9 < time.monotonic() - begun < 5
        assert len(came.requests) == 2


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("0", 0, 0),
        ("7", 7, 7),
        (" 12 ", 12, 12),
        ("86400", 300, 300),
        ("", 0, 0),
        ("soon", 0, 0),
        ("-5", 0, 0),
        ("1.5", 0, 0),
        pytest.param(email.utils.formatdate(time.time() + 60, usegmt=True), 0, 61, id="in-a-minute"),
        ("Mon, 30 Nov 2026 08:00:00 -0000", 0, 0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0, 0),
    ],
)
def test_a_pause_in_seconds_or_by_a_date_but_not_without_end(said: str, least: float, most: float) -> None:
    assert least <= sinks_http._seconds(said) <= most


def test_one_bad_line_never_costs_the_others(caplog: pytest.LogCaptureFixture, http_sink: Make) -> None:
    lines = [b"%d" % number for number in range(150)]

    def refusing(request: Request, _number: int) -> Reply:
        return Reply(400 if b"77" in request.lines else 200)

    with service(refusing) as came, caplog.at_level(logging.WARNING):
        assert http_sink(came.url).write(lines) == 1
        assert came.taken == [line for line in lines if line != b"77"]
        assert len(came.requests) < 20
    assert [record.getMessage() for record in caplog.records] == [
        f"stopcause: HttpSink was answered 400, and those records are lost; {sinks_http._MEANT[400]}"
    ]


def test_too_large_a_batch_is_sent_in_parts(http_sink: Make) -> None:
    with service(lambda request, _number: Reply(413 if len(request.lines) > 2 else 200)) as came:
        assert http_sink(came.url).write(LINES) == 0
        assert came.taken == LINES


def test_parts_of_a_batch_are_not_sent_again_when_one_of_them_has_to_wait(http_sink: Make) -> None:
    def script(request: Request, number: int) -> Reply:
        return Reply(413) if len(request.lines) > 3 else Reply(503 if number == 2 else 200)

    with service(script) as came:
        sink = http_sink(came.url)
        with pytest.raises(BlockingIOError):
            sink.write(LINES)

        assert sink.write(LINES) == 0
        assert came.taken == LINES


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "set the header that it wants, as authorization"),
        (403, "set the header that it wants, as authorization"),
        (404, "check the address"),
        (405, "check the address"),
        (410, "see its log"),
    ],
)
def test_what_will_not_pass_is_given_up_and_said_once(
    status: int, advice: str, caplog: pytest.LogCaptureFixture, http_sink: Make
) -> None:
    with service(lambda _request, _number: Reply(status)) as came:
        sink = http_sink(came.url)
        assert (sink.write(LINES), sink.write(LINES)) == (5, 5)
        assert len(came.requests) == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"stopcause: HttpSink was answered {status}, and those records are lost; {advice}"
    ]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, caplog: pytest.LogCaptureFixture, http_sink: Make) -> None:
    with (
        service() as elsewhere,
        service(lambda _request, _number: Reply(status, {"location": elsewhere.url})) as came,
    ):
        sink = http_sink(came.url, headers={"authorization": KEY})
        assert sink.write(LINES) == 5
        assert not elsewhere.requests
    assert "it is elsewhere: give its new address" in caplog.text
    assert elsewhere.url not in caplog.text


def test_what_is_given_up_is_counted_in_the_next_record(http_sink: Make) -> None:
    with service(replies(Reply(403))) as came:
        with capture.configured(sink=http_sink(came.url)):
            stopcause.run("first").start().end()
            assert stopcause.flush()
            stopcause.run("second").start().end()
        found = [codec.read_line(line) for line in came.taken]

    dropped = [each.dropped for each in found if isinstance(each, model.RunStarted | model.RunStopped)]
    assert sum(each or 0 for each in dropped) + len(dropped) == 4


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(-2, "canary"), "gaierror"),
        (ssl.SSLCertVerificationError(1, "canary"), "SSLCertVerificationError"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "canary"), os.strerror(errno.ECONNREFUSED)),
        (TimeoutError("canary"), "TimeoutError"),
    ],
)
def test_why_it_cannot_be_reached_is_said_by_the_kind(
    error: OSError, words: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, http_sink: Make
) -> None:
    def raising(*_: Any) -> None:  # noqa: ANN401 - whatever the library passes
        monkeypatch.undo()
        raise error

    with service() as came, capture.configured(sink=http_sink(came.url)):
        monkeypatch.setattr(HTTPConnection, "connect", raising)
        stopcause.run("agent").start().end()
        assert stopcause.flush(10)
    assert [record.getMessage() for record in caplog.records] == [
        f"stopcause: records cannot be written ({words}); kept in memory meanwhile, at most 50000"
    ]


def test_nobody_there(http_sink: Make) -> None:
    with pytest.raises(ConnectionRefusedError):
        http_sink(f"http://127.0.0.1:{unused_port()}/v1/records").write(LINES)


def test_a_service_that_comes_back_gets_what_waited(caplog: pytest.LogCaptureFixture, http_sink: Make) -> None:
    with service(replies(Reply(503), Reply(hang_up=True), Reply(500))) as came:
        with capture.configured(sink=http_sink(came.url)):
            stopcause.run("agent").start().end()
            assert stopcause.flush(10)
        assert [type(codec.read_line(line)) for line in came.taken] == [model.RunStarted, model.RunStopped]
    assert [record.getMessage() for record in caplog.records] == [
        f"stopcause: records cannot be written ({AGAIN}); kept in memory meanwhile, at most 50000"
    ]


def test_an_answer_that_does_not_come_in_time(http_sink: Make) -> None:
    with service(replies(Reply(after=3))) as came:
        sink = http_sink(came.url, timeout_s=0.1)
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            sink.write(LINES)
        assert time.monotonic() - begun < 2

        assert sent(sink, LINES) == 0


def test_a_slow_service_does_not_keep_the_agent(caplog: pytest.LogCaptureFixture, http_sink: Make) -> None:
    with service(lambda _request, _number: Reply(after=0.5)) as came:
        with capture.configured(sink=http_sink(came.url)):
            begun = time.monotonic()
            for _ in range(20):
                stopcause.run("agent").start().end()
            assert time.monotonic() - begun < 0.5
            assert stopcause.flush(10)
        assert len(came.taken) == 40
    assert not caplog.records


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 2", b"\x00" * 70_000])
def test_a_server_that_speaks_no_http(answer: bytes, http_sink: Make) -> None:
    with raw_service(lambda connection, _: connection.sendall(answer)) as url:
        sink = http_sink(url, timeout_s=2)
        for _ in range(2):
            with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is, the writer asks again
                sink.write(LINES)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n" + b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
        b"HTTP/1.1 202 Accepted\r\n\r\n",
        b"HTTP/1.0 204 No Content\r\nconnection: close\r\n\r\n",
    ],
)
def test_the_status_has_said_all_that_counts(answer: bytes, http_sink: Make) -> None:
    with raw_service(lambda connection, _: connection.sendall(answer)) as url:
        sink = http_sink(url, timeout_s=2)
        assert sink.write(LINES) == 0
        assert sink.write(LINES) == 0


def test_other_lines_do_not_go_on_where_the_last_ones_stopped(http_sink: Make) -> None:
    with service(replies(Reply(503))) as came:
        sink = http_sink(came.url)
        with pytest.raises(BlockingIOError):
            sink.write(LINES)

        assert sink.write([b"other"]) == 0
        assert came.taken == [b"other"]


def test_closed_it_has_nothing_left_and_can_begin_anew(http_sink: Make) -> None:
    with service(replies(Reply(429, {"retry-after": "60"}))) as came:
        sink = http_sink(came.url)
        with pytest.raises(BlockingIOError):
            sink.write(LINES)
        sink.close()
        sink.close()

        assert sink.write(LINES) == 0
        assert len({request.port for request in came.requests}) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_a_connection_of_its_own(http_sink: Make) -> None:
    with service() as came, capture.configured(sink=http_sink(came.url)):
        stopcause.run("parent").start().end()
        assert stopcause.flush()
        if (child := os.fork()) == 0:
            stopcause.run("child").start().end()
            os._exit(0 if stopcause.flush(5) else 1)
        assert os.waitpid(child, 0)[1] == 0
        stopcause.run("parent").start().end()
        assert stopcause.flush()

        assert len({request.port for request in came.requests}) == 2
        assert len(came.taken) == 6


# The end of the process -----------------------------------------------------------------------------------------------

PROGRAM = """
    import sys, stopcause
    from stopcause.receipts.sinks import HttpSink
    stopcause.configure(sink=HttpSink(sys.argv[1]))
    with stopcause.run("agent"):
        pass
"""


@pytest.mark.parametrize(("after", "arrive"), [(0.3, 2), (6.0, 0)])
def test_a_program_that_just_ends_waits_two_seconds(after: float, arrive: int) -> None:
    with service(lambda _request, _number: Reply(after=after)) as came:
        begun = time.monotonic()
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), came.url]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

        assert (done.returncode, done.stderr) == (0, "")
        assert time.monotonic() - begun < 6
        assert len(came.taken) == arrive
