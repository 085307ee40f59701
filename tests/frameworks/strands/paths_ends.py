"""Ends of an agent that nobody forced from outside: it finished, a bound fired, a hook or the model said so."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel
from strands import Agent
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeModelCallEvent, BeforeToolCallEvent
from strands.types.exceptions import ContextWindowOverflowException, ModelThrottledException

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.strands.models import Turn, agent, answers_with, call, failing, say, setting

UNPROVEN = ("FALSE_COMPLETE", "no_contract")


class Ticket(BaseModel):
    """What a structured answer is."""

    number: int


def _natural() -> None:
    agent(say())("Close it.")


async def _streamed() -> None:
    async for _ in agent(call(), say()).stream_async("Close it."):
        pass


def _in_a_block() -> None:
    with stopcause.run("ticket-agent", thread_id="thread-1"):
        agent(say())("Close it.")


async def _side_by_side() -> None:
    one, two = agent(say(pause=0.05), name="one"), agent(say(pause=0.4), name="two")
    await asyncio.gather(one.invoke_async("Go."), two.invoke_async("Go."))


async def _reentrant() -> None:
    """One agent that may be called twice at once."""
    made = agent(say(pause=0.05), say(pause=0.4), concurrent_invocation_mode="unsafe_reentrant")
    await asyncio.gather(made.invoke_async("Go."), made.invoke_async("Go."))


async def _duplicate() -> None:
    """The same request twice: the second waits for the first one's result."""
    made = agent(say(pause=0.2))
    await asyncio.gather(*(made.invoke_async("Go.", idempotency_token="once") for _ in range(2)))


def _labelled() -> None:
    agent(say(), trace_attributes={"team": "billing", "note": "canary-7f3a"})("Go.")


def _structured() -> None:
    agent(call("Ticket", number=7))("Go.", structured_output_model=Ticket)


def _structured_forced() -> None:
    agent(say("It is 7."), call("Ticket", number=7))("Go.", structured_output_model=Ticket)


def _structured_never() -> None:
    failing(lambda: agent(say(), say())("Go.", structured_output_model=Ticket))


def _structured_directly() -> None:
    agent(say('{"number": 7}')).structured_output(Ticket, "Go.")


def _goes_on() -> None:
    """A hook gives the finished agent new input, once."""
    inputs = iter(["And now?"])

    def again(event: AfterInvocationEvent) -> None:
        event.resume = next(inputs, None)

    agent(say(), say(), hooks=[answers_with(AfterInvocationEvent, again)])("Go.")


def _limited(turns: int, limits: dict[str, int]) -> Any:
    return agent(*(call("look_up", f"call-{i}") for i in range(turns)), say())("Go.", limits=limits)


def _cut() -> None:
    failing(lambda: agent(say("It", stop="max_tokens"))("Go."))


def _overflow(*turns: Turn) -> Agent:
    return agent(Turn(error=ContextWindowOverflowException("canary-7f3a")), *turns)


def _throttled(*turns: Turn) -> Agent:
    from strands.event_loop._retry import ModelRetryStrategy  # noqa: PLC0415 - not in 1.16

    strategy = ModelRetryStrategy(max_attempts=2, initial_delay=0, max_delay=0)
    return agent(Turn(error=ModelThrottledException("canary-7f3a")), *turns, retry_strategy=strategy)


def _shrinks() -> None:
    """The conversation is long enough that a part of it can be dropped."""
    made = _overflow(say())
    made.messages = [
        {"role": role, "content": [{"text": "canary-7f3a"}]} for _ in range(5) for role in ("user", "assistant")
    ]
    made("Go.")


def _stops(reason: str) -> None:
    agent(say("Well.", stop=reason))("Go.")


def _denied(event: type, name: str, *turns: Turn) -> None:
    agent(*turns, hooks=[setting(event, name, "canary-7f3a")])("Go.")


def _turn_ended_by_hook() -> None:
    from strands.hooks import AfterToolsEvent  # noqa: PLC0415 - not in 1.16

    _denied(AfterToolsEvent, "end_turn", call())


def _hidden_tool() -> None:
    """A hook cancels a call without having asked anybody."""
    _denied(BeforeToolCallEvent, "cancel_tool", call("pay"), say())


def _stop_tool() -> None:
    from strands.vended_tools.stop import stop  # noqa: PLC0415 - not in 1.16

    agent(call("stop", message="canary-7f3a"), tools=[stop])("Go.")


def _intervention() -> None:
    from strands.interventions import Deny, InterventionHandler  # noqa: PLC0415 - not in 1.16

    class Nobody(InterventionHandler):
        name = "nobody"

        def before_invocation(self, _event: Any, **_: Any) -> Deny:
            return Deny(reason="canary-7f3a")

    agent(say(), interventions=[Nobody()])("Go.")


PATHS = [
    Path_("natural", "The model asked for nothing more; nobody looked at the destination.", UNPROVEN, _natural),
    Path_("streamed", "A stream with a tool call, read to its end.", UNPROVEN, _streamed),
    Path_("in-a-block", "The host's own block and the agent in it are one run.", UNPROVEN, _in_a_block),
    Path_("side-by-side", "Two agents at once are two runs; the second is judged.", UNPROVEN, _side_by_side, judged=1),
    Path_("reentrant", "One agent called twice at once is two runs.", UNPROVEN, _reentrant, judged=1),
    Path_("duplicate", "The same request again came back with the first one's result.", UNPROVEN, _duplicate, judged=1),
    Path_(
        "labelled",
        "Labels are taken from the trace attributes, by the keys that are allowed.",
        UNPROVEN,
        _labelled,
        {"label_keys": ["team"]},
    ),
    Path_("stop-sequence", "A stop sequence is an ordinary end.", UNPROVEN, lambda: _stops("stop_sequence")),
    Path_("structured", "The structured answer is a tool call that ends the loop.", UNPROVEN, _structured),
    Path_(
        "structured-forced",
        "The model had to be told once to give its structured answer.",
        UNPROVEN,
        _structured_forced,
    ),
    Path_(
        "structured-never",
        "The model was told to give a structured answer, and never gave it.",
        ("FAILED", "model_failure"),
        _structured_never,
    ),
    Path_("structured-directly", "The deprecated method, which skips the loop.", UNPROVEN, _structured_directly),
    Path_("goes-on", "A hook gave it new input after its end: one invocation, one run.", UNPROVEN, _goes_on),
    Path_(
        "turn-limit",
        "As many turns as allowed, and the model wanted more.",
        ("BOUNDED_STOP", "step_limit"),
        lambda: _limited(2, {"turns": 2}),
    ),
    Path_("turn-limit-reached", "Done on the last turn allowed.", UNPROVEN, lambda: _limited(1, {"turns": 2})),
    Path_(
        "total-tokens",
        "The token budget of the call is used up.",
        ("BOUNDED_STOP", "token_budget"),
        lambda: _limited(2, {"total_tokens": 50}),
    ),
    Path_(
        "output-tokens",
        "The budget of tokens that the model writes is used up.",
        ("BOUNDED_STOP", "token_budget"),
        lambda: _limited(2, {"turns": 9, "output_tokens": 6}),
    ),
    Path_("max-tokens", "One answer was cut off: an exception.", ("BOUNDED_STOP", "output_cap"), _cut),
    Path_(
        "context-overflow",
        "The window is full and nothing can be dropped.",
        ("BOUNDED_STOP", "context_limit"),
        lambda: failing(lambda: _overflow(*[Turn(error=ContextWindowOverflowException("x"))] * 9)("Go.")),
    ),
    Path_("context-recovered", "The window was full; a part was dropped, and it went on.", UNPROVEN, _shrinks),
    Path_(
        "throttled",
        "The provider refused twice, and no more tries are allowed.",
        ("FAILED", "quota"),
        lambda: failing(lambda: _throttled(Turn(error=ModelThrottledException("x")))("Go.")),
    ),
    Path_(
        "throttled-once", "The provider refused once; a retry recovered it.", UNPROVEN, lambda: _throttled(say())("Go.")
    ),
    Path_(
        "content-filtered",
        "The provider's filter cut the answer.",
        ("FAILED", "content_filter"),
        lambda: _stops("content_filtered"),
    ),
    Path_(
        "guardrail",
        "A guardrail of the operator's at the provider stepped in.",
        ("BOUNDED_STOP", "guardrail"),
        lambda: _stops("guardrail_intervened"),
    ),
    Path_(
        "refusal", "The model declined; Strands hands the word on.", ("FAILED", "refusal"), lambda: _stops("refusal")
    ),
    Path_(
        "unknown-stop",
        "A stop reason that nobody knows is no proof of an end.",
        ("UNCERTAIN", "finish_unknown"),
        lambda: _stops("whatever_it_means"),
    ),
    Path_("empty", "The run came back with nothing.", ("FALSE_COMPLETE", "empty_output"), lambda: agent(Turn())("Go.")),
    Path_(
        "invocation-denied",
        "A hook refused the whole invocation, which the caller sees as an ordinary end.",
        ("BOUNDED_STOP", "guardrail"),
        lambda: _denied(BeforeInvocationEvent, "cancel"),
    ),
    Path_(
        "intervention-denies",
        "A handler of the operator's denied the whole invocation.",
        ("BOUNDED_STOP", "guardrail"),
        _intervention,
    ),
    Path_("stop-tool", "The model called the framework's own tool that means done.", UNPROVEN, _stop_tool),
    Path_(
        "model-call-denied",
        "A hook refused the call of the model.",
        ("BOUNDED_STOP", "guardrail"),
        lambda: _denied(BeforeModelCallEvent, "cancel"),
    ),
    Path_(
        "turn-ended-by-hook", "A hook ended the turn after its tools: that was enough.", UNPROVEN, _turn_ended_by_hook
    ),
    Path_("tool-cancelled", "A hook cancelled a call by itself, and the model went on.", UNPROVEN, _hidden_tool),
]
