"""In-process validators: functions of the host's that look at the destination. True, False or None is all we keep.

They run on a thread of their own, after the run is over: one that takes long delays only the next one. What a run
returned is held until they have looked, and no longer.
"""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING

from stopcause.receipts.configuration import Finished
from stopcause.receipts.vocabulary import FINISHED, Polarity, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopcause.receipts.configuration import Validator
    from stopcause.receipts.run import Run
    from stopcause.receipts.writer import Writer

_MOST_WAITING = 1_000
_POLARITY = {True: Polarity.CONFIRMED, False: Polarity.REFUTED}


class Validators:
    """The functions by the contract that each looks for."""

    def __init__(self, functions: Mapping[str, Validator], writer: Writer) -> None:
        self._functions = functions
        self._writer = writer
        self._queue: SimpleQueue[tuple[Run, str]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self, run: Run, cause: StopCause) -> None:
        """A run is over. Only one that ended as if done is looked at."""
        if not self._functions or cause not in FINISHED or self._queue.qsize() >= _MOST_WAITING:
            run.result = None
            return
        self._queue.put((run, cause))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="stopcause-validators", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            run, cause = self._queue.get()
            finished = Finished(run.run_id, run.attempt, run.agent, run.thread_id, run.subject, cause, run.result)
            run.result = None
            for name, validate in self._functions.items():
                if run.contract in (None, name):
                    self._look(run, name, validate, finished)

    def _look(self, run: Run, name: str, validate: Validator, finished: Finished) -> None:
        try:
            answer = validate(finished)
        except Exception:  # noqa: BLE001 - a function of the host's; what it cannot tell is not known
            answer = None
            self._writer.say("validator_raised", name)
        polarity = _POLARITY.get(answer, Polarity.UNKNOWN) if isinstance(answer, bool) else Polarity.UNKNOWN
        fields = {
            "outcome_id": f"{name}/{run.attempt}",
            "contract": name,
            "polarity": polarity,
            "strength": "read_back",
        }
        self._writer.outcome(run, fields, time.time_ns(), issuer=name)
