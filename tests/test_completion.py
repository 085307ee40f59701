"""The Tab key in a real shell: what is offered, how soon, and that looking for it makes and locks nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from stopcause import cli
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.classifier.verdict import VerdictName
from stopcause.pipeline.keeper import Keeper, journal_folder
from stopcause.render import completion
from stopcause.store.lock import StoreLock
from tests.support.machine import a_terminal, lacking
from tests.support.visits import NOW, line

HEAVY = ("duckdb", "pyarrow", "stopcause.pipeline", "stopcause.store")
VERDICTS = {*VerdictName, "RUNNING"}


@pytest.fixture
def program() -> Path:
    """The script as it is installed beside this Python."""
    found = shutil.which("stopcause", path=Path(sys.executable).parent)
    return Path(found) if found else lacking("the script `stopcause` is not installed beside this Python")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder of somebody who installed completion in bash."""
    home = tmp_path / "home"
    home.mkdir()
    return home


def environment(program: Path, home: Path, **more: str) -> dict[str, str]:
    path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "HOME": str(home), "PATH": path, "TERM": "dumb", "_TYPER_STANDARD_TRACEBACK": "1", **more}


def offered(program: Path, home: Path, words: str) -> list[str]:
    """What bash offers after these words, through the function that typer gives it."""
    script = f"""
    source <(stopcause --show-completion; true)
    COMP_WORDS=({words.removesuffix(" ")}{' ""' if words.endswith(" ") else ""})
    COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
    _stopcause_completion stopcause
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    run = subprocess.run(
        ("/bin/bash", "--norc", "-c", script),
        capture_output=True, text=True, check=True, env=environment(program, home),
    )  # fmt: skip
    assert run.stderr == ""
    return run.stdout.split()


def test_bash_is_offered_commands_options_and_words(program: Path, home: Path) -> None:
    commands = get_command(cli.app).commands  # type: ignore[attr-defined]

    assert set(offered(program, home, "stopcause ")) == set(commands)
    assert {"--verdict", "--since", "--fail-on"} <= set(offered(program, home, "stopcause runs --"))
    assert offered(program, home, "stopcause runs -o ") == ["table", "jsonl"]
    assert offered(program, home, "stopcause sql -o c") == ["csv"]
    assert offered(program, home, "stopcause connect ai") == ["ai-sdk"]


@pytest.mark.parametrize("option", ["--verdict", "--fail-on"])
def test_bash_is_offered_verdicts_also_inside_a_list(option: str, program: Path, home: Path) -> None:
    assert set(offered(program, home, f"stopcause runs {option} ")) == VERDICTS
    assert offered(program, home, f"stopcause runs {option} STUCK,FA") == ["STUCK,FAILED", "STUCK,FALSE_COMPLETE"]
    assert offered(program, home, f"stopcause runs {option} stu") == ["stuck"]


def test_a_person_presses_tab_after_an_installation(program: Path, home: Path) -> None:
    env = environment(program, home, PS1="> ")
    installed = subprocess.run(
        ("/bin/bash", "--norc", "-c", "stopcause --install-completion; true"), capture_output=True, check=True, env=env
    )
    assert b"bash completion installed" in installed.stdout
    ours, theirs = a_terminal()
    shell = ("/bin/bash", "--rcfile", str(home / ".bashrc"), "-i")
    with subprocess.Popen(shell, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True) as bash:
        os.close(theirs)
        os.write(ours, b"stopcause runs --verdict STUCK,BOU\t; exit\n")
        seen = b""
        deadline = time.monotonic() + 30
        while b"BOUNDED_STOP" not in seen and time.monotonic() < deadline:
            seen += os.read(ours, 4096)
        bash.kill()
    os.close(ours)

    assert b"--verdict STUCK,BOUNDED_STOP" in seen


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_offered_the_same(shell: str, program: Path, home: Path) -> None:
    asked = {"_STOPCAUSE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "stopcause runs --verdict ST"}
    env = environment(program, home, _TYPER_COMPLETE_FISH_ACTION="get-args", **asked)

    run = subprocess.run((str(program),), capture_output=True, text=True, check=False, env=env)

    assert "STUCK" in run.stdout
    assert "FAILED" not in run.stdout


def test_it_waits_for_nothing_heavy_and_makes_nothing(program: Path, home: Path) -> None:
    data = home / "data"
    asked = {"_STOPCAUSE_COMPLETE": "complete_bash", "COMP_WORDS": "stopcause runs --verdict ", "COMP_CWORD": "3"}
    env = environment(program, home, STOPCAUSE_DATA=str(data), **asked)

    run = subprocess.run(
        (sys.executable, "-X", "importtime", str(program)), capture_output=True, text=True, check=True, env=env
    )

    assert set(run.stdout.split()) == VERDICTS
    loaded = set(re.findall(r"\| +([\w.]+)$", run.stderr, re.MULTILINE))
    assert "typer" in loaded
    assert not [name for name in loaded if name.startswith(HEAVY)]
    assert not data.exists()


# Names of runs and reports


def context(store: Path | None) -> typer.Context:
    made = typer.Context(get_command(cli.app))
    made.params["store"] = store
    return made


def test_runs_are_offered_from_the_journal_the_newest_first_while_somebody_owns_the_store(tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        keeper.accept(
            [line(run_id="r1"), line(run_id="q2"), line(run_id="r3"), line("run.progress", "r1", sign="output")], NOW
        )
    lock = StoreLock(store)
    try:
        assert completion.runs(context(store), "") == ["r1", "r3", "q2"]
        assert completion.runs(context(store), "r3") == ["r3"]
    finally:
        lock.release()


def test_the_end_of_a_long_journal_is_enough(tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    journal_folder(store).mkdir()
    lines = (json.dumps({"run_id": f"r{i}", "x": "y" * 500}, separators=(",", ":")) for i in range(2000))
    (journal_folder(store) / "00000001.ndjson").write_text("\n".join(lines), "utf-8")

    found = completion.runs(context(store), "")

    assert found == [f"r{i}" for i in range(1999, 1979, -1)]


@pytest.mark.parametrize("store", [None, Path("no/such.duckdb"), Path("/")])
def test_where_there_is_no_store_nothing_is_offered_and_nothing_is_made(
    store: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert completion.runs(context(store), "") == []
    assert list(tmp_path.iterdir()) == []


def test_reports_are_offered_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("waiting.sql", "wait-times.sql", "costs.sql", "readme.md"):
        (tmp_path / name).touch()
    monkeypatch.setattr(completion, "_REPORTS", tmp_path)

    assert completion.reports("wait") == ["wait-times", "waiting"]
    assert completion.reports("") == ["costs", "wait-times", "waiting"]
