"""A worker for the time of a path. Nothing here is scripted but what a workflow does (`workflows`)."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError
from temporalio.worker import Worker

from tests.frameworks.temporal import workflows
from tests.frameworks.temporal.server import connected

_numbers = itertools.count(1)
_executor = ThreadPoolExecutor(4)
_CHANGING = ("Broken", "Mended", "Different")  # of one name: a worker has one of them
WORKFLOWS = [
    each
    for name, each in vars(workflows).items()
    if hasattr(each, "__temporal_workflow_definition") and name not in _CHANGING
]

How = dict[str, Any]  # the id of a workflow and where its worker listens


@contextlib.asynccontextmanager
async def working(queue: str, **options: Any) -> AsyncIterator[Client]:
    """A client, and a worker on that queue."""
    client = await connected()
    given = {"workflows": WORKFLOWS, "activities": workflows.ACTIVITIES, "activity_executor": _executor, **options}
    async with Worker(client, task_queue=queue, **given):
        yield client


def place() -> How:
    """An id of a workflow that is the same each time, and a queue of this path's own."""
    return {"id": "ticket-7", "task_queue": f"queue-{next(_numbers)}"}


def path(way: Callable[[Client, How], Awaitable[Any]], **options: Any) -> Callable[[], Awaitable[None]]:
    """A path with one worker. What fails there is meant to."""

    async def run() -> None:
        how = place()
        async with working(how["task_queue"], **options) as client:
            with contextlib.suppress(WorkflowFailureError):
                await way(client, how)
            for workflow_id in ("ticket-7", "child-7"):
                with contextlib.suppress(RPCError):  # none is open
                    await client.get_workflow_handle(workflow_id).terminate()

    return run


def runs(workflow: Any, *args: Any, **options: Any) -> Callable[[Client, How], Awaitable[Any]]:
    """Runs a workflow to its end."""

    async def way(client: Client, how: How) -> Any:
        return await client.execute_workflow(workflow.run, args=list(args), **how, **options)

    return way
