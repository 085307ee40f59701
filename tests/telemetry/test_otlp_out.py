"""Real receivers: what arrives, and that no batch counts as taken which was not."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs

from stopcause.telemetry import names
from stopcause.telemetry.otlp_out import Sender
from stopcause.telemetry.target import target_of
from stopcause.telemetry.values import Answer, Event, Scalar, Series, Source
from tests.telemetry.receivers import PROTOBUF, Received, Reply, grpc_receiver, http_receiver, values

NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)
SOURCE = Source("26410a56-3ecd-5ead-9c14-15831389daa4", "1.2.3", NOW - timedelta(days=9))
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RECEIVERS = {"http": http_receiver, "grpc": grpc_receiver}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short timeout: what the SDK would try for ten seconds it tries for two."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")


def event(number: int = 0, **fields: Any) -> Event:  # noqa: ANN401 - any field
    attributes: dict[str, Scalar] = {
        names.Attribute.RUN_ID: f"r{number}",
        names.Attribute.SETTLED: True,
        names.Attribute.STEPS: 3,
    }
    blank = Event(names.JUDGED, NOW - timedelta(hours=1), NOW, "WARN", "STUCK time_limit: a", attributes)
    return blank._replace(**fields)


def sent(url: str, events: Sequence[Event], protocol: str = "http", headers: dict[str, str] | None = None) -> Answer:
    with Sender(target_of(protocol, url, headers or {}), SOURCE) as sender:
        return sender.send_events(events)


def counted(url: str, series: Sequence[Series], protocol: str = "http", now: datetime = NOW) -> Answer:
    with Sender(target_of(protocol, url, {}), SOURCE) as sender:
        return sender.send_counts(series, now)


@pytest.fixture(params=RECEIVERS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def receiver(protocol: str) -> Iterator[Received]:
    open_receiver: Callable[[], Any] = RECEIVERS[protocol]
    with open_receiver() as received:
        yield received


# What arrives


def test_an_event_arrives_whole(receiver: Received, protocol: str) -> None:
    answer = sent(receiver.url, [event(trace_id=TRACE, span_id=SPAN, sampled=True)], protocol)

    (record,) = receiver.records
    assert answer == Answer(1)
    assert (record.event_name, record.body.string_value) == (names.JUDGED, "STUCK time_limit: a")
    assert (record.severity_number, record.severity_text) == (13, "WARN")
    assert (record.trace_id.hex(), record.span_id.hex(), record.flags) == (TRACE, SPAN, 1)
    assert record.time_unix_nano == int((NOW - timedelta(hours=1)).timestamp()) * 10**9
    assert record.observed_time_unix_nano == int(NOW.timestamp()) * 10**9
    assert values(record.attributes) == {
        "stopcause.run.id": "r0",
        "stopcause.verdict.settled": True,
        "stopcause.step.count": 3,
    }


def test_a_run_without_a_trace_has_none(receiver: Received, protocol: str) -> None:
    sent(receiver.url, [event()], protocol)

    assert [(record.trace_id, record.span_id, record.flags) for record in receiver.records] == [(b"", b"", 0)]


def test_the_sender_is_the_same_in_every_export(receiver: Received, protocol: str) -> None:
    for _ in range(2):
        sent(receiver.url, [event()], protocol)

    first, second = receiver.resources()
    assert first == second
    assert (first["service.name"], first["service.version"]) == ("stopcause", "1.2.3")
    assert first["service.instance.id"] == SOURCE.instance_id


def test_a_sum_is_cumulative_since_the_same_time_in_every_export(
    receiver: Received, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    series = [Series(names.RUNS.name, {"verdict": "STUCK"}, 7), Series(names.RUNS.name, {names.OVERFLOW: True}, 2)]

    answers = [counted(receiver.url, series, protocol, NOW + timedelta(minutes=minute)) for minute in range(2)]

    metric = receiver.metrics[0].resource_metrics[0].scope_metrics[0].metrics[0]
    points = [(values(each.attributes), each.as_int, each.start_time_unix_nano) for each in receiver.points]
    assert answers == [Answer(2), Answer(2)]
    assert (metric.name, metric.unit, metric.sum.is_monotonic) == ("stopcause.runs", "{run}", True)
    assert metric.sum.aggregation_temporality == 2
    assert points[:2] == points[2:]
    assert [(labels, value) for labels, value, _ in points[:2]] == [
        ({"verdict": "STUCK"}, 7),
        ({"otel.metric.overflow": True}, 2),
    ]
    assert {start for *_, start in points} == {int(SOURCE.since.timestamp()) * 10**9}


def test_headers_come_from_the_command_and_from_the_variables(
    receiver: Received, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-env=1,x-both=env")

    sent(receiver.url, [event()], protocol, {"X-Given": "a b", "x-both": "given"})

    (headers,) = receiver.headers
    assert {name: headers[name] for name in ("x-env", "x-given", "x-both")} == {
        "x-env": "1",
        "x-given": "a b",
        "x-both": "given",
    }


def test_compression_is_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with http_receiver() as received:
        assert sent(received.url, [event(n) for n in range(50)]) == Answer(50)

    assert received.headers[0]["content-encoding"] == "gzip"
    assert len(received.records) == 50


# What does not


def test_nobody_there_is_said_in_bounded_time(protocol: str) -> None:
    with socket.socket() as taken:  # bound, not listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        began = time.monotonic()
        answer = sent(url, [event()], protocol)

    assert time.monotonic() - began < 5
    assert (answer.taken, answer.answered) == (0, False)
    assert answer.fault.startswith(f"nothing answers at {url}")
    assert answer.fault.endswith("start a collector there, or give --endpoint")


def test_a_slow_receiver_is_not_waited_for_without_end() -> None:
    with http_receiver(lambda _path, _number: Reply(after=4)) as received:
        began = time.monotonic()
        answer = sent(received.url, [event()])
        took = time.monotonic() - began

    assert took < 4
    assert answer == Answer(
        0, f"{received.url}/v1/logs did not answer in time (OTEL_EXPORTER_OTLP_TIMEOUT, in seconds)", answered=False
    )


def test_400_is_not_tried_again_and_its_words_are_plain() -> None:
    body = Status(code=3, message="too old\x1b[31m\n" + "x" * 500).SerializeToString()
    with http_receiver(lambda _path, _number: Reply(400, body)) as received:
        answer = sent(received.url, [event()])

    assert len(received.paths) == 1
    assert answer.taken == 0
    assert answer.fault.startswith(f"{received.url}/v1/logs answered 400 (too old [31m xxx")
    assert len(answer.fault) < 200
    assert answer.fault.isprintable()


def test_429_is_tried_again_when_the_receiver_says() -> None:
    busy = Reply(429, headers={"retry-after": "1"})
    with http_receiver(lambda _path, number: Reply() if number else busy) as received:
        answer = sent(received.url, [event()])

    assert answer == Answer(1)
    assert len(received.paths) == 2


def test_429_for_longer_than_there_is_time_is_not_taken() -> None:
    with http_receiver(lambda _path, _number: Reply(429, headers={"retry-after": "30"})) as received:
        answer = sent(received.url, [event()])

    assert answer == Answer(0, f"{received.url}/v1/logs answered 429; it has no room now; try again later")


@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_redirect_is_no_yes_and_is_not_followed(status: int) -> None:
    with http_receiver() as elsewhere:
        to = Reply(status, headers={"location": f"{elsewhere.url}/v1/logs"})
        with http_receiver(lambda _path, _number: to) as received:
            answer = sent(received.url, [event()])

    assert answer.taken == 0
    assert f"answered {status}: it is elsewhere now" in answer.fault
    assert elsewhere.paths == []


def partly(rejected: int, message: str = "no room") -> bytes:
    partial = logs.ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=message)
    return bytes(logs.ExportLogsServiceResponse(partial_success=partial).SerializeToString())


JSON = '{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"no room"}}'


@pytest.mark.parametrize(
    "reply", [Reply(body=partly(2)), Reply(body=JSON.encode(), headers={"content-type": "application/json"})]
)
def test_a_rejected_part_is_read(reply: Reply) -> None:
    with http_receiver(lambda _path, _number: reply) as received:
        answer = sent(received.url, [event(n) for n in range(5)])

    assert answer == Answer(3, f"{received.url}/v1/logs rejected 2 of the events (no room)")
    assert len(received.paths) == 1  # never again: the receiver took the rest


def test_a_warning_alone_rejects_nothing() -> None:
    with http_receiver(lambda _path, _number: Reply(body=partly(0, "soon no more"))) as received:
        assert sent(received.url, [event()]) == Answer(1)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"<html>welcome</html>", headers={"content-type": "text/html"}),
        Reply(body=b"welcome", headers={"content-type": "application/json"}),
        Reply(body=b"[]", headers={"content-type": "application/json"}),
        Reply(body=b"\xff\xff\xff", headers={"content-type": PROTOBUF}),
    ],
)
def test_200_from_something_else_is_no_yes(reply: Reply) -> None:
    with http_receiver(lambda _path, _number: reply) as received:
        answer = sent(received.url, [event()])

    assert answer.taken == 0
    assert "answered 200, but not as an OTLP receiver does" in answer.fault


@pytest.mark.parametrize(("status", "advice"), [(401, "--header"), (403, "--header"), (404, "--endpoint")])
def test_a_refusal_says_what_to_do(status: int, advice: str) -> None:
    reply = Reply(status, b'{"message":"no"}', {"content-type": "application/json"})
    with http_receiver(lambda _path, _number: reply) as received:
        answer = sent(received.url, [event()])

    assert answer.fault.startswith(f"{received.url}/v1/logs answered {status} (no); ")
    assert advice in answer.fault


def test_a_rejected_part_is_read_over_grpc() -> None:
    with grpc_receiver(lambda _request, _context: logs.ExportLogsServiceResponse.FromString(partly(2))) as received:
        answer = sent(received.url, [event(n) for n in range(5)], "grpc")

    assert answer == Answer(3, f"{received.url} rejected 2 of the events (no room)")


def test_a_refusal_over_grpc_has_its_code() -> None:
    def refuse(_request: Any, context: Any) -> Any:  # noqa: ANN401 - generated code has no types
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "bad\x1bdata")

    with grpc_receiver(refuse) as received:
        answer = sent(received.url, [event()], "grpc")

    assert answer == Answer(0, f"{received.url} answered INVALID_ARGUMENT (bad data)")


def test_over_grpc_what_comes_back_after_it_was_away_is_still_heard() -> None:
    """The exporter makes a new stub when the first was not answered; that one has to be heard as well."""
    calls: list[object] = []

    def away_once(request: Any, context: Any) -> Any:  # noqa: ANN401
        calls.append(request)
        if len(calls) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        return logs.ExportLogsServiceResponse.FromString(partly(1))

    with grpc_receiver(away_once) as received:
        answer = sent(received.url, [event(n) for n in range(3)], "grpc")

    assert len(calls) == 2
    assert answer == Answer(2, f"{received.url} rejected 1 of the events (no room)")


def test_an_sdk_that_is_turned_off_sends_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with http_receiver() as received:
        answers = [sent(received.url, [event()]), counted(received.url, [Series(names.RUNS.name, {}, 1)])]

    assert received.paths == []
    assert {answer.fault for answer in answers} == {"the SDK is turned off (OTEL_SDK_DISABLED)"}
