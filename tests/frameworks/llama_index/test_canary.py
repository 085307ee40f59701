"""No byte of content comes out: not in records, not in our logs, not on spans.

Annotations are no strings here: the framework looks at those of a tool for its context.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from workflows import Context
from workflows.events import HumanResponseEvent, InputRequiredEvent

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.models import Turn, agent, asked_of, call, failing, say, settles

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")


def leaks(text: str = WORD) -> str:
    """Gives back canary-7f3a."""
    return f"{text} {PROSE} {WORD}"


def bursts(text: str = PROSE) -> str:
    """Raises canary-7f3a."""
    raise ValueError(f"{text} {PROSE}")


async def asks(ctx: Context) -> str:
    """Asks a person."""
    question = InputRequiredEvent(note=PROSE, owner=WORD, **{WORD: WORD})
    needs = {"job": WORD}
    answer = await ctx.wait_for_event(
        HumanResponseEvent, waiter_event=question, waiter_id=WORD, requirements=needs, timeout=None
    )
    return str(answer.response)


TOOLS = (leaks, bursts, asks)


async def _talks() -> None:
    made = agent(
        call("leaks", text=WORD), call("bursts", "call-2", text=PROSE), call(WORD, "call-3", text=WORD), say(WORD),
        tools=TOOLS, system_prompt=PROSE, initial_state={"note": WORD},
    )  # fmt: skip
    await made.run(user_msg=PROSE)


async def _fails() -> None:
    await failing(agent(Turn(error=RuntimeError(f"{PROSE} {WORD}"))).run(user_msg=WORD))


async def _flow_fails() -> None:
    await failing(flows.Fails(timeout=5).run(note=WORD, text=PROSE))


async def _waits() -> None:
    await failing(flows.Required(timeout=0.1).run(note=WORD))


async def _is_answered() -> None:
    handler = agent(call("asks"), say(WORD), tools=TOOLS).run(user_msg=PROSE)
    with contextlib.suppress(AssertionError):  # the oldest agents fail at a tool that asks
        await asked_of(handler)
        handler.ctx.send_event(HumanResponseEvent(response=PROSE, job=WORD))
    await handler


async def _is_kept() -> None:
    made = flows.WaitsFor(timeout=5)
    handler = made.run(note=WORD)
    await asked_of(handler)
    state = handler.ctx.to_dict()
    await handler.cancel_run()
    handler = made.run(ctx=Context.from_dict(made, state))
    await settles()
    handler.ctx.send_event(HumanResponseEvent(response=WORD))
    await handler


async def _desk() -> None:
    hand = call("handoff", "call-9", to_agent="writer", reason=PROSE)
    reader = agent(hand, name="reader", can_handoff_to=["writer"])
    desk = AgentWorkflow(agents=[reader, agent(say(WORD), name="writer")], root_agent="reader")
    await desk.run(user_msg=PROSE)


WAYS = [_talks, _fails, _flow_fails, _waits, _is_answered, _is_kept, _desk]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("llama_index")
    yield
    stopcause.uninstrument("llama_index")


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """What is exported of spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_no_content_in_records_logs_or_spans(
    way: Callable[[], Awaitable[Any]], spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    spans.clear()
    with recorded(label_keys=["team"], approval_keys={"owner": "who"}) as receipts:
        with trace.get_tracer("test").start_as_current_span("around"):
            asyncio.run(way())  # type: ignore[arg-type]  # coroutine functions
        written = b"\n".join(receipts.lines)
    assert receipts.receipts
    logged = "".join(each.getMessage() for each in caplog.records if each.name.startswith("stopcause")).encode()
    ours = [f"{key} {value!r}" for span in spans.get_finished_spans() for key, value in (span.attributes or {}).items()]
    marked = "\n".join(each for each in ours if each.startswith("stopcause.")).encode()
    assert marked
    for mark in MARKS:
        assert mark not in written
        assert mark not in logged
        assert mark not in marked


def test_a_mark_would_be_found() -> None:
    """A name that the program gave is taken, whatever it is."""
    with recorded() as receipts:
        asyncio.run(_named())
        assert WORD.encode() in b"\n".join(receipts.lines)


async def _named() -> None:
    await agent(say(), name=WORD).run(user_msg="Go.")
