from __future__ import annotations

import logging
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stopcause.agui import findings, guard_state, inputs, interrupts
from stopcause.agui.guard import Check, ResumeGuard, refusal
from stopcause.agui.values import Begun, Interrupt, RunSeen
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.errors import ConfigurationError, MissingExtraError, ResumeRefusedError
from stopcause.receipts.vocabulary import ApprovalKind, StopCause
from tests.agui.asking import NOW, asks, given, gives_up, says

ROOT = Path(__file__).parents[2]
PROGRAM = "tests.agui.guard_program"


def names(check: Check) -> frozenset[str]:
    return findings.names(check.findings)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guard.db"


def paused(path: Path | None, *ids: str, **more: Any) -> ResumeGuard:  # noqa: ANN401 - as ResumeGuard
    guard = ResumeGuard(path, **more)
    guard.saw(asks("t1", "r1", *(ids or ("i-1",))))
    return guard


def program(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


# What outlives a process ----------------------------------------------------------------------------------------------


def test_a_new_guard_on_the_same_file_refuses_the_same(path: Path) -> None:
    first = paused(path, "i-1", "i-2").check(given("t1", "r2", says("i-1")), NOW)
    second = ResumeGuard(path).check(given("t1", "r2", says("i-1")), NOW)
    assert second == first
    assert names(second) == {"UNCOVERED"}


def test_an_answer_is_known_after_a_kill_between_sending_it_and_its_stream(path: Path) -> None:
    paused(path)
    with program("send-and-hang", path) as process:
        assert line(process) == "sent"
        process.send_signal(signal.SIGKILL)
    guard = ResumeGuard(path)
    assert names(guard.check(given("t1", "r3", says("i-1", approved=False)), NOW)) == {
        "ANSWER_CHANGED",
        "ANSWER_UNDER_WAY",
    }
    again = guard.check(given("t1", "r3", says("i-1")), NOW)
    assert not again.refused
    assert "REPLAY" in names(again)


def test_of_two_processes_that_answer_differently_one_sends(path: Path) -> None:
    paused(path)
    with program("answer", path, "r2", "true") as one, program("answer", path, "r3", "false") as other:
        assert [line(one), line(other)] == ["checked", "checked"]
        for process in (one, other):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert sorted([line(one), line(other)]) == ["ANSWER_CHANGED", "sent"]


def test_processes_that_begin_at_once_make_one_file(path: Path) -> None:
    processes = [program("saw", path, f"t{number}") for number in range(4)]
    for process in processes:
        with process:
            assert line(process) == "saw"
    guard = ResumeGuard(path)
    assert [guard.check(given(f"t{number}", "r2"), NOW).refused for number in range(4)] == [True] * 4
    assert [each.name for each in path.parent.iterdir() if "." in each.name and each.name.startswith(path.name)] != []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_guard_that_was_made_before_a_fork_works_after_it(path: Path) -> None:
    script = "import os, sys; from tests.agui.guard_program import forked; forked(sys.argv[1])"
    ran = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.stdout.split() == ["child", "True", "left-alone", "1", "parent", "True"], ran.stderr
    assert ResumeGuard(path).check(given("t2", "r2"), NOW).refused


def test_threads_may_use_one_guard_at_once(path: Path) -> None:
    guard = ResumeGuard(path)

    def work(number: int) -> None:
        guard.saw(asks(f"t{number}", "r1", "i-1"))
        guard.sent(given(f"t{number}", "r2", says("i-1")))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    checks = [guard.check(given(f"t{number}", "r3", gives_up("i-1")), NOW) for number in range(8)]
    assert all("ANSWER_CHANGED" in names(check) for check in checks)


def test_the_file_is_its_owners_alone(path: Path) -> None:
    guard = paused(path / "deep" / "down.db")
    assert not guard.check(given("t1", "r2", says("i-1")), NOW).refused
    files = [*(path / "deep").iterdir()]
    assert files
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


# Files in trouble -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"SQLite format 3\x00", bytes(range(256)) * 32], ids=["empty", "json", "head", "bytes"]
)
def test_a_file_that_is_none_is_refused_and_left_as_it_is(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    guard = paused(path)
    check = guard.check(given("t9", "r1"), NOW)
    assert check.refused
    assert names(check) == {"GUARD_STATE_UNREADABLE"}
    assert path.read_bytes() == content
    assert [record.message for record in caplog.records if "Move it away" in record.message]


def test_trouble_is_logged_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_bytes(b"no database")
    guard = ResumeGuard(path)
    for _ in range(5):
        guard.check(given("t1", "r1"), NOW)
    assert len(caplog.records) == 1
    assert caplog.records[0].levelno == logging.ERROR


def test_nothing_is_sent_that_cannot_be_kept(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(ResumeRefusedError) as caught:
        ResumeGuard(path).sent(given("t1", "r1", says("i-1")))
    assert [each.name for each in caught.value.findings] == ["GUARD_STATE_UNREADABLE"]


def test_a_host_may_choose_to_go_on_and_is_told_each_time(path: Path) -> None:
    path.write_bytes(b"")
    guard = ResumeGuard(path, on_unreadable="allow")
    first = guard.check(given("t1", "r1"), NOW)
    assert not first.refused
    assert names(first) == {"GUARD_STATE_UNREADABLE"}
    guard.saw(asks("t1", "r1", "i-1"))
    assert names(guard.check(given("t1", "r2"), NOW)) == {"GUARD_STATE_UNREADABLE", "SILENT_CONTINUE"}
    guard.sent(given("t1", "r2", says("i-1")))
    assert "ANSWER_CHANGED" in names(guard.check(given("t1", "r3", gives_up("i-1")), NOW))


def test_the_old_channel_does_not_answer_a_run_that_asks_by_an_outcome_too() -> None:
    guard = ResumeGuard()
    by_both = tuple(Interrupt(f"i-{each}", ApprovalKind.TOOL_CALL, each) for each in (Channel.OUTCOME, Channel.CUSTOM))
    guard.saw(asks("t1", "r1")._replace(interrupts=by_both))
    old = {**given("t1", "r2"), "forwardedProps": {"command": {"resume": True}}}
    assert names(guard.check(old, NOW)) == {"SILENT_CONTINUE"}
    with pytest.raises(ResumeRefusedError):
        guard.sent(old)
    assert len(guard.thread("t1").open()) == 2


def test_a_wait_of_the_clients_own_is_answered_by_a_message() -> None:
    guard = ResumeGuard()
    wait = Interrupt("tc-1", ApprovalKind.INPUT_REQUIRED, Channel.TOOL, "tc-1")
    guard.saw(asks("t1", "r1")._replace(interrupts=(wait,)))
    assert names(guard.check(given("t1", "r2"), NOW)) == {"SILENT_CONTINUE"}
    message = {"id": "m", "role": "tool", "toolCallId": "tc-1", "content": "yes"}
    assert guard.check({**given("t1", "r2"), "messages": [message]}, NOW) == Check(refused=False, findings=())


def test_what_was_seen_while_the_file_was_in_trouble_is_kept_once_it_is_well(path: Path) -> None:
    path.mkdir()
    guard = paused(path)
    assert names(guard.check(given("t1", "r2"), NOW)) == {"GUARD_STATE_UNREADABLE"}
    path.rmdir()
    assert names(guard.check(given("t1", "r2"), NOW)) == {"SILENT_CONTINUE"}
    assert ResumeGuard(path).check(given("t1", "r2"), NOW).refused


def test_more_than_can_wait_for_a_file_is_not_forgotten_in_silence(path: Path) -> None:
    path.mkdir()
    guard = ResumeGuard(path)
    for number in range(1_001):
        guard.saw(asks(f"t{number}", "r1", "i-1"))
    path.rmdir()
    check = guard.check(given("t0", "r2"), NOW)
    assert [(each.name, each.ids) for each in check.findings] == [("GUARD_STATE_UNREADABLE", ("forgot",))]
    assert names(guard.check(given("t1", "r2"), NOW)) == {"SILENT_CONTINUE"}


def test_a_file_that_goes_away_under_a_guard_is_no_fresh_start(path: Path) -> None:
    guard = paused(path)
    assert guard.check(given("t1", "r2"), NOW).refused
    path.unlink()
    check = guard.check(given("t1", "r2"), NOW)
    assert [(each.name, each.ids) for each in check.findings] == [("GUARD_STATE_UNREADABLE", ("replaced",))]


def test_a_file_that_another_process_keeps_is_busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_state, "_BUSY_S", 0.05)
    guard = paused(path)
    with program("keep", path) as process:
        assert line(process) == "kept"
        with pytest.raises(ResumeRefusedError, match="another process"):
            guard.sent(given("t1", "r2", says("i-1")))
        assert not guard.check(given("t1", "r2", says("i-1")), NOW).refused  # reading needs nobody's leave
        process.kill()
    guard.sent(given("t1", "r2", says("i-1")))


# Inputs of any kind ---------------------------------------------------------------------------------------------------


class Model:
    """As a model of the SDK looks from here."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value

    def model_dump(self, *, mode: str, by_alias: bool, exclude_unset: bool) -> dict[str, Any]:
        assert (mode, by_alias, exclude_unset) == ("json", True, True)
        return self._value


class Broken:
    def model_dump(self, **_: object) -> None:
        raise RuntimeError


def test_a_model_of_the_sdk_is_read_like_its_json() -> None:
    guard = paused(None)
    assert guard.check(Model(given("t1", "r2", says("i-1"))), NOW) == Check(refused=False, findings=())
    guard.sent(Model(given("t1", "r2", says("i-1"))))
    assert "ANSWER_CHANGED" in names(guard.check(given("t1", "r3", gives_up("i-1")), NOW))


def deep(levels: int) -> Any:  # noqa: ANN401 - JSON
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [None, 5, "x", [], {}, {"threadId": "t1"}, {"threadId": 1, "runId": "r"}, Broken(), object(), deep(9_000)],
    ids=str.split("none number text list empty half number-as-id broken object deep"),
)
def test_what_is_no_input_is_refused_and_never_raises(value: object) -> None:
    guard = paused(None)
    assert names(guard.check(value, NOW)) == {"INPUT_UNREADABLE"}
    guard.sent(value)


@pytest.mark.parametrize(
    "payload",
    [deep(9_000), {1: {2}}, float("nan"), 10**5_000, "\ud800", {"approved": object()}, ["x"] * 100_000],
    ids=str.split("deep set nan digits surrogate object long"),
)
def test_a_payload_of_any_kind_is_refused_and_never_raises(payload: object) -> None:
    guard = paused(None)
    entry = {"interruptId": "i-1", "status": "resolved", "payload": payload}
    check = guard.check(given("t1", "r2", entry), NOW)
    assert check.refused
    assert names(check) & {"PAYLOAD_SCHEMA_MISMATCH", "PAYLOAD_TOO_LARGE", "INPUT_UNREADABLE"}


def test_answers_beyond_the_cap_are_never_looked_at_and_never_pass() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", *(f"i-{n}" for n in range(interrupts.MOST))))
    answers = [says(f"i-{n % interrupts.MOST}") for n in range(inputs.MOST)]
    check = guard.check(given("t1", "r2", *answers, {"interruptId": "i-0", "status": "resolved", "payload": 5}), NOW)
    assert check.refused
    assert {"INPUT_TOO_LARGE", "RESUME_DUPLICATE"} <= names(check)


def test_a_run_that_is_sent_again_under_its_id_says_the_same_or_is_refused() -> None:
    guard = paused(None)
    guard.sent(given("t1", "r2", says("i-1")))
    assert not guard.check(given("t1", "r2", says("i-1")), NOW).refused
    assert "ANSWER_CHANGED" in names(guard.check(given("t1", "r2", gives_up("i-1")), NOW))


def test_a_moment_without_an_offset_is_utc() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", "i-1", expires_at=NOW))
    assert names(guard.check(given("t1", "r2", says("i-1")), NOW.replace(tzinfo=None))) == {"EXPIRED_ANSWER"}


def test_sending_and_its_stream_say_the_same_twice_and_that_is_once(path: Path) -> None:
    guard = paused(path)
    sent = given("t1", "r2", says("i-1"))
    guard.sent(sent)
    before = guard.thread("t1")
    read = guard_read(sent)
    guard.saw(Begun("t1", "r2", Mode.SPEC, read, NOW))
    guard.sent(sent)
    assert guard.thread("t1") == before


def guard_read(value: dict[str, Any]) -> Any:  # noqa: ANN401 - an input
    from stopcause.agui.inputs import read_input  # noqa: PLC0415 - only here

    return read_input(value)


def test_a_stream_is_never_harmed_and_its_thread_alone_is_not_known_any_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    guard = paused(path)
    guard.saw(asks("t2", "r1", "i-1"))
    monkeypatch.setattr("stopcause.agui.ledger.ended", broken)
    guard.saw(asks("t1", "r2", "i-2"))
    monkeypatch.undo()
    assert names(guard.check(given("t1", "r3"), NOW)) == {"GUARD_STATE_UNREADABLE"}
    assert names(guard.check(given("t2", "r3"), NOW)) == {"SILENT_CONTINUE"}


def test_without_jsonschema_a_guard_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtraError, match=r"stopcause\[agui\]"):
        ResumeGuard()


# No content -----------------------------------------------------------------------------------------------------------

CANARY = "CANARY-7f3a"


def asking_with_content() -> RunSeen:
    from stopcause.agui.lifecycle import Watch  # noqa: PLC0415 - only here

    schema = {
        "title": CANARY,
        "type": "object",
        "properties": {"approved": {"type": "boolean", "description": CANARY, "default": CANARY, "examples": [CANARY]}},
    }
    interrupt = {
        "id": "i-1",
        "reason": CANARY,
        "message": CANARY,
        "toolCallId": "tc-1",
        "responseSchema": schema,
        "metadata": {"raw": CANARY},
    }
    watch = Watch()
    events: list[dict[str, Any]] = [
        {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"},
        {"type": "TOOL_CALL_START", "toolCallId": "tc-1", "toolCallName": "pay"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "tc-1", "delta": CANARY},
        {"type": "TOOL_CALL_END", "toolCallId": "tc-1"},
        {
            "type": "RUN_FINISHED",
            "threadId": "t1",
            "runId": "r1",
            "outcome": {"type": "interrupt", "interrupts": [interrupt]},
        },
    ]
    runs = [run for event in events for run in watch.take(event)] + list(watch.close())
    return next(run for run in runs if isinstance(run, RunSeen))


def test_no_content_is_in_the_file_the_findings_the_errors_or_the_log(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guard = ResumeGuard(path)
    guard.saw(asking_with_content())
    bad = {"interruptId": "i-1", "status": "resolved", "payload": {"approved": CANARY}, "metadata": {"ag-ui": CANARY}}
    value = {**given("t1", "r2", bad), "messages": [{"id": "m", "role": "user", "content": CANARY}]}
    check = guard.check(value, NOW)
    assert names(check) == {"PAYLOAD_SCHEMA_MISMATCH", "RESERVED_KEY"}
    good = {"interruptId": "i-1", "status": "resolved", "payload": {"approved": True, "note": CANARY}}
    guard.sent({**value, "resume": [good]})
    with pytest.raises(ResumeRefusedError) as caught:
        guard.sent({**value, "runId": "r3", "resume": [bad]})
    builder = ResumeGuard(None)
    builder.saw(asking_with_content())
    with pytest.raises(ResumeRefusedError) as built:
        builder.answers("t1").resolve("i-1", {"approved": CANARY})
    told = [repr(check), str(refusal(check)), repr(guard.thread("t1")), caplog.text]
    told += [str(each.value) + repr(each.value.findings) for each in (caught, built)]
    told += [repr(builder.answers("t1").resolve("i-1", {"approved": True, "note": CANARY}))]
    assert not any(CANARY in text for text in told)
    stored = b"".join(each.read_bytes() for each in path.parent.iterdir())
    assert b"tc-1" in stored
    assert CANARY.encode() not in stored


def doubling(number: int) -> dict[str, Any]:
    """A schema of its own that asks for more evaluations than anybody has time for."""
    steps = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(40)}
    return {"$ref": "#/$defs/s0", "$defs": {**steps, "s40": {"const": number}}}


def test_many_schemas_that_explode_take_no_longer_than_one() -> None:
    guard = ResumeGuard()
    asked = [Interrupt(f"i-{n}", ApprovalKind.INPUT_REQUIRED, schema=doubling(n)) for n in range(200)]
    guard.saw(asks("t1", "r1")._replace(interrupts=tuple(asked)))
    began = time.monotonic()
    answers = [{"interruptId": each.id, "status": "resolved", "payload": 0} for each in asked]
    check = guard.check(given("t1", "r2", *answers), NOW)
    assert time.monotonic() - began < 20
    assert names(check) == {"SCHEMA_UNREADABLE"}


def test_a_thread_with_more_schemas_than_are_kept_says_so(path: Path) -> None:
    schema = {"enum": ["x" * 1_000 + str(n) for n in range(50)]}
    guard = ResumeGuard(path)
    guard.saw(asks("t1", "r1", *(f"i-{n}" for n in range(30)), schema=schema, schema_digest="sha256:0"))
    check = guard.check(given("t1", "r2", *(says(f"i-{n}") for n in range(30))), NOW)
    assert not check.refused
    assert names(check) == {"SCHEMA_UNREADABLE"}
    assert path.stat().st_size < 1_000_000
    assert guard.check(given("t1", "r2"), NOW).refused


def test_an_interrupt_whose_schema_was_too_large_to_keep_says_so() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", "i-1", schema=None, schema_digest="sha256:0"))
    edited = {"interruptId": "i-1", "status": "resolved", "payload": {"approved": True, "editedArgs": {}}}
    assert names(guard.check(given("t1", "r2", edited), NOW)) == {"SCHEMA_UNREADABLE"}
    assert isinstance(guard.thread("t1").raised[0].interrupt, Interrupt)


@pytest.mark.parametrize("is_broken", [True, False])
def test_what_somebody_saw_was_never_taken_is_open_again_for_any_answer(tmp_path: Path, *, is_broken: bool) -> None:
    guard = ResumeGuard(tmp_path / "guard.db")
    guard.saw(asks("t1", "r1", "i-1"))
    guard.sent(given("t1", "r2", says("i-1", approved=True)))
    if is_broken:
        guard.saw(RunSeen("t1", "r2", Mode.SPEC, Ending.TRUNCATED, StopCause.STREAM_TRUNCATED, ended_at=NOW))
    assert guard.check(given("t1", "r3", says("i-1", approved=False)), NOW).refused

    again = guard.reopen("t1")

    assert again == ("i-1",)
    assert not ResumeGuard(tmp_path / "guard.db").check(given("t1", "r3", says("i-1", approved=False)), NOW).refused
    assert guard.answers("t1").missing == ("i-1",)
    assert guard.reopen("t1") == ()


def test_another_word_for_what_to_do_without_the_file_is_an_error_at_once() -> None:
    with pytest.raises(ConfigurationError, match="on_unreadable must be 'refuse' or 'allow', not 'ignore'"):
        ResumeGuard(on_unreadable="ignore")  # type: ignore[arg-type]  # what a reader may write


def test_a_check_that_passes_is_no_refusal() -> None:
    with pytest.raises(ValueError, match="is no refusal"):
        refusal(Check(refused=False, findings=()))
