"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.temporal import asking
from tests.frameworks.temporal import workflows as made
from tests.frameworks.temporal.models import one
from tests.frameworks.temporal.paths import PATHS

WORD = "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")
# In paths, marks are arguments and results of activities, and the texts of failures, signals and terminations.
NAMES = (
    "natural", "signal-fails", "activity-fails", "activity-refuses", "activity-invented", "activity-under-any-name",
    "workflow-under-any-name", "child-invented", "local-activity-fails", "raises", "raises-plainly", "terminated",
    "child-terminated", "continued-fails", "task-fails", "asks-in-time", "input-given", "denied-fails",
    "agent-in-activity",
)  # fmt: skip
WAYS: dict[str, Callable[[], Any]] = {path.id: path.run for path in PATHS if path.id in NAMES}


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("temporal")
    yield
    stopcause.uninstrument("temporal")


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """What is exported of spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.mark.parametrize("name", NAMES)
def test_no_content_in_records_logs_or_spans(
    name: str, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    spans.clear()
    with recorded(label_keys=["team"], approval_keys={"owner": "nobody"}) as receipts:
        with trace.get_tracer("test").start_as_current_span("around"), stopcause.run("around"):
            asyncio.run(WAYS[name]())
        written = b"\n".join(receipts.lines)
    assert b'"temporal"' in written
    logged = "".join(each.getMessage() for each in caplog.records if each.name.startswith("stopcause")).encode()
    ours = [f"{key} {value!r}" for span in spans.get_finished_spans() for key, value in (span.attributes or {}).items()]
    marked = "\n".join(each for each in ours if each.startswith("stopcause.")).encode()
    assert marked
    for mark in MARKS:
        assert mark not in written
        assert mark not in logged
        assert mark not in marked


@pytest.mark.parametrize("name", ["someone@example.org", "+491701234567"])
def test_a_workflow_that_is_called_like_a_person(name: str) -> None:
    """Its id is what resumes it, and is not told where it may be a person's."""
    with recorded() as receipts:
        asyncio.run(one(asking.Approves, 0.2, False, id=name)())
        assert name.encode() not in b"\n".join(receipts.lines)
        assert (receipts.stopped.thread_id or "")[:5] == "hmac:"


def test_a_type_of_a_failure_that_is_a_person_is_no_code() -> None:
    with recorded() as receipts:
        asyncio.run(one(made.Raises, "someone@example.org")())
        assert b"someone" not in b"\n".join(receipts.lines)
        assert (receipts.stopped.stop_cause, receipts.stopped.reason_code) == ("host_error", None)


def test_a_mark_would_be_found() -> None:
    with recorded() as receipts:
        asyncio.run(one(made.Calls, ["look_up"], id=f"ticket-{WORD}")())
        assert MARKS[1] in b"\n".join(receipts.lines)
