"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from smolagents import ActionStep, tool

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.smolagents.models import Turn, agent, call, code, coder, done, failing, helper, say

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")


@tool
def leaks(text: str) -> str:
    """Gives back what it gets: canary-7f3a is here.

    Args:
        text: canary7f3a.
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
    turns = (
        say(PROSE),
        call("leaks", text=WORD),
        call("bursts", text=PROSE),
        call(WORD, text=WORD),
        say(WORD),
        done(WORD),
    )
    made = agent(*turns, tools=[leaks, bursts], description=PROSE, instructions=PROSE, planning_interval=9)
    made.run(PROSE, additional_args={WORD: PROSE})


def _writes_code() -> None:
    turns = (
        code(f"{WORD} = leaks({WORD!r})"),
        code(f"raise ValueError({WORD!r})"),
        say(PROSE),
        code(f"final_answer({WORD!r})"),
    )
    coder(*turns, tools=[leaks]).run(WORD)


def _is_limited() -> None:
    agent(call("leaks", text=WORD), say(WORD), tools=[leaks], max_steps=1).run(PROSE)


def _fails() -> None:
    failing(lambda: agent(Turn(error=RuntimeError(f"{PROSE} {WORD}"))).run(WORD))


def _callback_fails() -> None:
    def callback(_: Any) -> None:
        raise RuntimeError(WORD)

    failing(lambda: agent(done(), step_callbacks={ActionStep: callback}).run(WORD))


def _manages() -> None:
    asks = call("helper", task=WORD, additional_args={"note": PROSE})
    agent(asks, asks, done(WORD), managed_agents=[helper(done(PROSE), Turn(error=ValueError(WORD)))]).run(PROSE)


def _waits() -> None:
    @tool
    def asks(text: str) -> str:
        """Asks.

        Args:
            text: anything.
        """
        run = stopcause.current_run()
        assert run is not None
        run.waiting("wait-1", tool="asks", metadata={"note": text, "who": None})
        return text

    agent(call("asks", text=WORD), done(PROSE), tools=[asks]).run(PROSE)


WAYS = [_talks, _writes_code, _is_limited, _fails, _callback_fails, _manages, _waits]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("smolagents")
    yield
    stopcause.uninstrument("smolagents")


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


def test_a_mark_would_be_found() -> None:
    with recorded() as receipts:
        agent(done(), name=WORD).run("Go.")
        assert MARKS[1] in b"\n".join(receipts.lines)
