"""A workflow with one activity; client and worker are here, the server beside. Peer: Temporal's own interceptor."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import common
from common import main, tracer_provider
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

common.RUNS = 100  # a run takes longer than elsewhere: the server is asked several times


@activity.defn
async def look_up() -> str:
    return "found"


@workflow.defn
class Calls:
    @workflow.run
    async def run(self) -> str:
        return str(await workflow.execute_activity(look_up, start_to_close_timeout=timedelta(seconds=5)))


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


port = free_port()
command = [str(Path(sys.executable).with_name("temporal")), "server", "start-dev", "--headless", "--port", port]
server = subprocess.Popen([*command, "--log-level", "never"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
loop = asyncio.new_event_loop()
numbers = itertools.count()
interceptors: list[Any] = []
working: list[Any] = []


async def client() -> Any:
    """The client, and a worker once the variant is on."""
    while not working:
        try:
            working.append(await Client.connect(f"127.0.0.1:{port}", interceptors=interceptors))
        except RuntimeError:  # it does not listen yet
            await asyncio.sleep(0.05)
            continue
        given = {"workflows": [Calls], "activities": [look_up], "workflow_runner": UnsandboxedWorkflowRunner()}
        working.append(asyncio.ensure_future(Worker(working[0], task_queue="q", **given).run()))
    return working[0]


async def run() -> object:
    return await (await client()).execute_workflow(Calls.run, id=f"w-{next(numbers)}", task_queue="q")


def once() -> object:
    return loop.run_until_complete(run())


def own_interceptor() -> None:
    from temporalio.contrib.opentelemetry import TracingInterceptor

    tracer_provider()
    interceptors.append(TracingInterceptor())


main(once, {"Temporal's own interceptor": own_interceptor})
sys.stdout.flush()
server.kill()
os._exit(0)  # the SDK's threads wait for a server that is gone
