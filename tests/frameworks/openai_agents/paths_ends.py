"""Runs that end by themselves: finished, at a limit, by a guardrail, or because something failed."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import openai
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    RunConfig,
    RunHooks,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    function_tool,
)
from pydantic import BaseModel

from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.openai_agents.models import (
    MARKER,
    Answer,
    agent,
    calls,
    chatting,
    completion,
    refuses,
    says,
    slow,
)

DONE = ("FALSE_COMPLETE", "no_contract")
STEPS = ("BOUNDED_STOP", "step_limit")
GUARDED = ("BOUNDED_STOP", "guardrail")
TOOL = ("FAILED", "tool_failure")
MODEL = ("FAILED", "model_failure")
httpx: Any = importlib.import_module("httpx2")  # what the provider's client stands on


@function_tool
def look_up(note: str) -> str:
    """Looks something up."""
    return f"{MARKER} {note}"


@function_tool
def break_down(note: str) -> str:
    """Raises; the SDK makes an answer of it."""
    raise Scripted(MARKER + note)


@function_tool(failure_error_function=None)
def break_loudly(note: str) -> str:
    """Raises, and that ends the run."""
    raise Scripted(MARKER + note)


@function_tool(failure_error_function=None)
async def cancel_itself(note: str) -> str:
    """A library's cancellation that nobody had asked for."""
    raise asyncio.CancelledError(MARKER + note)


@function_tool(timeout=0.01, timeout_behavior="raise_exception")
async def sleep_long(note: str) -> str:
    """Takes longer than it may."""
    await asyncio.sleep(5)
    return note


@function_tool(timeout=0.01)
async def give_up(note: str) -> str:
    """Takes longer than it may, and the SDK makes an answer of that."""
    await asyncio.sleep(5)
    return note


@function_tool
async def be_cancelled(note: str) -> str:
    """A cancellation that nobody had asked for; the SDK makes an answer of it."""
    raise asyncio.CancelledError(MARKER + note)


UNTRACED = RunConfig(tracing_disabled=True)


class Ticket(BaseModel):
    """What an agent is to return."""

    number: int


class Raising(RunHooks[Any]):
    """A host's callbacks with a fault in them."""

    async def on_llm_end(self, *_: Any) -> None:
        """Raises."""
        raise Scripted(MARKER)


def run(made: Callable[[], Agent[Any]], text: str = MARKER, **options: Any) -> Callable[[], Any]:
    """A path: one run, of which only the receipt is looked at."""

    async def path() -> None:
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await Runner.run(made(), text, **options)

    return path


def run_sync(made: Callable[[], Agent[Any]], **options: Any) -> Callable[[], Any]:
    """The same through `run_sync`, which leaves its event loop open for the next one."""

    def path() -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            Runner.run_sync(made(), MARKER, **options)
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    return path


def trips(*_: Any) -> GuardrailFunctionOutput:
    """A guardrail of an agent's that says no."""
    return GuardrailFunctionOutput(output_info=MARKER, tripwire_triggered=True)


def trips_tool(_: Any) -> ToolGuardrailFunctionOutput:
    """A guardrail of a tool's that ends the run."""
    return ToolGuardrailFunctionOutput.raise_exception(output_info=MARKER)


def guarded_tool(**guardrails: Any) -> Any:
    """A tool with such a guardrail."""

    @function_tool(**guardrails)
    def look_at(note: str) -> str:
        """Looks at something."""
        return note

    return look_at


def status_error(status: int, code: str | None = None) -> Any:
    """What the provider's client raises."""
    kinds = {429: openai.RateLimitError, 400: openai.BadRequestError, 500: openai.InternalServerError}
    request = httpx.Request("POST", "https://provider.example/v1/responses")
    response = httpx.Response(status, request=request)
    return kinds[status](MARKER, response=response, body={"code": code, "message": MARKER})


def ends_with(data: Any) -> Any:
    """A host's error handler: it makes an output of its own."""
    assert data.error is not None
    return {"final_output": MARKER}


async def mends(data: Any) -> Any:
    """One that makes the output that the model did not."""
    assert data.error is not None
    return {"final_output": Ticket(number=1)}


PATHS = [
    Path_("natural", "the model asks for nothing more; nothing proves the work", DONE, run(lambda: agent(says()))),
    Path_(
        "natural-sync-after-tool",
        "run_sync: a tool runs, then the model is done",
        DONE,
        run_sync(lambda: agent(calls("look_up"), says(), tools=[look_up])),
    ),
    Path_(
        "natural-structured",
        "the output fits its type; that is still the run's own word",
        DONE,
        run(lambda: agent(says('{"number": 1}'), output_type=Ticket)),
    ),
    Path_(
        "empty-output",
        "the model is done and has said nothing",
        ("FALSE_COMPLETE", "empty_output"),
        run(lambda: agent(says(""))),
    ),
    Path_(
        "explicit-done",
        "the first tool's result is the output: tool_use_behavior",
        DONE,
        run(lambda: agent(calls("look_up"), tools=[look_up], tool_use_behavior="stop_on_first_tool")),
    ),
    Path_(
        "handoff",
        "another agent goes on: an edge of one run, not an end",
        DONE,
        run(lambda: agent(calls("transfer_to_billing"), handoffs=[agent(says(), name="billing")])),
    ),
    Path_(
        "step-limit",
        "max_turns fires with calls to go",
        STEPS,
        run(lambda: agent(calls("look_up"), calls("look_up", first=2), tools=[look_up]), max_turns=2),
    ),
    Path_(
        "last-turn-natural",
        "done on the last turn that is allowed, with nothing asked for",
        DONE,
        run(lambda: agent(calls("look_up"), says(), tools=[look_up]), max_turns=2),
    ),
    Path_(
        "step-limit-handled",
        "max_turns fires and an error handler makes an output: it only looks like an end",
        STEPS,
        run(lambda: agent(calls("look_up"), tools=[look_up]), max_turns=1, error_handlers={"max_turns": ends_with}),
    ),
    Path_(
        "step-limit-not-handled",
        "an error handler that gives nothing leaves the limit's exception",
        STEPS,
        run(
            lambda: agent(calls("look_up"), tools=[look_up]),
            max_turns=1,
            error_handlers={"max_turns": lambda _: None},
        ),
    ),
    Path_(
        "no-limit",
        "max_turns=None: no limit is recorded",
        DONE,
        run(lambda: agent(calls("look_up"), says(), tools=[look_up]), max_turns=None),
    ),
    Path_(
        "tool-error-answered",
        "the SDK makes an answer of a tool's exception, and the loop goes on: a failed tool is not a failed run",
        DONE,
        run(lambda: agent(calls("break_down"), says(), tools=[break_down])),
    ),
    Path_(
        "tool-error-answered-untraced",
        "the same with tracing off: one of two tools side by side failed, and only the other one is progress",
        DONE,
        run(lambda: agent(calls("break_down", "look_up"), says(), tools=[break_down, look_up]), run_config=UNTRACED),
    ),
    Path_(
        "tool-timeout-answered",
        "a tool had all its time, and the SDK makes an answer of that: no progress, and no failed run",
        DONE,
        run(lambda: agent(calls("give_up"), says(), tools=[give_up]), run_config=UNTRACED),
    ),
    Path_(
        "tool-cancelled-answered",
        "a tool's own cancellation, made an answer",
        DONE,
        run(lambda: agent(calls("be_cancelled"), says(), tools=[be_cancelled]), run_config=UNTRACED),
    ),
    Path_(
        "tool-failure",
        "failure_error_function=None: the tool's exception ends the run",
        TOOL,
        run(lambda: agent(calls("break_loudly"), tools=[break_loudly])),
    ),
    Path_(
        "tool-timeout",
        "a tool's own timeout ends the run: no time limit of the run's",
        TOOL,
        run(lambda: agent(calls("sleep_long"), tools=[sleep_long])),
    ),
    Path_(
        "tool-cancelled-itself",
        "a cancellation that a tool raised and nobody asked for is that tool's failure",
        TOOL,
        run(lambda: agent(calls("cancel_itself"), tools=[cancel_itself])),
    ),
    Path_(
        "provider-error",
        "the provider answers 500",
        MODEL,
        run(lambda: agent(calls("look_up"), status_error(500), tools=[look_up])),
    ),
    Path_("quota", "the provider answers 429", ("FAILED", "quota"), run(lambda: agent(status_error(429)))),
    Path_(
        "context-limit",
        "the provider says that the context is full",
        ("BOUNDED_STOP", "context_limit"),
        run(lambda: agent(status_error(400, "context_length_exceeded"))),
    ),
    Path_(
        "model-error",
        "a model of somebody's own raises while it is asked",
        MODEL,
        run(lambda: agent(Scripted(MARKER))),
    ),
    Path_(
        "model-timeout",
        "the model's own timeout: the model was too slow, no limit of the run's",
        MODEL,
        run(lambda: agent(slow, timeout=0.01)),
    ),
    Path_(
        "chat-natural",
        "a model behind Chat Completions: that it said stop is not kept",
        DONE,
        run(lambda: chatting(completion("stop", MARKER, 5))),
    ),
    Path_(
        "chat-length",
        "Chat Completions cut the text: only that it is as long as it may be tells",
        ("BOUNDED_STOP", "output_cap"),
        run(lambda: chatting(completion("length", MARKER, 64))),
    ),
    Path_(
        "chat-length-empty",
        "nothing but hidden tokens came: the SDK says why in a text, which is not read; to us the model failed",
        MODEL,
        run(lambda: chatting(completion("length", "", 64))),
    ),
    Path_(
        "chat-content-filter",
        "the provider's filter left nothing, and the SDK makes a refusal of it",
        ("FAILED", "refusal"),
        run(lambda: chatting(completion("content_filter", "", 0))),
    ),
    Path_(
        "unknown-tool",
        "the model calls a tool that nobody has; its name is its invention and is not recorded",
        ("FAILED", "malformed_call"),
        run(lambda: agent(calls("canary7f3a"), tools=[look_up])),
    ),
    Path_(
        "bad-arguments",
        "arguments that are no JSON, for a tool whose errors end the run",
        ("FAILED", "malformed_call"),
        run(lambda: agent(calls("break_loudly", arguments=MARKER), tools=[break_loudly])),
    ),
    Path_(
        "invalid-output",
        "the final output does not fit its type",
        MODEL,
        run(lambda: agent(says("{"), output_type=Ticket)),
    ),
    Path_(
        "invalid-output-handled",
        "an error handler makes the output that the model did not",
        DONE,
        run(lambda: agent(says("{"), output_type=Ticket), error_handlers={"invalid_final_output": mends}),
    ),
    Path_("refusal", "the model declines", ("FAILED", "refusal"), run(lambda: agent(refuses()))),
    Path_(
        "refusal-handled",
        "an error handler words the refusal; the model still declined",
        ("FAILED", "refusal"),
        run(lambda: agent(refuses()), error_handlers={"model_refusal": ends_with}),
    ),
    Path_(
        "output-cap",
        "an answer as long as it may be, and no finish reason anywhere",
        ("BOUNDED_STOP", "output_cap"),
        run(lambda: agent(Answer(says().items, 64), max_tokens=64)),
    ),
    Path_(
        "incomplete-message",
        "a message that is marked incomplete and shorter than its cap: cut, nobody knows by what",
        ("UNCERTAIN", "finish_unknown"),
        run(lambda: agent(says(status="incomplete"), max_tokens=64)),
    ),
    Path_(
        "input-guardrail",
        "the operator's input guardrail says no before the model is asked",
        GUARDED,
        run(lambda: agent(says(), input_guardrails=[InputGuardrail(trips, run_in_parallel=False)])),
    ),
    Path_(
        "output-guardrail",
        "the operator's output guardrail says no to the answer",
        GUARDED,
        run(lambda: agent(says(), output_guardrails=[OutputGuardrail(trips)])),
    ),
    Path_(
        "tool-input-guardrail",
        "a tool's input guardrail ends the run before the tool",
        GUARDED,
        run(
            lambda: agent(
                calls("look_at"), tools=[guarded_tool(tool_input_guardrails=[ToolInputGuardrail(trips_tool)])]
            )
        ),
    ),
    Path_(
        "tool-output-guardrail",
        "a tool's output guardrail ends the run after the tool",
        GUARDED,
        run(
            lambda: agent(
                calls("look_at"), tools=[guarded_tool(tool_output_guardrails=[ToolOutputGuardrail(trips_tool)])]
            )
        ),
    ),
    Path_(
        "host-callback-raises",
        "the program's own RunHooks raise, and the SDK lets that end the run",
        ("FAILED", "host_error"),
        run(lambda: agent(says()), hooks=Raising()),
    ),
    Path_(
        "misconfigured",
        "the SDK refuses how it was called",
        ("FAILED", "host_error"),
        run(lambda: agent(says()), hooks=object()),
    ),
]
