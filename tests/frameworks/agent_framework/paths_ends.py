"""Answers: at once and as a stream, of agents with and without the framework's layers, and how the model finished."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import ContextProvider, Message, RawAgent, agent_middleware
from pydantic import BaseModel

import stopcause
from tests.frameworks.agent_framework.models import Looping, Plain, Scripted, Turn, agent, call, middleware, read, say
from tests.frameworks.harness import Path_

UNPROVEN = ("FALSE_COMPLETE", "no_contract")
TWO_CALLS = Turn(calls=(("look_up", "call-1", {}), ("breaks", "call-2", {})))


class Total(BaseModel):
    """A structured answer."""

    total: int


async def _streams(*turns: Turn) -> None:
    await read(agent(*turns).run("Go.", stream=True))


async def _final() -> None:
    """Nobody reads the stream; only what it comes to is asked for."""
    await agent(call(), say()).run("Go.", stream=True).get_final_response()


async def _mapped() -> None:
    """The program makes another stream of it, and reads that one."""
    stream = agent(call(), say()).run("Go.", stream=True)
    await read(stream.map(lambda update: update.text, finalizer="".join))


async def _awaited_first() -> None:
    stream = await agent(call(), say()).run("Go.", stream=True)
    await read(stream)
    await stream.get_final_response()


async def _in_a_block() -> None:
    async with stopcause.run("desk"):
        await agent(call(), say()).run("Go.")


async def _beside() -> None:
    await asyncio.gather(agent(say(), name="first").run("Go."), agent(say(pause=0.02), name="second").run("Go."))


async def _nested(*turns: Turn) -> None:
    helper = agent(*turns, name="helper", tools=[])
    await agent(call("helper", task="canary-7f3a"), say(), tools=[helper.as_tool(name="helper")]).run("Go.")


async def _raw(client: Any, *turns: Turn) -> None:
    made = agent(*turns, client=client)
    await RawAgent(made.client, name="clerk", tools=made.default_options["tools"]).run("Go.")


async def _asks_twice() -> None:
    """A middleware that lets the agent try again, with bounds for each try."""

    async def twice(_: Any, call_next: Any) -> None:
        await call_next()
        await call_next()

    turns = (call(), say(), call(), say())
    await agent(*turns, limits={"max_iterations": 2}, middleware=[middleware(agent_middleware, twice)]).run("Go.")


class Remembers(ContextProvider):
    """Has the agent's own client make a note after the run."""

    async def after_run(self, *, agent: Any, **_: Any) -> None:
        await agent.client.get_response([Message("user", ["canary-7f3a"])])


def _noted(client: Any, **more: Any) -> Any:
    turns = (say(), say("It", stop="length"))
    return agent(*turns, client=client, context_providers=[Remembers("notes")]).run("Go.", **more)


PATHS = [
    Path_(
        "client-beside",
        "A context provider asks the same client for something else.",
        UNPROVEN,
        lambda: _noted(Scripted),
    ),
    Path_("client-beside-streamed", "The same after a stream.", UNPROVEN, lambda: read(_noted(Scripted, stream=True))),
    Path_("client-beside-plain", "The same with a client without layers.", UNPROVEN, lambda: _noted(Plain)),
    Path_("answers", "A tool, then an answer.", UNPROVEN, lambda: agent(call(), say()).run("Go.")),
    Path_("answers-streamed", "The same as a stream.", UNPROVEN, lambda: _streams(call(), say())),
    Path_("final-response", "Only what the stream comes to is asked for.", UNPROVEN, _final),
    Path_("stream-mapped", "The program reads a stream that it made of the agent's.", UNPROVEN, _mapped),
    Path_("stream-awaited", "The work before the first update is awaited by itself.", UNPROVEN, _awaited_first),
    Path_("in-a-block", "The host's own block and the agent's run are one.", UNPROVEN, _in_a_block),
    Path_("beside", "Two agents at once.", UNPROVEN, _beside, judged=1),
    Path_("nested", "An agent is a tool of another; the outer one finished.", UNPROVEN, lambda: _nested(say())),
    Path_("nested-inner", "The inner one finished too.", UNPROVEN, lambda: _nested(say()), judged=1),
    Path_(
        "parallel-tools",
        "Two calls in one turn, one of which failed.",
        UNPROVEN,
        lambda: agent(TWO_CALLS, say()).run("Go."),
    ),
    Path_(
        "unknown-tool",
        "The model made up a tool; it was told, and answered without.",
        UNPROVEN,
        lambda: agent(call("canary-7f3a"), say()).run("Go."),
    ),
    Path_("no-tools", "An agent without tools.", UNPROVEN, lambda: agent(say(), tools=[]).run("Go.")),
    Path_("no-name", "An agent without a name.", UNPROVEN, lambda: agent(say(), name=None).run("Go.")),
    Path_("raw-agent", "The agent class without layers.", UNPROVEN, lambda: _raw(Looping, call(), say())),
    Path_(
        "client-of-its-own",
        "A client with the loop alone.",
        UNPROVEN,
        lambda: agent(call(), say(), client=Looping).run("Go."),
    ),
    Path_(
        "client-without-loop",
        "A client that runs no tools came back with a call that nobody answered.",
        ("UNCERTAIN", "pending_tool_calls"),
        lambda: agent(call(), client=Plain).run("Go."),
    ),
    Path_(
        "loop-off",
        "The function loop is turned off, and nobody answered the call.",
        ("UNCERTAIN", "pending_tool_calls"),
        lambda: agent(call(), limits={"enabled": False}).run("Go."),
    ),
    Path_(
        "structured",
        "A structured answer.",
        UNPROVEN,
        lambda: agent(say('{"total": 3}')).run("Go.", options={"response_format": Total}),
    ),
    Path_(
        "labels",
        "The run's own metadata, under a key that is allowed, and the cap on the answer.",
        UNPROVEN,
        lambda: agent(say()).run(
            "Go.", options={"metadata": {"team": "desk", "note": "canary-7f3a"}, "max_tokens": 50}
        ),
        {"label_keys": ["team"]},
    ),
    Path_(
        "empty", "It finished and said nothing.", ("FALSE_COMPLETE", "empty_output"), lambda: agent(say("")).run("Go.")
    ),
    Path_(
        "length",
        "The answer was cut off.",
        ("BOUNDED_STOP", "output_cap"),
        lambda: agent(say("It", stop="length")).run("Go."),
    ),
    Path_(
        "length-streamed",
        "The same in a stream.",
        ("BOUNDED_STOP", "output_cap"),
        lambda: _streams(say("It", stop="length")),
    ),
    Path_(
        "content-filter",
        "The provider's filter cut the answer off.",
        ("FAILED", "content_filter"),
        lambda: agent(say("It", stop="content_filter")).run("Go."),
    ),
    Path_(
        "finish-of-its-own",
        "The provider has a word of its own for how the model finished.",
        ("UNCERTAIN", "finish_unknown"),
        lambda: agent(say(stop="paused")).run("Go."),
    ),
    Path_(
        "asked-twice",
        "A middleware let it try again: the bounds are of each try, and none of them fired.",
        UNPROVEN,
        _asks_twice,
    ),
]
