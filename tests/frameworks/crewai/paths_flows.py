"""Flows: what they run inside, and how they end without waiting for anybody."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from crewai.state.checkpoint_config import CheckpointConfig

import stopcause
from tests.frameworks.crewai.flows import Failing, Looping, Mixed, Plain, Raising, Waits
from tests.frameworks.crewai.models import failing
from tests.frameworks.crewai.paths_ends import UNPROVEN
from tests.frameworks.harness import Path_


async def _natively() -> None:
    await Plain().akickoff()


async def _plainly_in_a_loop() -> None:
    """Then CrewAI runs it in a thread with a loop of its own."""
    Plain().kickoff()


def _streamed() -> None:
    flow = Plain()
    flow.stream = True
    list(flow.kickoff())


def _with_id() -> None:
    Plain().kickoff(inputs={"id": "ticket-7", "note": "canary-7f3a"})


def _from_checkpoint() -> None:
    """The restored flow is another object, which the first one's call hands on to."""
    folder = tempfile.mkdtemp()
    Plain().kickoff(from_checkpoint=CheckpointConfig(location=folder, on_events=["flow_started"]))
    (kept,) = [file for file in Path(folder).rglob("*") if file.is_file()]
    Plain().kickoff(from_checkpoint=CheckpointConfig(location=folder, restore_from=str(kept)))


def _in_a_block() -> None:
    with stopcause.run("desk"):
        Mixed().kickoff()


async def _cancelled() -> None:
    running = asyncio.create_task(Waits().kickoff_async())
    await asyncio.sleep(0.15)
    running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        return
    raise AssertionError("it was to raise")


def _loops() -> None:
    failing(Looping(max_method_calls=3).kickoff)


def _resumed_without() -> None:
    failing(Plain().resume)


PATHS = [
    Path_("flow", "A flow ran out of methods to call.", UNPROVEN, lambda: Plain().kickoff()),
    Path_("flow-async", "The same by its coroutine.", UNPROVEN, _natively),
    Path_("flow-in-a-loop", "The plain call inside of an event loop.", UNPROVEN, _plainly_in_a_loop),
    Path_("flow-streamed", "The same as a stream, read to its end.", UNPROVEN, _streamed),
    Path_("flow-with-id", "The program gives the flow's id, which is its thread.", UNPROVEN, _with_id),
    Path_("flow-from-checkpoint", "A flow begins from a checkpoint: one run.", UNPROVEN, _from_checkpoint, judged=1),
    Path_(
        "flow-mixed",
        "A crew and an agent inside are children; a model asked directly is the flow's.",
        UNPROVEN,
        lambda: Mixed().kickoff(),
    ),
    Path_("flow-crew", "The crew inside of a flow.", UNPROVEN, lambda: Mixed().kickoff(), judged=1),
    Path_("flow-agent", "The agent inside of a flow, awaited there.", UNPROVEN, lambda: Mixed().kickoff(), judged=2),
    Path_("flow-in-a-block", "The flow is the run of the host's own block.", UNPROVEN, _in_a_block),
    Path_(
        "flow-fails-by-crew",
        "A crew inside failed, and its exception left the flow: both say why.",
        ("FAILED", "model_failure"),
        lambda: failing(Failing().kickoff),
    ),
    Path_(
        "flow-handles",
        "A crew inside failed, and the flow went on.",
        UNPROVEN,
        lambda: Failing(is_handled=True).kickoff(),
    ),
    Path_(
        "flow-raises",
        "A method of the program's own raised.",
        ("FAILED", "host_error"),
        lambda: failing(Raising().kickoff),
    ),
    Path_("flow-loops", "A method was called as often as allowed.", ("BOUNDED_STOP", "step_limit"), _loops),
    Path_(
        "flow-cancelled", "Its task was cancelled while a crew worked.", ("BOUNDED_STOP", "caller_abort"), _cancelled
    ),
    Path_(
        "flow-resumed-without",
        "A flow that waits for nothing is resumed: refused.",
        ("FAILED", "input_rejected"),
        _resumed_without,
    ),
]
