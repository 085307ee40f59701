"""CrewAI: where it is listened to.

The entry points of crews, agents and flows are wrapped: a run begins and ends there, and nothing else sees a
cancellation or the exception itself. What happens in between is taken from three places, each on the thread where it
happens:

- `emit` of the event bus. Its handlers run in threads, in no order, and may be late; and a handler of ours would be one
  of the host's own that `scoped_handlers` takes away.
- the two functions by which an agent asks its model: an answer that `max_iter` forces is told by no event.
- the methods in which a task's answer waits for a person, which no event tells either.

What the framework's words mean is in `causes`; what a run says is in `call`, `runs` and
`turns`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any

from stopcause.receipts.hooks import wrapping
from stopcause.receipts.hooks.crewai import runs
from stopcause.receipts.hooks.crewai.call import Asked, open_call
from stopcause.receipts.hooks.crewai.turns import Feedback, Turn
from stopcause.receipts.hooks.waiting import Waiting
from stopcause.receipts.hooks.wrapping import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stopcause.receipts.hooks.call import Call, Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.wrapping import Undo

    Begin = Callable[..., Call | None]

# Modules of agents' loops, not all in one version, and the names by which they ask a model.
_LOOPS = (
    "crewai.agents.agent_executor",
    "crewai.experimental.agent_executor",
    "crewai.agents.crew_agent_executor",
    "crewai.lite_agent",
)
_ASKS = {"get_llm_response": False, "aget_llm_response": False, "handle_max_iterations_exceeded": True}
_EXECUTORS = ("AgentExecutor", "CrewAgentExecutor")
_FEEDBACKS = ("_handle_human_feedback", "_ahandle_human_feedback")


def install(hook: Hook) -> Undo:
    """Listens."""
    waiting: Waiting[Asked] = Waiting()
    undos = [
        replace(owner, name, functools.partial(_watched, hook, waiting, begin))
        for owner, name, begin in _entry_points()
    ]
    if hook.is_tested:
        from crewai.events.event_bus import CrewAIEventsBus

        undos.append(replace(CrewAIEventsBus, "emit", functools.partial(_emit, hook)))
        undos.extend(_inside(hook))
    return wrapping.undo_all(hook, undos)


def _entry_points() -> Iterator[tuple[Any, str, Begin]]:
    """Those that all others go through: `kickoff_for_each`, say, or `Flow.kickoff`, which runs `kickoff_async`."""
    from crewai.agent.core import Agent
    from crewai.crew import Crew
    from crewai.flow.flow import Flow
    from crewai.lite_agent import LiteAgent

    yield Crew, "kickoff", runs.begin_crew
    yield Crew, "akickoff", runs.begin_crew
    yield Crew, "replay", runs.begin_crew
    yield Agent, "kickoff", runs.begin_agent_plainly
    yield Agent, "kickoff_async", runs.begin_agent
    yield LiteAgent, "kickoff", runs.begin_agent
    yield Flow, "kickoff_async", runs.begin_flow
    yield Flow, "resume_async", runs.resume_flow


def _inside(hook: Hook) -> Iterator[Undo]:
    modules = [sys.modules[name] for name in _LOOPS if name in sys.modules]
    for module in modules:
        for name, is_forced in _ASKS.items():
            if hasattr(module, name):
                yield replace(module, name, functools.partial(_asking, hook, is_forced))
    for executor in {vars(module)[name] for module in modules for name in _EXECUTORS if name in vars(module)}:
        for name in _FEEDBACKS:
            yield replace(executor, name, functools.partial(_feedback, hook))


def _watched(hook: Hook, waiting: Waiting[Asked], begin: Begin, original: Foreign) -> Foreign:
    def opened(owner: Foreign, /, *args: Any, **kwargs: Any) -> Call | None:  # noqa: ANN401 - whatever it is called with
        return begin(hook, waiting, owner, args, kwargs)

    return wrapping.watched(hook, original, opened)


def _emit(hook: Hook, original: Foreign) -> Foreign:
    """The bus's own work comes first, so that an event which it refuses is none here either."""

    @functools.wraps(original)
    def emit(self: Foreign, source: Foreign, event: Foreign) -> Foreign:
        future = original(self, source, event)
        call = open_call.get()
        if call is not None:
            with hook.guard("event"):
                call.event(source, event)
        return future

    return emit


def _asking(hook: Hook, is_forced: bool, original: Foreign) -> Foreign:  # noqa: FBT001 - given by `partial`
    """A function by which an agent asks its model; the executor that asks is among what it is given."""

    def turn(kwargs: dict[str, Any]) -> Turn:
        return Turn(hook, kwargs.get("executor_context"), is_forced=is_forced)

    return _around(original, turn)


def _feedback(hook: Hook, original: Foreign) -> Foreign:
    return _around(original, lambda _: Feedback(hook))


def _around(original: Foreign, block: Callable[[dict[str, Any]], Turn | Feedback]) -> Foreign:
    """The same function, of the same kind, inside of a block of ours, which lets every exception through."""
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def asked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
            with block(kwargs):
                return await original(*args, **kwargs)

    else:

        @functools.wraps(original)
        def asked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
            with block(kwargs):
                return original(*args, **kwargs)

    return asked
