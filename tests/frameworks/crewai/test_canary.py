"""No byte of content comes out: not in records, not in our logs, not on spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from crewai.flow.flow import start
from crewai.flow.human_feedback import human_feedback
from crewai.tools import tool
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.crewai.flows import Asking, Desk, Quick, store
from tests.frameworks.crewai.models import Turn, act, agent, call, crew, failing, say
from tests.frameworks.crewai.paths_waits import Answers

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")
ROLES: dict[str, Any] = {"role": WORD, "goal": PROSE, "backstory": WORD}


@tool("leaks")
def leaks(text: str = "") -> str:
    """Gives back what it gets."""
    return f"{text} {PROSE} {WORD}"


@tool("bursts")
def bursts(text: str = "") -> str:
    """Raises what it gets."""
    raise ValueError(f"{text} {PROSE}")


def _crew(*turns: Turn, **more: Any) -> Any:
    doing = {"description": PROSE, "expected_output": WORD, "name": WORD} | more.pop("doing", {})
    return crew(*turns, of={"tools": [leaks, bursts], **ROLES} | more.pop("of", {}), doing=doing, **more)


def _talks() -> None:
    given = f'{{"text": "{WORD}"}}'
    made = _crew(call("leaks", given), call("bursts", given), call(WORD, given), say(WORD))
    made.security_config.fingerprint.metadata = {"note": PROSE, "word": WORD}
    made.kickoff(inputs={"topic": WORD})


def _talks_in_text() -> None:
    turns = [act("leaks", f'{{"text": "{WORD}"}}'), act(WORD), act("bursts"), say(f"Final Answer: {WORD}")]
    _crew(*turns, of={"llm": {"is_calling": False}}).kickoff()


def _is_alone() -> None:
    agent(call("leaks", f'{{"text": "{WORD}"}}'), say(WORD), tools=[leaks], **ROLES).kickoff(WORD)


def _fails() -> None:
    failing(_crew(*[Turn(error=RuntimeError(f"{PROSE} {WORD}"))] * 3).kickoff)


def _is_refused() -> None:
    doing = {"guardrail": lambda _: (False, WORD), "guardrail_max_retries": 0}
    failing(_crew(say(PROSE), doing=doing).kickoff)


def _is_reviewed() -> None:
    with mock.patch("builtins.input", side_effect=[WORD, ""]):
        _crew(say(WORD), say(WORD), say(WORD), doing={"human_input": True}).kickoff()


class Reviewed(Quick):
    """Asks for feedback with content in all of its places."""

    @start()
    @human_feedback(message=PROSE, provider=Desk(), metadata={"who": PROSE, "note": WORD})
    def draft(self) -> str:
        return WORD


def _waits() -> None:
    flow = Reviewed(persistence=store())
    flow.kickoff(inputs={"note": WORD})
    Reviewed.from_pending(flow.flow_id, flow.persistence).resume(WORD)


def _asks() -> None:
    Asking(input_provider=Answers([WORD])).kickoff(inputs={"note": PROSE})


WAYS = [_talks, _talks_in_text, _is_alone, _fails, _is_refused, _is_reviewed, _waits, _asks]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("crewai")
    yield
    stopcause.uninstrument("crewai")


@pytest.fixture
def spans() -> InMemorySpanExporter:
    """What is exported of the span around. Not by the global provider: CrewAI sets one of its own in some versions."""
    return InMemorySpanExporter()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_no_content_in_records_logs_or_spans(
    way: Callable[[], None], spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with recorded(label_keys=["team"], approval_keys={"owner": "who"}) as receipts:
        with provider.get_tracer("test").start_as_current_span("around"):
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


def test_a_flow_whose_id_is_a_person() -> None:
    """The id of a flow is what resumes it, and is not told where it may be a person's."""
    with recorded() as receipts:
        Reviewed(persistence=store()).kickoff(inputs={"id": "someone@example.org"})
        assert b"someone@example.org" not in b"\n".join(receipts.lines)
        (wait,) = receipts.stopped.approvals or ()
        assert (wait.resumable, wait.resume_token, (receipts.stopped.thread_id or "")[:5]) == (True, None, "hmac:")


def test_a_mark_would_be_found() -> None:
    with recorded() as receipts:
        crew(say(), name=WORD).kickoff()
        assert MARKS[1] in b"\n".join(receipts.lines)
