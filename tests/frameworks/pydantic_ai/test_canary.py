"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import ApprovalRequired, CallDeferred, DeferredToolResults, ModelRetry, ToolDenied
from pydantic_ai.usage import UsageLimits

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.pydantic_ai.agents import Answer, agent, waiting
from tests.frameworks.pydantic_ai.models import broken_call, calls, http, text

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")
_METADATA: dict[str, Any] = {"note": PROSE, "word": WORD}
_Tools = tuple[Callable[..., Any], ...]


async def leaks(said: str) -> str:
    """Gives back what it gets."""
    return f"{said} {PROSE} {WORD}"


async def bursts(said: str) -> str:
    """Raises what it gets."""
    raise ValueError(f"{said} {PROSE}", WORD)


async def tries(said: str) -> str:
    """Asks for another try."""
    raise ModelRetry(f"{said} {WORD}")


async def defers(said: str) -> str:
    """Leaves it to another system."""
    raise CallDeferred(metadata={**_METADATA, "said": said})


async def asks(said: str) -> str:
    """Wants a yes."""
    raise ApprovalRequired(metadata={**_METADATA, "said": said})


def _made(make: Callable[..., Any], *script: Any, tools: _Tools = (leaks,), **options: Any) -> Any:
    made = make(*script, system_prompt=PROSE, metadata=_METADATA, **options)
    for tool in tools:
        made.tool_plain(tool)
    return made


async def _talks() -> None:
    made = _made(agent, calls("leaks", said=WORD), calls(WORD, said=PROSE), calls("leaks:call-3"), text(WORD))
    await made.run(PROSE, instructions=WORD)


async def _fails() -> None:
    await _made(agent, calls("bursts", said=WORD), tools=(bursts,)).run([PROSE, WORD])


async def _tries() -> None:
    await _made(agent, calls("tries", said=WORD), calls("tries", said=PROSE), tools=(tries,)).run(PROSE)


async def _invents() -> None:
    await _made(agent, calls(WORD, said=PROSE), calls(WORD, said=PROSE)).run(PROSE)


async def _provider_fails() -> None:
    await _made(agent, http(500)).run(PROSE)


async def _model_raises() -> None:
    await _made(agent, ValueError(PROSE, WORD)).run(PROSE)


async def _is_cut_off() -> None:
    await _made(agent, *[broken_call("leaks")] * 3).run(PROSE)


async def _is_limited() -> None:
    await _made(agent, calls("leaks", said=WORD)).run(PROSE, usage_limits=UsageLimits(request_limit=1))


async def _is_structured() -> None:
    await _made(agent, calls("final_result", order=WORD), output=Answer).run(PROSE)


async def _is_streamed() -> None:
    async with _made(agent, calls("leaks", said=WORD), text(PROSE)).run_stream(PROSE) as stream:
        async for _ in stream.stream_text(debounce_by=None):
            pass


async def _waits() -> None:
    tools: _Tools = (defers, asks)
    made = _made(waiting, calls("defers:call-1", "asks:call-2", said=WORD), text(PROSE), tools=tools)
    first = await made.run(PROSE)
    results = DeferredToolResults(calls={"call-1": PROSE}, approvals={"call-2": ToolDenied(WORD)})
    await made.run(message_history=first.all_messages(), deferred_tool_results=results)


async def _leaves() -> None:
    async with _made(agent, calls("leaks", said=WORD), text(PROSE)).iter(PROSE) as run:
        async for _ in run:
            raise ValueError(PROSE, WORD)


async def _conversation_with_prose() -> None:
    await _made(agent, text(WORD)).run(PROSE, conversation_id=PROSE)


TALKS = [
    _talks, _fails, _tries, _invents, _provider_fails, _model_raises, _is_cut_off, _is_limited, _is_structured,
    _is_streamed, _waits, _leaves, _conversation_with_prose,
]  # fmt: skip


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch, provider.get_tracer("test").start_as_current_span("program") as span:
        patch.setattr(trace, "get_current_span", lambda *_: span)
        yield exporter


@pytest.mark.parametrize("talk", TALKS)
def test_nothing_of_it_comes_out(
    talk: Callable[[], Any], spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "stopcause")
    with recorded(label_keys=["tenant"], approval_keys={"owner": "owner"}) as receipts:
        stopcause.instrument("pydantic_ai")
        try:
            with contextlib.suppress(Exception):
                asyncio.run(talk())
        finally:
            stopcause.uninstrument()
        lines = receipts.lines
        assert receipts.receipts
    trace.get_current_span().end()
    said = [record.getMessage() for record in caplog.records if record.name.startswith("stopcause")]
    ours = [
        f"{name} {value!r}" for span in spans.get_finished_spans() for name, value in (span.attributes or {}).items()
    ]
    assert any(each.startswith("stopcause.stop.cause") for each in ours)
    for mark in MARKS:
        assert not any(mark in line for line in lines)
        assert not any(mark.decode() in each for each in [*said, *ours])


def test_what_the_host_allows_comes_out() -> None:
    """The control: a mark that is allowed to come out is found, and so would one be that is not."""
    with recorded(label_keys=["word"], approval_keys={"owner": "word"}) as receipts:
        stopcause.instrument("pydantic_ai")
        asyncio.run(_waits())
        stopcause.uninstrument()
        assert any(b'"owner":"canary7f3a"' in line for line in receipts.lines)
        assert any(b'"labels":{"word":"canary7f3a"}' in line for line in receipts.lines)
