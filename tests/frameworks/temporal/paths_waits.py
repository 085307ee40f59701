"""Waits that a workflow names: open, routed, answered, denied, expired, and taken up by another worker."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.client import Client
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from tests.frameworks.harness import Path_
from tests.frameworks.temporal import asking
from tests.frameworks.temporal.models import How, one, path, rests, started
from tests.frameworks.temporal.paths_chains import after_another
from tests.frameworks.temporal.paths_ends import FAILED_HOST, FAILED_TOOL, NO_CACHE, SOON, UNPROVEN

UNROUTED = ("WAITING_UNROUTED", "owner")
ROUTE = {"route": {"owner": "team:billing", "due_s": 3600}}
ROUTED = ("WAITING", "confirmation")


async def _asks(client: Client, how: How) -> None:
    await started(client, how, asking.Approves, 0, False)


async def _asks_for_an_hour(client: Client, how: How) -> None:
    await started(client, how, asking.Approves, 3600, False)


async def _asks_for_input(client: Client, how: How) -> None:
    await started(client, how, asking.Asks)


def answered(answer: bool, strict: bool = False) -> Any:
    """It is answered by a signal."""

    async def way(client: Client, how: How) -> None:
        handle = await started(client, how, asking.Approves, 0, strict)
        await handle.signal(asking.Approves.decide, answer)
        await handle.result()

    return way


async def _updated(client: Client, how: How) -> None:
    handle = await started(client, how, asking.Approves, 0, False)
    await handle.execute_update(asking.Approves.decide_now, True)
    await handle.result()


async def _input_given(client: Client, how: How) -> None:
    handle = await started(client, how, asking.Asks)
    await handle.signal(asking.Asks.say, "canary7f3a")
    await handle.result()


async def _cancelled(client: Client, how: How) -> None:
    handle = await started(client, how, asking.Approves, 0, False)
    await handle.cancel()
    await handle.result()


async def _terminated(client: Client, how: How) -> None:
    handle = await started(client, how, asking.Approves, 0, False)
    await handle.terminate()
    await handle.result()


async def _timed_out(client: Client, how: How) -> None:
    handle = await started(client, how, asking.Asks, run_timeout=SOON)
    await handle.result()


def answers_two(*names: str) -> Any:
    """Of two questions these are answered by a yes, in this order."""

    async def way(client: Client, how: How) -> None:
        handle = await started(client, how, asking.AsksTwo)
        for name in names:
            await rests(client, how["id"])  # each answer in a task of its own
            await handle.signal(asking.AsksTwo.decide, args=[name, True])
        await (handle.result() if len(names) > 1 else rests(client, how["id"]))

    return way


async def _child_asks(client: Client, how: How) -> None:
    await client.start_workflow(asking.ParentOfAsking.run, **how)
    await rests(client, "child-7")


async def _begins(client: Client, how: How) -> Any:
    return await started(client, how, asking.Approves, 3600, False)


async def _approves(handle: Any) -> None:
    await handle.signal(asking.Approves.decide, True)
    await handle.result()


async def _leaves(_: Any) -> None:
    await asyncio.sleep(0)


def strictly(seconds: float, *, strict: bool) -> Any:
    """Nobody answers."""
    return one(asking.Approves, seconds, strict)


PATHS = [
    Path_("asks", "It waits for a yes, and nobody is named who gives it.", UNROUTED, path(_asks, asking.Approves)),
    Path_(
        "asks-routed",
        "It waits for a yes; the route says whose, and until when.",
        ROUTED,
        path(_asks, asking.Approves),
        options=ROUTE,
    ),
    Path_(
        "asks-in-time",
        "It waits for a yes for an hour at most, and metadata name who gives it.",
        ROUTED,
        path(_asks_for_an_hour, asking.Approves),
        options={"approval_keys": {"owner": "who"}},
    ),
    Path_(
        "asks-overdue",
        "It waits for a yes that was due long ago.",
        ("WAITING_UNROUTED", "overdue"),
        path(_asks, asking.Approves),
        options=ROUTE,
        after_s=4000.0,
    ),
    Path_(
        "asks-past-its-time",
        "Its time for a yes is over, and no worker has it any more.",
        ("STUCK", "lease_expired"),
        path(_asks_for_an_hour, asking.Approves),
        after_s=4000.0,
    ),
    Path_(
        "asks-for-input",
        "It waits for an input; the workflow names the owner, and how long.",
        ("WAITING", "input_required"),
        path(_asks_for_input, asking.Asks),
    ),
    Path_(
        "asks-no-cache",
        "A worker that keeps nothing records the wait once.",
        UNROUTED,
        path(_asks, asking.Approves, **NO_CACHE),
    ),
    Path_("input-given", "The input came, and it came back.", UNPROVEN, path(_input_given, asking.Asks)),
    Path_(
        "approved",
        "A yes by a signal; what was asked for was done.",
        UNPROVEN,
        path(answered(answer=True), asking.Approves),
    ),
    Path_(
        "approved-no-cache",
        "The same with a worker that keeps nothing.",
        UNPROVEN,
        path(answered(answer=True), asking.Approves, **NO_CACHE),
    ),
    Path_(
        "approved-sandboxed",
        "The sandbox imports the workflow anew; what it says of its waits is heard all the same.",
        UNPROVEN,
        path(answered(answer=True), asking.Approves, workflow_runner=SandboxedWorkflowRunner()),
    ),
    Path_("approved-by-update", "A yes by an update.", UNPROVEN, path(_updated, asking.Approves)),
    Path_(
        "denied",
        "A no; it went on and came back: what was asked for is not done.",
        ("FALSE_COMPLETE", "denied"),
        path(answered(answer=False), asking.Approves),
    ),
    Path_(
        "denied-fails",
        "A no, of which the workflow makes a failure of its own.",
        FAILED_HOST,
        path(answered(answer=False, strict=True), asking.Approves),
    ),
    Path_("expired", "Nobody answered in time; it caught that and came back.", UNPROVEN, strictly(0.2, strict=False)),
    Path_(
        "expired-fails",
        "Nobody answered in time, and that ended it.",
        ("BOUNDED_STOP", "approval_expired"),
        strictly(0.2, strict=True),
    ),
    Path_(
        "asks-cancelled",
        "Cancelled while it waited for a yes.",
        ("BOUNDED_STOP", "caller_abort"),
        path(_cancelled, asking.Approves),
    ),
    Path_(
        "asks-terminated",
        "Terminated while it waited for a yes.",
        ("BOUNDED_STOP", "platform_abort"),
        path(_terminated, asking.Approves),
    ),
    Path_(
        "asks-timed-out",
        "Its own time ran out at the server while it waited: nobody can answer any more.",
        ("STUCK", "time_limit"),
        path(_timed_out, asking.Asks),
    ),
    Path_(
        "asks-within-time",
        "The time of what it asked in was over, and that ended it.",
        ("STUCK", "time_limit"),
        one(asking.AsksWithinTime, True),
    ),
    Path_(
        "asks-within-time-handled",
        "The same, and it went on: what it asked is withdrawn.",
        UNPROVEN,
        one(asking.AsksWithinTime, False),
    ),
    Path_(
        "asks-aside",
        "It came back while it still asked: that is withdrawn.",
        UNPROVEN,
        one(asking.AsksAside, "look_up"),
    ),
    Path_(
        "asks-aside-fails",
        "An activity failed while it asked something else.",
        FAILED_TOOL,
        one(asking.AsksAside, "breaks"),
    ),
    Path_(
        "asks-continued",
        "It went on as a new execution while it asked: that one takes up all of it.",
        ("WAITING", "answered"),
        one(asking.AsksThenContinues, False),
    ),
    Path_(
        "asks-two",
        "Two at once, of which the second is answered: it waits for the first.",
        ROUTED,
        path(answers_two("second"), asking.AsksTwo),
    ),
    Path_(
        "approved-two",
        "Two at once, answered in another order than asked.",
        UNPROVEN,
        path(answers_two("second", "first"), asking.AsksTwo),
    ),
    Path_(
        "child-asks",
        "Its child waits, which is open: so is it.",
        (None, "running"),
        path(_child_asks, asking.ParentOfAsking, asking.Asks),
    ),
    Path_(
        "child-asks-itself",
        "The child waits for an input.",
        ("WAITING", "input_required"),
        path(_child_asks, asking.ParentOfAsking, asking.Asks),
        judged=1,
    ),
    Path_(
        "asks-worker-gone",
        "Its worker went away: the wait is as open as before.",
        ROUTED,
        after_another(asking.Approves, asking.Approves, _begins, _leaves),
        options=ROUTE,
    ),
    Path_(
        "approved-elsewhere",
        "Asked with one worker, answered with another.",
        UNPROVEN,
        after_another(asking.Approves, asking.Approves, _begins, _approves),
    ),
]
