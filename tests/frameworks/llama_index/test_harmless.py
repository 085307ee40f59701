"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index_instrumentation import root_dispatcher
from workflows import Context, Workflow
from workflows.events import HumanResponseEvent

import stopcause
from stopcause.receipts import model
from stopcause.receipts.hooks import llama_index
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.hooks.llama_index import agent as llama_index_agent
from stopcause.receipts.hooks.llama_index import call as llama_index_call
from stopcause.receipts.hooks.llama_index import waits as llama_index_waits
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.harness import Scripted
from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.models import Turn, agent, asked_of, call, say, settles
from tests.frameworks.sinks import Blocks, Raises, broken

_RUNNER = llama_index._runner()
_TICKS = "_process_tick" if hasattr(_RUNNER, "_process_tick") else "wait_for_tick"
POINTS = [
    (Workflow, "run"), (_RUNNER, "run"), (_RUNNER, "process_command"), (_RUNNER, _TICKS), (Context, "to_dict"),
    (Context, "from_dict"),
    *(
        (owner, "_generate_early_stopping_response")
        for owner in (BaseWorkflowAgent, AgentWorkflow)
        if hasattr(owner, "_generate_early_stopping_response")
    ),
]  # fmt: skip


class Seen:
    """What a program sees: events, results, exceptions, and that no run is current where it has none."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            self.told.append((type(value), bool(traceback.extract_tb(value.__traceback__)), value.args))
        else:
            self.told.append((type(value), str(value), stopcause.current_run()))

    async def reads(self, handler: Any) -> None:
        """All events, the framework's own too, and what comes of it."""
        async for event in handler.stream_events(expose_internal=True):
            self.told.append(type(event))
        try:
            self.tell(await handler)
        except BaseException as error:  # noqa: BLE001 - it is what is looked at
            self.tell(error)


async def _answers(seen: Seen) -> None:
    await seen.reads(agent(call(), call("breaks", "call-2"), say()).run(user_msg="Go."))


async def _limit(seen: Seen) -> None:
    await seen.reads(agent(call(), call(), say()).run(user_msg="Go.", max_iterations=2))


async def _forced(seen: Seen) -> None:
    made = agent(call(), call(), say(), early_stopping_method="generate")
    await seen.reads(made.run(user_msg="Go.", max_iterations=2))


async def _fails(seen: Seen) -> None:
    error = Scripted("as it is")
    with pytest.raises(Scripted) as raised:
        await agent(Turn(error=error)).run(user_msg="Go.")
    assert raised.value is error
    seen.tell(raised.value)


async def _refused(seen: Seen) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared, with and without
        flows.Two().run(start_event=42)
    seen.tell(raised.value)


async def _runs_out(seen: Seen) -> None:
    await seen.reads(flows.OneSlow(timeout=0.05).run())


async def _waits(seen: Seen) -> None:
    handler = flows.WaitsFor(timeout=5).run()
    await asked_of(handler)
    handler.ctx.send_event(HumanResponseEvent(response="y"))
    seen.tell(await handler)


async def _keeps(seen: Seen) -> None:
    made = flows.Required(timeout=5)
    handler = made.run()
    await asked_of(handler)
    state = handler.ctx.to_dict()
    seen.told.append(sorted(state))
    await handler.cancel_run()
    handler = made.run(ctx=Context.from_dict(made, state))
    handler.ctx.send_event(HumanResponseEvent(response="y"))
    seen.tell(await handler)


async def _cancels(seen: Seen) -> None:
    handler = flows.OneSlow(timeout=5).run()
    await settles()
    await handler.cancel_run()
    await seen.reads(handler)


async def _leaves(seen: Seen) -> None:
    handler = flows.Two(timeout=5).run()
    stream = handler.stream_events()
    seen.tell(await anext(stream))
    await stream.aclose()
    seen.tell(await handler)


async def _nested(seen: Seen) -> None:
    made = flows.Outer(timeout=5)
    made.inner = lambda: flows.Fails(timeout=5).run()
    await seen.reads(made.run())


WAYS = [_answers, _limit, _forced, _fails, _refused, _runs_out, _waits, _keeps, _cancels, _leaves, _nested]
SOME = [_answers, _keeps, _nested]
Way = Callable[[Seen], Awaitable[None]]


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    asyncio.run(way(seen))  # type: ignore[arg-type]  # coroutine functions
    return seen.told


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("llama_index")
    yield
    stopcause.uninstrument("llama_index")


def _ids(way: Way) -> str:
    return way.__name__.strip("_")


ways = pytest.mark.parametrize("way", WAYS, ids=_ids)
some = pytest.mark.parametrize("way", SOME, ids=_ids)


@ways
def test_all_is_the_same_with_the_hook(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("llama_index")
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            assert receipts.receipts
    finally:
        stopcause.uninstrument("llama_index")


def test_the_framework_is_given_back_as_it_was() -> None:
    before = [vars(owner).get(name) for owner, name in POINTS]
    handlers = list(root_dispatcher.event_handlers)
    stopcause.instrument("llama_index")
    during = [vars(owner).get(name) for owner, name in POINTS]
    assert len(root_dispatcher.event_handlers) == len(handlers) + 1
    stopcause.uninstrument("llama_index")
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert [vars(owner).get(name) for owner, name in POINTS] == before
    assert root_dispatcher.event_handlers == handlers


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert list(inspect.signature(Workflow.run).parameters)[:3] == ["self", "ctx", "start_event"]
    assert inspect.iscoroutinefunction(_RUNNER.run)  # type: ignore[attr-defined]
    assert inspect.iscoroutinefunction(_RUNNER.process_command)  # type: ignore[attr-defined]
    assert Workflow.run.__qualname__ == "Workflow.run"
    assert inspect.ismethod(Context.from_dict)


@pytest.mark.parametrize("word", ["1", "llama_index"])
@pytest.mark.usefixtures("hook")
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_answers)
        assert receipts.lines == []


@some
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument("llama_index")
    blocks = Blocks()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert seen_by(way) == bare
    finally:
        blocks.go.set()
        stopcause.uninstrument("llama_index")
        stopcause.configure()


@some
@pytest.mark.parametrize("name", ["cause", "is_first_end", "came_back", "failed", "read_result", "takes", "describe"])
def test_whatever_fails_a_run_that_began_has_an_end(way: Way, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    stopcause.instrument("llama_index")
    try:
        with recorded() as receipts:
            for owner in (llama_index_call.WorkflowCall, llama_index_agent.AgentCall):
                monkeypatch.setattr(owner, name, broken)
            assert seen_by(way) == bare
            began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
            assert began == {each.run_id for each in receipts.receipts}
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("llama_index")


@some
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "waiting"), (Hook, "begin"), (Hook, "read"),
        (llama_index_call.WorkflowCall, "tick"), (llama_index_call.WorkflowCall, "command"),
        (llama_index_call.WorkflowCall, "model_event"), (llama_index_waits.Waits, "keep"),
        (llama_index_waits, "digest"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
def test_a_fault_of_the_hooks_changes_nothing(way: Way, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    stopcause.instrument("llama_index")
    try:
        with recorded():
            monkeypatch.setattr(owner, name, broken)
            assert seen_by(way) == bare
    finally:
        monkeypatch.undo()
        stopcause.uninstrument("llama_index")


@pytest.mark.parametrize("name", ["workflow", "hook", "original", "call", "kept", "args", "kwargs"])
@pytest.mark.usefixtures("hook")
def test_no_name_of_ours_takes_an_argument_of_the_programs(name: str) -> None:
    """All that the framework does not know becomes a field of the start event, by whatever name."""

    async def program() -> None:
        await flows.Two(timeout=5).run(**{name: "theirs"})

    with recorded() as receipts:
        asyncio.run(program())
        assert (receipts.stopped.stop_cause, receipts.stopped.steps) == ("natural", 2)


@pytest.mark.usefixtures("hook")
def test_the_context_is_left_as_it_was() -> None:
    async def program() -> None:
        handler = flows.Two(timeout=5).run()
        assert stopcause.current_run() is None
        async for _ in handler.stream_events():
            assert stopcause.current_run() is None
        await handler

    with recorded():
        asyncio.run(program())
