"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from strands import tool
from strands.hooks import BeforeModelCallEvent
from strands.multiagent import GraphBuilder, Swarm
from strands.session.file_session_manager import FileSessionManager

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.strands.models import Turn, agent, answers, answers_with, ask_before, call, failing, say

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")


@tool
def leaks(text: str) -> str:
    """Gives back what it gets.

    Args:
        text: anything.
    """
    return f"{text} {PROSE} {WORD}"


@tool
def bursts(text: str) -> str:
    """Raises what it gets.

    Args:
        text: anything.
    """
    raise ValueError(f"{text} {PROSE}")


def _talks() -> None:
    made = agent(
        call("leaks", text=WORD), call("bursts", "call-2", text=PROSE), call(WORD, "call-3", text=WORD), say(WORD),
        tools=[leaks, bursts], system_prompt=PROSE, trace_attributes={"note": PROSE, "word": WORD},
    )  # fmt: skip
    made(PROSE, invocation_state={"result": WORD, "start_event_loop": WORD, "event": PROSE})


def _waits() -> None:
    made = agent(call("leaks", text=WORD), say(WORD), tools=[leaks], hooks=[ask_before("leaks", reason={"note": WORD})])
    made(answers(made(PROSE), WORD))


def _is_answered() -> None:
    made = agent(call("leaks", text=WORD), say(WORD), tools=[leaks], hooks=[ask_before("leaks", reason=PROSE)])
    made(answers(made(PROSE)))


def _fails() -> None:
    failing(lambda: agent(Turn(error=RuntimeError(f"{PROSE} {WORD}")))(WORD))


def _hook_fails() -> None:
    def callback(_: Any) -> None:
        raise RuntimeError(WORD)

    failing(lambda: agent(say(), hooks=[answers_with(BeforeModelCallEvent, callback)])(WORD))


def _graph() -> None:
    builder = GraphBuilder()
    builder.add_node(agent(call("leaks", text=WORD), say(PROSE), tools=[leaks], name="reader"), "reader")
    builder.build()(WORD)


def _swarm() -> None:
    hand = call("handoff_to_agent", agent_name="writer", message=PROSE, context={WORD: WORD})
    Swarm([agent(hand, say(WORD), name="reader"), agent(Turn(error=ValueError(WORD)), name="writer")])(PROSE)


WAYS = [_talks, _waits, _is_answered, _fails, _hook_fails, _graph, _swarm]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("strands")
    yield
    stopcause.uninstrument("strands")


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """What is exported of spans, Strands' own too: those carry content, ours must not."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_no_content_in_records_logs_or_spans(
    way: Callable[[], None], spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    spans.clear()
    with recorded(label_keys=["team"], approval_keys={"owner": "who"}) as receipts:
        with trace.get_tracer("test").start_as_current_span("around"):
            way()
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
def test_a_session_that_is_called_like_a_person(name: str, tmp_path: Path) -> None:
    """The name of a session is what resumes it, and is not told where it may be a person's."""
    manager = FileSessionManager(name, storage_dir=str(tmp_path))
    with recorded() as receipts:
        agent(call("pay"), hooks=[ask_before("pay")], session_manager=manager)("Go.")
        assert name.encode() not in b"\n".join(receipts.lines)
        (wait,) = receipts.stopped.approvals or ()
        assert (wait.resumable, (receipts.stopped.thread_id or "")[:5]) == (True, "hmac:")


def test_a_mark_would_be_found() -> None:
    with recorded() as receipts:
        agent(say(), name=WORD)("Go.")
        assert MARKS[1] in b"\n".join(receipts.lines)
