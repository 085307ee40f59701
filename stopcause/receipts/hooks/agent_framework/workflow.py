"""Agent Framework: one run of a workflow. What its events say.

Both kinds, the graph and the function, make their events in `_run_core`; agents in them are runs inside this one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stopcause.receipts.causes import Rank
from stopcause.receipts.hooks.agent_framework import causes
from stopcause.receipts.hooks.agent_framework.call import Call
from stopcause.receipts.hooks.agent_framework.contents import Asked, asked_for, decision_of, tool_names
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import Boundary, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run

_UNNAMED = re.compile(r"WorkflowBuilder-[0-9a-f-]{36}")  # what a builder calls one that has no name: new each time
_LIMIT = "max_iterations"


def begin(hook: Hook, workflow: Foreign, waiting: Waiting[Asked], given: Mapping[str, Any]) -> WorkflowCall | None:
    """A run of a workflow, with the keyword arguments that it was called with."""
    run = hook.begin()
    if run is None:
        return None
    call = WorkflowCall(hook, run, workflow, waiting)
    with hook.guard("describe"):
        call.describe(given)
    return call.begin()


class WorkflowCall(Call):
    """One run of a workflow."""

    checkpoint: str | None = None  # the last that was kept in this run
    has_begun = False  # whether the framework took the input
    has_failed = False
    _iteration = 0
    _limit: int | None = None

    def __init__(self, hook: Hook, run: Run, owner: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run, owner, waiting)
        self._requested: dict[str, Foreign] = {}

    def describe(self, given: Mapping[str, Any]) -> None:
        """What is known before it begins."""
        run, read = self.run, self.hook.read
        name = read(run, self.owner, "name", str)
        run.agent = run.agent or (None if name is None or _UNNAMED.fullmatch(name) else name)
        if not self.hook.is_tested:
            return
        run.step_unit = "superstep"
        self.place = id(self.owner)
        if hasattr(self.owner, _LIMIT):  # a workflow that is a function has none
            self._limit = read(run, self.owner, _LIMIT, int)
        responses = given.get("responses")
        if isinstance(responses, Mapping):
            checkpoint = given.get("checkpoint_id")
            answers = {str(each): decision_of(response) for each, response in responses.items()}
            self.resume(self.place if checkpoint is None else checkpoint, answers, set(answers))

    @property
    def keeps_children(self) -> bool:
        """A checkpoint has the sessions of the agents in it."""
        context = getattr(self.owner, "_runner_context", None)
        return context is not None and bool(context.has_checkpointing())

    # Events -----------------------------------------------------------------------------------------------------------

    def item(self, event: Foreign) -> None:
        """An event of its stream."""
        note = self.events.get(event.type) if self.hook.is_tested else self.ends.get(event.type)
        if note is not None and not self.is_over:
            note(self, event)

    def _superstep(self, event: Foreign) -> None:
        self.has_begun = True
        self.run.steps = (self.run.steps or 0) + 1
        self._iteration = self.hook.read(self.run, event, "iteration", int) or 0
        if self._limit is not None and self.run.steps == 1:
            self.run.limit(_LIMIT, "steps", self._limit, unit=self.run.step_unit)

    def _invoked(self, _: Foreign) -> None:
        self.has_begun = True

    def _asks(self, event: Foreign) -> None:
        self._requested[event.request_id] = event

    def _progressed(self, _: Foreign) -> None:
        self.run.progress()

    def used_up(self, cause: StopCause, name: str, limit: int, observed: int) -> None:
        """An orchestration has gone as often as it may, and answers as if it were done."""
        if not self.is_over:
            self.run.bounded(cause, name, "custom", limit=limit, observed=observed)

    def _status(self, event: Foreign) -> None:
        """Its state. The last of them comes before the stream's end, and a reader may well leave then."""
        state = getattr(event.state, "name", None)
        self.has_failed = state == "FAILED"
        if state not in causes.UNDER_WAY:
            self.returned(state)

    events: Mapping[str, Callable[[Any, Any], None]] = {
        "superstep_started": _superstep,
        "executor_invoked": _invoked,
        "executor_completed": _progressed,
        "request_info": _asks,
        "status": _status,
    }
    ends: Mapping[str, Callable[[Any, Any], None]] = {"status": _status}

    # The end ----------------------------------------------------------------------------------------------------------

    def came_back(self, result: object) -> None:
        """It is over. Its last state is no result that a validator could look at."""
        super().came_back(None if isinstance(result, str) else result)

    def read_result(self, state: str | None) -> None:
        """By its last state, which is a workflow's last word."""
        cause = causes.STATES.get(state or "")
        if cause is StopCause.INPUT_PENDING:
            self._wait()
        elif cause is None:
            self._say(StopCause.UNKNOWN)
            self.run.find("vocabulary_new", state if state and is_identifier(state) else self.hook.adapter)
        elif cause is not StopCause.NATURAL:
            self._say(cause, aborted=True)

    def _say(self, cause: StopCause, reason: str | None = None, *, aborted: bool = False) -> None:
        self.run.say(cause, Rank.SIGNAL, Boundary.CALLBACK, reason=reason, aborted=aborted)

    def _wait(self) -> None:
        """It stops for what it has requested, in this run or before. A checkpoint that was kept names the state."""
        requests = self._pending()
        is_kept = self.checkpoint is not None
        for request_id, event in requests.items():
            asked = _asked(str(request_id), event, self.owner)
            self.wait(asked, resume_token=self.checkpoint, resumable=True if is_kept else None)
            if is_kept:
                self.waiting.add(
                    self.checkpoint, asked.approval_id, asked._replace(run_id=self.run.run_id, metadata=None)
                )

    def _pending(self) -> Mapping[str, Foreign]:
        """What is open, by id. 1.0 says that something is also where a restored request was answered at once."""
        if not hasattr(self.owner, "_runner_context"):  # a workflow that is a function keeps nothing between its runs
            return self._requested
        path = "_runner_context._pending_request_info_events"
        pending = self.hook.read(self.run, self.owner, path, dict)
        if pending is None:
            self._say(StopCause.INPUT_PENDING)
        return pending or {}

    def left(self) -> None:
        """Its reader went away; at the state that says it failed, it did."""
        if self.has_failed and not self.is_over:
            self._say(self.child_fault[1] if self.child_fault else StopCause.HOST_ERROR, causes.STATE_FAILED)
        super().left()

    def cause(self, error: BaseException) -> StopCause | None:
        """By its class; before the first executor, the input was refused."""
        known = super().cause(error)
        if known is StopCause.STEP_LIMIT and self._limit is not None:
            self._say_limit(self._limit)
        if known is None and not self.has_begun and isinstance(error, ValueError | TypeError | RuntimeError):
            return StopCause.INPUT_REJECTED if self.hook.is_tested else None
        return known

    def _say_limit(self, limit: int) -> None:
        """Its own limit, which counts on over its continuations; else that of a workflow in it."""
        if self._iteration >= limit:
            self.run.condition(_LIMIT, "steps", fired=True, limit=limit, observed=self._iteration)
        else:
            self.run.limits = tuple(each for each in self.run.limits if each[0] != _LIMIT)


def _asked(request_id: str, event: Foreign, workflow: Foreign) -> Asked:
    """What an executor asked: an agent's own request, or anything of the program's."""
    data = event.data
    if not isinstance(getattr(data, "user_input_request", None), bool) or not hasattr(data, "call_id"):
        return Asked(request_id, metadata=data)
    executor = getattr(workflow, "executors", {}).get(event.source_executor_id)
    options = getattr(getattr(executor, "agent", None), "default_options", None) or {}
    return asked_for(request_id, data, tool_names(options))
