"""An agent of each framework, whose only tool does what a test wants; its model calls it, then says that it is done.

All of them are in one process here. The models that play a script are those of the frameworks' own tests.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]
Made = Callable[[Work], Coroutine[Any, Any, None]]


async def nothing() -> None:
    """What the tool of an inner agent does."""


def waits(work: Work) -> str:
    """For tools that are no coroutines: done in a thread of its own, as a program has to where a loop runs already."""
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: context.run(asyncio.run, work()))
    thread.start()
    thread.join()
    return "done"


async def agent_framework(work: Work) -> None:
    """Agent Framework."""
    from agent_framework import tool

    from tests.frameworks.agent_framework.models import agent, call, say

    @tool
    async def step() -> str:
        await work()
        return "done"

    await agent(call("step"), say(), tools=[step]).run("Go.")


async def claude_agent_sdk(work: Work) -> None:
    """The Claude Agent SDK: the real command line, and a tool of the program's own."""
    from claude_agent_sdk import create_sdk_mcp_server, tool

    from tests.frameworks.claude_agent_sdk.models import ask, call, options, say

    @tool("step", "does it", {})
    async def step(_: Any) -> dict[str, Any]:
        await work()
        return {"content": [{"type": "text", "text": "done"}]}

    server = create_sdk_mcp_server("own", tools=[step])
    await ask(options(call("mcp__own__step"), say(), mcp_servers={"own": server}, allowed_tools=["mcp__own__step"]))


async def crewai(work: Work) -> None:
    """CrewAI."""
    from crewai.tools import tool

    from tests.frameworks.crewai.models import call, crew, say

    @tool("step")
    def step() -> str:
        """Does it."""
        return waits(work)

    await crew(call("step"), say(), of={"tools": [step]}).kickoff_async()


async def google_adk(work: Work) -> None:
    """Google ADK."""
    from tests.frameworks.google_adk.models import Desk, agent, call, say

    async def step() -> dict[str, Any]:
        """Does it."""
        await work()
        return {"status": "done"}

    await Desk(agent(call("step"), say(), tools=[step])).run()


async def langgraph(work: Work) -> None:
    """LangChain's agent."""
    from tests.frameworks.langgraph.models import agent, call, say

    async def step() -> str:
        """Does it."""
        await work()
        return "done"

    await agent(call("step"), say(), tools=[step]).ainvoke({"messages": [("user", "Go.")]})


async def llama_index(work: Work) -> None:
    """LlamaIndex."""
    from tests.frameworks.llama_index.models import agent, call, say

    async def step() -> str:
        """Does it."""
        await work()
        return "done"

    await agent(call("step"), say(), tools=[step]).run("Go.")


async def openai_agents(work: Work) -> None:
    """The OpenAI Agents SDK."""
    from agents import RunConfig, Runner, function_tool

    from tests.frameworks.openai_agents.models import agent, calls, says

    @function_tool
    async def step() -> str:
        await work()
        return "done"

    made = agent(calls("step"), says(), tools=[step])
    await Runner.run(made, "Go.", run_config=RunConfig(tracing_disabled=True))


async def pydantic_ai(work: Work) -> None:
    """Pydantic AI."""
    from tests.frameworks.pydantic_ai.agents import agent
    from tests.frameworks.pydantic_ai.models import calls, text

    async def step() -> str:
        await work()
        return "done"

    await agent(calls("step"), text(), tools=[step]).run("Go.")


async def smolagents(work: Work) -> None:
    """smolagents."""
    from smolagents import tool

    from tests.frameworks.smolagents.models import agent, call, done

    @tool
    def step() -> str:
        """Does it."""
        return waits(work)

    await asyncio.to_thread(agent(call("step"), done(), tools=[step]).run, "Go.")


async def strands(work: Work) -> None:
    """Strands."""
    from strands import tool

    from tests.frameworks.strands.models import agent, call, say

    @tool
    async def step() -> str:
        """Does it."""
        await work()
        return "done"

    await agent(call("step"), say(), tools=[step]).invoke_async("Go.")


async def temporal(work: Work) -> None:
    """A workflow of Temporal's with one activity."""
    from temporalio import activity

    from tests.frameworks.temporal.models import place, working
    from tests.frameworks.temporal.workflows import Calls

    @activity.defn(name="look_up")
    async def step(_: str) -> str:
        await work()
        return "done"

    how = place()
    async with working(how["task_queue"], Calls, activities=[step]) as client:
        await client.execute_workflow(Calls.run, args=[["look_up"]], **how)


IN_PROCESS: tuple[Made, ...] = (
    agent_framework, crewai, google_adk, langgraph, llama_index, openai_agents, pydantic_ai, smolagents, strands,
)  # fmt: skip
