"""A LangGraph agent that speaks AG-UI, with a model that plays a part, over real HTTP.

The model says what the messages call for and nothing else, so that an agent that begins anew says the same. Its tools
ask before they act. What stands in prompts, arguments, results and questions is marked: none of it may come out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any

import httpx
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from fastapi import FastAPI
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from stopcause.agui.tap_asgi import App
from tests.agui.recorded import Client, talking

Json = Any
MARK = "canary-7f3a"
YES: Json = {"approved": True, "note": MARK}
NO: Json = {"approved": False, "note": MARK}
LONG_AGO, NOT_YET = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"

# By what the adapter tells that it asks. The first is what it does unasked.
CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "legacy": {},
    "both": {"emit_interrupt_outcome": True},
    "outcome": {"emit_interrupt_outcome": True, "enable_legacy_on_interrupt_event": False},
}

_YES_OR_NO: Json = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
_WITH_EDITS: Json = {**_YES_OR_NO, "properties": {**_YES_OR_NO["properties"], "editedArgs": {"type": "object"}}}
_QUARTERS = {"type": "string", "enum": ["Q1", "Q2", "Q3", "Q4"]}
_FORM: Json = {
    "type": "object",
    "properties": {"quarter": _QUARTERS, "year": {"type": "integer", "minimum": 2000}, "revenue": {"type": "number"}},
    "required": ["quarter", "year", "revenue"],
}

done: list[str] = []  # what the tools have done

CallId = Annotated[str, InjectedToolCallId]


def _ask(call_id: str, **more: Json) -> Json:
    """Asks whether a call may run; gives the answer."""
    return interrupt({"reason": "tool_call", "message": f"{MARK}: may I?", "toolCallId": call_id, **more})


def _act(answer: Json, to: str) -> str:
    """Does as the answer says. What is no answer, or gives up, allows nothing."""
    if not (isinstance(answer, dict) and answer.get("approved")):
        return f"{MARK}: left alone"
    done.append(answer.get("editedArgs", {}).get("to", to))
    return f"{MARK}: sent"


@tool
def send(to: str, call_id: CallId) -> str:
    """Sends, if it may."""
    return _act(_ask(call_id, responseSchema=_YES_OR_NO), to)


@tool
def send_edited(to: str, call_id: CallId) -> str:
    """Sends, if it may, what the answer makes of it."""
    return _act(_ask(call_id, responseSchema=_WITH_EDITS), to)


@tool
def send_in_time(to: str, call_id: CallId) -> str:
    """Sends, if it may, which nobody could have said in time."""
    return _act(_ask(call_id, responseSchema=_YES_OR_NO, expiresAt=LONG_AGO), to)


@tool
def send_and_fail(to: str, call_id: CallId) -> str:
    """Fails as soon as it was answered."""
    _ask(call_id, responseSchema=_YES_OR_NO)
    raise RuntimeError(f"{MARK} in an error: {to}")


@tool
def file_report(to: str) -> str:
    """Files what a form says."""
    form = interrupt(
        {"reason": "input_required", "message": f"{MARK}: say", "responseSchema": _FORM, "expiresAt": NOT_YET}
    )
    done.append(f"{to} {form['quarter']}")
    return f"{MARK}: filed"


_TOOLS = (send, send_edited, send_in_time, send_and_fail, file_report)


class Clerk(BaseChatModel):
    """Calls its tools when somebody asks for something, and is done when they have come back."""

    calls: list[str]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, _tools: Sequence[Json], **_options: Json) -> Clerk:
        return self

    def _generate(self, messages: list[BaseMessage], *_more: Json, **_options: Json) -> ChatResult:
        return generate_from_stream(self._stream(messages))

    def _stream(self, messages: list[BaseMessage], *_more: Json, **_options: Json) -> Iterator[ChatGenerationChunk]:
        if not messages:
            raise ValueError(f"{MARK}: no messages")  # as providers do
        if not isinstance(messages[-1], HumanMessage):
            yield _chunk("ai-2", content=f"{MARK}: done")
            return
        for index, name in enumerate(self.calls):
            begun = {"name": name, "args": "", "id": f"tc-{index + 1}"}
            filled = {"name": None, "args": json.dumps({"to": f"{MARK} {name}"}), "id": None}
            for part in (begun, filled):
                yield _chunk("ai-1", content="", tool_call_chunks=[{**part, "index": index}])


def _chunk(message_id: str, **said: Json) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(id=message_id, **said))


class ById(LangGraphAgent):
    """The adapter with the hook for subclasses that it has: LangGraph is told which answer is whose."""

    def _build_command_from_agui_resume(self, entries: Sequence[Json], **_more: Json) -> Command[Json]:
        return Command(resume={each.interrupt_id: each.payload or {} for each in entries})


def clerk(
    *calls: str,
    kind: type[LangGraphAgent] = LangGraphAgent,
    memory: InMemorySaver | None = None,
    system_prompt: str | None = None,
    **told: Any,
) -> App:
    """An agent that would make these calls. Without a memory of somebody else's it remembers as long as it lives."""
    model = Clerk(calls=list(calls))
    graph = create_agent(model, list(_TOOLS), system_prompt=system_prompt, checkpointer=memory or InMemorySaver())
    app: App = FastAPI()
    add_langgraph_fastapi_endpoint(app, kind(name="clerk", graph=graph, **told))
    return app


def serving(app: App, transport: httpx.BaseTransport | None = None) -> AbstractContextManager[Client]:
    """Its server, and a client of it."""
    return talking(app, f"{MARK} in a prompt", transport)
