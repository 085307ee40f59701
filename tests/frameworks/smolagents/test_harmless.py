"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import contextlib
import contextvars
import copy
import importlib
import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from smolagents import ActionStep, MultiStepAgent, PlanningStep, ToolCallingAgent, local_python_executor, tool

import stopcause
from stopcause.receipts import model
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.hooks.smolagents.agent import AgentCall
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.harness import Scripted
from tests.frameworks.sinks import Blocks, Raises, broken
from tests.frameworks.smolagents.models import Turn, agent, call, code, coder, done, helper, look_up, say

POINTS: list[tuple[Any, str]] = [
    (MultiStepAgent, "_run_stream"), (MultiStepAgent, "run"), (MultiStepAgent, "interrupt"),
    (MultiStepAgent, "_generate_planning_step"), (ToolCallingAgent, "execute_tool_call"),
]  # fmt: skip
if hasattr(local_python_executor, "timeout"):
    POINTS.append((local_python_executor, "timeout"))
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
Way = Callable[[Seen], None]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
some_ways = pytest.mark.parametrize(
    "way", [_answers, _is_interrupted, _leaves, _writes_code], ids=lambda way: way.__name__.strip("_")
)


def _takes_result() -> bool:
    """Whether one run may ask for the full result: not in 1.20."""
    return "return_full_result" in inspect.signature(MultiStepAgent.run).parameters


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    way(seen)
    return seen.told


@contextlib.contextmanager
def hooked() -> Iterator[None]:
    """The hook is on for a block."""
    stopcause.instrument("smolagents")
    try:
        yield
    finally:
        stopcause.uninstrument("smolagents")


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    with hooked():
        yield


@ways
def test_all_is_the_same_with_the_hook(way: Way) -> None:
    bare = seen_by(way)
    with hooked(), recorded() as receipts:
        assert seen_by(way) == bare
        assert receipts.receipts or way is _is_misused
    assert seen_by(way) == bare


def test_the_framework_is_given_back_as_it_was() -> None:
    before = [vars(owner)[name] for owner, name in POINTS]
    with hooked():
        during = [vars(owner)[name] for owner, name in POINTS]
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert [vars(owner)[name] for owner, name in POINTS] == before


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.isgeneratorfunction(MultiStepAgent._run_stream)
    assert inspect.isgeneratorfunction(MultiStepAgent._generate_planning_step)
    assert "task" in inspect.signature(MultiStepAgent.run).parameters
    assert MultiStepAgent.run.__qualname__ == "MultiStepAgent.run"


@pytest.mark.usefixtures("hook")
def test_a_stream_that_nobody_reads_is_no_run() -> None:
    with recorded() as receipts:
        agent(done()).run("Go.", stream=True)
        assert receipts.lines == []


@pytest.mark.usefixtures("hook")
def test_what_runs_before_the_first_step_is_no_second_run() -> None:
    with recorded() as receipts:
        made = agent(done(), Turn(error=Scripted("x")))
        made.run("Go.")
        with pytest.raises(Exception, match="x"):
            made.run("Go.")
        assert [stop.stop_cause for stop in receipts.receipts] == ["explicit_done", "model_failure"]


@pytest.mark.usefixtures("hook")
def test_an_agent_of_the_programs_own_class_goes_on_working() -> None:
    class Own(ToolCallingAgent):
        """With a loop around the framework's, and tools called in its own way."""

        def run(self, task: str, *args: Any, **kwargs: Any) -> Any:
            return super().run(task, *args, **kwargs)

        def execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
            return super().execute_tool_call(tool_name, arguments)

    plain = agent(call(key="a"), done())
    made = Own([look_up], plain.model, name="own", verbosity_level=-1)
    with recorded() as receipts:
        made.run("Go.")
        stop = receipts.stopped
    assert (stop.agent, stop.steps, stop.tool_calls) == ("own", 2, 1)
    assert copy.copy(made).name == "own"


@pytest.mark.parametrize("is_first", [True, False], ids=["theirs-first", "ours-first"])
def test_another_instrumentation_of_the_same_functions_goes_on_working(is_first: bool) -> None:
    """As OpenInference's, which are made with wrapt and need their agent."""
    wrapt: Any = importlib.import_module("wrapt")  # comes with OpenTelemetry
    seen: list[str] = []

    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        seen.append(instance.name)
        return wrapped(*args, **kwargs)

    before = {owner: vars(owner)[name] for owner, name in (POINTS[1], POINTS[4])}
    with recorded() as receipts, contextlib.ExitStack() as stack:
        if not is_first:
            stack.enter_context(hooked())
        wrapt.wrap_function_wrapper(MultiStepAgent, "run", wrapper)
        wrapt.wrap_function_wrapper(ToolCallingAgent, "execute_tool_call", wrapper)
        if is_first:
            stack.enter_context(hooked())
        agent(call(key="a"), done()).run("Go.")
        assert receipts.stopped.tool_calls == 1
    MultiStepAgent.run, ToolCallingAgent.execute_tool_call = before.values()
    assert seen == ["clerk"] * 3


@pytest.mark.parametrize("word", ["1", "smolagents"])
@pytest.mark.usefixtures("hook")
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_answers)
        assert receipts.lines == []


@some_ways
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    bare = seen_by(way)
    blocks = Blocks()
    try:
        with hooked():
            for sink in (Raises(), blocks):
                stopcause.configure(sink=sink)
                assert seen_by(way) == bare
    finally:
        blocks.go.set()
        stopcause.configure()


@some_ways
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "progress"), (Hook, "begin"), (Hook, "read"),
        (AgentCall, "item"), (AgentCall, "describe"), (AgentCall, "tool_began"), (AgentCall, "tool_ended"),
        (AgentCall, "planning_failed"), (AgentCall, "interrupted"), (AgentCall, "cause"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
def test_a_fault_of_the_hooks_changes_nothing(
    way: Way, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = seen_by(way)
    with hooked(), recorded(), monkeypatch.context() as patched:
        patched.setattr(owner, name, broken)
        assert seen_by(way) == bare


@pytest.mark.parametrize("broken_one", ["cause", "is_first_end", "came_back", "failed", "ended", "left", "read_result"])
@some_ways
def test_whatever_fails_a_run_that_began_has_an_end(way: Way, broken_one: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    with hooked(), recorded() as receipts, monkeypatch.context() as patched:
        patched.setattr(AgentCall, broken_one, broken)
        assert seen_by(way) == bare
        began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
        assert began == {each.run_id for each in receipts.receipts}


@pytest.mark.usefixtures("hook")
def test_the_context_is_left_as_it_was() -> None:
    with recorded():
        for _ in agent(done()).run("Go.", stream=True):
            assert stopcause.current_run() is None
        assert stopcause.current_run() is None
