"""A provider that plays a script, for the real command line of the SDK; and a transport that plays messages.

The command line of the wheel is started as it is, with a key that is none, and asks a Messages API of this process on
the loopback instead of the real one. What it cannot be brought to say in a second is played by a transport, which is
the SDK's own way to be connected to something else.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from claude_agent_sdk import ClaudeAgentOptions, Transport, query

Event = dict[str, Any]
MODEL = "claude-sonnet-4-5"  # which has one price in all versions


class Turn(NamedTuple):
    """One answer of the model: text, or calls as (tool, id, input); or an HTTP status; after a pause in seconds."""

    text: str | None = None
    calls: tuple[tuple[str, str, Event], ...] = ()
    stop: str | None = None
    status: int = 200
    pause: float = 0.0


def say(text: str = "Closed.", **more: Any) -> Turn:
    """The model answers."""
    return Turn(text=text, **more)


def call(name: str = "Bash", call_id: str = "toolu_1", /, **given: Any) -> Turn:
    """The model asks for a tool."""
    return Turn(calls=((name, call_id, given or {"command": "echo hi", "description": "Says hi"}),))


# The provider ---------------------------------------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    """Answers `POST /NUMBER/v1/messages` with the next turn of that script."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)))
        turn = next(_scripts[int(self.path.split("/")[1])], say())
        time.sleep(turn.pause)
        if turn.status != 200:
            error = {"type": "error", "error": {"type": "api_error", "message": "canary-7f3a canary7f3a"}}
            self._answer(turn.status, "application/json", json.dumps(error))
        else:
            events = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in _events(turn, body))
            self._answer(200, "text/event-stream", events)

    def _answer(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    """Says nothing of a command line that has hung up."""

    def handle_error(self, *_: Any) -> None:
        """Nothing."""


def _events(turn: Turn, request: Event) -> Iterator[Event]:
    """A turn as the Messages API streams it."""
    usage = {"input_tokens": 20, "output_tokens": 1}
    message = {
        "id": f"msg_{next(_answers)}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
    }
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    blocks: list[tuple[Event, Event]] = []
    if turn.text is not None:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}))
    for name, call_id, given in turn.calls:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(given)}))
    for index, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = turn.stop or ("tool_use" if turn.calls else "end_turn")
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 5},
    }
    yield {"type": "message_stop"}


_scripts: dict[int, Iterator[Turn]] = {}
_numbers = itertools.count()
_answers = itertools.count(1)


@functools.cache
def _port() -> int:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


@functools.cache
def home() -> Path:
    """Where the command line keeps what it keeps, for all runs of this process."""
    return Path(tempfile.mkdtemp())


def options(*turns: Turn, **more: Any) -> ClaudeAgentOptions:
    """For the real command line, with a provider that plays these turns and then says that it is done."""
    number = next(_numbers)
    _scripts[number] = iter(turns)
    environment = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{_port()}/{number}", "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": str(home() / "config"), "HOME": str(home()), "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }  # fmt: skip
    given = {"allowed_tools": ["Bash"], "setting_sources": [], "model": MODEL, "cwd": str(home()), **more}
    return ClaudeAgentOptions(**{**given, "env": {**environment, **more.get("env", {})}})


async def ask(given: ClaudeAgentOptions, prompt: str = "Close it.", *, transport: Transport | None = None) -> list[Any]:
    """All messages of one `query()`. An error of the SDK's is expected where a path is made to raise one."""
    seen: list[Any] = []
    try:
        async for message in query(prompt=prompt, options=given, transport=transport):
            seen.append(message)  # noqa: PERF401 - what came before an error is kept
    except Exception:  # noqa: BLE001 - the command line exits with an error after every result that is one
        return seen
    return seen


async def prompts(*texts: str) -> AsyncIterator[Event]:
    """Prompts as a stream, as an application with more than one has them."""
    for text in texts:
        yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}


# A transport ----------------------------------------------------------------------------------------------------------

SESSION = "c0b1d2e3-ab4c-4d5e-8f6a-7b8c9d0e1f2a"
INTERRUPTED = "interrupted"  # in a script: goes on when the program has asked to stop
ANSWERED = "answered"  # in a script: goes on when the program has answered a request


class Wire(Transport):
    """Plays a script of messages for each prompt, in place of the command line.

    A number in a script is a pause in seconds, an exception is raised, and the words above wait for the program.
    """

    def __init__(self, *scripts: Iterable[Any], stays: bool = False) -> None:
        self._scripts = iter(scripts)
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._heard = {INTERRUPTED: asyncio.Event(), ANSWERED: asyncio.Event()}
        self._stays = stays  # whether it stays open after the last script, as the command line does for a client
        self._left = len(scripts)

    async def connect(self) -> None:
        """Nothing to do."""

    async def write(self, data: str) -> None:
        """What the SDK says: a request of its own, an answer, or a prompt."""
        said = json.loads(data)
        if said["type"] == "control_request":
            answer = {"subtype": "success", "request_id": said["request_id"], "response": {}}
            self._queue.put_nowait({"type": "control_response", "response": answer})
            if said["request"]["subtype"] == "interrupt":
                self._heard[INTERRUPTED].set()
        elif said["type"] == "control_response":
            self._heard[ANSWERED].set()
        else:
            self._left -= 1
            for each in next(self._scripts):
                self._queue.put_nowait(each)
            if not self._left and not self._stays:
                self._queue.put_nowait(None)

    async def read_messages(self) -> AsyncIterator[Event]:
        """The messages in their order."""
        while (each := await self._queue.get()) is not None:
            if isinstance(each, BaseException):
                raise each
            if isinstance(each, float):
                await asyncio.sleep(each)
            elif isinstance(each, str):
                await self._heard[each].wait()
            else:
                yield each

    async def close(self) -> None:
        """Nothing to do."""

    def is_ready(self) -> bool:
        """Always."""
        return True

    async def end_input(self) -> None:
        """Nothing to do."""


def init(*tools: str, agents: Iterable[str] = ("claude", "Explore")) -> Event:
    """The message that begins a turn."""
    return {
        "type": "system", "subtype": "init", "session_id": SESSION, "model": MODEL, "tools": list(tools or ("Bash",)),
        "agents": list(agents),
    }  # fmt: skip


def said(*blocks: Event | str, parent: str | None = None, error: str | None = None) -> Event:
    """An answer of the model: text, and calls as `used` makes them."""
    content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    message = {"role": "assistant", "model": "<synthetic>" if error else MODEL, "content": content}
    message["id"] = f"msg_{next(_answers)}"
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent, "error": error}


def used(call_id: str = "toolu_1", name: str = "Bash") -> Event:
    """A call in an answer."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"command": "canary-7f3a"}}


def came(call_id: str = "toolu_1", *, is_error: bool = False, parent: str | None = None) -> Event:
    """The result of a tool."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "canary-7f3a", "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": parent}


def result(subtype: str = "success", **more: Any) -> Event:
    """The end of a turn."""
    return {
        "type": "result", "subtype": subtype, "duration_ms": 9, "duration_api_ms": 7, "is_error": False, "num_turns": 1,
        "session_id": SESSION, "stop_reason": "end_turn", "total_cost_usd": 0.001, "result": "canary-7f3a",
        "usage": {"input_tokens": 20, "output_tokens": 5}, "terminal_reason": "completed", "permission_denials": [],
        **more,
    }  # fmt: skip


def failed(terminal: str | None, subtype: str = "error_during_execution", **more: Any) -> Event:
    """The end of a turn that is an error."""
    return result(subtype, is_error=True, terminal_reason=terminal, errors=["canary-7f3a"], result=None, **more)


def asks(call_id: str = "toolu_1", name: str = "Bash") -> Event:
    """The command line asks the program whether a tool may be used."""
    request = {
        "subtype": "can_use_tool",
        "tool_name": name,
        "input": {"command": "canary-7f3a"},
        "tool_use_id": call_id,
    }
    return {"type": "control_request", "request_id": f"ask-{call_id}", "request": request}


def task(subtype: str, **more: Any) -> Event:
    """A message on a task, which a sub-agent is."""
    return {
        "type": "system", "subtype": subtype, "task_id": "task-1", "tool_use_id": "toolu_1",
        "description": "canary-7f3a", "task_type": "local_agent", "uuid": "u", "session_id": SESSION,
        "subagent_type": "Explore", **more,
    }  # fmt: skip
