"""Golden screens: what a command prints, byte for byte. `SCREENS=write pytest FILE` writes them anew."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from typer.testing import Result


def screen_text(arguments: Sequence[str], result: Result) -> str:
    """What stands on the terminal: stdout, then what stderr says beside it, and the exit code."""
    beside = "".join(f"2> {line}\n" for line in result.stderr.splitlines())
    return f"$ stopcause {' '.join(arguments)}\n{result.stdout}{beside}exit {result.exit_code}\n"


def assert_golden(path: Path, got: str) -> None:
    if os.environ.get("SCREENS") == "write":
        path.write_text(got, "utf-8")
    assert got == path.read_text("utf-8")
