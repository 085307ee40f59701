"""Records of runs: every one is read back as it was written, and says what is known and no more."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stopcause.agui import told
from stopcause.agui.findings import found
from stopcause.agui.told import Draft, Source
from stopcause.agui.values import Begun, Input, Link, RunSeen, Subagents, Usage
from stopcause.agui.words import Ending, Mode
from stopcause.receipts import codec, model
from stopcause.receipts.vocabulary import Sign
from stopcause.resources import data_folder
from tests.agui.seen import NOON, THREAD, after, asked, drafts_of, run, yes

CASES = sorted(
    path for part in ("ledger", "recordings") for path in (data_folder("fixtures") / "agui" / part).glob("*")
)


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
        "findings": [{"code": "subagent_failed_handled", "where": "r2"}],
    }
    assert {**receipt, "adapter_version": None} == {**expected, "adapter_version": None}


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


def test_notes_of_every_other_stream_are_left_out() -> None:
    seen = run("r1", findings=(found("UNRECOGNISED"), found("NO_DEADLINE", "i-1"), found("LEGACY_INTERRUPT")))

    assert told.ended_records(seen, Link(), Source())[0]["findings"] == [{"code": "legacy_interrupt"}]


def test_by_which_contract_a_run_is_read_is_told() -> None:
    seen = run("r1", findings=(found("NO_VERSION"),))

    assert told.ended_records(seen, Link(), Source())[0]["findings"] == [{"code": "no_version"}]


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
