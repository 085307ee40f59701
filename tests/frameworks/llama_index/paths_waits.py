"""Waits: a question that a step returns, or that a step or a tool waits for; answered, expired, kept, resumed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from llama_index.core.workflow import JsonPickleSerializer
from workflows import Context
from workflows.events import HumanResponseEvent

import stopcause
from tests.frameworks.harness import Path_
from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.models import agent, asked_of, call, failing, say, settles
from tests.frameworks.llama_index.paths_agents import ABORTED, UNPROVEN

Run = Callable[[], Awaitable[Any]]
Make = Callable[[float | None], Any]
EXPIRED = ("STUCK", "approval_expired")
ROUTED = {"route": {"owner": "finance", "due_s": 3600}}
NAMED = {"approval_keys": {"owner": "who", "resume_token": "token"}}


def _clerk(timeout: float | None) -> Any:
    return agent(call("ask"), say(), timeout=timeout)


def _handler(made: Any) -> Any:
    return made.run(**({"user_msg": "Go."} if hasattr(made, "llm") else {}))


def _answer(handler: Any, **given: Any) -> None:
    handler.ctx.send_event(HumanResponseEvent(response="canary-7f3a", **given))


def answered(make: Make, **given: Any) -> Run:
    """Somebody answers, in time."""

    async def run() -> None:
        handler = _handler(make(5))
        await asked_of(handler)
        _answer(handler, **given)
        with contextlib.suppress(Exception):
            await handler

    return run


def expires(make: Make, timeout: float | None = 0.3) -> Run:
    """Nobody answers, and something's time is over."""

    async def run() -> None:
        with contextlib.suppress(Exception):
            await _handler(make(timeout))

    return run


def cancelled(make: Make) -> Run:
    """Nobody answers, and the program gives up."""

    async def run() -> None:
        handler = _handler(make(5))
        await asked_of(handler)
        await handler.cancel_run()
        await failing(handler)

    return run


async def _keeps(handler: Any) -> Any:
    """The paused state, as a program would store it. That of an agent has its memory in it, which JSON cannot hold."""
    await asked_of(handler)
    return json.loads(json.dumps(handler.ctx.to_dict(serializer=JsonPickleSerializer())))


def _restored(made: Any, state: Any) -> Any:
    return made.run(ctx=Context.from_dict(made, state, serializer=JsonPickleSerializer()))


def kept(make: Make, *, is_cancelled: bool = True, timeout: float | None = 5) -> Run:
    """The program takes the paused state, and ends the run, or lets it die."""

    async def run() -> None:
        handler = _handler(make(timeout))
        await _keeps(handler)
        if is_cancelled:
            await handler.cancel_run()
        await failing(handler)

    return run


def resumed(make: Make, **given: Any) -> Run:
    """Another run goes on from the state, and gets the answer."""

    async def run() -> None:
        first = make(5)
        handler = _handler(first)
        state = await _keeps(handler)
        await handler.cancel_run()
        handler = _restored(first, state)
        await settles()
        _answer(handler, **given)
        with contextlib.suppress(Exception):
            await handler

    return run


def resumed_and_waits(make: Make) -> Run:
    """Another run goes on from the state, and nobody answers that one either."""

    async def run() -> None:
        first = make(0.4)
        handler = _handler(first)
        state = await _keeps(handler)
        await handler.cancel_run()
        with contextlib.suppress(Exception):
            await _restored(first, state)

    return run


_left: list[tuple[asyncio.AbstractEventLoop, Any]] = []


def stands_still(make: Make) -> Callable[[], None]:
    """It waits, and its process does nothing more: what an operator sees of it meanwhile, or after a crash."""

    def run() -> None:
        loop = asyncio.new_event_loop()
        handler = loop.run_until_complete(_begun(make))
        loop.run_until_complete(asked_of(handler))
        _left.append((loop, handler))

    return run


async def _begun(make: Make) -> Any:
    return _handler(make(3600))


def let_go() -> None:
    """Ends what stood still."""
    while _left:
        loop, handler = _left.pop()
        loop.run_until_complete(handler.cancel_run())
        loop.run_until_complete(failing(handler))
        loop.close()


async def _elsewhere() -> None:
    """A state that this process has not seen being kept, as after a restart."""
    made = flows.WaitsFor(timeout=5)
    handler = made.run()
    state = await _keeps(handler) | {"note": "of the program's own"}
    await handler.cancel_run()
    handler = _restored(made, state)
    await settles()
    _answer(handler)
    await handler


async def _gives_up_after(seconds: float) -> None:
    made = flows.WaitsFor(timeout=5)
    made.seconds = seconds
    await failing(made.run())


async def _two(*answers: int) -> None:
    handler = flows.WaitsTwice(timeout=0.4).run()
    await asked_of(handler)
    for number in answers:
        _answer(handler, n=number)
    with contextlib.suppress(Exception):
        await handler


async def _system() -> None:
    handler = flows.WaitsForSystem(timeout=5).run()
    await settles()
    handler.ctx.send_event(flows.Arrived(job="canary-7f3a"))
    await handler


async def _in_a_block() -> None:
    with contextlib.suppress(Exception):
        async with stopcause.run("ticket-flow"):
            await flows.Required(timeout=0.3).run()


async def _timer_in_a_block() -> None:
    with contextlib.suppress(TimeoutError):
        async with stopcause.run("ticket-flow"), asyncio.timeout(0.2):
            await flows.Required(timeout=5).run()


def _required(timeout: float | None) -> Any:
    return flows.Required(timeout=timeout)


def _waits_for(timeout: float | None) -> Any:
    return flows.WaitsFor(timeout=timeout)


async def _late() -> None:
    handler = flows.Required(timeout=0.3).run()
    await asked_of(handler)
    _answer(handler, pause=5)
    await failing(handler)


async def _released() -> None:
    """As a server lets go of a run that is idle: its store keeps the state."""
    from workflows.runtime.types.ticks import TickIdleRelease  # noqa: PLC0415 - not in 2.10

    handler = flows.Required(timeout=5).run()
    await asked_of(handler)
    await handler._external_adapter.send_event(TickIdleRelease())
    await handler


PATHS = [
    Path_(
        "released",
        "A server let go of a run that waits; its store keeps the state.",
        ("WAITING_UNROUTED", "owner"),
        _released,
    ),
    Path_(
        "required",
        "A step returned a question; the run is open, and waits.",
        ("WAITING_UNROUTED", "owner"),
        stands_still(_required),
    ),
    Path_(
        "required-routed",
        "The same, with somebody named who answers; only the live process can take the answer.",
        ("WAITING_UNROUTED", "resume_token"),
        stands_still(_required),
        ROUTED,
    ),
    Path_(
        "required-named",
        "The question names who answers and what resumes it, under keys that are allowed.",
        ("WAITING", "input_required"),
        stands_still(_required),
        {**ROUTED, **NAMED},
    ),
    Path_(
        "waiter-overdue",
        "A step waits in its middle, and nobody answered in time.",
        ("WAITING_UNROUTED", "overdue"),
        stands_still(lambda _: flows.WaitsFor(timeout=None)),
        {**ROUTED, **NAMED},
        after_s=7200,
    ),
    Path_(
        "waiter",
        "A step waits in its middle; the run is open.",
        ("WAITING_UNROUTED", "owner"),
        stands_still(_waits_for),
    ),
    Path_("required-answered", "A step returned a question, and somebody answered it.", UNPROVEN, answered(_required)),
    Path_(
        "required-expired",
        "Nobody answered; the workflow's own time limit ended the wait, at a moment that was known.",
        EXPIRED,
        expires(_required),
    ),
    Path_("required-expired-routed", "The same, with somebody named who answers.", EXPIRED, expires(_required), ROUTED),
    Path_("required-cancelled", "The program ended the run that waits.", ABORTED, cancelled(_required)),
    Path_(
        "required-fails-after",
        "Answered, and the step that took the answer raised.",
        ("FAILED", "host_error"),
        answered(_required, fails=True),
    ),
    Path_(
        "required-late-after",
        "Answered, and then the time was over while a step ran.",
        ("STUCK", "time_limit"),
        _late,
    ),
    Path_(
        "written-expired",
        "A question that is only written to the stream; its answer is a step's.",
        EXPIRED,
        expires(lambda limit: flows.Written(timeout=limit)),
    ),
    Path_(
        "waiter-answered",
        "A step waited in its middle; it was called again with the answer.",
        UNPROVEN,
        answered(_waits_for),
    ),
    Path_(
        "waiter-expired",
        "A step waited in its middle until the workflow's time was over.",
        EXPIRED,
        expires(_waits_for),
    ),
    Path_(
        "waiter-gave-up",
        "The wait's own time was over, which ended the run as the program wanted.",
        ("BOUNDED_STOP", "approval_expired"),
        lambda: _gives_up_after(0.1),
    ),
    Path_(
        "waiter-went-on",
        "The wait's own time was over, and the step went on without the answer.",
        UNPROVEN,
        expires(lambda limit: flows.GivesUp(timeout=limit), 5),
    ),
    Path_("system-arrived", "Another system sent what was waited for.", UNPROVEN, _system),
    Path_(
        "system-never",
        "Another system did not send it in time.",
        EXPIRED,
        expires(lambda limit: flows.WaitsForSystem(timeout=limit)),
    ),
    Path_("two-answered", "Two steps wait at once, and both have their answers.", UNPROVEN, lambda: _two(1, 2)),
    Path_("two-one-answered", "Two steps wait at once; one has no answer.", EXPIRED, lambda: _two(1)),
    Path_(
        "wait-in-a-block", "A workflow in the host's own block waits, so the block's run does.", EXPIRED, _in_a_block
    ),
    Path_(
        "wait-timed-out-in-a-block",
        "The host's own timer ended the wait: nothing had been reached.",
        ("STUCK", "time_limit"),
        _timer_in_a_block,
    ),
    # Kept
    Path_(
        "kept",
        "The program took the paused state and ended the run; nobody is named who answers.",
        ("WAITING_UNROUTED", "owner"),
        kept(_required),
    ),
    Path_(
        "kept-routed",
        "Somebody answers, but what names the kept state only the program knows.",
        ("WAITING_UNROUTED", "resume_token"),
        kept(_required),
        ROUTED,
    ),
    Path_(
        "kept-named",
        "The question names who answers and what resumes it, under keys that are allowed.",
        ("WAITING", "input_required"),
        kept(_waits_for),
        {**ROUTED, **NAMED},
    ),
    Path_(
        "kept-then-timeout",
        "The program took the paused state; that the run then dies does not end the wait.",
        ("WAITING_UNROUTED", "resume_token"),
        kept(_required, is_cancelled=False, timeout=0.3),
        ROUTED,
    ),
    Path_("kept-answered", "A run from the kept state got the answer.", ("WAITING", "answered"), resumed(_required)),
    Path_("kept-resumed", "The run from the kept state finished.", UNPROVEN, resumed(_required), judged=1),
    Path_(
        "kept-waiter-answered",
        "The same for a step that waits in its middle.",
        ("WAITING", "answered"),
        resumed(_waits_for),
    ),
    Path_("kept-waiter-resumed", "The run from the kept state finished.", UNPROVEN, resumed(_waits_for), judged=1),
    Path_(
        "kept-resumed-fails",
        "The run from the kept state failed after the answer.",
        ("FAILED", "host_error"),
        resumed(_required, fails=True),
        judged=1,
    ),
    Path_(
        "kept-waits-again",
        "The run from the kept state had no answer either.",
        EXPIRED,
        resumed_and_waits(_waits_for),
        judged=1,
    ),
    Path_(
        "kept-elsewhere",
        "A state that this process did not keep: the run stands for itself.",
        UNPROVEN,
        _elsewhere,
        judged=1,
    ),
    # Agents
    Path_("tool-asks-answered", "A tool asked a person, and went on with the answer.", UNPROVEN, answered(_clerk)),
    Path_("tool-asks-expired", "A tool asked a person; the agent's own time was over.", EXPIRED, expires(_clerk)),
    Path_(
        "tool-asks-kept",
        "A tool asked, and the program took the paused state.",
        ("WAITING_UNROUTED", "owner"),
        kept(_clerk),
    ),
    Path_("tool-asks-resumed", "The agent went on from the kept state.", UNPROVEN, resumed(_clerk), judged=1),
    Path_(
        "tool-asks-was-answered",
        "The agent from the kept state got the answer.",
        ("WAITING", "answered"),
        resumed(_clerk),
    ),
]
