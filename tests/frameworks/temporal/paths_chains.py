"""More than one execution, or more than one worker: continued, tried again, children, taken up elsewhere, bugs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy

from stopcause.receipts.hooks import temporal
from tests.frameworks.harness import Path_
from tests.frameworks.temporal import workflows as made
from tests.frameworks.temporal.models import (
    How,
    Run,
    Way,
    cleared,
    fails,
    one,
    one_of,
    path,
    place,
    rests,
    started,
    tries_again,
    working,
)
from tests.frameworks.temporal.paths_ends import FAILED_HOST, FAILED_TOOL, NO_CACHE, UNPROVEN

QUICK = timedelta(milliseconds=10)
OPEN = (None, "running")


def tries(times: int) -> RetryPolicy:
    """A retry policy of a whole workflow."""
    return RetryPolicy(maximum_attempts=times, initial_interval=QUICK, maximum_interval=QUICK)


def after_another(first: type, second: type, begin: Way, end: Callable[[Any], Coroutine[Any, Any, Any]]) -> Run:
    """One worker begins it and goes away; another one, which may have other code, takes it up."""

    async def run() -> None:
        how = place()
        async with working(how["task_queue"], first) as client:
            handle = await begin(client, how)
        async with working(how["task_queue"], second) as client:
            with contextlib.suppress(WorkflowFailureError, TimeoutError):
                await asyncio.wait_for(end(client.get_workflow_handle(how["id"])), 15)
            await cleared(client)
        del handle

    return run


async def _begins_waiting(client: Client, how: How) -> Any:
    return await started(client, how, made.Waits, ["look_up"], 0)


async def _fails_task(client: Client, how: How) -> None:
    await client.start_workflow("Changing", **how)
    await fails(client, how["id"])


async def _breaks_then(client: Client, how: How) -> Any:
    handle = await client.start_workflow("Changing", **how, task_timeout=timedelta(seconds=1))
    await fails(client, how["id"])
    return handle


async def _terminated_between_tries(client: Client, how: How) -> None:
    policy = RetryPolicy(maximum_attempts=2, initial_interval=timedelta(seconds=60))
    first = await client.start_workflow(made.FailsAtFirst.run, 1, **how, retry_policy=policy)
    await tries_again(client, how["id"], first.result_run_id)
    await client.get_workflow_handle(how["id"]).terminate()
    assert await temporal.closing(client, how["id"]) == "platform_abort"


async def _cancels_agent(client: Client, how: How) -> None:
    handle = await started(client, how, made.RunsAgent, ["look_up", "hangs"], hangs=1)
    await _cancels(handle)


async def _signals(handle: Any) -> None:
    await handle.signal(made.Waits.go, "canary7f3a")
    await handle.result()


async def _cancels(handle: Any) -> None:
    await handle.cancel()
    await handle.result()


async def _differs(_: Any) -> None:
    """Tries of the task that fail in the SDK itself, before any code of the workflow's is asked."""
    await asyncio.sleep(0.3)


async def _result(handle: Any) -> None:
    await handle.result()


async def _abandons(client: Client, how: How) -> None:
    handle = await client.start_workflow(made.Abandons.run, **how)
    await rests(client, "child-7")
    await handle.signal(made.Abandons.go)
    await handle.result()


async def _child_terminated(client: Client, how: How) -> None:
    handle = await client.start_workflow(made.ParentOfSlow.run, **how)
    await rests(client, "child-7")
    await client.get_workflow_handle("child-7").terminate("canary-7f3a")
    await handle.result()


_TWO = tries(2)

PATHS = [
    Path_(
        "continued",
        "It went on as a new execution, which took it up: the first one's end is none.",
        ("WAITING", "answered"),
        one(made.Continues, 1, "look_up"),
    ),
    Path_("continued-next", "The new execution came back.", UNPROVEN, one(made.Continues, 1, "look_up"), judged=1),
    Path_(
        "continued-twice",
        "Of three executions the second was taken up, too.",
        ("WAITING", "answered"),
        one(made.Continues, 2, "look_up"),
        judged=1,
    ),
    Path_(
        "continued-fails",
        "The new execution failed; that it was begun is all that the first one waited for.",
        ("WAITING", "answered"),
        one(made.Continues, 1, "breaks"),
    ),
    Path_(
        "continued-fails-next",
        "The new execution failed by an activity.",
        FAILED_TOOL,
        one(made.Continues, 1, "breaks"),
        judged=1,
    ),
    Path_(
        "tried-again",
        "It failed, and its retry policy tried it again: two attempts of one run.",
        UNPROVEN,
        one(made.FailsAtFirst, 1, retry_policy=_TWO),
    ),
    Path_(
        "tried-three-times", "The third attempt came back.", UNPROVEN, one(made.FailsAtFirst, 2, retry_policy=tries(3))
    ),
    Path_(
        "tried-then-continued",
        "Its second attempt went on as a new execution, which took that attempt up.",
        ("WAITING", "answered"),
        one(made.FailsThenContinues, False, retry_policy=_TWO),
    ),
    Path_(
        "tried-terminated-unseen",
        "Terminated before its second attempt began, and nobody waited: somebody asked how it closed.",
        ("BOUNDED_STOP", "platform_abort"),
        path(_terminated_between_tries, made.FailsAtFirst),
    ),
    Path_("tried-in-vain", "Its last attempt failed, too.", FAILED_HOST, one(made.FailsAtFirst, 2, retry_policy=_TWO)),
    Path_(
        "child",
        "Its child and itself came back.",
        UNPROVEN,
        path(one_of(made.Parent, "ends", False), made.Parent, made.Calls),
    ),
    Path_(
        "child-itself",
        "The child came back.",
        UNPROVEN,
        path(one_of(made.Parent, "ends", False), made.Parent, made.Calls),
        judged=1,
    ),
    Path_(
        "child-fails",
        "An activity of its child failed, and nothing handled that.",
        FAILED_TOOL,
        path(one_of(made.Parent, "fails", False), made.Parent, made.Calls),
    ),
    Path_(
        "child-failure-handled",
        "Its child failed; it caught that and came back.",
        UNPROVEN,
        path(one_of(made.Parent, "fails", True), made.Parent, made.Calls),
    ),
    Path_(
        "child-raises",
        "Its child failed by a failure of its own.",
        FAILED_HOST,
        path(one_of(made.ParentOfRaising), made.ParentOfRaising, made.Raises),
    ),
    Path_(
        "child-terminated",
        "Its child was terminated, which it did not handle.",
        ("BOUNDED_STOP", "platform_abort"),
        path(_child_terminated, made.ParentOfSlow, made.Waits),
    ),
    Path_(
        "child-timed-out",
        "Its child's time ran out, with nothing done.",
        ("STUCK", "time_limit"),
        path(one_of(made.ParentOfSlow), made.ParentOfSlow, made.Waits),
    ),
    Path_(
        "child-invented",
        "Its child has a name that no worker has, and ran out of time: the child is judged.",
        ("STUCK", "time_limit"),
        path(one_of(made.ParentOfInvented), made.ParentOfInvented),
        judged=1,
    ),
    Path_(
        "child-abandoned",
        "It came back while its child goes on.",
        ("FALSE_COMPLETE", "open_children"),
        path(_abandons, made.Abandons, made.Waits),
    ),
    Path_(
        "agent-in-activity",
        "An agent in an activity is a run of its own, and a child of the workflow's.",
        UNPROVEN,
        one(made.Calls, ["asks_agent"]),
        judged=1,
    ),
    Path_(
        "agent-in-workflow",
        "An agent in the workflow itself is a child of it.",
        UNPROVEN,
        one(made.RunsAgent, ["look_up", "look_up"]),
        judged=1,
    ),
    Path_(
        "agent-in-workflow-fails",
        "A tool of its is an activity, which failed: the workflow is judged.",
        FAILED_TOOL,
        one(made.RunsAgent, ["look_up", "breaks"]),
    ),
    Path_(
        "agent-in-workflow-cancelled",
        "The workflow was cancelled while a tool of its agent ran: the agent is judged.",
        ("BOUNDED_STOP", "caller_abort"),
        path(_cancels_agent, made.RunsAgent),
        judged=1,
    ),
    Path_(
        "agent-in-workflow-no-cache",
        "A worker that keeps nothing runs the agent again and again, for one receipt.",
        UNPROVEN,
        one(made.RunsAgent, ["look_up", "look_up"], worker=NO_CACHE),
        judged=1,
    ),
    Path_(
        "taken-up",
        "Its worker went away while it waited; another one took it up: one run.",
        UNPROVEN,
        after_another(made.Waits, made.Waits, _begins_waiting, _signals),
    ),
    Path_(
        "taken-up-cancelled",
        "It was cancelled with another worker than it began with.",
        ("BOUNDED_STOP", "caller_abort"),
        after_another(made.Waits, made.Waits, _begins_waiting, _cancels),
    ),
    Path_(
        "task-fails",
        "A bug fails the workflow's task, which the server tries again: it stays open.",
        OPEN,
        path(_fails_task, made.Broken),
    ),
    Path_(
        "task-mended",
        "A bug failed a task, until a worker came that has the mended code.",
        UNPROVEN,
        after_another(made.Broken, made.Mended, _breaks_then, _result),
    ),
    Path_(
        "history-differs",
        "Code came that does other things than the history says: the task fails, and it stays open.",
        OPEN,
        after_another(made.Broken, made.Different, _breaks_then, _differs),
    ),
]
