"""The tables of the hook have every word that the framework has, and outside the tested versions only classes count."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from smolagents import AgentError, utils

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.hooks.smolagents.causes import BY_ERROR, finish_of
from stopcause.receipts.testing import recorded
from tests.frameworks.smolagents.models import Turn, agent, call, done, failing, say


def test_every_error_of_the_framework_has_a_cause() -> None:
    classes = {name for name, kind in inspect.getmembers(utils, inspect.isclass) if issubclass(kind, AgentError)}
    assert classes == set(BY_ERROR)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (SimpleNamespace(choices=[SimpleNamespace(finish_reason="stop")]), "stop"),
        ({"choices": [{"finish_reason": "length"}]}, "length"),
        ({"stopReason": "end_turn", "output": {}}, "end_turn"),
        ({"out": "text", "completion_kwargs": {}}, None),
        (SimpleNamespace(choices=[]), None),
        (None, None),
    ],
    ids=["openai", "json", "bedrock", "transformers", "none", "no-raw"],
)
def test_the_finish_reason_of_a_raw_answer(raw: Any, reason: str | None) -> None:
    assert finish_of(raw) == reason


@pytest.fixture
def _other_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("smolagents")
    yield
    stopcause.uninstrument("smolagents")


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_the_end_and_exception_classes_are_seen() -> None:
    with recorded() as receipts:
        agent(call(key="a"), done()).run("Go.")
        failing(lambda: agent(Turn(error=ValueError("x"))).run("Go."))
        failing(lambda: agent(say(), step_callbacks=[_raises]).run("Go."))
        stops = receipts.receipts
    assert [stop.stop_cause for stop in stops] == ["unknown", "model_failure", "host_error"]
    assert all("untested_version" in [finding.code for finding in stop.findings or ()] for stop in stops)
    assert all(stop.steps is None for stop in stops)


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_a_reader_who_leaves_is_seen() -> None:
    with recorded() as receipts:
        stream = agent(call(key="a"), done()).run("Go.", stream=True)
        next(item for item in stream if type(item).__name__ == "ActionStep")
        stream.close()
        assert receipts.stopped.reason_code == "reader_left"


def _raises(_: Any) -> None:
    raise LookupError("x")
