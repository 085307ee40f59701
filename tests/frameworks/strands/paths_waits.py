"""Interrupts: asked before a call or by a tool, routed or not, kept or not, answered, denied, refused."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.session.file_session_manager import FileSessionManager
from strands.types.tools import ToolContext

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.strands.models import (
    agent,
    answers,
    answers_with,
    ask_before,
    call,
    failing,
    look_up,
    pay,
    say,
)
from tests.frameworks.strands.paths_ends import UNPROVEN

ROUTED = {"route": {"owner": "finance", "due_s": 3600}}


@tool(context=True)
def ask(tool_context: ToolContext) -> str:
    """Asks for an answer."""
    return str(tool_context.interrupt("which", reason={"note": "canary-7f3a"}))


def _session() -> FileSessionManager:
    return FileSessionManager("session-1", storage_dir=tempfile.mkdtemp())


def _payer(*, then: Any = (), **more: Any) -> Agent:
    return agent(call("pay", amount=5), *then, hooks=[ask_before("pay", reason=more.pop("reason", None))], **more)


def _in_a_block() -> None:
    with stopcause.run("ticket-agent"):
        _payer()("Go.")


def _answered(answer: str) -> None:
    made = _payer(then=[say()])
    made(answers(made("Go."), answer))


def _tool_asks(*, is_answered: bool) -> None:
    made = agent(call("ask"), say(), tools=[ask])
    result = made("Go.")
    if is_answered:
        made(answers(result, "canary-7f3a"))


def _two_at_once() -> None:
    made = agent(
        call("pay")._replace(calls=(("pay", "call-1", {}), ("look_up", "call-2", {}))),
        hooks=[ask_before("pay"), ask_before("look_up")], tools=[pay, look_up],
    )  # fmt: skip
    made("Go.")


def _new_prompt() -> None:
    made = _payer()
    made("Go.")
    failing(lambda: made("Something else."))


def _answered_again() -> None:
    """The hook that asked fails once it has the answer; the same answer is given again."""
    failures = [ValueError("canary-7f3a")]

    def callback(event: Any) -> None:
        event.interrupt("approval")
        if failures:
            raise failures.pop()

    made = agent(call("pay"), say(), hooks=[answers_with(BeforeToolCallEvent, callback)])
    result = made("Go.")
    failing(lambda: made(answers(result)))
    made(answers(result))


def _answered_in_a_block() -> None:
    made = _payer(then=[say()])
    result = made("Go.")
    with stopcause.run("desk"):
        made(answers(result))


def _wrong_answer() -> None:
    made = _payer()
    made("Go.")
    failing(lambda: made([{"interruptResponse": {"interruptId": "v1:none", "response": "y"}}]))


def _other_process() -> None:
    """The same session in a new agent object, as after a restart."""
    folder = tempfile.mkdtemp()

    def made(*turns: Any) -> Agent:
        manager = FileSessionManager("session-1", storage_dir=folder)
        return agent(*turns, hooks=[ask_before("pay")], session_manager=manager)

    result = made(call("pay", amount=5))("Go.")
    made(say())(answers(result))


def _tool_fails_after_yes() -> None:
    made = agent(call("breaks"), say(), hooks=[ask_before("breaks")])
    made(answers(made("Go.")))


def _vended(answer: str) -> None:
    """The framework's own handler, which asks before every call."""
    from strands.vended_interventions.hitl import HumanInTheLoop  # noqa: PLC0415 - not in 1.16

    made = agent(call("pay"), say(), interventions=[HumanInTheLoop()])
    made(answers(made("Go."), answer))


def _sub_agent(*, is_answered: bool) -> None:
    expert = agent(call("pay"), say(), name="expert", hooks=[ask_before("pay")])
    made = agent(call("expert", "call-9", input="Pay."), say(), tools=[expert.as_tool()])
    result = made("Go.")
    if is_answered:
        made(answers(result))


def _before_tools() -> None:
    from strands.hooks import BeforeToolsEvent  # noqa: PLC0415 - not in 1.16

    agent(call("pay"), hooks=[answers_with(BeforeToolsEvent, lambda event: event.interrupt("sure"))])("Go.")


def _checkpoint(*, is_resumed: bool, **more: Any) -> None:
    made = agent(call(), say(), **_checkpointing(), **more)
    result = made("Go.")
    while is_resumed and result.stop_reason == "checkpoint":
        result = made({"checkpointResume": {"checkpoint": result.checkpoint.to_dict()}})


def _checkpointing() -> dict[str, Any]:
    return {"checkpointing": True}


def _run(made: Callable[[], Agent]) -> Callable[[], Any]:
    return lambda: made()("Go.")


PATHS = [
    Path_(
        "approval",
        "A hook asks before a call; nobody is named who answers.",
        ("WAITING_UNROUTED", "owner"),
        _run(_payer),
    ),
    Path_(
        "approval-in-a-block",
        "An agent in the host's own block waits, so the block's run does.",
        ("WAITING_UNROUTED", "owner"),
        _in_a_block,
    ),
    Path_(
        "approval-live",
        "Somebody answers, but only the live agent keeps the state: nothing names it.",
        ("WAITING_UNROUTED", "resume_token"),
        _run(_payer),
        ROUTED,
    ),
    Path_(
        "approval-routed",
        "Owner and deadline from the route, the session names the paused state.",
        ("WAITING", "tool_call"),
        _run(lambda: _payer(session_manager=_session())),
        ROUTED,
    ),
    Path_(
        "approval-keys",
        "Owner and deadline are in the interrupt's reason, under keys that are allowed.",
        ("WAITING", "tool_call"),
        _run(
            lambda: _payer(
                session_manager=_session(),
                reason={
                    "who": "finance",
                    "until": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
                    "text": "canary-7f3a",
                },
            )
        ),
        {"approval_keys": {"owner": "who", "deadline": "until"}},
    ),
    Path_(
        "approval-overdue",
        "Routed, and nobody answered in time.",
        ("WAITING_UNROUTED", "overdue"),
        _run(lambda: _payer(session_manager=_session())),
        ROUTED,
        after_s=7200,
    ),
    Path_(
        "approved",
        "The answer was yes; the run that waited is resolved by the one that took it up.",
        ("WAITING", "answered"),
        lambda: _answered("y"),
        ROUTED,
    ),
    Path_(
        "approved-resumed",
        "After a yes the run that took it up finished.",
        UNPROVEN,
        lambda: _answered("y"),
        ROUTED,
        judged=1,
    ),
    Path_(
        "denied",
        "The answer was no: the call was cancelled and did not run.",
        ("WAITING", "answered"),
        lambda: _answered("n"),
        ROUTED,
    ),
    Path_(
        "denied-resumed",
        "After a no the model went on and finished: what was asked for is not done.",
        ("FALSE_COMPLETE", "denied"),
        lambda: _answered("n"),
        ROUTED,
        judged=1,
    ),
    Path_(
        "tool-asks", "A tool asks for an answer.", ("WAITING_UNROUTED", "owner"), lambda: _tool_asks(is_answered=False)
    ),
    Path_(
        "tool-answered",
        "A tool asked; the answer came, and the tool went on with it.",
        ("WAITING", "answered"),
        lambda: _tool_asks(is_answered=True),
    ),
    Path_("two-at-once", "Two calls of one turn, both wait.", ("WAITING_UNROUTED", "owner"), _two_at_once),
    Path_(
        "new-prompt",
        "Something else was asked while it waits: that is refused.",
        ("FAILED", "input_rejected"),
        _new_prompt,
        judged=1,
    ),
    Path_(
        "new-prompt-waits",
        "Something else was asked while it waits: the wait is still open.",
        ("WAITING_UNROUTED", "resume_token"),
        _new_prompt,
        ROUTED,
    ),
    Path_(
        "wrong-answer",
        "An answer to something that was not asked is refused.",
        ("FAILED", "input_rejected"),
        _wrong_answer,
        judged=1,
    ),
    Path_(
        "other-process", "A new agent object resumes from the session.", ("WAITING", "answered"), _other_process, ROUTED
    ),
    Path_(
        "fails-after-yes",
        "Approved, and the tool then failed; the model was told.",
        ("WAITING", "answered"),
        _tool_fails_after_yes,
    ),
    Path_(
        "human-in-the-loop",
        "The framework's own handler asked, and the answer was yes.",
        ("WAITING", "answered"),
        lambda: _vended("y"),
        ROUTED,
    ),
    Path_(
        "human-in-the-loop-no",
        "The framework's own handler asked; after a no the model went on and finished.",
        ("FALSE_COMPLETE", "denied"),
        lambda: _vended("n"),
        ROUTED,
        judged=1,
    ),
    Path_(
        "sub-agent-asks",
        "The agent that is a tool asks, so its parent waits.",
        ("WAITING_UNROUTED", "resume_token"),
        lambda: _sub_agent(is_answered=False),
        ROUTED,
    ),
    Path_(
        "sub-agent-answered",
        "The answer goes through the parent to the child.",
        ("WAITING", "answered"),
        lambda: _sub_agent(is_answered=True),
        ROUTED,
    ),
    Path_(
        "answered-again",
        "What the answer resumed failed before the call; the same answer again let it run.",
        ("WAITING", "answered"),
        _answered_again,
    ),
    Path_(
        "answered-in-a-block",
        "A block of the program's own brings the answer: it is told all the same.",
        ("WAITING", "answered"),
        _answered_in_a_block,
    ),
    Path_("before-tools", "A hook asks before the whole batch of calls.", ("WAITING_UNROUTED", "owner"), _before_tools),
    Path_(
        "checkpoint",
        "A durable pause that nobody continues.",
        ("WAITING_UNROUTED", "owner"),
        lambda: _checkpoint(is_resumed=False),
    ),
    Path_(
        "checkpoint-routed",
        "A durable pause in a session, and somebody continues it.",
        ("WAITING", "external"),
        lambda: _checkpoint(is_resumed=False, session_manager=_session()),
        ROUTED,
    ),
    Path_(
        "checkpoint-continued",
        "Each durable pause is taken up by the next run.",
        ("WAITING", "answered"),
        lambda: _checkpoint(is_resumed=True),
    ),
    Path_(
        "checkpoint-finished",
        "The last run of a chain of durable pauses finished.",
        UNPROVEN,
        lambda: _checkpoint(is_resumed=True),
        judged=2,
    ),
]
