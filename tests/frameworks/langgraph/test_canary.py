"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelCallLimitMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.langgraph import models
from tests.frameworks.langgraph.models import agent, call, graph, say

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")
ASK = {"messages": [("user", f"{PROSE} {WORD}")]}
ABOUT: Any = {"metadata": {"note": PROSE, "word": WORD}, "tags": [WORD], "run_name": WORD}


def leaks(text: str) -> str:
    """Gives back what it gets."""
    return f"{text} {PROSE} {WORD}"


def bursts(text: str) -> str:
    """Raises what it gets."""
    raise ValueError(f"{text} {PROSE}")


def _talks() -> None:
    made = agent(
        call("leaks", text=WORD), call(WORD, text=PROSE), say("stop", WORD), tools=[leaks, bursts], system_prompt=PROSE
    )
    made.invoke(ASK, ABOUT | models.thread())


def _streams() -> None:
    made = agent(call("leaks", text=WORD), say("stop", WORD), tools=[leaks], system_prompt=WORD)
    modes: Any = ["values", "updates", "messages", "debug", "custom", "tasks", "checkpoints"]
    assert list(made.stream(ASK, ABOUT, stream_mode=modes))


def _tool_fails() -> None:
    with contextlib.suppress(ValueError):
        agent(call("bursts", text=WORD), tools=[bursts]).invoke(ASK, ABOUT)


def _model_fails() -> None:
    with contextlib.suppress(RuntimeError):
        agent(RuntimeError(f"{PROSE} {WORD}")).invoke(ASK, ABOUT)


def _node_fails() -> None:
    def burst(_state: models.State) -> models.State:
        raise KeyError(WORD) from ValueError(PROSE)

    with contextlib.suppress(KeyError):
        graph(burst).invoke({"done": [WORD, PROSE]}, ABOUT)


def _gated(*decisions: Any) -> None:
    middleware = [HumanInTheLoopMiddleware(interrupt_on={"leaks": True}, description_prefix=PROSE)]
    made = agent(
        call("leaks", "leaks", text=WORD), say("stop", WORD), tools=[leaks], middleware=middleware,
        checkpointer=InMemorySaver(),
    )  # fmt: skip
    config = ABOUT | models.thread()
    made.invoke(ASK, config)
    made.invoke(Command(resume={"decisions": decisions}), config)


def _is_answered() -> None:
    edit = {"type": "edit", "edited_action": {"name": "leaks", "args": {"text": PROSE}}}
    _gated(edit, {"type": "reject", "message": WORD})


def _asks() -> None:
    def ask(_state: models.State) -> models.State:
        given = interrupt({"action_requests": [{"name": WORD, "args": {WORD: PROSE}}], "who": "team:a", "note": WORD})
        return {"done": [interrupt(WORD), interrupt({"type": "tool_approval", "name": WORD, "note": PROSE}), given]}

    made, config = graph(ask, checkpointer=InMemorySaver()), ABOUT | models.thread()
    made.invoke({"done": [WORD]}, config)
    made.invoke(Command(resume={"decisions": [{"type": WORD, "message": PROSE}]}), config)
    made.invoke(Command(resume=WORD), config)
    made.invoke(Command(resume=PROSE), config)


def _is_bounded() -> None:
    limit = ModelCallLimitMiddleware(run_limit=1)
    agent(call("leaks", text=WORD), tools=[leaks], middleware=[limit]).invoke(ASK, ABOUT)


def _is_refused() -> None:
    with contextlib.suppress(Exception):
        graph(models.collect).invoke({WORD: PROSE}, ABOUT)


WAYS = [_talks, _streams, _tool_fails, _model_fails, _node_fails, _is_answered, _asks, _is_bounded, _is_refused]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("langgraph")
    yield
    stopcause.uninstrument("langgraph")


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
    assert b"shape_changed" not in written
    assert b"hook_failed" not in written
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
        agent(say(), name=WORD).invoke(ASK)
        assert MARKS[1] in b"\n".join(receipts.lines)
