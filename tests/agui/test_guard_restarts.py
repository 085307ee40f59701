"""What a guard knows outlives its process, and is shared by several."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stopcause.agui import guard_state
from stopcause.agui.guard import ResumeGuard
from stopcause.errors import ResumeRefusedError
from tests.agui.asking import NOW, asks, given, gives_up, names, paused, says

ROOT = Path(__file__).parents[2]
PROGRAM = "tests.agui.guard_program"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guard.db"


def program(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


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
    assert {each.name for each in path.parent.iterdir()} <= {"guard.db", "guard.db-wal", "guard.db-shm"}  # no drafts


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork")
def test_a_guard_that_was_made_before_a_fork_works_after_it(path: Path) -> None:
    with program("forked", path) as process:
        assert [line(process) for _ in range(3)] == ["child True", "left-alone 1", "parent True"]
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
