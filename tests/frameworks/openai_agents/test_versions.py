"""On a version that nobody has tested the hook reads exception classes and waits, and says that it does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.testing import recorded
from tests.frameworks.openai_agents.models import agent, calls
from tests.frameworks.openai_agents.paths_approvals import paused
from tests.frameworks.openai_agents.paths_ends import look_up, run


@pytest.fixture(autouse=True)
def untested(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The hook, on a version out of its range."""
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("openai_agents")
    yield
    stopcause.uninstrument("openai_agents")


def test_an_exception_is_told_by_its_class() -> None:
    with recorded() as receipts:
        asyncio.run(run(lambda: agent(calls("look_up"), tools=[look_up]), max_turns=1)())
        stop = receipts.stopped
    assert (stop.stop_cause, stop.steps, stop.limits) == ("step_limit", None, None)
    assert [each.code for each in stop.findings or ()] == ["untested_version"]


def test_a_wait_is_no_end() -> None:
    with recorded() as receipts:
        asyncio.run(paused()())
        assert receipts.stopped.stop_cause == "approval_pending"
