"""Temporal: one execution of a workflow, as the worker that has it in its cache sees it: its run, and how that ends.

An execution outlives its worker. It is taken up elsewhere by running its history again: all is noted again then, and
nothing recorded, so that counts and waits are whole and no record comes twice. What is recorded depends on nothing that
the workflow could see: there is no effect on its commands.

Not here: where this is listened to (`interceptors`), and what a workflow says of its waits (`waits`).
"""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from temporalio import exceptions, workflow

from stopcause.receipts.faults import chain_of
from stopcause.receipts.hooks import call
from stopcause.receipts.hooks.temporal.causes import BY_CLOSING, RETRIES_ENDED, failure_of
from stopcause.receipts.hooks.temporal.closed import Closed, write_closing
from stopcause.receipts.identifiers import is_personal
from stopcause.receipts.replayed import Replayed
from stopcause.receipts.vocabulary import ApprovalKind, Boundary, LimitKind, Sign, StopCause

if TYPE_CHECKING:
    from datetime import datetime

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.temporal.known import Known
    from stopcause.receipts.run import Run

CONTINUED = "continue-as-new"  # what an execution that is continued as a new one waits for: that one
_SECOND = 1_000_000_000

executions: WeakValueDictionary[str, Execution] = WeakValueDictionary()  # by Temporal's run id, while in a cache here


class Execution(call.Call):
    """One execution while a worker has it. Evicted from the cache it is forgotten, and made again from history."""

    def __init__(self, hook: Hook, run: Run, info: Foreign, known: Known) -> None:
        super().__init__(hook, run)
        self.info = info
        self._writer = run.writer
        self._known = known
        self._activities: dict[Foreign, str] = {}  # those that are not done
        self._names: set[str] = set()  # of activities that were given as functions
        self._counts: dict[str, int] = {}
        self._failures = 0
        self._failed: tuple[BaseException, str] | None = None  # the last activity that failed, with its name
        self.expired: BaseException | None = None  # what a wait that was not answered in time raised

    # How it begins ----------------------------------------------------------------------------------------------------

    def begin(self) -> Self:
        """Its first task, or the first that this worker sees of it."""
        info, run = self.info, self.run
        run.identify(self._run_id())
        run.attempt = info.attempt
        run.thread_id = info.workflow_id
        run.step_unit = "activity"
        run.is_durable = True
        if (parent := self.hook.read(run, info, "parent.run_id", str) if info.parent else None) is not None:
            run.parent_run_id = self._run_of(parent)
        self._limit()
        is_next = self._is_next()
        if is_next:
            before = self._known.attempt(info.namespace, info.continued_run_id)
            asked = self._known.asked(info.namespace, info.continued_run_id)
            run.resumed(before.run_id, {**dict.fromkeys(asked), CONTINUED: "answered"}, attempt=before.number)
        if self.listen("start"):
            run.start()
        else:
            run.writer = self._writer  # from here on this process has it
            run.go_on_here(_ns(info.workflow_start_time))
            self.listen()
        if self._writer is not None:
            run.replayed = Replayed(self._writer, _is_live, workflow.time_ns)
        if is_next:
            run.executed(CONTINUED)
        self.is_over = False
        executions[info.run_id] = self
        return self

    def _run_id(self) -> str:
        info = self.info
        return self._known.run_of(
            info.namespace, info.run_id, info.attempt, info.continued_run_id, info.first_execution_run_id
        )

    def _run_of(self, execution: str) -> str:
        """The run that an execution of this namespace is."""
        return self._known.attempt(self.info.namespace, execution).run_id

    def _is_next(self) -> bool:
        """Whether one execution was continued as this one. Those of a schedule and retries name one before them too."""
        return bool(self.info.continued_run_id) and self.info.attempt <= 1 and not self.info.cron_schedule

    def _limit(self) -> None:
        """Its own bounds."""
        for name in ("run_timeout", "execution_timeout"):
            bound = self.hook.read(self.run, self.info, name, timedelta)
            if bound:  # 0 is none
                self.run.limit(name, LimitKind.TIME, bound.total_seconds(), unit="s")

    # How it goes ------------------------------------------------------------------------------------------------------

    def listen(self, what: str | None = None) -> bool:
        """Whether what happens now happens for the first time. Otherwise nothing is recorded of it.

        Args:
            what: Its kind, where it has a record: a task that failed is tried again, and comes here again.
        """
        is_live = _is_live()
        if what is not None:
            self._counts[what] = count = self._counts.get(what, 0) + 1
            is_live = is_live and self._known.is_news(self.info.run_id, what, count)
        self.run.writer = self._writer if is_live else None
        return is_live

    def activity(self, handle: Foreign, name: str, *, is_known: bool) -> None:
        """It started one. Whatever name a string gives is one that a model may have made up."""
        self.listen()
        if is_known:
            self._names.add(name)
        self.run.tool_calls = (self.run.tool_calls or 0) + 1
        self.run.in_flight_tools += 1
        self._activities[handle] = name
        handle.add_done_callback(functools.partial(self._guarded, self._activity_done))

    def _activity_done(self, handle: Foreign) -> None:
        name = self._activities.pop(handle)
        self.run.in_flight_tools -= 1
        error = _error_of(handle)
        if error is None and not handle.cancelled():
            self.run.steps = (self.run.steps or 0) + 1
            self._progress(Sign.TOOL_RESULT)
        elif error is not None and not _is_cancelled(error):
            self._failures += 1
            self._failed = error, name

    def child(self, handle: Foreign, agent: str | None) -> None:
        """It started a workflow, which tells of itself, perhaps elsewhere. `agent`: its type, where that is no text."""
        self.listen()
        self.run.children_open += 1
        handle.add_done_callback(functools.partial(self._guarded, self._child_done, agent))

    def _child_done(self, agent: str | None, handle: Foreign) -> None:
        self.run.children_open -= 1
        if (error := _error_of(handle)) is not None:
            self.run.children_failed += 1
            self._child_closed(agent, error)
        else:
            self._progress(Sign.STATE_CHANGE)

    # What it waits for ------------------------------------------------------------------------------------------------

    def waits(self, approval_id: str, facts: dict[str, Any], timeout: timedelta | None) -> None:
        """It stops for an answer, and stays open. What resumes it is a signal or an update to its id."""
        expires_at = None if timeout is None else workflow.now() + timeout
        self.listen(f"waits/{approval_id}")
        self.run.waiting(
            approval_id, expires_at=expires_at, asked_ns=workflow.time_ns(), resume_token=self.token, resumable=True,
            at_once=True, **facts,
        )  # fmt: skip

    def decided(self, approval_id: str, decision: str) -> None:
        """An answer came."""
        self.listen(f"decided/{approval_id}")
        self.run.decided(approval_id, decision)
        if self.run.writer is None:  # of history: it was decided then
            self.run._change_wait(approval_id, decided_at=workflow.time_ns())  # noqa: SLF001 - the core's, for this

    def executed(self, approval_id: str) -> None:
        """What it had asked for was done."""
        self.listen(f"executed/{approval_id}")
        self.run.executed(approval_id)

    def expires(self, approval_id: str, error: BaseException) -> None:
        """Nobody answered in time. Where the time-out is left to end the workflow, that is why it ends."""
        self.listen(f"expires/{approval_id}")
        self.expired = error
        self.run.expired(approval_id)

    def _child_closed(self, agent: str | None, error: Foreign) -> None:
        """A child that was terminated or ran out of time could not say so itself."""
        how = BY_CLOSING.get(type(error.__cause__).__name__)
        if how is not None and self.listen(f"closed/{error.run_id}"):
            closed = Closed(error.namespace, error.workflow_id, error.run_id, agent)
            write_closing(self.hook, self._known, closed, how)

    def _guarded(self, note: Foreign, *given: Foreign) -> None:
        with self.hook.guard(note.__name__):
            if not self.is_over:
                note(*given)

    def _progress(self, sign: Sign) -> None:
        """Of history the time is the one of then."""
        if self.listen("progress"):
            self.run.progress(sign)
        else:
            self.run.made_progress, self.run.progress_ns = True, workflow.time_ns()

    # How it ends ------------------------------------------------------------------------------------------------------

    def returned(self, result: Foreign) -> None:
        """Its function came back. Of a workflow that a worker only ran again that was recorded before."""
        if self._is_live_end():
            self.run.pending_tool_calls = sum(not handle.cancelling() for handle in self._activities) or None
            self._count_failures()
            self._close_waits()
            super().returned(result)

    def failed(self, error: BaseException) -> None:
        """An exception leaves it. Most end only this task: it stays open, and the task is tried again."""
        if isinstance(error, GeneratorExit) or not self._is_live_end():
            self.is_over = True  # evicted, or collected with its worker
        elif isinstance(error, workflow.ContinueAsNewError):
            self._continued()
        elif self._is_cancel(error):
            self._count_failures()
            self.reason = "cancelled"
            super().failed(error)
        elif self._is_failure(error):
            self._fails(error)
        else:
            self._task_failed(error)

    def left(self) -> None:
        """Collected with its worker: it goes on elsewhere."""
        self.is_over = True

    def cause(self, error: BaseException) -> StopCause | None:
        """What the failure means; None: the common map is asked."""
        if self.expired is not None and self.expired in chain_of(error):
            return StopCause.APPROVAL_EXPIRED
        return StopCause.CALLER_ABORT if self.reason == "cancelled" else failure_of(error).cause

    def _is_live_end(self) -> bool:
        return not self.is_over and self.listen()

    def _fails(self, error: BaseException) -> None:
        """The failure that ends it; where an activity failed, with its name, if it is one that some worker has.

        One in the worker itself fails with what its code raised, without the word that it was an activity.
        """
        links = chain_of(error)
        failure, cause = failure_of(error), self.cause(error)
        name = self._failed[1] if self._failed is not None and self._failed[0] in links else None
        if name is not None:
            cause = StopCause.TOOL_FAILURE
            self._retries(links)
        self._count_failures(is_terminal=name is not None)
        self._close_waits(is_time_out=isinstance(error, TimeoutError))
        if self.is_first_end():
            self.run.end(
                error, boundary=Boundary.EXCEPTION, cause=cause, reason=failure.reason,
                tool=name if name in self._names or name in self._known.activities else None,
            )  # fmt: skip

    def _close_waits(self, *, is_time_out: bool = False) -> None:
        """What it still waits for nobody can answer once it is closed."""
        for approval_id in self._open_waits():
            self.run._settle(approval_id, state="expired" if is_time_out else "withdrawn")  # noqa: SLF001 - the core's, for this

    def _open_waits(self) -> tuple[str, ...]:
        return tuple(wait["approval_id"] for wait in self.run.waits if "state" not in wait)

    def _retries(self, links: list[BaseException]) -> None:
        """That nothing was tried again because a bound on that was reached."""
        states = [getattr(getattr(link, "retry_state", None), "name", None) for link in links]
        for state in RETRIES_ENDED.intersection(states):
            self.run.condition(f"activity_retries_{state.lower()}", LimitKind.CUSTOM, fired=True)

    def _count_failures(self, *, is_terminal: bool = False) -> None:
        self.run.tool_errors_terminal = int(is_terminal)
        self.run.tool_errors_recovered = self._failures - self.run.tool_errors_terminal

    def is_first_end(self) -> bool:
        """Whether it is over only now. An exception that is kept keeps every frame that it left."""
        is_first = super().is_first_end()
        self._failed = self.expired = None
        self._activities.clear()
        return is_first

    def _continued(self) -> None:
        """No end of the work: a new execution of the same workflow id goes on, and answers this wait when it begins."""
        if self.is_first_end():
            self._known.goes_on(self.info.namespace, self.info.run_id, self._open_waits())
            self.run.waiting(
                CONTINUED, ApprovalKind.EXTERNAL, resume_token=self.token, resumable=True, boundary=Boundary.CALLBACK
            )
            self.run.end()

    def _task_failed(self, error: BaseException) -> None:
        """No end: the server tries the task again until somebody mends the code. Not once more is it told here."""
        self.is_over = True
        what = type(error).__name__
        if self.listen(f"failed/{what}"):
            self.run.note("workflow_task_failed", what)

    def _is_cancel(self, error: BaseException) -> bool:
        """As the SDK decides it: a cancellation, after one was asked for."""
        runtime = workflow._Runtime.current()  # noqa: SLF001 - `cancellation_reason` is younger than 1.20
        asked = getattr(runtime, "_cancel_reason", None) is not None or getattr(runtime, "_cancel_requested", False)
        return bool(asked) and exceptions.is_cancelled_exception(error)

    @staticmethod
    def _is_failure(error: BaseException) -> bool:
        return bool(exceptions.is_cancelled_exception(error) or workflow.is_failure_exception(error))

    @property
    def token(self) -> str | None:
        """What names the paused state: the workflow's id, unless it is a person's handle."""
        workflow_id = self.info.workflow_id
        if is_personal(workflow_id):
            self.run.find("refused_value", f"{self.hook.adapter}:workflow_id")
            return None
        return str(workflow_id)


def _is_live() -> bool:
    """Whether this is no history, and no worker's last look at what it lets go of, which Temporal takes for history."""
    return workflow.in_workflow() and not workflow.unsafe.is_replaying()


def _error_of(handle: Foreign) -> BaseException | None:
    """What an activity or child ended with. Asking for it by `exception()` would say that somebody took it."""
    return getattr(handle, "_exception", None)


def _is_cancelled(error: BaseException) -> bool:
    return failure_of(error).reason == "cancelled"


def _ns(moment: datetime) -> int:
    return int(moment.timestamp() * _SECOND)
