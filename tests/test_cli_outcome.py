"""`stopcause outcome`: exit codes, what goes where, and that a wrong word is told before anything is read."""

from __future__ import annotations

import json
import os
import pwd
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from stopcause import cli_outcome, cli_shared
from stopcause.pipeline.ingest import ingest
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.policy_file import load_policy
from stopcause.render.door import Door

NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
RUN = (
    '{"schema":"stopcause/1","kind":"run.stopped","run_id":"9f3a1c","at":"2026-11-28T08:00:00Z","stop_cause":"natural"}'
)
POLICY = '[[agents]]\ncontract = "invoice"\n[contracts.invoice]\nissuers = ["human:user:ada"]\n'

program = typer.Typer(cls=Door, rich_markup_mode=None)
cli_outcome.add_to(program)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cli_shared, "clock", lambda: NOW)
    (tmp_path / "policy.toml").write_text(POLICY, "utf-8")
    (tmp_path / "run.jsonl").write_text(RUN + "\n", "utf-8")
    path = tmp_path / "s.duckdb"
    with Keeper.open(path, load_policy(tmp_path / "policy.toml"), NOW) as keeper:
        ingest([tmp_path / "run.jsonl"], keeper, NOW)
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program, ["outcome", *arguments])


def say(store: Path, *arguments: str, word: str = "confirm") -> Result:
    given = {"--contract": "invoice", "--reason": "seen", "--actor": "user:ada"}
    pairs = dict(zip(arguments[::2], arguments[1::2], strict=True))
    options = [part for pair in (given | pairs).items() for part in pair if pair[1]]
    return run(word, "9f3a", *options, "--store", str(store))


def said(result: Result) -> dict[str, Any]:
    (line,) = result.stdout.splitlines()
    return dict(json.loads(line))


def test_a_pipe_gets_one_object(store: Path) -> None:
    result = say(store)

    it = said(result)
    assert (result.exit_code, result.stderr) == (0, "")
    assert it.pop("outcome_id")
    assert it == {
        "run_id": "9f3a1c",
        "attempt": 1,
        "polarity": "confirmed",
        "contract": "invoice",
        "check": None,
        "issuer": "human:user:ada",
        "before": {"verdict": "FALSE_COMPLETE", "reason": "receipt_missing"},
        "after": {"verdict": "VERIFIED_COMPLETE", "reason": "receipt"},
        "changed": True,
        "why": None,
        "notes": [],
    }


def test_a_terminal_gets_the_verdict_before_and_after(store: Path) -> None:
    say(store)
    result = say(store, "-o", "table", word="refute")

    assert result.stdout.splitlines() == [
        "Recorded  human:user:ada refutes contract invoice",
        "of        run 9f3a1c, attempt 1",
        "before    V VERIFIED_COMPLETE  receipt",
        "after     C FALSE_COMPLETE     receipt_refuted",
    ]
    assert " explain 9f3a1c" in result.stderr


def test_a_verdict_that_stays_says_why(store: Path) -> None:
    result = say(store, "--actor", "user:bob", "-o", "table")

    assert result.exit_code == 0  # it is recorded
    assert result.stdout.splitlines()[-3:] == [
        "after     C FALSE_COMPLETE     receipt_missing, unchanged",
        "Why       Contract invoice takes the word of human:user:ada only. Add",
        "          human:user:bob to its issuers where that person's word counts.",
    ]


def test_another_contract_is_warned_of_on_stderr(store: Path) -> None:
    result = say(store, "--contract", "invioce")

    assert result.stderr == "Note: run 9f3a1c is under contract invoice, not invioce.\n"
    assert said(result)["changed"] is False


def test_without_an_actor_it_is_who_is_logged_in(store: Path) -> None:
    name = pwd.getpwuid(os.geteuid()).pw_name

    assert said(say(store, "--actor", ""))["issuer"] == f"human:user:{name}"


@pytest.mark.parametrize(
    ("option", "text", "fault"),
    [
        ("--contract", "two words", "(no spaces)"),
        ("--reason", "it is there", "(no spaces)"),
        ("--reason", "ada@example.com", "write a code"),
        ("--check", "a,b", "(no spaces)"),
        ("--subject", "x" * 201, "1 to 200"),
        ("--ticket", "über", "A-Z a-z"),
        ("--actor", "ada", "write user:NAME"),
        ("--actor", "bot:nightly", "write user:NAME"),
        ("--actor", "user:", "write user:NAME"),
        ("--actor", "user:a b", "write user:NAME"),
    ],
)
def test_a_wrong_word_names_its_option_and_is_not_repeated(store: Path, option: str, text: str, fault: str) -> None:
    result = say(store, option, text)

    last = result.stderr.splitlines()[-1]
    assert result.exit_code == 2
    assert f"Invalid value for {option}: " in last
    assert fault in last
    assert text not in last or text in ("ada", "user:")
    with Keeper.open(store, load_policy(store.parent / "policy.toml"), NOW) as keeper:
        assert keeper.store.counts().records == 1


@pytest.mark.parametrize("missing", ["--contract", "--reason"])
def test_what_has_to_be_said(store: Path, missing: str) -> None:
    result = say(store, missing, "")

    assert result.exit_code == 2
    assert f"Missing option '{missing}'" in result.stderr


def test_a_run_that_is_not_there(store: Path) -> None:
    result = run("confirm", "zz", "--contract", "invoice", "--reason", "seen", "--store", str(store))

    assert result.exit_code == 2
    assert result.stderr.startswith("stopcause: No run is called 'zz'")


def test_an_empty_store(tmp_path: Path) -> None:
    result = run("refute", "zz", "--contract", "c", "--reason", "r", "--store", str(tmp_path / "none.duckdb"))

    assert result.exit_code == 2
    assert "has no records yet" in result.stderr
