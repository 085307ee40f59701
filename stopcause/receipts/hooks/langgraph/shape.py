"""What a compiled graph says of itself before it runs: its name, its tools, the bounds that are built into it.

A graph object in, names and numbers out, once for each graph. Nothing here outlives its graph, and nothing of its state
is read.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

# Limit middlewares of `langchain.agents.middleware` by their class: what they count.
COUNTED = {"ModelCallLimitMiddleware": "model_call", "ToolCallLimitMiddleware": "tool_call"}
_FRAMEWORK = "langchain.agents"


class Bound(NamedTuple):
    """A limit middleware of the graph.

    Attributes:
        name: As the graph calls it.
        unit: What it counts: `model_call` or `tool_call`.
        run_limit: For one run; None where it has none.
        thread_limit: For all runs of a thread.
        tool: The only tool that it counts; None counts all.
    """

    name: str
    unit: str
    run_limit: int | None
    thread_limit: int | None
    tool: str | None


class Shape(NamedTuple):
    """A graph. `tools`: the names of those that it has; `tool_nodes`: the nodes that call them."""

    name: str | None = None
    tools: frozenset[str] = frozenset()
    tool_nodes: frozenset[str] = frozenset()
    bounds: tuple[Bound, ...] = ()
    step_timeout: float | None = None

    def bound_of(self, node: str) -> Bound | None:
        """The limit middleware that a node is a part of: nodes are called `<middleware>.before_model` and so on."""
        owner = node.rpartition(".")[0]
        return next((each for each in self.bounds if each.name == owner), None)

    def bound_raising(self, error: str, run_limit: int | None, thread_limit: int | None) -> Bound | None:
        """The limit middleware that raises an error of this class with these limits."""
        unit = "model_call" if error.startswith("Model") else "tool_call"
        asked = (unit, run_limit, thread_limit)
        return next((each for each in self.bounds if (each.unit, each.run_limit, each.thread_limit) == asked), None)


_shapes: weakref.WeakKeyDictionary[Any, Shape] = weakref.WeakKeyDictionary()


def shape_of(hook: Hook, run: Run, graph: Any) -> Shape:  # noqa: ANN401 - a Pregel
    """The shape of a graph. Looked at once; but its time limit, a plain attribute, each time."""
    shape = _shapes.get(graph)
    if shape is None:
        nodes = list(_nodes(graph))
        tools = {name: found for name, bound in nodes if isinstance(found := _tools(bound), dict)}
        bounds = {each.name: each for name, bound in nodes if (each := _bound(name, bound)) is not None}
        named = frozenset(name for found in tools.values() for name in found if isinstance(name, str))
        shape = Shape(hook.read(run, graph, "name", str), named, frozenset(tools), tuple(bounds.values()))
        _shapes[graph] = shape
    seconds = hook.read(run, graph, "step_timeout", (int, float))
    return shape if seconds is None else shape._replace(step_timeout=seconds)


def is_agent(graph: Any) -> bool:  # noqa: ANN401 - a Pregel
    """Whether a graph inside another is an agent of its own, as `create_agent` marks those that it makes.

    The mark is looked for in the graph's own configuration: what callbacks are given is inherited by what is inside.
    """
    config = getattr(graph, "config", None) or {}
    metadata = config.get("metadata") or {}
    return "lc_agent_name" in metadata or metadata.get("ls_integration") == "langchain_create_agent"


def _nodes(graph: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    for name, node in dict(getattr(graph, "nodes", None) or {}).items():
        yield name, getattr(node, "bound", None)


def _tools(bound: Any) -> object:  # noqa: ANN401 - what a node runs
    return getattr(bound, "tools_by_name", None)


def _bound(node: str, bound: Any) -> Bound | None:  # noqa: ANN401
    """The limit middleware whose method a node is. One that the application derived counts the same."""
    owner = getattr(getattr(bound, "func", None), "__self__", None)
    for kind in type(owner).__mro__:
        unit = COUNTED.get(kind.__name__)
        if unit is not None and kind.__module__.startswith(_FRAMEWORK):
            limits = [_count(getattr(owner, name, None)) for name in ("run_limit", "thread_limit")]
            return Bound(node.rpartition(".")[0], unit, limits[0], limits[1], getattr(owner, "tool_name", None))
    return None


def _count(value: object) -> int | None:
    return value if type(value) is int else None
