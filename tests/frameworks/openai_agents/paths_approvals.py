"""Runs that stop to wait for a yes, and those that go on from there."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

from agents import Agent, AgentsException, HostedMCPTool, RunConfig, Runner, SQLiteSession, function_tool

import stopcause
from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.openai_agents.models import MARKER, agent, asks_hosted, calls, ran_hosted, says
from tests.frameworks.openai_agents.paths_ends import DONE, STEPS, TOOL, look_up
from tests.frameworks.openai_agents.paths_streams import read

NO_OWNER = ("WAITING_UNROUTED", "owner")
NO_TOKEN = ("WAITING_UNROUTED", "resume_token")
ANSWERED = ("WAITING", "answered")
ROUTE = {"tool": "pay", "owner": "team:treasury", "due_s": 1800}
KEYS = {"resume_token": "ticket"}
_numbers = itertools.count(8)
TICKET = RunConfig(trace_metadata={"ticket": "paused/7", "note": MARKER})


@function_tool(needs_approval=True)
def pay(note: str) -> str:
    """Pays."""
    return f"{MARKER} {note}"


def payer(*more: Any, **options: Any) -> Agent[Any]:
    """An agent whose first call needs a yes."""
    return agent(calls("pay"), *(more or (says(),)), tools=[pay, look_up], **options)


def paused(made: Callable[[], Agent[Any]] = payer, **options: Any) -> Callable[[], Any]:
    """A run that stops to wait."""

    async def path() -> None:
        result = await Runner.run(made(), MARKER, **options)
        assert result.interruptions

    return path


def resumed(made: Callable[[], Agent[Any]], answers: str, **options: Any) -> Callable[[], Any]:
    """Stops, is answered call by call (y, n, or - for none), and goes on."""

    async def path() -> None:
        acting = made()
        result = await Runner.run(acting, MARKER, **options)
        state = result.to_state()
        for item, answer in zip(result.interruptions, answers, strict=True):
            if answer == "y":
                state.approve(item)
            elif answer == "n":
                state.reject(item, rejection_message=MARKER)
        with contextlib.suppress(AgentsException, Scripted):
            await Runner.run(acting, state)

    return path


async def streamed() -> None:
    acting, session = payer(), SQLiteSession("chat-9")
    first = Runner.run_streamed(acting, MARKER, session=session)
    await read(first)
    state = first.to_state()
    state.approve(first.interruptions[0])
    await read(Runner.run_streamed(acting, state, session=session))


async def through_json() -> None:
    """The state as a program keeps it: written down, read again, and only then answered."""
    from agents import RunState  # noqa: PLC0415 - only here

    acting = payer()
    written = (await Runner.run(acting, MARKER)).to_state().to_string()
    state = await RunState.from_string(acting, written)
    state.approve(state.get_interruptions()[0])
    await Runner.run(acting, state)


def elsewhere(answer: str) -> Callable[[], Any]:
    """The state goes through a store to a process that knows nothing of the run but its id, which the program kept."""

    async def path() -> None:
        from agents import RunState  # noqa: PLC0415 - only here

        acting = payer()
        with stopcause.run("ticket-desk", run_id="ticket-17"):
            written = (await Runner.run(acting, MARKER)).to_state().to_string()
        stopcause.uninstrument("openai_agents")
        stopcause.instrument("openai_agents")
        state = await RunState.from_string(acting, written)
        act = state.approve if answer == "y" else state.reject
        act(state.get_interruptions()[0])
        with stopcause.run("ticket-desk", resumes="ticket-17"):
            await Runner.run(acting, state)

    return path


def nesting() -> Agent[Any]:
    """An agent that has the payer as a tool. The SDK keeps paused inner runs by the call, so each is called anew."""
    tool = payer(name="billing").as_tool(tool_name="ask_billing", tool_description="Asks.")
    return agent(calls("ask_billing", arguments='{"input": "canary7f3a"}', first=next(_numbers)), says(), tools=[tool])


def failing_inside() -> Agent[Any]:
    """The same, where the inner run fails after the yes, and that ends the outer one."""
    inner = payer(Scripted(MARKER), name="billing")
    tool = inner.as_tool(tool_name="ask_billing", tool_description="Asks.", failure_error_function=None)
    return agent(calls("ask_billing", arguments='{"input": "canary7f3a"}', first=next(_numbers)), tools=[tool])


def two_calls() -> Agent[Any]:
    return agent(calls("pay", "pay"), says(), tools=[pay])


def hosted() -> Agent[Any]:
    """An agent with a tool of a hosted MCP server, whose names only the provider knows."""
    config: Any = {
        "type": "mcp", "server_label": "bank", "server_url": "https://bank.example/", "require_approval": "always",
    }  # fmt: skip
    return agent(asks_hosted(), ran_hosted(), tools=[HostedMCPTool(tool_config=config)])


PATHS = [
    Path_("approval", "a call waits and nobody is named who answers", NO_OWNER, paused()),
    Path_(
        "approval-without-token",
        "a route names owner and deadline, but a RunState has no name: nothing says what to resume",
        NO_TOKEN,
        paused(),
        options={"route": ROUTE},
    ),
    Path_(
        "approval-routed",
        "the host also names the paused state, in metadata that it allowed to be read",
        ("WAITING", "tool_call"),
        paused(run_config=TICKET),
        options={"route": ROUTE, "approval_keys": KEYS},
    ),
    Path_(
        "approval-overdue",
        "the same after its deadline",
        ("WAITING_UNROUTED", "overdue"),
        paused(run_config=TICKET),
        options={"route": ROUTE, "approval_keys": KEYS},
        after_s=3600,
    ),
    Path_(
        "approval-expired",
        "past its hard limit, and nobody dealt with it",
        ("STUCK", "approval_expired"),
        paused(run_config=TICKET),
        options={"route": ROUTE | {"expires_s": 2400}, "approval_keys": KEYS},
        after_s=3600,
    ),
    Path_("approved", "answered: the run that waited is done with", ANSWERED, resumed(payer, "y")),
    Path_("approved-resuming", "the run that goes on after the yes", DONE, resumed(payer, "y"), judged=1),
    Path_("denied", "a no is an answer, too", ANSWERED, resumed(payer, "n")),
    Path_(
        "denied-resuming",
        "the run that goes on after the no",
        ("FALSE_COMPLETE", "denied"),
        resumed(payer, "n"),
        judged=1,
    ),
    Path_(
        "answered-in-part",
        "two calls, one answer: the run that goes on waits for the other",
        NO_OWNER,
        resumed(two_calls, "y-"),
        judged=1,
    ),
    Path_(
        "resumed-without-answer",
        "gone on without an answer: it waits again at once, and nothing is answered",
        NO_OWNER,
        resumed(payer, "-"),
    ),
    Path_(
        "resumed-step-limit",
        "the limit counts on over the pause",
        STEPS,
        resumed(lambda: payer(calls("look_up", first=2)), "y", max_turns=2),
        judged=1,
    ),
    Path_(
        "resumed-explicit-done",
        "after the yes the tool's own result is the output",
        DONE,
        resumed(lambda: payer(tool_use_behavior="stop_on_first_tool"), "y"),
        judged=1,
    ),
    Path_("streamed-approved", "both runs streamed, in one session", ANSWERED, streamed),
    Path_("approved-through-json", "the state was written down and read again", ANSWERED, through_json),
    Path_("approved-elsewhere", "the program names the run that waited, in another process", ANSWERED, elsewhere("y")),
    Path_(
        "approved-elsewhere-resuming",
        "there the gated call ran after its yes",
        DONE,
        elsewhere("y"),
        judged=1,
    ),
    Path_(
        "denied-elsewhere-resuming",
        "the same after a no",
        ("FALSE_COMPLETE", "denied"),
        elsewhere("n"),
        judged=1,
    ),
    Path_(
        "nested-approval",
        "the inner run asks, the outer one passes it on, and both wait",
        NO_OWNER,
        paused(nesting),
    ),
    Path_("nested-approved", "answered through the outer state", ANSWERED, resumed(nesting, "y")),
    Path_("nested-approved-inner", "the inner run that asked", ANSWERED, resumed(nesting, "y"), judged=1),
    Path_(
        "nested-approved-fails",
        "the inner run goes on after the yes and fails: to the outer one it is a tool that failed",
        TOOL,
        resumed(failing_inside, "y"),
        judged=2,
    ),
    Path_(
        "hosted-approval",
        "a hosted MCP server's tool waits; its name is the model's word",
        NO_OWNER,
        paused(hosted),
    ),
    Path_("hosted-approved", "the provider reports that it ran", ANSWERED, resumed(hosted, "y")),
]
