"""Waits. smolagents has none: a tool says on the run that it asks, and a callback interrupts the loop.

The program keeps what it needs to go on, here under the name of a conversation, and says what was answered.
"""

from __future__ import annotations

from typing import Any

from smolagents import ActionStep, Tool, tool

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.smolagents.models import agent, call, code, coder, done, failing, helper, say
from tests.frameworks.smolagents.paths_ends import UNPROVEN

ROUTED = {"route": {"owner": "finance", "due_s": 3600}}
_TOKEN = "conversation-7"  # noqa: S105 - the name of a conversation


def refund(**wait: Any) -> Tool:
    """A tool that asks first."""

    @tool
    def refund(amount: int) -> str:
        """Refunds.

        Args:
            amount: how much.
        """
        run = stopcause.current_run()
        assert run is not None
        known: dict[str, Any] = {"tool": "refund", "resume_token": _TOKEN, "resumable": True}
        run.waiting("refund-7", **known | wait)
        return f"Somebody has to agree to {amount} first."

    return refund


@tool
def carry_out(amount: int) -> str:
    """Refunds what was agreed to.

    Args:
        amount: how much.
    """
    run = stopcause.current_run()
    assert run is not None
    run.executed("refund-7")
    return f"refunded {amount}"


def _stops(_: Any, agent: Any) -> None:
    run = stopcause.current_run()
    if run is not None and run.waits:
        agent.interrupt()


def _asks(*, is_code: bool = False, **wait: Any) -> None:
    more: dict[str, Any] = {"tools": [refund(**wait)], "step_callbacks": {ActionStep: _stops}}
    made = coder(code("refund(5)"), **more) if is_code else agent(call("refund", amount=5), **more)
    failing(lambda: made.run("Refund it."))


def _asks_and_ends() -> None:
    agent(call("refund", amount=5), done(), tools=[refund()]).run("Refund it.")


def _asks_at_the_limit() -> None:
    """The loop ends before it looks whether it was interrupted; its model has to answer once more."""
    more: dict[str, Any] = {"tools": [refund()], "step_callbacks": {ActionStep: _stops}, "max_steps": 1}
    agent(call("refund", amount=5), say(), **more).run("Refund it.")


def _asks_in_a_block() -> None:
    with stopcause.run("ticket-agent"):
        _asks()


def _managed_asks() -> None:
    """The agent that is called waits; the one that called it was told of an error, and went on."""
    child = helper(call("refund", amount=5), tools=[refund()], step_callbacks={ActionStep: _stops})
    agent(call("helper", task="x", additional_args={}), done(), managed_agents=[child]).run("Refund it.")


def _answered(decision: str) -> None:
    """Another run takes it up, with the answer that came meanwhile."""
    with stopcause.run("ticket-agent") as waited:
        _asks()
    turns = (call("carry_out", amount=5), done()) if decision == "approved" else (done(),)
    with stopcause.run("ticket-agent", resumes=waited.run_id, answers={"refund-7": decision}):
        agent(*turns, tools=[carry_out]).run("Go on.")


def _decided_here() -> None:
    """Somebody answers while the tool waits for it: the run went on."""

    @tool
    def pay_out(amount: int) -> str:
        """Pays.

        Args:
            amount: how much.
        """
        run = stopcause.current_run()
        assert run is not None
        run.waiting("refund-8", tool="pay_out", at_once=True)
        run.decided("refund-8", "approved")
        run.executed("refund-8")
        return f"paid {amount}"

    agent(call("pay_out", amount=5), done(), tools=[pay_out]).run("Refund it.")


PATHS = [
    Path_(
        "asks",
        "A tool asked, and a callback stopped the loop for it; nobody is named who answers.",
        ("WAITING_UNROUTED", "owner"),
        _asks,
    ),
    Path_(
        "asks-routed",
        "A tool asked, a callback stopped the loop, and somebody answers.",
        ("WAITING", "tool_call"),
        _asks,
        ROUTED,
    ),
    Path_(
        "asks-routed-in-code",
        "Code asked, in its thread; a callback stopped the loop, and somebody answers.",
        ("WAITING", "tool_call"),
        lambda: _asks(is_code=True),
        ROUTED,
    ),
    Path_(
        "asks-for-an-answer",
        "A tool needs an answer, not a yes.",
        ("WAITING", "input_required"),
        lambda: _asks(kind="input_required"),
        ROUTED,
    ),
    Path_(
        "asks-overdue",
        "Routed, and nobody answered in time.",
        ("WAITING_UNROUTED", "overdue"),
        _asks,
        ROUTED,
        after_s=7200,
    ),
    Path_(
        "asks-kept-nowhere",
        "Routed, but the program keeps nothing to go on with.",
        ("WAITING_UNROUTED", "resume_token"),
        lambda: _asks(resume_token=None, resumable=False),
        ROUTED,
    ),
    Path_(
        "asks-and-ends",
        "A tool asked, and the model said done meanwhile: what was asked for is still open.",
        ("WAITING_UNROUTED", "owner"),
        _asks_and_ends,
    ),
    Path_(
        "asks-at-the-limit",
        "A tool asked in the last step allowed: the answer that was forced then is none to what was asked.",
        ("WAITING", "tool_call"),
        _asks_at_the_limit,
        ROUTED,
    ),
    Path_(
        "managed-asks",
        "The agent that it called waits, of which it knows nothing: so it waits as well.",
        ("WAITING_UNROUTED", "owner"),
        _managed_asks,
        ROUTED,
    ),
    Path_(
        "managed-waits",
        "The agent that it called waits, and is judged.",
        ("WAITING", "tool_call"),
        _managed_asks,
        ROUTED,
        judged=1,
    ),
    Path_("asks-in-a-block", "The block's run waits.", ("WAITING_UNROUTED", "owner"), _asks_in_a_block),
    Path_(
        "answered",
        "It was approved, and another run took it up.",
        ("WAITING", "answered"),
        lambda: _answered("approved"),
    ),
    Path_(
        "answered-resumed",
        "After a yes the run that took it up finished.",
        UNPROVEN,
        lambda: _answered("approved"),
        judged=1,
    ),
    Path_(
        "denied-resumed",
        "After a no the model finished: what was asked for is not done.",
        ("FALSE_COMPLETE", "denied"),
        lambda: _answered("denied"),
        judged=1,
    ),
    Path_("decided-meanwhile", "Somebody said yes while the tool waited.", UNPROVEN, _decided_here),
]
