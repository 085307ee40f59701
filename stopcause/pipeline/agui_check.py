"""Whether an input may be sent, given the streams that its thread had before: the guard, over files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.agui import inputs, ledger
from stopcause.agui.guard import Check, ResumeGuard
from stopcause.agui.values import Begun, RunSeen, Thread
from stopcause.errors import InputError
from stopcause.pipeline import agui


class CheckedInput(NamedTuple):
    """What the guard says of an input. `open` are the interrupts that it has to answer; ids are as given."""

    thread_id: str
    run_id: str
    answers: int
    open: tuple[str, ...]
    check: Check


def check_files(paths: Sequence[Path], name: str, given: bytes, now: datetime) -> CheckedInput:
    """An input held against files that are one history, in their order.

    Raises:
        InputError: A file that cannot be read, or an input that is no JSON; `name` is what that one is called.
    """
    guard, history = ResumeGuard(), _History()
    for path in paths:
        broken = agui.audit_file(path, None, now, also=history.saw).broken_lines
        if broken:  # it may have been the question
            raise InputError(f"{path}: line {broken[0]}: no whole exchange; give the history without a gap")
    for thread in history.threads.values():
        guard.knows(thread)
    return check_input(guard, _json(given, name), now)


class _History:
    """The threads of some streams, as they are after the last of them."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}

    def saw(self, run: Begun | RunSeen) -> None:
        """The next run, as it begins or ends."""
        before = self.threads.get(run.thread_id) or Thread(run.thread_id)
        step = ledger.begun(before, run) if isinstance(run, Begun) else ledger.ended(before, run)
        self.threads[run.thread_id] = step[0]


def check_input(guard: ResumeGuard, value: Any, now: datetime) -> CheckedInput:  # noqa: ANN401 - a JSON value
    """An input held against what a guard saw."""
    read = inputs.read_input(value)
    check = guard.check(value, now)
    if read is None:
        return CheckedInput("-", "-", 0, (), check)
    waiting = tuple(each.interrupt.id for each in guard.thread(read.thread_id).open())
    return CheckedInput(read.thread_id, read.run_id, len(read.resume or ()), waiting, check)


def _json(given: bytes, name: str) -> object:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(given)
    raise InputError(f"{name}: is no JSON; give the RunAgentInput that is to be sent, as one object")
