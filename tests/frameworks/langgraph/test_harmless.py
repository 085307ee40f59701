"""What a program of LangGraph has of its own that the hook must leave alone, and what the hook has to understand."""

from __future__ import annotations

import contextvars
import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers import context
from langgraph.graph import START, StateGraph
from langgraph.pregel import Pregel

import stopcause
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.testing import recorded
from tests.frameworks.harness import Scripted
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.doors import DOORS
from tests.frameworks.langgraph.models import graph
from tests.frameworks.langgraph.ways import WAYS, Way, seen_by


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("langgraph")
    yield
    stopcause.uninstrument("langgraph")


ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))


@ways
@pytest.mark.usefixtures("hook")
def test_all_of_it_is_understood(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    with recorded() as receipts:
        seen_by(way)
        assert not any(record.findings for record in receipts.receipts)
    assert not [each for each in caplog.records if "callback" in each.getMessage()]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__.strip("_"))
@pytest.mark.usefixtures("hook")
def test_whatever_text_it_is_made_of(door: Callable[[], None]) -> None:
    with recorded(label_keys=["team"], approval_keys={"owner": "who"}) as receipts:
        door()
        found = {each.code for record in receipts.records for each in record.findings or ()}
    assert not found & {"shape_changed", "hook_failed"}


def test_nothing_of_the_framework_is_replaced() -> None:
    before = (dict(vars(Pregel)), list(context._configure_hooks))
    stopcause.instrument("langgraph")
    assert dict(vars(Pregel)) == before[0]
    assert len(context._configure_hooks) == len(before[1]) + 1
    stopcause.uninstrument("langgraph")
    assert (dict(vars(Pregel)), list(context._configure_hooks)) == before


@pytest.mark.usefixtures("hook")
def test_every_thread_and_context_has_it() -> None:
    def run() -> None:
        contextvars.Context().run(lambda: graph(models.collect).invoke({"done": []}))

    with recorded() as receipts:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert len(receipts.receipts) == 1


@ways
def test_an_untested_version_changes_nothing(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    made = Hook.__init__

    def untested(hook: Hook, *args: Any, **_: Any) -> None:
        made(hook, *args, is_tested=False)

    monkeypatch.setattr(Hook, "__init__", untested)
    stopcause.instrument("langgraph")
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            found = {each.code for record in receipts.receipts for each in record.findings or ()}
            assert found == {"untested_version"}
    finally:
        stopcause.uninstrument("langgraph")


@pytest.mark.usefixtures("hook")
def test_nothing_stays_behind() -> None:
    handler = next(each[0].get() for each in context._configure_hooks if each[0].name == "stopcause_langgraph")
    with recorded():
        for way in WAYS:
            seen_by(way)
    assert handler._to.inside == {}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])  # noqa: S301 - our own bytes
@pytest.mark.usefixtures("hook")
def test_a_configuration_can_be_copied(copied: Callable[[Any], Any]) -> None:
    """As by a node that hands it to another process, or changes a copy of it."""

    def node(_state: models.State, config: RunnableConfig) -> models.State:
        graph(models.collect, name="copied").invoke({"done": []}, {"callbacks": copied(config["callbacks"])})
        return {}

    with recorded() as receipts:
        graph(node).invoke({"done": []})
        assert "ticket-graph" in [each.agent for each in receipts.receipts]
        assert {each.stop_cause for each in receipts.receipts} == {"natural"}


class _Unreadable:
    """A message that raises, in the state of a graph that came back."""

    type = "ai"

    @property
    def tool_calls(self) -> Any:
        raise Scripted("of a customer")


@pytest.mark.usefixtures("hook")
def test_a_result_that_cannot_be_read_is_no_natural_end() -> None:
    with recorded() as receipts:
        builder = StateGraph(dict)
        builder.add_node("node", lambda _: {"messages": [_Unreadable()]})
        builder.add_edge(START, "node")
        assert builder.compile().invoke({"messages": []})
        stopped = receipts.stopped
        assert stopped.stop_cause == "unknown"
        assert "hook_failed" in [each.code for each in stopped.findings or ()]
