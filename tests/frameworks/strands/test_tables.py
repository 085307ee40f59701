"""The tables of the hook have every word that the framework has, and outside the tested versions only classes count."""

from __future__ import annotations

import asyncio
import inspect
import typing

import pytest
from strands import Agent
from strands.types import exceptions
from strands.types.streaming import StopReason

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.hooks.strands.call import Asked
from stopcause.receipts.hooks.strands.causes import BY_ERROR, BY_STOP_REASON, FINISHES
from stopcause.receipts.hooks.waiting import Waiting
from stopcause.receipts.testing import recorded
from tests.frameworks.strands.models import Turn, agent, ask_before, call, failing, say

# Raised where no run is, or for the common map: a program's own failure, and wrappers whose cause counts.
_COMMON = {
    "EventLoopException", "SessionException", "SnapshotException", "StorageError", "AggregateMemoryError",
    "ProviderTokenCountError",
}  # fmt: skip


def test_every_stop_reason_of_the_framework_has_a_cause() -> None:
    known = set(BY_STOP_REASON) | {"max_tokens"}  # which leaves as an exception
    assert set(typing.get_args(StopReason)) <= known


def test_every_word_of_a_model_has_a_finish() -> None:
    loops_own = {reason for reason in BY_STOP_REASON if reason.startswith("limit_")} | {"interrupt", "checkpoint"}
    assert set(typing.get_args(StopReason)) - loops_own <= set(FINISHES)


def test_every_exception_of_the_framework_was_thought_of() -> None:
    classes = {
        name
        for name, kind in inspect.getmembers(exceptions, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == exceptions.__name__
    }
    assert classes <= set(BY_ERROR) | _COMMON


def test_waits_are_forgotten_from_the_oldest_on() -> None:
    waiting: Waiting[Asked] = Waiting(most=2)
    for number in range(3):
        waiting.add("place", f"id-{number}", Asked(run_id=f"run-{number}"))
    assert waiting.of("place", "id-0") is None
    assert waiting.of("place", "id-2") == Asked(run_id="run-2")
    assert waiting.of("elsewhere", "id-2") is None


@pytest.fixture
def _other_version(monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[None]:
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("strands")
    yield
    stopcause.uninstrument("strands")


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_the_end_and_exception_classes_are_seen() -> None:
    with recorded() as receipts:
        agent(call("pay"), hooks=[ask_before("pay")])("Go.")
        failing(lambda: agent(say("It", stop="max_tokens"))("Go."))
        failing(lambda: agent(Turn(error=RuntimeError("x")))("Go."))
        stops = receipts.receipts
    assert [stop.stop_cause for stop in stops] == ["unknown", "output_cap", "host_error"]
    assert all("untested_version" in [finding.code for finding in stop.findings or ()] for stop in stops)
    assert all(stop.steps is None for stop in stops)


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_a_reader_who_leaves_is_seen() -> None:
    async def leaves() -> None:
        stream = agent(say()).stream_async("Go.")
        await anext(stream)
        await stream.aclose()

    with recorded() as receipts:
        asyncio.run(leaves())
        assert receipts.stopped.reason_code == "reader_left"
    assert inspect.isasyncgenfunction(Agent.stream_async)
