"""Workflows and activities that are made to end in one way each. The sandbox imports this file for every execution."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, TypeAlias

from temporalio import activity, workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError

import stopcause

SOON = timedelta(seconds=0.3)
LONG = timedelta(seconds=30)
ONCE = RetryPolicy(maximum_attempts=1)
# What an activity or workflow takes that takes every name: compared with `==`, and of `typing` in older versions.
_SEQUENCE = vars(activity)["Sequence"]
Raw: TypeAlias = _SEQUENCE[RawValue]  # type: ignore[valid-type]
TWICE = RetryPolicy(maximum_attempts=2, initial_interval=timedelta(milliseconds=10))


# Activities -----------------------------------------------------------------------------------------------------------


@activity.defn
async def look_up(text: str) -> str:
    return f"found {text}"


@activity.defn
def look_up_in_thread(text: str) -> str:
    return f"found {text}"


@activity.defn
async def breaks(text: str) -> str:
    raise ValueError(f"canary-7f3a {text}")


@activity.defn
async def refuses(text: str) -> str:
    raise ApplicationError(f"canary-7f3a {text}", type="NotAllowed", non_retryable=True)


@activity.defn
async def breaks_once(text: str) -> str:
    if activity.info().attempt == 1:
        raise ValueError(f"canary-7f3a {text}")
    return text


@activity.defn
async def hangs(_: str) -> str:
    await asyncio.sleep(20)
    return "late"


@activity.defn
async def asks_agent(text: str) -> str:
    """An agent's own run, inside an activity."""
    with stopcause.run("inner-agent") as run:
        run.step()
    return text


@activity.defn(dynamic=True)
async def takes_any(_: Raw) -> str:
    """Under every name; only the first time in a workflow it works."""
    if activity.info().activity_id != "1":
        raise ValueError("canary-7f3a")
    return "found"


ACTIVITIES = [look_up, look_up_in_thread, breaks, refuses, breaks_once, hangs, asks_agent]
FUNCTIONS = {each.__name__: each for each in ACTIVITIES}


async def call(function: Any, text: str = "canary7f3a", **options: Any) -> Any:
    """One activity, tried once unless said."""
    given = {"start_to_close_timeout": LONG, "retry_policy": ONCE, **options}
    return await workflow.execute_activity(function, text, **given)


async def child(function: Any, *args: Any, **options: Any) -> str:
    return str(await workflow.execute_child_workflow(function, *args, **options))


@workflow.defn
class RunsAgent:
    """An agent in the workflow itself, whose tools are activities."""

    @workflow.run
    async def run(self, names: list[str]) -> str:
        with stopcause.run("inner-agent") as run:
            for name in names:
                await call(FUNCTIONS[name])
                run.step(tool_calls=1)
        return "done"


# Ends -----------------------------------------------------------------------------------------------------------------


@workflow.defn
class Calls:
    """Activities one after the other."""

    @workflow.run
    async def run(self, names: list[str]) -> str:
        for name in names:
            await call(FUNCTIONS[name])
        return "canary-7f3a done"


@workflow.defn
class CallsTwice:
    """One activity that may be tried twice."""

    @workflow.run
    async def run(self, name: str) -> str:
        return str(await call(FUNCTIONS[name], retry_policy=TWICE))


@workflow.defn
class CallsByName:
    """As an agent does that was told a tool's name by its model."""

    @workflow.run
    async def run(self, names: list[str]) -> str:
        for name in names:
            await call(name)
        return "done"


@workflow.defn(dynamic=True)
class TakesAny:
    """Under every name."""

    @workflow.run
    async def run(self, _: Raw) -> str:
        return "done"


@workflow.defn
class CallsLocally:
    @workflow.run
    async def run(self, name: str) -> str:
        given = {"start_to_close_timeout": LONG, "retry_policy": ONCE}
        return str(await workflow.execute_local_activity(FUNCTIONS[name], "canary7f3a", **given))


@workflow.defn
class Bounded:
    """One activity within a bound of its own."""

    @workflow.run
    async def run(self, bound: str) -> str:
        queue = "nobody" if bound == "schedule_to_start_timeout" else None
        bounds: dict[str, Any] = {bound: SOON}
        return str(await call(hangs, task_queue=queue, **bounds))


@workflow.defn
class Recovers:
    """An activity fails, and the workflow goes on."""

    @workflow.run
    async def run(self) -> str:
        try:
            await call(breaks)
        except ActivityError:
            return str(await call(look_up))
        return "never"


@workflow.defn
class Raises:
    @workflow.run
    async def run(self, kind: str) -> str:
        await call(look_up)
        raise ApplicationError("canary-7f3a raised", "canary7f3a", type=kind or None)


@workflow.defn(failure_exception_types=[ValueError])
class RaisesPlainly:
    """An exception of the program's that is declared to be a failure."""

    @workflow.run
    async def run(self) -> str:
        raise ValueError("canary-7f3a raised")


@workflow.defn
class Waits:
    """Until a signal, or too long."""

    def __init__(self) -> None:
        self.said = ""

    @workflow.run
    async def run(self, names: list[str], seconds: float) -> str:
        for name in names:
            await call(FUNCTIONS[name])
        await workflow.wait_condition(lambda: bool(self.said), timeout=seconds or None)
        return str(await call(look_up))

    @workflow.signal
    def go(self, said: str) -> None:
        self.said = said

    @workflow.signal
    def fail(self, said: str) -> None:
        raise ApplicationError(f"canary-7f3a {said}", type="Refused")

    @workflow.update
    def change(self, said: str) -> str:
        self.said = said
        return said

    @change.validator
    def check(self, said: str) -> None:
        if not said:
            raise ValueError("canary-7f3a empty")

    @workflow.query
    def state(self) -> str:
        return self.said


@workflow.defn
class CleansUp:
    """It is cancelled, does what is to be done then, and comes back."""

    @workflow.run
    async def run(self) -> str:
        try:
            await workflow.wait_condition(lambda: False)
        except asyncio.CancelledError:
            return str(await call(look_up))
        return "never"


@workflow.defn
class HangsInActivity:
    @workflow.run
    async def run(self) -> str:
        return str(await call(hangs, heartbeat_timeout=LONG))


@workflow.defn
class CancelsActivity:
    """It cancels its own activity, and fails by that."""

    @workflow.run
    async def run(self) -> str:
        handle = workflow.start_activity(hangs, "canary7f3a", start_to_close_timeout=LONG, retry_policy=ONCE)
        await workflow.sleep(0.05)
        handle.cancel()
        return str(await handle)


@workflow.defn
class LeavesActivity:
    """It comes back while an activity goes on."""

    @workflow.run
    async def run(self) -> str:
        workflow.start_activity(hangs, "canary7f3a", start_to_close_timeout=LONG, retry_policy=ONCE)
        await workflow.sleep(0.05)
        return "done"


@workflow.defn
class Races:
    """Two at once; the slow one is cancelled."""

    @workflow.run
    async def run(self) -> str:
        slow = workflow.start_activity(hangs, "canary7f3a", start_to_close_timeout=LONG, retry_policy=ONCE)
        fast = workflow.start_activity(look_up, "canary7f3a", start_to_close_timeout=LONG, retry_policy=ONCE)
        await fast
        slow.cancel()
        return "done"


# Chains ---------------------------------------------------------------------------------------------------------------


@workflow.defn
class Continues:
    """Goes on as a new execution, as often as said."""

    @workflow.run
    async def run(self, more: int, last: str) -> str:
        await call(look_up)
        if more:
            workflow.continue_as_new(args=[more - 1, last])
        return str(await call(FUNCTIONS[last]))


@workflow.defn
class FailsAtFirst:
    """Fails as often as said; a retry policy tries it again."""

    @workflow.run
    async def run(self, failures: int) -> str:
        await call(look_up)
        if workflow.info().attempt <= failures:
            raise ApplicationError("canary-7f3a again", type="Flaky")
        return "done"


@workflow.defn
class FailsThenContinues:
    """Fails once, and is continued as a new execution by its second attempt."""

    @workflow.run
    async def run(self, is_last: bool) -> str:
        if is_last:
            return "done"
        if workflow.info().attempt == 1:
            raise ApplicationError("canary-7f3a again", type="Flaky")
        workflow.continue_as_new(True)
        return "never"


@workflow.defn
class Parent:
    """Starts a child; what becomes of that is said by the words."""

    @workflow.run
    async def run(self, kind: str, handles: bool) -> str:
        names = [{"fails": "breaks"}.get(kind, "look_up")]
        try:
            return await child(Calls.run, names, id="child-7", run_timeout=LONG)
        except ChildWorkflowError:
            if not handles:
                raise
            return "handled"


@workflow.defn
class Abandons:
    """Comes back while its child goes on."""

    def __init__(self) -> None:
        self.is_let_go = False

    @workflow.run
    async def run(self) -> str:
        policy = workflow.ParentClosePolicy.ABANDON
        await workflow.start_child_workflow(Waits.run, args=[[], 0], id="child-7", parent_close_policy=policy)
        await workflow.wait_condition(lambda: self.is_let_go)
        return "done"

    @workflow.signal
    def go(self) -> None:
        self.is_let_go = True


@workflow.defn
class ParentOfRaising:
    @workflow.run
    async def run(self) -> str:
        return await child(Raises.run, "OutOfStock", id="child-7")


@workflow.defn
class ParentOfSlow:
    @workflow.run
    async def run(self) -> str:
        return await child(Waits.run, args=[[], 0], id="child-7", run_timeout=SOON * 3)


@workflow.defn
class ParentOfInvented:
    """Starts a child that nobody has, under a name that a model made up."""

    @workflow.run
    async def run(self) -> str:
        return str(
            await workflow.execute_child_workflow("canary7f3a", id="child-7", task_queue="nobody", run_timeout=SOON)
        )


# Code that changes under an execution ---------------------------------------------------------------------------------


@workflow.defn(name="Changing")
class Broken:
    """A bug: no failure of the workflow's, but of this code."""

    @workflow.run
    async def run(self) -> str:
        await call(look_up)
        raise KeyError("canary-7f3a bug")


@workflow.defn(name="Changing")
class Mended:
    @workflow.run
    async def run(self) -> str:
        await call(look_up)
        return "done"


@workflow.defn(name="Changing")
class Different:
    """Other commands than those of its history."""

    @workflow.run
    async def run(self) -> str:
        await workflow.sleep(0.01)
        await workflow.sleep(0.01)
        return "done"
