"""Parts of the hook by themselves: words of providers, answers to interrupts, what is remembered of waits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, Interrupt, interrupt

import stopcause
from stopcause.receipts.hooks.langgraph import waits
from stopcause.receipts.hooks.langgraph.waits import Address, Answer, Asked, Memory, Paused, interrupts_of
from stopcause.receipts.hooks.langgraph.words import ending_of, finish_of
from stopcause.receipts.testing import recorded
from stopcause.receipts.vocabulary import ApprovalKind, Decision, Finish
from tests.frameworks.harness import Scripted
from tests.frameworks.langgraph import models

_TOOLS = frozenset({"pay", "refund"})
_NONE = Answer()


@pytest.mark.parametrize(
    ("raw", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("STOP", Finish.STOP),
        ("FinishReason.MAX_TOKENS", Finish.LENGTH),
        ("SAFETY", Finish.CONTENT_FILTER),
        ("tool_use", Finish.TOOL_CALLS),
        ("pause_turn", Finish.PAUSE),
        ("something new", Finish.OTHER),
    ],
)
def test_finish_reasons_as_integrations_write_them(raw: str, finish: Finish) -> None:
    assert finish_of(raw) is finish


def test_a_state_without_messages_says_nothing() -> None:
    assert ending_of({"done": []}) == ending_of(None) == ending_of({"messages": ["text"]})._replace(shape=None)


def test_names_of_tools_that_there_are_not_stay_out() -> None:
    requests = [{"name": "pay"}, {"name": "invented"}, "no request"]
    asked = waits.asked_in(Interrupt(value={"action_requests": requests}, id="i"), _TOOLS, None)
    assert [(each.approval_id, each.tool) for each in asked] == [("i/1", "pay"), ("i/2", None), ("i/3", None)]


@pytest.mark.parametrize(
    ("resume", "to_a", "to_b"),
    [
        ({"a": {"decisions": [{"type": "approve"}]}}, Answer(Decision.APPROVED, "pay"), _NONE),
        ({"a": {"type": "reject"}}, Answer(Decision.DENIED, "pay"), _NONE),
        ({"a": {"type": "respond"}, "b": "yes"}, Answer(Decision.ANSWERED, "pay"), Answer(Decision.ANSWERED)),
        ({"a": {"type": "edit", "edited_action": {"name": "refund"}}}, Answer(Decision.EDITED, "refund"), _NONE),
        ({"a": {"type": "edit", "edited_action": {"name": "invented"}}}, Answer(Decision.EDITED, "pay"), _NONE),
        ({"a": {"type": "shrug"}}, Answer(None, "pay"), _NONE),
        ({"a": {"decisions": []}}, Answer(None, "pay"), _NONE),
        ("yes", _NONE, _NONE),
    ],
)
def test_answers(resume: object, to_a: Answer, to_b: Answer) -> None:
    paused = Paused("run", (Asked("a", "a", 0, ApprovalKind.TOOL_CALL, "pay"), Asked("b", "b")))
    assert waits.answers_to(paused, resume, _TOOLS) == {"a": to_a, "b": to_b}


def test_one_value_answers_the_only_interrupt() -> None:
    assert waits.answers_to(Paused("run", (Asked("a", "a"),)), "yes", _TOOLS) == {"a": Answer(Decision.ANSWERED)}


@pytest.mark.parametrize(
    ("thread", "token"),
    [("order-7", "order-7/c1"), ("someone@example.org", "c1"), ("the order of yesterday", "c1"), (None, None)],
)
def test_a_resume_token_names_no_person(thread: str | None, token: str | None) -> None:
    assert waits.resume_token(thread, "c1") == token


def test_only_so_many_waits_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "MOST_PAUSED", 2)
    memory = Memory()
    a, b, c = (Address("store", name, "") for name in "abc")
    for place in (a, b, c):
        memory.keep(place, Paused(place.thread, ()))
    assert [memory.take(place) is None for place in (a, b, c)] == [True, False, False]
    assert memory.take(c) is None


def test_one_thread_id_in_two_savers_is_two_threads() -> None:
    """As where two graphs name their threads by the customer."""
    config = {"configurable": {"thread_id": "customer-7"}}
    stopcause.instrument("langgraph")
    with recorded() as receipts:
        graphs = [models.graph(_ask, checkpointer=InMemorySaver(), name=name) for name in ("a", "b")]
        for made in graphs:
            made.invoke({"done": []}, config)
        for made in graphs:
            made.invoke(Command(resume="yes"), config)
    stopcause.uninstrument("langgraph")
    first, second, *resuming = receipts.receipts
    assert [each.resumes_run_id for each in resuming] == [first.run_id, second.run_id]
    assert not [line for line in receipts.lines if b"withdrawn" in line]


def test_a_resume_in_another_process_names_what_it_answers() -> None:
    """There nothing is remembered; the interrupts are in the saved state. Here the hook is made anew instead."""
    config, saver = models.thread(), models.Durable()
    with recorded() as receipts:
        inputs: list[Any] = [{"done": []}, Command(resume="yes"), {"done": []}]
        for given in inputs:
            stopcause.instrument("langgraph")
            models.graph(models.collect, _ask, checkpointer=saver).invoke(given, config)
            stopcause.uninstrument("langgraph")
    waiting, resuming, anew = receipts.receipts
    assert resuming.answers == tuple(each.approval_id for each in waiting.approvals or ())
    assert (resuming.resumes_run_id, anew.answers) == (None, None)


def test_what_was_carried_out_is_not_given_up() -> None:
    """The gated call ran and the next one failed; then the thread goes on with something else."""
    middleware = [HumanInTheLoopMiddleware(interrupt_on={"close_ticket": True})]
    answers = [models.call("close_ticket"), Scripted("of a customer"), models.say()]
    made, config = models.agent(*answers, middleware=middleware, checkpointer=models.Durable()), models.thread()
    stopcause.instrument("langgraph")
    with recorded() as receipts:
        made.invoke(models.ASK, config)
        with contextlib.suppress(Scripted):
            made.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
        made.invoke(models.ASK, config)
    stopcause.uninstrument("langgraph")
    assert [each.stop_cause for each in receipts.receipts] == ["approval_pending", "model_failure", "natural"]
    assert not [line for line in receipts.lines if b"withdrawn" in line]


def test_a_block_in_a_node_has_the_graph_in_it() -> None:
    """What is between two graphs is the parent of the inner one; here the two are one run."""

    def node(_state: models.State) -> models.State:
        with stopcause.run("desk"):
            models.graph(models.collect, name="inner").invoke({"done": []})
        return {}

    stopcause.instrument("langgraph")
    with recorded() as receipts:
        models.graph(node).invoke({"done": []})
    stopcause.uninstrument("langgraph")
    desk, outer = receipts.receipts
    assert (desk.agent, desk.framework, desk.steps) == ("desk", "langgraph", 1)
    assert (desk.parent_run_id, outer.agent) == (outer.run_id, "ticket-graph")


def _ask(_state: models.State) -> models.State:
    return {"done": [interrupt("?")]}


@pytest.mark.parametrize("given", [(), (5,), ("text",), ([None],), ([object()],)])
def test_an_interrupt_of_the_programs_own_making(given: tuple[object, ...]) -> None:
    assert interrupts_of(GraphInterrupt(*given)) == (given[0] if given and isinstance(given[0], list) else [])


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("langgraph")
    yield
    stopcause.uninstrument("langgraph")


@pytest.mark.usefixtures("hook")
def test_a_stream_that_nobody_reads_gives_no_sign_of_life() -> None:
    seen = SimpleNamespace(runs=[])

    def look(_state: models.State) -> models.State:
        seen.runs.append((run := stopcause.current_run(), run.is_driven if run else None))
        return {}

    with recorded(lease_s=0.3) as receipts:
        stream = models.graph(look, models.store).stream({"done": []}, stream_mode="updates")
        next(stream)
        (run, was_driven), *_ = seen.runs
        assert (was_driven, run.is_driven) == (True, False)
        time.sleep(0.4)
        assert not [record for record in receipts.records if record.kind == "run.progress"]
        stream.close()
