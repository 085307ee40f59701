"""A2A: what the state of a task means for a run, for whoever called the agent (a client) or is it (a server).

    async with stopcause.run("refund-client") as run:
        a2a.resumed(run, task_id)  # where this message continues a task
        async for update in client.send_message(request):
            last = update
        a2a.ended(run, last)

Nothing here is a hook and nothing imports an SDK: a program calls it with what it has, the objects of `a2a-sdk`, the
JSON form of either version of the protocol, or the bare state. Of all that only the state and the two ids are read.

There is no state for an agent that a bound ended: such a task is `completed` or `failed`. Source of the states: section
4.1.3 of the specification 1.0 (`TaskState` in `a2a.proto`), and 0.3 with its words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.causes import Rank
from stopcause.receipts.hooks.waiting import Waiting
from stopcause.receipts.identifiers import is_identifier, is_personal
from stopcause.receipts.vocabulary import ABORTED, ApprovalKind, Boundary, Decision, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopcause.receipts.run import Run

    Foreign = Any  # an object of the SDK, of any version: checked when it is read


class State(NamedTuple):
    """What a state means: why the run stopped, or what it waits for."""

    number: int | None  # in the protobuf enum of 1.0
    cause: StopCause | None = None
    wait: ApprovalKind | None = None


# By the word of 0.3; 1.0 says `TASK_STATE_` and the same in capitals. A task that is only `submitted` or `working` has
# not ended: whoever leaves it there waits for another system, which goes on, and can ask for the task again.
STATES: Mapping[str, State] = {
    "submitted": State(1, wait=ApprovalKind.EXTERNAL),
    "working": State(2, wait=ApprovalKind.EXTERNAL),
    "completed": State(3, StopCause.NATURAL),
    "failed": State(4, StopCause.SELF_REPORTED_FAILURE),
    "canceled": State(5, StopCause.CALLER_ABORT),
    "input-required": State(6, wait=ApprovalKind.INPUT_REQUIRED),
    "rejected": State(7, StopCause.INPUT_REJECTED),
    "auth-required": State(8, wait=ApprovalKind.SIGN_IN),
    "unspecified": State(0, StopCause.UNKNOWN),  # nothing was said
    "unknown": State(None, StopCause.UNKNOWN),  # 0.3: the server does not know either
}
_BY_NUMBER = {state.number: word for word, state in STATES.items() if state.number is not None}
_PREFIX = "task-state-"
_MESSAGE = "completed"  # an agent may answer with a message and make no task: that is all there is
_UNKNOWN = "state_unknown"
_NAMELESS = "task"  # what a wait on a task is called whose id is not known, so that it can be over
_INSIDE = ("task", "status_update", "statusUpdate", "message", "msg", "root", "result")  # of responses and envelopes

# By agent and task, the run that waits for the task's next message: a client and a service may be in one process. By
# task alone too, for a run whose agent is not named yet.
_waiting: Waiting[str] = Waiting()


class Update(NamedTuple):
    """What was read of an update: the state as its word where it is one, and the ids."""

    state: str | None = None
    task_id: str | None = None
    context_id: str | None = None


def ended(run: Run, update: Foreign, *, task_id: str | None = None, context_id: str | None = None) -> None:
    """Says on a run where the task stood when the program was done with it. Never raises.

    Args:
        run: The open run, as `stopcause.run` gives it.
        update: The last that was seen: a task, an update of its status, a response of a stream, a message; an object
            of the SDK or its JSON form; or a state, as its word of either version or its number.
        task_id: Which task, where `update` does not say.
        context_id: Which context, where `update` does not say; it becomes the run's thread.
    """
    try:
        seen = read(update)
        _say(run, seen._replace(task_id=seen.task_id or task_id, context_id=seen.context_id or context_id))
    except Exception:  # noqa: BLE001 - an object like no other: then nobody knows where the task stood
        run.find("refused_value", "a2a.ended")
        run.say(StopCause.UNKNOWN, Rank.SIGNAL, Boundary.EVENT_STREAM, reason=_UNKNOWN)


def resumed(run: Run, task_id: str | None, run_id: str | None = None) -> None:
    """Says on a run that its message continues a task. Never raises.

    Args:
        run: The run that brings the message; before its block or in it.
        task_id: Which task.
        run_id: The run that waited; known here where it was in this process.
    """
    try:
        _resume(run, task_id, run_id)
    except Exception:  # noqa: BLE001 - ids of other types than these
        run.find("refused_value", "a2a.resumed")


def _resume(run: Run, task_id: str | None, run_id: str | None) -> None:
    if not isinstance(task_id, str) or not task_id:
        raise TypeError
    waited = run_id or _waiting.of(run.agent, task_id)
    for place in (run.agent, None):
        _waiting.forget(place, [task_id])
    if waited == run.run_id:
        run.decided(task_id, Decision.ANSWERED)
    else:
        run.resumed(waited, {task_id: Decision.ANSWERED})


def _say(run: Run, seen: Update) -> None:
    run.thread_id = run.thread_id or seen.context_id
    asked = seen.task_id or _NAMELESS
    if any(wait["approval_id"] == asked and "state" not in wait for wait in run.waits):
        run.decided(asked, Decision.ANSWERED)  # it asked before, and went on
    state = STATES.get(seen.state or "")
    if state is None:
        _say_unknown(run, seen.state)
    elif state.wait is not None:
        _wait(run, seen.task_id, state.wait)
    elif state.cause is not None:
        run.say(state.cause, Rank.SIGNAL, Boundary.EVENT_STREAM, aborted=state.cause in ABORTED)


def _say_unknown(run: Run, state: str | None) -> None:
    """A state that a later version has, or none: the stream was cut off before it said where the task stands."""
    if state is None:
        run.say(StopCause.STREAM_TRUNCATED, Rank.SIGNAL, Boundary.EVENT_STREAM, reason="no_state")
    else:
        run.find("vocabulary_new", state if is_identifier(state) else None)
        run.say(StopCause.UNKNOWN, Rank.SIGNAL, Boundary.EVENT_STREAM, reason=_UNKNOWN)


def _wait(run: Run, task_id: str | None, kind: ApprovalKind) -> None:
    """The task's id resumes it: the next message, or look, names it. One that is not told as it is resumes nothing."""
    token = task_id if task_id is not None and is_identifier(task_id) and not is_personal(task_id) else None
    resumable = True if task_id else None
    run.waiting(task_id or _NAMELESS, kind, resume_token=token, resumable=resumable, boundary=Boundary.EVENT_STREAM)
    if task_id is not None:
        for place in (run.agent, None):
            _waiting.add(place, task_id, run.run_id)


# Reading -------------------------------------------------------------------------------------------------------------


def read(update: Foreign) -> Update:
    """The state and the ids of an update, of any of its forms; nothing where there is no state in it."""
    if isinstance(update, str | int):
        return Update(word(update))
    if isinstance(update, tuple):  # clients of 0.3 give the task, and beside it what was new
        return read(update[0])
    status = _get(update, "status")
    if status is not None:
        task_id = _get(update, "task_id", "taskId", "id")
        return Update(word(_get(status, "state") or 0), task_id, _get(update, "context_id", "contextId"))
    if _get(update, "message_id", "messageId") is not None:
        return Update(_MESSAGE, context_id=_get(update, "context_id", "contextId"))
    inside = _get(update, *_INSIDE)
    return Update() if inside is None else read(inside)


def word(state: Foreign) -> str | None:
    """A state as the word of 0.3, from the word or number of either version; one that is none comes back as it is."""
    value = getattr(state, "value", state)  # 0.3 has an enum of strings
    if isinstance(value, int) and not isinstance(value, bool):
        return _BY_NUMBER.get(value, str(value))
    if not isinstance(value, str):
        return None
    plain = value.lower().replace("_", "-").removeprefix(_PREFIX)
    return plain if plain in STATES else value


def _get(owner: Foreign, *names: str) -> Foreign:
    """The first of these that is there and not empty. A protobuf message has all its fields: those set are there."""
    for name in names:
        value = owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)
        if value and _is_set(owner, name):
            return value
    return None


def _is_set(owner: Foreign, name: str) -> bool:
    """Whether a field of a protobuf message is set: one that holds a message is made when it is looked at."""
    field = getattr(getattr(owner, "DESCRIPTOR", None), "fields_by_name", {}).get(name)
    return field is None or field.message_type is None or bool(owner.HasField(name))
