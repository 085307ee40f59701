"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks import harness
from tests.frameworks.openai_agents.models import MARKER, MARKER_WORD, agent, asks_hosted, calls, says
from tests.frameworks.openai_agents.paths import PATHS
from tests.frameworks.openai_agents.paths_approvals import hosted, paused
from tests.frameworks.openai_agents.paths_ends import look_up, run

MARKS = (MARKER[:11].encode(), MARKER_WORD.encode())
HERE = [path for path in PATHS if not harness.differing("openai_agents", path.id).get("absent")]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("openai_agents")
    yield
    stopcause.uninstrument("openai_agents")


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """What is exported of spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.mark.parametrize("path", HERE, ids=lambda path: path.id)
def test_no_content_in_records_logs_or_spans(
    path: harness.Path_, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    spans.clear()
    with recorded(**{"label_keys": ["team"], "approval_keys": {"owner": "who"}, **path.options}) as receipts:
        with trace.get_tracer("test").start_as_current_span("around"):
            harness._drive(path.run)
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


def test_the_name_of_a_hosted_tool_is_the_models_word_and_is_left_out() -> None:
    tools = hosted().tools
    with recorded() as receipts:
        harness._drive(paused(lambda: agent(asks_hosted(MARKER_WORD), tools=tools)))
        assert MARKS[1] not in b"\n".join(receipts.lines)
    assert receipts.stopped.approvals


def test_a_mark_would_be_found() -> None:
    with recorded() as receipts:
        harness._drive(run(lambda: agent(calls("look_up"), says(), name=MARKER_WORD, tools=[look_up])))
        assert MARKS[1] in b"\n".join(receipts.lines)
