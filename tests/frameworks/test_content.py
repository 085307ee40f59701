"""No byte of content comes out: not in records, not in our logs, not in what we write on spans.

Run for each framework in its own environment. `doors` in the framework's folder has functions that push PROSE and WORD
through everything of the framework that takes text (DOORS), and one that leaves WORD where it may be, as the name of an
agent (CONTROL): there the test has to find it. A door may have `options` of its own, for `configure`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.marks import MARKS

_FRAMEWORK = os.environ["STOPCAUSE_FRAMEWORK"]
if not (Path(__file__).parent / _FRAMEWORK / "doors.py").exists():  # one that is there and cannot be imported fails
    pytest.skip("its own test_canary has them", allow_module_level=True)
_MODULE: Any = importlib.import_module(f"tests.frameworks.{_FRAMEWORK}.doors")

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    assert _FRAMEWORK in stopcause.instrument(_FRAMEWORK)
    yield
    stopcause.uninstrument(_FRAMEWORK)


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """What is exported of spans, the framework's own too: those may carry content, ours must not."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def _run(door: Callable[[], Any]) -> None:
    made = door()
    if inspect.iscoroutine(made):
        asyncio.run(made)


@pytest.mark.parametrize("door", _MODULE.DOORS, ids=lambda door: door.__name__.strip("_"))
def test_no_content_in_records_logs_or_spans(
    door: Callable[[], Any], spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    spans.clear()
    caplog.set_level(logging.DEBUG, "stopcause")
    options = {"label_keys": ["team"], "approval_keys": {"owner": "who"}, **getattr(door, "options", {})}
    with recorded(**options) as receipts:
        with trace.get_tracer("test").start_as_current_span("around"):
            _run(door)
        written = b"\n".join(receipts.lines)
    logged = "".join(each.getMessage() for each in caplog.records if each.name.startswith("stopcause")).encode()
    told = [f"{key} {value!r}" for span in spans.get_finished_spans() for key, value in (span.attributes or {}).items()]
    marked = "\n".join(each for each in told if each.startswith("stopcause.")).encode()

    assert receipts.receipts
    assert marked or not getattr(_MODULE, "MARKS_SPANS", True)
    for mark in MARKS:
        assert mark not in written
        assert mark not in logged
        assert mark not in marked


def test_a_mark_would_be_found() -> None:
    with recorded() as receipts:
        _run(_MODULE.CONTROL)
        assert any(mark in b"\n".join(receipts.lines) for mark in MARKS)
