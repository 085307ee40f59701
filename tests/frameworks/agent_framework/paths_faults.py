"""Failures and aborts: of the model, of tools, of middleware, of whoever called or read."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import Any

import agent_framework
from agent_framework import (
    AgentResponse,
    ChatResponse,
    ContextProvider,
    Message,
    agent_middleware,
    chat_middleware,
    function_middleware,
)
from agent_framework import exceptions as theirs
from agent_framework._middleware import MiddlewareTermination

import stopcause
from tests.frameworks.agent_framework.models import Turn, agent, call, failing, middleware, read, say
from tests.frameworks.agent_framework.paths_ends import UNPROVEN
from tests.frameworks.harness import Path_, Scripted

ABORTED = ("BOUNDED_STOP", "caller_abort")
GUARDED = ("BOUNDED_STOP", "guardrail")


class ServiceDown(Exception):  # noqa: N818 - as a provider calls it
    """What a model's client raises."""


class TooLong(ServiceDown):
    """With the code that a provider documents."""

    code = "context_length_exceeded"


class TooMany(ServiceDown):
    """With the status that a provider sends."""

    status_code = 429


ServiceDown.__module__ = TooLong.__module__ = TooMany.__module__ = "openai._exceptions"


def _model_fails(error: BaseException) -> Any:
    return failing(agent(Turn(error=error)).run("Go."))


def _stream_fails(*turns: Turn) -> Any:
    return failing(read(agent(*turns).run("Go.", stream=True)))


async def _once_more(_: Any, call_next: Any) -> None:
    """Asks the model again where it fails."""
    try:
        await call_next()
    except ServiceDown:
        await call_next()


async def _raises(*_: Any) -> None:
    raise Scripted("canary-7f3a")


async def _terminates(context: Any, _: Any) -> None:
    """As the framework's documentation has it: a result of its own, and no more of the rest."""
    context.result = AgentResponse(messages=[Message("assistant", ["canary-7f3a"])])
    raise MiddlewareTermination("canary-7f3a")


async def _has_answer(context: Any, _: Any) -> None:
    context.result = AgentResponse(messages=[Message("assistant", ["canary-7f3a"])])


async def _has_models_answer(context: Any, _: Any) -> None:
    context.result = ChatResponse(messages=[Message("assistant", ["canary-7f3a"])], finish_reason="stop")


async def _terminates_model(context: Any, call_next: Any) -> None:
    await _has_models_answer(context, call_next)
    raise MiddlewareTermination


async def _terminates_bare(*_: Any) -> None:
    raise MiddlewareTermination


async def _terminates_tool(context: Any, _: Any) -> None:
    context.result = "canary-7f3a"
    raise MiddlewareTermination


async def _aborts(*_: Any) -> None:
    raise agent_framework.MiddlewareFailure("canary-7f3a")  # the oldest version has none


def _with(kind: Any, process: Any, *turns: Turn) -> Any:
    return agent(*(turns or (call(), say())), middleware=[middleware(kind, process)])


class Breaks(ContextProvider):  # what loads memories, say
    """Fails before the run."""

    async def before_run(self, **_: Any) -> None:
        raise Scripted("canary-7f3a")


async def _inner_fails() -> None:
    helper = agent(Turn(error=ServiceDown()), name="helper", tools=[])
    await agent(call("helper", task="x"), say(), tools=[helper.as_tool(name="helper")]).run("Go.")


async def _cancelled(*turns: Turn) -> None:
    """The last turn begins, and then the task is cancelled."""
    begun = asyncio.Event()
    last = turns[-1]._replace(act=begun.set, pause=5)
    task = asyncio.create_task(agent(*turns[:-1], last).run("Go."))
    await begun.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _cancelled_in_tool() -> None:
    task = asyncio.create_task(agent(call("slow")).run("Go."))
    await asyncio.sleep(0.05)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _expires(timer: asyncio.Timeout) -> Any:
    return lambda: timer.reschedule(asyncio.get_running_loop().time())


async def _timed_out(*, in_a_block: bool, before: tuple[Turn, ...] = ()) -> None:
    block = stopcause.run("desk") if in_a_block else contextlib.nullcontext()
    with contextlib.suppress(TimeoutError), block:
        async with asyncio.timeout(None) as timer:
            await agent(*before, say(act=_expires(timer), pause=5)).run("Go.")


async def _leaves() -> None:
    stream = agent(call(), say()).run("Go.", stream=True)
    await anext(stream)
    await stream.close()


async def _drops() -> None:
    """On the oldest version this is the only way to leave."""
    stream = agent(call(), say()).run("Go.", stream=True)
    await anext(stream)
    del stream
    gc.collect()


async def _reader_fails() -> None:
    stream = agent(call(), say()).run("Go.", stream=True)
    with contextlib.suppress(Scripted):
        async for _ in stream:
            raise Scripted("canary-7f3a")
    del stream
    gc.collect()


async def _never_read() -> None:
    """A stream that nobody reads is no run; the one after it is."""
    stream = agent(say(), name="unread").run("Go.", stream=True)
    del stream
    await agent(say()).run("Go.")


PATHS = [
    Path_(
        "model-fails",
        "The model's client raised.",
        ("FAILED", "model_failure"),
        lambda: _model_fails(Scripted("canary-7f3a")),
    ),
    Path_(
        "provider-fails",
        "The provider's own exception.",
        ("FAILED", "model_failure"),
        lambda: _model_fails(ServiceDown()),
    ),
    Path_(
        "provider-window",
        "The provider says that it is too much for the model.",
        ("BOUNDED_STOP", "context_limit"),
        lambda: _model_fails(TooLong()),
    ),
    Path_("provider-busy", "The provider's quota.", ("FAILED", "quota"), lambda: _model_fails(TooMany())),
    Path_(
        "client-refuses",
        "The chat client's own exception.",
        ("FAILED", "model_failure"),
        lambda: _model_fails(theirs.ChatClientInvalidRequestException("canary-7f3a")),
    ),
    Path_(
        "client-filters",
        "The chat client says that a filter refused it.",
        ("FAILED", "content_filter"),
        lambda: _model_fails(theirs.ChatClientContentFilterException("canary-7f3a")),
    ),
    Path_(
        "model-fails-in-stream",
        "The model's client raised while it was read, after a tool had run.",
        ("FAILED", "model_failure"),
        lambda: _stream_fails(call(), Turn(error=ServiceDown())),
    ),
    Path_(
        "model-fails-once",
        "A middleware asked again after the model had failed, and it answered.",
        UNPROVEN,
        lambda: _with(chat_middleware, _once_more, Turn(error=ServiceDown()), say()).run("Go."),
    ),
    Path_(
        "unknown-tool-refused",
        "The model made up a tool, and the configuration ends the run for that.",
        ("FAILED", "malformed_call"),
        lambda: failing(agent(call("canary-7f3a"), limits={"terminate_on_unknown_calls": True}).run("Go.")),
    ),
    Path_(
        "tool-fails",
        "A tool failed, the model was told, and it answered.",
        UNPROVEN,
        lambda: agent(call("breaks"), say()).run("Go."),
    ),
    Path_("inner-fails", "The agent that is a tool failed; the outer one was told.", UNPROVEN, _inner_fails),
    Path_(
        "inner-fails-itself", "The agent that is a tool failed.", ("FAILED", "model_failure"), _inner_fails, judged=1
    ),
    Path_(
        "context-fails",
        "A context provider of the host's raised before the run.",
        ("FAILED", "host_error"),
        lambda: failing(agent(say(), context_providers=[Breaks("memories")]).run("Go.")),
    ),
    Path_(
        "agent-middleware-raises",
        "A middleware of the host's raised.",
        ("FAILED", "host_error"),
        lambda: failing(_with(agent_middleware, _raises).run("Go.")),
    ),
    Path_(
        "chat-middleware-raises",
        "A middleware around the model raised: the host's fault, not the model's.",
        ("FAILED", "host_error"),
        lambda: failing(_with(chat_middleware, _raises).run("Go.")),
    ),
    Path_(
        "function-middleware-raises",
        "A middleware around a tool raised; the model was told, as of a tool's error.",
        UNPROVEN,
        lambda: _with(function_middleware, _raises).run("Go."),
    ),
    Path_(
        "terminated",
        "A middleware ended it with an answer of its own.",
        GUARDED,
        lambda: _with(agent_middleware, _terminates).run("Go."),
    ),
    Path_(
        "terminated-bare",
        "A middleware ended it without an answer.",
        GUARDED,
        lambda: _with(agent_middleware, _terminates_bare).run("Go."),
    ),
    Path_(
        "terminated-streamed",
        "A middleware ended it before the stream had begun.",
        GUARDED,
        lambda: read(_with(agent_middleware, _terminates_bare).run("Go.", stream=True)),
    ),
    Path_(
        "terminated-at-tool",
        "A middleware ended it at a call.",
        GUARDED,
        lambda: _with(function_middleware, _terminates_tool).run("Go."),
    ),
    Path_(
        "terminated-at-model",
        "A middleware ended it in place of the model's answer.",
        GUARDED,
        lambda: _with(chat_middleware, _terminates_model).run("Go."),
    ),
    Path_(
        "answered-by-middleware",
        "A middleware has the answer at hand, and asks nobody.",
        UNPROVEN,
        lambda: _with(agent_middleware, _has_answer).run("Go."),
    ),
    Path_(
        "answered-in-place-of-model",
        "A middleware has the model's answer at hand.",
        UNPROVEN,
        lambda: _with(chat_middleware, _has_models_answer).run("Go."),
    ),
    Path_(
        "aborted-at-tool",
        "A middleware aborted it at a call, as enforcement layers do.",
        GUARDED,
        lambda: failing(_with(function_middleware, _aborts).run("Go.")),
    ),
    Path_("cancelled", "Its task was cancelled while the model was asked.", ABORTED, lambda: _cancelled(say())),
    Path_(
        "cancelled-later", "Its task was cancelled after a tool had run.", ABORTED, lambda: _cancelled(call(), say())
    ),
    Path_("cancelled-in-tool", "Its task was cancelled while a tool ran.", ABORTED, _cancelled_in_tool),
    Path_(
        "timed-out",
        "A timer outside cut it off; from in here it is a cancellation.",
        ABORTED,
        lambda: _timed_out(in_a_block=False),
    ),
    Path_(
        "timed-out-in-a-block",
        "A timer in the host's block, and nothing had come of it.",
        ("STUCK", "time_limit"),
        lambda: _timed_out(in_a_block=True),
    ),
    Path_(
        "timed-out-with-progress",
        "A timer in the host's block, after a tool had come back.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _timed_out(in_a_block=True, before=(call(),)),
    ),
    Path_("reader-leaves", "The reader closed the stream.", ABORTED, _leaves),
    Path_("reader-drops", "The reader let go of the stream.", ABORTED, _drops),
    Path_("reader-fails", "The reader raised between two updates.", ABORTED, _reader_fails),
    Path_("never-read", "A stream that is never read is no run.", UNPROVEN, _never_read),
]
