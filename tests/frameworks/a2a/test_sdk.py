"""Tasks of the real SDK, as a client and as a service: each end has its cause, and one that waited is taken up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from a2a.compat.v0_3 import types as before
from a2a.types import CancelTaskRequest, StreamResponse, Task, TaskState, TaskStatus, TaskStatusUpdateEvent
from google.protobuf.json_format import MessageToDict

import stopcause
from stopcause.receipts import a2a, model
from stopcause.receipts.testing import Recorded, recorded
from tests.frameworks.a2a.service import Clerk, Slow, client_of, last_of

STATE = TaskState.Value
COMPLETED, INPUT = STATE("TASK_STATE_COMPLETED"), STATE("TASK_STATE_INPUT_REQUIRED")
ENDS = [
    ("TASK_STATE_COMPLETED", "natural"),
    ("TASK_STATE_FAILED", "self_reported_failure"),
    ("TASK_STATE_CANCELED", "caller_abort"),
    ("TASK_STATE_REJECTED", "input_rejected"),
    ("TASK_STATE_INPUT_REQUIRED", "input_pending"),
    ("TASK_STATE_AUTH_REQUIRED", "approval_pending"),
]


def test_every_state_of_the_sdk_is_in_the_table() -> None:
    numbers = {a2a.word(name): number for name, number in TaskState.items()}
    assert numbers == {word: state.number for word, state in a2a.STATES.items() if state.number is not None}


def test_every_state_of_the_version_before_is_in_the_table() -> None:
    assert {a2a.word(state) for state in before.TaskState} <= set(a2a.STATES)


_STATUS = TaskStatus(state=INPUT)
FORMS: list[Any] = [
    Task(id="t-1", context_id="c-1", status=_STATUS),
    TaskStatusUpdateEvent(task_id="t-1", context_id="c-1", status=_STATUS),
    StreamResponse(task=Task(id="t-1", context_id="c-1", status=_STATUS)),
    StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t-1", context_id="c-1", status=_STATUS)),
    before.Task(id="t-1", context_id="c-1", status=before.TaskStatus(state=before.TaskState.input_required)),
]
FORMS += [MessageToDict(form) for form in FORMS[:4]]
FORMS.append(FORMS[4].model_dump(by_alias=True, mode="json"))


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_every_object_of_the_sdk_is_read(form: Any) -> None:
    assert a2a.read(form) == ("input-required", "t-1", "c-1")


def test_what_is_not_set_is_not_there() -> None:
    assert a2a.read(StreamResponse()) == (None, None, None)
    assert a2a.read(Task(id="t-1", status=TaskStatus())).state == "unspecified"


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("name", "cause"), ENDS)
def test_a_task_ends_a_run_of_the_client_and_of_the_service(name: str, cause: str, streaming: bool) -> None:
    async def program() -> None:
        async with client_of(Clerk(STATE(name)), streaming=streaming) as client:
            with stopcause.run("caller") as run:
                a2a.ended(run, await last_of(client))

    with recorded() as receipts:
        asyncio.run(program())
        clerk, caller = _of(receipts, "clerk"), _of(receipts, "caller")
        assert b"canary" not in b"\n".join(receipts.lines)
    assert [stop.stop_cause for stop in (*clerk, *caller)] == [cause, cause]
    assert clerk[0].thread_id == caller[0].thread_id is not None


def test_a_task_that_asked_is_taken_up_by_the_next_message() -> None:
    async def program() -> None:
        async with client_of(Clerk(INPUT, COMPLETED)) as client:
            with stopcause.run("caller") as run:
                asked = await last_of(client)
                a2a.ended(run, asked)
            task_id, context_id = a2a.read(asked)[1:]
            assert task_id is not None
            with stopcause.run("caller") as run:
                a2a.resumed(run, task_id)
                a2a.ended(run, await last_of(client, task_id, context_id))

    with recorded() as receipts:
        asyncio.run(program())
        for waited, resumed in (_of(receipts, "clerk"), _of(receipts, "caller")):
            (wait,) = waited.approvals or ()
            assert (wait.kind, wait.resumable) == ("input_required", True)
            assert (resumed.stop_cause, resumed.resumes_run_id) == ("natural", waited.run_id)
            assert resumed.answers == (wait.resume_token,)


def test_a_task_that_is_left_working_waits_for_another_system_and_can_be_canceled() -> None:
    async def program() -> None:
        async with client_of(Slow(), streaming=False) as client:
            with stopcause.run("caller") as run:
                left = await last_of(client, waits=False)
                a2a.ended(run, left)
            task_id = a2a.read(left).task_id
            with stopcause.run("caller") as run:
                a2a.resumed(run, task_id)
                a2a.ended(run, await client.cancel_task(CancelTaskRequest(id=task_id)))

    with recorded() as receipts:
        asyncio.run(program())
        (clerk,), (left, canceled) = _of(receipts, "clerk"), _of(receipts, "caller")
    (wait,) = left.approvals or ()
    assert (left.stop_cause, wait.kind, wait.resumable) == ("external_pending", "external", True)
    assert (canceled.stop_cause, canceled.resumes_run_id) == ("caller_abort", left.run_id)
    assert (clerk.stop_cause, clerk.reason_code) == ("caller_abort", "cancelled")


def test_a_task_that_the_client_cancels() -> None:
    async def program() -> None:
        async with client_of(Clerk(INPUT)) as client:
            task_id = a2a.read(await last_of(client)).task_id
            with stopcause.run("canceler") as run:
                a2a.ended(run, await client.cancel_task(CancelTaskRequest(id=task_id)))

    with recorded() as receipts:
        asyncio.run(program())
        (stop,) = _of(receipts, "canceler")
    assert stop.stop_cause == "caller_abort"
    assert stop.abort is not None


def _of(receipts: Recorded, agent: str) -> list[model.RunStopped]:
    return [stop for stop in receipts.receipts if stop.agent == agent]
