"""What a program of CrewAI has of its own that the hook must leave alone, and what the hook has to understand."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from crewai import Crew
from crewai.events.event_bus import CrewAIEventsBus
from crewai.flow.flow import Flow

import stopcause
from stopcause.receipts.hooks.crewai import runs as crewai_runs
from stopcause.receipts.testing import recorded
from tests.frameworks.crewai.models import crew, say
from tests.frameworks.sinks import broken


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("crewai")
    yield
    stopcause.uninstrument("crewai")


def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.iscoroutinefunction(Crew.akickoff)
    assert inspect.iscoroutinefunction(Flow.kickoff_async)
    assert not inspect.iscoroutinefunction(Crew.kickoff)
    assert list(inspect.signature(Crew.kickoff).parameters)[:2] == ["self", "inputs"]
    assert list(inspect.signature(CrewAIEventsBus.emit).parameters) == ["self", "source", "event"]


def test_an_agent_is_copied_as_before() -> None:
    made = crew(say(), say())
    with recorded() as receipts:
        made.copy().kickoff()
        made.kickoff()
        assert [each.stop_cause for each in receipts.receipts] == ["natural", "natural"]


def test_a_result_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crewai_runs, "_shape", broken)
    with recorded() as receipts:
        crew(say()).kickoff()
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("unknown", "result_unreadable")
        assert "hook_failed" in [finding.code for finding in receipts.stopped.findings or ()]
