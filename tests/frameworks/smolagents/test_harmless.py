"""What a program of smolagents has of its own that the hook must leave alone."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from smolagents import MultiStepAgent, ToolCallingAgent

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.harness import Scripted
from tests.frameworks.smolagents.models import Turn, agent, call, done, look_up


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

    before = vars(MultiStepAgent)["run"], vars(ToolCallingAgent)["execute_tool_call"]
    with recorded() as receipts, contextlib.ExitStack() as stack:
        if not is_first:
            stack.enter_context(hooked())
        wrapt.wrap_function_wrapper(MultiStepAgent, "run", wrapper)
        wrapt.wrap_function_wrapper(ToolCallingAgent, "execute_tool_call", wrapper)
        if is_first:
            stack.enter_context(hooked())
        agent(call(key="a"), done()).run("Go.")
        assert receipts.stopped.tool_calls == 1
    MultiStepAgent.run, ToolCallingAgent.execute_tool_call = before
    assert seen == ["clerk"] * 3


@pytest.mark.usefixtures("hook")
def test_a_stream_leaves_its_readers_context_as_it_was() -> None:
    with recorded():
        for _ in agent(done()).run("Go.", stream=True):
            assert stopcause.current_run() is None
        assert stopcause.current_run() is None
