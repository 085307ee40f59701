"""Screens, byte for byte: what people see on 80 columns. `SCREENS=write pytest FILE` writes them anew."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from stopcause import cli, cli_shared
from stopcause.render.examples import EXAMPLES
from stopcause.render.pen import WIDTH, cells
from stopcause.resources import data_folder
from tests.support.recordings import only_few
from tests.support.screens import assert_golden, screen_text

SCREENS = Path(__file__).parent / "screens"
FIXTURES = data_folder("fixtures")
NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
POLICY = """\
[policy]
id = "prod"
version = "2026-11-30"
[[agents]]
match = { agent = "ticket-agent" }
stage = "enforce"
owner = "team:tickets"
contract = "ticket-updated"
[[agents]]
match = { agent = "claude-*" }
stage = "enforce"
owner = "team:platform-engineering"
[contracts.ticket-updated]
issuers = ["destination:tickets"]
settle = "1m"
"""
PUBLIC = ("C11", "C37", "C44", "C46", "C56", "C61", "C67", "C68", "C77", "C79", "C86", "C98")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with short names, a fixed time, and the program under its bare name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOPCAUSE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sys.argv", ["stopcause"])
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW)
    shutil.copytree(FIXTURES, tmp_path / "fixtures", ignore=only_few)
    return tmp_path


@pytest.fixture
def filled(place: Path) -> Path:
    """The same with a store of 17 recorded runs and a dozen public ones under a policy."""
    (place / "data").mkdir()
    (place / "data" / "policy.toml").write_text(POLICY, "utf-8")
    files = [f"fixtures/public/{name}.json" for name in PUBLIC]
    assert run("ingest", "fixtures/ai_sdk", *files).exit_code == 0
    return place


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def screen_of(*arguments: str) -> str:
    """What stands on the terminal: stdout, then what stderr says beside it, and the exit code."""
    return screen_text(arguments, run(*arguments))


def assert_is(name: str, got: str) -> None:
    assert_golden(SCREENS / f"{name}.txt", got)


def assert_fits(screen: str) -> None:
    for line in screen.splitlines()[1:]:
        if line.startswith("2> stopcause:"):
            continue  # an error is one line, whatever it has to name
        assert cells(line.removeprefix("2> ")) <= WIDTH, line


WITHOUT_STORE = {
    "replay": ("replay", "-o", "table"),
    "replay-public": ("replay", "fixtures/public", "-o", "table"),
    "help": ("--help",),
    "help-policy": ("policy", "--help"),
    "rules": ("rules", "-o", "table"),
    "classify": ("classify", "fixtures/public/C44.json", "-o", "table"),
    "explain-failed": ("explain", "fixtures/public/C39.json", "-o", "table", "--utc"),
    "explain-waiting": ("explain", "fixtures/pairs/P18a.json", "-o", "table", "--utc"),
    "explain-waiting-unrouted": ("explain", "fixtures/public/C68.json", "-o", "table", "--utc"),
    "explain-stuck": ("explain", "fixtures/article/A10-timeout-last-step.json", "-o", "table", "--utc"),
    "explain-bounded-stop": ("explain", "fixtures/article/A05-step-limit.json", "-o", "table", "--utc"),
    "explain-verified-complete": ("explain", "fixtures/public/C41.json", "-o", "table", "--utc"),
    "explain-false-complete": ("explain", "fixtures/public/C79.json", "-o", "table", "--utc"),
    "explain-uncertain": ("explain", "fixtures/public/C74.json", "-o", "table", "--utc"),
    "explain-note": ("explain", "fixtures/public/C79.json", "--format", "md", "--utc"),
    "empty-runs": ("runs", "-o", "table"),
    "empty-attention": ("runs", "--attention", "-o", "table", "--store", "other.duckdb"),
    "empty-waiting": ("waiting", "-o", "table"),
    "empty-explain": ("explain", "9f3a1c", "-o", "table"),
    "empty-classify": ("classify",),
    "policy-none": ("policy", "check", "-o", "table"),
}
WITH_STORE = {
    "ingest-again": ("ingest", "fixtures/ai_sdk", "-o", "table"),
    "runs": ("runs", "-o", "table", "--utc"),
    "runs-stuck": ("runs", "--verdict", "stuck,failed", "--since", "90m", "-o", "table", "--utc"),
    "attention": ("runs", "--attention", "-o", "table", "--utc"),
    "attention-all": ("runs", "--attention", "--all", "-o", "table", "--utc"),
    "attention-nothing": ("runs", "--attention", "--agent", "nobody", "-o", "table", "--utc"),
    "waiting": ("waiting", "-o", "table", "--utc"),
    "explain-run": ("explain", "natural-without-outcome", "-o", "table", "--utc"),
    "explain-no-run": ("explain", "c79", "-o", "table", "--utc"),
}


@pytest.mark.parametrize("name", WITHOUT_STORE)
def test_screen_without_a_store(name: str, place: Path) -> None:
    assert place.is_dir()
    got = screen_of(*WITHOUT_STORE[name])

    assert_is(name, got)
    if name != "explain-note":
        assert_fits(got)


def test_screens_with_a_store(filled: Path) -> None:
    assert filled.is_dir()
    for name, arguments in WITH_STORE.items():
        got = screen_of(*arguments)
        assert_is(name, got)
        assert_fits(got)


def test_screen_of_the_demo(place: Path) -> None:
    got = re.sub(r"\d+\.\d\d s$", "0.00 s", screen_of("demo", "--utc"), flags=re.MULTILINE)

    assert_is("demo", got)
    assert_fits(got)
    assert (place / "data" / "demo" / "demo.duckdb").exists()


def test_screen_of_a_replay_that_misses(place: Path) -> None:
    case = place / "fixtures" / "article" / "A05-step-limit.json"
    case.write_text(case.read_text("utf-8").replace('"reason": "step_limit"', '"reason": "token_budget"'), "utf-8")

    got = screen_of("replay", "fixtures/article", "-o", "table")

    assert_is("replay-miss", got)
    assert_fits(got)


def test_screen_of_a_policy_with_faults(place: Path) -> None:
    (place / "bad.toml").write_text('[policy]\nid = "p"\n[defaults]\nsettle = "ten"\n[[agents]]\nstag = 1\n', "utf-8")
    (place / "policy.d").mkdir()
    (place / "policy.d" / "a.toml").write_text('[policy]\nid = "p"\n[[agents]]\nmatch = { agent = "*" }\n', "utf-8")
    (place / "policy.d" / "b.toml").write_text('[[agents]]\nmatch = { agent = "x" }\nstage = "enforce"\n', "utf-8")

    assert_is("policy-faults", screen_of("policy", "check", "bad.toml", "-o", "table"))
    assert_is("policy-folder", screen_of("policy", "check", "policy.d", "-o", "table"))


# Help


def commands() -> dict[str, set[str]]:
    """Every command, and every one of a group, with its options."""
    found = {}
    for name, command in get_command(cli.app).commands.items():  # type: ignore[attr-defined]
        found[name] = {option for parameter in command.params for option in parameter.opts}
        for part, each in getattr(command, "commands", {}).items():
            found[f"{name} {part}"] = {option for parameter in each.params for option in parameter.opts}
    return found


def called(words: str, known: dict[str, set[str]]) -> str:
    """The command that a command line calls: one of a group has two words."""
    first, _, rest = words.partition(" ")
    both = f"{first} {rest.partition(' ')[0]}"
    return both if both in known else first


def test_every_command_teaches_by_examples() -> None:
    assert set(EXAMPLES) == {"", *commands()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_fits_and_cuts_nothing(name: str, place: Path) -> None:
    assert place.is_dir()
    said = run(*name.split(), "--help").stdout

    assert_fits(said)
    assert "..." not in "".join(line for line in said.splitlines() if not line.startswith("Usage:")).replace(",...", "")
    assert f"  stopcause {EXAMPLES[name][0][0]}" in said


def test_each_command_has_one_line_of_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = run("--help").stdout.partition("Start here:")[2].partition("Examples:")[0]

    lines = [line for line in said.splitlines() if line.startswith("  ")]
    assert len(lines) == sum(" " not in name for name in commands())


def test_examples_name_only_options_that_there_are() -> None:
    known = commands()
    for name, told in EXAMPLES.items():
        for example, _about in told:
            assert example.startswith(name)
            assert set(re.findall(r" (--[a-z-]+)", example)) <= known[called(example, known)], example


# Hints


def test_hints_name_only_commands_that_there_are() -> None:
    known = commands()
    text = "".join(path.read_text("utf-8") for path in Path(__file__).parent.rglob("screens*/*.txt"))
    hints = re.findall(r"^(?:2> )?  stopcause (\w.*)", text, re.MULTILINE)

    names = {called(hint, known) for hint in hints}
    assert {"explain", "waiting", "ingest", "runs", "rules", "triage ack"} <= names <= known.keys()
    for hint in hints:
        assert set(re.findall(r" (--[a-z]+)", hint)) <= known[called(hint, known)], hint


def test_no_screen_has_more_than_three_hints_in_a_row() -> None:
    for path in SCREENS.glob("*.txt"):
        assert not re.search(r"(?:^2>   stopcause .*\n){4}", path.read_text("utf-8"), re.MULTILINE), path.name


def test_there_is_no_screen_that_nothing_writes() -> None:
    made = {*WITHOUT_STORE, *WITH_STORE, "demo", "replay-miss", "policy-faults", "policy-folder"}

    assert {path.stem for path in SCREENS.glob("*.txt")} == made
