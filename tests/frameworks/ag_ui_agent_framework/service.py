"""An agent of Microsoft's framework that speaks AG-UI, with a model that plays a script, over real HTTP.

What stands in prompts, arguments, results and answers is marked: none of it may come out.
"""

from __future__ import annotations

import inspect
import os
from contextlib import AbstractContextManager
from typing import Any

import httpx
from agent_framework import Agent, tool
from agent_framework_ag_ui import AgentFrameworkAgent, add_agent_framework_fastapi_endpoint
from fastapi import FastAPI

from stopcause.agui.tap_asgi import App
from tests.agui.recorded import Client, talking
from tests.frameworks.agent_framework.models import Scripted, Turn, say

Json = Any
MARK = "canary-7f3a"
IS_OLDEST = os.environ.get("STOPCAUSE_VERSIONS") == "oldest"
# As its schema calls it, and nothing else may stand in an answer.
YES: Json = {"accepted" if IS_OLDEST else "approved": True}
NO: Json = {"accepted" if IS_OLDEST else "approved": False}

# The newest has to be told who may answer; the first version knows no such thing.
_ENDPOINT = inspect.signature(add_agent_framework_fastapi_endpoint).parameters
_ALONE: dict[str, Any] = {"single_user": True} if "single_user" in _ENDPOINT else {}

done: list[str] = []  # what the tools have done


@tool(approval_mode="always_require")
def send(to: str) -> str:
    """Sends."""
    done.append(to)
    return f"{MARK}: sent"


@tool(approval_mode="always_require")
def send_and_fail(to: str) -> str:
    """Fails."""
    raise RuntimeError(f"{MARK} in an error: {to}")


def clerk(*calls: str, has_asked: bool = False) -> App:
    """An agent that would make these calls. If it has asked in another life, it has nothing more to do."""
    wanted = tuple((name, f"tc-{at}", {"to": f"{MARK} {name}"}) for at, name in enumerate(calls, 1))
    turns = [Turn(calls=wanted), say(f"{MARK}: done"), say("idle"), say("idle")][has_asked:]
    agent = Agent(client=Scripted(turns=turns), tools=[send, send_and_fail], name="clerk")
    app: App = FastAPI()
    add_agent_framework_fastapi_endpoint(app, AgentFrameworkAgent(agent, require_confirmation=False), **_ALONE)
    return app


def recording(app: App, transport: httpx.BaseTransport | None = None) -> AbstractContextManager[Client]:
    """The agent's server, and a client that writes everything down."""
    return talking(app, f"{MARK} in a prompt", transport)
