"""Paths that stop to wait, and what becomes of them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, TypedDict

from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import stopcause
from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, call, graph, say

_UNROUTED = ("WAITING_UNROUTED", "owner")
_ANSWERED = ("WAITING", "answered")
_DONE = ("FALSE_COMPLETE", "no_contract")
_ROUTED: Mapping[str, Any] = {"route": {"owner": "team:support", "due_s": 1800}}
_GATED = {"look_up": False, "close_ticket": True}


def gated(*answers: Any, keeps: bool = True, **options: Any) -> Any:
    """An agent that may close a ticket when somebody says yes."""
    middleware = [HumanInTheLoopMiddleware(interrupt_on=_GATED, **options)]
    return agent(*answers, middleware=middleware, checkpointer=models.Durable() if keeps else None)


def decided(*decisions: Any) -> Any:
    """The command that brings these decisions."""
    return Command(resume={"decisions": list(decisions)})


def asked() -> None:
    gated(call("close_ticket")).invoke(models.ASK, models.thread())


async def asked_async() -> None:
    stream = gated(call("look_up"), call("close_ticket")).astream(models.ASK, models.thread(), stream_mode="updates")
    assert [item async for item in stream]


def asked_in_memory() -> None:
    middleware = [HumanInTheLoopMiddleware(interrupt_on=_GATED)]
    made = agent(call("close_ticket"), middleware=middleware, checkpointer=InMemorySaver())
    made.invoke(models.ASK, models.thread())


def asked_unkept() -> None:
    gated(call("close_ticket"), keeps=False).invoke(models.ASK)


def asked_and_left() -> None:
    stream = gated(call("close_ticket")).stream(models.ASK, models.thread(), stream_mode="updates")
    for item in stream:
        if "__interrupt__" in item:
            break
    stream.close()


def answered(*decisions: Any, tools: tuple[str, ...] = ("close_ticket",)) -> Any:
    def run() -> None:
        made, config = gated(call(*tools), say()), models.thread()
        made.invoke(models.ASK, config)
        made.invoke(decided(*decisions), config)

    return run


def given_up() -> None:
    made, config = gated(call("close_ticket"), say()), models.thread()
    made.invoke(models.ASK, config)
    made.invoke({"messages": [("user", "Forget it.")]}, config)


def resumed_again() -> None:
    """The node raises after it has its answer, and the graph is run on from there."""
    failures = [Scripted("of a customer")]

    def ask(_state: models.State) -> models.State:
        given = interrupt("Which customer?")
        if failures:
            raise failures.pop()
        return {"done": [given]}

    made, config = graph(models.collect, ask, checkpointer=models.Durable()), models.thread()
    made.invoke({"done": []}, config)
    with contextlib.suppress(Scripted):
        made.invoke(Command(resume="that one"), config)
    made.invoke(None, config)


def resumed_in_a_block() -> None:
    made, config = gated(call("close_ticket"), say()), models.thread()
    made.invoke(models.ASK, config)
    with stopcause.run("desk"):
        made.invoke(decided(_YES), config)


def each_call() -> None:
    made, config = gated(call("close_ticket"), say(), interrupt_mode="per_call"), models.thread()
    made.invoke(models.ASK, config)
    made.invoke(Command(resume={"type": "approve"}), config)


def ask_name(_state: models.State) -> models.State:
    return {"done": [interrupt({"question": "Which customer?", "owner": "team:sales"})]}


def ask_number(_state: models.State) -> models.State:
    return {"done": [interrupt("Which number?")]}


def question() -> None:
    graph(models.collect, ask_name, checkpointer=models.Durable()).invoke({"done": []}, models.thread())


def question_answered() -> None:
    made, config = graph(models.collect, ask_name, checkpointer=models.Durable()), models.thread()
    made.invoke({"done": []}, config)
    made.invoke(Command(resume="the one of yesterday"), config)


def question_in_tool() -> None:
    def ask_customer() -> str:
        """Asks."""
        return str(interrupt("Which customer?"))

    made = agent(call("ask_customer"), say(), tools=[ask_customer], checkpointer=models.Durable())
    config = models.thread()
    made.invoke(models.ASK, config)
    made.invoke(Command(resume="that one"), config)


def question_in_subgraph() -> None:
    inner = graph(models.collect, ask_name, name="inner")

    def ask_inner(state: models.State) -> Any:
        return inner.invoke(state)

    made, config = graph(ask_inner, checkpointer=models.Durable()), models.thread()
    made.invoke({"done": []}, config)
    made.invoke(Command(resume="that one"), config)


async def two_questions() -> None:
    """Two nodes ask side by side; one is answered, and the other asked again."""

    async def ask_a(_state: Any) -> Any:
        return {"first": interrupt("a?")}

    async def ask_b(_state: Any) -> Any:
        return {"second": interrupt("b?")}

    builder = StateGraph(_Two)
    for node in (ask_a, ask_b):
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
    made, config = (
        builder.compile(name="ticket-graph", checkpointer=models.Durable()).with_config(models.LIMIT),
        models.thread(),
    )
    result = await made.ainvoke({}, config)
    first = next(each for each in result["__interrupt__"] if each.value == "a?")
    await made.ainvoke(Command(resume={first.id: "yes"}), config)


class _Two(TypedDict, total=False):
    first: str
    second: str


def breakpoint_before() -> None:
    made = graph(models.collect, models.store, checkpointer=models.Durable(), interrupt_before=["store"])
    made.invoke({"done": []}, models.thread())


async def breakpoint_after() -> None:
    made = graph(models.acollect, models.store, checkpointer=models.Durable())
    await made.ainvoke({"done": []}, models.thread(), interrupt_after=["acollect"])


def breakpoint_inside() -> None:
    inner = graph(models.collect, models.store, name="inner", interrupt_before=["store"])

    def ask_inner(state: models.State) -> Any:
        return inner.invoke(state)

    graph(ask_inner, checkpointer=models.Durable()).invoke({"done": []}, models.thread())


def question_in_task() -> None:
    """The functional way: resumed, with the answer in the same call."""

    @entrypoint(checkpointer=models.Durable())
    def ticket(asked: str) -> str:
        return f"{asked} {interrupt('Which customer?')}"

    config = models.thread() | models.LIMIT
    ticket.invoke("close", config)
    ticket.invoke(Command(resume="that one"), config)


def breakpoint_passed() -> None:
    made = graph(models.collect, models.store, checkpointer=models.Durable(), interrupt_before=["store"])
    config = models.thread()
    made.invoke({"done": []}, config)
    made.invoke(None, config)


def helper_asks() -> None:
    helper = agent(
        call("close_ticket"), say(), middleware=[HumanInTheLoopMiddleware(interrupt_on=_GATED)], name="helper"
    )

    def ask_helper() -> str:
        """Asks another agent."""
        return str(helper.invoke(models.ASK)["messages"][-1].content)

    made, config = agent(call("ask_helper"), say(), tools=[ask_helper], checkpointer=models.Durable()), models.thread()
    made.invoke(models.ASK, config)
    made.invoke(decided({"type": "approve"}), config)


def helper_asks_once() -> None:
    helper = agent(call("close_ticket"), middleware=[HumanInTheLoopMiddleware(interrupt_on=_GATED)], name="helper")

    def ask_helper() -> str:
        """Asks another agent."""
        return str(helper.invoke(models.ASK))

    agent(call("ask_helper"), tools=[ask_helper], checkpointer=models.Durable()).invoke(models.ASK, models.thread())


def asked_in_block() -> None:
    with stopcause.run("nightly"):
        asked()


def resumed_and_failed() -> None:
    made, config = gated(call("close_ticket"), RuntimeError("down")), models.thread()
    made.invoke(models.ASK, config)
    with contextlib.suppress(RuntimeError):
        made.invoke(decided({"type": "approve"}), config)


def swallowed() -> None:
    """A node that catches everything also catches the interrupt: the graph goes on, and nothing waits."""

    def careless(state: models.State) -> models.State:
        with contextlib.suppress(Exception):
            return ask_name(state)
        return {"done": ["careless"]}

    graph(careless, models.store, checkpointer=models.Durable()).invoke({"done": []}, models.thread())


_YES = {"type": "approve"}
_NO = {"type": "reject", "message": "not this customer"}
_EDIT = {"type": "edit", "edited_action": {"name": "close_ticket", "args": {}}}

PATHS = [
    Path_("approval", "It asks for a yes that nobody owns.", _UNROUTED, asked),
    Path_("approval-routed", "The same, and a configured route names who answers until when.",
          ("WAITING", "tool_call"), asked, _ROUTED),
    Path_("approval-async", "Asked in an async stream that was read to its end.", _UNROUTED, asked_async),
    Path_("approval-unkept", "Nothing keeps the paused state: nobody can resume it.",
          ("WAITING_UNROUTED", "resume_token"), asked_unkept, _ROUTED),
    Path_("approval-reader-left", "The reader left once it saw the question: it waits.", ("WAITING", "tool_call"),
          asked_and_left, _ROUTED),
    Path_("approved", "Somebody said yes; another run took it up.", _ANSWERED, answered(_YES)),
    Path_("approved-resumed", "The run that took it up ran the gated call and finished.", _DONE, answered(_YES),
          judged=1),
    Path_("denied", "Somebody said no; another run took it up.", _ANSWERED, answered(_NO)),
    Path_("denied-resumed", "The run that took the no went on and ended by itself.", ("FALSE_COMPLETE", "denied"),
          answered(_NO), judged=1),
    Path_("edited", "A yes with changes: what was changed ran.", _ANSWERED, answered(_EDIT)),
    Path_("approved-in-part", "One question for two calls: a yes and a no.", _ANSWERED,
          answered(_YES, _NO, tools=("close_ticket", "close_ticket"))),
    Path_("approval-in-memory", "Routed, yet only this process keeps the paused state.",
          ("WAITING_UNROUTED", "resume_token"), asked_in_memory, _ROUTED),
    Path_("approval-given-up", "A new question on the thread: nobody can answer the old one any more.",
          ("BOUNDED_STOP", "approval_denied"), given_up),
    Path_("resumed-again", "What took the wait up failed before the gated call; the next run takes it up again.",
          _ANSWERED, resumed_again),
    Path_("resumed-again-last", "The run that came through.", _DONE, resumed_again, judged=2),
    Path_("resumed-in-a-block", "A block of the program's own resumes it: the decision is told all the same.",
          _ANSWERED, resumed_in_a_block),
    Path_("approval-each-call", "A question for each call, as the newer mode asks.", _ANSWERED, each_call),
    Path_("resumed-and-failed", "The gated call ran, then the model failed: the wait is answered all the same.",
          _ANSWERED, resumed_and_failed),
    Path_("question", "It waits for an answer; the owner stands in the question's metadata.",
          ("WAITING_UNROUTED", "deadline"), question, {"approval_keys": {"owner": "owner"}}),
    Path_("question-answered", "Answered and taken up.", _ANSWERED, question_answered),
    Path_("question-in-tool", "A tool asked.", _ANSWERED, question_in_tool),
    Path_("question-in-subgraph", "A graph inside asked; it is the run's own question.", _ANSWERED,
          question_in_subgraph),
    Path_("two-questions", "Two questions, one answer: the run that took it up asks the other again.", _UNROUTED,
          two_questions, judged=1),
    Path_("two-questions-first", "The first run: all that it asked was taken up.", _ANSWERED, two_questions),
    Path_("breakpoint-before", "A breakpoint in front of a node: the result looks like any other.", _UNROUTED,
          breakpoint_before),
    Path_("breakpoint-after", "A breakpoint behind a node, set by the call, awaited.", _UNROUTED, breakpoint_after),
    Path_("breakpoint-inside", "A breakpoint of a graph inside stops the whole run.", _UNROUTED, breakpoint_inside),
    Path_("question-in-task", "Asked and answered in the functional way.", _ANSWERED, question_in_task),
    Path_("breakpoint-passed", "Somebody let it go on.", _ANSWERED, breakpoint_passed),
    Path_("helper-asks", "An agent that a tool called asks: both runs wait, routed.", ("WAITING", "tool_call"),
          helper_asks_once, _ROUTED),
    Path_("helper-answered", "The outer run was taken up.", _ANSWERED, helper_asks),
    Path_("helper-answered-inner", "So was the run of the agent that asked.", _ANSWERED, helper_asks, judged=1),
    Path_("approval-in-block", "The wait is on the receipt of the host's own block.", _UNROUTED, asked_in_block),
    Path_("interrupt-swallowed", "An interrupt that a node caught stopped nothing.", _DONE, swallowed),
]  # fmt: skip
