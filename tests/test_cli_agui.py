"""`stopcause agui`: screens byte for byte (`SCREENS=write pytest FILE` writes them), rows, exit codes, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stopcause import cli, cli_shared
from stopcause.classifier.verdict import Verdict
from stopcause.render.pen import WIDTH, cells
from stopcause.render.screen import Screen, screen
from stopcause.resources import data_folder
from tests.support.screens import assert_golden, screen_text

ROOT = Path(__file__).parents[1]
SCREENS = Path(__file__).parent / "screens_agui"
RECORDINGS = data_folder("fixtures") / "agui" / "recordings"
NAMES = sorted(path.stem for path in RECORDINGS.iterdir())
NOW = ("--now", "2026-11-30T12:00:00Z")
FINDING = {"rule", "name", "side", "level", "fatal", "ids"}


def agui(*arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(cli.app, ["agui", *arguments], input=given)


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def recording(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RECORDINGS / f"{name}.json").read_text("utf-8"))["exchanges"]
    return found


def given_input(folder: Path, value: object) -> str:
    file = folder / "INPUT.json"
    file.write_text(json.dumps(value), "utf-8")
    return str(file)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a terminal, from the folder of the recordings, under the program's bare name."""

    def table(_output: str | None, *, utc: bool = False) -> Screen:
        return screen("table", utc=utc)

    monkeypatch.setattr(cli_shared, "screen_for", table)
    monkeypatch.setattr("sys.argv", ["stopcause"])
    monkeypatch.chdir(RECORDINGS)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("name", NAMES)
def test_a_recording_as_a_terminal_shows_it(name: str) -> None:
    arguments = ("audit", f"{name}.json", *NOW, "--utc")

    result = agui(*arguments)

    assert result.exception is None or isinstance(result.exception, SystemExit)
    got = screen_text(["agui", *arguments], result)
    assert_golden(SCREENS / f"{name}.txt", got)
    assert all(cells(line.removeprefix("2> ")) <= WIDTH for line in got.splitlines()[1:])


@pytest.mark.usefixtures("terminal")
def test_a_refused_input_as_a_terminal_shows_it(tmp_path: Path) -> None:
    partial = next(each["input"] for each in recording("st-partial") if each["input"].get("resume"))
    file = given_input(tmp_path, {**partial, "runId": "r4"})

    result = agui("check", "st-partial.json", "--input", file, *NOW)

    got = screen_text(["agui", "check", "st-partial.json", "--input", "INPUT.json", *NOW], result)
    assert_golden(SCREENS / "check-refused.txt", got)
    assert result.exit_code == 1


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_runs_and_threads_with_the_keys_that_others_script_against(name: str) -> None:
    found = rows(agui("audit", str(RECORDINGS / f"{name}.json"), *NOW))

    runs, threads = ([row for row in found if row["row"] == kind] for kind in ("run", "thread"))
    assert [row["run_id"] for row in runs] == [each["input"]["runId"] for each in recording(name)]
    assert all(set(Verdict._fields) <= row.keys() for row in runs)
    assert [set(row) >= {"thread_id", "thread_verdict", "open"} for row in threads] == [True]
    assert [wait["interrupt_id"] for wait in threads[0]["waits"]] == threads[0]["open"]
    ours = [each for row in found for each in row["findings"] if "rule" in each]
    assert ours
    assert all(each.keys() >= FINDING for each in ours)


def test_a_list_of_exchanges_a_stream_and_standard_input_say_the_same(tmp_path: Path) -> None:
    first = recording("st-partial")[0]
    (tmp_path / "list.json").write_text(json.dumps([first]), "utf-8")
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in first["events"])
    (tmp_path / "stream.sse").write_text(stream, "utf-8")
    events = "".join(f"{json.dumps(event)}\n" for event in first["events"])

    told = [
        rows(agui("audit", str(tmp_path / "list.json"), *NOW)),
        rows(agui("audit", str(tmp_path / "stream.sse"), *NOW)),
        rows(agui("audit", "-", *NOW, given=events.encode())),
    ]

    verdicts = [[(row["row"], row.get("verdict"), row.get("open")) for row in each] for each in told]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert verdicts[0][0][1] == "WAITING_UNROUTED"


def test_the_policy_s_routes_name_who_answers(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[routes]]\nmatch = { kind = "external" }\nowner = "team:mail"\ndue = "30m"\n', "utf-8")

    found = rows(agui("audit", str(RECORDINGS / "st-partial.json"), *NOW, "--policy", str(policy)))

    assert found[-1]["thread_verdict"] == "WAITING"
    assert {wait["owner"] for wait in found[-1]["waits"]} == {"team:mail"}


def test_a_broken_must_ends_with_1_and_the_other_ends_with_0() -> None:
    assert agui("audit", str(RECORDINGS / "lg-one-unknown.json"), *NOW).exit_code == 1
    assert agui("audit", str(RECORDINGS / "st-full.json"), *NOW).exit_code == 0
    assert agui("audit", str(RECORDINGS / "st-full.json"), *NOW, "--fail-on", "FALSE_COMPLETE").exit_code == 1


def test_files_are_histories_of_their_own() -> None:
    found = rows(agui("audit", *(str(RECORDINGS / f"{name}.json") for name in ("st-partial", "st-full")), *NOW))

    threads = [row for row in found if row["row"] == "thread"]
    assert [row["thread_verdict"] for row in threads] == ["WAITING_UNROUTED", "FALSE_COMPLETE"]
    assert [Path(row["file"]).stem for row in threads] == ["st-partial", "st-full"]


def test_an_input_that_answers_all_may_be_sent(tmp_path: Path) -> None:
    answered = next(each["input"] for each in recording("st-full") if each["input"].get("resume"))
    file = given_input(tmp_path, {**answered, "runId": "r4"})

    result = agui("check", str(RECORDINGS / "st-partial.json"), "--input", file, *NOW)

    assert result.exit_code == 0
    assert rows(result)[0]["refused"] is False
    assert rows(result)[0]["row"] == "check"


def test_one_that_leaves_something_open_is_refused(tmp_path: Path) -> None:
    partial = next(each["input"] for each in recording("st-partial") if each["input"].get("resume"))
    file = given_input(tmp_path, {**partial, "runId": "r4"})

    result = agui("check", str(RECORDINGS / "st-partial.json"), "--input", file, *NOW)

    (row,) = rows(result)
    assert result.exit_code == 1
    assert row["refused"] is True
    assert [each["name"] for each in row["findings"] if each["level"] == "MUST"] == ["UNCOVERED"]
    assert all(each.keys() >= FINDING for each in row["findings"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"hello\n", ""),
    ],
)
def test_what_is_no_stream_is_an_error_that_says_what_to_do(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "x.sse"
    file.write_bytes(content)

    result = agui("audit", str(file))

    assert result.exit_code == 2
    assert str(file) in result.stderr
    assert says in result.stderr
    assert b"hello" not in result.stderr_bytes


def test_no_such_file_and_no_json_input(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{", "utf-8")

    missing = agui("audit", str(tmp_path / "none.sse"))
    broken = agui("check", str(RECORDINGS / "st-full.json"), "--input", str(tmp_path / "no.json"))

    assert (missing.exit_code, broken.exit_code) == (2, 2)
    assert "no such file" in missing.stderr
    assert "is no JSON" in broken.stderr


def test_help_does_not_wait_for_the_room() -> None:
    code = "import sys; from stopcause import cli; print('stopcause.agui' in sys.modules, 'jsonschema' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)

    assert said.stdout.strip() == "False False"


def test_there_is_no_screen_that_nothing_writes() -> None:
    assert {path.stem for path in SCREENS.iterdir()} == {*NAMES, "check-refused"}


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    result = agui("audit", str(tmp_path / "none.sse"), str(RECORDINGS / "st-full.json"), *NOW)

    assert result.exit_code == 2
    assert "none.sse: no such file" in result.stderr
    assert rows(result)[-1]["thread_verdict"] == "FALSE_COMPLETE"


@pytest.mark.parametrize("content", ["", "[]", ": keep-alive\n\n"])
def test_a_file_without_a_run_is_told(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.sse"
    file.write_text(content, "utf-8")

    result = agui("audit", str(file))

    assert (result.exit_code, result.stdout) == (0, "")
    assert "no run of AG-UI in it; for a file of records there is `classify`" in result.stderr


def test_an_input_may_be_piped_in() -> None:
    partial = next(each["input"] for each in recording("st-partial") if each["input"].get("resume"))
    given = json.dumps({**partial, "runId": "r4"}).encode()

    result = agui("check", str(RECORDINGS / "st-partial.json"), "--input", "-", *NOW, given=given)

    assert rows(result)[0]["refused"] is True


def test_an_exchange_that_tells_no_time_was_when_it_was_sent(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[routes]]\nmatch = { kind = "external" }\nowner = "team:mail"\ndue = "30m"\n', "utf-8")
    sent = {**recording("st-partial")[0], "sent_at": "2026-11-30T11:00:00Z"}
    (tmp_path / "x.json").write_text(json.dumps([sent]), "utf-8")

    (*_, thread) = rows(agui("audit", str(tmp_path / "x.json"), *NOW, "--policy", str(policy)))

    assert thread["thread_verdict"] == "WAITING_UNROUTED"
    assert thread["waits"][0]["missing"] == ["overdue"]


@pytest.mark.usefixtures("terminal")
def test_of_a_long_thread_the_last_runs_are_shown_and_all_where_they_are_asked_for(tmp_path: Path) -> None:
    first = recording("st-full")[2]
    runs = [json.dumps(first).replace('"r3"', f'"run-{number}"') for number in range(30)]
    (tmp_path / "long.json").write_text(f"[{','.join(runs)}]", "utf-8")

    few, everything = (agui("audit", str(tmp_path / "long.json"), *more).stdout for more in ((), ("--all",)))

    assert "10 earlier runs (--all)" in few
    assert "run-0 " not in few
    assert "run-0 " in everything


def test_events_of_unknown_types_are_counted(tmp_path: Path) -> None:
    (first, *_) = recording("st-full")
    strange = {"type": "SOMETHING_NEW", "payload": {}}
    events = [first["events"][0], strange, strange, *first["events"][1:]]
    (tmp_path / "x.json").write_text(json.dumps([{**first, "events": events}]), "utf-8")

    (run, _thread) = rows(agui("audit", str(tmp_path / "x.json"), *NOW))

    assert (run["ending"], run["events"], run["unrecognised"]) == ("interrupt", len(events), 2)


def test_a_contract_may_be_chosen_in_place_of_what_a_stream_declares() -> None:
    file = str(RECORDINGS / "lg-one-unknown.json")

    def levels(*arguments: str) -> dict[str, str]:
        found = rows(agui("audit", file, *NOW, *arguments))
        of_runs = [each for row in found if row["row"] == "run" for each in row["findings"]]
        return {each["name"]: each["level"] for each in of_runs if "rule" in each}

    declared, chosen = levels(), levels("--mode", "spec-1.0")
    assert declared["UNCOVERED_MISHANDLED"] == "MUST"  # before 1.0 only a refusal is right
    assert "UNCOVERED_MISHANDLED" not in chosen  # by 1.0 it could not tell what was open
    assert {row["mode"] for row in rows(agui("audit", file, "--mode", "spec-1.0")) if row["row"] == "run"} == {
        "spec-1.0"
    }


def test_a_contract_that_there_is_not_is_named() -> None:
    result = agui("audit", str(RECORDINGS / "st-full.json"), "--mode", "2.0")

    assert result.exit_code == 2
    assert "spec-1.0, legacy-outcome, legacy-custom" in result.stderr


def untimed() -> list[dict[str, Any]]:
    """A question that expires at ten, and its answer; nothing tells when either was sent."""
    asked = {"id": "i-1", "reason": "confirmation", "expiresAt": "2026-11-30T10:00:00Z"}
    answer = {"interruptId": "i-1", "status": "resolved", "payload": True}
    told: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        ("r1", {}, {"type": "interrupt", "interrupts": [asked]}),
        ("r2", {"resume": [answer]}, {"type": "success"}),
    )
    return [
        {
            "input": (run := {"threadId": "t1", "runId": name, "protocolVersion": "1.0"}) | {"messages": []} | said,
            "events": [{"type": "RUN_STARTED", **run}, {"type": "RUN_FINISHED", **run, "outcome": end}],
        }
        for name, said, end in told
    ]


def test_an_answer_is_judged_as_of_now_where_somebody_says_when_that_is(tmp_path: Path) -> None:
    file = tmp_path / "untimed.json"
    file.write_text(json.dumps(untimed()), "utf-8")

    def names(*arguments: str) -> set[str]:
        found = rows(agui("audit", str(file), *arguments))
        return {each["code"] for row in found if row["row"] == "run" for each in row["findings"]}

    judged = {"expired_answer", "expiry_not_judged"}
    assert names() & judged == {"expiry_not_judged"}
    assert names("--now", "2026-11-30T09:00:00Z") & judged == set()
    assert names("--now", "2026-11-30T11:00:00Z") & judged == {"expired_answer"}


@pytest.mark.parametrize("tail", ["", "\n"], ids=["at its end", "with a newline"])
def test_half_an_exchange_is_named_and_nobody_s_fault(tail: str, tmp_path: Path) -> None:
    whole, half = (json.dumps(each) for each in recording("st-full")[:2])
    file = tmp_path / "cut.jsonl"
    file.write_text(f"{whole}\n{half[: len(half) // 2]}{tail}", "utf-8")

    result = agui("audit", str(file), *NOW)
    told = rows(result)
    checked = agui("check", str(file), "--input", given_input(tmp_path, recording("st-full")[1]["input"]))

    assert (result.exit_code, checked.exit_code) == (2, 2)
    assert "line 2: no whole exchange" in result.stderr
    assert [row["run_id"] for row in told if row["row"] == "run"] == ["r1"]
    assert not [each for row in told for each in row["findings"] if each.get("level") == "MUST"]
    assert "give the history without a gap" in checked.stderr
