"""Several agents: in sequence, in parallel, in a loop, handed over to, as tools, as nodes of a workflow."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.workflow import Workflow, node
from google.adk.workflow._retry_config import RetryConfig

from tests.frameworks.google_adk.models import Desk, Turn, agent, call, failing, say
from tests.frameworks.google_adk.paths_ends import BROKEN, FILTERED, GUARDED, UNPROVEN, answer, content
from tests.frameworks.google_adk.paths_faults import TOOL
from tests.frameworks.harness import Path_, Scripted

LIMITED = ("BOUNDED_STOP", "step_limit")


def shell(kind: type, *agents: Any, name: str = "crew", **more: Any) -> Any:
    """An agent that only runs others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return kind(name=name, sub_agents=list(agents), **more)


def running(made: Callable[[], Any], *, raises: bool = False, **how: Any) -> Callable[[], Any]:
    """A run of what is made."""

    async def run() -> None:
        desk = Desk(made())
        await (failing(desk.run(**how)) if raises else desk.run(**how))

    return run


def _sequence() -> Any:
    return shell(SequentialAgent, agent(call(), say(), name="reader"), agent(say(), name="writer"))


def _sequence_ends_filtered() -> Any:
    blocked = agent(Turn(finish="SAFETY", code="SAFETY"), name="writer")
    return shell(SequentialAgent, agent(say(), name="reader"), blocked)


def _sequence_begins_filtered() -> Any:
    blocked = agent(Turn(finish="SAFETY", code="SAFETY"), name="reader")
    return shell(SequentialAgent, blocked, agent(say(), name="writer"))


def _sequence_skips() -> Any:
    skipped = agent(say(), name="writer", before_agent_callback=lambda **_: content())
    return shell(SequentialAgent, agent(say(), name="reader"), skipped)


def _parallel(*turns: Turn) -> Any:
    return shell(ParallelAgent, agent(say(pause=0.05), name="left"), agent(*turns, name="right"))


def _answered_beside(*turns: Turn, after: float = 0.0) -> Any:
    """Two agents at once: a callback answers in the place of one's model while the other is at work, or later."""

    async def answers(**_: Any) -> Any:
        await asyncio.sleep(after)
        return answer()

    right = agent(name="right", before_model_callback=answers)
    return shell(ParallelAgent, agent(*turns, name="left"), right)


def _answered_then_merged() -> Any:
    return shell(SequentialAgent, _answered_beside(say()), agent(say(), name="writer"), name="line")


def _handed_over_and_answered() -> Any:
    specialist = agent(say(), name="specialist", before_agent_callback=lambda **_: content())
    return agent(call("transfer_to_agent", agent_name="specialist"), sub_agents=[specialist])


def _loop(*turns: Turn, most: int | None = 2) -> Any:
    return shell(LoopAgent, agent(*turns, name="critic", tools=[exit_loop]), name="loop", max_iterations=most)


def _loop_skipped() -> Any:
    critic = agent(say(), name="critic")
    loop = shell(LoopAgent, critic, name="loop", max_iterations=2, before_agent_callback=lambda **_: content())
    return shell(SequentialAgent, agent(say(), name="reader"), loop)


def _loop_in_sequence(*, is_last: bool) -> Any:
    last = [] if is_last else [agent(say(), name="writer")]
    return shell(SequentialAgent, agent(say(), name="reader"), _loop(say(), say()), *last)


def _transfer() -> Any:
    specialist = agent(call(), say(), name="specialist")
    return agent(call("transfer_to_agent", agent_name="specialist"), sub_agents=[specialist])


def _as_tool(*turns: Turn) -> Any:
    return agent(call("expert", request="canary-7f3a"), say(), tools=[AgentTool(agent(*turns, name="expert"))])


def _runner_in_tool() -> Any:
    async def delegate() -> dict[str, Any]:
        """Runs another agent."""
        await Desk(agent(say(), name="expert")).run()
        return {"done": True}

    return agent(call("delegate"), say(), tools=[delegate])


def _single_turn() -> Any:
    expert = agent(say(), name="expert", mode="single_turn")
    return agent(call("expert", request="canary-7f3a"), say(), sub_agents=[expert])


def _task() -> Any:
    return agent(call("finish_task", result="canary-7f3a"), mode="task")


def _first(node_input: Any) -> str:
    del node_input
    return "canary-7f3a"


def _first_too(node_input: Any) -> str:
    return str(node_input)


def _fails(node_input: Any) -> str:
    del node_input
    raise Scripted("canary-7f3a")


async def _waits_long(node_input: Any) -> str:
    await asyncio.sleep(5)
    return str(node_input)


def _flow(*nodes: Any) -> Any:
    return Workflow(name="flow", edges=[("START", *nodes)])


def _tried_again(*turns: Turn) -> Any:
    """An agent that is a node, and is run again where it raised."""
    writer = agent(*turns, name="writer")
    writer.retry_config = RetryConfig(max_attempts=3, initial_delay=0.01)
    return _flow(writer)


PATHS = [
    Path_("sequence", "Two agents one after the other are one run.", UNPROVEN, running(_sequence)),
    Path_("sequence-ends-filtered", "The last agent's answer was withheld.", FILTERED,
          running(_sequence_ends_filtered)),
    Path_("sequence-begins-filtered", "An agent's answer was withheld; the next went on and finished.", UNPROVEN,
          running(_sequence_begins_filtered)),
    Path_("sequence-skips", "A callback skipped the last agent; what was there stands.", UNPROVEN,
          running(_sequence_skips)),
    Path_("parallel", "Two agents at once are one run.", UNPROVEN, running(lambda: _parallel(say()))),
    Path_("parallel-fails", "One of two agents raised.", BROKEN,
          running(lambda: _parallel(Turn(error=RuntimeError("canary-7f3a"))), raises=True)),
    Path_("parallel-filtered", "One of two agents had its answer withheld; nobody made up for it.", FILTERED,
          running(lambda: _parallel(Turn(finish="SAFETY", code="SAFETY")))),
    Path_("parallel-answered", "A callback answered in the place of one of two, and the other went on after that.",
          GUARDED, running(lambda: _answered_beside(say(pause=0.05)))),
    Path_("parallel-answered-last", "The same, and the other was done before.", GUARDED,
          running(lambda: _answered_beside(say(), after=0.05))),
    Path_("parallel-answered-merged", "The same, and an agent after both made something of it.", UNPROVEN,
          running(_answered_then_merged)),
    Path_("loop-limit", "The loop's iterations are used up, and nobody left it.", LIMITED,
          running(lambda: _loop(say(), say()))),
    Path_("loop-left", "The agent in the loop called the tool that leaves it.", UNPROVEN,
          running(lambda: _loop(say(), call("exit_loop")))),
    Path_("loop-last", "The last of a sequence is a loop whose iterations are used up.", LIMITED,
          running(lambda: _loop_in_sequence(is_last=True))),
    Path_("loop-inside", "After the loop another agent finished.", UNPROVEN,
          running(lambda: _loop_in_sequence(is_last=False))),
    Path_("loop-skipped", "A callback skipped the loop, which was the last: its limit did not fire.", UNPROVEN,
          running(_loop_skipped)),
    Path_("loop-call-limit", "A loop without end of its own; the limit of model calls fired.", LIMITED,
          running(lambda: _loop(say(), say(), say(), most=None), raises=True, config=RunConfig(max_llm_calls=2))),
    Path_("transfer", "An agent handed over to another, which finished: one run.", UNPROVEN, running(_transfer)),
    Path_("transfer-answered", "A callback answered in the place of the agent that was handed over to.", GUARDED,
          running(_handed_over_and_answered)),
    Path_("agent-tool", "An agent is a tool: its run is a child.", UNPROVEN, running(lambda: _as_tool(say()))),
    Path_("agent-tool-child", "The same; the child is judged.", UNPROVEN, running(lambda: _as_tool(say())), judged=1),
    Path_("agent-tool-fails", "An agent that is a tool raised, which ended its parent too.", TOOL,
          running(lambda: _as_tool(Turn(error=RuntimeError("canary-7f3a"))), raises=True)),
    Path_("agent-tool-failed", "The same; the child is judged.", BROKEN,
          running(lambda: _as_tool(Turn(error=RuntimeError("canary-7f3a"))), raises=True), judged=1),
    Path_("agent-tool-filtered", "The answer of an agent that is a tool was withheld; its parent went on.", FILTERED,
          running(lambda: _as_tool(Turn(finish="SAFETY", code="SAFETY"))), judged=1),
    Path_("agent-tool-limit", "An agent that is a tool used up its model calls, which ended its parent too.", TOOL,
          running(lambda: _as_tool(call(), say()), raises=True, config=RunConfig(max_llm_calls=1))),
    Path_("agent-tool-limited", "The same; the child is judged.", LIMITED,
          running(lambda: _as_tool(call(), say()), raises=True, config=RunConfig(max_llm_calls=1)), judged=1),
    Path_("runner-in-tool", "A tool has a runner of its own: a child.", UNPROVEN, running(_runner_in_tool)),
    Path_("single-turn", "A sub-agent for one turn runs inside its parent's run.", UNPROVEN, running(_single_turn)),
    Path_("task", "An agent with a task said that it is done.", UNPROVEN, running(_task)),
    Path_("workflow", "Functions one after the other; no model is called.", UNPROVEN,
          running(lambda: _flow(_first, _first_too))),
    Path_("workflow-agent", "An agent is a node of a workflow.", UNPROVEN,
          running(lambda: _flow(_first, agent(call(), say(), name="writer")))),
    Path_("workflow-filtered", "An agent's answer was withheld; a function after it came to an end.", UNPROVEN,
          running(lambda: _flow(agent(Turn(finish="SAFETY", code="SAFETY"), name="writer"), _first))),
    Path_("workflow-cut-off", "An agent's answer was cut off; a function after it came to an end.", UNPROVEN,
          running(lambda: _flow(agent(say(finish="MAX_TOKENS"), name="writer"), _first))),
    Path_("workflow-answered", "A callback answered in the place of an agent's model; a function went on.", UNPROVEN,
          running(lambda: _flow(agent(name="writer", before_model_callback=lambda **_: answer()), _first))),
    Path_("workflow-tries-again", "A tool raised; the workflow ran its agent again, which finished.", UNPROVEN,
          running(lambda: _tried_again(call("breaks"), call(), say()))),
    Path_("workflow-tries-model-again", "The same where the model raised.", UNPROVEN,
          running(lambda: _tried_again(Turn(error=RuntimeError("canary-7f3a")), say()))),
    Path_("workflow-fails", "A node raised.", ("FAILED", "host_error"), running(lambda: _flow(_fails), raises=True)),
    Path_("workflow-timed-out-later", "A node ran out of time after another was done.", ("BOUNDED_STOP", "time_limit"),
          running(lambda: _flow(_first, node(_waits_long, timeout=0.05)), raises=True)),
    Path_("workflow-timed-out", "A node ran out of time, and nothing had been reached.", ("STUCK", "time_limit"),
          running(lambda: _flow(node(_waits_long, timeout=0.05)), raises=True)),
]  # fmt: skip
