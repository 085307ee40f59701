"""What the programs share: `python PROGRAM VARIANT` prints the CPU microseconds of one run, all threads counted."""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Mapping

RUNS = 300


def tracer_provider() -> object:
    """An SDK that records every span and sends it nowhere: what an instrumentation costs before any network."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, _spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    return provider


def ours() -> None:
    """Our hook, as it is by default: into a spool on the disk."""
    import os

    os.environ["STOPCAUSE_SPOOL"] = tempfile.mkdtemp()
    import stopcause

    if not stopcause.instrument():
        raise SystemExit("no hook is on")


def main(once: Callable[[], object], variants: Mapping[str, Callable[[], object]]) -> None:
    """Turns the variant on, warms up, and prints what a run costs."""
    variant = sys.argv[1]
    if variant != "bare":
        ({"stopcause": ours} | dict(variants))[variant]()
    for _ in range(50):
        once()
    gc.collect()
    begun = time.process_time()
    for _ in range(RUNS):
        once()
    if variant == "stopcause":
        import stopcause

        stopcause.flush()
    print((time.process_time() - begun) / RUNS * 1e6)
