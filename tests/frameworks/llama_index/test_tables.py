"""The tables of the hook have every word that the framework has, and outside the tested versions only classes count."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from llama_index.core.agent.workflow import base_agent
from workflows import errors, events

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.hooks.llama_index import agent as llama_index_agent
from stopcause.receipts.hooks.llama_index import causes
from stopcause.receipts.testing import recorded
from stopcause.receipts.vocabulary import Finish
from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.models import Turn, agent, failing, say

# About the program, or never seen outside the loop: the common map takes them.
_COMMON = {
    "WorkflowValidationError", "WorkflowConfigurationError", "WorkflowStepDoesNotExistError", "WorkflowDone",
}  # fmt: skip
# Events that end a run, each with the exception or the result that says the same.
_ENDS = {"WorkflowTimedOutEvent", "WorkflowCancelledEvent", "WorkflowFailedEvent", causes.IDLE_RELEASED}


def _made_here(module: object, base: type) -> set[str]:
    kinds = inspect.getmembers(module, inspect.isclass)
    return {name for name, kind in kinds if issubclass(kind, base) and kind.__module__ == module.__name__}  # type: ignore[attr-defined]


def test_every_exception_of_the_framework_was_thought_of() -> None:
    assert _made_here(errors, Exception) <= set(causes.BY_ERROR) | set(causes.REFUSED) | _COMMON


def test_every_event_that_ends_a_run_was_thought_of() -> None:
    assert _made_here(events, events.StopEvent) <= _ENDS | {"StopEvent"}


def test_the_limit_of_iterations_is_the_frameworks() -> None:
    assert base_agent.DEFAULT_MAX_ITERATIONS == llama_index_agent._DEFAULT_MAX


@pytest.mark.parametrize(
    ("raw", "reason", "usage"),
    [
        (None, None, (None, None)),
        ({"stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 2}}, "end_turn", (3, 2)),
        ({"stopReason": "guardrail_intervened", "usage": {"inputTokens": 3}}, "guardrail_intervened", (3, None)),
        ({"candidates": [{"finish_reason": SimpleNamespace(name="SAFETY")}]}, "SAFETY", (None, None)),
        (SimpleNamespace(choices=[SimpleNamespace(finish_reason="stop")], usage=None), "stop", (None, None)),
        ({"choices": []}, None, (None, None)),
        ({"choices": [{"finish_reason": ""}]}, None, (None, None)),
        ({"usage_metadata": {"prompt_token_count": 4, "candidates_token_count": True}}, None, (4, None)),
    ],
)
def test_what_providers_call_it(raw: object, reason: str | None, usage: tuple[int | None, int | None]) -> None:
    assert causes.finish_of(raw) == reason
    assert causes.usage_of(raw) == usage
    assert causes.FINISHES.get((reason or "stop").lower(), Finish.OTHER) is not Finish.OTHER


@pytest.mark.parametrize(
    ("word", "found"), [("stop", []), ("pondering", ["pondering"]), ("of a customer", [None])], ids=str
)
def test_a_finish_reason_that_nobody_knows_is_found(word: str, found: list[str | None]) -> None:
    async def program() -> None:
        await agent(say(finish=word)).run(user_msg="Go.")

    stopcause.instrument("llama_index")
    try:
        with recorded() as receipts:
            asyncio.run(program())
            findings = receipts.stopped.findings or ()
            assert [each.where for each in findings if each.code == "vocabulary_new"] == found
    finally:
        stopcause.uninstrument("llama_index")


@pytest.fixture
def _other_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("llama_index")
    yield
    stopcause.uninstrument("llama_index")


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_the_end_and_exception_classes_are_seen() -> None:
    async def program() -> None:
        await agent(say()).run(user_msg="Go.")
        await failing(flows.OneSlow(timeout=0.05).run())
        await failing(agent(Turn(error=RuntimeError("x"))).run(user_msg="Go."))

    with recorded() as receipts:
        asyncio.run(program())
        stops = receipts.receipts
    assert [stop.stop_cause for stop in stops] == ["unknown", "time_limit", "host_error"]
    assert all("untested_version" in [finding.code for finding in stop.findings or ()] for stop in stops)
    assert all(stop.steps is None for stop in stops)
