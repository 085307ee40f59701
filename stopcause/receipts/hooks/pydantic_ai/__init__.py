"""The hook for Pydantic AI: every run of every `Agent`, through whichever door it came in.

`Agent.iter` is the one place that `run`, `run_sync`, `run_stream`, `run_stream_sync`, `run_stream_events` and `iter`
itself go through, also those of a `WrapperAgent`; a run's setup, its body and its teardown are inside it. A capability
would be the framework's own listening point, and is not used: it sees no failed setup, only `CancelledError` where the
caller gets `RunCancelled` or `RunTimedOut`, not the last check of the cost; there is no list of them for all agents;
and durable engines refuse one that comes with a run. What tools do is seen where calls of all toolsets are executed,
`ToolManager.execute_tool_call`. Seen in 2.0.0 and 2.68.0.

What exceptions, limits and finish reasons mean is in `causes`. Not covered: realtime sessions, and
`pydantic_ai.direct`, which has no agent.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from stopcause.receipts.hooks.pydantic_ai.causes import class_cause
from stopcause.receipts.hooks.pydantic_ai.runs import Call, Watch
from stopcause.receipts.vocabulary import Boundary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from stopcause.receipts.hooks.guard import Hook

Watches = dict[str, Watch]  # by the framework's own run id, while they go on


def install(hook: Hook) -> Callable[[], None]:
    """Watches every run of an agent from here on.

    Returns:
        What gives the framework back as it was.
    """
    from pydantic_ai.agent import Agent
    from pydantic_ai.tool_manager import ToolManager

    watches: Watches = {}
    undo = [_replace(Agent, "iter", _watched_iter(hook, Agent.iter, watches))]
    if hook.is_tested:
        execute = ToolManager.execute_tool_call
        undo.append(_replace(ToolManager, "execute_tool_call", _watched_execute(hook, execute, watches)))

    def uninstall() -> None:
        for give_back in undo:
            give_back()

    return uninstall


def _replace(owner: Any, name: str, ours: Any) -> Callable[[], None]:  # noqa: ANN401 - a class and its method
    theirs = owner.__dict__[name]
    setattr(owner, name, ours)

    def give_back() -> None:
        if owner.__dict__.get(name) is ours:  # else somebody wrapped it after us, and ours has to stay inside
            setattr(owner, name, theirs)

    return give_back


def _watched_iter(hook: Hook, theirs: Any, watches: Watches) -> Any:  # noqa: ANN401 - a method and its like
    @functools.wraps(theirs)
    def iter(self: Any, *args: Any, **options: Any) -> Any:  # noqa: A001, ANN401 - as theirs
        return _Watched(hook, self, functools.partial(theirs, self, *args, **options), options, watches)

    return iter


def _watched_execute(hook: Hook, theirs: Any, watches: Watches) -> Any:  # noqa: ANN401
    @functools.wraps(theirs)
    async def execute_tool_call(self: Any, validated: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        watch: Watch | None = None
        call: Call | None = None
        with hook.guard("tool_began"):
            watch = watches.get(getattr(self.ctx, "run_id", None) or "")
            call = watch.tool_began(validated) if watch else None
        if watch is None or call is None:
            return await theirs(self, validated, *args, **options)
        try:
            result = await theirs(self, validated, *args, **options)
        except BaseException as error:
            with hook.guard("tool_raised"):
                watch.tool_raised(call, error)
            raise
        with hook.guard("tool_returned"):
            watch.tool_returned(call)
        return result

    return execute_tool_call


class _Watched(contextlib.AbstractAsyncContextManager[Any], contextlib.AsyncContextDecorator):
    """The context manager that `Agent.iter` gives, with a run around it. The framework's own is made at once."""

    _watch: Watch | None = None
    _key: str | None = None

    def __init__(
        self,
        hook: Hook,
        agent: Any,  # noqa: ANN401 - `Agent`
        make: Callable[[], Any],
        options: Mapping[str, Any],
        watches: Watches,
    ) -> None:
        self._hook = hook
        self._agent = agent
        self._make = make
        self._theirs = make()
        self._options = options
        self._watches = watches

    async def __aenter__(self) -> Any:  # noqa: ANN401 - `AgentRun`
        with self._hook.guard("begin"):
            self._begin()
        try:
            agent_run = await self._theirs.__aenter__()
        except BaseException as error:
            self._end(error)
            raise
        if self._watch is not None:
            self._start(self._watch, agent_run)
        return agent_run

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:  # noqa: ANN401 - as theirs
        was_over = False
        if error is not None and self._watch is not None:
            with self._hook.guard("exit"):
                was_over = self._watch.has_result()
        try:
            handled = await self._theirs.__aexit__(kind, error, traceback)
        except BaseException as left:
            self._end(None if was_over and left is error else left)
            raise
        self._end(None if was_over or handled else error)
        return handled

    def _recreate_cm(self) -> _Watched:
        """A context manager that is used as a decorator is made anew for each call."""
        return _Watched(self._hook, self._agent, self._make, self._options, self._watches)

    def _begin(self) -> None:
        run = self._hook.begin(self._agent.name)
        if run is not None:
            self._watch = Watch(self._hook, run, self._options)

    def _start(self, watch: Watch, agent_run: Any) -> None:  # noqa: ANN401
        """What cannot be read is not known; the run begins all the same."""
        if self._hook.is_tested:
            with self._hook.guard("describe"):
                self._key = watch.described(agent_run)
                if self._key is not None:
                    self._watches[self._key] = watch
        with self._hook.guard("start"):
            watch.enter()

    def _end(self, error: BaseException | None) -> None:
        watch, self._watch = self._watch, None
        if watch is None:
            return
        with self._hook.guard("leave"):
            self._forget(watch)
            watch.leave()
        with self._hook.ending("end", watch.run):
            watch.run.start()  # a setup that failed did not get so far
            if self._hook.is_tested:
                watch.ended(error)
            else:
                cause = None if error is None else class_cause(error)
                watch.run.end(error, boundary=Boundary.EXCEPTION if error else Boundary.CALL, cause=cause)

    def _forget(self, watch: Watch) -> None:
        if self._watches.get(self._key or "") is watch:  # else another run has been given the same id
            del self._watches[self._key or ""]

    def __del__(self) -> None:
        watch = self._watch
        if watch is not None:
            self._forget(watch)
            with self._hook.ending("abandoned", watch.run):
                watch.abandoned()
