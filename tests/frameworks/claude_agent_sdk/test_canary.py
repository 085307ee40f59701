"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIJSONDecodeError,
    PermissionResultDeny,
    ProcessError,
)
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.claude_agent_sdk.models import (
    ANSWERED,
    Wire,
    ask,
    asks,
    call,
    came,
    failed,
    init,
    options,
    result,
    said,
    say,
    task,
    used,
)

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")


def _plays(*script: Any) -> Callable[[], Coroutine[Any, Any, Any]]:
    return lambda: ask(ClaudeAgentOptions(system_prompt=PROSE), PROSE, transport=Wire(script))


async def _talks() -> None:
    """The real command line: prompt, system prompt, arguments, results, an invented tool, an answer."""
    turns = (call(command=f"echo {WORD}; false"), call(WORD, "toolu_2", text=PROSE), say(PROSE))
    await ask(options(*turns, system_prompt=PROSE), f"{PROSE} {WORD}")


_waits = _plays(
    init(), said(used()), result(result=WORD, terminal_reason="tool_deferred", deferred_tool_use=used(name=WORD))
)
_errors = _plays(init(), said(WORD), failed("api_error"), ProcessError(PROSE, exit_code=1, stderr=WORD))
_garbled = _plays(init(), CLIJSONDecodeError(WORD, ValueError(PROSE)))
_refused = _plays(
    init(), said(used(name=WORD)), came(is_error=True),
    result(permission_denials=[{"tool_name": WORD, "tool_use_id": "toolu_1", "tool_input": {"command": PROSE}}]),
)  # fmt: skip
_hands_over = _plays(
    init("Task"), said(used(name="Task")), task("task_started", subagent_type=WORD, prompt=PROSE),
    said(WORD, parent="toolu_1"), task("task_updated", patch={"status": "failed", "error": WORD}), came(), result(),
)  # fmt: skip
_prose = _plays(init(), said(PROSE), result(PROSE, terminal_reason=PROSE, stop_reason=PROSE))


async def _asks() -> None:
    async def can_use_tool(*_: Any) -> Any:
        return PermissionResultDeny(message=PROSE)

    agents = {"helper": AgentDefinition(description=PROSE, prompt=WORD)}
    given = ClaudeAgentOptions(can_use_tool=can_use_tool, agents=agents)
    script = [init(), said(used(name=WORD)), asks(name=WORD), ANSWERED, came(is_error=True), result(result=WORD)]
    async with ClaudeSDKClient(given, Wire(script)) as client:
        await client.query(PROSE)
        async for _ in client.receive_response():
            pass


WAYS = {
    "talks": _talks, "waits": _waits, "errors": _errors, "garbled": _garbled, "refused": _refused,
    "hands-over": _hands_over, "prose": _prose, "asks": _asks,
}  # fmt: skip


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("claude_agent_sdk")
    yield
    stopcause.uninstrument("claude_agent_sdk")


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """What is exported of spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.mark.parametrize("way", WAYS)
def test_no_content_in_records_logs_or_spans(
    way: str, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    spans.clear()
    with recorded(label_keys=["team"], approval_keys={"owner": "who"}) as receipts:
        with trace.get_tracer("test").start_as_current_span("around"):
            asyncio.run(WAYS[way]())
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
    with recorded() as receipts:
        asyncio.run(
            _plays(
                init(WORD),
                said(used(name=WORD)),
                result(deferred_tool_use=used(name=WORD), terminal_reason="tool_deferred"),
            )()
        )
        assert MARKS[1] in b"\n".join(receipts.lines)
