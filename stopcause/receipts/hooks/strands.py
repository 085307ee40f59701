"""Strands Agents: where it is listened to.

Two points. `stream_async` of agents, graphs and swarms is the way of every invocation, sync ones too; it is wrapped,
because limits, exceptions, a cancel and a reader who leaves pass through nothing else. The registry that calls an
agent's hooks is listened to after it has called them: an agent's own callbacks and their order stay as they are, and
what is seen is what all of them together decided.

What the framework's words mean is in `strands_causes`; what an invocation says is in `strands_agent` and
`strands_multiagent`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any

from stopcause.receipts import imports
from stopcause.receipts.hooks import strands_agent, strands_multiagent
from stopcause.receipts.hooks.strands_call import Foreign, Waiting, open_call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.strands_call import Call

    Begin = Callable[..., Call | None]
    Undo = Callable[[], None]

_NOTHING: contextlib.nullcontext[None] = contextlib.nullcontext()


def install(hook: Hook) -> Undo:
    """Listens. Graphs and swarms are wrapped when the program imports them."""
    from strands.agent.agent import Agent
    from strands.hooks.registry import HookRegistry

    waiting = Waiting()
    stream = functools.partial(_stream, hook, strands_agent.begin, waiting)
    answer = functools.partial(_structured, hook, waiting)
    undos = [_replace(Agent, "stream_async", stream), _replace(Agent, "structured_output_async", answer)]
    if hook.is_tested:
        undos.append(_replace(HookRegistry, "invoke_callbacks_async", functools.partial(_callbacks, hook)))
        for module, name in (("strands.multiagent.graph", "Graph"), ("strands.multiagent.swarm", "Swarm")):
            _when_there(hook, module, name, waiting, undos)

    def undo() -> None:
        hook.is_on = False  # for what somebody else has wrapped again, and keeps
        for each in reversed(undos):
            each()

    return undo


def _when_there(hook: Hook, module: str, name: str, waiting: Waiting, undos: list[Undo]) -> None:
    def wrap() -> None:
        with hook.guard(name):
            owner = getattr(__import__(module, fromlist=[name]), name)
            undos.append(
                _replace(owner, "stream_async", functools.partial(_stream, hook, strands_multiagent.begin, waiting))
            )

    undos.append(imports.when_imported(module, wrap))


def _replace(owner: type, name: str, wrap: Callable[[Any], Any]) -> Undo:
    original = vars(owner)[name]
    ours = wrap(original)
    setattr(owner, name, ours)

    def undo() -> None:
        if vars(owner).get(name) is ours:
            setattr(owner, name, original)

    return undo


def _stream(hook: Hook, begin: Begin, waiting: Waiting, original: Foreign) -> Foreign:
    """An async generator that behaves as the wrapped one: what its reader sends, throws or closes reaches it.

    What the wrapped one does not name among its parameters is handed to tools, and bounds nothing.
    """
    names = inspect.signature(original).parameters

    @functools.wraps(original)
    async def stream_async(owner: Foreign, /, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:  # noqa: ANN401 - whatever it is called with
        items = original(owner, *args, **kwargs).__aiter__()
        call: Call | None = None
        with hook.guard("begin"):
            call = begin(hook, owner, waiting, args, {name: kwargs[name] for name in kwargs if name in names})
        inside = call or _NOTHING
        step = items.__anext__
        while True:
            try:
                with inside:
                    item = await step()
            except StopAsyncIteration:
                _ended(call, "ended")
                return
            except BaseException as error:
                _ended(call, "failed", error)
                raise
            if call is not None:
                with hook.guard("item"):
                    call.item(item)
            try:
                sent = yield item
            except GeneratorExit:
                try:
                    with inside:
                        await items.aclose()
                finally:
                    _ended(call, "left")
                raise
            except BaseException as error:  # noqa: BLE001 - it is the wrapped one's to answer
                step = functools.partial(items.athrow, error)
            else:
                step = items.__anext__ if sent is None else functools.partial(items.asend, sent)

    return stream_async


def _structured(hook: Hook, waiting: Waiting, original: Foreign) -> Foreign:
    """`structured_output_async`, deprecated: it goes to the model directly."""

    @functools.wraps(original)
    async def structured_output_async(agent: Foreign, /, *args: Any, **kwargs: Any) -> Foreign:  # noqa: ANN401 - whatever it is called with
        call: strands_agent.AgentCall | None = None
        with hook.guard("begin"):
            call = strands_agent.begin(hook, agent, waiting, (), {})
        try:
            with call or _NOTHING:
                output = await original(agent, *args, **kwargs)
        except BaseException as error:
            _ended(call, "failed", error)
            raise
        _ended(call, "structured", output)
        return output

    return structured_output_async


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


def _ended(call: Foreign, how: str, *what: object) -> None:
    if call is not None:
        with call.hook.ending(how, call.run):
            getattr(call, how)(*what)
