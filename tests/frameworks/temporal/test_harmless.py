"""A program sees the same with and without the hook, and so does the server: the history of a workflow is the same."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, ClassVar

import pytest
from temporalio import worker
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.worker import Replayer, Worker, workflow_sandbox

import stopcause
from stopcause.receipts import model
from stopcause.receipts.hooks import temporal
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.hooks.temporal import workflow as temporal_workflow
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.sinks import Blocks, Raises, broken
from tests.frameworks.temporal import asking
from tests.frameworks.temporal import workflows as made
from tests.frameworks.temporal.models import How, cleared, place, started, working

POINTS = [(Worker, "__init__"), (WorkflowHandle, "result"), (WorkflowHandle, "_fetch_history_events_for_run")]
ALL = [asking.Approves, made.Calls, made.Continues, made.Parent, made.Raises, made.Recovers, made.Waits]


class Watches(worker.Interceptor):
    """A program's own interceptor: what comes by, in order."""

    told: ClassVar[list[Any]] = []

    def workflow_interceptor_class(self, _: Any) -> type[worker.WorkflowInboundInterceptor]:
        return _Inbound

    def intercept_activity(self, next: Any) -> Any:  # noqa: A002 - Temporal's name
        return _Activity(next)


class _Inbound(worker.WorkflowInboundInterceptor):
    def init(self, outbound: Any) -> None:
        super().init(_Outbound(outbound))

    async def execute_workflow(self, input: Any) -> Any:  # noqa: A002 - Temporal's name
        Watches.told.append(input.type.__name__)
        return await super().execute_workflow(input)


class _Outbound(worker.WorkflowOutboundInterceptor):
    def start_activity(self, input: Any) -> Any:  # noqa: A002 - Temporal's name
        Watches.told.append(input.activity)
        return super().start_activity(input)


class _Activity(worker.ActivityInboundInterceptor):
    async def execute_activity(self, input: Any) -> Any:  # noqa: A002 - Temporal's name
        Watches.told.append(input.fn.__name__)
        return await super().execute_activity(input)


class Seen:
    """What a program sees, and what the server has."""

    def __init__(self, client: Client, how: How) -> None:
        self.client, self.how = client, how
        self.told: list[Any] = []

    async def start(self, workflow: Any, *args: Any) -> WorkflowHandle[Any, Any]:
        handle: WorkflowHandle[Any, Any] = await started(self.client, self.how, workflow, *args)
        return handle

    async def end(self, handle: WorkflowHandle[Any, Any]) -> None:
        try:
            self.told.append(await handle.result())
        except WorkflowFailureError as error:
            links = [error.cause, getattr(error.cause, "cause", None)]
            self.told.append((type(error), [(type(link), getattr(link, "args", None)) for link in links]))
        history = await self.client.get_workflow_handle(handle.id).fetch_history()
        self.told.append([event.event_type for event in history.events])
        self.told.append(stopcause.current_run())

    async def run(self, workflow: Any, *args: Any) -> None:
        await self.end(await self.client.start_workflow(workflow.run, args=list(args), **self.how))


async def _returns(seen: Seen) -> None:
    await seen.run(made.Calls, ["look_up", "look_up_in_thread"])


async def _fails(seen: Seen) -> None:
    await seen.run(made.Calls, ["breaks"])


async def _recovers(seen: Seen) -> None:
    await seen.run(made.Recovers)


async def _raises(seen: Seen) -> None:
    await seen.run(made.Raises, "OutOfStock")


async def _continues(seen: Seen) -> None:
    await seen.run(made.Continues, 1, "look_up")


async def _child_fails(seen: Seen) -> None:
    await seen.run(made.Parent, "fails", False)


async def _cancelled(seen: Seen) -> None:
    handle = await seen.start(made.Waits, [], 0)
    await handle.cancel()
    await seen.end(handle)


async def _terminated(seen: Seen) -> None:
    handle = await seen.start(made.Waits, [], 0)
    await handle.terminate("why")
    await seen.end(handle)


async def _approved(seen: Seen) -> None:
    handle = await seen.start(asking.Approves, 3600, False)
    seen.told.append(await handle.execute_update(asking.Approves.decide_now, True))
    await seen.end(handle)


async def _talks(seen: Seen) -> None:
    handle = await seen.start(made.Waits, ["look_up"], 0)
    seen.told.append(await handle.query(made.Waits.state))
    await handle.signal(made.Waits.go, "on")
    seen.told.append(await handle.query(made.Waits.state))
    await seen.end(handle)


Way = Callable[[Seen], Coroutine[Any, Any, None]]
WAYS: list[Way] = [
    _returns, _fails, _recovers, _raises, _continues, _child_fails, _cancelled, _terminated, _approved, _talks,
]  # fmt: skip
FEW = [_fails, _approved]


def seen_by(way: Way) -> list[Any]:
    """All that is seen on one of these ways."""

    async def run() -> list[Any]:
        how = place()
        Watches.told.clear()
        async with working(how["task_queue"], *ALL, interceptors=[Watches()]) as client:
            seen = Seen(client, how)
            try:
                await way(seen)
            finally:
                await cleared(client)
        return [*seen.told, *Watches.told]

    return asyncio.run(run())


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("temporal")
    yield
    stopcause.uninstrument("temporal")


def named(ways: Sequence[Way]) -> Any:
    return pytest.mark.parametrize("way", ways, ids=lambda way: way.__name__.strip("_"))


@pytest.fixture(scope="module")
def bare() -> dict[str, list[Any]]:
    """What is seen without the hook. The package is passed through the sandbox all the same, for speed."""
    workflow_sandbox.SandboxRestrictions.passthrough_modules_default.add("stopcause")
    try:
        return {way.__name__: seen_by(way) for way in WAYS}
    finally:
        workflow_sandbox.SandboxRestrictions.passthrough_modules_default.discard("stopcause")


@named(WAYS)
@pytest.mark.usefixtures("hook")
def test_all_is_the_same_with_the_hook(way: Way, bare: dict[str, list[Any]]) -> None:
    with recorded() as receipts:
        assert seen_by(way) == bare[way.__name__]
        assert receipts.receipts


def test_the_framework_is_given_back_as_it_was() -> None:
    passed = workflow_sandbox.SandboxRestrictions.passthrough_modules_default
    before = [vars(owner)[name] for owner, name in POINTS]
    assert "stopcause" not in passed
    stopcause.instrument("temporal")
    during = [vars(owner)[name] for owner, name in POINTS]
    assert "stopcause" in passed
    stopcause.uninstrument("temporal")
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert [vars(owner)[name] for owner, name in POINTS] == before
    assert "stopcause" not in passed


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.iscoroutinefunction(WorkflowHandle.result)
    assert "follow_runs" in inspect.signature(WorkflowHandle.result).parameters
    assert "task_queue" in inspect.signature(Worker.__init__).parameters


@pytest.mark.usefixtures("hook")
def test_a_history_with_the_hook_replays_without_it_and_leaves_nothing() -> None:
    async def history() -> Any:
        how = place()
        async with working(how["task_queue"], asking.Approves) as client:
            handle = await started(client, how, asking.Approves, 3600, False)
            await handle.signal(asking.Approves.decide, True)
            await handle.result()
            return await handle.fetch_history()

    with recorded():
        kept = asyncio.run(history())
    with recorded() as receipts:
        asyncio.run(Replayer(workflows=[asking.Approves], interceptors=[temporal.interceptor()]).replay_workflow(kept))
        asyncio.run(Replayer(workflows=[asking.Approves]).replay_workflow(kept))
        assert receipts.lines == []


@pytest.mark.usefixtures("hook")
def test_an_interceptor_by_hand_is_the_only_one() -> None:
    async def run() -> None:
        how = place()
        async with working(how["task_queue"], made.Calls, interceptors=[temporal.interceptor()]) as client:
            await client.execute_workflow(made.Calls.run, ["look_up"], **how)

    with recorded() as receipts:
        asyncio.run(run())
        assert receipts.stopped.steps == 1


@pytest.mark.parametrize("word", ["1", "temporal"])
@pytest.mark.usefixtures("hook")
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_returns)
        assert receipts.lines == []


@named(FEW)
@pytest.mark.usefixtures("hook")
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way, bare: dict[str, list[Any]]) -> None:
    blocks = Blocks()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert seen_by(way) == bare[way.__name__]
    finally:
        blocks.go.set()
        stopcause.configure()


@named([_approved])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "waiting"), (Hook, "begin"), (Hook, "read"),
        (temporal_workflow.Execution, "listen"), (temporal_workflow.Execution, "activity"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
@pytest.mark.usefixtures("hook")
def test_a_fault_of_the_hooks_changes_nothing(
    way: Way, owner: type, name: str, bare: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded():
        monkeypatch.setattr(owner, name, broken)
        assert seen_by(way) == bare[way.__name__]
        monkeypatch.undo()


@named(FEW)
@pytest.mark.parametrize("name", ["returned", "failed", "cause", "is_first_end", "_fails"])
@pytest.mark.usefixtures("hook")
def test_whatever_fails_a_run_that_began_has_an_end(
    way: Way, name: str, bare: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded() as receipts:
        monkeypatch.setattr(temporal_workflow.Execution, name, broken)
        assert seen_by(way) == bare[way.__name__]
        began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
        assert began == {each.run_id for each in receipts.receipts}
