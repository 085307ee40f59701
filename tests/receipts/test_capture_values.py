"""What hosts say to the core hook: ids, values that cannot be used, `configure`, what is around a run."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

import stopcause
from stopcause.errors import ConfigurationError
from stopcause.receipts import capture
from stopcause.receipts.causes import Rank
from stopcause.receipts.testing import Recorded, recorded
from stopcause.receipts.vocabulary import Boundary, StopCause

# Values ---------------------------------------------------------------------------------------------------------------


def test_ids_of_the_host_may_be_uuids_numbers_or_sentences(receipts: Recorded) -> None:
    with stopcause.run("a", run_id=uuid.UUID(int=7), thread_id=42):  # type: ignore[arg-type]  # what hosts do
        pass
    with stopcause.run("a", run_id="the user's own words", thread_id="and more of them"):
        pass

    first, second = receipts.receipts
    assert (first.run_id, first.thread_id) == (str(uuid.UUID(int=7)), "42")
    assert second.run_id.startswith("hmac:")
    assert (second.thread_id or "").startswith("hmac:")
    assert b"words" not in b"".join(receipts.lines)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run.limit("max", "steps", "five"),
        lambda run: run.limit("max", "no_kind", 5),
        lambda run: run.condition("max", "steps", fired="yes", limit=float("nan")),
        lambda run: run.step(tool_calls="two"),
        lambda run: run.step(input_tokens=float("nan"), output_tokens=None),
        lambda run: run.step(cost_usd=float("inf")),
        lambda run: run.waiting(object(), tool=object()),
        lambda run: run.waiting("a b c", kind="no_kind"),
        lambda run: run.resumed("r0", 5),
        lambda run: run.resumed("r0", {"ap": "perhaps"}),
        lambda run: run.progress("no_sign"),
        lambda run: setattr(run, "steps", -1),
        lambda run: setattr(run, "model", "a sentence that is no model's name, but somebody's canary"),
        lambda run: run.step(finish="a sentence with a canary"),
        lambda run: setattr(run, "labels", "canary"),
        lambda run: setattr(run, "input_tokens", object()),
        lambda run: run.find("no identifier at all, a canary", None),
        lambda run: run.say(StopCause.GUARDRAIL, Rank.SIGNAL, Boundary.CALLBACK, reason="the canary said no"),
    ],
)
def test_a_value_that_cannot_be_used_costs_only_itself(receipts: Recorded, spoil: Callable[[Any], None]) -> None:
    with stopcause.run("a", run_id="r1") as run:
        run.step()
        spoil(run)

    stopped = receipts.stopped
    assert stopped.run_id == "r1"
    assert stopped.findings, "what was left out has to be found"
    assert b"canary" not in b"".join(receipts.lines)


def test_a_parameter_that_there_is_not_costs_only_itself_and_is_said(
    receipts: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    with stopcause.run("a") as run:
        run.step(tools=1)
        run.bounded("no_cause", "max", "steps")
        run.waiting("ap-1", owner="team:pay", due_s=1800, resume_token="t-1")  # type: ignore[call-arg]

    stopped = receipts.stopped
    assert [(each.approval_id, each.owner) for each in stopped.approvals or ()] == [("ap-1", "team:pay")]
    assert (stopped.stop_cause, stopped.steps) == ("approval_pending", 1)
    assert {each.where for each in stopped.findings or ()} == {"step.tools", "bounded.cause", "waiting.due_s"}
    assert "waiting() has no due_s; the rest of the call holds" in caplog.text


def test_what_was_refused_is_named_with_its_hook(receipts: Recorded) -> None:
    run = capture.begin("stopcause.x", "x", "1.0").start()
    run.steps = -1
    run.waits = ({"approval_id": 5, "kind": "tool_call", "tool": None, "at_ns": 1},)
    run.end()

    stopped = receipts.stopped
    assert (stopped.steps, stopped.approvals) == (None, ())
    assert {finding.where for finding in stopped.findings or ()} == {
        "stopcause.x:steps",
        "stopcause.x:approvals.0.approval_id",
        "stopcause.x:approvals.0",
    }


# Around it ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sink": 5}, "sink"),
        ({"service": "two words are turned, but this is far too long for a name " * 3}, "service"),
        ({"environment": "not one"}, "environment"),
        ({"labels": {"team": "two words"}}, "labels.team"),
        ({"labels": {str(i): "x" for i in range(9)}}, "labels"),
        ({"label_keys": "team"}, "label_keys"),
        ({"route": {"owner": "two words"}}, "route.owner"),
        ({"route": {"oner": "x"}}, "route.oner"),
        ({"route": [{"owner": "x"}, {"due_s": "5m"}]}, "route[1].due_s"),
        ({"route": {"kind": "tools"}}, "route.kind"),
        ({"approval_keys": {"prompt": "x"}}, "approval_keys.prompt"),
        ({"validators": {"c": True}}, "validators.c"),
        ({"lease_s": 0}, "lease_s"),
        ({"queue_max": 1.5}, "queue_max"),
    ],
)
def test_a_wrong_configuration_is_refused_at_once_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^configure: {named.replace('[', '.').replace(']', '.')} must be"):
        stopcause.configure(**options)


def test_labels_are_the_configured_ones_and_the_allowed_ones() -> None:
    with recorded(labels={"region": "eu"}, label_keys=["team"]) as found:
        with stopcause.run("a", labels={"team": "billing", "prompt": "canary"}):
            pass

        assert found.stopped.labels == {"region": "eu", "team": "billing"}


@pytest.mark.parametrize("word", ["1", "true", "all", "langgraph, 1"])
def test_turned_off_it_records_nothing(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as found:
        with stopcause.run("a") as run:
            run.step()
            run.progress()
            run.outcome("o1")
            run.waiting("ap-1")

        assert found.lines == []
        assert run.run_id


def test_a_receipt_knows_its_trace_and_marks_the_span_without_its_status(receipts: Recorded) -> None:
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("invoke_agent") as span, stopcause.run("a") as run:
        run.step()

    context = span.get_span_context()
    assert receipts.stopped.trace_id == f"{context.trace_id:032x}"
    assert receipts.stopped.span_id == f"{context.span_id:016x}"
    assert dict(span.attributes or {}) == {"stopcause.stop.cause": "natural", "stopcause.step.count": 1}  # type: ignore[attr-defined]
    assert span.status.is_unset  # type: ignore[attr-defined]


def test_progress_is_recorded_at_most_once_in_ten_seconds(receipts: Recorded) -> None:
    with stopcause.run("a") as run:
        for _ in range(5):
            run.progress("tool_result")

    kinds = [json.loads(line)["kind"] for line in receipts.lines]
    assert kinds == ["run.started", "run.progress", "run.stopped"]
    assert receipts.stopped.progress is not None
    assert receipts.stopped.progress.made is True


def test_an_open_run_gives_signs_of_life_while_something_drives_it() -> None:
    with recorded(lease_s=0.3) as found:
        with stopcause.run("driven"):
            stream = stopcause.wrap_stream(iter((1, 2)), "unread")
            next(stream)
            threading_wait(lambda: any(b"heartbeat" in line for line in found.lines))
        stream.close()

        alive = {json.loads(line)["run_id"] for line in found.lines if b"heartbeat" in line}
        agents = {
            json.loads(line)["run_id"]: json.loads(line)["agent"] for line in found.lines if b"run.started" in line
        }
        assert {agents[run_id] for run_id in alive} == {"driven"}


def threading_wait(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
