"""Paths that end by themselves: finished, or by what the model's last answer says."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, call, graph, say

_DONE = ("FALSE_COMPLETE", "no_contract")


class Ticket(BaseModel):
    """What the structured answer has to be."""

    number: int


@tool(return_direct=True)
def finish() -> str:
    """Finishes."""
    return "finished"


def invoked() -> None:
    agent(call("look_up"), call("close_ticket"), say()).invoke(models.ASK, {"metadata": {"tenant": "acme"}})


async def awaited() -> None:
    await agent(call("look_up", "close_ticket"), say()).ainvoke(models.ASK)


def streamed() -> None:
    assert list(agent(call("look_up"), say()).stream(models.ASK, models.thread(), stream_mode="updates"))


async def astreamed() -> None:
    mode: Any = ["values", "custom"]
    assert [item async for item in agent(call("look_up"), say()).astream(models.ASK, stream_mode=mode)]


async def events() -> None:
    assert [event async for event in agent(call("look_up"), say()).astream_events(models.ASK, version="v2")]


def direct() -> None:
    agent(call("finish"), tools=[finish]).invoke(models.ASK)


def structured() -> None:
    answer = call("Ticket", number=7)
    agent(answer, response_format=ToolStrategy(Ticket)).invoke(models.ASK)


def ended_with(reason: str | None, content: str = "It is") -> Any:
    return lambda: agent(say(reason, content)).invoke(models.ASK)


def plain() -> None:
    graph(models.collect, models.store).invoke({"done": []})


def kept() -> None:
    graph(models.collect, models.store, checkpointer=models.Durable()).invoke({"done": []}, models.thread())


async def side_by_side() -> None:
    await asyncio.gather(*(graph(models.acollect, name=name).ainvoke({"done": []}) for name in ("first", "second")))


def subgraph() -> None:
    inner = graph(models.collect, models.store, name="inner")

    def ask_inner(state: models.State) -> Any:
        return inner.invoke(state)

    graph(ask_inner).invoke({"done": []})


def agent_in_tool() -> None:
    helper = agent(call("look_up"), say(), name="helper")

    def ask_helper() -> str:
        """Asks another agent."""
        return str(helper.invoke(models.ASK)["messages"][-1].content)

    agent(call("ask_helper"), say(), tools=[ask_helper]).invoke(models.ASK)


async def agent_as_node() -> None:
    helper = agent(say(), name="helper")

    async def ask_helper(_state: models.State) -> models.State:
        await helper.ainvoke(models.ASK)
        return {"done": ["helper"]}

    await graph(ask_helper).ainvoke({"done": []})


def other_run_in_node() -> None:
    def track(_state: models.State) -> models.State:
        with stopcause.run("importer") as run:
            run.step(tool_calls=1)
        return {"done": ["import"]}

    graph(track, models.store).invoke({"done": []})


def in_block() -> None:
    with stopcause.run("nightly", thread_id="night-7"):
        agent(call("look_up"), say()).invoke(models.ASK)


def twice_in_block() -> None:
    with stopcause.run("nightly"):
        agent(say()).invoke(models.ASK)
        agent(call("look_up"), say(), name="second-agent").invoke(models.ASK)


def on_thread_again() -> None:
    made, config = agent(say(), checkpointer=models.Durable()), models.thread()
    made.invoke(models.ASK, config)
    made.invoke(models.ASK, config)


def sent_on() -> None:
    """A node that names the next by a command: a step of the run, no end."""

    def choose(_state: models.State) -> Any:
        return Command(update={"done": ["chosen"]}, goto="store")

    graph(choose, models.store).invoke({"done": []})


def functional() -> None:
    @task
    def look(number: int) -> int:
        return number

    @entrypoint()
    def tickets(numbers: list[int]) -> int:
        return sum(look(number).result() for number in numbers)

    tickets.invoke([1, 2], models.LIMIT)


def routed() -> None:
    model = models.ChatScripted(answers=[call("route")])

    def choose(_state: models.State) -> models.State:
        return {"done": [each["name"] for each in model.invoke("Which way?").tool_calls]}

    graph(choose, models.store).invoke({"done": []})


def unanswered() -> None:
    model = models.ChatScripted(answers=[call("look_up")])
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "model")
    builder.compile(name="ticket-graph").with_config(models.LIMIT).invoke(models.ASK)


def in_chain() -> None:
    (RunnableLambda(lambda asked: {"done": [asked]}) | graph(models.collect)).invoke("Close it.")


def handed_over() -> None:
    """An agent that is a node sends the graph around it on."""

    @tool
    def hand_over(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Hands over to the next node."""
        told = ToolMessage("handed over", tool_call_id=call_id)
        return Command(goto="close", graph=Command.PARENT, update={"messages": [told]})

    builder = StateGraph(MessagesState)
    builder.add_node("triage", agent(call("hand_over"), say(), tools=[hand_over], name="triage-agent"))
    builder.add_node("close", lambda _state: {"messages": [say()]})
    builder.add_edge(START, "triage")
    builder.add_edge("close", END)
    builder.compile(name="ticket-graph").with_config(models.LIMIT).invoke(models.ASK)


PATHS = [
    Path_("functional", "The functional way to write a graph: one superstep, whatever tasks it calls.", _DONE,
          functional),
    Path_("router", "A model whose call only chooses the way; the graph ends by its own edges.", _DONE, routed),
    Path_("calls-unanswered", "The graph ended with a call that nobody answered.",
          ("UNCERTAIN", "pending_tool_calls"), unanswered),
    Path_("in-chain", "A graph inside a chain: the chain is no run.", _DONE, in_chain),
    Path_("handover", "An agent handed over to the next node, and the graph ended by itself.", _DONE, handed_over),
    Path_("handover-agent", "The agent that handed over was done.", _DONE, handed_over, judged=1),
    Path_("natural", "The model asked for nothing more; no contract says what has to be there.", _DONE, invoked,
          {"label_keys": ["tenant"]}),
    Path_("natural-async", "The same, awaited, with two tools side by side.", _DONE, awaited),
    Path_("natural-stream", "A stream that was read to its end.", _DONE, streamed),
    Path_("natural-astream", "An async stream of two modes.", _DONE, astreamed),
    Path_("natural-events", "A stream of events: one run, although it is a stream inside a stream.", _DONE, events),
    Path_("return-direct", "A tool's result is the answer: the model is not asked again.", _DONE, direct),
    Path_("structured-output", "The call of the answer's own schema means done.", _DONE, structured),
    Path_("finish-length", "The model's output limit cut the answer off.", ("BOUNDED_STOP", "output_cap"),
          ended_with("length")),
    Path_("finish-content-filter", "The provider's filter cut the answer off.", ("FAILED", "content_filter"),
          ended_with("content_filter")),
    Path_("finish-refusal", "The model declined; the graph returns as usual.", ("FAILED", "refusal"),
          ended_with("refusal")),
    Path_("finish-other", "A finish reason that nobody knows proves no finish.", ("UNCERTAIN", "finish_unknown"),
          ended_with("because")),
    Path_("finish-absent", "No finish reason came: absent is not unknown.", _DONE, ended_with(None)),
    Path_("empty-output", "It ended, and nothing came out.", ("FALSE_COMPLETE", "empty_output"),
          ended_with("stop", "")),
    Path_("plain-graph", "A graph without any model.", _DONE, plain),
    Path_("plain-graph-kept", "The same with a checkpointer: each node changes durable state.", _DONE, kept),
    Path_("side-by-side", "Two graphs in one task group are two runs.", _DONE, side_by_side),
    Path_("subgraph", "A graph inside a node is a part of the run.", _DONE, subgraph),
    Path_("agent-in-tool", "An agent that a tool calls is a run of its own.", _DONE, agent_in_tool),
    Path_("agent-in-tool-inner", "The inner run has its parent.", _DONE, agent_in_tool, judged=1),
    Path_("agent-as-node", "An agent that a node calls is a run of its own, too.", _DONE, agent_as_node),
    Path_("other-run-in-node", "A run of another kind inside a node has the graph's run as its parent.", _DONE,
          other_run_in_node, judged=1),
    Path_("in-block", "The host's own block and the agent in it leave one receipt.", _DONE, in_block),
    Path_("twice-in-block", "The second agent in a block is a child of the block's run.", _DONE, twice_in_block),
    Path_("thread-again", "A second run of a thread that does not wait resumes nothing.", _DONE, on_thread_again,
          judged=1),
    Path_("goto", "A command from node to node is no end.", _DONE, sent_on),
]  # fmt: skip
