"""A Strands agent that speaks AG-UI, with a model that plays a script, over real HTTP; and a client that has a tap."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
from ag_ui_strands import StrandsAgent, StrandsAgentConfig, ToolBehavior, create_strands_app
from strands import Agent, ToolContext, tool
from strands.session.file_session_manager import FileSessionManager

from stopcause.agui.guard import ResumeGuard
from stopcause.agui.tap_asgi import App, Receive, Scope, Send
from stopcause.agui.tap_httpx import AguiTransport
from tests.agui import recorded
from tests.agui.tapped import input_of, served
from tests.frameworks.strands.models import Scripted, Turn, say

Json = Any
MARK = "canary-7f3a"
LONG_AGO = "2020-01-01T00:00:00Z"
_ASKS = [{"id": "u-1", "role": "user", "content": f"{MARK} in a prompt"}]

paid: list[int] = []  # what the tool has done


@tool
def pay(amount: int = 1) -> str:
    """Pays.

    Args:
        amount: how much.
    """
    paid.append(amount)
    return f"{MARK}: paid {amount}"


@tool(context=True)
def file_report(tool_context: ToolContext) -> str:
    """Files what it is told."""
    told = tool_context.interrupt("quarter", reason={"question": f"{MARK}: which?"})
    paid.append(0)
    return f"{MARK}: filed {told}"


class Overdue(StrandsAgent):
    """An application that sets a time for what it asks, and that time is over. The adapter keeps it with the rest."""

    def _record_pending_interrupts(self, *given: Any) -> Any:
        outcome = super()._record_pending_interrupts(*given)
        for interrupt in outcome.interrupts:
            interrupt.expires_at = LONG_AGO
        return outcome


class Expired(StrandsAgent):
    """What it asks for has expired, as its client is told. The adapter is not: it takes no word on one that has."""

    async def run(self, *given: Any, **more: Any) -> AsyncIterator[Any]:
        async for event in super().run(*given, **more):
            told = event.model_copy(deep=True)
            for interrupt in getattr(getattr(told, "outcome", None), "interrupts", ()):
                interrupt.expires_at = LONG_AGO
            yield told


class Counted:
    """An application, and how many requests reached it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests += scope["type"] == "http"
        await self._app(scope, receive, send)


class Client:
    """Speaks with the agent through a transport; keeps what it heard."""

    def __init__(self, url: str, transport: httpx.BaseTransport) -> None:
        self._http = httpx.Client(base_url=url, transport=transport, timeout=30)

    def send(self, run_id: str, thread_id: str = "t1", **more: Json) -> list[dict[str, Json]]:
        """One run; its events."""
        given = input_of(run_id, thread_id, messages=_ASKS, **more)
        text = self._http.post("/", json=given).raise_for_status().text
        return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]

    def close(self) -> None:
        """Lets go of the connection."""
        self._http.close()


def clerk(
    kind: type[StrandsAgent] = StrandsAgent,
    calls: Sequence[str] = ("pay", "pay"),
    *,
    has_asked: bool = False,
    sessions: Path | None = None,
) -> App:
    """An agent that would make these calls, and asks before each.

    Args:
        kind: Of the adapter.
        calls: The names of its tools.
        has_asked: In another life: its model has nothing more to do than to say so.
        sessions: Where it keeps what it has to remember, if it does.
    """
    wanted = ((name, f"tc-{at}", {"amount": at} if name == "pay" else {}) for at, name in enumerate(calls, 1))
    turns = [Turn(calls=tuple(wanted)), say(f"{MARK}: done"), say("idle")][has_asked:]
    agent = Agent(model=Scripted(turns), tools=[pay, file_report], callback_handler=None)
    config = StrandsAgentConfig(tool_behaviors={"pay": ToolBehavior(interrupt_on_call=True)})
    if sessions is not None:
        config.session_manager_provider = lambda given: FileSessionManager(given.thread_id, str(sessions))
    app: App = create_strands_app(kind(agent, name="clerk", config=config), "/", cors_enabled=False)
    return app


def recording(app: App, transport: httpx.BaseTransport | None = None) -> AbstractContextManager[recorded.Client]:
    """The agent's server, and a client that speaks 1.0 and writes everything down."""
    return recorded.talking(app, f"{MARK} in a prompt", transport, protocolVersion="1.0")


@contextlib.contextmanager
def serving(app: App, transport: httpx.BaseTransport | None = None) -> Iterator[tuple[Client, Counted]]:
    """The agent's server, and a client of it."""
    counted = Counted(app)
    with served(counted) as url:
        client = Client(url, transport or httpx.HTTPTransport())
        try:
            yield client, counted
        finally:
            client.close()


def guarded(app: App, guard: ResumeGuard) -> AbstractContextManager[tuple[Client, Counted]]:
    """The same, with a guard."""
    return serving(app, AguiTransport(agent="clerk", guard=guard))


def ids_of(events: list[dict[str, Json]]) -> list[str]:
    """The interrupts that a run ended with."""
    return [each["id"] for each in events[-1]["outcome"]["interrupts"]]


def yes(interrupt_id: str, **more: Json) -> dict[str, Json]:
    """An answer that allows."""
    return {"interruptId": interrupt_id, "status": "resolved", "payload": {"approved": True}, **more}


def gave_up(interrupt_id: str) -> dict[str, Json]:
    """An answer that gives up."""
    return {"interruptId": interrupt_id, "status": "cancelled"}
