"""What the tests of the guard run in processes of their own: `python guard_program.py WHAT FILE …`."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping

from stopcause.agui.guard import ResumeGuard
from stopcause.errors import ResumeRefusedError
from tests.agui.asking import NOW, asks, given, says


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def send_and_hang(path: str) -> None:
    ResumeGuard(path).sent(given("t1", "r2", says("i-1")))
    say("sent")
    time.sleep(60)


def answer(path: str, run_id: str, approved: str) -> None:
    """Checks, waits until it is told to go on, and says what became of the sending."""
    guard = ResumeGuard(path)
    value = given("t1", run_id, says("i-1", approved=approved == "true"))
    say("refused" if guard.check(value, NOW).refused else "checked")
    sys.stdin.readline()
    try:
        guard.sent(value)
        say("sent")
    except ResumeRefusedError as error:
        say(error.findings[0].name)


def saw(path: str, thread_id: str) -> None:
    ResumeGuard(path).saw(asks(thread_id, "r1", "i-1"))
    say("saw")


def keep(path: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    say("kept")
    time.sleep(60)


def forked(path: str) -> None:
    guard = ResumeGuard(path)
    guard.saw(asks("t1", "r1", "i-1"))
    if (child := os.fork()) == 0:
        guard.saw(asks("t2", "r1", "i-1"))
        say(f"child {guard.check(given('t1', 'r2'), NOW).refused}")
        say(f"left-alone {len(guard._state._inherited)}")
        os._exit(0)
    os.waitpid(child, 0)
    say(f"parent {guard.check(given('t2', 'r2'), NOW).refused}")


PROGRAMS: Mapping[str, Callable[..., None]] = {
    "send-and-hang": send_and_hang,
    "answer": answer,
    "saw": saw,
    "keep": keep,
    "forked": forked,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
