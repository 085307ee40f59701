"""Plain workflows: they finish, fail, are tried again, run out of time, and run inside each other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import stopcause
from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.models import Scripted as Model
from tests.frameworks.llama_index.models import Turn, agent, failing, say, settles
from tests.frameworks.llama_index.paths_agents import ABORTED, UNPROVEN, TooMany

Run = Callable[[], Awaitable[Any]]


def runs(kind: type, timeout: float | None = 5, *, sets: dict[str, Any] | None = None, **given: Any) -> Run:
    """Runs a workflow, and lets go of what it raises."""

    async def run() -> None:
        with contextlib.suppress(Exception):
            await _made(kind, timeout, sets or {}).run(**given)

    return run


def _made(kind: type, timeout: float | None, sets: dict[str, Any]) -> Any:
    made = kind(timeout=timeout)
    for name, value in sets.items():
        setattr(made, name, value)
    return made


def _asks(*turns: Turn) -> Run:
    return runs(flows.Asks, sets={"model": Model(turns)})


def _outer(inner: Callable[[], Any], timeout: float | None = 5) -> Run:
    return runs(flows.Outer, timeout, sets={"inner": inner})


def _inner(kind: type, timeout: float | None = 5, **given: Any) -> Callable[[], Any]:
    return lambda: _made(kind, timeout, {}).run(**given)


async def _cancel_run() -> None:
    handler = flows.OneSlow(timeout=5).run()
    await settles()
    await handler.cancel_run()
    await failing(handler)


async def _hard_cancel() -> None:
    """`handler.cancel()`, deprecated: the task itself is cancelled."""
    handler = flows.OneSlow(timeout=5).run()
    await settles()
    handler.cancel()
    await settles()


async def _one_at_a_time() -> None:
    made = flows.Two(timeout=5, num_concurrent_runs=1)
    await asyncio.gather(made.run(), made.run())


async def _in_a_block(kind: type) -> None:
    async with stopcause.run("ticket-flow"):
        await kind(timeout=5).run()


async def _caught() -> None:
    """A handler of the program's recovers a step's failure."""
    from tests.frameworks.llama_index.flows_new import Catches  # noqa: PLC0415 - not in 2.10

    await Catches(timeout=5).run()


PATHS = [
    Path_("flow", "Two steps, and the result; nobody looked at the destination.", UNPROVEN, runs(flows.Two)),
    Path_("flow-own-result", "The event that ends it is one of the program's own.", UNPROVEN, runs(flows.Reports)),
    Path_("flow-nothing", "It ended with nothing.", ("FALSE_COMPLETE", "empty_output"), runs(flows.Nothing)),
    Path_("flow-in-thread", "A step that is a plain function.", UNPROVEN, runs(flows.InThread)),
    Path_("flow-parallel", "Three pieces beside each other, collected.", UNPROVEN, runs(flows.Gathers)),
    Path_(
        "flow-in-a-block",
        "The host's own block and the workflow in it are one run.",
        UNPROVEN,
        lambda: _in_a_block(flows.Two),
    ),
    Path_(
        "flow-one-at-a-time", "Two runs of a workflow that allows one at a time.", UNPROVEN, _one_at_a_time, judged=1
    ),
    Path_("flow-calls-model", "A step calls a model directly.", UNPROVEN, _asks(say())),
    Path_(
        "flow-model-recovered",
        "The model failed once; the step was tried again.",
        UNPROVEN,
        _asks(Turn(error=TooMany("canary-7f3a")), say()),
    ),
    Path_(
        "flow-model-fails",
        "The model failed as often as the step is tried.",
        ("FAILED", "quota"),
        _asks(Turn(error=TooMany("canary-7f3a")), Turn(error=TooMany("canary-7f3a"))),
    ),
    Path_("flow-fails", "A step raised, and nothing recovered it.", ("FAILED", "host_error"), runs(flows.Fails)),
    Path_(
        "flow-retried",
        "A step raised twice; the third try came through.",
        UNPROVEN,
        runs(flows.Retries, sets={"failures": 2}),
    ),
    Path_(
        "flow-retries-exhausted",
        "A step raised as often as it is tried.",
        ("FAILED", "host_error"),
        runs(flows.Retries),
    ),
    Path_("flow-caught", "A step of the program's took the failure of another, and ended the run.", UNPROVEN, _caught),
    Path_("flow-no-event", "A step gave back what is no event.", ("FAILED", "host_error"), runs(flows.NoEvent)),
    Path_(
        "flow-invalid",
        "The workflow itself is wrong: an event that nobody makes.",
        ("FAILED", "host_error"),
        runs(flows.Unmade),
    ),
    Path_("flow-bad-start", "What it needs was not given: refused.", ("FAILED", "input_rejected"), runs(flows.Wants)),
    Path_(
        "flow-no-start-event",
        "What was given as the start event is none: refused.",
        ("FAILED", "input_rejected"),
        runs(flows.Two, start_event=42),
    ),
    Path_("flow-timeout", "Its time was over with nothing done.", ("STUCK", "time_limit"), runs(flows.OneSlow, 0.1)),
    Path_(
        "flow-timeout-with-progress",
        "Its time was over after a step was done.",
        ("BOUNDED_STOP", "time_limit"),
        runs(flows.Two, 0.1, pause=5),
    ),
    Path_("flow-cancel-run", "The program called handler.cancel_run().", ABORTED, _cancel_run),
    Path_("flow-hard-cancel", "The program called the deprecated handler.cancel().", ABORTED, _hard_cancel),
    Path_("flow-child", "A step runs another workflow: its run is a child.", UNPROVEN, _outer(_inner(flows.Two))),
    Path_(
        "flow-child-agent",
        "A step runs an agent: its run is a child.",
        UNPROVEN,
        _outer(lambda: agent(say()).run(user_msg="Go.")),
    ),
    Path_(
        "flow-child-fails",
        "A child's step raised, which ends the parent too.",
        ("FAILED", "host_error"),
        _outer(_inner(flows.Fails)),
    ),
    Path_(
        "flow-child-model-fails",
        "A child's model failed, which ends the parent too.",
        ("FAILED", "model_failure"),
        _outer(lambda: agent(Turn(error=Scripted("canary-7f3a"))).run(user_msg="Go.")),
    ),
    Path_(
        "flow-child-timeout",
        "A child's time was over, which ends the parent too.",
        ("STUCK", "time_limit"),
        _outer(_inner(flows.OneSlow, 0.1)),
    ),
    Path_(
        "flow-parent-timeout",
        "The parent's time was over, which ends its child: the child is judged.",
        ABORTED,
        _outer(_inner(flows.OneSlow), 0.1),
        judged=1,
    ),
]
