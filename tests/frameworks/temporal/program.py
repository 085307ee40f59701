"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker


@activity.defn
async def close(ticket: int) -> str:
    return f"Closed. {ticket}"


@workflow.defn
class CloseTicket:
    @workflow.run
    async def run(self, ticket: int) -> str:
        return str(await workflow.execute_activity(close, ticket, start_to_close_timeout=timedelta(seconds=10)))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def answering(port: int) -> Client:
    """A client, once the server answers."""
    for _ in range(400):
        try:
            return await Client.connect(f"127.0.0.1:{port}")
        except RuntimeError:
            await asyncio.sleep(0.05)
    raise RuntimeError("no server")


async def work_on(port: int) -> str:
    client = await answering(port)
    async with Worker(client, task_queue="tickets", workflows=[CloseTicket], activities=[close]):
        return str(await client.execute_workflow(CloseTicket.run, 7, id="ticket-7", task_queue="tickets"))


def work() -> None:
    """One ticket, with a server and a worker of its own."""
    port, program = free_port(), Path(sys.executable).with_name("temporal")
    command = [str(program), "server", "start-dev", "--headless", "--port", str(port), "--log-level", "never"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        sys.stdout.write(asyncio.run(work_on(port)))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    work()
