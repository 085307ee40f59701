"""A model that plays a script, and the agents, tools and runners of the paths. All else is the framework's own."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from websockets.exceptions import ConnectionClosedOK  # type: ignore[import-not-found]  # as ADK's own are

CONFIRM, CREDENTIAL, INPUT = "adk_request_confirmation", "adk_request_credential", "adk_request_input"


class Turn(NamedTuple):
    """One answer of the model: text, or calls as (tool, id, arguments); or an error; after a pause in seconds."""

    text: str | None = None
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    finish: str | None = "STOP"
    code: str | None = None
    error: BaseException | None = None
    pause: float = 0.0
    tokens: tuple[int, int] = (20, 5)
    chunks: int = 1


def say(text: str = "Done.", **more: Any) -> Turn:
    """The model answers."""
    return Turn(text=text, **more)


def call(name: str = "look_up", call_id: str = "call-1", /, **given: Any) -> Turn:
    """The model asks for a tool."""
    return Turn(calls=((name, call_id, given),))


NOTHING = Turn(finish=None)


_busy: list[float] = []


async def _busy_for(seconds: float) -> None:
    _busy.append(seconds)
    await asyncio.sleep(seconds)


async def when_busy(then: Callable[[], Any]) -> None:
    """Does something once a model or a tool takes its time: no sooner, however slow the machine is."""
    while not _busy:  # noqa: ASYNC110 - it may be told from another thread
        await asyncio.sleep(0.005)
    then()


class Scripted(BaseLlm):
    """Plays turns; each of its answers is one response, or parts and the whole where it streams."""

    turns: list[Turn]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        del llm_request
        turn = self.turns.pop(0)
        if turn.pause:
            await _busy_for(turn.pause)
        if turn.error is not None:
            raise turn.error
        for _ in range(turn.chunks if stream else 0):
            yield LlmResponse(content=_content([types.Part(text=turn.text)]), partial=True)
        parts = [] if turn.text is None else [types.Part(text=turn.text)]
        parts += [types.Part(function_call=types.FunctionCall(name=name, id=call_id or None, args=given))
                  for name, call_id, given in turn.calls]  # fmt: skip
        spent, said = turn.tokens
        yield LlmResponse(
            content=_content(parts) if parts else None,
            finish_reason=None if turn.finish is None else types.FinishReason(turn.finish),
            error_code=turn.code,
            error_message=None if turn.code is None else "canary-7f3a in an error",
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=spent, candidates_token_count=said
            ),
        )

    @contextlib.asynccontextmanager
    async def connect(self, llm_request: Any) -> AsyncGenerator[BaseLlmConnection, None]:
        del llm_request
        yield _Live(self.turns)


class _Live(BaseLlmConnection):
    """A connection over which each message is answered by the next turn."""

    def __init__(self, turns: list[Turn]) -> None:
        self._turns = turns
        self._sent: asyncio.Queue[bool] = asyncio.Queue()

    async def send_history(self, history: list[types.Content]) -> None:
        del history

    async def send_content(self, content: types.Content) -> None:
        del content
        await self._sent.put(True)

    async def send_realtime(self, blob: types.Blob) -> None:
        del blob

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        while await self._sent.get():
            turn = self._turns.pop(0)
            if turn.error is not None:
                raise turn.error
            yield LlmResponse(content=_content([types.Part(text=turn.text)]))
            yield LlmResponse(turn_complete=True)
        raise ConnectionClosedOK(None, None)  # as a connection does that was closed from here

    async def close(self) -> None:
        await self._sent.put(False)


def _content(parts: list[types.Part]) -> types.Content:
    return types.Content(role="model", parts=parts)


def look_up(key: str = "a") -> dict[str, Any]:
    """Looks something up."""
    return {"value": f"of {key}"}


def pay(amount: int = 1) -> dict[str, Any]:
    """Pays."""
    return {"paid": amount}


def breaks() -> dict[str, Any]:
    """Always fails."""
    raise ValueError("canary-7f3a in a tool")


async def slow() -> dict[str, Any]:
    """Takes longer than anybody waits."""
    await _busy_for(5)
    return {}


def is_enough(tool_context: ToolContext) -> dict[str, Any]:
    """What it gives is the answer."""
    tool_context.actions.skip_summarization = True
    return {"value": 1}


def ends_it(tool_context: ToolContext) -> dict[str, Any]:
    """Ends the invocation, as ADK allows a tool to."""
    tool_context._invocation_context.end_invocation = True
    return {"value": 1}


def asks_itself(tool_context: ToolContext) -> dict[str, Any]:
    """Asks for a confirmation by itself."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="canary-7f3a?", payload={"note": "canary-7f3a"})
        return {"status": "asked"}
    return {"status": "done"}


def asks_finance(tool_context: ToolContext) -> dict[str, Any]:
    """Asks for a confirmation, and says whose."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(
            hint="canary-7f3a?", payload={"team": "finance", "until": "never", "note": "canary-7f3a"}
        )
        tool_context.actions.skip_summarization = True
    return {"status": "asked"}


def submit(what: str = "a") -> dict[str, Any] | None:
    """Hands something in, which somebody else finishes."""
    return {"status": "pending", "what": what}


def submit_silently(what: str = "a") -> dict[str, Any] | None:
    """The same, and there is nothing to say yet."""
    del what
    return None


TOOLS: list[Any] = [
    look_up, breaks, slow, is_enough, ends_it, asks_itself, asks_finance,
    FunctionTool(pay, require_confirmation=True),
    LongRunningFunctionTool(submit), LongRunningFunctionTool(submit_silently),
]  # fmt: skip


def agent(*turns: Turn, name: str = "clerk", tools: Iterable[Any] = (), **more: Any) -> LlmAgent:
    """An agent that plays these turns."""
    return LlmAgent(
        name=name, model=Scripted(model="scripted-1", turns=list(turns)), tools=list(tools) or TOOLS, **more
    )


def kept() -> SqliteSessionService:
    """Sessions that outlive the process; here they go with the service."""
    folder = tempfile.mkdtemp()
    service = SqliteSessionService(str(Path(folder, "sessions.db")))
    weakref.finalize(service, shutil.rmtree, folder)
    return service


class Desk:
    """A runner with one session, and what came out of it."""

    def __init__(self, root: Any, *, plugins: Iterable[Any] = (), resumable: bool = False, service: Any = None) -> None:
        _busy.clear()
        config = {"resumability_config": ResumabilityConfig(is_resumable=True)} if resumable else {}
        app = App(name="desk", root_agent=root, plugins=list(plugins), **config)
        self.runner = InMemoryRunner(app=app) if service is None else Runner(app=app, session_service=service)
        self.events: list[Any] = []
        self._is_open = False

    async def opened(self, session_id: str = "s-1") -> None:
        """Its session exists."""
        if not self._is_open:
            self._is_open = True
            await self.runner.session_service.create_session(app_name="desk", user_id="u-1", session_id=session_id)

    def stream(
        self, message: Any = "Go.", config: RunConfig | None = None, *, session: str = "s-1", **more: Any
    ) -> Any:
        """A run, to be read."""
        given = {"run_config": config} if config is not None else {}
        return self.runner.run_async(user_id="u-1", session_id=session, new_message=text(message), **given, **more)

    async def run(self, message: Any = "Go.", config: RunConfig | None = None, **more: Any) -> list[Any]:
        """A run, read to its end."""
        await self.opened()
        self.events = []
        async for event in self.stream(message, config, **more):
            self.events.append(event)
        return self.events

    def asked(self) -> list[Any]:
        """The calls that wait for the program."""
        return [each for event in self.events for each in event.get_function_calls()
                if each.id in (event.long_running_tool_ids or ())]  # fmt: skip

    def answer(self, response: dict[str, Any] | None = None) -> types.Content:
        """The input that answers everything that was asked."""
        given = {"confirmed": True} if response is None else response
        return types.Content(role="user", parts=[
            types.Part(function_response=types.FunctionResponse(id=each.id, name=each.name, response=given))
            for each in self.asked()
        ])  # fmt: skip


def text(message: Any) -> Any:
    """A message of the user's."""
    return types.Content(role="user", parts=[types.Part(text=message)]) if isinstance(message, str) else message


async def failing(made: Any, kind: type[BaseException] = Exception) -> BaseException:
    """Awaits what is meant to raise."""
    try:
        await made
    except kind as error:
        return error
    raise AssertionError("it was to raise")
