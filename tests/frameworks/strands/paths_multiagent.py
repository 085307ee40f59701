"""Graphs and swarms: runs whose children are the runs of their agents."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from typing import Any

from strands import Agent
from strands.hooks import AfterModelCallEvent
from strands.multiagent import GraphBuilder, Swarm
from strands.multiagent.graph import Graph
from strands.session.file_session_manager import FileSessionManager

from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.strands.models import (
    On,
    Turn,
    agent,
    answers,
    answers_with,
    ask_before,
    call,
    failing,
    say,
    setting,
)
from tests.frameworks.strands.paths_ends import UNPROVEN
from tests.frameworks.strands.paths_faults import ABORTED, ServiceDown
from tests.frameworks.strands.paths_waits import ROUTED


def _graph(*agents: Agent, hooks: tuple[On, ...] = (), **bounds: Any) -> Graph:
    """A line of agents."""
    builder = GraphBuilder()
    names = [each.name for each in agents]
    for each in agents:
        builder.add_node(each, each.name)
    for before, after in itertools.pairwise(names):
        builder.add_edge(before, after)
    builder.set_entry_point(names[0])
    builder.set_graph_id("claims")
    for name, value in bounds.items():
        getattr(builder, f"set_{name}")(value)
    if hooks:
        builder.set_hook_providers(list(hooks))
    return builder.build()


def _two(first: tuple[Turn, ...] = (say(),), second: tuple[Turn, ...] = (say(),)) -> tuple[Agent, Agent]:
    return agent(*first, name="reader"), agent(*second, name="writer")


def _fans_out() -> None:
    builder = GraphBuilder()
    builder.set_graph_id("claims")
    for name in ("start", "left", "right"):  # the framework may take left and right in any order: they look the same
        builder.add_node(agent(say(pause=0.2), name="reader"), name)
    builder.add_edge("start", "left")
    builder.add_edge("start", "right")
    builder.build()("Go.")


def _nested() -> None:
    builder = GraphBuilder()
    builder.set_graph_id("outer")
    builder.add_node(_graph(*_two()), "inner")
    builder.build()("Go.")


def _node_denied() -> None:
    from strands.hooks import BeforeNodeCallEvent  # noqa: PLC0415 - not in 1.16

    failing(lambda: _graph(*_two(), hooks=(setting(BeforeNodeCallEvent, "cancel_node", "canary-7f3a"),))("Go."))


def _node_cancelled() -> None:
    canceller = answers_with(AfterModelCallEvent, lambda event: event.agent.cancel())
    _graph(agent(call(), name="reader", hooks=[canceller]))("Go.")


def _waits(*, is_answered: bool) -> None:
    graph = _graph(agent(call("pay"), say(), name="payer", hooks=[ask_before("pay")]), agent(say(), name="writer"))
    result = graph("Go.")
    if is_answered:
        graph(answers(result))


def _waits_in_session() -> None:
    manager = FileSessionManager("session-1", storage_dir=tempfile.mkdtemp())
    payer = agent(call("pay"), say(), name="payer", hooks=[ask_before("pay")])
    _graph(payer, agent(say(), name="writer"), session_manager=manager)("Go.")


def _swarm_waits() -> None:
    swarm = Swarm([agent(call("pay"), say(), name="payer", hooks=[ask_before("pay")])])
    swarm(answers(swarm("Go.")))


def _node_asks() -> None:
    from strands.hooks import BeforeNodeCallEvent  # noqa: PLC0415 - not in 1.16

    _graph(*_two(), hooks=(answers_with(BeforeNodeCallEvent, lambda event: event.interrupt("sure")),))("Go.")


async def _left() -> None:
    stream = _graph(*_two()).stream_async("Go.")
    async for item in stream:
        if item.get("type") == "multiagent_node_stop":
            break
    await stream.aclose()


async def _cancelled() -> None:
    task = asyncio.create_task(_graph(*_two((say(pause=5),))).invoke_async("Go."))
    await asyncio.sleep(0.4)
    task.cancel()
    await asyncio.wait([task])


def _hand(to: str, call_id: str = "call-1") -> Turn:
    return call("handoff_to_agent", call_id, agent_name=to, message="canary-7f3a")


def _swarm(*agents: Agent, **bounds: Any) -> None:
    Swarm(list(agents), **bounds)("Go.")


def _ping_pong(**bounds: Any) -> None:
    turns = [turn for i in range(6) for turn in (_hand("writer", f"call-{i}"), say())]
    backs = [turn for i in range(6) for turn in (_hand("reader", f"back-{i}"), say())]
    _swarm(agent(*turns, name="reader"), agent(*backs, name="writer"), **bounds)


PATHS = [
    Path_(
        "graph",
        "Two agents one after the other; nobody looked at the destination.",
        UNPROVEN,
        lambda: _graph(*_two())("Go."),
    ),
    Path_("graph-fans-out", "Two at once after one.", UNPROVEN, _fans_out),
    Path_("graph-in-graph", "A graph is a node of another.", UNPROVEN, _nested),
    Path_(
        "graph-node-limit",
        "As many nodes as allowed, and more were due.",
        ("BOUNDED_STOP", "step_limit"),
        lambda: _graph(*_two(), max_node_executions=1)("Go."),
    ),
    Path_(
        "graph-timed-out",
        "Its time was over after a node was done.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _graph(*_two((say(pause=0.8),)), execution_timeout=0.5)("Go."),
    ),
    Path_(
        "graph-node-timed-out",
        "The only node ran out of time with nothing done.",
        ("STUCK", "time_limit"),
        lambda: failing(lambda: _graph(agent(say(pause=5), name="reader"), node_timeout=0.4)("Go.")),
    ),
    Path_(
        "graph-node-fails",
        "A node's model failed, which ends the graph.",
        ("FAILED", "model_failure"),
        lambda: failing(lambda: _graph(*_two((Turn(error=Scripted("canary-7f3a")),)))("Go.")),
    ),
    Path_("graph-node-denied", "A hook refused a node.", ("BOUNDED_STOP", "guardrail"), _node_denied),
    Path_(
        "graph-node-cancelled",
        "A node's agent was cancelled: the graph says failed, without an error.",
        ABORTED,
        _node_cancelled,
    ),
    Path_(
        "graph-waits",
        "A node's agent waits, so the graph does.",
        ("WAITING_UNROUTED", "resume_token"),
        lambda: _waits(is_answered=False),
        ROUTED,
    ),
    Path_(
        "graph-waits-in-session",
        "The graph's session names the paused state.",
        ("WAITING", "tool_call"),
        _waits_in_session,
        ROUTED,
    ),
    Path_(
        "swarm-answered",
        "An agent of a swarm asked; the answer went through the swarm.",
        ("WAITING", "answered"),
        _swarm_waits,
        ROUTED,
    ),
    Path_("swarm-resumed", "The swarm that took the answer up finished.", UNPROVEN, _swarm_waits, ROUTED, judged=2),
    Path_(
        "graph-answered",
        "The answers went through the graph.",
        ("WAITING", "answered"),
        lambda: _waits(is_answered=True),
        ROUTED,
    ),
    Path_(
        "graph-resumed",
        "The graph that took the answer up finished.",
        UNPROVEN,
        lambda: _waits(is_answered=True),
        ROUTED,
        judged=2,
    ),
    Path_("graph-node-asks", "A hook of the graph asks before a node.", ("WAITING_UNROUTED", "owner"), _node_asks),
    Path_("graph-left", "Whoever read the stream closed it.", ABORTED, _left),
    Path_("graph-cancelled", "Its task was cancelled.", ABORTED, _cancelled),
    Path_(
        "swarm",
        "One agent hands over to the other, which finishes.",
        UNPROVEN,
        lambda: _swarm(*_two((_hand("writer"), say()))),
    ),
    Path_(
        "swarm-handoff-limit",
        "As many turns of agents as allowed.",
        ("BOUNDED_STOP", "step_limit"),
        lambda: _ping_pong(max_handoffs=3),
    ),
    Path_(
        "swarm-repeats",
        "Two agents hand over to each other without end: the swarm's own detector fired.",
        ("STUCK", "loop_guard"),
        lambda: _ping_pong(repetitive_handoff_detection_window=4, repetitive_handoff_min_unique_agents=3),
    ),
    Path_(
        "swarm-timed-out",
        "Its time was over after an agent was done.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _swarm(*_two((_hand("writer"), say(pause=0.8))), execution_timeout=0.5),
    ),
    Path_(
        "swarm-node-fails",
        "An agent's model failed; the swarm says failed, without raising.",
        ("FAILED", "model_failure"),
        lambda: _swarm(*_two((Turn(error=ServiceDown("canary-7f3a")),))),
    ),
    Path_(
        "swarm-node-timed-out",
        "An agent ran out of time with nothing done.",
        ("STUCK", "time_limit"),
        lambda: _swarm(agent(say(pause=5), name="reader"), node_timeout=0.4),
    ),
]
