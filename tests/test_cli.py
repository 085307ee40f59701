"""The command line's contract: exit codes, JSON lines, what goes where. Its looks are in `test_cli_screens`."""

from __future__ import annotations

import json
import shlex
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stopcause import __version__, cli, cli_shared
from stopcause.classifier import rules
from stopcause.classifier.policy import policy_from_mapping
from stopcause.classifier.verdict import Verdict
from stopcause.errors import InputError
from stopcause.pipeline import cases, demo
from stopcause.pipeline.policy_file import load_policy
from stopcause.resources import data_folder
from tests.support.recordings import few

FIXTURES = data_folder("fixtures")
NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
SMALLEST = (
    '{"schema":"stopcause/1","kind":"run.stopped","run_id":"r1","at":"2026-11-28T08:00:00Z",'
    '"stop_cause":"natural","steps":3}\n'
)


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW)


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "s.duckdb")
    assert run("ingest", *map(str, few()), "--store", path).exit_code == 0
    return path


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli.app, list(arguments), input=given)


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


# Without a store


def test_the_version() -> None:
    assert run("--version").stdout == f"stopcause {__version__}\n"


def test_no_arguments_show_the_help() -> None:
    assert "Your runs:" in run().output


def test_replay_in_a_pipe_has_a_line_for_each_case_and_assertion() -> None:
    result = run("replay")

    assert result.exit_code == 0
    assert [each["ok"] for each in objects(result)] == [True] * 15
    assert result.stderr == ""


def test_replay_of_a_miss_exits_with_1(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("", "utf-8")

    assert run("replay", "--policy", str(path)).exit_code == 1


def test_many_cases_are_shown_only_where_they_fall_short_unless_all_are_asked_for() -> None:
    pairs = str(FIXTURES / "pairs")
    short, whole = (run("replay", pairs, "-o", "table", *more).stdout for more in ((), ("--all",)))

    assert "EXPECTED" not in short
    assert "as expected (--all)" in short
    assert len(whole.splitlines()) > len(list((FIXTURES / "pairs").glob("*.json")))


def test_classify_reads_standard_input_by_default() -> None:
    result = run("classify", given=SMALLEST)

    (verdict,) = objects(result)
    assert result.exit_code == 0
    assert tuple(verdict) == Verdict._fields
    assert (verdict["verdict"], verdict["reason"], verdict["resolved_by"]) == ("FALSE_COMPLETE", "no_contract", None)


def test_classify_judges_by_the_policy_and_at_the_time_that_are_named(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[[agents]]\ncontract = "c"\n', "utf-8")

    for now, reason in (("2026-11-28T08:00:01Z", "receipt_pending"), ("2026-11-28T10:00:01+01:00", "receipt_missing")):
        (verdict,) = objects(run("classify", "-", "--policy", str(path), "--now", now, given=SMALLEST))
        assert verdict["reason"] == reason
        assert verdict["as_of"].endswith("Z")


@pytest.mark.parametrize("command", ["classify", "explain"])
def test_hints_judge_by_the_policy_that_was_given(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-r 1.jsonl").write_text(SMALLEST, "utf-8")
    Path("p.toml").write_text('[[agents]]\ncontract = "c"\n', "utf-8")

    result = run(command, "--policy", "p.toml", "-o", "table", "--", "-r 1.jsonl")

    told = next(line for line in result.stderr.replace("\\\n", "").splitlines() if " explain " in line)
    words = shlex.split(told.partition("  its first run")[0].partition("  the same")[0].replace("--format md ", ""))
    again = run("explain", "-o", "jsonl", *words[words.index("explain") + 1 :])
    assert words[-4:] == ["--policy", "p.toml", "--", "-r 1.jsonl"]
    assert [each["reason"] for each in objects(again)] == ["receipt_missing"]


def test_a_bad_line_costs_only_itself_and_the_exit_code_says_so() -> None:
    result = run("classify", given=f"nonsense\n{SMALLEST}\n" + '{"schema":"stopcause/1"}\n')

    assert result.exit_code == 1
    assert len(objects(result)) == 1
    assert [line.split(";")[0] for line in result.stderr.splitlines()] == [
        "stdin: line 1: line: is broken JSON at column 1",
        "stdin: line 4: kind: is missing",
    ]


@pytest.mark.parametrize("given", ["", "\n", "nonsense\n", b"\xff\n"])
def test_nothing_that_can_be_read_is_exit_code_2(given: str | bytes) -> None:
    result = run("classify", given=given)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("stopcause: stdin: ")


def test_a_terminal_on_standard_input_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    for command in ("classify", "explain"):
        with pytest.raises(InputError, match=f"nothing is piped in; write `{command} FILE`"):
            cli_shared.standard_input(command)


@pytest.mark.parametrize(
    "arguments",
    [
        ("classify", "no-such-file"),
        ("replay", "no-such-file"),
        ("explain", "no-such-run"),
        ("explain", "./"),
        ("ingest", "no-such-file"),
        ("policy", "check", "no-such-file"),
        ("classify", "-", "--now", "yesterday"),
        ("explain", "timeout", "--policy", "p.toml"),
        ("runs", "--since", "soon"),
        ("runs", "--verdict", "FINE"),
        ("runs", "--fail-on", "FINE"),
        ("runs", "-o", "md"),
        ("nonsense",),
    ],
)
def test_usage_and_unreadable_input_are_exit_code_2(arguments: tuple[str, ...], store: str) -> None:
    own = ("--store", store) if arguments[0] in ("runs", "explain", "ingest") else ()
    result = run(*arguments, *own, given=SMALLEST)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.output


def test_explain_of_a_file_takes_records_too(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(SMALLEST, "utf-8")

    (verdict,) = objects(run("explain", str(path)))

    assert verdict["run_id"] == "r1"


def test_rules_in_a_pipe_are_the_cards() -> None:
    told = objects(run("rules"))

    assert [each["order"] for each in told] == list(range(1, 9))
    assert all(all(each.values()) for each in told)


def test_the_schema_is_one_json_document() -> None:
    assert json.loads(run("schema").stdout)["discriminator"]["propertyName"] == "kind"


def test_policy_check_says_by_its_exit_code_whether_the_policy_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    for text, code in (("", 0), ("[agent]\n", 1), ("=", 1), ("[[agents]]\n[[agents]]\n", 0)):
        path.write_text(text, "utf-8")
        assert run("policy", "check", str(path)).exit_code == code
    (fault,) = objects(run("policy", "check", str(path)))
    assert (fault["line"], fault["warning"]) == (2, True)


def test_a_policy_that_cannot_be_used_is_told_fault_by_fault(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("[agent]\n[route]\n", "utf-8")

    result = run("classify", "--policy", str(path), given=SMALLEST)

    assert result.exit_code == 2
    assert [line.rpartition(": ")[0] for line in result.stderr.splitlines()] == [
        f"stopcause: {path}:1: agent",
        f"stopcause: {path}:2: route",
    ]


# With a store


def test_ingest_says_what_became_of_the_lines_and_exits_with_1_where_some_were_set_aside(tmp_path: Path) -> None:
    path, own = tmp_path / "r.jsonl", ("--store", str(tmp_path / "s.duckdb"))
    path.write_text(f"{SMALLEST}nonsense\n", "utf-8")

    result = run("ingest", str(path), *own)

    (report,) = objects(result)
    assert result.exit_code == 1
    assert (report["lines"], report["accepted"], report["set_aside"]) == (2, 1, 1)
    assert report["newest_at"] == "2026-11-28T08:00:00Z"
    assert f"{path}: line 2: " in result.stderr
    assert run("ingest", "-", *own, given=SMALLEST).exit_code == 0


def test_runs_in_a_pipe_are_verdicts_with_the_fields_of_the_plan(store: str) -> None:
    result = run("runs", "--store", store)

    told = objects(result)
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(told) == 17
    assert {tuple(each) for each in told} == {Verdict._fields}
    assert all(each["action"] for each in told)


def test_runs_can_be_chosen_by_verdict_and_agent(store: str) -> None:
    stuck = objects(run("runs", "--verdict", "stuck", "--store", store))

    assert {each["verdict"] for each in stuck} == {"STUCK"}
    assert objects(run("runs", "--verdict", "RUNNING", "--store", store)) == []
    assert objects(run("runs", "--agent", "nobody", "--store", store)) == []


def test_attention_in_a_pipe_has_a_line_a_run(store: str) -> None:
    told = objects(run("runs", "--attention", "--store", store))

    assert {each["verdict"] for each in told} == {"WAITING_UNROUTED", "STUCK", "FAILED"}


def test_lists_exit_with_0_unless_they_are_told_to_fail(store: str) -> None:
    assert run("runs", "--store", store, "--fail-on", "UNCERTAIN").exit_code == 0
    assert run("runs", "--store", store, "--fail-on", "UNCERTAIN,failed").exit_code == 1
    assert run("waiting", "--store", store, "--fail-on", "WAITING_UNROUTED").exit_code == 1
    assert run("explain", "generate-timeout", "--store", store, "--fail-on", "STUCK").exit_code == 1
    assert run("classify", "--fail-on", "FALSE_COMPLETE", given=SMALLEST).exit_code == 1
    assert run("classify", "--fail-on", "STUCK", given=SMALLEST).exit_code == 0


def test_waits_in_a_pipe_say_who_answers_and_until_when(store: str) -> None:
    told = objects(run("waiting", "--store", store))

    assert [(each["run_id"], each["owner"]) for each in told] == [
        ("generate-approval-unrouted", None),
        ("generate-approval-routed", "team:pay"),
    ]
    assert told[1]["deadline"].endswith("Z")


def test_explain_takes_a_run_its_end_or_a_group(store: str) -> None:
    (whole,) = objects(run("explain", "generate-approval-unrouted", "--store", store))
    (end,) = objects(run("explain", "nrouted", "--store", store))
    (group,) = objects(run("explain", whole["group"][-4:], "--store", store))

    (longer,) = objects(run("explain", whole["group"][-6:], "--store", store))

    assert whole == end == group == longer
    assert whole["record_ids"]


def test_explain_of_an_end_that_several_runs_have_lists_them(store: str) -> None:
    result = run("explain", "generate-timeout", "--store", store)
    several = run("explain", "outcome", "--store", store)

    assert result.exit_code == 0
    assert several.exit_code == 2
    assert "natural-with-outcome" in several.stderr


def test_a_new_policy_beside_the_store_is_judged_by_at_the_next_look(store: str) -> None:
    before = objects(run("runs", "--verdict", "FALSE_COMPLETE", "--store", store))
    Path(store).with_name("policy.toml").write_text('[[agents]]\ncontract = "c"\n', "utf-8")

    result = run("runs", "--verdict", "FALSE_COMPLETE", "--store", store)

    assert {each["reason"] for each in before} == {"no_contract"}
    assert {each["reason"] for each in objects(result)} == {"receipt_missing"}
    assert "The policy has changed: judging" in result.stderr
    assert run("runs", "--store", store).stderr == ""


def test_reading_makes_no_store(tmp_path: Path) -> None:
    path = tmp_path / "none.duckdb"

    for command in (("runs",), ("runs", "--attention"), ("waiting",)):
        result = run(*command, "--store", str(path))
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith("No runs yet")
    assert run("explain", "x", "--store", str(path)).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unknown() -> Path:
        raise RuntimeError

    monkeypatch.delenv("STOPCAUSE_DATA")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)

    result = run("runs")
    named = run("runs", "-o", "table", "--store", str(tmp_path / "s.duckdb"))

    assert (result.exit_code, result.stdout) == (2, "")
    assert "set STOPCAUSE_DATA" in result.stderr
    assert (named.exit_code, named.stdout.splitlines()[0][:11]) == (0, "No runs yet")


# The demo


def test_the_demos_policy_is_the_recordings_own_but_enforced() -> None:
    own = next(cases.load_cases([FIXTURES / "ai_sdk"])).policy or {}
    enforced = {**own, "agents": [{**entry, "stage": "enforce"} for entry in own["agents"]]}

    ours, theirs = load_policy(demo.new_store().parent / "policy.toml"), policy_from_mapping(enforced)

    assert (ours.id, ours.version, ours.defaults) == (theirs.id, theirs.version, theirs.defaults)
    assert (ours.agents, ours.routes, ours.contracts) == (theirs.agents, theirs.routes, theirs.contracts)


def test_the_demo_replaces_its_own_store_and_nothing_else(own_data: Path) -> None:
    mine = own_data / "stopcause.duckdb"
    mine.write_text("mine", "utf-8")
    recorded = cases.load_cases([FIXTURES / "ai_sdk"])
    runs = len({record["run_id"] for case in recorded for record in case.records})

    for _ in range(2):
        result = run("demo")
        assert result.exit_code == 0
        assert f"{runs} runs, " in result.stdout
        assert " records, 0 set aside" in result.stdout

    assert mine.read_text("utf-8") == "mine"


def test_the_demo_finds_another_place_where_the_data_folder_cannot_be_made(
    own_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(own_data)
    own_data.write_text("no folder", "utf-8")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    result = run("demo")

    assert result.exit_code == 0
    assert str(tmp_path) in result.stdout


def test_an_interrupted_command_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> datetime:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_shared, "clock", interrupted)

    result = run("runs")

    assert (result.exit_code, result.output) == (130, "")


def test_a_store_that_is_gone_is_made_again_by_whoever_reads(store: str) -> None:
    before = objects(run("runs", "--store", store))
    Path(store).unlink()

    again = run("runs", "--store", store)

    assert again.exit_code == 0
    assert {each["run_id"]: each["verdict"] for each in objects(again)} == {
        each["run_id"]: each["verdict"] for each in before
    }
    assert len(before) == 17


def test_a_run_that_cannot_be_judged_is_said_on_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def match(_facts: object, _gone: object) -> None:
        raise ZeroDivisionError("with words of the run in it")

    monkeypatch.setattr(rules, "RULES", (rules.RULES[0]._replace(match=match), *rules.RULES))

    result = run("ingest", "-", "--store", str(tmp_path / "s.duckdb"), given=SMALLEST)

    assert "run r1 could not be judged (ZeroDivisionError); its records are kept" in result.stderr
    assert "with words" not in result.output
    assert objects(result)[0]["accepted"] == 1


def test_explain_of_a_file_with_several_runs_says_which_one_it_shows(tmp_path: Path) -> None:
    line = (
        '{{"schema":"stopcause/1","kind":"run.stopped","run_id":"{}",'
        '"at":"2026-11-28T08:00:00Z","stop_cause":"natural"}}\n'
    )
    path = tmp_path / "runs.jsonl"
    path.write_text(line.format("r1") + line.format("r2") + line.format("r3"), "utf-8")
    result = run("explain", str(path))
    assert result.exit_code == 0
    assert "2 more runs; this is the first, r1" in result.stderr
    path.write_text(line.format("r1"), "utf-8")
    assert "more runs" not in run("explain", str(path)).stderr


def test_waiting_shows_the_first_forty_and_says_how_many_there_are(tmp_path: Path) -> None:
    records = [
        {
            "schema": "stopcause/1",
            "kind": "run.stopped",
            "run_id": f"r{number}",
            "at": "2026-11-28T08:00:00Z",
            "stop_cause": "approval_pending",
        }
        for number in range(45)
    ]
    path = tmp_path / "waits.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    assert run("ingest", str(path)).exit_code == 0
    shown = run("waiting", "-o", "table").stdout
    assert shown.count("missing owner") == 40
    assert "Shown: the first 40 of them; --all has every one" in shown
    assert run("waiting", "--all", "-o", "table").stdout.count("missing owner") == 45
    assert len(run("waiting").stdout.splitlines()) == 45


def test_replay_shows_the_cases_that_it_can_read_and_ends_with_2_for_a_file_that_it_cannot(tmp_path: Path) -> None:
    case = next((data_folder("fixtures") / "article").glob("A01-*.json"))
    (tmp_path / "good.json").write_bytes(case.read_bytes())
    (tmp_path / "bad.json").write_text("{", "utf-8")
    result = run("replay", str(tmp_path), "-o", "table")
    assert result.exit_code == 2
    assert "1 of 1 as expected" in result.stdout
    assert "bad.json: line 1" in result.stderr


def test_a_bare_name_is_a_run_whatever_file_lies_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = (
        '{"schema":"stopcause/1","kind":"run.stopped","run_id":"c1","at":"2026-11-28T08:00:00Z","stop_cause":"natural"}'
    )
    (tmp_path / "in.jsonl").write_text(line + "\n", "utf-8")
    assert run("ingest", "in.jsonl").exit_code == 0
    (tmp_path / "c1").write_text("not a record\n", "utf-8")
    assert json.loads(run("explain", "c1").stdout)["run_id"] == "c1"
    assert run("explain", "./c1").exit_code == 2
