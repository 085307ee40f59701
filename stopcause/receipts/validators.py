"""In-process validators: functions of the host's that look at the destination. True, False or None is all we keep.

They run on a thread of their own, one run after the other, once it is over: one that takes long delays only the next.
What a run returned is held until they have looked, and no longer. An agent that a validator runs, as a judge, is
recorded as every other and never looked at itself: that would not end.
"""

from __future__ import annotations

import inspect
import threading
import time
from contextvars import ContextVar
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from stopcause.receipts.configuration import Finished
from stopcause.receipts.vocabulary import FINISHED, Polarity, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopcause.receipts.configuration import Validator
    from stopcause.receipts.run import Run
    from stopcause.receipts.writer import Writer

_MOST_WAITING = 1_000  # runs whose results are held
_POLARITY = {True: Polarity.CONFIRMED, False: Polarity.REFUTED, None: Polarity.UNKNOWN}

looking: ContextVar[bool] = ContextVar("stopcause_looking", default=False)  # whether a validator is what runs here


class Validators:
    """The functions, by the contract that each looks for. `begin`, `take` and `wait` are called by the writer."""

    def __init__(self, functions: Mapping[str, Validator], writer: Writer) -> None:
        self._functions = functions
        self._writer = writer
        self._queue: SimpleQueue[tuple[Run, str] | threading.Event | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._taken = 0  # counted by the writer's thread alone,
        self._looked = 0  # and this by the validators' own

    @property
    def is_idle(self) -> bool:
        """Whether all that was taken has been looked at."""
        return self._taken == self._looked

    def begin(self) -> None:
        """Starts the thread, early: once the interpreter ends none can be started (from Python 3.12 on)."""
        if self._functions and self._thread is None:
            self._thread = threading.Thread(target=self._work, name="stopcause-validators", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the system has none left; `take` tries again
                self._thread = None

    def take(self, run: Run, cause: StopCause, *, is_look: bool) -> str | None:
        """A run is over. Only one that ended as if done is looked at.

        Returns:
            The code of a finding where it should have been, and cannot.
        """
        if not self._functions or cause not in FINISHED or is_look:
            run.result = None
            return None
        self.begin()
        if self._thread is None or self._taken - self._looked >= _MOST_WAITING:
            run.result = None
            return "validators_behind"
        self._taken += 1
        self._queue.put((run, cause))
        return None

    def wait(self, timeout: float | None) -> bool:
        """Waits until all that was taken so far is looked at. False: it is not. A validator never waits for itself."""
        if self._is_closed() or looking.get():
            return True
        reached = threading.Event()
        self._queue.put(reached)
        # Asked after: where `close` was before us, nothing was left to look at; else its mark comes behind ours.
        return self._is_closed() or reached.wait(timeout)

    def close(self) -> None:
        """Ends the thread, which has nothing to look at any more."""
        if self._thread is not None:
            self._thread = None
            self._queue.put(None)

    def _is_closed(self) -> bool:
        return self._thread is None

    def _work(self) -> None:
        looking.set(True)
        while self._next():
            pass

    def _next(self) -> bool:
        """One item. A frame of its own: nothing of a run outlives it while the next one is waited for."""
        task = self._queue.get()
        if isinstance(task, threading.Event):
            task.set()
        elif task is not None:
            try:
                self._look_at(*task)
            finally:
                self._looked += 1
                self._writer.looked()
        return task is not None

    def _look_at(self, run: Run, cause: str) -> None:
        finished = Finished(run.run_id, run.attempt, run.agent, run.thread_id, run.subject, cause, run.result)
        run.result = None
        for name, validate in self._functions.items():
            if run.contract in (None, name):
                answer, code = _asked(validate, finished)
                fields = {
                    "outcome_id": f"{name}/{run.attempt}",
                    "contract": name,
                    "polarity": _POLARITY[answer],
                    "strength": "read_back",
                }
                self._writer.outcome(run, fields, time.time_ns(), issuer=name, code=code)


def _asked(validate: Validator, finished: Finished) -> tuple[bool | None, str | None]:
    """What a validator says, and a finding where that is neither True, False nor None."""
    try:
        answer: Any = validate(finished)
    except BaseException:  # noqa: BLE001 - a function of the host's; what it cannot tell is not known, also by sys.exit
        return None, "validator_raised"
    if answer is None or isinstance(answer, bool):
        return answer, None
    if inspect.iscoroutine(answer):
        answer.close()  # nobody here awaits it; left alone, the interpreter would complain to the host
    return None, "validator_unreadable"
