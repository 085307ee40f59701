"""Where things go: what was told, else the SDK's own variables."""

from __future__ import annotations

import pytest

from stopcause.errors import InputError
from stopcause.telemetry.target import is_off, shown, target_of
from stopcause.telemetry.values import Signal


def urls(protocol: str | None = None, endpoint: str | None = None) -> tuple[str, ...]:
    target = target_of(protocol, endpoint, {})
    return (target.protocol, *(target.url_of(signal) for signal in Signal))


def test_without_a_word_it_is_the_collector_of_this_machine() -> None:
    assert urls() == ("http", "http://localhost:4318/v1/logs", "http://localhost:4318/v1/metrics")
    assert urls("grpc") == ("grpc", "http://localhost:4317", "http://localhost:4317")


def test_the_endpoint_is_a_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://other:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://other:2/x")

    assert urls(None, "https://h/otlp/") == ("http", "https://h/otlp/v1/logs", "https://h/otlp/v1/metrics")


def test_the_variables_count_where_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://l/whole/path")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")

    assert urls() == ("http", "http://l/whole/path", "http://c:4318/v1/metrics")


@pytest.mark.parametrize("endpoint", ["localhost:4318", "ftp://x", "http://", "http://x:port", "http://[", "", " "])
def test_no_url_is_an_error_that_does_not_repeat_it(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint or "nonsense")

    with pytest.raises(InputError, match=r"is no URL; write one as http://localhost:4318") as raised:
        target_of(None, endpoint or None, {})
    assert ("--endpoint" if endpoint else "OTEL_EXPORTER_OTLP_ENDPOINT") in str(raised.value)


def test_a_protocol_that_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")

    with pytest.raises(InputError, match="give --protocol http or grpc"):
        target_of(None, None, {})
    assert target_of("grpc", None, {}).protocol == "grpc"


def test_a_signal_is_turned_off_by_the_sdks_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "None")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "otlp")

    assert [is_off(signal) for signal in Signal] == [True, False]


def test_what_opens_something_is_not_shown() -> None:
    assert shown("https://ada:pa55@h:1/v1/logs?key=k#f") == "https://h:1/v1/logs"
