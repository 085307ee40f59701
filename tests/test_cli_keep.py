"""`backup`, `restore`, `forget` and `export` as they are typed: exit codes, JSON lines, what is asked and said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stopcause import cli, cli_shared
from stopcause.pipeline.keeper import Keeper
from stopcause.store import offline, way_back
from tests.support import days
from tests.support.machine import a_terminal

ROOT = Path(__file__).parents[1]
NOW = days.NOW + timedelta(hours=9)


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW)


@pytest.fixture
def store(tmp_path: Path) -> str:
    days.filled(tmp_path / "s.duckdb").close()
    return str(tmp_path / "s.duckdb")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def said(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def runs_in(store: str) -> int:
    return len(run("runs", "--all", "--store", store).stdout.splitlines())


# Backup and restore ---------------------------------------------------------------------------------------------------


def test_a_backup_is_restored_with_the_same_digest(store: str, tmp_path: Path) -> None:
    made = said(run("backup", str(tmp_path / "b.tar"), "--store", store))
    Path(store).unlink()
    other = str(tmp_path / "new" / "s.duckdb")

    back = said(run("restore", str(tmp_path / "b.tar"), "--store", other))

    assert (made["runs"], made["records"]) == (back["runs"], back["records"]) == (30, 87)
    assert made["digest"] == back["digest"] == offline.file_digest(Path(other)).text
    assert runs_in(other) == 30


def test_the_screens_of_backup_and_restore(store: str, tmp_path: Path) -> None:
    shown = run("backup", str(tmp_path / "b.tar"), "--store", store, "-o", "table")
    back = run("restore", str(tmp_path / "b.tar"), "--store", str(tmp_path / "o.duckdb"), "-o", "table")

    assert "30 runs, 87 records, newest 26d old." in shown.stdout
    assert f"restore {tmp_path}/b.tar" in shown.stderr
    assert back.stdout.startswith("Restored ")
    assert "backed up 2026-11-30" in back.stdout
    assert "runs --all" in back.stderr


def test_there_is_nothing_to_back_up_where_no_store_is(tmp_path: Path) -> None:
    result = run("backup", str(tmp_path / "b.tar"), "--store", str(tmp_path / "none.duckdb"))

    assert result.exit_code == 2
    assert "no store there" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_not_empty_is_not_restored_into(store: str, tmp_path: Path) -> None:
    said(run("backup", str(tmp_path / "b.tar"), "--store", store))

    result = run("restore", str(tmp_path / "b.tar"), "--store", store)

    assert result.exit_code == 2
    assert "is not empty" in result.stderr


@pytest.mark.parametrize("words", [("backup", "b"), ("export", "snapshot", "b"), ("export", "parquet", "b")])
def test_a_store_in_use_is_said_to_be_so_and_nothing_is_left(
    store: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    with Keeper.open(Path(store), days.DEFAULT_POLICY, NOW):
        result = run(*words[:-1], str(tmp_path / words[-1]), "--store", store)

    assert result.exit_code == 2
    assert f"in use by process {os.getpid()}" in result.stderr
    assert not (tmp_path / "b").exists()


def test_two_processes_at_once_both_end_well_or_one_is_told(store: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stopcause", "export", "snapshot", str(tmp_path / "read.duckdb"), "--store", store]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    ended = [(each.communicate()[1], each.returncode) for each in both]

    assert 0 in [code for _, code in ended]
    assert all(code == 0 or (code == 2 and "is in use by process" in error) for error, code in ended)
    assert (tmp_path / "read.duckdb").exists()
    assert days.hidden(tmp_path) == []


# Export ---------------------------------------------------------------------------------------------------------------


def test_an_archive_by_day_is_taken_in_again(store: str, tmp_path: Path) -> None:
    folder, other = str(tmp_path / "a"), str(tmp_path / "o.duckdb")

    made = said(run("export", "parquet", folder, "--since", "2026-11-02", "--before", "0d", "--store", store))

    assert (made["days"], made["records"], made["verdicts"], made["tokens_taken_out"]) == (2, 58, 20, 2)
    assert said(run("ingest", folder, "--store", other))["accepted"] == 58
    assert said(run("ingest", folder, "--store", other))["repeated"] == 58
    assert run("export", "parquet", folder, "--store", store).exit_code == 2
    shown = run("export", "parquet", str(tmp_path / "b"), "--store", store, "-o", "table").stdout
    assert "3 resume tokens left out" in shown
    assert said(run("export", "parquet", str(tmp_path / "c"), "--resume-tokens", "--store", store))["resume_tokens"]


def test_half_an_archive_is_not_taken_in(store: str, tmp_path: Path) -> None:
    said(run("export", "parquet", str(tmp_path / "a"), "--store", store))
    (tmp_path / "a" / "manifest.json").unlink()

    result = run("ingest", str(tmp_path / "a"), "--store", str(tmp_path / "o.duckdb"))

    assert result.exit_code == 2
    assert "manifest.json is missing" in result.stderr


def test_a_snapshot_says_what_is_in_it(store: str, tmp_path: Path) -> None:
    made = said(run("export", "snapshot", str(tmp_path / "read.duckdb"), "--store", store))

    assert (made["runs"], made["records"]) == (30, 87)
    assert made["bytes"] == (tmp_path / "read.duckdb").stat().st_size


@pytest.mark.parametrize("words", [("snapshot", "x"), ("parquet", "x")])
def test_an_empty_store_has_nothing_to_export(tmp_path: Path, words: tuple[str, str]) -> None:
    result = run("export", words[0], str(tmp_path / words[1]), "--store", str(tmp_path / "none.duckdb"))

    assert result.exit_code == 0
    assert "No runs yet" in result.stderr
    assert list(tmp_path.iterdir()) == []


# Forget ---------------------------------------------------------------------------------------------------------------


def test_a_preview_says_what_goes_and_what_stays(store: str) -> None:
    shown = run("forget", "--before", "2026-11-03", "--dry-run", "--store", store, "-o", "table")

    assert shown.stdout.splitlines() == [
        "Before 2026-11-03 UTC: 18 runs, 54 records, opened 2026-11-01 to 2026-11-02.",
        "Older, and stay: 2 waiting.",
    ]
    assert runs_in(store) == 30
    found = said(run("forget", "--before", "2026-11-03", "--dry-run", "--store", store))
    assert (found["runs"], found["stay"]["waiting"], found["forgotten"]) == (18, 2, False)


def test_without_a_terminal_it_has_to_be_said_beforehand(store: str) -> None:
    result = run("forget", "--before", "2026-11-03", "--store", store)

    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert runs_in(store) == 30


def test_yes_forgets_and_a_second_time_finds_nothing(store: str) -> None:
    found = said(run("forget", "--before", "2026-11-03", "--yes", "--store", store))
    again = run("forget", "--before", "2026-11-03", "--yes", "--store", store, "-o", "table")

    assert (found["forgotten"], found["runs"], found["journal"]["lines"]) == (True, 18, 54)
    assert runs_in(store) == 12
    assert again.exit_code == 0
    assert again.stdout.startswith("Nothing to forget")


def test_copies_from_before_an_upgrade_are_named_before_they_go(store: str) -> None:
    days.as_of_0001(Path(store))

    shown = run("forget", "--before", "2026-11-03", "--yes", "--store", store, "-o", "table")

    assert shown.exit_code == 0, shown.output
    assert "s.duckdb.before-0002" in shown.stderr
    assert way_back.copies(Path(store)) == []


@pytest.mark.parametrize("day", ["tomorrow", "2026-12-01", "30"])
def test_a_day_that_is_none_is_usage(store: str, day: str) -> None:
    assert run("forget", "--before", day, "--yes", "--store", store).exit_code == 2
    assert runs_in(store) == 30


def answered(store: str, answer: bytes) -> tuple[str, int]:
    """What a person sees who answers the question."""
    ours, theirs = a_terminal()
    command = [sys.executable, "-m", "stopcause", "forget", "--before", "2026-11-03", "--store", store]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as person:
        os.close(theirs)
        os.write(ours, answer)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
    os.close(ours)
    return seen.decode(), person.returncode


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # how a terminal says that nobody writes any more
        return b""


def test_a_person_is_asked(store: str) -> None:
    seen, code = answered(store, b"n\n")
    assert "18 runs" in seen
    assert "Nothing was forgotten." in seen
    assert (code, runs_in(store)) == (1, 30)

    seen, code = answered(store, b"y\n")
    assert "Forgot 18 runs, 54 records." in seen
    assert (code, runs_in(store)) == (0, 12)


# What a store that is gone does ---------------------------------------------------------------------------------------


def test_a_store_whose_file_was_deleted_is_made_again_whatever_is_asked(store: str, tmp_path: Path) -> None:
    for words in (("backup", "b.tar"), ("export", "snapshot", "r.duckdb"), ("export", "parquet", "a")):
        Path(store).unlink()
        assert said(run(*words[:-1], str(tmp_path / words[-1]), "--store", store))["records"] == 87
    Path(store).unlink()
    assert said(run("forget", "--before", "2026-11-03", "--yes", "--store", store))["runs"] == 18
