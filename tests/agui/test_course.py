"""What a run did: calls, results, progress, output, usage."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stopcause.agui.lifecycle import Watch
from stopcause.agui.values import RunSeen, Subagents
from stopcause.agui.words import Ending
from stopcause.receipts.vocabulary import StopCause
from tests.agui.watched import (
    FAILED,
    FINISHED,
    GIVEN,
    STARTED,
    TEXT,
    about,
    call,
    finished,
    result,
    run,
)

Json = Any
T = datetime(2026, 11, 30, 12, tzinfo=UTC)
STEP = {"type": "STEP_STARTED", "stepName": "s"}
STEP_END = {"type": "STEP_FINISHED", "stepName": "s"}
SUB = {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "helper"}
SUB_END = {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1"}


def tagged(event: Json, owner: str) -> Json:
    return {**event, "subagentRunId": owner}


def whole(*body: Json) -> list[Json]:
    return [STARTED, *body, FINISHED]


def test_what_a_run_did_is_counted() -> None:
    seen = run(whole(STEP, STEP_END, STEP, STEP_END, *TEXT, *call("c1"), result("c1"), *call("c2")))
    assert seen.steps == 2
    assert seen.calls == {"c1": "send", "c2": "send"}
    assert seen.pending == ("c2",)
    assert [(each.tool_call_id, each.message_id, each.is_event) for each in seen.results] == [("c1", "res", True)]
    assert seen.has_output
    assert seen.counts["TOOL_CALL_START"] == 2


def test_a_tool_whose_name_is_no_name_is_a_call_without_one() -> None:
    assert run(whole(*call("c1", "a\x00b"))).calls == {"c1": None}


def test_results_and_state_are_progress_and_text_is_not() -> None:
    watch = Watch(GIVEN)
    watch.take(STARTED, T)
    watch.take({"type": "STATE_SNAPSHOT", "snapshot": {}}, T + timedelta(seconds=1))
    for event in TEXT:
        watch.take(event, T + timedelta(seconds=2))
    (seen,) = watch.take(FINISHED, T + timedelta(seconds=3))
    assert isinstance(seen, RunSeen)
    assert (seen.made_progress, seen.progress_at) == (True, T + timedelta(seconds=1))
    assert not run(whole(*TEXT)).made_progress


def test_times_are_those_of_the_events_where_no_clock_saw_them_come() -> None:
    seen = run([{**STARTED, "timestamp": 1_790_000_000_000}, {**FINISHED, "timestamp": 1_790_000_001_000}])
    assert seen.began_at == datetime.fromtimestamp(1_790_000_000, UTC)
    assert seen.ended_at == seen.last_event_at == datetime.fromtimestamp(1_790_000_001, UTC)


def test_tool_messages_of_a_snapshot_are_results_once() -> None:
    tool = {"id": "tm", "role": "tool", "toolCallId": "c1", "content": "x"}
    old = {"id": "t0", "role": "tool", "toolCallId": "c0", "content": "x"}
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": [old, tool]}
    given = GIVEN._replace(answered=frozenset({"c0"}))
    seen = run(whole(*call("c1"), snapshot, snapshot), given)
    assert [(each.tool_call_id, each.message_id, each.is_event) for each in seen.results] == [("c1", "tm", False)]
    assert seen.pending == ()


@pytest.mark.parametrize("order", [1, -1])
def test_an_event_and_a_snapshot_of_one_result_are_one_result(order: int) -> None:
    tool = {"id": "other", "role": "tool", "toolCallId": "c1", "content": "x"}
    body = [{"type": "MESSAGES_SNAPSHOT", "messages": [tool]}, result("c1")][::order]
    seen = run(whole(*call("c1"), *body))
    assert [(each.message_id, each.is_event) for each in seen.results] == [("res", True)]


def test_a_call_that_comes_back_twice_has_two_results() -> None:
    seen = run(whole(*call("c1"), result("c1", "one"), result("c1", "two"), result("c1", "two")))
    assert [each.message_id for each in seen.results] == ["one", "two"]


def test_calls_of_the_clients_own_tools_are_left_to_the_client() -> None:
    given = GIVEN._replace(tools=frozenset({"pick"}))
    seen = run(whole(*call("c1", "pick"), *call("c2", "send")), given)
    assert (seen.ending, seen.cause) == (Ending.SUCCESS, StopCause.NATURAL)
    assert (about(seen, "FRONTEND_PENDING"), seen.pending) == (("c1",), ("c2",))


def test_where_the_clients_tools_are_not_known_the_outcome_names_its_calls() -> None:
    outcome = {"type": "success", "pendingToolCallIds": ["c1"]}
    seen = run([STARTED, *call("c1"), *call("c2"), finished(outcome)], None)
    assert (about(seen, "FRONTEND_PENDING"), seen.pending) == (("c1",), ("c2",))
    assert run([STARTED, *call("c1"), finished(outcome)]).pending == ("c1",)


def test_subagents_are_counted_by_how_they_ended() -> None:
    error = {"type": "SUBAGENT_ERROR", "subagentRunId": "s2", "message": "x"}
    waits = {**SUB_END, "outcome": {"type": "suspended"}}
    seen = run([STARTED, SUB, waits, tagged(SUB, "s2"), error, tagged(SUB, "s3"), FAILED])
    assert seen.subagents == Subagents(open=1, failed=1, suspended=1)


def test_usage_is_summed_over_models() -> None:
    entries = [{"model": "a", "provider": "p", "inputTokens": 2}, {"model": "b", "provider": "p", "inputTokens": 3}]
    used = run([STARTED, finished(usage=entries)]).usage
    assert (used.input_tokens, used.output_tokens, used.model, used.provider) == (5, None, None, "p")


@pytest.mark.parametrize(
    ("body", "has_output"),
    [
        ([], False),
        ([*TEXT], True),
        ([TEXT[0], {**TEXT[1], "delta": ""}, TEXT[2]], False),
        ([{"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "a", "role": "assistant", "content": "x"}]}], True),
        ([{"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "u", "role": "user", "content": "x"}]}], False),
    ],
)
def test_output_is_text_that_came(body: list[Json], has_output: bool) -> None:
    assert run(whole(*body)).has_output is has_output


def test_a_result_of_the_run_is_output() -> None:
    assert run([STARTED, finished(result={"a": 1})]).has_output
