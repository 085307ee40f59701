"""Unchanged programs leave receipts in the spool: started by OpenTelemetry, or with the lines of `docs/connect`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent
_CONNECT = _HERE.parents[2] / "docs" / "connect" / "openai-agents.py"


def _run(command: list[str], spool: Path, folder: Path = _HERE, **more: str) -> str:
    """Its output. The command is found beside this Python."""
    none = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    environment = {**os.environ, **none, "STOPCAUSE_SPOOL": str(spool), "OPENAI_AGENTS_DISABLE_TRACING": "1", **more}
    command = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _records(spool: Path) -> list[dict[str, Any]]:
    """All records of a spool; the first line of each file is its header."""
    lines = [line for file in spool.rglob("*.ndjson") for line in file.read_text("utf-8").splitlines()[1:]]
    return [json.loads(line) for line in lines]


def _is_whole(records: list[dict[str, Any]]) -> bool:
    kinds = [record["kind"] for record in records]
    stop = records[-1]
    return kinds[0] == "run.started" and kinds[-1] == "run.stopped" and bool(stop["stop_cause"] == "natural")


def test_a_program_started_by_opentelemetry(tmp_path: Path) -> None:
    output = _run(["opentelemetry-instrument", sys.executable, "program.py"], tmp_path)
    records = _records(tmp_path)
    assert "Closed." in output
    assert _is_whole(records)
    assert (records[-1]["agent"], records[-1]["steps"], records[-1]["tool_calls"]) == ("ticket-agent", 2, 1)


@pytest.mark.parametrize("word", ["1", "openai_agents"])
def test_it_is_turned_off_by_the_environment(tmp_path: Path, word: str) -> None:
    _run(["opentelemetry-instrument", sys.executable, "program.py"], tmp_path, STOPCAUSE_DISABLED=word)
    assert _records(tmp_path) == []


def test_the_lines_of_the_docs(tmp_path: Path) -> None:
    spool, folder = tmp_path / "spool", tmp_path / "program"
    folder.mkdir()
    shutil.copy(_CONNECT, folder / "main.py")
    shutil.copy(_HERE / "program.py", folder / "agent.py")
    _run(["python", "main.py"], spool, folder)
    assert _is_whole(_records(spool))


def test_the_lines_of_the_docs_are_few() -> None:
    lines = _CONNECT.read_text("utf-8").splitlines()
    assert len(lines) <= 7
    assert lines[0] == "# pip install stopcause"
