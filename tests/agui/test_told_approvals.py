"""Approvals in records: what a run asks, who owns it, and what became of what it took up."""

from __future__ import annotations

from datetime import timedelta

from stopcause.agui import told
from stopcause.agui.told import Draft, Source
from stopcause.agui.values import Begun, Decided, Link, Subagents
from stopcause.agui.words import Ending
from stopcause.receipts.configuration import Route
from stopcause.receipts.vocabulary import ApprovalKind, Decision
from tests.agui.seen import NOON, after, asked, run, yes


def of_kind(drafts: list[Draft], kind: str) -> Draft:
    return next(each for each in drafts if each["kind"] == kind)


def test_what_a_run_asks_is_an_approval_that_names_the_paused_state() -> None:
    interrupt = asked("i-1", "tc-1", tool="send_email", raised_by="sub-1", owner="team:ops", schema_digest="sha256:ab")
    seen = run("r1", asks=(interrupt._replace(due=NOON, expires_at=NOON + timedelta(hours=1)),))

    (approval,) = of_kind(told.ended_records(seen, Link(asked=seen.interrupts), Source()), "run.stopped")["approvals"]

    assert approval == {
        "approval_id": "i-1",
        "state": "routed",
        "kind": "tool_call",
        "raised_by": "sub-1",
        "tool": "send_email",
        "tool_call_id": "tc-1",
        "requested_at": "2026-11-30T12:01:10Z",
        "owner": "team:ops",
        "deadline": "2026-11-30T12:00:00Z",
        "expires_at": "2026-11-30T13:00:00Z",
        "resume_token": "t1/r1/i-1",
        "schema_digest": "sha256:ab",
    }


def test_the_host_s_route_fills_in_what_the_producer_does_not_say() -> None:
    seen = run("r1", asks=(asked("i-1"), asked("i-2", owner="team:mine")))
    route = Route(owner="team:all", due_s=60, expires_s=120)

    source = Source("mailer", route_of=lambda *_: route)

    receipt = of_kind(told.ended_records(seen, Link(asked=seen.interrupts), source), "run.stopped")

    assert [each["owner"] for each in receipt["approvals"]] == ["team:all", "team:mine"]
    assert {each["deadline"] for each in receipt["approvals"]} == {"2026-11-30T12:02:10Z"}
    assert {each["expires_at"] for each in receipt["approvals"]} == {"2026-11-30T12:03:10Z"}


def test_no_route_is_asked_for_what_no_name_fits() -> None:
    asked_for: list[tuple[object, object, object]] = []

    def route_of(*wait: object) -> None:
        asked_for.append((wait[0], wait[1], wait[2]))

    told.ended_records(run("r1"), Link(asked=(asked("i-1"),)), Source("mailer", route_of=route_of))

    assert asked_for == [("mailer", ApprovalKind.TOOL_CALL, None)]


def test_what_the_producer_s_receipt_says_of_a_question_is_kept() -> None:
    said = [{"approval_id": "i-1", "owner": "team:own", "delivered_at": "2026-11-30T12:00:00Z"}, {"approval_id": "x"}]
    seen = run("r1", asks=(asked("i-1", "tc-1"),), receipt={"approvals": said})

    (approval,) = told.ended_records(seen, Link(asked=seen.interrupts), Source())[0]["approvals"]

    assert (approval["owner"], approval["delivered_at"]) == ("team:own", "2026-11-30T12:00:00Z")
    assert (approval["tool_call_id"], approval["resume_token"]) == ("tc-1", "t1/r1/i-1")


def test_an_answer_that_was_taken_is_told_of_the_run_that_asked() -> None:
    link = Link(
        "r1",
        ("i-1", "i-2"),
        decided=(
            Decided("r1", "i-1", Decision.APPROVED, digest="d1"),
            Decided("r1", "i-2", Decision.CANCELLED),
        ),
        executed=(("r1", "i-1"),),
    )

    first, second = told.ended_records(run("r2"), link, Source())[-2:]

    assert (first["run_id"], "seq" in first, first["at"]) == ("r1", False, "2026-11-30T12:02:10.000001Z")
    assert first["approval"].pop("payload_hmac").startswith("hmac:")
    assert first["approval"] == {
        "approval_id": "i-1",
        "state": "decided",
        "decision": "approved",
        "decided_at": "2026-11-30T12:02:10Z",
        "executed": True,
    }
    assert second["approval"] == {
        "approval_id": "i-2",
        "state": "decided",
        "decision": "cancelled",
        "decided_at": "2026-11-30T12:02:10Z",
    }


def test_an_answer_that_was_not_taken_leaves_no_decision() -> None:
    ledger, _ = after(run("r1", asks=(asked("i-1", "tc-1"),)))
    failing = run("r2", Ending.ERROR, yes("i-1"))
    begins = Begun(failing.thread_id, failing.run_id, failing.mode, failing.input, failing.began_at)

    start = told.begun_records(begins, ledger.begun(begins), Source())
    end = told.ended_records(failing, ledger.ended(failing), Source())

    assert [(each["kind"], each["answers"]) for each in start] == [("run.started", ["i-1"])]
    assert [(each["kind"], each["resumes_run_id"], each["answers"]) for each in end] == [("run.stopped", "r1", [])]


def test_a_call_without_leave_is_told_of_both_runs() -> None:
    link = Link(bypassed=(("r1", "i-1"),))

    receipt, update = told.ended_records(run("r2"), link, Source())

    assert receipt["approvals"] == [{"approval_id": "i-1", "executed": True}]
    assert (update["run_id"], update["approval"]) == ("r1", {"approval_id": "i-1", "executed": True})


def test_an_id_is_an_approval_once() -> None:
    seen = run("r2", asks=(asked("i-1"), asked("i-2")))
    link = Link(bypassed=(("r1", "i-1"),), asked=seen.interrupts)

    receipt = told.ended_records(seen, link, Source())[0]

    assert [each["approval_id"] for each in receipt["approvals"]] == ["i-1", "i-2"]
    assert all("executed" not in each for each in receipt["approvals"])


def test_a_suspended_subagent_waits_by_the_interrupt_of_its_run() -> None:
    asking = run("r1", asks=(asked("i-1"),), subagents=Subagents(suspended=1))
    silent = run("r2", subagents=Subagents(suspended=1))

    assert "children" not in told.ended_records(asking, Link(asked=asking.interrupts), Source())[0]
    assert told.ended_records(silent, Link(), Source())[0]["children"]["waiting"] == 1
