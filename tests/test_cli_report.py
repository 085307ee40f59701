"""`stopcause report`: the list, a report in its three forms, its window, its empty states, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stopcause import cli, cli_shared
from stopcause.render import report as forms
from stopcause.render.pen import WIDTH, Pen, cells
from stopcause.render.report import Card, Column, Found
from stopcause.render.views import Window
from stopcause.resources import data_folder
from stopcause.store import reports
from tests.support.recordings import few

FIXTURES = data_folder("fixtures")
NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
_ABOUT_ONE = {"run-timeline": ("-p", "run=c67-r1"), "thread-timeline": ("-p", "thread=thread")}


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW)
    monkeypatch.setattr("sys.argv", ["stopcause"])


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("reports") / "s.duckdb")
    thread = tmp_path_factory.mktemp("lines") / "thread.jsonl"
    said = {"schema": "stopcause/1", "kind": "run.stopped", "stop_cause": "natural", "at": "2026-11-28T08:00:00Z"}
    lines = [{**said, "run_id": f"threaded-{n}", "thread_id": "thread-1", "agent": "+1"} for n in range(2)]
    thread.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    sources = [*map(str, few()), str(FIXTURES / "public"), str(thread)]
    assert CliRunner().invoke(cli.app, ["ingest", *sources, "--store", path]).exit_code == 0
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["report", *arguments])


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


# The list -------------------------------------------------------------------------------------------------------------


def test_without_a_name_the_reports_are_listed() -> None:
    screen = run("-o", "table")
    listed = objects(run())

    assert (screen.exit_code, [each["name"] for each in listed]) == (0, list(reports.names()))
    assert all(f"\n{name} " in f"\n{screen.stdout}" for name in reports.names())
    attention = next(each for each in listed if each["name"] == "attention")
    assert attention["columns"][0] == {
        "name": "place",
        "kind": "count",
        "meaning": "1 unrouted, 2 refuted, 3 STUCK, 4 FAILED, 5 FALSE_COMPLETE, 6 UNCERTAIN, 7 new bound",
    }
    required = [each["name"] for card in listed for each in card["parameters"] if each["required"]]
    assert required == ["run", "thread"]


@pytest.mark.parametrize("name", reports.names())
def test_a_card_fits_a_terminal(name: str) -> None:
    result = run(name, "--about", "-o", "table")
    assert result.exit_code == 0
    assert all(cells(line) <= WIDTH for line in result.stdout.splitlines())
    assert [card["name"] for card in objects(run(name, "--about"))] == [name]


# A report -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", reports.names())
def test_every_report_fits_a_terminal_and_says_the_same_in_each_form(filled: str, name: str) -> None:
    asked = (name, "--store", filled, *_ABOUT_ONE.get(name, ("--limit", "200")))
    screen, lines, sheet = (run(*asked, "-o", form) for form in ("table", "jsonl", "csv"))
    rows = list(csv.reader(io.StringIO(sheet.stdout, newline="")))

    assert (screen.exit_code, lines.exit_code, sheet.exit_code) == (0, 0, 0)
    assert all(cells(line) <= WIDTH for line in screen.output.splitlines())
    assert rows[0] == [column.name for column in reports.card(name).columns]
    assert [[as_cell(value) for value in each.values()] for each in objects(lines)] == rows[1:]
    assert len(rows) > 1 or "\n" in screen.stdout.strip()


def as_cell(value: Any) -> str:  # noqa: ANN401 - whatever JSON has
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    text = " ".join(value) if isinstance(value, list) else str(value)
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@") else text


def test_csv_ends_its_lines_as_the_rfc_says_and_defuses_formulas(filled: str) -> None:
    text = run("verdicts-by-agent", "--store", filled, "-o", "csv").stdout_bytes
    assert text.count(b"\r\n") == text.count(b"\n") > 2
    assert b"\r\n'+1,2," in text


def test_the_first_line_says_what_is_covered(filled: str) -> None:
    table = ("--store", filled, "-o", "table", "--utc")
    assert run("stop-causes", *table).stdout.startswith(
        "Top stop causes, last 24 h of records. As of 2026-11-28 09:30 +00:00\n"
    )
    assert run("stop-causes", *table, "--since", "all").stdout.startswith("Top stop causes, all. As of")
    assert run("waiting", *table).stdout.startswith("Waiting now. As of")
    assert run("run-timeline", *table, "-p", "run=c67").stdout.startswith("Timeline of a run c67-r1. As of")


def test_a_store_of_last_month_counts_back_from_its_newest_run(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW + timedelta(days=30))
    result = run("stop-causes", "--store", filled, "-o", "table", "--since", "23h")
    assert result.stdout.startswith("Top stop causes, last 23 h of records. As of")
    assert "natural" in result.stdout


def test_a_long_report_is_cut_on_a_terminal_and_whole_in_a_pipe(filled: str) -> None:
    screen = run("verdicts-by-version", "--store", filled, "-o", "table", "--since", "all")
    rows = objects(run("verdicts-by-version", "--store", filled, "--since", "all"))
    assert len(rows) > 40
    assert f"Shown: the first 40 of {len(rows)}; --limit {len(rows)} has every one" in screen.stdout
    assert "Shown" not in run("verdicts-by-version", "--store", filled, "-o", "table", "--limit", "900").stdout


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_what_the_limit_left_out_is_said_in_every_form(filled: str, form: str) -> None:
    result = run("stop-causes", "--store", filled, "-o", form, "--limit", "2")
    assert "These are the first 2 rows; there are more: --limit 20" in result.stderr


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_where_there_is_no_row_it_is_said_what_to_do(filled: str, form: str) -> None:
    result = run("verdicts-by-agent", "--store", filled, "-o", form, "--agent", "nobody")
    assert result.exit_code == 0
    assert "Look further back with --since 30d" in (result.stdout if form == "table" else result.stderr)
    assert form == "table" or len(result.stdout.splitlines()) == (form == "csv")


def test_an_empty_store_says_how_to_begin(tmp_path: Path) -> None:
    result = run("attention", "--store", str(tmp_path / "none.duckdb"), "-o", "table")
    assert result.exit_code == 0
    assert result.stdout == "No runs yet: nothing has reported to this store.\n"


def test_json_times_are_utc(filled: str) -> None:
    (row, *_) = objects(run("verdicts-by-hour", "--store", filled))
    assert row["hour"] == "2026-11-28T08:00:00Z"


def test_days_are_those_of_the_zone_that_is_asked_for(filled: str) -> None:
    tokyo = objects(run("verdicts-by-day", "--store", filled, "-p", "zone=Pacific/Kiritimati", "--since", "2h"))
    utc = objects(run("verdicts-by-day", "--store", filled, "--utc", "--since", "2h"))
    assert ([row["day"] for row in tokyo], [row["day"] for row in utc]) == (["2026-11-28"], ["2026-11-28"])
    west = objects(run("verdicts-by-day", "--store", filled, "-p", "zone=Pacific/Honolulu", "--since", "2h"))
    assert [row["day"] for row in west] == ["2026-11-27"]


def test_attention_has_the_grace_of_the_policy(filled: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[defaults]\nunrouted_grace = "30d"\n', "utf-8")
    patient = {row["verdict"] for row in attention(filled, monkeypatch, policy)}
    assert "WAITING_UNROUTED" in {row["verdict"] for row in objects(run("attention", "--store", filled))}
    young = [row for row in attention(filled, monkeypatch, policy) if row["verdict"] == "WAITING_UNROUTED"]
    assert all(row["first_at"] < "2026-10-29" for row in young)
    assert "FAILED" in patient


def attention(store: str, monkeypatch: pytest.MonkeyPatch, policy: Path) -> list[dict[str, Any]]:
    with monkeypatch.context() as patched:
        patched.setenv("STOPCAUSE_POLICY", str(policy))
        return objects(run("attention", "--store", store))


def test_attention_lists_the_groups_that_runs_lists(filled: str) -> None:
    listed = CliRunner().invoke(cli.app, ["runs", "--attention", "--store", filled])
    groups = {json.loads(line)["group"] for line in listed.stdout.splitlines()}
    assert {row["group"] for row in objects(run("attention", "--store", filled))} == groups


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("waitng",), "Did you mean waiting"),
        (("waiting", "--since", "24h"), "has no parameter of that name"),
        (("costs", "--since", "0"), "since is zero; give 30m, 24h, 7d or all."),
        (("costs", "--limit", "-3"), "limit is a number below zero; give a whole number from 1"),
        (("costs", "-p", "since"), "-p takes a name, an equals sign and a value"),
        (("costs", "-p", "since=1h", "--since", "2h"), "since is given twice."),
        (("verdicts-by-day", "-p", "zone=Mars"), "zone is a text of 4 letters; give local, UTC"),
        (("run-timeline",), "run is missing"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_with_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Even where there is no store: nothing is read before."""
    result = run(*arguments, "--store", str(tmp_path / "none.duckdb"))
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


# How values look ------------------------------------------------------------------------------------------------------


def found(kind: str, *values: Any) -> Found:  # noqa: ANN401 - of any kind
    card = Card(
        "any", "Any", "Any?", "SRE", "Nothing.", (), (Column("it", kind, "IT", "it"), Column("n", "count", "N", ""))
    )
    rows = [(value, number) for number, value in enumerate(values)]
    return Found(card, rows, Window(NOW, "", NOW), has_window=False, more=False)


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("share", 0.1234, "12.3%"),
        ("seconds", 0.25, "0.2s"),
        ("seconds", 11_520.0, "3h 12m"),
        ("dollars", 0.0012, "0.0012"),
        ("dollars", 12.345, "12.35"),
        ("words", ["owner", "deadline"], "owner, deadline"),
        ("words", [], "-"),
        ("flag", True, "yes"),
        ("ago", NOW - timedelta(minutes=41), "41m"),
        ("due", NOW + timedelta(minutes=18), "in 18m"),
        ("due", NOW - timedelta(minutes=10), "10m late"),
        ("time", NOW, "11-28 09:30"),
        ("moment", NOW, "11-28 09:30:00"),
        ("verdict", None, "> RUNNING"),
        ("number", None, "-"),
    ],
)
def test_how_a_value_is_written(kind: str, value: Any, shown: str) -> None:  # noqa: ANN401 - of any kind
    assert forms.report_screen(found(kind, value), Pen(zone=UTC))[3].split("  ")[0].strip() == shown


def test_times_say_their_offset_where_the_clock_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - for this test only

    del monkeypatch
    times = [datetime(2026, 10, 25, hour, tzinfo=UTC) for hour in (0, 1)]  # both are 02:00 in Berlin
    lines = forms.report_screen(found("time", *times), Pen(zone=ZoneInfo("Europe/Berlin")))[3:]
    assert [line.rsplit(" ", 2)[0].strip() for line in lines] == ["10-25 02:00 +0200", "10-25 02:00 +0100"]


def test_a_verdict_in_colour_takes_no_cell_more() -> None:
    plain, dyed = (forms.report_screen(found("verdict", "FAILED", None), Pen(colour, UTC)) for colour in (False, True))
    assert "\x1b[31mF FAILED\x1b[0m" in dyed[3]
    assert [line.replace("\x1b[31m", "").replace("\x1b[2m", "").replace("\x1b[0m", "") for line in dyed] == plain
