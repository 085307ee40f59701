"""What a program of LlamaIndex has of its own that the hook must leave alone."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest
from llama_index_instrumentation import root_dispatcher
from workflows import Context, Workflow

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.ways import RUNNER


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("llama_index")
    yield
    stopcause.uninstrument("llama_index")


def test_the_handlers_of_the_framework_are_given_back_as_they_were() -> None:
    before = list(root_dispatcher.event_handlers)
    stopcause.instrument("llama_index")
    assert len(root_dispatcher.event_handlers) == len(before) + 1
    stopcause.uninstrument("llama_index")
    assert root_dispatcher.event_handlers == before


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert list(inspect.signature(Workflow.run).parameters)[:3] == ["self", "ctx", "start_event"]
    assert inspect.iscoroutinefunction(RUNNER.run)
    assert inspect.iscoroutinefunction(RUNNER.process_command)
    assert Workflow.run.__qualname__ == "Workflow.run"
    assert inspect.ismethod(Context.from_dict)


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
def test_no_run_is_current_where_the_program_is() -> None:
    async def program() -> None:
        handler = flows.Two(timeout=5).run()
        assert stopcause.current_run() is None
        async for _ in handler.stream_events():
            assert stopcause.current_run() is None
        await handler

    with recorded():
        asyncio.run(program())
