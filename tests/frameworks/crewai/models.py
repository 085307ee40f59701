"""A model that plays a script, and the agents, tools, crews and flows of the paths. All else is the framework's own."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

# Before the framework is imported: it would send telemetry, ask on the terminal, and keep its state in a home folder.
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TESTING": "true", "CREWAI_TRACING_ENABLED": "false"}
os.environ["CREWAI_STORAGE_DIR"] = tempfile.mkdtemp(prefix="crewai-")

from crewai import Agent, Crew, Task
from crewai.events.types.llm_events import LLMCallType
from crewai.llms.base_llm import BaseLLM, llm_call_context
from crewai.tools import tool
from pydantic import PrivateAttr


class Turn(NamedTuple):
    """One answer of the model: text, or calls as (tool, id, JSON); or an error; after a pause in seconds."""

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    finish: str | None = "stop"
    error: BaseException | None = None
    pause: float = 0.0
    tokens: tuple[int, int] = (20, 5)


def say(text: str = "Done.", **more: Any) -> Turn:
    """The model answers."""
    return Turn(text, **more)


def call(name: str = "look_up", arguments: str = "{}", call_id: str = "call-1") -> Turn:
    """The model asks for a tool."""
    return Turn(calls=((name, call_id, arguments),), finish="tool_calls")


def act(name: str, arguments: str = "{}") -> Turn:
    """The same in text, as models without calls of their own do."""
    return Turn(f"Thought: so.\nAction: {name}\nAction Input: {arguments}")


class Scripted(BaseLLM):
    """Plays turns, and tells of each on the event bus as the providers' classes do."""

    is_quiet: bool = False  # as a class of a program's own, which tells nothing
    is_calling: bool = True
    _turns: Any = PrivateAttr()

    def __init__(self, turns: Iterable[Turn], **more: Any) -> None:
        super().__init__(**({"model": "scripted-1", "provider": "scripted"} | more))
        self._turns = iter(turns)

    def supports_function_calling(self) -> bool:
        return self.is_calling

    def is_context_window_overflowing_threshold(self, *_: Any, **__: Any) -> bool:
        return False  # it would say on each call that it can only guess

    def call(self, *_: Any, **__: Any) -> Any:
        with llm_call_context():
            turn = next(self._turns)
            if not self.is_quiet:
                self._emit_call_started_event(messages=[])
            time.sleep(turn.pause)
            if turn.error is not None:
                raise turn.error
            answer: Any = turn.text
            if turn.calls:
                answer = [
                    {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                    for name, call_id, arguments in turn.calls
                ]
            if not self.is_quiet:
                self._emit_stream_chunk_event(chunk=turn.text)
                self._tell(turn, answer)
            return answer

    def _tell(self, turn: Turn, answer: Any) -> None:
        kind = LLMCallType.TOOL_CALL if turn.calls else LLMCallType.LLM_CALL
        spent, said = turn.tokens
        usage = {"prompt_tokens": spent, "completion_tokens": said, "total_tokens": spent + said}
        self._emit_call_completed_event(answer, kind, usage=usage, finish_reason=turn.finish)


@tool("look_up")
def look_up(key: str = "a") -> str:
    """Looks something up."""
    return f"value of {key}"


@tool("breaks")
def breaks() -> str:
    """Always fails."""
    raise ValueError("canary-7f3a in a tool")


@tool("slow")
def slow() -> str:
    """Takes a while."""
    time.sleep(0.4)
    return "late"


@tool("once", max_usage_count=1)
def once() -> str:
    """May be used once."""
    return "used"


@tool("answer", result_as_answer=True)
def answer() -> str:
    """Its result is the answer."""
    return "the answer"


TOOLS = (look_up, breaks, slow, once, answer)


def agent(*turns: Turn, tools: Iterable[Any] = TOOLS, llm: dict[str, Any] | None = None, **more: Any) -> Agent:
    """An agent that plays these turns."""
    for each in tools:
        each.current_usage_count = 0
    given = {"role": "canary-7f3a clerk", "goal": "canary-7f3a", "backstory": "canary-7f3a"} | more
    return Agent(llm=Scripted(turns, **(llm or {})), tools=list(tools), **given)


def task(made: Agent | None = None, **more: Any) -> Task:
    """A task of one's own."""
    return Task(**({"description": "canary-7f3a: do", "expected_output": "canary-7f3a", "agent": made} | more))


def crew(*turns: Turn, of: dict[str, Any] | None = None, doing: dict[str, Any] | None = None, **more: Any) -> Crew:
    """A crew of one agent with one task. `of` is for the agent, `doing` for the task."""
    made = agent(*turns, **(of or {}))
    return Crew(**({"name": "clerks", "agents": [made], "tasks": [task(made, **(doing or {}))]} | more))


def failing(run: Callable[[], Any]) -> BaseException:
    """Runs what is meant to raise."""
    try:
        run()
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - that it raises is all that is wanted
        return error
    raise AssertionError("it was to raise")
