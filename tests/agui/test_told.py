"""Records of runs and threads: every one is read back as it was written, and says what is known and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stopcause.agui import told
from stopcause.agui.findings import found
from stopcause.agui.inputs import read_input
from stopcause.agui.ledger import Ledger
from stopcause.agui.lifecycle import Watch
from stopcause.agui.told import Draft, Source
from stopcause.agui.values import Begun, Decided, Input, Link, RunSeen, Subagents, Usage
from stopcause.agui.words import Ending, Mode
from stopcause.receipts import codec, model
from stopcause.receipts.configuration import Route
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import ApprovalKind, Decision, Sign
from stopcause.resources import data_folder
from tests.agui.seen import NOON, THREAD, after, asked, run, yes

CASES = sorted(
    path for part in ("ledger", "recordings") for path in (data_folder("fixtures") / "agui" / part).glob("*")
)
MARK = "canary-4711"


def drafts_of(exchanges: list[Mapping[str, Any]], source: Source) -> Iterator[Draft]:
    """What a tap tells of a history."""
    ledger = Ledger()
    for each in exchanges:
        watch = Watch(read_input(each.get("input")), http_status=each.get("http_status"))
        for event in (*each["events"], None):
            for seen in watch.close() if event is None else watch.take(event):
                if isinstance(seen, Begun):
                    yield from told.begun_records(seen, ledger.begun(seen), source)
                else:
                    yield from told.ended_records(seen, ledger.ended(seen), source)


def of_kind(drafts: list[Draft], kind: str) -> Draft:
    return next(each for each in drafts if each["kind"] == kind)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_record_of_every_history_is_one(path: Path) -> None:
    exchanges = json.loads(path.read_text("utf-8"))["exchanges"]

    for draft in drafts_of(exchanges, Source(now=NOON)):
        record = codec.read_value(draft)

        assert not isinstance(record, codec.LineError), str(record)
        assert record.extra is None
        assert "vocabulary_new" not in {each.code for each in record.findings or ()}


def test_a_receipt_stands_alone() -> None:
    seen = run(
        "r2",
        Ending.SUCCESS,
        yes("i-1"),
        results=("tc-1",),
        protocol_version="1.0",
        calls={"tc-2": "search", "tc-3": None},
        pending=("tc-3",),
        steps=3,
        subagents=Subagents(failed=1),
        usage=Usage(11, 7, "model-x", "provider-y"),
        has_output=True,
        progress_at=NOON,
        made_progress=True,
    )
    source = Source(agent="mailer", service="svc", environment="prod", labels={"team": "a"})
    _, links = after(run("r1", asks=(asked("i-1", "tc-1"),)), seen)

    receipt = of_kind(told.ended_records(seen, links[1], source), "run.stopped")

    expected = {
        "schema": "stopcause/1",
        "kind": "run.stopped",
        "run_id": "r2",
        "seq": 2,
        "boundary": "event_stream",
        "adapter": "stopcause.agui",
        "framework": "ag-ui",
        "framework_version": "1.0",
        "thread_id": THREAD,
        "resumes_run_id": "r1",
        "answers": ["i-1"],
        "agent": "mailer",
        "service": "svc",
        "environment": "prod",
        "labels": {"team": "a"},
        "model": "model-x",
        "provider": "provider-y",
        "stop_cause": "natural",
        "started_at": "2026-11-30T12:02:00Z",
        "at": "2026-11-30T12:02:10Z",
        "duration_s": 10.0,
        "steps": 3,
        "step_unit": "step",
        "tool_calls": 3,
        "pending_tool_calls": 1,
        "usage": {"input_tokens": 11, "output_tokens": 7},
        "progress": {"made": True, "last_at": "2026-11-30T12:00:00Z"},
        "children": {"open": 0, "failed": 1, "waiting": 0},
        "output_shape": "text",
    }
    assert {**receipt, "adapter_version": None} == {**expected, "adapter_version": None}


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


def test_a_start_says_who_runs_it_and_for_how_long_it_lives() -> None:
    begins = Begun(THREAD, "r2", Mode.SPEC, Input(THREAD, "r2", parent_run_id="r0", protocol_version="1.0"), NOON)
    source = Source(agent="mailer", lease_s=60.0, process={"pid": 7})

    (start,) = told.begun_records(begins, Link(), source)

    assert {key: start[key] for key in ("at", "lease_s", "process", "parent_run_id", "framework_version", "seq")} == {
        "at": "2026-11-30T12:00:00Z",
        "lease_s": 60.0,
        "process": {"pid": 7},
        "parent_run_id": "r0",
        "framework_version": "1.0",
        "seq": 0,
    }
    assert "answers" not in start


def test_a_sign_of_life_is_one() -> None:
    begins = Begun(THREAD, "r2", Mode.SPEC, None, NOON)

    record = codec.read_value(told.progress_record(begins, Sign.STATE_CHANGE, NOON))

    assert isinstance(record, model.RunProgress)
    assert (record.run_id, record.sign, record.at) == ("r2", Sign.STATE_CHANGE, NOON)


def test_a_stream_that_fell_silent_says_when_it_was_last_heard() -> None:
    ended = NOON + timedelta(minutes=10)
    seen = run("r1", Ending.TRUNCATED, began_at=NOON, ended_at=ended, last_event_at=NOON, idle_s=600.0)

    sign, receipt = told.ended_records(seen, Link(), Source())

    assert (sign["kind"], sign["sign"], sign["at"]) == ("run.progress", "output", "2026-11-30T12:00:00Z")
    assert (receipt["stop_cause"], receipt["at"]) == ("stream_truncated", "2026-11-30T12:10:00Z")


def test_what_the_stream_does_not_say_the_producer_s_receipt_does() -> None:
    limits = [{"name": "max", "kind": "steps", "limit": 5}]
    receipt = {"steps": 9, "model_calls": 4, "limits": limits, "findings": [{"code": "own"}]}
    seen = run("r1", steps=2, receipt=receipt, findings=(found("TRUNCATED", "r1"),))

    stopped = told.ended_records(seen, Link(), Source())[0]

    assert (stopped["steps"], stopped["model_calls"], stopped["limits"]) == (2, 4, limits)
    assert stopped["findings"] == [{"code": "own"}, {"code": "truncated", "where": "r1"}]


def test_what_the_producer_s_receipt_says_of_a_question_is_kept() -> None:
    said = [{"approval_id": "i-1", "owner": "team:own", "delivered_at": "2026-11-30T12:00:00Z"}, {"approval_id": "x"}]
    seen = run("r1", asks=(asked("i-1", "tc-1"),), receipt={"approvals": said})

    (approval,) = told.ended_records(seen, Link(asked=seen.interrupts), Source())[0]["approvals"]

    assert (approval["owner"], approval["delivered_at"]) == ("team:own", "2026-11-30T12:00:00Z")
    assert (approval["tool_call_id"], approval["resume_token"]) == ("tc-1", "t1/r1/i-1")


def test_notes_of_every_other_stream_are_left_out() -> None:
    seen = run("r1", findings=(found("NO_VERSION"), found("NO_DEADLINE", "i-1"), found("LEGACY_INTERRUPT")))

    assert told.ended_records(seen, Link(), Source())[0]["findings"] == [{"code": "legacy_interrupt"}]


def test_of_a_refused_request_only_that_is_known() -> None:
    seen = run("r2", Ending.REFUSED, http_status=409, reason="http_409", began_at=None, ended_at=NOON)

    (receipt,) = told.ended_records(seen, Link("r1", ()), Source())

    assert (receipt["stop_cause"], receipt["reason_code"], receipt["error"]) == (
        "input_rejected",
        "http_409",
        {"status": 409},
    )
    assert not {"tool_calls", "pending_tool_calls", "progress", "started_at"} & receipt.keys()


@pytest.mark.parametrize("moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
def test_a_time_that_no_run_can_have_is_moved(moment: datetime) -> None:
    seen = run("r1", asks=(asked("i-1", expires_at=moment),), began_at=None, ended_at=moment, progress_at=moment)

    for draft in told.ended_records(seen, Link(asked=seen.interrupts), Source()):
        assert not isinstance(codec.read_value(draft), codec.LineError)


def test_a_run_ends_after_its_start_whatever_the_clocks_say() -> None:
    seen = run("r1", began_at=NOON, ended_at=NOON - timedelta(hours=1))

    receipt = told.ended_records(seen, Link(), Source())[0]

    assert receipt["at"] == "2026-11-30T12:00:00.000001Z"
    assert "duration_s" not in receipt


def test_calls_that_came_back_were_called() -> None:
    whole = run("r2", results=("tc-1", "tc-2"), calls={"tc-2": None, "tc-3": None})

    assert told.ended_records(whole, Link(), Source())[0]["tool_calls"] == 3


@pytest.mark.parametrize("ending", [Ending.TRUNCATED, Ending.REJECTED, Ending.REFUSED])
def test_of_a_stream_that_was_not_seen_whole_nobody_knows_that_it_called_nothing(ending: Ending) -> None:
    silent, busy = run("r1", ending), run("r1", ending, calls={"tc-1": None})

    assert "tool_calls" not in told.ended_records(silent, Link(), Source())[-1]
    assert told.ended_records(busy, Link(), Source())[-1]["tool_calls"] == 1


def test_a_run_that_a_later_stream_restates_is_told_once() -> None:
    first = run("r1", asks=(asked("i-1"),))
    restated = first._replace(input=None)
    begins = Begun(THREAD, "r1", Mode.SPEC, None, NOON)
    ledger, _ = after(first)

    assert told.begun_records(begins, ledger.begun(begins), Source()) == []
    assert told.ended_records(restated, ledger.ended(restated), Source()) == []

    late = restated._replace(ending=Ending.ERROR, is_late=True)
    assert [each["kind"] for each in told.ended_records(late, ledger.ended(late), Source())] == ["run.stopped"]


def test_a_run_that_is_asked_for_again_is_told_again() -> None:
    first = run("r1")
    ledger, _ = after(first)

    assert len(told.ended_records(first, ledger.ended(first), Source())) == 1


def test_a_suspended_subagent_waits_by_the_interrupt_of_its_run() -> None:
    asking = run("r1", asks=(asked("i-1"),), subagents=Subagents(suspended=1))
    silent = run("r2", subagents=Subagents(suspended=1))

    assert "children" not in told.ended_records(asking, Link(asked=asking.interrupts), Source())[0]
    assert told.ended_records(silent, Link(), Source())[0]["children"]["waiting"] == 1


# Content --------------------------------------------------------------------------------------------------------------


def prose(place: str) -> str:
    return f"{MARK} {place} someone@example.org"


def test_no_byte_of_what_people_wrote_is_told() -> None:
    interrupt = {
        "id": prose("id"),
        "reason": prose("reason"),
        "message": prose("message"),
        "toolCallId": "tc-1",
        "responseSchema": {"title": prose("title"), "enum": [prose("enum")]},
        "expiresAt": prose("expiry"),
        "metadata": {"raw": prose("raw"), "stopcause": {"owner": prose("owner"), "due": prose("due")}},
    }
    asks = [
        {"type": "RUN_STARTED", "threadId": prose("thread"), "runId": prose("run"), "protocolVersion": prose("v")},
        {"type": "TOOL_CALL_START", "toolCallId": "tc-1", "toolCallName": prose("tool")},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "tc-1", "delta": prose("args")},
        {"type": "TOOL_CALL_END", "toolCallId": "tc-1"},
        {
            "type": "RUN_FINISHED",
            "threadId": prose("thread"),
            "runId": prose("run"),
            "outcome": {"type": "interrupt", "interrupts": [interrupt]},
            "usage": [{"model": prose("model"), "provider": prose("provider"), "inputTokens": 1}],
            "metadata": {"stopcause": {"reason_code": prose("code"), "error": {"type": prose("error")}}},
        },
    ]
    answer = {"interruptId": prose("id"), "status": "resolved", "payload": {"approved": True, "note": prose("note")}}
    fails = [
        {"type": "RUN_STARTED", "threadId": prose("thread"), "runId": prose("run-2")},
        {"type": "TOOL_CALL_RESULT", "messageId": prose("m"), "toolCallId": "tc-1", "content": prose("result")},
        {"type": "RUN_ERROR", "message": prose("failure"), "code": prose("code")},
    ]
    exchanges: list[Mapping[str, Any]] = [
        {"input": {"threadId": prose("thread"), "runId": prose("run"), "messages": []}, "events": asks},
        {
            "input": {"threadId": prose("thread"), "runId": prose("run-2"), "messages": [], "resume": [answer]},
            "events": fails,
        },
    ]
    drafts = list(drafts_of(exchanges, Source(agent="mailer", now=NOON)))

    assert {each["kind"] for each in drafts} == {"run.started", "run.progress", "run.stopped", "approval.updated"}
    assert MARK not in json.dumps(drafts)
    assert all(is_identifier(each["run_id"]) for each in drafts)


def test_words_with_spaces_are_no_name_of_a_tool_or_a_model() -> None:
    """Underscores would make one of them that every reader takes."""
    words = f"{MARK} tell nobody"
    calls = [{"id": "tc-2", "type": "function", "function": {"name": words, "arguments": "{}"}}]
    asks = [{"id": f"i-{n}", "reason": "tool_call", "toolCallId": f"tc-{n}"} for n in (1, 2)]
    events = [
        {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"},
        {"type": "TOOL_CALL_START", "toolCallId": "tc-1", "toolCallName": words},
        {"type": "TOOL_CALL_END", "toolCallId": "tc-1"},
        {
            "type": "RUN_FINISHED",
            "threadId": "t1",
            "runId": "r1",
            "outcome": {"type": "interrupt", "interrupts": asks},
            "usage": [{"model": words, "inputTokens": 1}],
        },
    ]
    messages = [{"id": "m1", "role": "assistant", "toolCalls": calls}]
    given = {"threadId": "t1", "runId": "r1", "messages": messages}

    drafts = list(drafts_of([{"input": given, "events": events}], Source(now=NOON)))

    assert len(drafts) == 2
    assert MARK not in json.dumps(drafts)


def test_no_route_is_asked_for_what_no_name_fits() -> None:
    asked_for: list[tuple[object, object, object]] = []

    def route_of(*wait: object) -> None:
        asked_for.append((wait[0], wait[1], wait[2]))

    told.ended_records(run("r1"), Link(asked=(asked("i-1"),)), Source("mailer", route_of=route_of))

    assert asked_for == [("mailer", ApprovalKind.TOOL_CALL, None)]


def test_a_run_that_ended_twice_has_two_receipts_in_order() -> None:
    first = run("r1", asks=(asked("i-1"),))
    late: RunSeen = run("r1", Ending.ERROR, asks=(asked("i-1"),), is_late=True)

    _, links = after(first, late)

    receipts = [told.ended_records(*each, Source())[0] for each in zip((first, late), links, strict=True)]

    assert [(each["seq"], each["stop_cause"]) for each in receipts] == [
        (2, "approval_pending"),
        (3, "self_reported_failure"),
    ]
    assert [each["approval_id"] for each in receipts[1]["approvals"]] == ["i-1"]
