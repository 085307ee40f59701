"""Agents: they finish, are cut short, fail, are cancelled, hand over, and run inside each other."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable
from typing import Any

from llama_index.core.agent.workflow import AgentInput, AgentWorkflow, ReActAgent, ToolCall
from workflows import Context

import stopcause
from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.llama_index.models import DIRECT, Turn, agent, call, comes_to, failing, look_up, say
from tests.frameworks.llama_index.models import Scripted as Model

UNPROVEN = ("FALSE_COMPLETE", "no_contract")
ABORTED = ("BOUNDED_STOP", "caller_abort")
LIMITED = ("BOUNDED_STOP", "step_limit")
THOUGHT = 'Thought: I have to look.\nAction: look_up\nAction Input: {"key": "a"}'
ANSWER = "Thought: I can answer without using any more tools.\nAnswer: Done."

Run = Callable[[], Awaitable[Any]]  # a coroutine function


class ServiceDown(Exception):  # noqa: N818 - as a provider calls it
    """What a model's client raises."""


class TooMany(ServiceDown):
    """With the status that a provider sends."""

    status_code = 429


ServiceDown.__module__ = TooMany.__module__ = "openai._exceptions"


def plays(*turns: Turn, run: dict[str, Any] | None = None, **more: Any) -> Run:
    """Runs an agent that plays these turns, and lets go of what it raises."""

    async def played() -> None:
        with contextlib.suppress(Exception):
            await agent(*turns, **more).run(user_msg="canary-7f3a", **(run or {}))

    return played


async def _streamed() -> None:
    handler = agent(call(), say()).run(user_msg="Go.")
    async for _ in handler.stream_events():
        pass
    await handler


async def _reader_leaves() -> None:
    handler = agent(call(), say()).run(user_msg="Go.")
    stream = handler.stream_events()
    await anext(stream)
    await stream.aclose()
    await handler


async def _in_a_block() -> None:
    async with stopcause.run("ticket-agent"):
        await agent(call(), say()).run(user_msg="Go.")


async def _twice() -> None:
    """The same context again: the history goes on, the run is another."""
    made = agent(say(), call(), say())
    context = Context(made)
    await made.run(user_msg="Go.", ctx=context)
    await made.run(user_msg="Go on.", ctx=context)


async def _limit_of_the_context() -> None:
    """A context keeps the first limit that was set in it."""
    made = agent(say(), call(), call(), call(), say())
    context = Context(made)
    await made.run(user_msg="Go.", ctx=context, max_iterations=2)
    await failing(made.run(user_msg="Go on.", ctx=context))


async def _context_in_use() -> None:
    made = agent(say(pause=0.2), say())
    context = Context(made)
    handler = made.run(user_msg="Go.", ctx=context)
    await comes_to(handler, AgentInput)
    with contextlib.suppress(Exception):
        made.run(user_msg="Go on.", ctx=context)
    await handler


async def _side_by_side() -> None:
    pauses = {"one": 0.0, "two": 0.05}
    await asyncio.gather(*(agent(say(pause=pauses[name]), name=name).run(user_msg="Go.") for name in pauses))


async def _nothing_asked() -> None:
    await failing(agent(say()).run())


def _react(*answers: str) -> Run:
    async def run() -> None:
        model = Model([say(text) for text in answers])
        await ReActAgent(name="thinker", llm=model, tools=[look_up]).run(user_msg="Go.")

    return run


def _structured(answer: Callable[[Any], Any]) -> Run:
    async def run() -> None:
        await agent(say(), structured_output_fn=answer).run(user_msg="Go.")

    return run


def _breaks(_: Any) -> Any:
    raise Scripted("canary-7f3a")


# Several --------------------------------------------------------------------------------------------------------------


def _desk(*writers: Turn, **given: Any) -> Run:
    """One agent hands over to another."""

    async def run() -> None:
        hand = call("handoff", "call-9", to_agent="writer", reason="canary-7f3a")
        reader = agent(hand, name="reader", can_handoff_to=["writer"])
        desk = AgentWorkflow(agents=[reader, agent(*writers, name="writer")], root_agent="reader", timeout=None)
        with contextlib.suppress(Exception):
            await desk.run(user_msg="Go.", **given)

    return run


def _with_expert(*turns: Turn) -> Run:
    """A tool runs another agent."""

    async def ask_expert(question: str) -> str:
        """Asks."""
        return str(await agent(*turns, name="expert").run(user_msg=question))

    async def run() -> None:
        made = agent(call("ask_expert", question="canary-7f3a"), say(), tools=[ask_expert])
        await made.run(user_msg="Go.")

    return run


# Cut off --------------------------------------------------------------------------------------------------------------


def _cancelled(how: Callable[[Any, asyncio.Task[Any]], Any], *turns: Turn) -> Run:
    async def run() -> None:
        handler = agent(*turns).run(user_msg="Go.")
        await comes_to(handler, ToolCall if turns[0].calls else AgentInput)

        async def awaits() -> None:
            await handler

        task = asyncio.create_task(awaits())
        await asyncio.sleep(0)
        made = how(handler, task)
        if asyncio.iscoroutine(made):
            await made
        with contextlib.suppress(BaseException):
            await task

    return run


async def _forgotten() -> None:
    """Nobody awaits it, and the program ends."""
    await comes_to(agent(say(pause=5)).run(user_msg="Go."), AgentInput)


def _never_began() -> None:
    """The program ends before the loop comes to it."""

    async def program() -> None:
        agent(say()).run(user_msg="Go.")

    asyncio.run(program())
    gc.collect()


def _timed_out(*turns: Turn, is_block: bool = False) -> Run:
    async def run() -> None:
        async with stopcause.run("ticket-agent") if is_block else contextlib.nullcontext():
            async with asyncio.timeout(0.3):
                await agent(*turns).run(user_msg="Go.")

    async def suppressed() -> None:
        with contextlib.suppress(TimeoutError):
            await run()

    return suppressed


PATHS = [
    Path_("natural", "The model asked for nothing more; nobody looked at the destination.", UNPROVEN, plays(say())),
    Path_("answers", "A tool was called, then the model asked for nothing more.", UNPROVEN, plays(call(), say())),
    Path_("not-streamed", "A model that is asked for whole answers.", UNPROVEN, plays(call(), say(), streaming=False)),
    Path_("streamed", "The events are read to their end.", UNPROVEN, _streamed),
    Path_("reader-leaves", "Whoever read the events closed them; the run goes on without.", UNPROVEN, _reader_leaves),
    Path_("in-a-block", "The host's own block and the agent in it are one run.", UNPROVEN, _in_a_block),
    Path_(
        "parallel-tools",
        "Two tools beside each other.",
        UNPROVEN,
        plays(call()._replace(calls=(("look_up", "call-1", {}), ("pay", "call-2", {}))), say()),
    ),
    Path_("same-context", "A second run in the context of the first; it is judged.", UNPROVEN, _twice, judged=1),
    Path_("side-by-side", "Two agents at once are two runs; the second is judged.", UNPROVEN, _side_by_side, judged=1),
    Path_("empty", "The model said nothing.", ("FALSE_COMPLETE", "empty_output"), plays(say(""))),
    Path_("structured", "The answer was made into data.", UNPROVEN, _structured(lambda _: {"total": 3})),
    Path_(
        "structured-fails",
        "The data could not be made, which the framework only warns of; the answer is text.",
        UNPROVEN,
        _structured(_breaks),
    ),
    Path_(
        "return-direct",
        "A tool whose result is the answer.",
        UNPROVEN,
        plays(call("answer_now"), tools=[DIRECT]),
    ),
    Path_("react", "An agent that writes its calls as text.", UNPROVEN, _react(THOUGHT, ANSWER)),
    Path_(
        "react-unreadable",
        "What the model wrote could not be read; it was asked again.",
        UNPROVEN,
        _react("Thought: canary-7f3a\nAction: look_up\nAction Input: {", ANSWER),
    ),
    # Limits
    Path_(
        "max-iterations",
        "As many iterations as allowed, and the model wanted more.",
        LIMITED,
        plays(call(), call(), call(), run={"max_iterations": 2}),
    ),
    Path_(
        "max-iterations-done",
        "On the last iteration the framework raises even where the model is done.",
        LIMITED,
        plays(call(), say(), run={"max_iterations": 2}),
    ),
    Path_(
        "max-iterations-below",
        "Done one iteration before the limit.",
        UNPROVEN,
        plays(call(), say(), run={"max_iterations": 3}),
    ),
    Path_(
        "max-iterations-of-context",
        "A context keeps its first limit, which a later run does not name.",
        LIMITED,
        _limit_of_the_context,
        judged=1,
    ),
    Path_(
        "early-stopping",
        "At the limit the model was asked for a last answer: that looks like an end and is none.",
        LIMITED,
        plays(call(), call(), say(), run={"max_iterations": 2, "early_stopping_method": "generate"}),
    ),
    Path_(
        "early-stopping-of-agent",
        "The same, as the agent was made.",
        LIMITED,
        plays(call(), call(), say(), run={"max_iterations": 2}, early_stopping_method="generate"),
    ),
    Path_("output-cap", "The model's answer was cut off.", ("BOUNDED_STOP", "output_cap"), plays(say(finish="length"))),
    Path_(
        "content-filter",
        "The provider's filter cut the answer.",
        ("FAILED", "content_filter"),
        plays(say(finish="content_filter")),
    ),
    Path_("refusal", "The model declined.", ("FAILED", "refusal"), plays(say(finish="refusal"))),
    Path_(
        "unknown-finish",
        "A finish reason that nobody knows is no proof of an end.",
        ("UNCERTAIN", "finish_unknown"),
        plays(say(finish="pondering")),
    ),
    Path_(
        "own-timeout",
        "The agent's own time limit, with nothing reached.",
        ("STUCK", "time_limit"),
        plays(say(pause=5), timeout=0.1),
    ),
    Path_(
        "own-timeout-with-progress",
        "The agent's own time limit; a tool had answered before.",
        ("BOUNDED_STOP", "time_limit"),
        plays(call(), say(pause=5), timeout=0.4),
    ),
    # Failures
    Path_("tool-fails", "A tool raised; the model was told and went on.", UNPROVEN, plays(call("breaks"), say())),
    Path_(
        "tool-invented",
        "The model called a tool that is not there, and went on.",
        UNPROVEN,
        plays(call("canary7f3a"), say()),
    ),
    Path_(
        "model-fails",
        "The model's client raised, and nothing recovered it.",
        ("FAILED", "model_failure"),
        plays(Turn(error=ServiceDown("canary-7f3a"))),
    ),
    Path_(
        "model-fails-plainly",
        "An error of no provider's class, but it came out of the model.",
        ("FAILED", "model_failure"),
        plays(call(), Turn(error=Scripted("canary-7f3a"))),
    ),
    Path_(
        "model-fails-not-streamed",
        "The same, of a model that is asked for whole answers.",
        ("FAILED", "model_failure"),
        plays(Turn(error=Scripted("canary-7f3a")), streaming=False),
    ),
    Path_(
        "model-rate-limit",
        "The provider's own exception says 429.",
        ("FAILED", "quota"),
        plays(Turn(error=TooMany("canary-7f3a"))),
    ),
    Path_("nothing-asked", "Neither a message nor a history: refused.", ("FAILED", "input_rejected"), _nothing_asked),
    Path_(
        "context-in-use",
        "A context whose run goes on is refused for another.",
        ("FAILED", "input_rejected"),
        _context_in_use,
        judged=1,
    ),
    # Several
    Path_("handoff", "One agent hands over to the other, which finishes.", UNPROVEN, _desk(call(), say())),
    Path_(
        "handoff-limit",
        "The limit counts the iterations of all agents.",
        LIMITED,
        _desk(call(), call(), max_iterations=2),
    ),
    Path_(
        "handoff-early-stopping",
        "At the limit the agent that has the turn was asked for a last answer.",
        LIMITED,
        _desk(call(), say(), max_iterations=2, early_stopping_method="generate"),
    ),
    Path_(
        "handoff-fails",
        "The agent that took over failed at its model.",
        ("FAILED", "model_failure"),
        _desk(Turn(error=Scripted("canary-7f3a"))),
    ),
    Path_("agent-in-tool", "A tool runs another agent: its run is a child.", UNPROVEN, _with_expert(call(), say())),
    Path_(
        "agent-in-tool-fails",
        "The child failed; its parent was told and went on.",
        UNPROVEN,
        _with_expert(Turn(error=Scripted("canary-7f3a"))),
    ),
    Path_(
        "agent-in-tool-failed",
        "The child's model failed: the child is judged.",
        ("FAILED", "model_failure"),
        _with_expert(Turn(error=Scripted("canary-7f3a"))),
        judged=1,
    ),
    # Cut off
    Path_(
        "cancel-run",
        "The program called handler.cancel_run().",
        ABORTED,
        _cancelled(lambda handler, _: handler.cancel_run(), say(pause=5)),
    ),
    Path_(
        "cancel-run-in-tool",
        "The same while a tool ran: one was in flight.",
        ABORTED,
        _cancelled(lambda handler, _: handler.cancel_run(), call("slow")),
    ),
    Path_(
        "task-cancelled",
        "The task that awaits it was cancelled.",
        ABORTED,
        _cancelled(lambda _, task: task.cancel(), say(pause=5)),
    ),
    Path_("forgotten", "Nobody awaits it, and the program ends.", ABORTED, _forgotten),
    Path_("never-began", "The program ends before it has begun.", ABORTED, _never_began),
    Path_("timed-out", "The program's own timer cancelled it.", ABORTED, _timed_out(say(pause=5))),
    Path_(
        "timed-out-in-a-block",
        "The host's time limit fired and nothing had been reached.",
        ("STUCK", "time_limit"),
        _timed_out(say(pause=5), is_block=True),
    ),
    Path_(
        "timed-out-with-progress",
        "The host's time limit fired; a tool had answered before.",
        ("BOUNDED_STOP", "time_limit"),
        _timed_out(call(), say(pause=5), is_block=True),
    ),
]
