"""Waits: a confirmation before a call, a long-running tool, a sign-in, a question; routed or not, kept or not."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

from google.adk.agents import ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.auth.auth_tool import AuthConfig
from google.adk.events.request_input import RequestInput
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import Workflow

import stopcause
from tests.frameworks.google_adk.models import Desk, Turn, agent, call, failing, kept, pay, say, text
from tests.frameworks.google_adk.paths_ends import ABORTED, UNPROVEN
from tests.frameworks.harness import Path_

ROUTED = {"route": {"owner": "finance", "due_s": 3600}}
UNOWNED = ("WAITING_UNROUTED", "owner")
NO_TOKEN = ("WAITING_UNROUTED", "resume_token")
ANSWERED = ("WAITING", "answered")
SAID_NO = ("FALSE_COMPLETE", "denied")
TWO = Turn(calls=(("pay", "call-1", {}), ("pay", "call-2", {"amount": 2})))


def signs_in(tool_context: ToolContext) -> dict[str, Any]:
    """Asks for a sign-in, and says what it got."""
    url = "https://canary7f3a.example"
    flow = {"authorizationUrl": url, "tokenUrl": url, "scopes": {"canary7f3a": ""}}
    config = AuthConfig.model_validate({
        "auth_scheme": {"type": "oauth2", "flows": {"authorizationCode": flow}},
        "raw_auth_credential": AuthCredential(
            auth_type=AuthCredentialTypes.OAUTH2,
            oauth2=OAuth2Auth(client_id="canary7f3a", client_secret="canary7f3a"),
        ),
        "credential_key": "canary7f3a",
    })  # fmt: skip
    tool_context.request_credential(config)
    return {"status": "asked"}


def waiting(
    *turns: Turn, service: Callable[[], Any] = lambda: None, resumable: bool = False, **more: Any
) -> Callable[[], Any]:
    """An agent that plays these turns, and waits."""

    async def run() -> None:
        await Desk(agent(*turns, **more), service=service(), resumable=resumable).run()

    return run


def answered(
    *turns: Turn,
    response: dict[str, Any] | None = None,
    service: Callable[[], Any] = lambda: None,
    resumable: bool = False,
) -> Callable[[], Any]:
    """The same, and the answer comes."""

    async def run() -> None:
        desk = Desk(agent(*turns), service=service(), resumable=resumable)
        await desk.run()
        await desk.run(desk.answer(response))

    return run


async def _answered_in_a_block() -> None:
    desk = Desk(agent(call("pay"), say()))
    await desk.run()
    async with stopcause.run("clerk"):
        await desk.run(desk.answer())


async def _answered_again() -> None:
    """The first answer's run ends before the call: it has used up its model calls of another turn."""
    service = kept()
    desk = Desk(agent(call("pay"), say()), service=service)
    await desk.run()
    answer = desk.answer()
    desk.runner.plugin_manager.plugins.append(_Bad())
    await failing(desk.run(answer))
    desk.runner.plugin_manager.plugins.clear()
    await desk.run(answer)


async def _held_back() -> None:
    """The answer was yes, and a plugin answers in the place of the call."""
    desk = Desk(agent(call("pay"), say()))
    await desk.run()
    answer = desk.answer()
    desk.runner.plugin_manager.plugins.append(_HoldsBack())
    await desk.run(answer)


class _Bad:
    name = "bad"

    def __getattr__(self, name: str) -> Any:
        async def called(**_: Any) -> None:
            if name == "before_tool_callback":
                raise RuntimeError("canary-7f3a")

        return called


class _HoldsBack:
    name = "holds-back"

    def __getattr__(self, name: str) -> Any:
        async def called(**_: Any) -> Any:
            return {"canary-7f3a": 1} if name == "before_tool_callback" else None

        return called


async def _other_runner() -> None:
    service = kept()
    desk = Desk(agent(call("pay")), service=service)
    await desk.run()
    other = Desk(agent(say()), service=service)
    other._is_open = True
    await other.run(desk.answer())


async def _elsewhere(response: dict[str, Any], root: Any) -> None:
    desk = Desk(root, service=kept())
    await desk.run()
    stopcause.uninstrument("google_adk")  # another process knows nothing of what was asked in this one
    stopcause.instrument("google_adk")
    await desk.run(desk.answer(response))


async def _new_message() -> None:
    desk = Desk(agent(call("pay"), say()))
    await desk.run()
    await desk.run("Something else.")


async def _left(*turns: Turn) -> None:
    desk = Desk(agent(*turns))
    await desk.opened()
    stream = desk.stream()
    async for event in stream:
        if event.long_running_tool_ids:
            break
    await stream.aclose()


def _sync() -> None:
    desk = Desk(agent(call("pay"), say()))
    asyncio.run(desk.opened())
    list(desk.runner.run(user_id="u-1", session_id="s-1", new_message=text("Go.")))


async def _sub_agent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        root = SequentialAgent(name="line", sub_agents=[agent(call("pay"), say(), name="payer")])
    desk = Desk(root)
    await desk.run()
    await desk.run(desk.answer())


async def _parallel() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        root = ParallelAgent(
            name="crew", sub_agents=[agent(call("pay"), name="payer"), agent(call(), say(), name="reader")]
        )
    await Desk(root).run()


async def _asks_beside_a_limit() -> None:
    """One of two agents asks; then the other wants more model calls than there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        reader = agent(say(pause=0.05), name="reader")
        line = SequentialAgent(name="line", sub_agents=[reader, agent(say(), name="writer")])
        root = ParallelAgent(name="crew", sub_agents=[agent(call("pay"), name="payer"), line])
    await failing(Desk(root, service=kept()).run(config=RunConfig(max_llm_calls=2)))


async def _agent_tool() -> None:
    inner = agent(call("pay"), name="payer")
    await Desk(agent(call("payer", request="Pay."), say(), tools=[AgentTool(inner)])).run()


def _question(node_input: Any = None) -> RequestInput:
    del node_input
    return RequestInput(interrupt_id="which-account", message="canary-7f3a?", payload={"note": "canary-7f3a"})


def _says(node_input: Any) -> str:
    del node_input
    return "canary-7f3a"


def _amount(node_input: Any) -> dict[str, Any]:
    del node_input
    return {"amount": 1}


def _paying() -> Any:
    return Workflow(name="flow", edges=[("START", _amount, FunctionTool(pay, require_confirmation=True))])


async def _node(response: dict[str, Any] | None = None) -> None:
    desk = Desk(_paying())
    await desk.run()
    if response is not None:
        await desk.run(desk.answer(response))


async def _workflow(*, is_answered: bool) -> None:
    desk = Desk(Workflow(name="flow", edges=[("START", _question, _says)]))
    await desk.run()
    if is_answered:
        await desk.run(desk.answer({"result": "canary-7f3a"}))


PATHS = [
    Path_("confirmation", "A tool wants a yes before it runs; nobody is named.", UNOWNED, waiting(call("pay"), say())),
    Path_("confirmation-in-memory", "Somebody answers, but only the process keeps the session: nothing names it.",
          NO_TOKEN, waiting(call("pay"), say()), ROUTED),
    Path_("confirmation-kept", "Owner and deadline from the route, session and invocation name the paused state.",
          ("WAITING", "tool_call"), waiting(call("pay"), say(), service=kept), ROUTED),
    Path_("confirmation-overdue", "Routed, and nobody answered in time.", ("WAITING_UNROUTED", "overdue"),
          waiting(call("pay"), say(), service=kept), {"route": {"owner": "finance", "due_s": 10}}),
    Path_("confirmation-resumable", "The app is resumable: the invocation stops at once and can be taken up.",
          ("WAITING", "tool_call"), waiting(call("pay"), say(), service=kept, resumable=True), ROUTED),
    Path_("confirmation-streamed-left", "The reader went away when it saw the question: it waits all the same.",
          UNOWNED, lambda: _left(call("pay"), say())),
    Path_("confirmation-sync", "`Runner.run` ends with a question.", UNOWNED, _sync),
    Path_("confirmed", "The answer was yes; the call ran.", ANSWERED, answered(call("pay"), say())),
    Path_("confirmed-finished", "The run that took the yes up finished.", UNPROVEN, answered(call("pay"), say()),
          judged=1),
    Path_("confirmed-resumable", "The same in a resumable app.", UNPROVEN,
          answered(call("pay"), say(), service=kept, resumable=True), judged=1),
    Path_("denied", "The answer was no; the model was told and finished.", SAID_NO,
          answered(call("pay"), say(), response={"confirmed": False}), judged=1),
    Path_("denied-first", "The run whose question got a no was answered.", ANSWERED,
          answered(call("pay"), say(), response={"confirmed": False})),
    Path_("confirmed-in-a-block", "A block of the program's own brings the answer.", UNPROVEN, _answered_in_a_block,
          judged=1),
    Path_("confirmed-elsewhere", "Another runner with the same sessions takes the answer.", ANSWERED, _other_runner,
          ROUTED),
    Path_("denied-elsewhere", "The no came to another process than the one that had asked; the model finished.",
          SAID_NO, lambda: _elsewhere({"confirmed": False}, agent(call("pay"), say())), judged=1),
    Path_("approved-elsewhere", "The yes came to another process; what it is about is in the session.", UNPROVEN,
          lambda: _elsewhere({"confirmed": True}, agent(call("pay"), say())), judged=1),
    Path_("confirmed-held-back", "The answer was yes, and a plugin answered in the place of the call: it did not run.",
          UNPROVEN, _held_back, judged=1),
    Path_("confirmed-again", "What the answer resumed failed before the call; the same answer again let it run.",
          ANSWERED, _answered_again),
    Path_("new-message", "Something else was asked while it waits: the wait is still open.", UNOWNED, _new_message),
    Path_("two-confirmations", "Two calls of one turn, both wait.", UNOWNED, waiting(TWO, say())),
    Path_("two-confirmed", "Two calls of one turn, both were let through.", ANSWERED, answered(TWO, say())),
    Path_("tool-asks", "A tool asks for a confirmation by itself.", UNOWNED, waiting(call("asks_itself"), say())),
    Path_("approval-keys", "Who answers is in what the tool put beside its question, under a key that is allowed.",
          ("WAITING_UNROUTED", "deadline"), waiting(call("asks_finance"), service=kept),
          {"approval_keys": {"owner": "team"}}),
    Path_("tool-asked", "A tool asked by itself, and went on with the yes.", ANSWERED,
          answered(call("asks_itself"), say(), say("Now done."))),
    Path_("long-running", "A long-running tool has begun something that somebody else finishes.", UNOWNED,
          waiting(call("submit"), say("It is under way."))),
    Path_("long-running-silent", "The same, and the tool had nothing to say yet: no further model call.", UNOWNED,
          waiting(call("submit_silently"))),
    Path_("long-running-left", "The reader went away before the long-running tool had begun: nothing is waited for.",
          ABORTED, lambda: _left(call("submit"), say())),
    Path_("long-running-kept", "Routed, and the session names the paused state.", ("WAITING", "external"),
          waiting(call("submit"), say("It is under way."), service=kept), ROUTED),
    Path_("long-running-answered", "The result came, and the run that took it up finished.", UNPROVEN,
          answered(call("submit_silently"), say(), response={"status": "canary-7f3a"}), judged=1),
    Path_("long-running-over", "The result came: the first run was answered.", ANSWERED,
          answered(call("submit_silently"), say(), response={"status": "canary-7f3a"})),
    Path_("sign-in", "A tool needs a sign-in.", UNOWNED, waiting(call("signs_in"), say(), tools=[signs_in])),
    Path_("sign-in-kept", "Routed, and the session names the paused state.", ("WAITING", "sign_in"),
          waiting(call("signs_in"), say(), tools=[signs_in], service=kept), ROUTED),
    Path_("sub-agent-asks", "An agent inside a sequence asked; the answer reached it.", ANSWERED, _sub_agent),
    Path_("parallel-asks", "Of two agents at once one asks, and the other is done.", UNOWNED, _parallel),
    Path_("parallel-asks-limited", "One of two agents asks, and the other used up the model calls: it can be answered.",
          UNOWNED, _asks_beside_a_limit),
    Path_("agent-tool-asks", "An agent that is a tool asked: its session is gone, and nobody can answer.",
          NO_TOKEN, _agent_tool, ROUTED, judged=1),
    Path_("question", "A node of a workflow asks.", UNOWNED, lambda: _workflow(is_answered=False)),
    Path_("question-answered", "The workflow's question was answered.", ANSWERED, lambda: _workflow(is_answered=True)),
    Path_("node-asks", "A tool that is a node of a workflow wants a yes.", UNOWNED, _node),
    Path_("node-confirmed", "The answer was yes; the node ran.", ANSWERED, lambda: _node({"confirmed": True})),
    Path_("node-denied", "The answer was no; the workflow finished.", SAID_NO, lambda: _node({"confirmed": False}),
          judged=1),
    Path_("node-approved-elsewhere", "The yes came to another process.", UNPROVEN,
          lambda: _elsewhere({"confirmed": True}, _paying()), judged=1),
    Path_("question-over", "The workflow that took the answer up finished.", UNPROVEN,
          lambda: _workflow(is_answered=True), judged=1),
]  # fmt: skip
