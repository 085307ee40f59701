"""Waits: approvals, tools that the caller runs, sign-ins and answers that a service goes on with."""

from __future__ import annotations

from typing import Any

import agent_framework
from agent_framework import AgentSession, Content, FunctionTool, Message, tool

import stopcause
from tests.frameworks.agent_framework.models import Turn, agent, answer, call, look_up, pay, read, say
from tests.frameworks.agent_framework.paths_ends import UNPROVEN
from tests.frameworks.harness import Path_

ROUTED = {"route": {"owner": "finance", "due_s": 3600}}
OPEN = ("WAITING_UNROUTED", "owner")
ANSWERED = ("WAITING", "answered")
CLIENT_SIDE = FunctionTool(name="open_door", description="Opens a door.")


@tool(approval_mode="always_require")
def pay_and_break() -> str:
    """Pays, and fails."""
    raise ValueError("canary-7f3a")


async def _asks(*, kept: bool = True) -> Any:
    return await agent(call("pay", amount=5)).run("Go.", session=AgentSession(session_id="desk-1") if kept else None)


async def _asks_in_memory() -> Any:
    """The framework made up the session's name: only this process has what it names."""
    return await agent(call("pay", amount=5)).run("Go.", session=AgentSession())


async def _answered(*, approved: bool, name: str = "pay", last: Turn | None = None) -> None:
    made, session = agent(call(name), last or say(), tools=[pay, pay_and_break]), AgentSession(session_id="desk-1")
    result = await made.run("Go.", session=session)
    await made.run(answer(result, approved=approved), session=session)


async def _streamed() -> None:
    made, session = agent(call("pay"), say()), AgentSession(session_id="desk-1")
    stream = made.run("Go.", stream=True, session=session)
    await read(stream)
    await read(made.run(answer(await stream.get_final_response()), stream=True, session=session))


async def _two() -> None:
    turn = Turn(calls=(("pay", "call-1", {}), ("pay", "call-2", {})))
    await agent(turn).run("Go.", session=AgentSession(session_id="desk-1"))


async def _two_out_of_order() -> None:
    """The second call is let through first; then the first is not."""
    turn = Turn(calls=(("pay", "call-1", {}), ("pay", "call-2", {})))
    made, session = agent(turn, say(), say()), AgentSession(session_id="desk-1")
    first, second = (await made.run("Go.", session=session)).user_input_requests
    for request, approved in ((second, True), (first, False)):
        await made.run(Message("user", [request.to_function_approval_response(approved)]), session=session)


async def _in_a_block() -> None:
    async with stopcause.run("desk"):
        await _asks()


async def _answered_in_a_block() -> None:
    made, session = agent(call("pay"), say()), AgentSession(session_id="desk-1")
    result = await made.run("Go.", session=session)
    async with stopcause.run("desk"):
        await made.run(answer(result), session=session)


async def _other_agent() -> None:
    """As after a restart: the session is what is kept."""
    session = AgentSession(session_id="desk-1")
    result = await agent(call("pay")).run("Go.", session=session)
    await agent(say()).run(answer(result), session=session)


async def _new_prompt() -> None:
    made, session = agent(call("pay"), say()), AgentSession(session_id="desk-1")
    await made.run("Go.", session=session)
    await made.run("Something else.", session=session)


async def _callers_tool(*, is_answered: bool) -> None:
    made, session = agent(call("open_door"), say(), tools=[CLIENT_SIDE]), AgentSession(session_id="desk-1")
    await made.run("Go.", session=session)
    if is_answered:
        result = Content.from_function_result("call-1", result="canary-7f3a")
        await made.run(Message("tool", [result]), session=session)


async def _sign_in() -> None:
    consent = Content.from_oauth_consent_request("https://canary-7f3a.example.org/")
    await agent(Turn(more=(consent,)), tools=[]).run("Go.", session=AgentSession(session_id="desk-1"))


async def _background(*, is_asked_again: bool) -> None:
    made = agent(say("", background="resp-1"), say(), tools=[])
    result = await made.run("Go.")
    if is_asked_again:
        await made.run(options={"continuation_token": result.continuation_token})


async def _hosted(*, is_shown: bool = True) -> None:
    """A provider's own tool: its service runs it, once the answer has come."""
    function_call = Content.from_function_call("call-1", "canary-7f3a", additional_properties={"server_label": "docs"})
    if hasattr(function_call, "hosted"):  # 1.0 tells them apart by the tools that the agent has
        function_call.hosted = True
    asked = Turn(more=(Content.from_function_approval_request("mcpr-1", function_call),))
    shown = (Content.from_mcp_server_tool_result("call-1", output="canary-7f3a"),) if is_shown else ()
    made, session = agent(asked, say(more=shown), tools=[look_up]), AgentSession(session_id="desk-1")
    await made.run(answer(await made.run("Go.", session=session)), session=session)


async def _by_rule(*, is_ruled: bool) -> None:
    """The framework's middleware for approvals, which asks for one after the other."""

    def rule(_: Any) -> bool:
        return is_ruled

    turn = Turn(calls=(("pay", "call-1", {}), ("pay", "call-2", {})))
    keeper = agent_framework.ToolApprovalMiddleware(auto_approval_rules=[rule])
    made, session = agent(turn, say(), middleware=[keeper]), AgentSession(session_id="desk-1")
    result = await made.run("Go.", session=session)
    while result.user_input_requests:
        result = await made.run(answer(result), session=session)


async def _bound_after_approval() -> None:
    """The round trips before the approval count."""
    keeper = agent_framework.ToolApprovalMiddleware()
    made = agent(call("pay"), say(), limits={"max_iterations": 1}, middleware=[keeper])
    session = AgentSession(session_id="desk-1")
    await made.run(answer(await made.run("Go.", session=session)), session=session)


async def _inner_asks(name: str, tool: Any) -> None:
    helper = agent(call(name), name="helper", tools=[tool])
    made = agent(call("helper", "call-9", task="x"), say(), tools=[helper.as_tool(name="helper")])
    await made.run("Go.", session=AgentSession(session_id="desk-1"))


PATHS = [
    Path_("approval", "A tool needs an approval; nobody is named who gives it.", OPEN, _asks),
    Path_(
        "approval-routed",
        "Owner and deadline from the route, the session names the state.",
        ("WAITING", "tool_call"),
        _asks,
        ROUTED,
    ),
    Path_(
        "approval-in-memory",
        "Routed, yet only this process has the session, whose name nobody gave.",
        ("WAITING_UNROUTED", "resume_token"),
        _asks_in_memory,
        ROUTED,
    ),
    Path_(
        "approval-unkept",
        "Somebody would answer, but there is no session to answer in.",
        ("WAITING_UNROUTED", "resume_token"),
        lambda: _asks(kept=False),
        ROUTED,
    ),
    Path_(
        "approval-overdue",
        "Routed, and nobody answered in time.",
        ("WAITING_UNROUTED", "overdue"),
        _asks,
        ROUTED,
        after_s=7200,
    ),
    Path_("approval-in-a-block", "An agent in the host's own block waits, so the block's run does.", OPEN, _in_a_block),
    Path_("approvals", "Two calls of one turn wait.", OPEN, _two),
    Path_(
        "two-out-of-order",
        "The second was let through first: with it the run that took it up asked for the other one again.",
        ANSWERED,
        _two_out_of_order,
        ROUTED,
    ),
    Path_(
        "two-out-of-order-again",
        "The run that asked again, and was told no.",
        ANSWERED,
        _two_out_of_order,
        ROUTED,
        judged=1,
    ),
    Path_(
        "two-out-of-order-finished",
        "With the no all was answered, and the model finished.",
        ("FALSE_COMPLETE", "denied"),
        _two_out_of_order,
        ROUTED,
        judged=2,
    ),
    Path_(
        "approved",
        "The answer was yes; the run that took it up resolves the one that waited.",
        ANSWERED,
        lambda: _answered(approved=True),
        ROUTED,
    ),
    Path_(
        "approved-resumed",
        "After a yes the tool ran, and the model finished.",
        UNPROVEN,
        lambda: _answered(approved=True),
        ROUTED,
        judged=1,
    ),
    Path_("approved-streamed", "The same, both as streams.", UNPROVEN, _streamed, judged=1),
    Path_(
        "approved-in-a-block", "A block of the program's own brings the answer.", ANSWERED, _answered_in_a_block, ROUTED
    ),
    Path_("approved-elsewhere", "A new agent object resumes from the session.", ANSWERED, _other_agent, ROUTED),
    Path_("denied", "The answer was no.", ANSWERED, lambda: _answered(approved=False), ROUTED),
    Path_(
        "denied-resumed",
        "After a no the model finished: what was asked for is not done.",
        ("FALSE_COMPLETE", "denied"),
        lambda: _answered(approved=False),
        ROUTED,
        judged=1,
    ),
    Path_(
        "fails-after-yes",
        "Approved, and the tool then failed; the model was told.",
        ANSWERED,
        lambda: _answered(approved=True, name="pay_and_break"),
        ROUTED,
    ),
    Path_(
        "new-prompt",
        "Something else was asked meanwhile: the wait is still open.",
        ("WAITING", "tool_call"),
        _new_prompt,
        ROUTED,
    ),
    Path_(
        "callers-tool",
        "A tool that is only declared is the caller's to run.",
        OPEN,
        lambda: _callers_tool(is_answered=False),
    ),
    Path_(
        "callers-tool-answered",
        "The caller ran it, and brought what came of it.",
        ANSWERED,
        lambda: _callers_tool(is_answered=True),
        ROUTED,
    ),
    Path_("sign-in", "A hosted tool needs the user's consent first.", OPEN, _sign_in),
    Path_("background", "The service goes on in the background.", OPEN, lambda: _background(is_asked_again=False)),
    Path_(
        "background-asked-again",
        "It was asked for by its token, and was there.",
        ANSWERED,
        lambda: _background(is_asked_again=True),
        ROUTED,
    ),
    Path_("hosted", "A tool of the provider's needed an approval, and got it.", ANSWERED, _hosted, ROUTED),
    Path_("hosted-resumed", "The provider's result shows that its tool ran.", UNPROVEN, _hosted, ROUTED, judged=1),
    Path_(
        "hosted-not-shown",
        "Nothing shows whether the provider's tool ran after the yes, and that says nothing.",
        UNPROVEN,
        lambda: _hosted(is_shown=False),
        ROUTED,
        judged=1,
    ),
    Path_(
        "approved-by-rule",
        "A rule of the program's approved both calls, and nobody waited.",
        UNPROVEN,
        lambda: _by_rule(is_ruled=True),
    ),
    Path_(
        "approved-one-by-one",
        "Two calls, asked for one after the other: the first waits until the second is answered.",
        ANSWERED,
        lambda: _by_rule(is_ruled=False),
        ROUTED,
    ),
    Path_(
        "approved-second",
        "The run that brought the first answer waited for the second.",
        ANSWERED,
        lambda: _by_rule(is_ruled=False),
        ROUTED,
        judged=1,
    ),
    Path_(
        "approved-both",
        "With the second answer both calls ran, and the model finished.",
        UNPROVEN,
        lambda: _by_rule(is_ruled=False),
        ROUTED,
        judged=2,
    ),
    Path_(
        "bound-after-approval",
        "The round trips were used up before the approval: after it the model was asked once more without tools.",
        ("BOUNDED_STOP", "step_limit"),
        _bound_after_approval,
        ROUTED,
        judged=1,
    ),
    Path_(
        "inner-asks",
        "The agent that is a tool needs an approval: its parent is told that it cannot go on, and answers.",
        OPEN,
        lambda: _inner_asks("pay", pay),
    ),
    Path_(
        "inner-asks-itself",
        "The agent that is a tool has a session that nobody sees.",
        ("WAITING_UNROUTED", "resume_token"),
        lambda: _inner_asks("pay", pay),
        ROUTED,
        judged=1,
    ),
    Path_(
        "inner-asks-the-caller",
        "The agent that is a tool asks for what the caller has to do, so its parent waits.",
        OPEN,
        lambda: _inner_asks("open_door", CLIENT_SIDE),
    ),
]
