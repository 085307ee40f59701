"""`stopcause policy`: screens byte for byte (`SCREENS=write pytest FILE` writes them anew), exit codes, and kills."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from stopcause import cli, cli_shared
from stopcause.classifier.policy import warnings
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.policy_file import load_policy
from stopcause.pipeline.policy_init import Agent, Asked, Found, folded, folded_tools, starter
from stopcause.render.pen import WIDTH, cells
from stopcause.resources import data_folder
from tests.support.machine import a_terminal
from tests.support.recordings import only_few
from tests.support.screens import assert_golden, screen_text

ROOT = Path(__file__).parents[1]
SCREENS = Path(__file__).parent / "screens_policy"
FIXTURES = data_folder("fixtures")
NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
STRICT = """\
[policy]
id = "strict"
version = "2026-12-01"

[[agents]]
match = { agent = "ticket-*", environment = "prod" }
contract = "ticket-updated"

[[agents]]
match = { agent = "*" }
stage = "enforce"
owner = "team:platform"
contract = "seen-by-a-person"
on_bound = "runbook:partial"

[[routes]]
match = { kind = "tool_call", tool = "transfer_*" }
owner = "team:treasury"
due = "30m"
escalate = "team:treasury-lead"

[contracts.seen-by-a-person]
min_strength = "human"
issuers = ["human:*"]
settle = "1h"
[[contracts.seen-by-a-person.checks]]
kind = "record"
name = "issued"

[contracts.ticket-updated]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with short names, a strict policy, a fixed time, and the program under its bare name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOPCAUSE_DATA", "data")
    monkeypatch.setattr("sys.argv", ["stopcause"])
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW)
    shutil.copytree(FIXTURES, tmp_path / "fixtures", ignore=only_few)
    (tmp_path / "strict.toml").write_text(STRICT, "utf-8")
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.fixture
def filled(place: Path) -> Path:
    assert run("ingest", "fixtures/ai_sdk", "fixtures/article", "fixtures/public").exit_code == 0
    return place


def run(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(cli.app, list(arguments), input=answer)


def screen_of(*arguments: str) -> str:
    return screen_text(arguments, run(*arguments))


def assert_is(name: str, got: str) -> None:
    assert_golden(SCREENS / f"{name}.txt", got)
    for line in got.splitlines()[1:]:
        assert cells(line.removeprefix("2> ")) <= WIDTH or "md" in name or "stopcause:" in line, line


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


FILES = {
    "diff-fixtures": ("diff", "strict.toml", "fixtures", "--fail-on", "FALSE_COMPLETE", "-o", "table", "--utc"),
    "diff-md": ("diff", "strict.toml", "fixtures/article", "--format", "md"),
    "diff-same": ("diff", "strict.toml", "fixtures/article", "--against", "strict.toml", "-o", "table"),
    "explain": ("explain", "--agent", "invoice-agent", "--policy", "strict.toml", "-o", "table"),
    "explain-route": (
        *("explain", "--agent", "ticket-agent", "--environment", "prod", "--kind", "tool_call"),
        *("--tool", "transfer_funds", "--policy", "strict.toml", "-o", "table"),
    ),
    "explain-nothing": ("explain", "--kind", "tool_call", "-o", "table"),
}
STORED = {
    "diff": ("diff", "strict.toml", "-o", "table", "--utc"),
    "diff-nothing": ("diff", "nothing.toml", "--all", "-o", "table", "--utc"),
    "check-unused": ("check", "strict.toml", "-o", "table"),
    "apply": ("apply", "strict.toml", "--yes", "-o", "table", "--utc"),
}


@pytest.mark.parametrize("name", FILES)
def test_screen_of_files(name: str, place: Path) -> None:
    assert place.is_dir()

    assert_is(name, screen_of("policy", *FILES[name]))


def test_screens_of_a_store(filled: Path) -> None:
    (filled / "nothing.toml").write_text('[[agents]]\nmatch = { agent = "nobody-*" }\nstage = "enforce"\n', "utf-8")
    for name, arguments in STORED.items():
        assert_is(name, screen_of("policy", *arguments))


def test_there_is_no_screen_that_nothing_writes() -> None:
    assert {path.stem for path in SCREENS.glob("*.txt")} == {*FILES, *STORED}


# Diff -----------------------------------------------------------------------------------------------------------------


def test_diff_fails_only_on_what_is_asked_for(filled: Path) -> None:
    assert filled.is_dir()
    assert run("policy", "diff", "strict.toml", "--fail-on", "FALSE_COMPLETE").exit_code == 1
    assert run("policy", "diff", "strict.toml", "--fail-on", "STUCK,FAILED").exit_code == 0
    assert run("policy", "diff", "strict.toml").exit_code == 0


def test_diff_is_lines_for_a_program(filled: Path) -> None:
    assert filled.is_dir()
    summary, *changes = objects(run("policy", "diff", "strict.toml"))

    assert summary["type"] == "summary"
    assert summary["changed"] == sum(each["runs"] for each in changes) > 0
    assert summary["new"]["id"] == "strict"
    assert {each["type"] for each in changes} == {"change"}
    assert all(len(each["examples"]) <= 3 for each in changes)


def test_diff_of_a_policy_with_faults_names_them(place: Path) -> None:
    (place / "bad.toml").write_text('[[agents]]\nstag = "enforce"\n[defaults]\nsettle = "ten"\n', "utf-8")

    result = run("policy", "diff", "bad.toml", "fixtures")

    assert result.exit_code == 2
    assert "bad.toml:2: agents[0].stag" in result.stderr
    assert "bad.toml:4: defaults.settle" in result.stderr


def test_diff_without_runs_says_so(place: Path) -> None:
    assert place.is_dir()
    assert "No runs yet" in run("policy", "diff", "strict.toml").stderr
    assert run("policy", "diff", "strict.toml", "--now", "2026-11-28T08:00:00Z").exit_code == 2


def test_diff_leaves_the_store_as_it_is(filled: Path) -> None:
    before = run("runs", "--all").stdout

    run("policy", "diff", "strict.toml")

    assert run("runs", "--all").stdout == before
    assert not (filled / "data" / "policy.toml").exists()


def test_diff_of_files_goes_back_as_far_as_it_is_asked_to(place: Path) -> None:
    head = {"schema": "stopcause/1", "kind": "run.stopped", "stop_cause": "natural", "agent": "a"}
    times = [NOW - timedelta(days=days) for days in (1, 5, 40)]
    lines = [json.dumps({**head, "run_id": f"r{n}", "at": at.isoformat()}) for n, at in enumerate(times)]
    (place / "runs.jsonl").write_text("\n".join(lines), "utf-8")

    looked = [
        objects(run("policy", "diff", "strict.toml", "runs.jsonl", *more))[0]["looked"]
        for more in ((), ("--since", "7d"), ("--since", "1h", "--now", times[1].isoformat()))
    ]

    assert looked == [3, 2, 2]
    assert run("policy", "diff", "strict.toml", "runs.jsonl", "--since", "soon").exit_code == 2


# Init -----------------------------------------------------------------------------------------------------------------


def test_a_starter_is_valid_and_changes_nothing(filled: Path) -> None:
    result = run("policy", "init")
    (filled / "policy.toml").write_text(result.stdout, "utf-8")

    checked = run("policy", "check", "policy.toml", "-o", "table")
    found = objects(run("policy", "diff", "policy.toml", "--all"))

    assert (checked.exit_code, "warning" in checked.stdout) == (0, False)
    assert found[0]["changed"] == 0
    assert "Made from 104 runs" in result.stderr
    assert 'match = { agent = "ticket-agent" }' in result.stdout


def test_a_starter_without_a_store_is_the_smallest(place: Path) -> None:
    result = run("policy", "init")
    (place / "policy.toml").write_text(result.stdout, "utf-8")

    assert "[policy]" in result.stdout
    assert "smallest" in result.stderr
    assert run("policy", "check", "policy.toml", "-o", "table").exit_code == 0
    assert not (place / "data" / "stopcause.duckdb").exists()


def test_families_of_names_are_one_pattern() -> None:
    spelt = [Agent(f"invoice-{number}", "prod", 2) for number in range(10_000)]
    hexed = [Agent(f"crawl-{number:08x}", "prod", 1) for number in range(0xA0000000, 0xA0000040)]
    words = [Agent(f"team.{chr(97 + a)}{chr(97 + b)}-bot", None, 1) for a in range(20) for b in range(20)]

    found = folded([*spelt, *hexed, *words, Agent("pay-agent", "prod", 50), Agent("gpt-4", "prod", 3)])

    assert [(each.name, each.environment, each.runs, each.names) for each in found] == [
        ("invoice-*", "prod", 20_000, 10_000),
        ("crawl-*", "prod", 64, 64),
        ("pay-agent", "prod", 50, 1),
        ("gpt-4", "prod", 3, 1),
        ("team.*", None, 400, 400),
    ]


def test_what_a_starter_leaves_out_is_said() -> None:
    names = [f"{chr(97 + a)}{chr(97 + b)}" for a in range(10) for b in range(10)]
    text = starter(Found(folded(Agent(name, None, 2) for name in names), (), 207, 7), NOW)

    assert len(tomllib.loads(text)["agents"]) == 40
    assert "Left out: 60 quieter agents with 120 runs" in text
    assert "7 runs do not say which agent they are" in text


letters = st.text("ab1-._:/@9", min_size=1, max_size=8)


@tries(max_examples=300)
@given(
    st.dictionaries(st.tuples(letters, st.sampled_from([None, "prod", "dev"])), st.integers(1, 99), max_size=60),
    st.dictionaries(st.tuples(st.sampled_from(["tool_call", "external"]), st.none() | letters), st.integers(1, 9)),
)
def test_no_starter_has_a_warning(
    agents: dict[tuple[str, str | None], int], asked: dict[tuple[str, str | None], int]
) -> None:
    from stopcause.classifier.policy import parse_policy  # noqa: PLC0415

    names = folded(Agent(*key, runs) for key, runs in agents.items())
    tools = folded_tools(Asked(*key, count) for key, count in asked.items())

    policy = parse_policy(starter(Found(names, tools, sum(agents.values())), NOW))

    assert warnings(policy) == ()
    assert sum(each.runs for each in names) == sum(agents.values())
    assert sum(each.approvals for each in tools) == sum(asked.values())


# Check ----------------------------------------------------------------------------------------------------------------


def test_check_never_fails_for_what_the_store_has_not_seen(filled: Path) -> None:
    with Keeper.open(Path("data/stopcause.duckdb"), load_policy(None), NOW):
        used = subprocess.run(
            [sys.executable, "-m", "stopcause", "policy", "check", "strict.toml", "-o", "table"],
            capture_output=True,
            text=True,
            check=False,
            cwd=filled,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    assert used.returncode == 0
    assert "not held against the runs of the store" in used.stderr


# Apply ----------------------------------------------------------------------------------------------------------------


def test_apply_without_a_terminal_asks_for_yes(filled: Path) -> None:
    result = run("policy", "apply", "strict.toml")

    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert not (filled / "data" / "policy.toml").exists()


def test_apply_keeps_the_old_text_in_the_store(filled: Path) -> None:
    old = '[policy]\nid = "old"\n'
    (filled / "data" / "policy.toml").write_text(old, "utf-8")

    assert run("policy", "apply", "strict.toml", "--yes").exit_code == 0

    assert (filled / "data" / "policy.toml").read_text("utf-8") == STRICT
    with Keeper.open(Path("data/stopcause.duckdb"), load_policy(Path("strict.toml")), NOW) as keeper:
        texts = {source for (source,) in keeper.store.ask("SELECT source FROM policies").rows}
        assert {old, STRICT} <= texts
        assert keeper.stale_policy() == 0


def test_apply_says_no_more_than_what_diff_said(filled: Path) -> None:
    assert filled.is_dir()
    expected = objects(run("policy", "diff", "strict.toml", "--all"))[1:]

    (applied,) = objects(run("policy", "apply", "strict.toml", "--yes"))

    assert applied["judged"] >= applied["changed"]
    said = {(str(each["from"]), str(each["to"])): each["runs"] for each in applied["changes"]}
    for each in expected:  # attempts are counted, and a run has one or more
        assert said[str(each["from"]), str(each["to"])] >= each["runs"]


def test_apply_refuses_where_another_place_is_named(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_POLICY", "elsewhere.toml")

    result = run("policy", "apply", "strict.toml", "--yes")

    assert result.exit_code == 2
    assert "STOPCAUSE_POLICY names elsewhere.toml" in result.stderr
    assert not (filled / "data" / "policy.toml").exists()


def test_apply_of_a_policy_with_faults_changes_nothing(filled: Path) -> None:
    (filled / "data" / "policy.toml").write_text("", "utf-8")
    (filled / "bad.toml").write_text("[agents]\n", "utf-8")

    assert run("policy", "apply", "bad.toml", "--yes").exit_code == 2
    assert (filled / "data" / "policy.toml").read_text("utf-8") == ""


def test_apply_mends_a_policy_that_cannot_be_used(filled: Path) -> None:
    (filled / "data" / "policy.toml").write_text("[agents]\n", "utf-8")

    result = run("policy", "apply", "strict.toml", "--yes")

    assert result.exit_code == 0
    assert "nothing to compare with" in result.stderr
    assert (filled / "data" / "policy.toml.before").read_text("utf-8") == "[agents]\n"
    assert (filled / "data" / "policy.toml").read_text("utf-8") == STRICT


def test_a_folder_in_use_takes_a_file_by_its_name(filled: Path) -> None:
    folder = filled / "data" / "policy.d"
    folder.mkdir()
    (folder / "a.toml").write_text('[policy]\nid = "teams"\n', "utf-8")
    (filled / "billing.toml").write_text('[[agents]]\nmatch = { agent = "ticket-*" }\nowner = "team:t"\n', "utf-8")

    (applied,) = objects(run("policy", "apply", "billing.toml", "--yes"))

    assert applied["policy"]["id"] == "teams"
    assert sorted(path.name for path in folder.iterdir()) == ["a.toml", "billing.toml"]
    assert applied["policy"]["digest"] == load_policy(folder).digest
    (filled / "billing").write_text("", "utf-8")
    assert "end in .toml" in run("policy", "apply", "billing", "--yes").stderr
    (filled / "twice.toml").write_text('[policy]\nid = "other"\n', "utf-8")
    twice = run("policy", "apply", "twice.toml", "--yes")
    assert (twice.exit_code, "is set twice" in twice.stderr) == (2, True)


def test_a_folder_takes_the_place_of_a_folder_and_not_of_a_file(filled: Path) -> None:
    new = filled / "teams"
    new.mkdir()
    (new / "b.toml").write_text('[policy]\nid = "b"\n', "utf-8")
    folder = filled / "data" / "policy.d"
    folder.mkdir()
    (folder / "a.toml").write_text('[policy]\nid = "a"\n', "utf-8")

    assert run("policy", "apply", "teams", "--yes").exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["b.toml"]

    (filled / "data" / "policy.toml").write_text("", "utf-8")
    refused = run("policy", "apply", "teams", "--yes")
    assert refused.exit_code == 2
    assert "comes before policy.d" in refused.stderr


@pytest.mark.parametrize(("typed", "applied"), [(b"n\n", False), (b"y\n", True)])
def test_apply_asks_on_a_terminal(filled: Path, typed: bytes, applied: bool) -> None:
    ours, theirs = a_terminal()
    command = [sys.executable, "-m", "stopcause", "policy", "apply", "strict.toml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=filled) as asked:
        os.close(theirs)
        seen = _read_until(ours, b"[y/N]")
        os.write(ours, typed)
        seen += _read_until(ours, b"runs --attention" if applied else b"Nothing was changed")
    os.close(ours)

    assert asked.returncode == (0 if applied else 1)
    assert b"looked at" in seen
    assert (filled / "data" / "policy.toml").exists() is applied


def _read_until(terminal: int, words: bytes) -> bytes:
    seen, until = b"", time.monotonic() + 60
    while words not in seen:
        assert time.monotonic() < until, seen
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536)
    return seen


SLOW = """
    import sys
    from stopcause.pipeline import keeper
    keeper._BATCH_RUNS = 20
    whole = keeper.Keeper._judge_again
    def one(self, run_ids, now):
        done = whole(self, run_ids, now)
        if self.policy.id == "strict":
            print("judged", flush=True)
        return done
    keeper.Keeper._judge_again = one
    from stopcause.cli import main
    sys.argv = ["stopcause", "policy", "apply", "strict.toml", "--yes"]
    main()
"""


@pytest.mark.parametrize("then", [("policy", "apply", "strict.toml", "--yes"), ("runs", "--all")])
def test_apply_that_is_killed_goes_on_where_it_was(filled: Path, then: tuple[str, ...]) -> None:
    code = "\n".join(line[4:] for line in SLOW.splitlines())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as apply:
        assert apply.stdout is not None
        assert apply.stdout.readline() == "judged\n"
        assert apply.stdout.readline() == "judged\n"
        apply.kill()
    strict = load_policy(Path("strict.toml"))
    with Keeper.open(Path("data/stopcause.duckdb"), strict, NOW) as keeper:
        left, attempts = keeper.stale_policy(), keeper.store.counts().attempts
    assert (filled / "data" / "policy.toml").read_text("utf-8") == STRICT
    assert 0 < left < attempts

    result = run(*then)

    assert result.exit_code == 0
    assert re.search(rf"[Jj]udging {left} verdicts anew", result.stderr)
    with Keeper.open(Path("data/stopcause.duckdb"), strict, NOW) as keeper:
        assert keeper.stale_policy() == 0
        sums = keeper.store.ask("SELECT DISTINCT sum(sign)::INTEGER FROM verdicts GROUP BY run_id, attempt").rows
        assert sums == [(1,)]


def test_a_wait_of_thirty_days_is_what_check_looks_back(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled.is_dir()
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW + timedelta(days=90))

    assert "matches no" not in run("policy", "check", "strict.toml", "-o", "table").stdout
