"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agent_framework import AgentSession, Message, agent_middleware, chat_middleware, tool
from agent_framework._middleware import MiddlewareTermination
from agent_framework.exceptions import ChatClientException
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.agent_framework.models import Turn, agent, answer, call, failing, middleware, read, say
from tests.frameworks.agent_framework.paths_workflows import Asks, Breaks, graph

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")
TEXTS: dict[str, Any] = {"instructions": PROSE, "description": WORD, "additional_properties": {"note": WORD}}


@tool(description=PROSE)
def leaks(text: str) -> str:
    """Gives back what it gets."""
    return f"{text} {PROSE} {WORD}"


@tool
def bursts(text: str) -> str:
    """Raises what it gets."""
    raise ValueError(f"{text} {PROSE}")


@tool(approval_mode="always_require")
def pays(text: str) -> str:
    """Gives back what it gets."""
    return text


CALLS = (call("leaks", text=WORD), call("bursts", "call-2", text=PROSE), call(WORD, "call-3", text=WORD))
TALK = (*CALLS, say(f"{PROSE} {WORD}"))


def _talker(*turns: Turn, **more: Any) -> Any:
    return agent(*turns, tools=[leaks, bursts, pays], **TEXTS, **more)


async def _talks() -> None:
    given = {"metadata": {"note": PROSE, "word": WORD}, "user": WORD}
    await _talker(*TALK).run([PROSE, Message("user", [WORD])], options=given, function_invocation_kwargs={"word": WORD})


async def _streams() -> None:
    await read(_talker(*TALK).run(PROSE, stream=True))


async def _is_bounded() -> None:
    await _talker(*TALK, limits={"max_iterations": 2}).run(PROSE)


async def _waits(*, approved: bool) -> None:
    made, session = _talker(call("pays", text=WORD), say(WORD)), AgentSession(session_id="desk-1")
    session.state["note"] = PROSE
    result = await made.run(PROSE, session=session)
    for request in result.user_input_requests:
        request.additional_properties["note"] = WORD
    await made.run(answer(result, approved=approved), session=session)


async def _approves() -> None:
    await _waits(approved=True)


async def _denies() -> None:
    await _waits(approved=False)


async def _fails() -> None:
    await failing(_talker(Turn(error=RuntimeError(f"{PROSE} {WORD}"))).run(WORD))
    await failing(_talker(Turn(error=ChatClientException(PROSE))).run(WORD))


async def _refuses() -> None:
    await failing(_talker(call(WORD), limits={"terminate_on_unknown_calls": True}).run(WORD))


async def _middleware() -> None:
    async def ends(*_: Any) -> None:
        raise MiddlewareTermination(PROSE, result=WORD)

    async def raises(*_: Any) -> None:
        raise RuntimeError(WORD)

    await _talker(say(), middleware=[middleware(agent_middleware, ends)]).run(PROSE)
    await failing(_talker(say(), middleware=[middleware(chat_middleware, raises)]).run(PROSE))


async def _workflow() -> None:
    await graph(_talker(*TALK), description=PROSE).run(WORD)
    await failing(graph(Breaks(id="breaks")).run(PROSE))


async def _workflow_asks() -> None:
    made = graph(Asks(id="asks"))
    await made.run(PROSE)
    await made.run(responses={"question-1": WORD})


WAYS = [_talks, _streams, _is_bounded, _approves, _denies, _fails, _refuses, _middleware, _workflow, _workflow_asks]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("agent_framework")
    yield
    stopcause.uninstrument("agent_framework")


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """What is exported of spans, the framework's own too: those may carry content, ours must not."""
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
    """The name of a session is what resumes it, and is not told where it may be a person's."""
    with recorded() as receipts:
        asyncio.run(_ask(name))
        assert name.encode() not in b"\n".join(receipts.lines)
        (wait,) = receipts.stopped.approvals or ()
        assert {(name or "hmac:")[:5] for name in (wait.resume_token, receipts.stopped.thread_id)} == {"hmac:"}


async def _ask(name: str) -> None:
    await agent(call("pay")).run("Go.", session=AgentSession(session_id=name))


def test_a_mark_would_be_found() -> None:
    with recorded() as receipts:
        asyncio.run(failing(agent(Turn(error=RuntimeError()), name=WORD).run("Go.")))
        assert MARKS[1] in b"\n".join(receipts.lines)
