"""smolagents: where it is listened to.

`_run_stream` is the loop of every run, streamed or not, also of a managed agent; it is wrapped, because limits,
exceptions, an interruption and a reader who leaves pass through nothing else. `step_callbacks` are no listening point:
they see no end, and one that raises breaks the run. Beside it are wrapped: `run`, for what fails before the loop;
`execute_tool_call` and `_generate_planning_step`, for whose failure it was; and `interrupt`, for when it was asked.

Calls of tools run in threads, and code too (from 1.24 on): their context is carried there by nobody, so what is current
is set in those threads as well, and nothing else.

What the framework's words mean is in `causes`, what a run says in `agent`.
"""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from stopcause.receipts.hooks import wrapping
from stopcause.receipts.hooks.smolagents import agent as smolagents_agent
from stopcause.receipts.hooks.smolagents.agent import AgentCall, open_call
from stopcause.receipts.hooks.wrapping import replace
from stopcause.receipts.run import current

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.wrapping import Undo
    from stopcause.receipts.run import Run

    Calls = WeakValueDictionary[int, AgentCall]  # by the id of the agent: the newest that is open

# The agent whose `run` was called, until its loop begins.
_setting_up: ContextVar[Foreign] = ContextVar("stopcause_smolagents_setting_up", default=None)


def install(hook: Hook) -> Undo:
    """Listens."""
    from smolagents import agents, local_python_executor

    calls: Calls = WeakValueDictionary()
    owner = agents.MultiStepAgent
    undos = [
        replace(owner, "_run_stream", functools.partial(_loop, hook, calls)),
        replace(owner, "run", functools.partial(_set_up, hook)),
    ]
    if hook.is_tested:
        undos += [
            replace(owner, "interrupt", functools.partial(_interrupted, hook, calls)),
            replace(owner, "_generate_planning_step", functools.partial(_planned, hook)),
            replace(agents.ToolCallingAgent, "execute_tool_call", functools.partial(_executed, hook, calls)),
        ]
        if hasattr(local_python_executor, "timeout"):
            undos.append(replace(local_python_executor, "timeout", _carrying))
    return wrapping.undo_all(hook, undos)


def _loop(hook: Hook, calls: Calls, original: Foreign) -> Foreign:
    signature = inspect.signature(original)

    def opened(agent: Foreign, /, *args: Any, **kwargs: Any) -> AgentCall | None:  # noqa: ANN401 - as the wrapped one
        if _setting_up.get() is agent:
            _setting_up.set(None)
        call = smolagents_agent.begin(hook, agent, signature.bind(agent, *args, **kwargs).arguments)
        if call is not None:
            calls[id(agent)] = call
        return call

    return wrapping.watched(hook, original, opened)


def _set_up(hook: Hook, original: Foreign) -> Foreign:
    """`run`. What leaves it before the loop began is a run that failed at once; the rest is the loop's to say."""

    @functools.wraps(original)
    def run(self: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        token = _setting_up.set(self)
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            with hook.guard("set_up"):
                if _setting_up.get() is self and (call := smolagents_agent.begin(hook, self, {})) is not None:
                    wrapping.end(call, "failed", error)
            raise
        finally:
            _setting_up.reset(token)

    return run


def _interrupted(hook: Hook, calls: Calls, original: Foreign) -> Foreign:
    @functools.wraps(original)
    def interrupt(self: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        with hook.guard("interrupt"):
            if (call := calls.get(id(self))) is not None:
                call.interrupted()
        return original(self, *args, **kwargs)

    return interrupt


def _planned(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    def planning(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:  # noqa: ANN401 - as the wrapped one
        try:
            return (yield from original(*args, **kwargs))
        except BaseException as error:
            with hook.guard("planning"):
                if (call := open_call.get()) is not None:
                    call.planning_failed(error)
            raise

    return planning


def _executed(hook: Hook, calls: Calls, original: Foreign) -> Foreign:
    """A call of a tool or of a managed agent, maybe in a thread of its own."""

    @functools.wraps(original)
    def execute_tool_call(self: Foreign, tool_name: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        call = open_call.get()
        if call is None or call.agent is not self:
            call = calls.get(id(self))
        if call is None:
            return original(self, tool_name, *args, **kwargs)
        counts = False
        with hook.guard("tool_began"):
            counts = call.tool_began(tool_name)
        try:
            result = _under(call.run, original, self, tool_name, *args, **kwargs)
        except BaseException as error:
            with hook.guard("tool_ended"):
                call.tool_ended(error, counts=counts)
            raise
        with hook.guard("tool_ended"):
            call.tool_ended(None, counts=counts)
        return result

    return execute_tool_call


def _carrying(original: Foreign) -> Foreign:
    """`timeout`, the decorator that has code executed in a thread: what is current here is current there."""

    @functools.wraps(original)
    def timeout(*args: Any, **kwargs: Any) -> Callable[[Foreign], Foreign]:  # noqa: ANN401 - as the wrapped one
        decorate = original(*args, **kwargs)

        def decorated(function: Foreign) -> Foreign:
            return decorate(functools.wraps(function)(functools.partial(_under, current.get(), function)))

        return decorated

    return timeout


def _under(run: Run | None, function: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
    """Calls a function while a run is current."""
    token = current.set(run)
    try:
        return function(*args, **kwargs)
    finally:
        current.reset(token)
