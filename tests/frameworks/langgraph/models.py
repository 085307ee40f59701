"""What the paths are made of: a scripted chat model, its answers, tools, and small graphs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from tests.frameworks.harness import Scripted

ASK = {"messages": [("user", "Close the ticket of the customer who wrote yesterday.")]}
LIMIT: Any = {"recursion_limit": 50}  # the default differs from version to version


class ChatScripted(BaseChatModel):
    """Gives its answers in order; an answer that is an exception is raised."""

    answers: list[Any]
    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, _messages: list[BaseMessage], *_args: Any, **_kwargs: Any) -> ChatResult:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, BaseException):
            raise answer
        made = answer.model_copy(update={"id": None})  # a message that has an id replaces the one before it
        return ChatResult(generations=[ChatGeneration(message=made)])

    async def _agenerate(self, messages: list[BaseMessage], *_args: Any, **_kwargs: Any) -> ChatResult:
        return self._generate(messages)

    def bind_tools(self, _tools: Sequence[Any], **_kwargs: Any) -> ChatScripted:
        return self


def say(reason: str | None = "stop", content: str = "It is closed.", **facts: Any) -> AIMessage:
    """An answer in text."""
    told = {"model_name": "scripted-1"} | ({} if reason is None else {"finish_reason": reason})
    usage: Any = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    return AIMessage(content, response_metadata=told, usage_metadata=usage, **facts)


def call(*names: str, ids: Sequence[str] = ("call-1", "call-2", "call-3"), **args: Any) -> AIMessage:
    """An answer that asks for tools."""
    calls = [{"name": name, "args": args, "id": ids[i]} for i, name in enumerate(names)]
    return say("tool_calls", "", tool_calls=calls)


def look_up() -> str:
    """Looks the ticket up."""
    return "open"


def close_ticket() -> str:
    """Closes the ticket."""
    return "closed"


def break_down() -> str:
    """Fails."""
    raise Scripted("the ticket of a customer")


def agent(*answers: Any, tools: Sequence[Callable[..., Any]] = (look_up, close_ticket), **options: Any) -> Any:
    """An agent of these answers."""
    options.setdefault("name", "ticket-agent")
    return create_agent(ChatScripted(answers=list(answers)), list(tools), **options).with_config(LIMIT)


class Durable(InMemorySaver):
    """Stands for a saver that a process does not take with it: what matters is that it is not the one in memory."""


class State(TypedDict, total=False):
    """Of the small graphs."""

    done: list[str]


def graph(*nodes: Callable[..., Any], name: str = "ticket-graph", **options: Any) -> Any:
    """A graph of these nodes, one after another."""
    builder = StateGraph(State)
    before = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
        before = node.__name__
    builder.add_edge(before, END)
    return builder.compile(name=name, **options).with_config(LIMIT)


def collect(_state: State) -> State:
    """A node that does its work."""
    return {"done": ["collect"]}


async def acollect(_state: State) -> State:
    """The same, async."""
    return {"done": ["collect"]}


def store(_state: State) -> State:
    """The next one."""
    return {"done": ["store"]}


def thread() -> Any:
    """A configuration with a thread that no other path has."""
    return {"configurable": {"thread_id": f"thread-{uuid.uuid4()}"}}
