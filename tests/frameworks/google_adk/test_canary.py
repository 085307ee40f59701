"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.google_adk.models import Desk, Turn, agent, call, failing, kept, say
from tests.frameworks.google_adk.paths_ends import Plugin, answer, content
from tests.frameworks.google_adk.paths_waits import signs_in

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")
NOTED = RunConfig(custom_metadata={"note": PROSE, "word": WORD})


def leaks(text: str, tool_context: ToolContext) -> dict[str, Any]:
    """Gives back what it gets."""
    tool_context.state[WORD] = PROSE
    return {WORD: f"{text} {PROSE}"}


def bursts(text: str) -> dict[str, Any]:
    """Raises what it gets."""
    raise ValueError(f"{text} {PROSE} {WORD}")


def asks(tool_context: ToolContext) -> dict[str, Any]:
    """Asks with what it knows."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint=PROSE, payload={"owner": WORD})
    return {WORD: PROSE}


async def _talks() -> None:
    made = agent(call("leaks", text=WORD), say(WORD), tools=[leaks], instruction=PROSE, description=WORD)
    await Desk(made).run(PROSE, NOTED, state_delta={WORD: PROSE})


async def _invents() -> None:
    def answered(**_: Any) -> dict[str, Any]:
        return {WORD: PROSE}

    await Desk(agent(call(WORD, text=WORD), say(PROSE), on_tool_error_callback=answered)).run(WORD)


async def _waits() -> None:
    desk = Desk(agent(call("asks"), say(PROSE), say(WORD), tools=[asks]), service=kept())
    await desk.run(PROSE, NOTED)
    await desk.run(desk.answer({"confirmed": True, "hint": PROSE, "payload": WORD}))


async def _is_denied() -> None:
    desk = Desk(agent(call("asks"), say(PROSE), say(WORD), tools=[asks]))
    await desk.run(PROSE)
    await desk.run(desk.answer({"confirmed": False, "payload": WORD}))


async def _signs_in() -> None:
    await Desk(agent(call("signs_in"), say(WORD), tools=[signs_in])).run(WORD)


async def _tool_fails() -> None:
    await failing(Desk(agent(call("bursts", text=WORD), tools=[bursts])).run(WORD))


async def _model_fails() -> None:
    await failing(Desk(agent(Turn(error=RuntimeError(f"{PROSE} {WORD}")))).run(WORD))


async def _callbacks() -> None:
    plugins = [Plugin("before_model_callback", lambda: answer(WORD))]
    await Desk(agent(say()), plugins=plugins).run(PROSE)
    await Desk(agent(say()), plugins=[Plugin("before_run_callback", lambda: content(WORD))]).run(PROSE)


async def _as_tool() -> None:
    inner = agent(say(WORD), name="expert", instruction=PROSE)
    await Desk(agent(call("expert", request=PROSE), say(WORD), tools=[AgentTool(inner)])).run(WORD, NOTED)


WAYS = [_talks, _waits, _is_denied, _signs_in, _tool_fails, _model_fails, _callbacks, _as_tool, _invents]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("google_adk")
    yield
    stopcause.uninstrument("google_adk")


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """What is exported of spans, ADK's own too: those carry content, ours must not."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_no_content_in_records_logs_or_spans(
    way: Callable[[], Any], spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    spans.clear()
    with recorded(label_keys=["team"], approval_keys={"owner": "who"}) as receipts:
        with trace.get_tracer("test").start_as_current_span("around"):
            asyncio.run(way())
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


@pytest.mark.parametrize("name", ["someone@example.org", "+49 170 1234567"])
def test_a_session_that_is_called_like_a_person(name: str) -> None:
    """The name of a session is part of what resumes it, and is not told where it may be a person's."""

    async def waits() -> None:
        desk = Desk(agent(call("pay")), service=kept())
        await desk.opened(name)
        async for _ in desk.stream(session=name):
            pass

    with recorded() as receipts:
        asyncio.run(waits())
        assert name.encode() not in b"\n".join(receipts.lines)
        (wait,) = receipts.stopped.approvals or ()
        assert (wait.resumable, wait.resume_token) == (True, None)
        assert (receipts.stopped.thread_id or "")[:5] == "hmac:"


def test_a_mark_would_be_found() -> None:
    with recorded() as receipts:
        asyncio.run(Desk(agent(say(), name=WORD)).run())
        assert MARKS[1] in b"\n".join(receipts.lines)
