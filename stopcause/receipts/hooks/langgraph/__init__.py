"""LangGraph and LangChain's `create_agent`: one callback handler that every context has, and no patch.

Here: which exception means what, and where the handler is added. Not here: which callback belongs to which run
(`listener`), what a run counts and how it ends (`run`), what a graph is and how it was called
(`shape`, `call`), interrupts and answers (`pause`, `waits`), finish reasons and
messages (`words`).
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from stopcause.receipts import capture
from stopcause.receipts.faults import is_cancelled, provider_cause
from stopcause.receipts.hooks.langgraph.listener import Handler, Listener, names_of
from stopcause.receipts.hooks.langgraph.run import GraphRun, Why
from stopcause.receipts.vocabulary import LimitKind, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopcause.receipts.hooks.guard import Hook

# What leaves a graph, by class; the first class of its line of descent that is here counts. A failed call of a tool
# goes before, a failed call of a model after. Where there is nothing for it, the graph's own nodes raised: host_error.
CAUSES = {
    # langgraph.errors
    "GraphRecursionError": StopCause.STEP_LIMIT,
    "NodeTimeoutError": StopCause.TIME_LIMIT,
    "GraphDrained": StopCause.PLATFORM_ABORT,  # the process is told to go; the checkpoint is kept
    "NodeCancelledError": StopCause.HOST_ERROR,  # a node's own, not a cancellation of the run
    "EmptyInputError": StopCause.INPUT_REJECTED,
    "UnknownInterruptError": StopCause.INPUT_REJECTED,
    # langchain.agents
    "ModelCallLimitExceededError": StopCause.STEP_LIMIT,
    "ToolCallLimitExceededError": StopCause.STEP_LIMIT,
    "PIIDetectionError": StopCause.GUARDRAIL,
    "StructuredOutputError": StopCause.MALFORMED_CALL,
    # langchain_core.exceptions
    "ModelRefusalError": StopCause.REFUSAL,
    "ModelRateLimitError": StopCause.QUOTA,
    "ContextOverflowError": StopCause.CONTEXT_LIMIT,
    "ModelError": StopCause.MODEL_FAILURE,
}


def install(hook: Hook) -> Callable[[], None]:
    """Adds the handler to every callback manager from here on.

    `register_configure_hook` is LangChain's own point for this: it asks a context variable, and the default value of
    one is there in every thread, task and context. There is no public way back, so the undo takes the entry out.
    """
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.runnables.config import var_child_runnable_config
    from langchain_core.tracers import context
    from langgraph.pregel import Pregel
    from langgraph.types import Command

    codes = frozenset(inspect.unwrap(each).__code__ for each in (Pregel.stream, Pregel.astream))
    listener = Listener(hook, codes, Command, cause_of)
    handler = type("StopcauseHandler", (Handler, BaseCallbackHandler), {})(listener)
    variable: ContextVar[Any] = ContextVar("stopcause_langgraph", default=handler)
    context.register_configure_hook(variable, inheritable=True)
    undo_ambient = capture.ambient(lambda: listener.run_of(var_child_runnable_config.get()))

    def undo() -> None:
        hook.is_on = False  # for a configuration that has the handler in it, and is used again
        undo_ambient()
        hooks = context._configure_hooks  # noqa: SLF001 - see above
        hooks[:] = [each for each in hooks if each[0] is not variable]

    return undo


def cause_of(graph: GraphRun, error: BaseException) -> Why:
    """What an exception that left a graph means."""
    if is_cancelled(error) or not isinstance(error, Exception):
        return Why()
    failure = graph.failure_behind(error)
    if failure is not None and failure.is_tool:
        return Why(StopCause.TOOL_FAILURE, failure.tool)
    names = names_of(error)
    named = next((CAUSES[name] for name in names if name in CAUSES), None)
    if named is not None:
        _say_bound(graph, error, names)
        return Why(named)
    if failure is not None:
        return Why(provider_cause(error) or StopCause.MODEL_FAILURE)
    return Why(_timed_out(graph, error))


def _say_bound(graph: GraphRun, error: BaseException, names: list[str]) -> None:
    """The limit that an exception is about, from numbers that it or its graph has; its text is not read."""
    run, read = graph.run, graph.call.hook.read
    if "GraphRecursionError" in names:
        if graph.call.status == "out_of_steps":
            observed, limit = run.steps, graph.call.limit
            run.condition("recursion_limit", LimitKind.STEPS, fired=True, limit=limit, observed=observed)
        else:  # of a graph inside: its supersteps are not this one's
            run.steps = None
    elif "NodeTimeoutError" in names:
        seconds = read(run, error, "timeout", (int, float))
        run.condition("node_timeout", LimitKind.TIME, fired=True, limit=seconds)
    elif names[0].endswith("CallLimitExceededError"):
        bound = graph.shape.bound_raising(
            names[0], read(run, error, "run_limit", int), read(run, error, "thread_limit", int)
        )
        if bound is not None:
            graph.bound_fired(bound, read(run, error, "run_count", int) or 0)


def _timed_out(graph: GraphRun, error: BaseException) -> StopCause | None:
    """The graph's own `step_timeout` raises a plain `TimeoutError`; one that a node raised came through that node."""
    if not isinstance(error, TimeoutError):
        return None
    if graph.came_through_node(error):
        return StopCause.HOST_ERROR
    limit = graph.shape.step_timeout
    if limit is None:
        return None
    graph.run.condition("step_timeout", LimitKind.TIME, fired=True, limit=limit)
    return StopCause.TIME_LIMIT
