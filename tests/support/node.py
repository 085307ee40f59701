"""Node for tests: the one that came with the development packages, and the real npm packages in `ai-sdk/`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.machine import lacking

AI_SDK = Path(__file__).parents[2] / "ai-sdk"
_LONGEST_S = 120


def program() -> str:
    """Node: beside this Python, else on the path. Without it the test is skipped; CI fails."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    found = shutil.which("node", path=path)
    if found is None:
        lacking("there is no Node here; `make test` sets it up")
    return found


def node() -> str:
    """The same, with `ai`."""
    found = program()
    if not (AI_SDK / "node_modules" / "ai").is_dir():
        lacking("ai-sdk/node_modules is not there; `make ai-sdk/node_modules/ready` sets it up")
    return found


def answers(script: Path, questions: Iterable[object]) -> list[Any]:
    """What one Node process says to each question, JSON a line on both sides."""
    given = "".join(f"{json.dumps(question, allow_nan=False)}\n" for question in questions)
    run = subprocess.run(
        (node(), str(script)), input=given, capture_output=True, text=True, check=False, cwd=AI_SDK, timeout=_LONGEST_S
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.split("\n") if line]
