"""An agent that is an A2A service, and a client of it: the SDK's own, over HTTP without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_task, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    TaskState,
)
from starlette.applications import Starlette

import stopcause
from stopcause.receipts import a2a

URL = "http://agent.example/"
MARK = "canary-7f3a is here"


class Clerk(AgentExecutor):
    """Ends each of its messages with the next of these states; each is a run of the service's own."""

    def __init__(self, *states: TaskState) -> None:
        self._states = iter(states)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        state = next(self._states)
        with stopcause.run("clerk") as run:
            if context.current_task is None:
                await event_queue.enqueue_event(new_task(context.task_id, context.context_id, _SUBMITTED))
            else:
                a2a.resumed(run, context.task_id)
            updater = TaskUpdater(event_queue, context.task_id, context.context_id)
            await updater.start_work()
            await updater.update_status(state, new_text_message(MARK))
            a2a.ended(run, state, task_id=context.task_id, context_id=context.context_id)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Slow(Clerk):
    """Works longer than anybody waits."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        with stopcause.run("clerk"):
            await event_queue.enqueue_event(new_task(context.task_id, context.context_id, _SUBMITTED))
            await TaskUpdater(event_queue, context.task_id, context.context_id).start_work()
            await asyncio.sleep(5)


_SUBMITTED = TaskState.TASK_STATE_SUBMITTED


@asynccontextmanager
async def client_of(executor: AgentExecutor, *, streaming: bool = True) -> AsyncIterator[Client]:
    """A client of a service that this is the agent of."""
    card = AgentCard(
        name="clerk",
        description=MARK,
        version="1",
        capabilities=AgentCapabilities(streaming=streaming),
        supported_interfaces=[AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version="1.0")],
    )
    handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)
    app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
        yield ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)


async def last_of(
    client: Client, task_id: str | None = None, context_id: str | None = None, *, waits: bool = True
) -> StreamResponse:
    """Sends a message, and gives the last update; or the first, where the client does not wait for the task."""
    message = new_text_message(MARK, task_id=task_id, context_id=context_id, role=Role.ROLE_USER)
    how = SendMessageConfiguration(return_immediately=not waits)
    updates = [update async for update in client.send_message(SendMessageRequest(message=message, configuration=how))]
    return updates[-1]
