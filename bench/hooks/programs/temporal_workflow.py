"""The workflow of `run_temporal`, in a file of its own, as workers want it."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow


@activity.defn
async def look_up() -> str:
    return "found"


@workflow.defn
class Calls:
    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_activity(look_up, start_to_close_timeout=timedelta(seconds=5))
