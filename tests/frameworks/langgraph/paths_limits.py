"""Paths that a bound ends: supersteps, calls, time, guards."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import langgraph.errors
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, PIIMiddleware, ToolCallLimitMiddleware, before_model
from langgraph.graph import START, StateGraph

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, call, graph, say

_STEPS = ("BOUNDED_STOP", "step_limit")


@before_model(can_jump_to=["end"])
def office_hours(_state: Any, _runtime: Any) -> Any:
    """A guard of the application's."""
    return {"jump_to": "end", "messages": [say()]}


def out_of_steps() -> None:
    with contextlib.suppress(langgraph.errors.GraphRecursionError):
        agent(call("look_up")).invoke(models.ASK, {"recursion_limit": 5})


async def out_of_steps_async() -> None:
    with contextlib.suppress(langgraph.errors.GraphRecursionError):
        await agent(call("look_up")).ainvoke(models.ASK, {"recursion_limit": 4})


def inner_out_of_steps() -> None:
    inner = graph(models.collect, models.store, name="inner")

    def ask_inner(state: models.State) -> Any:
        return inner.invoke(state, {"recursion_limit": 1})

    with contextlib.suppress(langgraph.errors.GraphRecursionError):
        graph(ask_inner).invoke({"done": []}, {"recursion_limit": 9})


def model_calls(behaviour: Any) -> Any:
    def run() -> None:
        limit = ModelCallLimitMiddleware(run_limit=2, exit_behavior=behaviour)
        with contextlib.suppress(Exception):
            agent(call("look_up"), middleware=[limit]).invoke(models.ASK)

    return run


def model_calls_of_thread() -> None:
    limit = ModelCallLimitMiddleware(thread_limit=3, exit_behavior="end")
    made = agent(call("look_up"), say(), call("look_up"), middleware=[limit], checkpointer=models.Durable())
    config = models.thread()
    made.invoke(models.ASK, config)
    made.invoke(models.ASK, config)


def tool_calls(behaviour: Any) -> Any:
    def run() -> None:
        limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior=behaviour)
        with contextlib.suppress(Exception):
            agent(call("look_up"), call("look_up"), middleware=[limit]).invoke(models.ASK)

    return run


def tool_calls_go_on() -> None:
    limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="continue")
    agent(call("look_up"), call("look_up"), say(), middleware=[limit]).invoke(models.ASK)


@before_model
def unheard(_state: Any, _runtime: Any) -> Any:
    """A guard that did not say where it may jump to: the graph goes on to the model."""
    return {"jump_to": "end"}


def guarded_in_vain() -> None:
    agent(say(), middleware=[unheard]).invoke(models.ASK)


def guarded() -> None:
    agent(say(), middleware=[office_hours]).invoke(models.ASK)


def personal_data() -> None:
    with contextlib.suppress(Exception):
        ask = {"messages": [("user", "Write to someone@example.org")]}
        agent(say(), middleware=[PIIMiddleware("email", strategy="block")]).invoke(ask)


def slow(_state: models.State) -> models.State:
    time.sleep(0.6)
    return {}


async def aslow(_state: models.State) -> models.State:
    await asyncio.sleep(5)
    return {}


def step_timeout() -> None:
    made = graph(models.collect, slow)
    made.step_timeout = 0.3
    with contextlib.suppress(TimeoutError):
        made.invoke({"done": []})


async def step_timeout_async() -> None:
    def work() -> str:
        """Works."""
        return "done"

    async def think() -> str:
        """Thinks."""
        await asyncio.sleep(5)
        return "never"

    made = agent(call("work"), call("think"), tools=[work, think])
    made.step_timeout = 0.5
    with contextlib.suppress(TimeoutError):
        await made.ainvoke(models.ASK)


def node_timer() -> None:
    """A node raises a time-out of its own: a fault of the node, whatever the graph's limit."""

    def ask_far_away(_state: models.State) -> models.State:
        raise TimeoutError("the customer's server")

    made = graph(models.collect, ask_far_away)
    made.step_timeout = 5
    with contextlib.suppress(TimeoutError):
        made.invoke({"done": []})


async def node_timer_async() -> None:
    """The same by a timer of asyncio's, inside the node."""

    async def ask_far_away(_state: models.State) -> models.State:
        async with asyncio.timeout(0.05):
            return await aslow(_state)

    with contextlib.suppress(TimeoutError):
        await graph(models.acollect, ask_far_away).ainvoke({"done": []})


async def node_timeout() -> None:
    from langgraph.types import TimeoutPolicy  # noqa: PLC0415 - the oldest version has none

    builder = StateGraph(models.State)
    builder.add_node("aslow", aslow, timeout=TimeoutPolicy(run_timeout=0.05))
    builder.add_edge(START, "aslow")
    with contextlib.suppress(langgraph.errors.NodeTimeoutError):
        await builder.compile(name="ticket-graph").with_config(models.LIMIT).ainvoke({"done": []})


async def timed_block() -> None:
    with contextlib.suppress(TimeoutError), stopcause.run("nightly"):
        async with asyncio.timeout(0.4):
            await graph(models.acollect, aslow).ainvoke({"done": []})


async def timed_block_with_progress() -> None:
    async def wait_long() -> str:
        """Waits."""
        await asyncio.sleep(5)
        return "never"

    made = agent(call("look_up"), call("wait_long"), tools=[models.look_up, wait_long])
    with contextlib.suppress(TimeoutError), stopcause.run("nightly"):
        await asyncio.wait_for(made.ainvoke(models.ASK), 1.0)


async def timed_outside() -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(graph(models.acollect, aslow).ainvoke({"done": []}), 0.4)


def default_limit() -> None:
    create_agent(models.ChatScripted(answers=[say()]), [models.look_up], name="ticket-agent").invoke(models.ASK)


PATHS = [
    Path_("default-limit", "A limit that nobody set is in force all the same.", ("FALSE_COMPLETE", "no_contract"),
          default_limit),
    Path_("recursion-limit", "Five supersteps of five: the limit fired.", _STEPS, out_of_steps),
    Path_("recursion-limit-async", "The same, awaited; the last superstep was a tool's.", _STEPS, out_of_steps_async),
    Path_("recursion-limit-inside", "The limit of a graph inside fired: its supersteps are not the run's.", _STEPS,
          inner_out_of_steps),
    Path_("model-calls-end", "The limit answers in the model's place: it looks like an end and is a bound.", _STEPS,
          model_calls("end")),
    Path_("model-calls-error", "The same limit as an exception.", _STEPS, model_calls("error")),
    Path_("model-calls-thread", "The thread's limit fired in its second run.", _STEPS, model_calls_of_thread,
          judged=1),
    Path_("tool-calls-end", "The limit of tool calls ends the run.", _STEPS, tool_calls("end")),
    Path_("tool-calls-error", "The same as an exception.", _STEPS, tool_calls("error")),
    Path_("tool-calls-continue", "A blocked call goes back to the model, and the model ends it: no bound ended it.",
          ("FALSE_COMPLETE", "no_contract"), tool_calls_go_on),
    Path_("guard-jumps-to-end", "A middleware of the application's sends it to its end.",
          ("BOUNDED_STOP", "guardrail"), guarded),
    Path_("guard-unheard", "A jump that the graph does not take ends nothing.", ("FALSE_COMPLETE", "no_contract"),
          guarded_in_vain),
    Path_("guard-raises", "A guard that blocks by an exception.", ("BOUNDED_STOP", "guardrail"), personal_data),
    Path_("step-timeout", "The graph's own timer fired, and nothing had been reached.", ("STUCK", "time_limit"),
          step_timeout),
    Path_("step-timeout-progress", "The timer fired with a tool in flight, after another had returned.",
          ("BOUNDED_STOP", "time_limit"), step_timeout_async),
    Path_("timer-of-a-node", "A node's own time-out is a fault of the node.", ("FAILED", "host_error"), node_timer),
    Path_("timer-of-a-node-async", "A timer inside a node is the node's, too.", ("FAILED", "host_error"),
          node_timer_async),
    Path_("node-timeout", "The node's own policy fired.", ("STUCK", "time_limit"), node_timeout),
    Path_("timed-block", "The host's timer, seen from the host's block; nothing had been reached.",
          ("STUCK", "time_limit"), timed_block),
    Path_("timed-block-progress", "The host's timer, with a tool in flight.", ("BOUNDED_STOP", "time_limit"),
          timed_block_with_progress),
    Path_("timed-outside", "A timer that only the caller knows is a cancellation.", ("BOUNDED_STOP", "caller_abort"),
          timed_outside),
]  # fmt: skip
