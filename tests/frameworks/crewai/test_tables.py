"""The tables have every class that the framework raises; outside the tested versions only classes and places count."""

from __future__ import annotations

import asyncio
import inspect
import sys
import typing
from pathlib import Path

import crewai
import pytest

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.hooks.crewai.causes import BY_ERROR, BY_PLACE
from stopcause.receipts.testing import recorded
from tests.frameworks.crewai.flows import Plain, Review, store
from tests.frameworks.crewai.models import Turn, agent, call, crew, failing, say

# Faults of a program's own, of its set-up, or of stores and buses beside the run: the common map is right for them.
_COMMON = {
    "ActionDenied", "AgentRepositoryError", "CircularDependencyError", "DatabaseOperationError", "EmptyStackError",
    "EventPairingError", "ExpressionError", "FlowScriptExecutionDisabledError", "InvalidRefError", "JSONProjectError",
    "JSONProjectValidationError", "OptionalDependencyError", "SkillParseError", "StackDepthExceededError",
    "ToolUsageLimitExceededError", "EmbeddingDimensionMismatchError", "TraceGrantError", "LegacyHookBlocked",
}  # fmt: skip
_ASIDE = ("crewai.rag", "crewai.cli", "crewai.auth", "crewai.a2a", "crewai.telemetry", "crewai.knowledge")


def _loaded() -> list[typing.Any]:
    names = [name for name in sys.modules if name.startswith("crewai.") and not name.startswith(_ASIDE)]
    return [sys.modules[name] for name in names]


def test_every_exception_of_the_framework_was_thought_of() -> None:
    classes = {
        name
        for module in _loaded()
        for name, kind in list(vars(module).items())
        if inspect.isclass(kind) and issubclass(kind, Exception) and kind.__module__ == module.__name__
    }
    assert classes <= set(BY_ERROR) | _COMMON | {"HumanFeedbackPending"}


def test_the_places_are_there() -> None:
    files = Path(crewai.__file__).parent.rglob("*.py")
    source = "".join(file.read_text("utf-8") for file in files if "cli" not in file.parts)
    assert [name for name, _ in BY_PLACE if f"def {name}(" not in source] == []


@pytest.fixture
def _other_version(monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[None]:
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("crewai")
    yield
    stopcause.uninstrument("crewai")


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_the_end_and_exception_classes_are_seen() -> None:
    with recorded() as receipts:
        crew(call(), say()).kickoff()
        asyncio.run(agent(say()).kickoff_async("Go."))
        Plain().kickoff()
        Review(persistence=store()).kickoff()
        failing(crew(*[Turn(error=RuntimeError("x"))] * 3).kickoff)
        failing(crew(say(), doing={"guardrail": lambda _: (False, "x"), "guardrail_max_retries": 0}).kickoff)
        stops = receipts.receipts
    assert [stop.stop_cause for stop in stops] == ["unknown"] * 4 + ["host_error", "guardrail"]
    assert all("untested_version" in [finding.code for finding in stop.findings or ()] for stop in stops)
    assert all(stop.steps is None for stop in stops)
