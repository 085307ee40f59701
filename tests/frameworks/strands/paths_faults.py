"""Failures and aborts: of the model, of tools, of the program, of whoever called or read."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from typing import Any

from strands import tool
from strands.hooks import AfterToolCallEvent, BeforeModelCallEvent
from strands.types.tools import ToolContext

import stopcause
from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.strands.models import On, Turn, agent, answers_with, call, failing, say
from tests.frameworks.strands.paths_ends import UNPROVEN

ABORTED = ("BOUNDED_STOP", "caller_abort")


class ServiceDown(Exception):  # noqa: N818 - as a provider calls it
    """What a model's client raises."""


class TooMany(ServiceDown):
    """With the status that a provider sends."""

    status_code = 429


ServiceDown.__module__ = TooMany.__module__ = "openai._exceptions"


def _model_fails(error: BaseException) -> None:
    failing(lambda: agent(Turn(error=error))("Go."))


def _hook_raises() -> None:
    def callback(_: Any) -> None:
        raise Scripted("canary-7f3a")

    failing(lambda: agent(say(), hooks=[answers_with(BeforeModelCallEvent, callback)])("Go."))


def _handler_raises() -> None:
    """The program's own callback for stream events."""

    def handler(**_: Any) -> None:
        raise Scripted("canary-7f3a")

    made = agent(say())
    made.callback_handler = handler
    failing(lambda: made("Go."))


def _bad_limits() -> None:
    failing(lambda: agent(say())("Go.", limits={"turns": 0}))


def _bad_input() -> None:
    failing(lambda: agent(say())(42))


async def _twice_at_once() -> None:
    made = agent(say(pause=0.4))
    first = asyncio.create_task(made.invoke_async("Go."))
    await asyncio.sleep(0.05)
    with contextlib.suppress(Exception):
        await made.invoke_async("Go too.")
    await first


def _cancelling(**how: Any) -> On:
    return answers_with(AfterToolCallEvent, lambda event: event.agent.cancel(**how))


def _cancel() -> None:
    agent(call(), say(), hooks=[_cancelling()])("Go.")


def _cancel_deferred() -> None:
    agent(call(), say(), hooks=[_cancelling(after_current_tools=True, message="canary-7f3a")])("Go.")


def _cancel_signal() -> None:
    signal = threading.Event()
    agent(call(), say(), hooks=[answers_with(AfterToolCallEvent, lambda _: signal.set())])("Go.", cancel_signal=signal)


async def _task_cancelled() -> None:
    task = asyncio.create_task(agent(say(pause=5)).invoke_async("Go."))
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.wait([task])


async def _tool_cancelled() -> None:
    task = asyncio.create_task(agent(call("slow")).invoke_async("Go."))
    await asyncio.sleep(0.4)
    task.cancel()
    await asyncio.wait([task])


async def _timed_out(*turns: Turn) -> None:
    try:
        async with stopcause.run("ticket-agent"), asyncio.timeout(0.6):
            await agent(*turns).invoke_async("Go.")
    except TimeoutError:
        pass


async def _reader_leaves() -> None:
    stream = agent(say()).stream_async("Go.")
    async for item in stream:
        if "data" in item:
            break
    await stream.aclose()


async def _reader_leaves_with_result() -> None:
    stream = agent(say()).stream_async("Go.")
    async for item in stream:
        if "result" in item:
            break
    await stream.aclose()


async def _reader_forgets() -> None:
    stream = agent(say()).stream_async("Go.")
    await anext(stream)
    del stream
    gc.collect()
    await asyncio.sleep(0.01)


@tool
def ask_expert() -> str:
    """An agent that is called as any tool."""
    return str(agent(say(), name="expert")("Go."))


def _agent_in_tool() -> None:
    agent(call("ask_expert"), say(), tools=[ask_expert])("Go.")


def _agent_as_tool() -> None:
    agent(call("expert", input="canary-7f3a"), say(), tools=[agent(say(), name="expert").as_tool()])("Go.")


def _agent_as_tool_fails() -> None:
    expert = agent(Turn(error=ServiceDown("canary-7f3a")), name="expert").as_tool()
    agent(call("expert", input="canary-7f3a"), say(), tools=[expert])("Go.")


@tool(context=True)
def finish(tool_context: ToolContext) -> str:
    """Ends the loop by the old flag."""
    tool_context.invocation_state["request_state"]["stop_event_loop"] = True
    return "ok"


PATHS = [
    Path_(
        "model-fails",
        "The model's client raised, and nothing recovered it.",
        ("FAILED", "model_failure"),
        lambda: _model_fails(ServiceDown("canary-7f3a")),
    ),
    Path_(
        "model-fails-plainly",
        "An error of no provider's class, but it came out of the model.",
        ("FAILED", "model_failure"),
        lambda: _model_fails(Scripted("canary-7f3a")),
    ),
    Path_(
        "model-rate-limit",
        "The provider's own exception says 429.",
        ("FAILED", "quota"),
        lambda: _model_fails(TooMany("canary-7f3a")),
    ),
    Path_("hook-raises", "A hook of the program's raised.", ("FAILED", "host_error"), _hook_raises),
    Path_("handler-raises", "The program's callback handler raised.", ("FAILED", "host_error"), _handler_raises),
    Path_(
        "tool-fails",
        "A tool raised; the model was told and went on.",
        UNPROVEN,
        lambda: agent(call("breaks"), say())("Go."),
    ),
    Path_(
        "tool-invented",
        "The model called a tool that is not there, and went on.",
        UNPROVEN,
        lambda: agent(call("canary7f3a"), say())("Go."),
    ),
    Path_(
        "limits-refused",
        "What was given as limits is none: refused before any turn.",
        ("FAILED", "input_rejected"),
        _bad_limits,
    ),
    Path_(
        "input-refused",
        "What was given as input is none: refused before any turn.",
        ("FAILED", "input_rejected"),
        _bad_input,
    ),
    Path_(
        "twice-at-once",
        "A second call while the first goes on is refused.",
        ("FAILED", "input_rejected"),
        _twice_at_once,
        judged=1,
    ),
    Path_("cancel", "The program called agent.cancel(), which was seen and ended it.", ABORTED, _cancel),
    Path_("cancel-signal", "The caller's own signal ended it.", ABORTED, _cancel_signal),
    Path_(
        "cancel-deferred",
        "A tool or hook said that this batch was the last: that is done, not aborted.",
        UNPROVEN,
        _cancel_deferred,
    ),
    Path_(
        "finish-flag",
        "A tool ended the loop by the flag.",
        UNPROVEN,
        lambda: agent(call("finish"), tools=[finish])("Go."),
    ),
    Path_("task-cancelled", "Its task was cancelled while the model answered.", ABORTED, _task_cancelled),
    Path_("tool-cut-off", "Its task was cancelled while a tool ran: one was in flight.", ABORTED, _tool_cancelled),
    Path_(
        "timed-out",
        "The host's time limit fired and nothing had been reached.",
        ("STUCK", "time_limit"),
        lambda: _timed_out(say(pause=5)),
    ),
    Path_(
        "timed-out-with-progress",
        "The host's time limit fired; a tool had answered before.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _timed_out(call(), say(pause=5)),
    ),
    Path_("reader-leaves", "Whoever read the stream closed it.", ABORTED, _reader_leaves),
    Path_(
        "reader-leaves-with-result",
        "The reader closed it once it had the result: it was over.",
        UNPROVEN,
        _reader_leaves_with_result,
    ),
    Path_("reader-forgets", "Nobody reads the stream any more; it is collected.", ABORTED, _reader_forgets),
    Path_("agent-in-tool", "A tool runs another agent: its run is a child.", UNPROVEN, _agent_in_tool),
    Path_("agent-as-tool", "An agent is a tool: its run is a child.", UNPROVEN, _agent_as_tool),
    Path_(
        "agent-as-tool-fails",
        "An agent is a tool and failed; its parent was told and went on.",
        UNPROVEN,
        _agent_as_tool_fails,
    ),
    Path_(
        "agent-as-tool-failed",
        "An agent is a tool, and its model failed: the child is judged.",
        ("FAILED", "model_failure"),
        _agent_as_tool_fails,
        judged=1,
    ),
]
