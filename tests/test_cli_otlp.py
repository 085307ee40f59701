"""`stopcause export otlp`: exit codes, what goes where, and the same numbers however often it is called."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from stopcause import cli_otlp, cli_shared
from stopcause.pipeline.ingest import ingest
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.policy_file import load_policy
from stopcause.render.door import Door, Group
from tests.support.recordings import few
from tests.telemetry.receivers import Reply, grpc_receiver, http_receiver, values

NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)

program = typer.Typer(cls=Door, rich_markup_mode=None)
export = typer.Typer(cls=Group, rich_markup_mode=None)
cli_otlp.add_to(export)
program.add_typer(export, name="export")


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """17 recorded runs, two of which still wait."""
    path = tmp_path_factory.mktemp("otlp") / "s.duckdb"
    with Keeper.open(path, load_policy(None), NOW) as keeper:
        ingest(few(), keeper, NOW)
    return path


def run(store: Path, *arguments: str) -> Result:
    return CliRunner().invoke(program, ["export", "otlp", "--store", str(store), *arguments])


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_all_that_was_judged_is_sent(store: Path) -> None:
    with http_receiver() as received:
        result = run(store, "--endpoint", received.url)

    (it,) = objects(result)
    assert (result.exit_code, result.stderr) == (0, "")
    assert it == {
        "endpoint": received.url,
        "protocol": "http",
        "events": 17,
        "events_taken": 17,
        "series": len(received.points),
        "series_taken": len(received.points),
        "faults": [],
    }
    assert len(received.records) == 17
    assert sum(point.as_int for point in received.points) == 15
    assert received.paths == ["/v1/logs", "/v1/metrics"]


def test_sent_twice_the_counter_says_the_same_and_events_have_the_same_ids(store: Path) -> None:
    """A receiver that keeps the newest value of each series, as Prometheus does, counts nothing twice."""
    with http_receiver() as received:
        for arguments in ((), ("--all",)):
            assert run(store, "--endpoint", received.url, *arguments).exit_code == 0

    ids = [values(record.attributes)["stopcause.verdict.id"] for record in received.records]
    points = [
        (tuple(sorted(values(point.attributes).items())), point.as_int, point.start_time_unix_nano)
        for point in received.points
    ]
    assert len(points) == 2 * len(set(points))
    assert len(ids) == 2 * len(set(ids)) == 34
    assert received.resources()[0] == received.resources()[-1]


def test_over_grpc_as_the_variable_says(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with grpc_receiver() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        result = run(store, "--header", "x-scope=prod a=b", "-o", "table")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"To {received.url} (grpc):",
        "  17 events taken",
        f"  {len(received.points)} series taken of stopcause.runs",
    ]
    assert received.headers[0]["x-scope"] == "prod a=b"


def test_what_was_not_taken_is_exit_code_1_and_says_why(store: Path) -> None:
    with http_receiver(lambda path, _: Reply(404 if path.endswith("logs") else 200)) as received:
        result = run(store, "--endpoint", received.url, "-o", "table")

    assert result.exit_code == 1
    assert "  0 of 17 events taken" in result.stdout.splitlines()
    assert f"{len(received.points)} series taken" in result.stdout
    assert result.stderr.splitlines() == [
        f"Sending to {received.url} ...",
        f"stopcause: {received.url}/v1/logs answered 404; no OTLP over HTTP is there; give the right --endpoint",
    ]


def test_nobody_there(store: Path) -> None:
    with socket.socket() as taken:  # bound, not listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        result = run(store, "--endpoint", url)

    (it,) = objects(result)
    assert result.exit_code == 1
    assert (it["events"], it["events_taken"], it["series_taken"]) == (17, 0, 0)
    assert result.stderr == (
        f"stopcause: nothing answers at {url}/v1/logs; start a collector there, or give --endpoint\n"
    )


def test_a_slow_receiver_does_not_keep_others_from_the_store(store: Path) -> None:
    opened = []

    def slow(_path: str, _number: int) -> Reply:
        with Keeper.open(store, load_policy(None), NOW) as keeper:
            opened.append(keeper.store.counts().runs)
        return Reply()

    with http_receiver(slow) as received:
        assert run(store, "--endpoint", received.url).exit_code == 0

    assert opened == [17, 17]


def test_a_signal_that_is_turned_off(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    with http_receiver() as received:
        result = run(store, "--endpoint", received.url, "-o", "table")

    assert result.exit_code == 0
    assert "  no events (OTEL_LOGS_EXPORTER is none)" in result.stdout.splitlines()
    assert received.paths == ["/v1/metrics"]


def test_a_dry_run_sends_nothing_and_shows_what_would_leave(store: Path) -> None:
    with http_receiver() as received:
        table = run(store, "--endpoint", received.url, "--dry-run", "-o", "table")
        lines = run(store, "--endpoint", received.url, "--dry-run")

    assert received.paths == []
    assert table.stdout.splitlines()[0] == f"Would go to {received.url} (http): 17 events"
    assert table.stdout.splitlines()[-1].endswith("series of stopcause.runs. Nothing was sent.")
    assert [each["name"] for each in objects(lines) if "name" in each] == ["stopcause.run.judged"] * 17
    assert sum(each["value"] for each in objects(lines) if "metric" in each) == 15


def test_a_window_without_verdicts_still_sends_the_counter(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_shared, "clock", lambda: datetime(2026, 12, 24, tzinfo=UTC))
    with http_receiver() as received:
        old = run(store, "--endpoint", received.url, "--since", "5m")

    (it,) = objects(old)
    assert old.exit_code == 0
    assert it["series_taken"] == it["series"] > 0


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--endpoint", "collector:4318"), "--endpoint is no URL; write one as http://localhost:4318"),
        (("--endpoint", "collector", "--protocol", "grpc"), "write one as http://localhost:4317"),
        (("--protocol", "udp"), "Invalid value for '--protocol'"),
        (("--header", "no-value"), "Invalid value for --header: write NAME=VALUE"),
        (("--header", "a b=c"), "Invalid value for --header: write NAME=VALUE"),
        (("--header", "a=b\nc: d"), "Invalid value for --header: write NAME=VALUE"),
        (("--since", "yesterday"), "Invalid value for --since: write 30m, 24h or 7d"),
    ],
)
def test_what_cannot_be_meant_is_exit_code_2(store: Path, arguments: tuple[str, ...], fault: str) -> None:
    result = run(store, *arguments)

    assert result.exit_code == 2
    assert fault in result.stderr


def test_the_password_in_a_url_is_not_printed(store: Path) -> None:
    with http_receiver(lambda _path, _number: Reply(401)) as received:
        url = received.url.replace("http://", "http://ada:pa55@")
        result = run(store, "--endpoint", url, "-o", "table")

    assert "pa55" not in result.output
    assert received.headers[0]["authorization"].startswith("Basic ")


def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    result = run(tmp_path / "none.duckdb")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "No runs yet" in result.stderr


def test_without_the_sdk_it_says_what_to_install(store: Path) -> None:
    """In a process that cannot import it, as where only part of the server's libraries is installed."""
    code = """
import sys
sys.modules["opentelemetry.sdk"] = None
from tests.test_cli_otlp import program
sys.argv = ["stopcause", *sys.argv[1:]]
program()
"""
    command = [sys.executable, "-c", code, "export", "otlp", "--store", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "stopcause: the OTLP exporter of OpenTelemetry is not installed here. "
        'Install it with: pip install "stopcause[server]"'
    )


def test_help_does_not_wait_for_the_sdk() -> None:
    code = "import sys; from stopcause import cli_otlp; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {"opentelemetry", "duckdb", "pydantic", "requests", "grpc"} & set(loaded)
