"""Bounds of the function loop: the framework takes the tools away, asks once more, and says nothing of it."""

from __future__ import annotations

from typing import Any

import agent_framework
from agent_framework import chat_middleware

from tests.frameworks.agent_framework.models import Looping, Turn, agent, call, failing, middleware, read, say
from tests.frameworks.agent_framework.paths_ends import UNPROVEN
from tests.frameworks.harness import Path_, Scripted

BOUNDED = ("BOUNDED_STOP", "step_limit")
TWO_ROUNDS = (call(), say("Not yet."), call(), say("done"))
FAILING = (call("breaks"), call("breaks", "call-2"), say())


async def _loops(*turns: Turn, rounds: int, limits: Any = None, stream: bool = False) -> None:
    """The framework's own loop around an agent, until it says that it is done."""

    async def should_continue(*, last_result: Any, **_: Any) -> bool:
        return "done" not in last_result.text

    loop = agent_framework.AgentLoopMiddleware(should_continue, max_iterations=rounds)
    made = agent(*(turns or TWO_ROUNDS), limits=limits, middleware=[loop])
    await (read(made.run("Go.", stream=True)) if stream else made.run("Go."))


async def _flips_itself() -> None:
    """A middleware of the host's takes the tools away before the second round, as the framework would."""
    seen: list[Any] = []

    async def flip(context: Any, call_next: Any) -> None:
        seen.append(context)
        if len(seen) > 1:
            context.options = {**context.options, "tool_choice": "none"}
        await call_next()

    await agent(call(), say(), middleware=[middleware(chat_middleware, flip)]).run("Go.")


async def _takes_away(choice: str = "none") -> None:
    """A middleware sets the choice of tools in the very options that the framework goes on with."""

    async def takes(context: Any, call_next: Any) -> None:
        context.options["tool_choice"] = choice
        await call_next()

    made = agent(call(), call(), say(), limits={"max_iterations": 2}, middleware=[middleware(chat_middleware, takes)])
    await made.run("Go.")


async def _nested() -> None:
    inner = agent(call(), call(), say(), name="inner", limits={"max_iterations": 2})
    await agent(call("inner", task="Go."), say(), tools=[inner.as_tool()]).run("Go.")


async def _fails_in_wrapup() -> None:
    await failing(agent(call(), Turn(error=Scripted("canary-7f3a")), limits={"max_iterations": 1}).run("Go."))


def _limited(*turns: Turn, client: Any = None, **limits: Any) -> Any:
    more = {} if client is None else {"client": client}
    return agent(*turns, limits=limits, **more)


PATHS = [
    Path_(
        "iterations",
        "Its round trips were used up; one more without tools made it look finished.",
        BOUNDED,
        lambda: _limited(call(), call(), say(), max_iterations=2).run("Go."),
    ),
    Path_(
        "iterations-streamed",
        "The same as a stream.",
        BOUNDED,
        lambda: read(_limited(call(), call(), say(), max_iterations=2).run("Go.", stream=True)),
    ),
    Path_(
        "iterations-plain",
        "The same with a client that has no layer for middleware.",
        BOUNDED,
        lambda: _limited(call(), call(), say(), client=Looping, max_iterations=2).run("Go."),
    ),
    Path_(
        "iterations-just-enough",
        "It answered on the last round trip that was allowed.",
        UNPROVEN,
        lambda: _limited(call(), say(), max_iterations=2).run("Go."),
    ),
    Path_(
        "iterations-without-tools",
        "The host asked without tools, the model called all the same, and its round trips were used up.",
        BOUNDED,
        lambda: _limited(call(), call(), say(), max_iterations=2).run("Go.", options={"tool_choice": "none"}),
    ),
    Path_(
        "iterations-tools-off-in-place",
        "A middleware took the tools away in the options themselves; the round trips were used up.",
        BOUNDED,
        _takes_away,
    ),
    Path_(
        "iterations-tools-required",
        "A middleware demands a call each time, the last time too.",
        BOUNDED,
        lambda: _takes_away("required"),
    ),
    Path_(
        "inner-iterations",
        "An agent that is a tool has a bound of its own; the outer one finished.",
        UNPROVEN,
        _nested,
    ),
    Path_("inner-iterations-itself", "The one that is a tool.", BOUNDED, _nested, judged=1),
    Path_(
        "iterations-default",
        "Nobody set a bound, and the framework's own of forty was reached.",
        BOUNDED,
        lambda: agent(*[call("look_up", f"call-{number}") for number in range(40)], say()).run("Go."),
    ),
    Path_(
        "iterations-and-no-answer",
        "Without tools the model had nothing to say.",
        BOUNDED,
        lambda: _limited(call(), say(""), max_iterations=1).run("Go."),
    ),
    Path_(
        "iterations-fails",
        "The model failed when it was asked once more.",
        ("FAILED", "model_failure"),
        _fails_in_wrapup,
    ),
    Path_(
        "function-calls",
        "As many calls as are allowed have run.",
        BOUNDED,
        lambda: _limited(call(), call(), say(), max_function_calls=2).run("Go."),
    ),
    Path_(
        "function-calls-in-one-turn",
        "More calls in one turn than are allowed: all of them ran.",
        BOUNDED,
        lambda: _limited(
            Turn(calls=(("look_up", "call-1", {}), ("look_up", "call-2", {}))), say(), max_function_calls=1
        ).run("Go."),
    ),
    Path_(
        "function-calls-streamed",
        "The bound on calls, in a stream.",
        BOUNDED,
        lambda: read(_limited(call(), say(), max_function_calls=1).run("Go.", stream=True)),
    ),
    Path_(
        "duration",
        "The time for the loop was over after a tool had come back.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _limited(call("dawdle"), say(), max_duration_seconds=0.01).run("Go."),
    ),
    Path_(
        "errors-in-a-row",
        "Tools failed as often in a row as is allowed: the answer came without what they were for.",
        ("FAILED", "tool_failure"),
        lambda: _limited(*FAILING, max_consecutive_errors_per_request=2).run("Go."),
    ),
    Path_(
        "errors-in-a-row-streamed",
        "The same as a stream.",
        ("FAILED", "tool_failure"),
        lambda: read(_limited(*FAILING, max_consecutive_errors_per_request=2).run("Go.", stream=True)),
    ),
    Path_(
        "errors-with-a-success-between",
        "As many errors, but not in a row.",
        UNPROVEN,
        lambda: _limited(
            call("breaks"), call(), call("breaks", "call-2"), say(), max_consecutive_errors_per_request=2
        ).run("Go."),
    ),
    Path_(
        "loop",
        "The loop around the agent ran it again, and then it was done.",
        UNPROVEN,
        lambda: _loops(rounds=3),
    ),
    Path_(
        "loop-used-up",
        "The loop around the agent ran it as often as it may, and gave its last answer as if it were done.",
        BOUNDED,
        lambda: _loops(rounds=1),
    ),
    Path_(
        "loop-used-up-streamed",
        "The same as a stream.",
        BOUNDED,
        lambda: _loops(rounds=1, stream=True),
    ),
    Path_(
        "loop-past-a-bound",
        "A bound fired in the first of two rounds; the second ended by itself.",
        UNPROVEN,
        lambda: _loops(call(), say("Not yet."), say("done"), rounds=3, limits={"max_iterations": 1}),
    ),
    Path_(
        "tools-off-by-the-host",
        "The host itself asked without tools: no bound took them away.",
        UNPROVEN,
        lambda: agent(say()).run("Go.", options={"tool_choice": "none"}),
    ),
    Path_(
        "tools-off-by-middleware",
        "A middleware of the host's took the tools away: no bound did.",
        UNPROVEN,
        _flips_itself,
    ),
]
