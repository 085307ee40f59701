"""Strands Agents: where it is listened to.

Two points. `stream_async` of agents, graphs and swarms is the way of every invocation, sync ones too; it is wrapped,
because limits, exceptions, a cancel and a reader who leaves pass through nothing else. The registry that calls an
agent's hooks is listened to after it has called them: an agent's own callbacks and their order stay as they are, and
what is seen is what all of them together decided.

What the framework's words mean is in `causes`; what an invocation says is in `agent` and
`multiagent`.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from stopcause.receipts import imports
from stopcause.receipts.hooks import wrapping
from stopcause.receipts.hooks.strands import agent as strands_agent
from stopcause.receipts.hooks.strands import multiagent
from stopcause.receipts.hooks.strands.call import Asked, open_call
from stopcause.receipts.hooks.waiting import Waiting
from stopcause.receipts.hooks.wrapping import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.strands.call import Call
    from stopcause.receipts.hooks.wrapping import Undo

    Begin = Callable[..., Call | None]


def install(hook: Hook) -> Undo:
    """Listens. Graphs and swarms are wrapped when the program imports them."""
    from strands.agent.agent import Agent
    from strands.hooks.registry import HookRegistry

    waiting: Waiting[Asked] = Waiting()
    stream = functools.partial(_stream, hook, strands_agent.begin, waiting)
    answer = functools.partial(_structured, hook, waiting)
    undos = [replace(Agent, "stream_async", stream), replace(Agent, "structured_output_async", answer)]
    if hook.is_tested:
        undos.append(replace(HookRegistry, "invoke_callbacks_async", functools.partial(_callbacks, hook)))
        for module, name in (("strands.multiagent.graph", "Graph"), ("strands.multiagent.swarm", "Swarm")):
            _when_there(hook, module, name, waiting, undos)

    return wrapping.undo_all(hook, undos)


def _when_there(hook: Hook, module: str, name: str, waiting: Waiting[Asked], undos: list[Undo]) -> None:
    def wrap() -> None:
        with hook.guard(name):
            owner = getattr(__import__(module, fromlist=[name]), name)
            undos.append(replace(owner, "stream_async", functools.partial(_stream, hook, multiagent.begin, waiting)))

    undos.append(imports.when_imported(module, wrap))


def _stream(hook: Hook, begin: Begin, waiting: Waiting[Asked], original: Foreign) -> Foreign:
    """What the wrapped one does not name among its parameters is handed to tools, and bounds nothing."""
    names = inspect.signature(original).parameters

    def opened(owner: Foreign, /, *args: Any, **kwargs: Any) -> Call | None:  # noqa: ANN401 - whatever it is called with
        return begin(hook, owner, waiting, args, {name: kwargs[name] for name in kwargs if name in names})

    return wrapping.watched(hook, original, opened)


def _structured(hook: Hook, waiting: Waiting[Asked], original: Foreign) -> Foreign:
    """`structured_output_async`, deprecated: it goes to the model directly."""

    def opened(agent: Foreign, /, *_: Any, **__: Any) -> Call | None:  # noqa: ANN401 - whatever it is called with
        return strands_agent.begin_structured(hook, agent, waiting)

    return wrapping.watched(hook, original, opened)


def _callbacks(hook: Hook, original: Foreign) -> Foreign:
    """The registry's call of an agent's hooks. An exception of theirs is the host's own, and is remembered as that."""

    @functools.wraps(original)
    async def invoke_callbacks_async(registry: Foreign, /, event: Foreign) -> Foreign:
        call = open_call.get()
        try:
            answer = await original(registry, event)
        except Exception as error:
            if call is not None:
                call.host_fault = error
            raise
        if call is not None:
            with hook.guard(type(event).__name__):
                call.event(event, answer[1])
        return answer

    return invoke_callbacks_async
