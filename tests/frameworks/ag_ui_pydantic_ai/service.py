"""A Pydantic AI agent that speaks AG-UI by the adapter of its own, over real HTTP. It keeps nothing: messages are all.

Its model says what the messages call for and nothing else. What stands in prompts, arguments, results and answers is
marked: none of it may come out.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
from pydantic_ai import Agent, DeferredToolRequests, Tool
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stopcause.agui.tap_asgi import App
from tests.agui.recorded import Client, talking

Json = Any
MARK = "canary-7f3a"
YES: Json = {"approved": True, "reason": MARK}
NO: Json = {"approved": False, "reason": MARK}
# What a client of its own can do: the agent leaves such calls to it.
FORM: Json = {"name": "show_form", "description": MARK, "parameters": {"type": "object", "properties": {}}}

done: list[str] = []  # what the tools have done


def _has_to_answer(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(each, UserPromptPart) for each in message.parts)


def send(to: str) -> str:
    """Sends."""
    done.append(to)
    return f"{MARK}: sent"


def send_and_fail(to: str) -> str:
    """Fails."""
    raise RuntimeError(f"{MARK} in an error: {to}")


def clerk(*calls: str) -> App:
    """An agent that would make these calls."""

    async def says(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        if not _has_to_answer(messages[-1]):
            yield f"{MARK}: done"
            return
        for at, name in enumerate(calls):
            args = {} if name == "show_form" else {"to": f"{MARK} {name}"}
            yield {at: DeltaToolCall(name, json.dumps(args), tool_call_id=f"tc-{at + 1}")}

    tools = [Tool(each, requires_approval=True) for each in (send, send_and_fail)]
    agent = Agent(FunctionModel(stream_function=says), output_type=[str, DeferredToolRequests], tools=tools)

    async def run(request: Request) -> Response:
        response: Response = await AGUIAdapter.dispatch_request(request, agent=agent)
        return response

    return Starlette(routes=[Route("/", run, methods=["POST"])])


def recording(app: App, transport: httpx.BaseTransport | None = None) -> AbstractContextManager[Client]:
    """The agent's server, and a client that speaks 1.0 and writes everything down."""
    return talking(app, f"{MARK} in a prompt", transport, protocolVersion="1.0")
