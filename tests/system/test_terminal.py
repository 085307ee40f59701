"""The screens on a real terminal: 80 columns, colours where they are wanted, and a progress bar that goes away."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.recordings import few

pytestmark = pytest.mark.system
Shell = Callable[..., str]
DONE = "stopcause-is-done"


@pytest.fixture
def shell(tmux: str, tmp_path: Path) -> Shell:
    """Runs a command in a terminal of its own and gives what the screen shows, escapes included."""
    socket = str(tmp_path / "tmux")

    def run(*arguments: str, env: str = "", lines: int = 60) -> str:
        program = f"{env} {sys.executable} -m stopcause {' '.join(arguments)}; echo {DONE}; sleep 60"
        size = ("-x", "80", "-y", str(lines))
        subprocess.run([tmux, "-S", socket, "new-session", "-d", "-s", "s", *size, "sh", "-c", program], check=True)
        try:
            return _wait_for_screen(tmux, socket)
        finally:
            subprocess.run([tmux, "-S", socket, "kill-server"], check=True)

    return run


def _wait_for_screen(tmux: str, socket: str) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        shown = subprocess.run(
            [tmux, "-S", socket, "capture-pane", "-p", "-e", "-t", "s"], check=True, capture_output=True, text=True
        ).stdout
        if DONE in shown:
            return shown.partition(DONE)[0]
        time.sleep(0.05)
    raise AssertionError("the command did not end")


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.duckdb")
    command = [sys.executable, "-m", "stopcause", "ingest", *map(str, few()), "--store", path]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"NO_COLOR": "1"})
    return path


def test_a_terminal_gets_a_table_with_colour_and_no_wrapped_line(shell: Shell, store: str) -> None:
    shown = shell("runs", "--store", store)

    assert "VERDICT" in shown
    assert "\x1b[" in shown
    assert all("VERDICT" in line or "RUN" not in line for line in shown.splitlines())


def test_no_color_is_honoured(shell: Shell, store: str) -> None:
    assert "\x1b[3" not in shell("runs", "--store", store, env="NO_COLOR=1")


def test_demo_ends_by_itself_and_fits(shell: Shell, tmp_path: Path) -> None:
    shown = shell("demo", env=f"STOPCAUSE_DATA={tmp_path / 'demo'}")

    assert "4/4" in shown
    assert "Next" in shown


def test_classify_without_input_says_what_to_do_instead_of_waiting(shell: Shell) -> None:
    assert "FILE" in shell("classify")
