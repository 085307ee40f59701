"""The tables of the hook have every word that the framework has, and outside the tested versions only ends are seen."""

from __future__ import annotations

import asyncio
import inspect
import typing

import pytest
from temporalio import exceptions
from temporalio.client import WorkflowExecutionStatus

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.hooks.temporal.causes import BY_CLASS, BY_CLOSING, BY_STATUS, RETRIES_ENDED, STATUSES_THAT_GO_ON
from stopcause.receipts.hooks.temporal.known import Attempt, Known
from stopcause.receipts.testing import recorded
from tests.frameworks.temporal import workflows as made
from tests.frameworks.temporal.models import one


def test_every_failure_of_the_framework_was_thought_of() -> None:
    kinds = inspect.getmembers(exceptions, inspect.isclass)
    classes = {name for name, kind in kinds if issubclass(kind, exceptions.FailureError)}
    assert classes - {"FailureError"} <= set(BY_CLASS)
    assert set(BY_CLOSING) <= set(BY_CLASS)


def test_every_status_of_an_execution_is_known() -> None:
    names = {each.name for each in WorkflowExecutionStatus}
    assert names <= set(BY_STATUS) | STATUSES_THAT_GO_ON


def test_retries_end_by_states_that_there_are() -> None:
    assert {each.name for each in exceptions.RetryState} >= RETRIES_ENDED


def test_what_was_told_is_told_once() -> None:
    known = Known()
    told = [known.is_news("execution", "progress", number) for number in (1, 2, 1, 2, 3)]
    assert told == [True, True, False, False, True]
    assert known.attempt("default", "execution") == Attempt("execution", 1)
    known.tries("default", "execution", Attempt("first", 3))
    assert known.attempt("default", "execution") == Attempt("first", 3)
    assert known.attempt("elsewhere", "execution") == Attempt("execution", 1)


@pytest.fixture
def _other_version(monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[None]:
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("temporal")
    yield
    stopcause.uninstrument("temporal")


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_the_end_and_exception_classes_are_seen() -> None:
    with recorded() as receipts:
        for run in (one(made.Calls, ["look_up"]), one(made.Calls, ["breaks"]), one(made.Raises, "OutOfStock")):
            asyncio.run(run())
        stops = receipts.receipts
    assert [stop.stop_cause for stop in stops] == ["unknown", "tool_failure", "host_error"]
    assert all("untested_version" in [finding.code for finding in stop.findings or ()] for stop in stops)
    assert all(stop.steps is None for stop in stops)
