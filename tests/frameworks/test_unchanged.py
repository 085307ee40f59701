"""Unchanged programs leave receipts in the spool: started by OpenTelemetry, or with the lines of `docs/connect`.

Run for each framework in its own environment; the program is `program.py` in the framework's folder.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

_FRAMEWORK = os.environ["STOPCAUSE_FRAMEWORK"]
_FOLDER = Path(__file__).parent / _FRAMEWORK
_CONNECT = Path(__file__).parents[2] / "docs" / "connect" / f"{_FRAMEWORK.replace('_', '-')}.py"
# Agent, steps, tool calls and cause of the program. It makes two model calls, which is what most frameworks count.
_TOLD = getattr(
    importlib.import_module(f"tests.frameworks.{_FRAMEWORK}.paths"), "PROGRAM", ("ticket-agent", 2, 1, "natural")
)
_QUIET = {
    **{f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")},
    "OPENAI_AGENTS_DISABLE_TRACING": "1",  # that SDK would send its traces somewhere
}


def _run(command: list[str], spool: Path, folder: Path = _FOLDER, **more: str) -> str:
    """Its output. The command is found beside this Python."""
    environment = {**os.environ, **_QUIET, "STOPCAUSE_SPOOL": str(spool), **more}
    command = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _records(spool: Path) -> list[dict[str, Any]]:
    """All records of a spool; the first line of each file is its header."""
    lines = [line for file in spool.rglob("*.ndjson") for line in file.read_text("utf-8").splitlines()[1:]]
    return [json.loads(line) for line in lines]


def _kinds(records: list[dict[str, Any]]) -> list[str]:
    return [records[0]["kind"], records[-1]["kind"]]


def test_a_program_started_by_opentelemetry(tmp_path: Path) -> None:
    output = _run(["opentelemetry-instrument", sys.executable, "program.py"], tmp_path)
    records = _records(tmp_path)

    assert "Closed." in output
    assert _kinds(records) == ["run.started", "run.stopped"]
    assert tuple(records[-1].get(name) for name in ("agent", "steps", "tool_calls", "stop_cause")) == _TOLD


def test_it_is_turned_off_by_the_environment(tmp_path: Path) -> None:
    _run(["opentelemetry-instrument", sys.executable, "program.py"], tmp_path, STOPCAUSE_DISABLED=_FRAMEWORK)

    assert _records(tmp_path) == []


def test_the_lines_of_the_docs(tmp_path: Path) -> None:
    spool, folder = tmp_path / "spool", tmp_path / "program"
    folder.mkdir()
    shutil.copy(_CONNECT, folder / "main.py")
    shutil.copy(_FOLDER / "program.py", folder / "agent.py")
    _run(["python", "main.py"], spool, folder)

    records = _records(spool)
    assert _kinds(records) == ["run.started", "run.stopped"]
    assert records[-1]["stop_cause"] == _TOLD[-1]


def test_the_lines_of_the_docs_are_few() -> None:
    lines = _CONNECT.read_text("utf-8").splitlines()

    assert len(lines) <= 7
    assert lines[0] == "# pip install stopcause"
