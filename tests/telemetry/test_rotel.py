"""A receiver that is none of ours, in another language: Rotel takes both signals over both protocols, and prints them.

Our own receivers decode with the library that encoded; this one would not share its mistakes.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from stopcause.telemetry import names
from stopcause.telemetry.otlp_out import Sender
from stopcause.telemetry.target import target_of
from stopcause.telemetry.values import Answer, Series
from tests.support.machine import lacking
from tests.telemetry.test_otlp_out import NOW, SOURCE, SPAN, TRACE, event

ENVIRONMENT = Path(__file__).parents[2] / ".envs" / "rotel"
pytestmark = pytest.mark.framework


class Rotel(NamedTuple):
    """A running agent, and what it prints into."""

    urls: dict[str, str]
    printed: Path


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def rotel(printed: Path, signal: str) -> Iterator[Rotel]:
    found = list(ENVIRONMENT.glob("lib/python3*/site-packages/rotel/rotel-agent"))
    if not found:
        lacking("needs Rotel in an environment of its own: make .envs/rotel/ready")
    ports = {"http": _free_port(), "grpc": _free_port()}
    command = [
        str(found[0]),
        "start",
        "--exporter",
        "blackhole",
        "--debug-log",
        signal,
        "--debug-log-verbosity",
        "detailed",
    ]
    addresses = [part for name, port in ports.items() for part in (f"--otlp-{name}-endpoint", f"127.0.0.1:{port}")]
    with printed.open("wb") as out, subprocess.Popen([*command, *addresses], stdout=out, stderr=out) as agent:
        try:
            _wait_for(ports["grpc"])
            yield Rotel({name: f"http://127.0.0.1:{port}" for name, port in ports.items()}, printed)
        finally:
            agent.terminate()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    pytest.fail("Rotel does not listen")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_events_arrive(protocol: str, tmp_path: Path) -> None:
    events = [event(number, trace_id=TRACE, span_id=SPAN) for number in range(3)]
    with rotel(tmp_path / "said", "logs") as agent:
        with Sender(target_of(protocol, agent.urls[protocol], {}), SOURCE) as sender:
            assert sender.send_events(events) == Answer(3)
        time.sleep(0.5)

    said = agent.printed.read_text("utf-8")
    assert said.count(f"EventName: {names.JUDGED}") == 3
    assert re.findall(r"stopcause\.run\.id: Str\((.*)\)", said) == ["r0", "r1", "r2"]
    assert re.findall(r"Trace ID +: (\w+)", said) == [TRACE] * 3
    assert said.count("SEVERITY_NUMBER_WARN(13)") == 3
    assert f"service.instance.id: Str({SOURCE.instance_id})" in said


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_sums_arrive(protocol: str, tmp_path: Path) -> None:
    series = [Series(names.RUNS.name, {"verdict": "STUCK"}, 7), Series(names.RUNS.name, {"verdict": "FAILED"}, 2)]
    with rotel(tmp_path / "said", "metrics") as agent:
        with Sender(target_of(protocol, agent.urls[protocol], {}), SOURCE) as sender:
            assert sender.send_counts(series, NOW) == Answer(2)
        time.sleep(0.5)

    said = agent.printed.read_text("utf-8")
    assert said.count("AGGREGATION_TEMPORALITY_CUMULATIVE") == 1
    assert re.findall(r"verdict: Str\((\w+)\)", said) == ["STUCK", "FAILED"]
    assert re.findall(r"Value: (\d+)", said) == ["7", "2"]
    assert len(set(re.findall(r"StartTimestamp: (\d+)", said))) == 1
