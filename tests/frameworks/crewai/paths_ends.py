"""Ends of crews and agents that nothing broke: they finished, a bound fired, or somebody outside ended them."""

from __future__ import annotations

import asyncio
from typing import Any

from crewai import Agent, Crew, Process
from crewai.lite_agent import LiteAgent
from crewai.tools import tool
from pydantic import BaseModel

import stopcause
from tests.frameworks.crewai.models import Scripted, act, agent, call, crew, failing, say, task
from tests.frameworks.harness import Path_

UNPROVEN = ("FALSE_COMPLETE", "no_contract")
AGAIN = '{"key": "b"}'


class Ticket(BaseModel):
    """What a structured answer is."""

    number: int


# Entry points ---------------------------------------------------------------------------------------------------------


def _natural() -> None:
    crew(call(), say()).kickoff()


async def _native() -> None:
    await crew(call(), say()).akickoff()


async def _in_a_thread() -> None:
    await crew(call(), say()).kickoff_async()


def _for_each() -> None:
    crew(say(), say()).kickoff_for_each([{"topic": "canary-7f3a"}, {"topic": "canary-7f3a"}])


def _replayed() -> None:
    made = crew(say(), say())
    made.kickoff()
    made.replay(str(made.tasks[0].id))


def _streamed() -> None:
    assert list(crew(call(), say(), stream=True).kickoff())


async def _streamed_natively() -> None:
    assert [item async for item in await crew(call(), say(), stream=True).akickoff()]


async def _reader_leaves() -> None:
    stream = await crew(call(), say(pause=0.2), stream=True).akickoff()
    async for _ in stream:
        break
    await stream.aclose()


def _plain_reader_leaves() -> None:
    """Closing a plain stream waits for the thread behind it."""
    stream = crew(call(), say(), stream=True).kickoff()
    next(iter(stream))
    stream.close()


def _alone() -> None:
    agent(call(), say()).kickoff("canary-7f3a: go")


async def _alone_async() -> None:
    await agent(call(), say()).kickoff_async("canary-7f3a: go")


async def _alone_in_a_loop() -> None:
    """What `kickoff` gives inside of an event loop is awaited."""
    made: Any = agent(call(), say()).kickoff("canary-7f3a: go")
    await made


def _lite() -> None:
    turns = [act("look_up", AGAIN), say("Thought: so.\nFinal Answer: Done.")]
    LiteAgent(role="canary-7f3a", goal="x", backstory="x", llm=Scripted(turns), tools=[]).kickoff("Go.")


def _message() -> None:
    agent(say()).message("canary-7f3a: go")


def _in_a_block() -> None:
    with stopcause.run("ticket-agent", thread_id="thread-1"):
        crew(say()).kickoff()


# Shapes of a crew -----------------------------------------------------------------------------------------------------


def _two_tasks(first: Agent, second: Agent, **more: Any) -> Crew:
    return Crew(name="clerks", agents=[first, second], tasks=[task(first, **more), task(second)])


def _parallel_tasks() -> None:
    _two_tasks(agent(say(pause=0.05)), agent(say(pause=0.2)), async_execution=True).kickoff()


def _parallel_tools() -> None:
    both = call()._replace(
        calls=(("look_up", "call-1", "{}"), ("breaks", "call-2", "{}"), ("look_up", "call-3", AGAIN))
    )
    crew(both, say()).kickoff()


def _hierarchical() -> None:
    hand = '{"task": "canary-7f3a", "context": "canary-7f3a", "coworker": "reader"}'
    manager = agent(call("delegate_work_to_coworker", hand), say(), tools=[], role="canary-7f3a chief")
    reader = agent(call(), say(), role="reader")
    Crew(name="clerks", agents=[reader], tasks=[task()], process=Process.hierarchical, manager_agent=manager).kickoff()


async def _side_by_side() -> None:
    one, two = crew(say(pause=0.05), name="one"), crew(say(pause=0.3), name="two")
    await asyncio.gather(one.akickoff(), two.akickoff())


def _crew_in_a_tool() -> None:
    @tool("ask_others")
    def ask_others() -> str:
        """Asks another crew."""
        return str(crew(say(), name="others").kickoff())

    crew(call("ask_others"), say(), of={"tools": [ask_others]}).kickoff()


def _labelled() -> None:
    made = crew(say())
    made.security_config.fingerprint.metadata = {"team": "billing", "note": "canary-7f3a"}
    made.kickoff()


# How it came to its end -----------------------------------------------------------------------------------------------


def _react() -> None:
    turns = [act("look_up"), act("nothing_like_it"), say("Thought: so.\nFinal Answer: Done.")]
    crew(*turns, of={"llm": {"is_calling": False}}).kickoff()


def _structured() -> None:
    crew(say('{"number": 7}'), doing={"output_pydantic": Ticket}).kickoff()


def _refused_once() -> None:
    """The answer that the bound forced was refused by a guardrail; the next one came by itself."""
    passes = iter([False, True])
    doing = {"guardrail": lambda output: (next(passes), output.raw)}
    crew(call(), say("No."), say(), of={"max_iter": 1}, doing=doing).kickoff()


def _max_iter(*turns: Any) -> None:
    agent(*turns, max_iter=2).kickoff("Go.")


def _first_task_cut_short() -> None:
    _two_tasks(agent(call(), say(), max_iter=1), agent(say())).kickoff()


async def _timed_out(*turns: Any) -> None:
    """The host's own timer, inside of the host's own block."""
    with stopcause.run("desk"):
        async with asyncio.timeout(0.15):
            await crew(*turns).akickoff()


async def _quietly(run: Any) -> None:
    try:
        await run
    except (TimeoutError, asyncio.CancelledError):
        return
    raise AssertionError("it was to raise")


async def _cancelled() -> None:
    running = asyncio.create_task(crew(say(pause=0.3)).akickoff())
    await asyncio.sleep(0.1)
    running.cancel()
    await _quietly(running)


async def _thread_goes_on() -> None:
    """Only the coroutine is cancelled; nothing can stop the thread, which finishes its work."""
    running = asyncio.create_task(crew(call(), say(pause=0.2)).kickoff_async())
    await asyncio.sleep(0.1)
    running.cancel()
    await _quietly(running)


def _too_slow(*turns: Any) -> None:
    failing(crew(*turns, of={"max_execution_time": 1}).kickoff)


async def _too_slow_natively() -> None:
    await _quietly(crew(say(pause=1.1), of={"max_execution_time": 1}).akickoff())


PATHS = [
    Path_("natural", "The agent asked for nothing more; nobody looked at the destination.", UNPROVEN, _natural),
    Path_("native-async", "The same by the coroutine that awaits all the way.", UNPROVEN, _native),
    Path_("in-a-thread", "The same by the coroutine that runs the plain one in a thread.", UNPROVEN, _in_a_thread),
    Path_("for-each", "One crew for two inputs is two runs; the second is judged.", UNPROVEN, _for_each, judged=1),
    Path_("replayed", "Tasks of an earlier kickoff are done again: a run of its own.", UNPROVEN, _replayed, judged=1),
    Path_("streamed", "A stream, read to its end.", UNPROVEN, _streamed),
    Path_("streamed-async", "An async stream, read to its end.", UNPROVEN, _streamed_natively),
    Path_(
        "reader-leaves",
        "Whoever read the stream closed it, which cancels the crew.",
        ("BOUNDED_STOP", "caller_abort"),
        _reader_leaves,
    ),
    Path_("plain-reader-leaves", "A plain stream was closed; its crew finished.", UNPROVEN, _plain_reader_leaves),
    Path_("alone", "An agent without a crew: its limit is the run's.", UNPROVEN, _alone),
    Path_("alone-async", "The same by its coroutine.", UNPROVEN, _alone_async),
    Path_(
        "alone-in-a-loop",
        "The plain call inside of an event loop gives a coroutine: one run.",
        UNPROVEN,
        _alone_in_a_loop,
    ),
    Path_("alone-lite", "The older class for an agent alone.", UNPROVEN, _lite),
    Path_("message", "An agent is sent a message, which it answers as a crew of its own.", UNPROVEN, _message),
    Path_("in-a-block", "The crew is the run of the host's own block.", UNPROVEN, _in_a_block),
    Path_(
        "two-tasks",
        "Two tasks of two agents are one run.",
        UNPROVEN,
        lambda: _two_tasks(agent(say()), agent(call(), say())).kickoff(),
    ),
    Path_("parallel-tasks", "Two tasks beside each other are one run.", UNPROVEN, _parallel_tasks),
    Path_("parallel-tools", "Three calls of one turn run beside each other; one fails.", UNPROVEN, _parallel_tools),
    Path_("hierarchical", "A manager hands the task to a coworker, as by a tool.", UNPROVEN, _hierarchical),
    Path_("side-by-side", "Two crews at once are two runs; the second is judged.", UNPROVEN, _side_by_side, judged=1),
    Path_("crew-in-a-tool", "A tool runs another crew: its run is a child.", UNPROVEN, _crew_in_a_tool, judged=1),
    Path_(
        "labelled",
        "Labels are taken from the fingerprint's metadata, by the keys that are allowed.",
        UNPROVEN,
        _labelled,
        options={"label_keys": ["team"]},
    ),
    Path_("react", "A model that calls tools in its text, once one that is not there.", UNPROVEN, _react),
    Path_(
        "quiet-model",
        "A model of the program's own that tells nothing on the event bus.",
        UNPROVEN,
        lambda: crew(call(), say(), of={"llm": {"is_quiet": True}}).kickoff(),
    ),
    Path_("structured", "The answer is data.", UNPROVEN, _structured),
    Path_(
        "structured-alone",
        "The answer of an agent alone is data.",
        UNPROVEN,
        lambda: agent(say('{"number": 7}')).kickoff("Go.", response_format=Ticket),
    ),
    Path_(
        "answer-tool",
        "A tool whose result is the answer ends the work.",
        UNPROVEN,
        lambda: crew(call("answer")).kickoff(),
    ),
    Path_(
        "answer-tool-in-text",
        "The same where the model calls in its text.",
        UNPROVEN,
        lambda: crew(act("answer"), of={"llm": {"is_calling": False}}).kickoff(),
    ),
    Path_(
        "max-iter",
        "As many iterations as allowed: it was told to answer, which looks like an end.",
        ("BOUNDED_STOP", "step_limit"),
        lambda: _max_iter(call(), call("look_up", AGAIN), say()),
    ),
    Path_("max-iter-reached", "Done on the last iteration allowed.", UNPROVEN, lambda: _max_iter(call(), say())),
    Path_(
        "max-iter-in-a-crew",
        "The limit is an agent's for one task; the crew's answer stands on what it had.",
        ("BOUNDED_STOP", "step_limit"),
        lambda: crew(call(), say(), of={"max_iter": 1}).kickoff(),
    ),
    Path_(
        "max-iter-first-task",
        "The first of two tasks was cut short, and the second built on it.",
        ("BOUNDED_STOP", "step_limit"),
        _first_task_cut_short,
    ),
    Path_(
        "max-iter-refused",
        "A guardrail refused the forced answer; the next one came by itself.",
        UNPROVEN,
        _refused_once,
    ),
    Path_(
        "output-cap",
        "The last answer was cut off by the output limit.",
        ("BOUNDED_STOP", "output_cap"),
        lambda: crew(say("It", finish="length")).kickoff(),
    ),
    Path_(
        "content-filter",
        "The provider's filter cut the answer.",
        ("FAILED", "content_filter"),
        lambda: crew(say("It", finish="content_filter")).kickoff(),
    ),
    Path_(
        "refusal", "The model declined.", ("FAILED", "refusal"), lambda: crew(say("No.", finish="refusal")).kickoff()
    ),
    Path_(
        "unknown-finish",
        "A finish reason that nobody knows is no proof of an end.",
        ("UNCERTAIN", "finish_unknown"),
        lambda: crew(say(finish="wobbled")).kickoff(),
    ),
    Path_(
        "cancelled", "Its task was cancelled while the model answered.", ("BOUNDED_STOP", "caller_abort"), _cancelled
    ),
    Path_(
        "thread-goes-on", "The coroutine was cancelled, and the thread behind it finished.", UNPROVEN, _thread_goes_on
    ),
    Path_(
        "timed-out",
        "The host's time limit fired and nothing had been reached.",
        ("STUCK", "time_limit"),
        lambda: _quietly(_timed_out(say(pause=0.3))),
    ),
    Path_(
        "timed-out-with-progress",
        "The host's time limit fired; a tool had answered before.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _quietly(_timed_out(call(), say(pause=0.3))),
    ),
    Path_(
        "max-execution-time",
        "The agent's own time limit fired and nothing had been reached.",
        ("STUCK", "time_limit"),
        lambda: _too_slow(say(pause=1.1)),
    ),
    Path_(
        "max-execution-time-with-progress",
        "The agent's own time limit fired; a tool had answered before.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _too_slow(call(), say(pause=1.1)),
    ),
    Path_("max-execution-time-async", "The same limit, of a coroutine.", ("STUCK", "time_limit"), _too_slow_natively),
]
