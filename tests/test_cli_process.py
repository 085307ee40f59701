"""What only a process of its own can show: pipes, terminals, how the program was started, what help loads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machine import a_terminal

ROOT = Path(__file__).parents[1]
HEAVY = ("duckdb", "pyarrow", "pydantic", "rich.console", "stopcause.classifier")
STOPCAUSE = (sys.executable, "-m", "stopcause")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", **more}


def on_a_terminal(*arguments: str, **more: str) -> str:
    """What a person would see: both streams are a terminal."""
    ours, theirs = a_terminal()
    with subprocess.Popen((*STOPCAUSE, *arguments), stdout=theirs, stderr=theirs, env=environment(**more)):
        os.close(theirs)
        seen = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # how a terminal says that nobody writes any more
                break
            if not chunk:
                break
            seen += chunk
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


def test_help_loads_nothing_that_a_command_needs() -> None:
    code = f"import sys; from stopcause import cli; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True, env=environment())

    assert run.stdout.strip() == ""


def test_a_terminal_gets_a_table_in_colour_and_hints_that_can_be_pasted() -> None:
    seen = on_a_terminal("replay", NO_COLOR="")

    assert "\x1b[32mV VERIFIED_COMPLETE\x1b[0m" in seen
    assert "11 of 11 as published, 4 of 4 stop-condition assertions" in seen
    hint = re.search(r"^  (\S+ -m stopcause rules)", seen, re.MULTILINE)
    assert hint is not None
    pasted = subprocess.run(hint[1].split(), capture_output=True, check=False, env=environment())
    assert pasted.returncode == 0


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_that_wants_no_colour_gets_none(setting: dict[str, str]) -> None:
    seen = on_a_terminal("replay", **setting)

    assert "V VERIFIED_COMPLETE" in seen
    assert "\x1b[3" not in seen


def test_a_pipe_gets_no_colour_even_in_a_table() -> None:
    run = subprocess.run(
        (*STOPCAUSE, "replay", "-o", "table"), capture_output=True, text=True, check=True, env=environment()
    )

    assert "\x1b" not in run.stdout + run.stderr


def test_a_pipe_that_closes_early_is_no_error() -> None:
    script = f"set -o pipefail; {sys.executable} -m stopcause rules | true"
    run = subprocess.run(("/bin/bash", "-c", script), capture_output=True, text=True, check=False, env=environment())

    assert run.stderr == ""
    assert run.returncode in (0, 141)


@pytest.mark.parametrize("arguments", [("rules",), ("replay",), ("--help",), ("--version",)], ids=str)
@pytest.mark.parametrize(("stdout", "code"), [("/dev/full", 2), ("&-", 0)])
def test_output_that_cannot_be_written_is_one_line(arguments: tuple[str, ...], stdout: str, code: int) -> None:
    script = f"{sys.executable} -m stopcause {' '.join(arguments)} >{stdout}"
    run = subprocess.run(("/bin/bash", "-c", script), capture_output=True, text=True, check=False, env=environment())

    assert run.returncode == code
    assert run.stderr == ("stopcause: output: No space left on device\n" if code else "")


def test_a_closed_standard_input_is_told_what_to_do() -> None:
    script = f"{sys.executable} -m stopcause classify - <&-"
    run = subprocess.run(("/bin/bash", "-c", script), capture_output=True, text=True, check=False, env=environment())

    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "nothing is piped in" in run.stderr


def test_a_working_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    script = f"cd {tmp_path} && rmdir {tmp_path} && {sys.executable} -m stopcause replay -o table"
    run = subprocess.run(("/bin/bash", "-c", script), capture_output=True, text=True, check=False, env=environment())

    assert run.returncode == 0, run.stderr


def test_a_terminal_without_its_letters_is_no_error() -> None:
    env = environment(PYTHONIOENCODING="ascii")
    case = str(ROOT / "fixtures" / "public" / "C68.json")
    run = subprocess.run((*STOPCAUSE, "explain", case, "-o", "table"), capture_output=True, check=False, env=env)

    assert run.returncode == 0
