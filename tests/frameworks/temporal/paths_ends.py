"""Ends of one execution: it came back, it failed, a bound fired, somebody cancelled it."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from stopcause.receipts.hooks import temporal
from tests.frameworks.harness import Path_
from tests.frameworks.temporal import workflows as made
from tests.frameworks.temporal.models import How, one, one_of, path, started

UNPROVEN = ("FALSE_COMPLETE", "no_contract")
FAILED_TOOL = ("FAILED", "tool_failure")
FAILED_HOST = ("FAILED", "host_error")
SOON = timedelta(seconds=1)
NO_CACHE = {"max_cached_workflows": 0, "max_concurrent_workflow_task_polls": 1}


async def _two_at_once(client: Client, how: How) -> None:
    other = {**how, "id": "ticket-8"}
    first = await started(client, how, made.Waits, [], 0)
    await client.execute_workflow(made.Calls.run, ["look_up"], **other)
    await first.signal(made.Waits.go, "canary7f3a")
    await first.result()


async def _invented(client: Client, how: How) -> None:
    await client.execute_workflow("canary7f3a", **how)


async def _signalled(client: Client, how: How) -> None:
    handle = await started(client, how, made.Waits, [], 0)
    await handle.signal(made.Waits.go, "canary7f3a")
    await handle.result()


async def _signal_with_start(client: Client, how: How) -> None:
    given = {"start_signal": "go", "start_signal_args": ["canary7f3a"]}
    await client.execute_workflow(made.Waits.run, args=[[], 0.0], **how, **given)


async def _signal_fails(client: Client, how: How) -> None:
    handle = await started(client, how, made.Waits, ["look_up"], 0)
    await handle.signal(made.Waits.fail, "canary7f3a")
    await handle.result()


async def _cancelled(client: Client, how: How) -> None:
    handle = await started(client, how, made.Waits, ["look_up"], 0)
    await handle.cancel()
    await handle.result()


async def _cancelled_in_activity(client: Client, how: How) -> None:
    handle = await started(client, how, made.HangsInActivity, hangs=1)
    await handle.cancel()
    await handle.result()


async def _cleaned_up(client: Client, how: How) -> None:
    handle = await started(client, how, made.CleansUp)
    await handle.cancel()
    await handle.result()


async def _terminated(client: Client, how: How) -> None:
    handle = await started(client, how, made.Waits, ["look_up"], 0)
    await handle.terminate("canary-7f3a reason")
    await handle.result()


async def _terminated_unseen(client: Client, how: How) -> None:
    handle = await started(client, how, made.Waits, [], 0)
    await handle.terminate("canary-7f3a reason")
    assert await temporal.closing(client, how["id"]) == "platform_abort"


async def _timed_out_unseen(client: Client, how: How) -> None:
    handle = await started(client, how, made.Waits, [], 0, run_timeout=SOON)
    await asyncio.sleep(1.3)
    assert await temporal.closing(client, how["id"], handle.result_run_id) == "time_limit"


async def _unwatched(client: Client, how: How) -> None:
    """A worker without the hook ended it."""
    os.environ["STOPCAUSE_DISABLED"] = "temporal"
    try:
        await one_of(made.Calls, ["look_up"])(client, how)
    finally:
        del os.environ["STOPCAUSE_DISABLED"]
    assert await temporal.closing(client, how["id"]) == "natural"


async def _asked_twice(client: Client, how: How) -> None:
    """A worker recorded it, and somebody asks the server as well."""
    await one_of(made.Calls, ["look_up"])(client, how)
    assert await temporal.closing(client, how["id"]) == "natural"


async def _queried(client: Client, how: How) -> None:
    """What a query runs again, with no cache, is history."""
    handle = await started(client, how, made.Waits, ["look_up"], 0)
    await handle.query(made.Waits.state)
    await handle.signal(made.Waits.go, "canary7f3a")
    await handle.result()
    await handle.query(made.Waits.state)


PATHS = [
    Path_(
        "closed-unwatched",
        "No worker with the hook had it; who asked the server learns that it came to its end.",
        ("FALSE_COMPLETE", "no_contract"),
        path(_unwatched, made.Calls),
    ),
    Path_(
        "closed-watched",
        "The server's word on what a worker has recorded adds nothing.",
        ("FALSE_COMPLETE", "no_contract"),
        path(_asked_twice, made.Calls),
    ),
    Path_(
        "natural",
        "Two activities, and it came back; nobody looked at the destination.",
        UNPROVEN,
        one(made.Calls, ["look_up", "look_up_in_thread"]),
    ),
    Path_("local-activity", "An activity in the worker itself.", UNPROVEN, one(made.CallsLocally, "look_up")),
    Path_(
        "local-activity-fails",
        "An activity in the worker itself failed, and nothing handled that.",
        FAILED_TOOL,
        one(made.CallsLocally, "breaks"),
    ),
    Path_(
        "sandboxed",
        "The sandbox imports the workflow anew for this execution.",
        UNPROVEN,
        one(made.Calls, ["look_up", "look_up_in_thread"], worker={"workflow_runner": SandboxedWorkflowRunner()}),
    ),
    Path_(
        "unsandboxed",
        "A worker without a sandbox.",
        UNPROVEN,
        one(made.Calls, ["look_up", "look_up_in_thread"], worker={"workflow_runner": UnsandboxedWorkflowRunner()}),
    ),
    Path_(
        "no-cache",
        "A worker that keeps nothing runs the history again for every task: one run, as if it kept it.",
        UNPROVEN,
        one(made.Calls, ["look_up", "look_up_in_thread"], worker=NO_CACHE),
    ),
    Path_(
        "queried",
        "Queries run history again, also after the end; that is no run.",
        UNPROVEN,
        path(_queried, made.Waits, **NO_CACHE),
    ),
    Path_(
        "two-at-once",
        "Two executions in one worker are two runs; the second is judged.",
        UNPROVEN,
        path(_two_at_once, made.Waits, made.Calls),
        judged=1,
    ),
    Path_("signalled", "It waited for a signal, which came.", UNPROVEN, path(_signalled, made.Waits)),
    Path_(
        "signal-with-start",
        "The signal was there before its function began.",
        UNPROVEN,
        path(_signal_with_start, made.Waits),
    ),
    Path_(
        "signal-fails",
        "A failure left the handler of a signal, which ends the workflow.",
        FAILED_HOST,
        path(_signal_fails, made.Waits),
    ),
    Path_("activity-fails", "An activity failed on its only try.", FAILED_TOOL, one(made.Calls, ["look_up", "breaks"])),
    Path_(
        "activity-refuses",
        "An activity said that trying again is of no use.",
        FAILED_TOOL,
        one(made.CallsTwice, "refuses"),
    ),
    Path_(
        "activity-fails-twice",
        "An activity failed as often as it may be tried.",
        FAILED_TOOL,
        one(made.CallsTwice, "breaks"),
    ),
    Path_(
        "activity-tried-again",
        "An activity failed once, and the server's next try of it did not.",
        UNPROVEN,
        one(made.CallsTwice, "breaks_once"),
    ),
    Path_(
        "activity-failure-handled",
        "An activity failed; the workflow caught that and went on.",
        UNPROVEN,
        one(made.Recovers),
    ),
    Path_(
        "activity-invented",
        "The name of an activity that no worker has is not recorded.",
        FAILED_TOOL,
        one(made.CallsByName, ["canary7f3a"]),
    ),
    Path_(
        "activity-under-any-name",
        "An activity that takes every name is called by none.",
        FAILED_TOOL,
        one(made.CallsByName, ["canary7f3a", "canary7f3a"], worker={"activities": [made.takes_any]}),
    ),
    Path_(
        "workflow-under-any-name",
        "A workflow that takes every name is called by its class.",
        UNPROVEN,
        path(_invented, made.TakesAny),
    ),
    Path_(
        "activity-by-name",
        "A name that was given as a string is recorded where this process has run it.",
        FAILED_TOOL,
        one(made.CallsByName, ["look_up", "look_up", "refuses"]),
    ),
    Path_(
        "activity-start-to-close",
        "An activity took longer than one try may.",
        FAILED_TOOL,
        one(made.Bounded, "start_to_close_timeout"),
    ),
    Path_(
        "activity-schedule-to-close",
        "An activity took longer than all its tries may.",
        FAILED_TOOL,
        one(made.Bounded, "schedule_to_close_timeout"),
    ),
    Path_(
        "activity-schedule-to-start",
        "No worker took the activity up.",
        FAILED_TOOL,
        one(made.Bounded, "schedule_to_start_timeout"),
    ),
    Path_("activity-silent", "An activity gave no sign of life.", FAILED_TOOL, one(made.Bounded, "heartbeat_timeout")),
    Path_(
        "activity-cancelled",
        "It cancelled its own activity, and fails by that.",
        FAILED_TOOL,
        one(made.CancelsActivity),
    ),
    Path_(
        "activity-left",
        "It came back while an activity was unanswered.",
        ("UNCERTAIN", "pending_tool_calls"),
        one(made.LeavesActivity),
    ),
    Path_("activities-race", "Of two activities the slower one was cancelled.", UNPROVEN, one(made.Races)),
    Path_(
        "raises",
        "It raised a failure of its own, of a type that says why.",
        FAILED_HOST,
        one(made.Raises, "OutOfStock"),
    ),
    Path_("raises-untyped", "It raised a failure of its own without a type.", FAILED_HOST, one(made.Raises, "")),
    Path_(
        "raises-plainly",
        "An exception that the workflow declares to be a failure.",
        FAILED_HOST,
        one(made.RaisesPlainly),
    ),
    Path_(
        "wait-too-long",
        "A condition did not come true in time, with nothing done before.",
        ("STUCK", "time_limit"),
        one(made.Waits, [], 0.2),
    ),
    Path_(
        "wait-too-long-with-progress",
        "A condition did not come true in time, after an activity.",
        ("BOUNDED_STOP", "time_limit"),
        one(made.Waits, ["look_up"], 0.2),
    ),
    Path_(
        "cancelled",
        "Somebody cancelled it while it waited.",
        ("BOUNDED_STOP", "caller_abort"),
        path(_cancelled, made.Waits),
    ),
    Path_(
        "cancelled-in-activity",
        "Somebody cancelled it while an activity ran.",
        ("BOUNDED_STOP", "caller_abort"),
        path(_cancelled_in_activity, made.HangsInActivity),
    ),
    Path_(
        "cleans-up", "Cancelled, it did what was to be done, and came back.", UNPROVEN, path(_cleaned_up, made.CleansUp)
    ),
    Path_(
        "terminated",
        "Terminated: no code of a worker's ran; the client that waits for the result saw it.",
        ("BOUNDED_STOP", "platform_abort"),
        path(_terminated, made.Waits),
    ),
    Path_(
        "terminated-unseen",
        "Terminated, and nobody waited: somebody asked how it closed.",
        ("BOUNDED_STOP", "platform_abort"),
        path(_terminated_unseen, made.Waits),
    ),
    Path_(
        "timed-out",
        "Its own time ran out at the server, with nothing done.",
        ("STUCK", "time_limit"),
        one(made.Waits, [], 0, run_timeout=SOON),
    ),
    Path_(
        "timed-out-with-progress",
        "Its own time ran out at the server, after an activity.",
        ("BOUNDED_STOP", "time_limit"),
        one(made.Waits, ["look_up"], 0, execution_timeout=SOON),
    ),
    Path_(
        "timed-out-unseen",
        "Its time ran out, and nobody waited: somebody asked how it closed.",
        ("STUCK", "time_limit"),
        path(_timed_out_unseen, made.Waits),
    ),
]
