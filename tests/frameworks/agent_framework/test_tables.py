"""The tables of the hook have every word that the framework has, and outside the tested versions only classes count."""

from __future__ import annotations

import asyncio
import gc
import inspect
import typing
from time import perf_counter
from typing import Any

import pytest
from agent_framework import FunctionInvocationConfiguration, WorkflowRunState, exceptions
from agent_framework._types import FinishReasonLiteral

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.hooks.agent_framework.budget import Budget, Fired
from stopcause.receipts.hooks.agent_framework.causes import BOUNDS, BY_ERROR, FINISHES, STATES, UNDER_WAY
from stopcause.receipts.testing import recorded
from tests.frameworks.agent_framework.models import Turn, agent, call, failing, read, say
from tests.frameworks.agent_framework.paths_workflows import _asks, _loop

# Bases of others, and what is raised where no run is or by a program's own fault: the common map is asked.
_COMMON = {
    "AgentFrameworkException", "AgentException", "IntegrationException", "IntegrationInitializationError",
    "IntegrationInvalidAuthException", "IntegrationInvalidRequestException", "IntegrationInvalidResponseException",
    "ContentError", "AdditionItemMismatch", "UserInputRequiredException", "MiddlewareException",
    "SettingNotFoundError", "WorkflowException", "WorkflowRunnerException", "WorkflowCheckpointException",
}  # fmt: skip
# Of the configuration, what bounds nothing.
_NO_BOUNDS = {
    "enabled", "terminate_on_unknown_calls", "additional_tools", "include_detailed_errors",
    "allow_concurrent_invocation", "disable_approval_response_binding",
}  # fmt: skip


def test_every_finish_reason_of_the_framework_has_a_word() -> None:
    assert set(typing.get_args(FinishReasonLiteral)) == set(FINISHES)


def test_every_state_of_a_workflow_was_thought_of() -> None:
    assert {state.name for state in WorkflowRunState} == set(STATES) | UNDER_WAY


def test_every_exception_of_the_framework_was_thought_of() -> None:
    classes = {name for name, kind in inspect.getmembers(exceptions, inspect.isclass) if issubclass(kind, Exception)}
    assert classes <= set(BY_ERROR) | _COMMON


def test_every_bound_of_the_loop_was_thought_of() -> None:
    assert set(FunctionInvocationConfiguration.__annotations__) <= set(BOUNDS) | _NO_BOUNDS


def test_what_was_counted_before_an_approval_counts() -> None:
    kept = {"attempt_count": 2, "total_function_calls": 3, "start_time": perf_counter() - 60}
    client_kwargs = {"_function_invocation_budget_state": kept}
    for name, limit in (("max_iterations", 2), ("max_function_calls", 3), ("max_duration_seconds", 50.0)):
        fired = Budget({name: limit}, {}, client_kwargs).asked({"tool_choice": "none"})
        assert isinstance(fired, Fired)
        assert (fired.name, fired.limit) == (name, limit)


@pytest.mark.parametrize("choice", ["none", {"mode": "none"}])
def test_tools_that_the_host_took_away_are_no_bound(choice: Any) -> None:
    budget = Budget({"max_iterations": 0}, {"tool_choice": choice}, None)
    assert budget.asked({"tool_choice": "none"}) is None


@pytest.fixture
def _other_version(monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[None]:
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("agent_framework")
    yield
    stopcause.uninstrument("agent_framework")


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_the_end_and_exception_classes_are_seen() -> None:
    async def program() -> None:
        await agent(call("pay")).run("Go.")
        await read(agent(say()).run("Go.", stream=True))
        await failing(agent(Turn(error=exceptions.ChatClientException("x"))).run("Go."))
        await failing(agent(Turn(error=RuntimeError("x"))).run("Go."))
        await _asks().run("Go.")
        await failing(_loop().run("Go."))

    with recorded() as receipts:
        asyncio.run(program())
        stops = receipts.receipts
    causes = ["unknown", "unknown", "model_failure", "host_error", "unknown", "step_limit"]
    assert [stop.stop_cause for stop in stops] == causes
    assert all("untested_version" in [finding.code for finding in stop.findings or ()] for stop in stops)
    assert all(stop.steps is None for stop in stops)


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_a_reader_who_leaves_is_seen() -> None:
    async def leaves() -> None:
        stream = agent(say()).run("Go.", stream=True)
        await anext(stream)
        del stream
        gc.collect()

    with recorded() as receipts:
        asyncio.run(leaves())
        assert receipts.stopped.reason_code == "reader_left"
