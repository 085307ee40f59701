"""The thread behind: takes what runs noted, makes records and lines of it, and hands them to the sink.

One daemon thread a process, begun when the first run starts and begun anew in a forked child. Bounded: what comes when
the queue is full is dropped, counted, and the next record says how many. It gives the interpreter back after every few
records, so that an event loop beside it is not kept waiting.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from functools import cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from stopcause.receipts import mending, process, records
from stopcause.receipts.spool import Spool
from stopcause.receipts.validators import Validators, looking
from stopcause.receipts.vocabulary import Sign

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopcause.receipts.configuration import Configuration, Sink
    from stopcause.receipts.notes import Notes
    from stopcause.receipts.records import Draft
    from stopcause.receipts.run import Run

log = logging.getLogger("stopcause")

_GROUP = 256  # records that are written and synced together
_YIELD_EVERY = 5  # records; then others may run
_YIELD_S = 0.0002
_RETRY_S = (0.05, 0.2, 1.0, 5.0)
_EXIT_S = 2.0  # how long the end of the process waits for what is not written yet
_LOOK_S = 1.0  # how often a writer that is to end looks whether its last runs are over, or forgotten
_FOR_RECEIPTS = 0.25  # of the queue: room that only stop receipts may take
_writers: weakref.WeakSet[Writer] = weakref.WeakSet()

Item = tuple[Any, ...]  # what to do, and with what


class Writer:
    """The queue, the thread and the sink of one configuration."""

    def __init__(self, config: Configuration) -> None:
        self.epoch = 0  # one more in each forked child: what a parent began is the parent's
        self._config = config
        self._sink: Sink = config.sink or Spool()
        self._most = config.queue_max
        self._most_early = max(1, int(config.queue_max * (1 - _FOR_RECEIPTS)))
        self._begin_anew()
        _writers.add(self)

    def _begin_anew(self) -> None:
        self._queue: SimpleQueue[Item] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.RLock()  # a collection in the midst of it may end a stream, which comes here again
        self._is_starting = False
        # The thread's own: runs that have started and not stopped. One that is forgotten gives no more signs of life.
        self._open: weakref.WeakSet[Run] = weakref.WeakSet()
        self._beat_ns = time.monotonic_ns()
        self._drops = SimpleQueue[int]()  # how many, as they happen: counting needs no lock
        self._says: SimpleQueue[tuple[str, str | None]] = SimpleQueue()
        self._is_closing = self.is_retired = False
        self._has_warned = False
        self._validators = Validators(self._config.validators, self)

    # On the agent's thread --------------------------------------------------------------------------------------------

    def started(self, run: Run) -> None:
        """A run began. What is known of it at this moment is what its start record says."""
        self._put((self._start, run, run.__dict__.copy()))

    def stopped(self, run: Run) -> None:
        """A run is over. Its receipt says what is known at this moment."""
        self._put((self._stop, run, run.__dict__.copy(), looking.get()), is_receipt=True)

    def progressed(self, run: Notes, at_ns: int, sign: str) -> None:
        """A run got somewhere."""
        self._put((self._progress, run, at_ns, sign, run.steps))

    def executed(self, run: Notes, approval_id: str, waiting: str | None, at_ns: int) -> None:
        """A gated call of another run, `waiting` or the one that this one resumes, has run."""
        self._put((self._execute, run, approval_id, waiting, at_ns))

    def decided(self, run: Notes, approval_id: str, decision: str, at_ns: int) -> None:
        """A decision on a wait of the run that this one resumes became known."""
        self._put((self._decide, run, approval_id, decision, at_ns))

    def withdrawn(self, run: Notes, waiting: str, approval_id: str, at_ns: int) -> None:
        """The wait of another run, `waiting`, was given up."""
        self._put((self._withdraw, run, waiting, approval_id, at_ns))

    def follows(self, run: Notes) -> None:
        """Another process has begun it; while this one has it, it gives signs of life."""
        self._put((self._follow, run))

    def asked(self, run: Notes, wait: Draft) -> None:
        """It waits without stopping."""
        self._put((self._ask, run, wait))

    def changed(self, run: Notes, approval_id: str, facts: Draft, at_ns: int) -> None:
        """Something became of such a wait."""
        self._put((self._change, run, approval_id, facts, at_ns))

    def noted(self, run: Notes, code: str, where: str | None, at_ns: int) -> None:
        """A finding that must not wait for the run's end."""
        self._put((self._note, run, code, where, at_ns))

    def told(self, drafts: list[Draft], *, is_receipt: bool) -> None:
        """Records of a run that somebody watches from outside, made already."""
        self._put((self._tell, drafts), is_receipt=is_receipt)

    def outcome(
        self, run: Notes, fields: Draft, at_ns: int, issuer: str | None = None, code: str | None = None
    ) -> None:
        """Somebody in this process looked at the destination; `code` is a finding about the look."""
        self._put((self._look, run, fields, at_ns, issuer, code))

    def say(self, code: str, where: str | None) -> None:
        """A finding that the next record of this process is to carry."""
        self._says.put((code, where))

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until all that came before is with the sink, and what validators say of it.

        Returns:
            False where it is not, after `timeout` seconds for all of it.
        """
        if self._thread is None and self._queue.empty():
            return True
        until = None if timeout is None else time.monotonic() + timeout
        if not self._reach(until):
            return False
        return not self._config.validators or (self._validators.wait(_left(until)) and self._reach(until))

    def _reach(self, until: float | None) -> bool:
        done = threading.Event()
        self._queue.put((self._reached, done))
        self._ensure_thread()
        return done.wait(_left(until) if self._thread is not None else 0.0)  # without a thread nobody will say so

    def close(self, timeout: float = _EXIT_S) -> None:
        """Writes what it can in `timeout` seconds, then lets go of the sink. A sink that hangs keeps what it has."""
        if self.flush(timeout):
            self._is_closing = True
            self._wake()
            thread = self._thread
            if thread is not None:
                thread.join(timeout)
            with contextlib.suppress(Exception):  # a sink of anybody's, at the end of the process
                self._sink.close()

    def retire(self) -> None:
        """Another configuration holds from now on: ends when the runs that began with this one have."""
        self.is_retired = True
        self._wake()

    def looked(self) -> None:
        """The validators are through with one more run; one that retired may now end."""
        if self.is_retired:
            self._wake()

    def _wake(self) -> None:
        if self._thread is not None:
            self._queue.put((self._reached, threading.Event()))

    def _put(self, item: Item, *, is_receipt: bool = False) -> None:
        if self._queue.qsize() >= (self._most if is_receipt else self._most_early):
            self._drops.put(1)
            return
        self._queue.put(item)
        if self._thread is None:
            self._ensure_thread()

    def _ensure_thread(self) -> None:
        with self._starting:
            if self._thread is None and not self._is_starting:
                self._is_starting = True
                try:
                    self._start_thread()
                finally:
                    self._is_starting = False

    def _start_thread(self) -> None:
        self._validators.begin()
        self._thread = threading.Thread(target=self._work, name="stopcause", daemon=True)
        try:
            self._thread.start()  # it may be through, and have said so, before this returns
        except RuntimeError:  # the interpreter ends, or the system has no thread left: the next run tries again
            self._thread = None
        else:
            _wait_at_exit()
            _wait_at_worker_end()

    # Behind -----------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        process.identity()  # read once, here, so that no run waits for it
        while not self._is_done():
            self._write(self._next_group())

    def _write(self, group: list[Item]) -> None:
        """What has come, as lines to the sink. A frame of its own: no run outlives it while the next are waited for."""
        lines: list[bytes] = []
        reached: list[threading.Event] = []
        for count, item in enumerate(group, 1):
            self._do(item, lines, reached)
            if count % _YIELD_EVERY == 0:
                time.sleep(_YIELD_S)
        self._beat(lines)
        self._hand_over(lines)
        for event in reached:
            event.set()

    def _is_done(self) -> bool:
        if self._is_closing:
            return True
        if not self.is_retired or self._open or not self._validators.is_idle or not self._queue.empty():
            return False
        self._validators.close()
        with contextlib.suppress(Exception):
            self._sink.close()
        self._thread = None  # a run that was forgotten and still ends begins it anew
        if not self._queue.empty():  # came in between
            self._ensure_thread()
        return True

    def _next_group(self) -> list[Item]:
        """What has come, at least one item unless a heartbeat is due."""
        group: list[Item] = []
        with contextlib.suppress(Empty):
            group.append(self._queue.get(timeout=self._beat_in()))
            while len(group) < _GROUP:
                group.append(self._queue.get_nowait())
        return group

    def _do(self, item: Item, lines: list[bytes], reached: list[threading.Event]) -> None:
        """One item. A record that cannot be made costs only itself."""
        do: Callable[..., list[Draft] | threading.Event] = item[0]
        try:
            made = do(*item[1:])
        except Exception:  # noqa: BLE001 - a fault of ours must not end the thread; the receipt says so
            made = self._broken(item)
        if isinstance(made, threading.Event):
            reached.append(made)
            return
        for draft in made:
            self._add(draft, lines)

    def _add(self, draft: Draft, lines: list[bytes]) -> None:
        self._note_losses(draft)
        try:
            line = mending.line_of(draft)
        except Exception:  # noqa: BLE001 - as above: a record that cannot be written is counted as lost
            line = None
        if line is None:
            self._drops.put(1 + draft.get("dropped", 0))
        else:
            lines.append(line)

    def _broken(self, item: Item) -> list[Draft]:
        if item[0] == self._stop:
            run: Run = item[1]
            self._open.discard(run)
            run.result = None
            with contextlib.suppress(Exception):  # what broke the receipt may break what stands for it
                return [records.broken(_next(run))]
        self._drops.put(1)
        return []

    def _note_losses(self, draft: Draft) -> None:
        """What was lost since the last record, and what hooks had to say, on the next one that goes out."""
        if not self._drops.empty():
            draft["dropped"] = _drain(self._drops)
        while not self._says.empty():
            code, where = self._says.get()
            finding = {"code": code, "where": where} if where else {"code": code}
            if finding not in (told := draft.setdefault("findings", [])):
                told.append(finding)

    def _start(self, run: Run, held: dict[str, Any]) -> list[Draft]:
        self._open.add(run)
        began = run.as_of(held)  # a decision that comes later has a record of its own
        made = [records.started(began, process.identity())]
        if began.resumes_run_id:
            made += [
                records.decided(began, approval_id, decision, began.started_ns)
                for approval_id, decision in began.answers
                if decision is not None
            ]
        return made

    def _tell(self, drafts: list[Draft]) -> list[Draft]:
        return drafts

    def _follow(self, run: Run) -> list[Draft]:
        self._open.add(run)
        return []

    def _stop(self, run: Run, held: dict[str, Any], is_look: bool) -> list[Draft]:  # noqa: FBT001 - an item's part
        held.pop("result", None)  # nobody but the run, and then the validators, hold what it returned
        made = records.stopped(run.as_of(held))
        self._open.discard(run)
        if code := self._validators.take(run, made["stop_cause"], is_look=is_look):
            made.setdefault("findings", []).append({"code": code})
        return [made]

    def _progress(self, run: Run, at_ns: int, sign: str, steps: int | None) -> list[Draft]:
        return [records.progressed(_next(run), at_ns, sign, steps)]

    def _execute(self, run: Run, approval_id: str, waiting: str | None, at_ns: int) -> list[Draft]:
        waiting = waiting or run.resumes_run_id
        return [records.executed(run, waiting, approval_id, at_ns)] if waiting else []

    def _decide(self, run: Run, approval_id: str, decision: str, at_ns: int) -> list[Draft]:
        return [records.decided(run, approval_id, decision, at_ns)] if run.resumes_run_id else []

    def _withdraw(self, run: Run, waiting: str, approval_id: str, at_ns: int) -> list[Draft]:
        return [records.withdrawn(run, waiting, approval_id, at_ns)]

    def _ask(self, run: Run, wait: Draft) -> list[Draft]:
        return [records.asked(_next(run), wait)]

    def _change(self, run: Run, approval_id: str, facts: Draft, at_ns: int) -> list[Draft]:
        return [records.changed(_next(run), approval_id, facts, at_ns)]

    def _note(self, run: Run, code: str, where: str | None, at_ns: int) -> list[Draft]:
        made = records.progressed(_next(run), at_ns, Sign.HEARTBEAT, run.steps)
        made["findings"] = [{"code": code, "where": where} if where else {"code": code}]
        return [made]

    def _look(self, run: Run, fields: Draft, at_ns: int, issuer: str | None, code: str | None) -> list[Draft]:
        made = records.outcome(_next(run), fields, at_ns, issuer)
        if code:
            made["findings"] = [{"code": code, "where": issuer}]
        return [made]

    @staticmethod
    def _reached(event: threading.Event) -> threading.Event:
        return event

    # Life signs: an open run whose process lives is not stuck ---------------------------------------------------------

    def _beat_in(self) -> float | None:
        """Seconds until life signs are due; None where nothing is open."""
        if not self._open:
            return None
        due = self._beat_ns + int(self._config.lease_s / 3 * 1e9)
        left = max(0.01, (due - time.monotonic_ns()) / 1e9)
        return min(left, _LOOK_S) if self.is_retired else left

    def _beat(self, lines: list[bytes]) -> None:
        now = time.monotonic_ns()
        if now - self._beat_ns < self._config.lease_s / 3 * 1e9:
            return
        self._beat_ns = now
        for run in list(self._open):
            if run.is_driven:
                self._do((self._progress, run, time.time_ns(), Sign.HEARTBEAT, run.steps), lines, [])

    # The sink ---------------------------------------------------------------------------------------------------------

    def _hand_over(self, lines: list[bytes]) -> None:
        """Gives lines to the sink until it has them. Meanwhile the queue fills, and then drops."""
        tries = 0
        while lines:
            try:
                lost = self._sink.write(lines)
                if type(lost) is int and lost > 0:
                    self._drops.put(lost)
            except BaseException as error:  # noqa: BLE001 - a sink of anybody's; one that exits ends no thread of ours
                self._warn(error)
                if self._is_closing:
                    return
                time.sleep(_RETRY_S[min(tries, len(_RETRY_S) - 1)])
                tries += 1
            else:
                return

    def _warn(self, error: BaseException) -> None:
        """Once: by the kind of error, never by its text."""
        if not self._has_warned:
            self._has_warned = True
            code = getattr(error, "errno", None)
            is_own = type(error).__module__ != "builtins"  # TLS and name servers have codes of their own
            why = type(error).__name__ if is_own or not isinstance(code, int) else os.strerror(code)
            place = f" to {self._sink.folder}" if isinstance(self._sink, Spool) else ""
            log.warning(
                "stopcause: records cannot be written%s (%s); kept in memory meanwhile, at most %d",
                place,
                why,
                self._most,
            )

    # Forks ------------------------------------------------------------------------------------------------------------

    def forked(self) -> None:
        """In a forked child: the parent keeps its records, its file and its runs; the child begins with none."""
        self.epoch += 1
        self._begin_anew()
        with contextlib.suppress(Exception):
            self._sink.close()
        process.identity.cache_clear()


def _next(run: Run) -> Run:
    """With the next place in its order."""
    run.seq += 1
    return run


def _drain(queue: SimpleQueue[int]) -> int:
    count = 0
    with contextlib.suppress(Empty):
        while True:
            count += queue.get_nowait()
    return count


def _forked() -> None:
    _wait_at_worker_end.cache_clear()
    for writer in list(_writers):
        writer.forked()


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


@cache
def _exit_until() -> float:
    return time.monotonic() + _EXIT_S


def _all_writers() -> list[Writer]:
    """Those in use before those that retired: a sink that hangs and was replaced takes only time that is left."""
    return sorted(_writers, key=lambda writer: writer.is_retired)


def flush_all(timeout: float | None) -> bool:
    """Waits for all writers of this process, also for those that another configuration has replaced."""
    until = None if timeout is None else time.monotonic() + timeout
    done = [writer.flush(_left(until)) for writer in _all_writers()]
    return all(done)


def _before_others() -> None:
    flush_all(_left(_exit_until()))


def _at_exit() -> None:
    for writer in _all_writers():
        writer.close(max(0.0, _exit_until() - time.monotonic()))


@cache
def _wait_at_exit() -> None:
    """What the program set up before its first run ends after this: its OpenTelemetry, say, that a sink sends through.

    Handlers run last in, first out. Those that the program brought may still run agents; `_at_exit` is for them.
    """
    atexit.register(_before_others)


@cache
def _wait_at_worker_end() -> None:
    """A worker of `multiprocessing` that was forked ends by `os._exit`; it asks its own finalizers before."""
    workers, ends = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if workers is not None and ends is not None and workers.parent_process() is not None:
        ends.Finalize(None, _before_others, exitpriority=0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
atexit.register(_at_exit)
