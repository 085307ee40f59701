"""A2A's states as ends of a run: every form of them, waits and how they are taken up, and nothing but states and ids.

The same with the real SDK is in `tests/frameworks/a2a`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import stopcause
from stopcause.receipts import a2a, model
from stopcause.receipts.testing import recorded
from stopcause.receipts.vocabulary import ApprovalKind, StopCause

ENDS = {
    "submitted": "external_pending",
    "working": "external_pending",
    "completed": "natural",
    "failed": "self_reported_failure",
    "canceled": "caller_abort",
    "input-required": "input_pending",
    "rejected": "input_rejected",
    "auth-required": "approval_pending",
    "unspecified": "unknown",
    "unknown": "unknown",
}
MARK = "canary-7f3a is here"


def stopped(update: object, **ids: str) -> model.RunStopped:
    """The receipt of a run that ended with an update."""
    with recorded() as receipts:
        with stopcause.run("client") as run:
            a2a.ended(run, update, **ids)
        return receipts.stopped


def test_every_state_is_here() -> None:
    assert set(ENDS) == set(a2a.STATES)
    assert all((state.cause is None) != (state.wait is None) for state in a2a.STATES.values())


@pytest.mark.parametrize(("word", "cause"), ENDS.items())
def test_a_state_is_a_cause(word: str, cause: str) -> None:
    assert stopped(word).stop_cause == cause


@pytest.mark.parametrize(
    "state",
    ["input-required", "INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED", 6, SimpleNamespace(value="input-required")],
    ids=["0.3", "word", "1.0", "number", "enum"],
)
def test_every_spelling_is_the_same_state(state: object) -> None:
    assert a2a.word(state) == "input-required"


FORMS: dict[str, Any] = {
    "task": {"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_FAILED"}, "history": [{"text": MARK}]},
    "task-0.3": {"kind": "task", "id": "t-1", "contextId": "c-1", "status": {"state": "failed", "message": MARK}},
    "update": {"taskId": "t-1", "contextId": "c-1", "status": {"state": "failed"}, "final": True},
    "response": {"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_FAILED"}}},
    "envelope": {"jsonrpc": "2.0", "id": 1, "result": {"id": "t-1", "contextId": "c-1", "status": {"state": "failed"}}},
    "object": SimpleNamespace(id="t-1", context_id="c-1", status=SimpleNamespace(state=4), metadata={"x": MARK}),
    "pair": (SimpleNamespace(id="t-1", context_id="c-1", status=SimpleNamespace(state="failed")), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_update_is_read(form: str) -> None:
    assert a2a.read(FORMS[form]) == ("failed", "t-1", "c-1")
    stop = stopped(FORMS[form])
    assert (stop.stop_cause, stop.thread_id) == ("self_reported_failure", "c-1")


def test_a_message_without_a_task_is_an_answer() -> None:
    stop = stopped({"message": {"messageId": "m-1", "contextId": "c-1", "parts": [{"text": MARK}]}})
    assert (stop.stop_cause, stop.thread_id) == ("natural", "c-1")


@pytest.mark.parametrize("update", [None, {}, {"artifactUpdate": {"taskId": "t-1"}}, SimpleNamespace()])
def test_a_stream_without_a_last_state_is_cut_off(update: object) -> None:
    assert (stopped(update).stop_cause, stopped(update).reason_code) == ("stream_truncated", "no_state")


def test_a_canceled_task_was_seen_to_be() -> None:
    stop = stopped("canceled")
    assert stop.abort is not None
    assert stop.abort.observed_at is not None


def test_a_bound_that_the_service_said_before_stays_the_cause() -> None:
    with recorded() as receipts:
        with stopcause.run("service") as run:
            run.bounded("step_limit", "max_turns", "steps", limit=3, observed=3)
            a2a.ended(run, "completed", task_id="t-6")
        assert receipts.stopped.stop_cause == "step_limit"


@pytest.mark.parametrize(("word", "where"), [("paused", "paused"), (99, "99"), (MARK, None)])
def test_a_new_state_is_unknown_and_found(word: str | int, where: str | None) -> None:
    stop = stopped(word, task_id="t-1")
    assert (stop.stop_cause, stop.reason_code) == ("unknown", "state_unknown")
    assert [(each.code, each.where) for each in stop.findings or ()] == [("vocabulary_new", where)]


def test_an_object_like_no_other_raises_nothing() -> None:
    class Odd:
        @property
        def status(self) -> None:
            raise RuntimeError(MARK)

    assert stopped(Odd()).stop_cause == "unknown"


def test_a_wait_is_resumed_by_the_tasks_id() -> None:
    (wait,) = stopped("auth-required", task_id="t-2", context_id="c-2").approvals or ()
    assert (wait.approval_id, wait.kind, wait.resume_token, wait.resumable) == ("t-2", "sign_in", "t-2", True)


def test_an_id_that_may_be_a_persons_is_no_token() -> None:
    (wait,) = stopped("input-required", task_id="someone@example.org").approvals or ()
    assert wait.resume_token is None


def test_without_an_id_the_wait_is_not_lost() -> None:
    (wait,) = stopped("input-required").approvals or ()
    assert (wait.resume_token, wait.resumable) == (None, None)


def test_the_next_message_takes_the_wait_up() -> None:
    with recorded() as receipts:
        with stopcause.run("client") as asked:
            a2a.ended(asked, "input-required", task_id="t-3")
        with stopcause.run("client") as run:
            a2a.resumed(run, "t-3")
            a2a.ended(run, "completed", task_id="t-3")
        _, stop = receipts.receipts
        decided = [record.approval for record in receipts.records if isinstance(record, model.ApprovalUpdated)]
    assert (stop.resumes_run_id, stop.answers, stop.stop_cause) == (asked.run_id, ("t-3",), "natural")
    assert [each.decision for each in decided] == ["answered"]


def test_in_another_process_the_run_that_waited_is_named() -> None:
    with recorded() as receipts:
        with stopcause.run("client") as run:
            a2a.resumed(run, "t-4", run_id="run-of-before")
        assert receipts.stopped.resumes_run_id == "run-of-before"


@pytest.mark.parametrize("says_so", [True, False])
def test_a_run_that_answers_and_goes_on_waits_no_more(says_so: bool) -> None:
    with recorded() as receipts:
        with stopcause.run("client") as run:
            a2a.ended(run, "input-required", task_id="t-5")
            if says_so:
                a2a.resumed(run, "t-5")
            a2a.ended(run, "completed", task_id="t-5")
        (wait,) = receipts.stopped.approvals or ()
        assert (receipts.stopped.stop_cause, wait.decision) == ("natural", "answered")


def test_a_task_without_an_id_is_not_taken_up() -> None:
    with recorded() as receipts:
        with stopcause.run("client") as run:
            a2a.resumed(run, None)
        assert [each.where for each in receipts.stopped.findings or ()] == ["a2a.resumed"]


def test_no_content_comes_out() -> None:
    with recorded() as receipts:
        for form in FORMS.values():
            with stopcause.run("client") as run:
                a2a.ended(run, form)
        assert b"canary" not in b"\n".join(receipts.lines)


def test_the_causes_and_kinds_are_words_of_the_format() -> None:
    assert all(state.cause is None or state.cause in StopCause for state in a2a.STATES.values())
    assert all(state.wait is None or state.wait in ApprovalKind for state in a2a.STATES.values())


def test_a_task_without_an_id_that_goes_on_waits_no_more() -> None:
    with recorded() as receipts:
        with stopcause.run("client") as run:
            a2a.ended(run, "input-required")
            a2a.ended(run, "completed")

        assert receipts.stopped.stop_cause == "natural"
        assert receipts.stopped.findings is None


@pytest.mark.parametrize("bad", [{"task_id": None}, {"task_id": 7}, {"task_id": ["t-1"]}])
def test_an_id_that_is_none_is_found_and_raises_nothing(bad: dict[str, Any]) -> None:
    with recorded() as receipts:
        with stopcause.run("client") as run:
            a2a.resumed(run, **bad)

        assert receipts.stopped.findings == (model.Finding(code="refused_value", where="a2a.resumed"),)


def test_an_agent_s_name_of_another_type_raises_nothing() -> None:
    with recorded() as receipts:
        with stopcause.run(["client"]) as run:  # type: ignore[arg-type]
            a2a.resumed(run, "t-1")
            a2a.ended(run, "completed", task_id="t-1")

        assert receipts.stopped.stop_cause == "natural"


@pytest.mark.parametrize("task_id", ["has a space", "ann@mail.example"])
def test_an_id_that_is_not_told_as_it_is_resumes_nothing(task_id: str) -> None:
    (wait,) = stopped("input-required", task_id=task_id).approvals or ()

    assert wait.resume_token is None


@pytest.mark.parametrize("state", [True, False, None, [], 1.5, float("nan")])
def test_what_is_no_state_is_none(state: object) -> None:
    assert a2a.word(state) is None
