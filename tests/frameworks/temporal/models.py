"""A worker for the time of a path. Nothing here is scripted but what a workflow does (`workflows`)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from tests.frameworks.temporal import workflows
from tests.frameworks.temporal.server import connected

_numbers = itertools.count(1)
_executor = ThreadPoolExecutor(4)
# The sandbox would import the workflows anew for each execution, which takes most of the time of a path.
_PASSED = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules("tests", "stopcause")
)
_BEGUN = 3  # events until the first task is done
_OPEN = 1  # WORKFLOW_EXECUTION_STATUS_RUNNING
_RUNS = 2  # an activity that a worker has: PENDING_ACTIVITY_STATE_STARTED

How = dict[str, Any]  # the id of a workflow and where its worker listens
Way = Callable[[Client, How], Coroutine[Any, Any, Any]]
Run = Callable[[], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def working(queue: str, *classes: type, **options: Any) -> AsyncIterator[Client]:
    """A client, and a worker on that queue."""
    client = await connected()
    given = {"workflow_runner": _PASSED, "activities": workflows.ACTIVITIES, "activity_executor": _executor, **options}
    async with Worker(client, task_queue=queue, workflows=classes, **given):
        yield client


def place() -> How:
    """An id of a workflow that is the same each time, and a queue of this path's own."""
    return {"id": "ticket-7", "task_queue": f"queue-{next(_numbers)}"}


def path(
    way: Callable[[Client, How], Coroutine[Any, Any, Any]], *classes: type, **options: Any
) -> Callable[[], Coroutine[Any, Any, None]]:
    """A path with one worker, which has these workflows. What fails there is meant to."""

    async def run() -> None:
        how = place()
        async with working(how["task_queue"], *classes, **options) as client:
            try:
                with contextlib.suppress(WorkflowFailureError):
                    await way(client, how)
            finally:
                await cleared(client)

    return run


async def cleared(client: Client) -> None:
    """Takes away what a path has left open; nobody waits for that, so it is not seen."""
    for workflow_id in ("ticket-7", "child-7"):
        with contextlib.suppress(RPCError):  # none is open
            await client.get_workflow_handle(workflow_id).terminate()


def one_of(workflow: Any, *args: Any, **options: Any) -> Way:
    """Runs a workflow to its end."""

    async def way(client: Client, how: How) -> Any:
        return await client.execute_workflow(workflow.run, args=list(args), **{**how, **options})

    return way


def one(
    workflow: Any, *args: Any, worker: How | None = None, **options: Any
) -> Callable[[], Coroutine[Any, Any, None]]:
    """A path of one workflow, which is run to its end by a worker that has no other."""
    return path(one_of(workflow, *args, **options), workflow, **(worker or {}))


async def started(client: Client, how: How, workflow: Any, *args: Any, hangs: int = 0, **options: Any) -> Any:
    """A workflow that has got as far as it can by itself. `hangs`: activities of it that do not end."""
    handle = await client.start_workflow(workflow.run, args=list(args), **how, **options)
    await rests(client, how["id"], hangs)
    return handle


async def rests(client: Client, workflow_id: str, hangs: int = 0) -> None:
    """Waits until a workflow can only go on by something from outside."""
    await _until(client, workflow_id, lambda it: _rests(it, hangs))


async def fails(client: Client, workflow_id: str) -> None:
    """Waits until a task of a workflow has failed, and is tried again."""
    await _until(client, workflow_id, lambda it: it.pending_workflow_task.attempt > 1)


async def tries_again(client: Client, workflow_id: str, execution: str | None) -> None:
    """Waits until another execution is to try a workflow again."""
    await _until(client, workflow_id, lambda it: it.workflow_execution_info.execution.run_id != execution)


async def _until(client: Client, workflow_id: str, is_so: Callable[[Any], bool]) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with contextlib.suppress(RPCError):  # not started yet
            if is_so((await client.get_workflow_handle(workflow_id).describe()).raw_description):
                return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{workflow_id} does not get there")


def _rests(described: Any, hangs: int) -> bool:
    has_begun = described.workflow_execution_info.history_length > _BEGUN
    running = [(each.activity_type.name, each.state) for each in described.pending_activities]
    waits = running == [("hangs", _RUNS)] * hangs
    is_open = described.workflow_execution_info.status == _OPEN
    return is_open and has_begun and waits and not described.HasField("pending_workflow_task")
