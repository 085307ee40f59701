"""Workflows and activities that are made to end in one way each. The sandbox imports this file for every execution."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

import stopcause
from stopcause.receipts.hooks import temporal

SOON = timedelta(seconds=0.3)
LONG = timedelta(seconds=30)
ONCE = RetryPolicy(maximum_attempts=1)
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


ACTIVITIES = [look_up, look_up_in_thread, breaks, refuses, breaks_once, hangs, asks_agent]


async def call(function: Any, text: str = "canary7f3a", **options: Any) -> Any:
    """One activity, tried once unless said."""
    given = {"start_to_close_timeout": LONG, "retry_policy": ONCE, **options}
    return await workflow.execute_activity(function, text, **given)


# Ends -----------------------------------------------------------------------------------------------------------------


@workflow.defn
class Natural:
    @workflow.run
    async def run(self, names: list[str]) -> str:
        for name in names or ["look_up"]:
            await call(globals()[name])
        return "done"
