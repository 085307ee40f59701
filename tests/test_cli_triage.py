"""`triage` on the command line: who is asked what, what is refused, what is printed. With real stores and processes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stopcause import cli, cli_shared
from stopcause.render.pen import WIDTH, cells
from stopcause.store.lock import StoreLock
from tests.support.machine import a_terminal
from tests.support.screens import assert_golden, screen_text
from tests.support.stops import DAY, HOUR, NOW, filled, stop, stops, wait

SCREENS = Path(__file__).parent / "screens_triage"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The time that every command takes for the present; a test may move it."""
    times = [NOW]
    monkeypatch.setattr(cli_shared, "clock", lambda: times[-1])
    return times


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[datetime]) -> Path:
    """A store of four groups, short paths, and the program under its bare name."""
    assert clock
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOPCAUSE_STORE", "s.duckdb")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.argv", ["stopcause"])
    policy = '[[agents]]\nstage = "enforce"\nowner = "team:x"\ncontract = "c"\n'
    (tmp_path / "policy.toml").write_text(policy, "utf-8")
    lines = [
        [stop("old", 9 * DAY, "model_failure", agent="other")],
        [line for day in range(1, 8) for line in stops(2, day * DAY + 2 * HOUR, agent="crawl-1")],
        stops(11, agent="crawl-1", agent_version="2.4.1"),
        stops(4, 2 * HOUR, name="c2", agent="crawl-2"),
        stops(2, 3 * HOUR, name="f", cause="tool_failure", agent="pay", error={"type": "ToolError", "tool": "post"}),
        [wait("w", agent="pay", deadline=(NOW + 2 * HOUR).isoformat())],
    ]
    with filled(*lines, path=tmp_path / "s.duckdb"):
        pass
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def name_of(run_id: str) -> str:
    (told,) = objects(run("explain", run_id))
    return str(told["group"])


def objects(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def states() -> dict[str, dict[str, Any]]:
    """What holds of each group, by one of its runs."""
    return {each["run_id"]: each["group_state"] for each in objects(run("runs", "--attention", "--all"))}


CRAWL, OTHER, FAILED = "r-3600-0", "c2-7200-0", "f-10800-0"


def test_an_acknowledgement_hides_a_group_and_says_so(place: Path) -> None:
    assert place.is_dir()
    (told,) = objects(run("triage", "ack", name_of(CRAWL)[-4:], "--reason", "known_cause", "--actor", "user:kim"))
    left = objects(run("runs", "--attention"))

    assert (told["action"], told["reason_code"], told["actor"]) == ("acknowledged", "known_cause", "user:kim")
    assert (told["until"], told["runs"], told["ended_by_wait"]) == ("2026-12-07T08:00:00Z", 25, None)
    assert {each["agent"] for each in left} == {"crawl-2", "pay"}
    assert "Hidden: 1 acknowledged (--all)" in run("runs", "--attention", "-o", "table").stdout
    assert states()[CRAWL]["triage"]["actor"] == "user:kim"
    assert run("runs", "--attention", "--agent", "crawl-1", "--fail-on", "STUCK").exit_code == 0
    assert run("runs", "--attention", "--agent", "crawl-1", "--fail-on", "STUCK", "--all").exit_code == 1


def test_a_line_in_a_pipe_says_what_holds_of_its_group(place: Path) -> None:
    assert place.is_dir()
    told = {each["run_id"]: each for each in objects(run("runs", "--attention"))}

    assert len(told) == 18
    assert told[CRAWL]["group_state"] == {
        "new": False,
        "escalating": 5.5,
        "regressed": None,
        "owner": "team:x",
        "hidden": False,
        "triage": None,
    }
    assert told[FAILED]["group_state"]["new"]


def test_who_says_it_is_the_login_unless_another_is_named(place: Path) -> None:
    assert place.is_dir()
    (told,) = objects(run("triage", "assign", name_of(CRAWL), "--owner", "team:y"))

    assert re.fullmatch(r"user:[A-Za-z0-9._-]+", told["actor"])
    assert (told["action"], told["owner"]) == ("assigned", "team:y")
    assert states()[CRAWL]["owner"] == "team:y"


@pytest.mark.parametrize("length", [4, 6, 12])
def test_a_group_is_named_by_its_end_and_several_at_once(length: int, place: Path) -> None:
    assert place.is_dir()
    names = [name_of(each)[-length:] for each in (CRAWL, OTHER, CRAWL)]
    told = objects(run("triage", "ack", *names, "--reason", "x"))

    assert len(told) == 2
    assert {each["agent"] for each in objects(run("runs", "--attention"))} == {"pay"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ack", "--reason", "x"), "name a group"),
        (("ack", "GROUP"), "say why, in one word: --reason known_cause"),
        (("ack", "GROUP", "--agent", "x", "--reason", "x"), "either name groups, or choose them"),
        (("ack", "ffff", "--reason", "x"), "No group is called 'ffff'. `runs --attention --all` lists them."),
        (("ack", "GROUP", "--reason", "two words"), "reason_code does not have the shape"),
        (("snooze", "GROUP", "--reason", "x"), "nothing is hidden for ever: say --until 4h, or --count 10"),
        (("snooze", "GROUP", "--until", "4h"), "say why"),
        (("snooze", "GROUP", "--until", "soon", "--reason", "x"), "write 30m, 4h or 2d"),
        (("snooze", "GROUP", "--until", "31d", "--reason", "x"), "at most 30 days"),
        (("snooze", "GROUP", "--until", "0s", "--reason", "x"), "is over already"),
        (("snooze", "GROUP", "--until", "2026-11-30T07:59:00Z", "--reason", "x"), "is over already"),
        (("snooze", "GROUP", "--count", "0", "--reason", "x"), "greater than or equal to 1"),
        (("resolve", "GROUP"), "say what mended it: --in-version, --ticket or --reason"),
        (("resolve", "GROUP", "--in-version", "9.9"), "had version 9.9; the newest are 2.4.1, 1.0"),
        (("resolve", "GROUP", "--unreleased", "--reason", "x"), "only beside --in-version"),
        (("assign", "GROUP"), "Missing option"),
        (("ack", "--agent", "crawl-*", "--reason", "x"), "nobody is here to be asked: say --yes"),
        (("ack", "--verdict", "STUK", "--reason", "x"), "no verdict is called 'STUK'"),
    ],
)
def test_what_is_refused_exits_with_2_and_keeps_nothing(arguments: tuple[str, ...], said: str, place: Path) -> None:
    name = name_of(CRAWL)
    result = run("triage", *(name if each == "GROUP" else each for each in arguments))

    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert b"triage.updated" not in b"".join(path.read_bytes() for path in (place / "s.duckdb.journal").iterdir())


def test_a_version_that_is_still_to_come_has_to_be_said_so(place: Path) -> None:
    assert place.is_dir()
    (told,) = objects(run("triage", "resolve", name_of(CRAWL), "--in-version", "9.9", "--unreleased"))
    assert told["in_version"] == "9.9"


def test_a_snooze_goes_no_further_than_a_wait_that_is_due(place: Path) -> None:
    assert place.is_dir()
    said = run("triage", "snooze", name_of("w"), "--until", "2d", "--reason", "x", "-o", "table", "--utc").stdout

    assert "only until 2026-11-30 10:00 +00:00, when a wait of it is due" in said


def test_what_was_said_can_be_taken_back(place: Path) -> None:
    assert place.is_dir()
    name = name_of(CRAWL)
    for action in ("ack", "--reason"), ("resolve", "--ticket"):
        objects(run("triage", action[0], name, action[1], "x"))
        assert states()[CRAWL]["hidden"]
        (told,) = objects(run("triage", "ack", name, "--reopen"))
        assert told["action"] == "reopened"
        assert states()[CRAWL]["triage"] is None


# By a filter


def test_a_filter_says_it_of_every_group_that_it_matches(place: Path) -> None:
    assert place.is_dir()
    told = objects(run("triage", "ack", "--verdict", "stuck", "--agent", "crawl-*", "--reason", "x", "--yes"))
    nothing = run("triage", "ack", "--verdict", "stuck", "--reason", "x", "--yes")

    assert {each["group"] for each in told} == {name_of(CRAWL), name_of(OTHER)}
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr.startswith("No group matches")
    assert len(objects(run("triage", "resolve", "--verdict", "stuck", "--ticket", "x", "--yes"))) == 2


def test_a_filter_looks_as_far_back_as_it_is_told(place: Path) -> None:
    assert place.is_dir()
    assert len(objects(run("triage", "ack", "--verdict", "STUCK", "--since", "30m", "--reason", "x", "--yes"))) == 1


@pytest.mark.parametrize(("answer", "code", "kept"), [("y", 0, 2), ("n", 1, 0)])
def test_on_a_terminal_a_filter_shows_what_it_chose_and_asks(answer: str, code: int, kept: int, place: Path) -> None:
    """The store is free while somebody thinks: it is opened here in between."""
    master, slave = a_terminal()
    command = [sys.executable, "-m", "stopcause", "triage", "ack", "--agent", "crawl-*", "--since", "3650d"]
    process = subprocess.Popen(
        [*command, "--reason", "x"], stdin=slave, stderr=slave, stdout=subprocess.PIPE, cwd=place, text=True
    )
    os.close(slave)
    said = ""
    with contextlib.suppress(OSError):
        while "[y/N]" not in said:
            said += os.read(master, 1000).decode()
    StoreLock(place / "s.duckdb").release()
    os.write(master, f"{answer}\n".encode())
    out = process.communicate(timeout=60)[0]
    os.close(master)

    assert "Acknowledge 2 groups, " in said
    assert "crawl-2" in said
    assert process.returncode == code
    assert len(out.splitlines()) == kept


# Two at once


def test_two_at_once_both_land_or_one_is_told_who_is_there(place: Path) -> None:
    names = [name_of(CRAWL), name_of(OTHER)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "stopcause", "triage", "ack", name, "--reason", "x"],
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    said = [(each.communicate(timeout=60), each.returncode) for each in processes]
    with filled(path=place / "s.duckdb") as keeper:
        lines = keeper.store.ask("SELECT line FROM records WHERE kind = 'triage.updated'").rows

    landed = {json.loads(line)["group"] for (line,) in lines}
    assert landed == {name for name, (_, code) in zip(names, said, strict=True) if code == 0}
    assert landed
    for (out, err), code in said:
        assert code == 0 or (code, out) == (2, "")
        assert code == 0 or re.search(r"s\.duckdb is in use by .*(--store PATH)", " ".join(err.split()))


def test_while_another_process_has_the_store_it_is_refused(place: Path) -> None:
    lock = StoreLock(place / "s.duckdb")
    try:
        result = run("triage", "ack", "0000", "--reason", "x")
    finally:
        lock.release()

    assert result.exit_code == 2
    assert f"is in use by process {os.getpid()}" in result.stderr


# Screens


def screen_of(*arguments: str) -> str:
    return screen_text(arguments, run(*arguments, "--utc")) + "\n"


def assert_is(name: str, got: str) -> None:
    assert_golden(SCREENS / f"{name}.txt", got)
    for line in got.splitlines():
        assert line.startswith("$ ") or cells(line.removeprefix("2> ")) <= WIDTH, line


def test_screens_of_a_morning(place: Path, clock: list[datetime]) -> None:
    assert place.is_dir()
    crawl, other, failed, waits = (name_of(each)[-4:] for each in (CRAWL, OTHER, FAILED, "w"))
    table = ("-o", "table", "--actor", "user:kim")
    told = screen_of("runs", "--attention", "-o", "table")
    told += screen_of("triage", "ack", crawl, "--reason", "known_cause", *table)
    told += screen_of("triage", "snooze", other, waits, "--until", "4h", "--reason", "deploy", *table)
    told += screen_of("triage", "resolve", failed, "--ticket", "OPS-12", *table)
    told += screen_of("triage", "assign", failed, crawl, "--owner", "team:data", *table)
    told += screen_of("runs", "--attention", "-o", "table")
    told += screen_of("runs", "--attention", "--all", "-o", "table")
    told += screen_of("explain", crawl, "-o", "table")
    clock.append(NOW + 3 * HOUR)
    Path("more.jsonl").write_bytes(
        stop(
            "late",
            -2 * HOUR,
            "tool_failure",
            agent="pay",
            agent_version="1.1",
            error={"type": "ToolError", "tool": "post"},
        )
    )
    assert run("ingest", "more.jsonl").exit_code == 0
    told += screen_of("runs", "--attention", "-o", "table")
    told += screen_of("explain", failed, "-o", "table")

    assert_is("morning", told)


def test_the_screen_of_many_groups_says_how_many_more(place: Path) -> None:
    lines = [stop(f"m{i}", HOUR + timedelta(seconds=i), agent=f"many-{i}") for i in range(100)]
    with filled(lines, path=place / "s.duckdb"):
        pass
    told = screen_of("runs", "--attention", "-o", "table")
    everything = run("runs", "--attention", "--all", "-o", "table").stdout

    assert "... and 83 more groups, " in told
    assert len(told.splitlines()) < 60
    assert "more groups" not in everything
    assert everything.count(" many-") == 100
