"""What a program can do with smolagents, and what it sees of it. `tests/frameworks/test_ways.py` uses it."""

from __future__ import annotations

import contextvars
import inspect
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from smolagents import ActionStep, MultiStepAgent, PlanningStep, ToolCallingAgent, local_python_executor, tool

import stopcause
from stopcause.receipts.hooks.smolagents.agent import AgentCall
from stopcause.receipts.run import Run
from tests.frameworks.harness import Scripted
from tests.frameworks.smolagents.models import Turn, agent, call, code, coder, done, helper, say

POINTS: list[tuple[Any, str]] = [
    (MultiStepAgent, "_run_stream"), (MultiStepAgent, "run"), (MultiStepAgent, "interrupt"),
    (MultiStepAgent, "_generate_planning_step"), (ToolCallingAgent, "execute_tool_call"),
]  # fmt: skip
if hasattr(local_python_executor, "timeout"):
    POINTS.append((local_python_executor, "timeout"))
FAULTS = [
    (Run, "progress"),
    *(
        (AgentCall, name)
        for name in ("item", "describe", "tool_began", "tool_ended", "planning_failed", "interrupted", "cause")
    ),
]
ENDS = [(AgentCall, name) for name in ("cause", "is_first_end", "came_back", "failed", "ended", "left", "read_result")]
_theirs: contextvars.ContextVar[str] = contextvars.ContextVar("theirs", default="nothing")


class Seen:
    """What a program sees: items of streams, calls of its callbacks, results, exceptions."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def callbacks(self) -> dict[type, Callable[..., None]]:
        return {kind: lambda step: self.told.append(type(step).__name__) for kind in (ActionStep, PlanningStep)}

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            frames = [frame.name for frame in traceback.extract_tb(value.__traceback__)]
            before = (type(value.__cause__), type(value.__context__), value.__suppress_context__)
            self.told.append((type(value), frames[-1], before, value.args))
        else:
            said = getattr(value, "state", getattr(value, "error", None)), getattr(value, "step_number", None)
            self.told.append((type(value), repr(said), stopcause.current_run()))

    def agent(self, *turns: Turn, **more: Any) -> ToolCallingAgent:
        return agent(*turns, step_callbacks=self.callbacks(), **more)


def _answers(seen: Seen) -> None:
    made = seen.agent(say("Plan."), call(key="a"), call("breaks", key="b"), say(), done(), planning_interval=9)
    seen.tell(made.run("Go.", return_full_result=True) if _takes_result() else made.run("Go."))
    seen.told.append([type(step).__name__ for step in made.memory.steps])


def _is_limited(seen: Seen) -> None:
    seen.tell(seen.agent(call(key="a"), say(), max_steps=1).run("Go."))


def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the type is compared, with and without
        seen.agent(Turn(error=error)).run("Go.")
    assert raised.value.__cause__ is error
    seen.tell(raised.value)


def _fails_to_plan(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        seen.agent(Turn(error=error), planning_interval=1).run("Go.")
    assert raised.value is error
    seen.tell(error)


def _is_misused(seen: Seen) -> None:
    with pytest.raises(TypeError) as raised:
        agent(done()).run()
    seen.told.append(raised.value.args)


def _is_interrupted(seen: Seen) -> None:
    def interrupts(_: Any, agent: Any) -> None:
        seen.told.append(agent.interrupt())

    with pytest.raises(Exception) as raised:  # noqa: PT011 - as above
        agent(call(key="a"), done(), step_callbacks=[interrupts]).run("Go.")
    seen.tell(raised.value)


def _streams(seen: Seen) -> None:
    for item in seen.agent(call(key="a"), done()).run("Go.", stream=True):
        seen.tell(item)


def _leaves(seen: Seen) -> None:
    """In the middle of a step, which the framework answers by raising."""
    stream = seen.agent(call(key="a"), done()).run("Go.", stream=True)
    seen.tell(next(stream))
    with pytest.raises(RuntimeError) as raised:
        stream.close()
    seen.told.append((type(raised.value), raised.value.args, raised.value.__context__))


def _throws(seen: Seen) -> None:
    stream = seen.agent(call(key="a"), done()).run("Go.", stream=True)
    seen.tell(next(stream))
    seen.tell(stream.throw(Scripted("thrown in")))
    with pytest.raises(Scripted) as raised:
        next(stream)
    seen.told.append((type(raised.value), raised.value.args))


def _writes_code(seen: Seen) -> None:
    """In a thread, where context is what it is without us."""

    @tool
    def looks(key: str) -> str:
        """Looks at the context.

        Args:
            key: what.
        """
        seen.told.append(_theirs.get())
        return key

    token = _theirs.set("set")
    turns = code("x = looks('a')", "x"), code("final_answer(helper(task='b'))")
    seen.tell(coder(*turns, tools=[looks], managed_agents=[helper(done())]).run("Go."))
    _theirs.reset(token)


WAYS = [
    _answers, _is_limited, _fails, _fails_to_plan, _is_misused, _is_interrupted, _streams, _leaves, _throws,
    _writes_code,
]  # fmt: skip
CHEAP = [_answers, _is_interrupted, _leaves, _writes_code]
Way = Callable[[Seen], None]


def _takes_result() -> bool:
    """Whether one run may ask for the full result: not in 1.20."""
    return "return_full_result" in inspect.signature(MultiStepAgent.run).parameters


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    way(seen)
    return seen.told
