"""Workflows: graphs and functions, with agents and workflows in them; their waits, checkpoints and failures.

The oldest version reads the annotations of executors as they are, so they are no texts here.
"""

import asyncio
import contextlib
import importlib
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any, Never

from agent_framework import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)

import stopcause
from tests.frameworks.agent_framework.models import Turn, agent, call, failing, read, say
from tests.frameworks.agent_framework.paths_ends import UNPROVEN
from tests.frameworks.agent_framework.paths_faults import ABORTED, ServiceDown
from tests.frameworks.agent_framework.paths_waits import ANSWERED, OPEN, ROUTED
from tests.frameworks.harness import Path_, Scripted


class Passes(Executor):
    """Hands on what it gets."""

    @handler
    async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)


class Ends(Executor):
    """Gives what it gets as the output."""

    @handler
    async def take(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text)


class Breaks(Executor):
    """Raises."""

    @handler
    async def take(self, text: str, _: WorkflowContext[str]) -> None:
        raise Scripted(text)


class Dawdles(Executor):
    """Tells that it has begun, and takes longer than anybody waits."""

    def __init__(self, begun: Any) -> None:
        super().__init__(id="dawdles")
        self._begun = begun

    @handler
    async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
        self._begun()
        await asyncio.sleep(5)
        await ctx.send_message(text)


class Asks(Executor):
    """Asks a person, and gives the answer as the output."""

    @handler
    async def take(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.request_info(text, str, request_id="question-1")

    @response_handler
    async def taken(self, _: str, reply: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(reply)


class AsksBy(Executor):
    """Asks with the names of those who answer."""

    @handler
    async def take(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        await ctx.request_info({"who": "finance", "until": until, "note": text}, str, request_id="question-1")

    @response_handler
    async def taken(self, _: dict[str, str], reply: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(reply)


def graph(*executors: Any, **more: Any) -> Workflow:
    """A chain of executors."""
    builder = WorkflowBuilder(name="desk", start_executor=executors[0], **more)
    for before, after in itertools.pairwise(executors):
        builder.add_edge(before, after)
    return builder.build()


def _two() -> Workflow:
    return graph(Passes(id="passes"), Ends(id="ends"))


def _loop() -> Workflow:
    first, second = Passes(id="first"), Passes(id="second")
    return (
        WorkflowBuilder(name="desk", start_executor=first, max_iterations=3)
        .add_edge(first, second)
        .add_edge(second, first)
        .build()
    )


def _asks(**more: Any) -> Workflow:
    return graph(Asks(id="asks"), **more)


async def _answered() -> None:
    workflow = _asks()
    await workflow.run("Go.")
    await workflow.run(responses={"question-1": "canary-7f3a"})


async def _answered_from_checkpoint() -> None:
    """In a workflow object of its own, as after a restart."""
    storage = InMemoryCheckpointStorage()
    await _asks(checkpoint_storage=storage).run("Go.")
    last = await storage.get_latest(workflow_name="desk")
    await _asks(checkpoint_storage=storage).run(
        checkpoint_id=last.checkpoint_id, responses={"question-1": "canary-7f3a"}
    )


async def _kept() -> None:
    await _asks().run("Go.", checkpoint_storage=InMemoryCheckpointStorage())


async def _asks_by_keys() -> None:
    await graph(AsksBy(id="asks"), checkpoint_storage=InMemoryCheckpointStorage()).run("canary-7f3a")


async def _restored() -> None:
    """Nothing is answered: it is taken up again where it was, and waits again."""
    storage = InMemoryCheckpointStorage()
    await _asks(checkpoint_storage=storage).run("Go.")
    last = await storage.get_latest(workflow_name="desk")
    await _asks(checkpoint_storage=storage).run(checkpoint_id=last.checkpoint_id)


async def _inner_answered() -> None:
    workflow = graph(WorkflowExecutor(_asks(), id="inner", propagate_request=True))
    result = await workflow.run("Go.")
    await workflow.run(responses={each.request_id: "canary-7f3a" for each in result.get_request_info_events()})


async def _wrong_answer() -> None:
    workflow = _asks()
    await workflow.run("Go.")
    await failing(workflow.run(responses={"question-2": "canary-7f3a"}))


async def _agent_asks(*, approved: bool | None) -> None:
    workflow = graph(agent(call("pay"), say()))
    result = await workflow.run("Go.")
    if approved is not None:
        requests = result.get_request_info_events()
        replies = {each.request_id: each.data.to_function_approval_response(approved) for each in requests}
        await workflow.run(responses=replies)


async def _agent_fails(*, inner: bool = False) -> None:
    made = graph(agent(Turn(error=ServiceDown())))
    await failing((graph(WorkflowExecutor(made, id="inner")) if inner else made).run("Go."))


async def _cancelled() -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(graph(Dawdles(begun.set)).run("Go."))
    await begun.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _timed_out() -> None:
    with contextlib.suppress(TimeoutError), stopcause.run("desk-block"):
        async with asyncio.timeout(None) as timer:
            await graph(Dawdles(lambda: timer.reschedule(asyncio.get_running_loop().time()))).run("Go.")


async def _leaves(workflow: Workflow, kind: str) -> None:
    """The reader leaves at the first event of a kind."""
    stream = workflow.run("Go.", stream=True)
    async for event in stream:
        if getattr(event.state, "name", event.type) == kind:
            break
    await stream.close()


def _functional(kind: str = "returns") -> Any:
    """A workflow that is a function; the oldest version has none."""
    theirs = importlib.import_module("agent_framework._workflows._functional")

    async def desk(text: str, ctx: theirs.RunContext) -> str:  # type: ignore[name-defined]  # a module of theirs
        if kind == "raises":
            raise Scripted(text)
        return await ctx.request_info(text, str, request_id="question-1") if kind == "asks" else text

    made = theirs.workflow(desk)
    return made.build() if hasattr(made, "build") else made


async def _function_answered() -> None:
    made = _functional("asks")
    await made.run("Go.")
    await made.run(responses={"question-1": "canary-7f3a"})


PATHS = [
    Path_("workflow", "A graph came to its end.", UNPROVEN, lambda: _two().run("Go.")),
    Path_("workflow-streamed", "The same as a stream.", UNPROVEN, lambda: read(_two().run("Go.", stream=True))),
    Path_(
        "workflow-as-agent",
        "A workflow that is called as an agent.",
        UNPROVEN,
        lambda: graph(agent(say())).as_agent().run("Go."),
    ),
    Path_(
        "workflow-of-agents",
        "Agents in a graph are runs inside it.",
        UNPROVEN,
        lambda: graph(agent(call(), say()), agent(say(), name="second")).run("Go."),
    ),
    Path_(
        "workflow-in-a-workflow",
        "A graph in a graph.",
        UNPROVEN,
        lambda: graph(WorkflowExecutor(_two(), id="inner"), Ends(id="outer")).run("Go."),
    ),
    Path_(
        "workflow-function-fails",
        "A workflow that is a function raised.",
        ("FAILED", "host_error"),
        lambda: failing(_functional("raises").run("canary-7f3a")),
    ),
    Path_(
        "workflow-function-asks", "One that is a function asks a person.", OPEN, lambda: _functional("asks").run("Go.")
    ),
    Path_("workflow-function-answered", "And goes on with the answer.", ANSWERED, _function_answered, ROUTED),
    Path_("workflow-function", "A workflow that is a function.", UNPROVEN, lambda: _functional().run("Go.")),
    Path_(
        "workflow-loops",
        "Its supersteps were used up while messages were still sent.",
        ("BOUNDED_STOP", "step_limit"),
        lambda: failing(_loop().run("Go.")),
    ),
    Path_(
        "workflow-inner-loops",
        "The supersteps of a graph in it were used up, not its own.",
        ("BOUNDED_STOP", "step_limit"),
        lambda: failing(graph(WorkflowExecutor(_loop(), id="inner")).run("Go.")),
    ),
    Path_(
        "workflow-fails",
        "An executor of the program's raised.",
        ("FAILED", "host_error"),
        lambda: failing(graph(Breaks(id="breaks")).run("canary-7f3a")),
    ),
    Path_("workflow-agent-fails", "An agent in it failed for its model.", ("FAILED", "model_failure"), _agent_fails),
    Path_(
        "workflow-inner-fails",
        "An agent in a graph in it failed for its model.",
        ("FAILED", "model_failure"),
        lambda: _agent_fails(inner=True),
    ),
    Path_(
        "workflow-refuses",
        "Its first executor takes no such input.",
        ("FAILED", "input_rejected"),
        lambda: failing(_two().run(3)),
    ),
    Path_("workflow-asks", "An executor asks a person; nobody is named.", OPEN, lambda: _asks().run("Go.")),
    Path_(
        "workflow-asks-live",
        "Somebody answers, but only the live object keeps the state.",
        ("WAITING_UNROUTED", "resume_token"),
        lambda: _asks().run("Go."),
        ROUTED,
    ),
    Path_(
        "workflow-asks-kept",
        "The same, and a checkpoint names the state.",
        ("WAITING", "input_required"),
        _kept,
        ROUTED,
    ),
    Path_(
        "workflow-asks-by-keys",
        "Who answers, and until when, is in what it asks, under keys that are allowed.",
        ("WAITING", "input_required"),
        _asks_by_keys,
        {"approval_keys": {"owner": "who", "deadline": "until"}},
    ),
    Path_("workflow-answered", "The answer came to the live object.", ANSWERED, _answered, ROUTED),
    Path_("workflow-answered-resumed", "With the answer it finished.", UNPROVEN, _answered, ROUTED, judged=1),
    Path_(
        "workflow-answered-later",
        "A new object took the answer up from the checkpoint.",
        ANSWERED,
        _answered_from_checkpoint,
        ROUTED,
    ),
    Path_(
        "workflow-restored",
        "Taken up again without an answer, it waits again.",
        ("WAITING", "input_required"),
        _restored,
        ROUTED,
        judged=1,
    ),
    Path_(
        "workflow-wrong-answer",
        "An answer to what was not asked is refused.",
        ("FAILED", "input_rejected"),
        _wrong_answer,
        judged=1,
    ),
    Path_("workflow-agent-asks", "An agent in it needs an approval.", OPEN, lambda: _agent_asks(approved=None)),
    Path_(
        "workflow-agent-approved",
        "The approval came through the workflow, and the tool ran.",
        ANSWERED,
        lambda: _agent_asks(approved=True),
        ROUTED,
    ),
    Path_(
        "workflow-inner-asks",
        "A graph in it asks a person, and nothing in it hands that on.",
        OPEN,
        lambda: graph(WorkflowExecutor(_asks(), id="inner")).run("Go."),
    ),
    Path_(
        "workflow-inner-answered", "The answer goes through it to the inner graph.", ANSWERED, _inner_answered, ROUTED
    ),
    Path_(
        "workflow-inner-finished",
        "With the answer both came to their ends.",
        UNPROVEN,
        _inner_answered,
        ROUTED,
        judged=2,
    ),
    Path_(
        "workflow-of-agents-streamed",
        "Agents in a graph, all as streams.",
        UNPROVEN,
        lambda: read(graph(agent(call(), say())).run("Go.", stream=True)),
    ),
    Path_("workflow-cancelled", "Its task was cancelled.", ABORTED, _cancelled),
    Path_("workflow-timed-out", "A timer in the host's block cut it off.", ("STUCK", "time_limit"), _timed_out),
    Path_("workflow-left", "The reader closed the stream.", ABORTED, lambda: _leaves(_two(), "superstep_completed")),
    Path_(
        "workflow-left-at-failure",
        "The reader left at the state that says it failed.",
        ("FAILED", "host_error"),
        lambda: _leaves(graph(Breaks(id="breaks")), "FAILED"),
    ),
    Path_("workflow-left-at-end", "The reader left at its last state.", UNPROVEN, lambda: _leaves(_two(), "IDLE")),
]
