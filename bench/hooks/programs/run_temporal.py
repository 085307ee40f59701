"""A workflow with one activity, client and worker in this process, the server beside it. Its own interceptor is the peer."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import common
from common import main, tracer_provider

common.RUNS = 100  # a run takes longer than elsewhere: the server is asked several times


def server() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program = str(Path(sys.executable).with_name("temporal"))
    command = [program, "server", "start-dev", "--headless", "--port", port, "--log-level", "never"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(process.kill)
    return f"127.0.0.1:{port}"


address = server()
loop = asyncio.new_event_loop()
numbers = itertools.count()
interceptors: list[Any] = []
clients: list[Any] = []


async def connected() -> Any:
    """Client and worker, once; by then the variant is on."""
    from temporalio.client import Client
    from temporalio.worker import UnsandboxedWorkflowRunner, Worker
    from temporal_workflow import Calls, look_up

    while not clients:
        try:
            clients.append(await Client.connect(address, interceptors=interceptors))
        except RuntimeError:
            await asyncio.sleep(0.05)
            continue
        worker = Worker(
            clients[0],
            task_queue="q",
            workflows=[Calls],
            activities=[look_up],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        clients.append(asyncio.ensure_future(worker.run()))
    return clients[0], Calls


async def run() -> object:
    client, workflow = await connected()
    return await client.execute_workflow(workflow.run, id=f"w-{next(numbers)}", task_queue="q")


def once() -> object:
    return loop.run_until_complete(run())


def own_interceptor() -> None:
    from temporalio.contrib.opentelemetry import TracingInterceptor

    tracer_provider()
    interceptors.append(TracingInterceptor())


main(once, {"Temporal's own interceptor": own_interceptor})
sys.stdout.flush()
os._exit(0)  # the SDK's threads wait for a server that is gone
