"""Paths that a fault or a caller ends: tools, models, nodes, cancellation, readers that leave."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import langgraph.errors
from langchain.agents.middleware import ModelFallbackMiddleware, ToolRetryMiddleware, wrap_tool_call
from langchain.agents.structured_output import ToolStrategy
from langchain_core import exceptions
from langchain_core.messages import ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

import stopcause
from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, call, graph, say
from tests.frameworks.langgraph.paths_ends import Ticket

_DONE = ("FALSE_COMPLETE", "no_contract")
_LEFT = ("BOUNDED_STOP", "caller_abort")


@wrap_tool_call
def told(request: Any, handler: Any) -> Any:
    """Tells the model of a failure."""
    try:
        return handler(request)
    except Scripted:
        return ToolMessage("It did not work.", tool_call_id=request.tool_call["id"], status="error")


def raises(made: Any, ask: Any = models.ASK) -> None:
    with contextlib.suppress(Exception):
        made.invoke(ask)


def tool_fails() -> None:
    raises(agent(call("break_down"), tools=[models.break_down]))


async def tool_fails_async() -> None:
    with contextlib.suppress(Scripted):
        await agent(call("look_up", "break_down"), tools=[models.look_up, models.break_down]).ainvoke(models.ASK)


def tool_told() -> None:
    agent(call("break_down"), say(), tools=[models.break_down], middleware=[told]).invoke(models.ASK)


def tool_retried() -> None:
    tries = iter([Scripted("once"), None])

    def flaky() -> str:
        """Fails once."""
        if (error := next(tries)) is not None:
            raise error
        return "done"

    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    agent(call("flaky"), say(), tools=[flaky], middleware=[retry]).invoke(models.ASK)


def unknown_tool() -> None:
    agent(call("no_such_tool"), say()).invoke(models.ASK)


def inner_agent_fails() -> None:
    helper = agent(call("break_down"), tools=[models.break_down], name="helper")

    def ask_helper() -> str:
        """Asks another agent."""
        return str(helper.invoke(models.ASK))

    raises(agent(call("ask_helper"), tools=[ask_helper]))


def model_raises(kind: str) -> Any:
    return lambda: raises(agent(call("look_up"), getattr(exceptions, kind)("what the customer asked")))


def model_breaks() -> None:
    raises(agent(call("look_up"), Scripted("overloaded")))


def model_falls_back() -> None:
    second = models.ChatScripted(answers=[say()])
    agent(Scripted("overloaded"), middleware=[ModelFallbackMiddleware(second)]).invoke(models.ASK)


def answer_unreadable() -> None:
    raises(agent(call("Ticket", number="many"), response_format=ToolStrategy(Ticket, handle_errors=False)))


def node_fails() -> None:
    def break_it(_state: models.State) -> models.State:
        raise Scripted("the customer's number")

    raises(graph(models.collect, break_it), {"done": []})


def node_retried() -> None:
    tries = iter([Scripted("once"), None])

    def flaky(_state: models.State) -> models.State:
        if (error := next(tries)) is not None:
            raise error
        return {}

    builder = StateGraph(models.State)
    builder.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=Scripted))
    builder.add_edge(START, "flaky")
    builder.compile(name="ticket-graph").with_config(models.LIMIT).invoke({"done": []})


def input_refused() -> None:
    raises(graph(models.collect), None)


async def node_cancels() -> None:
    async def give_up(_state: models.State) -> models.State:
        raise asyncio.CancelledError

    with contextlib.suppress(Exception, asyncio.CancelledError):
        await graph(give_up).ainvoke({"done": []})


async def cancelled() -> None:
    waits = asyncio.Event()

    async def wait_long() -> str:
        """Waits."""
        waits.set()
        await asyncio.sleep(5)
        return "never"

    task = asyncio.ensure_future(agent(call("wait_long"), tools=[wait_long]).ainvoke(models.ASK))
    await waits.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def keyboard() -> None:
    def stop_it(_state: models.State) -> models.State:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        graph(models.collect, stop_it).invoke({"done": []})


def left() -> None:
    for _ in agent(call("look_up"), say()).stream(models.ASK, stream_mode="updates"):
        break


def dropped() -> None:
    stream = agent(call("look_up"), say()).stream(models.ASK, stream_mode="updates")
    next(stream)
    del stream


async def left_async() -> None:
    stream = agent(call("look_up"), say()).astream(models.ASK, stream_mode="updates")
    async for _ in stream:
        break
    await stream.aclose()


def held() -> None:
    """A stream that nobody reads on: the run is open. The stream is kept until the records are taken."""
    stream = agent(call("look_up"), say()).stream(models.ASK, stream_mode="updates")
    next(stream)
    _held.append(stream)


_held: list[Any] = []


def let_go() -> None:
    """Closes what `held` keeps."""
    while _held:
        _held.pop().close()


def drained() -> None:
    from langgraph.runtime import RunControl  # noqa: PLC0415 - the oldest version has none

    control = RunControl()

    def told_to_go(_state: models.State) -> models.State:
        control.request_drain("sigterm")
        return {"done": ["collect"]}

    with contextlib.suppress(langgraph.errors.GraphDrained):
        made = graph(told_to_go, models.store, checkpointer=models.Durable())
        made.invoke({"done": []}, models.thread(), control=control)


def named_by_host() -> None:
    with stopcause.run("nightly") as run:
        raises(agent(call("break_down"), tools=[models.break_down]))
        run.stop("self_reported_failure")


PATHS = [
    Path_("tool-fails", "A tool raised, and the agent with it.", ("FAILED", "tool_failure"), tool_fails),
    Path_("tool-fails-async", "One of two tools side by side raised.", ("FAILED", "tool_failure"), tool_fails_async),
    Path_("tool-told", "A failure that the model was told of is recovered.", _DONE, tool_told),
    Path_("tool-retried", "A tool worked the second time.", _DONE, tool_retried),
    Path_("unknown-tool", "The model asked for a tool that there is not; its name is nowhere.", _DONE, unknown_tool),
    Path_("inner-agent-fails", "An agent that a tool called failed: for the outer one a tool failed.",
          ("FAILED", "tool_failure"), inner_agent_fails),
    Path_("model-fails", "The model raised.", ("FAILED", "model_failure"), model_breaks),
    Path_("model-rate-limit", "The provider's rate limit ended it.", ("FAILED", "quota"),
          model_raises("ModelRateLimitError")),
    Path_("model-context", "The window was full.", ("BOUNDED_STOP", "context_limit"),
          model_raises("ContextOverflowError")),
    Path_("model-refusal", "A refusal as an exception.", ("FAILED", "refusal"),
          model_raises("ModelRefusalError")),
    Path_("model-falls-back", "Another model answered: recovered.", _DONE, model_falls_back),
    Path_("answer-unreadable", "The structured answer could not be read.", ("FAILED", "malformed_call"),
          answer_unreadable),
    Path_("node-fails", "The graph's own code raised.", ("FAILED", "host_error"), node_fails),
    Path_("node-retried", "A node worked the second time.", _DONE, node_retried),
    Path_("input-refused", "Nothing in the input fits the graph: no step was made.", ("FAILED", "input_rejected"),
          input_refused),
    Path_("node-cancels", "A node that raises a cancellation itself has failed.", ("FAILED", "host_error"),
          node_cancels),
    Path_("cancelled", "The caller cancelled it, with a tool in flight.", _LEFT, cancelled),
    Path_("keyboard", "Somebody pressed the keys.", ("BOUNDED_STOP", "user_abort"), keyboard),
    Path_("reader-left", "Who read the stream went away after the first item.", _LEFT, left),
    Path_("stream-dropped", "The stream was let go of without being closed.", _LEFT, dropped),
    Path_("reader-left-async", "The same with an async stream that is closed.", _LEFT, left_async),
    Path_("stream-held", "Nobody reads on, and nobody lets go: open until its lease is over.",
          ("STUCK", "lease_expired"), held, after_s=400.0),
    Path_("drained", "The process is told to go: the run stops at a superstep's end.",
          ("BOUNDED_STOP", "platform_abort"), drained),
    Path_("named-by-host", "The host's own word counts before the agent's.", ("FAILED", "self_reported_failure"),
          named_by_host),
]  # fmt: skip
