"""`sql` and `doctor` as they are called: what is printed where, in which shape, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stopcause import cli, cli_shared
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import StoreInUseError
from stopcause.pipeline.keeper import Keeper
from stopcause.render import sql as sheets
from stopcause.render.pen import Pen, cells
from stopcause.render.sql import Sheet
from stopcause.store import meanings, sandbox
from stopcause.store.lock import StoreLock, lock_path, read_holder
from tests.support.visits import NOW, keep, line
from tests.test_cli_process import STOPCAUSE, environment, on_a_terminal

JOIN = "SELECT max(a.i * b.i * c.i) FROM range(90000) a(i), range(90000) b(i), range(90000) c(i)"  # takes for ever


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A well store of three runs, which is the store in use."""
    path = tmp_path / "s.duckdb"
    keep(path, *(line(run_id=f"run-{i}", seq=1) for i in range(3)))
    monkeypatch.setenv("STOPCAUSE_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["stopcause"])
    return path


def run(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(cli.app, list(arguments), input=typed)


# sql


def test_a_pipe_gets_json_lines(store: Path) -> None:
    result = run("sql", "SELECT run_id, steps, stopped_at, contract FROM runs ORDER BY run_id LIMIT 1")

    stopped_at = (NOW - timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
    assert json.loads(result.stdout) == {"run_id": "run-0", "steps": 3, "stopped_at": stopped_at, "contract": None}
    assert (result.stderr, result.exit_code) == ("", 0)
    assert store.exists()


def test_standard_input_is_sql_too(store: Path) -> None:
    result = run("sql", "-", typed="SELECT count(*) AS n\nFROM runs;\n")

    assert result.stdout == '{"n":3}\n'
    assert store.exists()


def test_rows_beyond_the_limit_are_not_hidden(store: Path) -> None:
    few = run("sql", "FROM runs", "--limit", "2")
    all_of_them = run("sql", "FROM runs", "--limit", "3")

    assert few.stdout.count("\n") == 2
    assert "2 rows, and there are more: --limit 20 shows them" in few.stderr
    assert (all_of_them.stdout.count("\n"), all_of_them.stderr) == (3, "")
    assert store.exists()


def test_a_table_is_cut_and_says_how_much_it_is(store: Path) -> None:
    result = run("sql", "SELECT run_id, repeat('x', 99) AS long, 1.50 AS n FROM runs ORDER BY 1", "-o", "table")

    lines = result.stdout.splitlines()
    assert lines[0] == f"run_id  {'long':<40}    n"
    assert lines[1] == f"run-0   {'x' * 39}…  1.5"
    assert result.stderr == "3 rows. Times are UTC.\n"
    assert store.exists()


def test_csv_is_safe_to_open_in_a_spreadsheet(store: Path) -> None:
    result = run("sql", "SELECT '=1+1' AS a, '@x' AS b, -1 AS c, NULL AS d, '-1' AS e, 'a,\"b' AS f", "-o", "csv")

    assert list(csv.reader(io.StringIO(result.stdout))) == [
        ["a", "b", "c", "d", "e", "f"],
        ["'=1+1", "'@x", "-1", "", "'-1", 'a,"b'],
    ]
    assert store.exists()


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_no_value_moves_the_cursor_of_a_terminal(form: str, store: Path) -> None:
    sql = "SELECT chr(27) || '[31m' || chr(155) || chr(8238) || chr(7) AS \"a\x1b\" FROM runs LIMIT 1"

    result = run("sql", sql, "-o", form)

    assert result.exit_code == 0
    assert not any(0x80 <= ord(letter) <= 0x9F or letter in "\x1b\x07\u202e" for letter in result.output)
    if form == "jsonl":
        assert list(json.loads(result.stdout).values()) == ["\x1b[31m\x9b\u202e\x07"]
    assert store.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("SELECT verdct FROM runs",), 2, 'stopcause: Referenced column "verdct" not found'),
        (("DELETE FROM runs",), 2, "stopcause: sql takes one SELECT, EXPLAIN"),
        (("SELECT 1; SELECT 2",), 2, "this is 2 statements"),
        (("SELECT len(range(2000000000))",), 1, "needs more memory than it gets"),
        ((JOIN, "--timeout", "1s"), 1, "stopped after 1 s"),
        (("SELECT 1", "--timeout", "6m"), 2, "at most 5m"),
        (("SELECT 1", "--timeout", "soon"), 2, "write 10s or 2m"),
        (("SELECT 1", "--limit", "0"), 2, "--limit"),
        ((".tables",), 2, "neither SQL nor .schema"),
        (("",), 2, "no SQL in it"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told_in_a_line(arguments: tuple[str, ...], code: int, said: str, store: Path) -> None:
    result = run("sql", *arguments)

    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert store.exists()


def test_an_empty_store_is_no_error_and_is_not_made(tmp_path: Path) -> None:
    result = run("sql", "SELECT 1", "--store", str(tmp_path / "none.duckdb"), "-o", "csv")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "No runs yet" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_another_process_owns_is_said_to_be(store: Path) -> None:
    lock = StoreLock(store)
    try:
        result = run("sql", "SELECT 1")
    finally:
        lock.release()

    assert result.exit_code == 2
    assert f"in use by process {os.getpid()}" in result.stderr


def test_nobody_takes_the_store_while_a_query_runs(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = sandbox._order
    refused: list[str] = []

    def look(child: subprocess.Popen[bytes], data: bytes) -> None:
        with pytest.raises(StoreInUseError) as error:
            StoreLock(store)
        refused.append(str(error.value))
        order(child, data)

    monkeypatch.setattr(sandbox, "_order", look)

    assert run("sql", "SELECT 1").exit_code == 0
    assert f"in use by process {os.getpid()}" in refused[0]
    StoreLock(store).release()


def test_the_store_is_settled_before_it_is_asked(store: Path) -> None:
    keep(store, line("run.started", "run-9", 7200, lease_s=7300, limits=[{"name": "s", "kind": "steps", "limit": 9}]))
    later = NOW.replace(year=NOW.year + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_shared, "clock", lambda: later)
        result = run("sql", "SELECT verdict FROM runs WHERE run_id = 'run-9'")

    assert result.stdout == '{"verdict":"STUCK"}\n'


def test_words_need_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    schema, examples = run("sql", ".schema", "-o", "table"), run("sql", ".examples", "-o", "table")
    as_json = [json.loads(each) for each in run("sql", ".schema").stdout.splitlines()]

    assert all(cells(each) <= 80 for each in schema.stdout.splitlines())
    assert {each["table"] for each in as_json} == meanings.TABLES.keys() - {"runs"}
    assert all(f"  {each['name']} " in schema.stdout for each in as_json)
    assert examples.stdout.count("-- ") == len(meanings.examples()) == 5
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_gets_records_where_a_table_would_be_too_wide(store: Path) -> None:
    narrow = on_a_terminal("sql", "SELECT * FROM runs LIMIT 1", STOPCAUSE_STORE=str(store))
    wide = on_a_terminal("sql", "SELECT * FROM journal_position", STOPCAUSE_STORE=str(store))

    assert "- row 1" in narrow
    assert "\nverdict             FALSE_COMPLETE\n" in narrow
    assert all(cells(each) <= 80 for each in narrow.splitlines())
    assert wide.startswith("segment  byte_offset\n")


def test_ctrl_c_ends_a_query_quietly(store: Path) -> None:
    env = environment(STOPCAUSE_STORE=str(store))
    with subprocess.Popen((*STOPCAUSE, "sql", JOIN, "--timeout", "1m"), stderr=subprocess.PIPE, env=env) as asked:
        wait_until_owned(store, asked.pid)
        time.sleep(0.5)
        asked.send_signal(signal.SIGINT)
        said = asked.communicate(timeout=20)[1]

    assert (asked.returncode, said) == (130, b"")
    StoreLock(store).release()


def wait_until_owned(store: Path, pid: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        holder = read_holder(store)
        if holder is not None and holder.pid == pid:
            return
        time.sleep(0.02)
    raise AssertionError("the store was never taken")


# How rows are laid out


def sheet(*rows: list[object], names: str = "a b", types: str = "VARCHAR VARCHAR") -> Sheet:
    return Sheet(names.split(), types.split(), [*rows], more=False)


def test_ids_stay_whole_where_other_columns_are_cut() -> None:
    row: list[object] = ["0192f5a8-1c00-7000-8000-00000000000", "y" * 60]

    lines = sheets.sheet_screen(sheet(row, names="run_id text"), 60, Pen())

    assert lines[1] == f"{row[0]}  {'y' * 22}…"


def test_numbers_stand_on_the_right_and_times_without_their_fractions() -> None:
    row: list[object] = [1234567.25, "2026-11-28T08:00:00.123456Z"]

    lines = sheets.sheet_screen(sheet(row, names="number at", types="DOUBLE TIMESTAMP"), 80, Pen())

    assert lines == ["    number  at", "1234567.25  2026-11-28 08:00:00"]


def test_a_value_of_many_lines_keeps_them() -> None:
    lines = sheets.sheet_screen(sheet(["plan", "one\ntwo\n"]), 80, Pen())

    assert lines == ["- row 1", "a  plan", "b  one", "   two"]


def test_names_that_come_twice_are_told_apart_in_json() -> None:
    assert list(sheets.sheet_json(sheet(["x", "y"], names="a a"))) == ['{"a":"x","a_1":"y"}']


def test_letters_that_are_wide_keep_the_columns_straight() -> None:
    lines = sheets.sheet_screen(sheet(["한글", "b"], ["ab", "c"]), 80, Pen())

    assert lines == ["a     b", "한글  b", "ab    c"]


# doctor


def test_a_well_store_ends_with_zero_and_a_pipe_gets_each_check(store: Path) -> None:
    result = run("doctor")

    checks = [json.loads(each) for each in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert {each["state"] for each in checks} == {"ok"}
    assert {"versions", "policy", "disk", "store", "journal", "verdicts", "gaps", "spool"} <= {
        each["check"] for each in checks
    }
    assert store.exists()


def test_what_is_bad_ends_with_one_and_says_what_to_do(store: Path) -> None:
    keep(store, line(run_id="run-9", dropped=3, seq=1))

    result = run("doctor", "-o", "table", "--utc")

    assert result.exit_code == 1
    assert "stopcause explain run-9" in result.stdout
    assert result.stdout.splitlines()[-1] == "Bad: gaps."
    assert result.stdout.startswith("Looked at s.duckdb, its journal, and the spool")


def test_no_store_is_no_reason_to_fail_and_none_is_made(tmp_path: Path) -> None:
    result = run("doctor", "--store", str(tmp_path / "none.duckdb"))

    assert result.exit_code == 0
    assert json.loads(result.stdout.splitlines()[3])["check"] == "store"
    assert list(tmp_path.iterdir()) == []


def test_waiting_says_what_came_and_what_is_next(store: Path) -> None:
    result = run("doctor", "--wait", "-o", "table", "--utc")

    assert result.exit_code == 0
    assert result.stdout.startswith("A record is there: run.stopped of a, ")
    assert "  run      run-2\n  adapter  not said\n" in result.stdout
    assert "stopcause explain run-2" in result.stderr
    assert store.exists()


def test_waiting_in_vain_ends_with_one(tmp_path: Path) -> None:
    result = run("doctor", "--wait", "--timeout", "1s", "--store", str(tmp_path / "none.duckdb"))

    assert (result.exit_code, result.stdout) == (1, "")
    assert "No record came in 1s" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_waiting_ends_when_a_process_reports_and_at_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "new.duckdb"
    env = environment(STOPCAUSE_STORE=str(path), STOPCAUSE_DATA=str(tmp_path / "data"))
    command = (*STOPCAUSE, "doctor", "--wait")
    shown = (*command, "-o", "table")  # then it says that it waits
    with subprocess.Popen(shown, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as interrupted:
        assert interrupted.stderr is not None
        assert interrupted.stderr.readline().startswith(b"Waiting for a record in ")
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.communicate(timeout=20)[1] == b""
    assert interrupted.returncode == 130

    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as waiting:
        subprocess.run((*STOPCAUSE, "ingest", "-"), input=line(run_id="first"), check=True, env=env, stdout=-3)
        said = json.loads(waiting.communicate(timeout=30)[0])

    assert waiting.returncode == 0
    assert (said["where"], said["kind"], said["run_id"], said["agent"]) == ("journal", "run.stopped", "first", "a")


def test_the_doctor_of_a_store_in_use_looks_from_outside(store: Path) -> None:
    with Keeper.open(store, DEFAULT_POLICY, NOW):
        run_outside = subprocess.run(
            (sys.executable, "-m", "stopcause", "doctor"), capture_output=True, text=True, check=False,
            env=environment(STOPCAUSE_STORE=str(store)),
        )  # fmt: skip

    checks = {each["check"]: each for each in map(json.loads, run_outside.stdout.splitlines())}
    assert run_outside.returncode == 0
    assert f"in use by process {os.getpid()} " in checks["store"]["said"]
    assert "gaps" not in checks
    assert lock_path(store).exists()
