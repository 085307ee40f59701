"""The lines that `stopcause connect` writes for AG-UI, run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from stopcause.receipts import codec
from stopcause.receipts.model import Record, RunStopped, UnknownRecord
from stopcause.resources import data_folder
from tests.agui.tapped import answering, finished, input_of, served, sse, started, streaming

LINES = data_folder("docs/connect")
_OF_R1 = ("r1", "ticket-agent", "natural")
_AGENT = """
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

async def answer(request):
    async def events():
        for event in EVENTS:
            yield event
    return StreamingResponse(events(), media_type="text/event-stream")

app = Starlette(routes=[Route("/", answer, methods=["POST"])])
"""
_REQUEST = """
import httpx
from starlette.testclient import TestClient

from lines import app

TestClient(app).post("/", json=GIVEN)
"""


def _left_by(folder: Path, program: str, **modules: str) -> list[Record | UnknownRecord]:
    """The records that a program leaves, with these modules beside it."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    (folder / "program.py").write_text(program, "utf-8")
    settings = {"STOPCAUSE_SPOOL": str(folder / "spool"), "STOPCAUSE_DATA": str(folder / "data"), "PATH": ""}
    subprocess.run([sys.executable, "program.py"], cwd=folder, env=settings, check=True, timeout=60)
    lines = [line for file in (folder / "spool").rglob("*.ndjson") for line in file.read_bytes().splitlines()]
    return [record for line in lines if not isinstance(record := codec.read_line(line), codec.LineError)]


def test_the_lines_for_an_agent(tmp_path: Path) -> None:
    lines = (LINES / "ag-ui.py").read_text("utf-8")
    agent = f"EVENTS = {[sse([started()]), sse([finished()])]!r}\n{_AGENT}"
    records = _left_by(tmp_path, f"GIVEN = {input_of()!r}\n{_REQUEST}", lines=lines, agent=agent)
    assert _receipt(records) == _OF_R1


def test_the_lines_for_a_client(tmp_path: Path) -> None:
    lines = (LINES / "ag-ui-client.py").read_text("utf-8")
    with served(answering(lambda _: streaming([sse([started(), finished()])]))) as url:
        records = _left_by(tmp_path, lines, agent=f"payload, url = {input_of()!r}, {url!r}\n")
    assert _receipt(records) == _OF_R1
    assert (tmp_path / "agui.db").exists()


def _receipt(records: list[Record | UnknownRecord]) -> tuple[str, str | None, str]:
    (stop,) = [record for record in records if isinstance(record, RunStopped)]
    return stop.run_id, stop.agent, stop.stop_cause
