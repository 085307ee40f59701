"""The state machine: when runs begin and end, what is told of them, and when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stopcause.agui.frames import Unreadable
from stopcause.agui.lifecycle import Watch
from stopcause.agui.values import UNNAMED, Begun, RunSeen
from stopcause.agui.words import Ending, Mode
from stopcause.receipts.vocabulary import StopCause
from tests.agui.watched import (
    FAILED,
    FINISHED,
    GIVEN,
    OLD_STARTED,
    STARTED,
    TEXT,
    about,
    ask,
    call,
    fatal,
    finished,
    interrupted,
    names,
    run,
    runs,
    said,
)

Json = Any
T = datetime(2026, 11, 30, 12, tzinfo=UTC)
STEP = {"type": "STEP_STARTED", "stepName": "s"}


# When a run is told ---------------------------------------------------------------------------------------------------


def test_a_run_is_told_when_it_ends_and_not_when_its_stream_does() -> None:
    watch = Watch(GIVEN)
    (begun,) = watch.take(STARTED)
    assert isinstance(begun, Begun)
    assert (begun.thread_id, begun.run_id, begun.mode, begun.input) == ("t1", "r1", Mode.SPEC, GIVEN)
    assert watch.take(TEXT[0]) == watch.take(TEXT[1]) == watch.take(TEXT[2]) == ()
    (seen,) = watch.take(FINISHED)
    assert isinstance(seen, RunSeen)
    assert seen.ending is Ending.SUCCESS
    assert watch.close() == ()


def test_a_late_error_fails_a_run_and_leaves_what_it_asks_for() -> None:
    first, second = runs([STARTED, *call("c1"), interrupted(ask(toolCallId="c1")), {**FAILED, "code": "BOOM"}])
    assert (first.ending, first.is_late) == (Ending.INTERRUPT, False)
    assert (second.ending, second.cause, second.is_late) == (Ending.ERROR, StopCause.SELF_REPORTED_FAILURE, True)
    assert second.error_code == "BOOM"
    assert second.interrupts == first.interrupts
    assert "LATE_ERROR" in names(second)


@pytest.mark.parametrize("outcome", [{"type": "success"}, {"type": "cancelled"}, {"type": "odd"}])
def test_a_late_error_overrules_every_outcome(outcome: Json) -> None:
    assert runs([STARTED, finished(outcome), FAILED])[-1].ending is Ending.ERROR


def test_what_comes_after_the_end_makes_a_run_rejected_that_was_told_as_a_success() -> None:
    first, second = runs([STARTED, FINISHED, *TEXT])
    assert first.ending is Ending.SUCCESS
    assert second.ending is Ending.REJECTED
    assert not second.is_late


def test_a_run_error_after_what_came_too_late_still_fails_the_run() -> None:
    last = runs([STARTED, FINISHED, STEP, FAILED])[-1]
    assert (last.ending, last.is_late) == (Ending.ERROR, True)
    assert fatal(last) == {"EVENT_AFTER_CLOSE"}


def test_a_finish_after_an_error_never_makes_a_success() -> None:
    first, second = runs([STARTED, FAILED, FINISHED])
    assert first.ending is second.ending is Ending.ERROR


def test_several_runs_of_one_thread_in_one_stream() -> None:
    second = [{**STARTED, "runId": "r2"}, {**FINISHED, "runId": "r2"}]
    seen = runs([STARTED, FAILED, *second])
    assert [(each.run_id, each.ending) for each in seen] == [("r1", Ending.ERROR), ("r2", Ending.SUCCESS)]
    assert seen[0].input == GIVEN
    assert seen[1].input is None


def test_nothing_that_is_open_crosses_to_the_next_run() -> None:
    seen = runs([STARTED, TEXT[0], FAILED, {**STARTED, "runId": "r2"}, *TEXT, {**FINISHED, "runId": "r2"}])
    assert not fatal(seen[1])


def test_a_second_run_on_another_thread_is_rejected_and_the_first_is_not() -> None:
    other = {"threadId": "t2", "runId": "r2"}
    first, second = runs([STARTED, FINISHED, {**STARTED, **other}, {**FINISHED, **other}], None)
    assert not fatal(first)
    assert fatal(second) == {"THREAD_ID_MISMATCH"}


def test_a_run_that_another_overtakes_is_rejected_and_the_other_is_not() -> None:
    first, second = runs([STARTED, {**STARTED, "runId": "r2"}, {**FINISHED, "runId": "r2"}])
    assert (first.run_id, first.ending, fatal(first)) == ("r1", Ending.REJECTED, {"NESTED_RUN"})
    assert (second.run_id, second.ending) == ("r2", Ending.SUCCESS)


def test_a_run_that_starts_twice_is_one_run() -> None:
    seen = said([STARTED, STARTED, FINISHED])
    assert [type(each) for each in seen] == [Begun, RunSeen]
    assert fatal(run([STARTED, STARTED, FINISHED])) == {"NESTED_RUN"}


def test_events_before_a_start_belong_to_the_run_that_starts() -> None:
    seen = said([*TEXT, STARTED, FINISHED])
    assert [type(each) for each in seen] == [Begun, RunSeen]
    assert run([*TEXT, STARTED, FINISHED]).has_output


# Which run it is ------------------------------------------------------------------------------------------------------


def test_an_older_run_that_is_replayed_keeps_its_id_and_is_no_mismatch() -> None:
    old = [{**OLD_STARTED, "runId": "r0"}, {**FINISHED, "runId": "r0"}]
    first, second = runs([*old, STARTED, FINISHED])
    assert (first.run_id, first.input, first.mode) == ("r0", None, Mode.LEGACY_OUTCOME)
    assert (second.run_id, second.input, second.mode) == ("r1", GIVEN, Mode.SPEC)
    assert not fatal(first)
    assert not fatal(second)


def test_whether_it_is_a_replay_shows_when_the_next_run_starts() -> None:
    watch = Watch(GIVEN)
    assert len(watch.take({**STARTED, "runId": "r0"})) == 1
    assert watch.take({**FINISHED, "runId": "r0"}) == ()
    told = watch.take(STARTED)
    assert [(type(each), each.run_id) for each in told] == [(RunSeen, "r0"), (Begun, "r1")]


def test_the_only_run_of_a_stream_has_to_be_the_requested_one() -> None:
    seen = run([{**STARTED, "runId": "r9"}, {**FINISHED, "runId": "r9"}])
    assert (seen.run_id, seen.input, seen.ending) == ("r9", GIVEN, Ending.REJECTED)


def test_without_an_input_every_first_name_is_right() -> None:
    assert not fatal(
        run([{**STARTED, "runId": "r9", "threadId": "t9"}, {**FINISHED, "runId": "r9", "threadId": "t9"}], None)
    )


def test_an_input_that_the_start_echoes_is_read_where_none_is_given() -> None:
    echo = {"threadId": "t1", "runId": "r1", "messages": [], "tools": [{"name": "pick"}]}
    seen = run([{**STARTED, "input": echo}, *call("c1", "pick"), FINISHED], None)
    assert seen.input is not None
    assert about(seen, "FRONTEND_PENDING") == ("c1",)


def test_a_run_that_fails_before_it_begins_has_the_names_of_its_input() -> None:
    begun, seen = said([FAILED])
    assert isinstance(begun, Begun)
    assert isinstance(seen, RunSeen)
    assert (begun.run_id, seen.thread_id, seen.run_id, seen.ending) == ("r1", "t1", "r1", Ending.ERROR)
    assert run([FAILED], None).run_id == UNNAMED


# No end ---------------------------------------------------------------------------------------------------------------


def test_a_stream_without_an_end_is_truncated_and_never_a_success() -> None:
    seen = run([STARTED, TEXT[0]])
    assert (seen.ending, seen.cause, names(seen)) == (Ending.TRUNCATED, StopCause.STREAM_TRUNCATED, {"TRUNCATED"})


def test_a_reader_that_went_away_is_the_one_who_stopped() -> None:
    seen = run([STARTED, TEXT[0]], left_by_reader=True)
    assert (seen.ending, seen.cause, seen.reason) == (Ending.TRUNCATED, StopCause.CALLER_ABORT, "reader_left")
    assert not names(seen)


def test_the_silence_before_the_end_of_a_stream_is_measured() -> None:
    watch = Watch(GIVEN)
    watch.take(STARTED, T)
    watch.take(STEP, T + timedelta(seconds=5))
    (seen,) = watch.close(T + timedelta(seconds=65))
    assert seen.idle_s == 60
    assert (seen.began_at, seen.last_event_at, seen.ended_at) == (
        T,
        T + timedelta(seconds=5),
        T + timedelta(seconds=65),
    )


def test_nobody_knows_the_silence_without_a_clock() -> None:
    assert run([STARTED]).idle_s is None
    assert run([STARTED], at=T).idle_s is None


@pytest.mark.parametrize("status", [409, 500, 302])
def test_a_request_that_was_refused_began_no_run(status: int) -> None:
    (seen,) = said([], http_status=status)
    assert isinstance(seen, RunSeen)
    assert (seen.ending, seen.cause, seen.reason) == (Ending.REFUSED, StopCause.INPUT_REJECTED, f"http_{status}")
    assert (seen.run_id, seen.http_status, seen.input) == ("r1", status, GIVEN)
    assert names(seen) == {"INPUT_REFUSED"}


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_that_lost_the_agent_has_refused_nothing(status: int) -> None:
    seen = run([], http_status=status)
    assert (seen.ending, seen.cause, seen.reason) == (Ending.TRUNCATED, StopCause.STREAM_TRUNCATED, f"http_{status}")
    assert seen.http_status == status


def test_an_answer_without_any_event_is_truncated_where_somebody_asked() -> None:
    assert run([], http_status=200).ending is Ending.TRUNCATED
    assert runs([], None) == []


def test_what_is_fatal_is_told_apart_from_a_truncated_stream() -> None:
    seen = run([STARTED, TEXT[1]])
    assert (seen.ending, names(seen)) == (Ending.REJECTED, {"UNBALANCED", "TRUNCATED"})


def test_a_stream_is_closed_once() -> None:
    watch = Watch(GIVEN)
    watch.take(STARTED)
    assert len(watch.close()) == 1
    assert watch.close() == ()


# What is not known ----------------------------------------------------------------------------------------------------


def test_what_is_not_known_is_passed_over_wherever_it_comes() -> None:
    novel = {"type": "NOVEL_EVENT", "content": "x"}
    seen = run([novel, STARTED, novel, {**TEXT[0], "novel": None}, *TEXT[1:], FINISHED, novel])
    assert seen.ending is Ending.SUCCESS
    assert [(each.name, each.ids) for each in seen.findings] == [("UNRECOGNISED", ("NOVEL_EVENT",))]
    assert seen.counts["unrecognised"] == 2


def test_a_frame_that_the_end_cut_off_only_truncates() -> None:
    seen = run([STARTED, Unreadable("FRAME_UNREADABLE", is_tail=True)])
    assert (seen.ending, names(seen)) == (Ending.TRUNCATED, {"TRUNCATED"})


def test_a_frame_that_cannot_be_read_is_fatal() -> None:
    seen = run([STARTED, Unreadable("FRAME_UNREADABLE"), FINISHED])
    assert (seen.ending, fatal(seen)) == (Ending.REJECTED, {"FRAME_UNREADABLE"})


@pytest.mark.parametrize("kind", ["TEXT_MESSAGE_START", None])
def test_after_a_frame_that_is_too_large_nobody_knows_what_is_open(kind: str | None) -> None:
    seen = run([STARTED, Unreadable("FRAME_TOO_LARGE", kind), *TEXT[1:], FINISHED])
    assert (seen.ending, names(seen)) == (Ending.SUCCESS, {"FRAME_TOO_LARGE"})


def test_a_large_frame_that_opens_nothing_blinds_nobody() -> None:
    seen = run([STARTED, Unreadable("FRAME_TOO_LARGE", "RAW"), TEXT[1], FINISHED])
    assert fatal(seen) == {"UNBALANCED"}


def test_an_end_that_is_too_large_to_read_is_no_success() -> None:
    seen = run([STARTED, Unreadable("FRAME_TOO_LARGE", "RUN_FINISHED")])
    assert (seen.ending, seen.cause, seen.reason) == (Ending.UNKNOWN_OUTCOME, StopCause.UNKNOWN, "frame_too_large")
    assert run([STARTED, Unreadable("FRAME_TOO_LARGE", "RUN_ERROR")]).ending is Ending.ERROR


def test_more_open_items_than_can_be_watched_are_said_and_not_judged() -> None:
    opened = [{"type": "TEXT_MESSAGE_START", "messageId": f"m{each}"} for each in range(10_001)]
    seen = run([STARTED, *opened, FINISHED])
    assert names(seen) == {"TOO_MANY"}


def test_the_body_of_a_refusal_is_no_stream() -> None:
    seen = run([Unreadable("FRAME_UNREADABLE")], http_status=503)
    assert (seen.ending, seen.reason, fatal(seen)) == (Ending.REFUSED, "http_503", set())


def test_a_start_without_its_thread_makes_no_thread_for_the_others() -> None:
    second = [{**STARTED, "runId": "r2"}, {**FINISHED, "runId": "r2"}]
    assert not fatal(runs([{"type": "RUN_STARTED", "runId": "r1"}, FINISHED, *second], None)[1])


def test_a_late_error_that_is_too_large_to_read_fails_the_run_all_the_same() -> None:
    last = runs([STARTED, FINISHED, Unreadable("FRAME_TOO_LARGE", "RUN_ERROR")])[-1]
    assert (last.ending, last.is_late) == (Ending.ERROR, True)


def test_a_start_that_is_too_large_to_read_starts_a_run() -> None:
    start = Unreadable("FRAME_TOO_LARGE", "RUN_STARTED")
    assert run([start, *TEXT, FINISHED]).ending is Ending.SUCCESS
    old = [{**STARTED, "runId": "r0"}, {**FINISHED, "runId": "r0"}]
    assert [(each.run_id, each.ending) for each in runs([*old, start, *TEXT, FINISHED])] == [
        ("r0", Ending.SUCCESS),
        ("r1", Ending.SUCCESS),
    ]


def test_a_large_event_after_the_end_is_after_the_end() -> None:
    last = runs([STARTED, FINISHED, Unreadable("FRAME_TOO_LARGE", "RAW")])[-1]
    assert fatal(last) == {"EVENT_AFTER_CLOSE"}
