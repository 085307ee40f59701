"""What no reader may pass over: of each rule a stream that breaks it, and one that comes near."""

from typing import Any

import pytest

from stopcause.agui.cards import CARDS
from stopcause.agui.words import Ending
from stopcause.receipts.vocabulary import StopCause
from tests.agui.watched import FAILED, FINISHED, STARTED, TEXT, ask, call, fatal, finished, interrupted, run, runs

Json = Any
STEP = {"type": "STEP_STARTED", "stepName": "s"}
STEP_END = {"type": "STEP_FINISHED", "stepName": "s"}
SUB = {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "helper"}
SUB_END = {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1"}
SPAN = {"type": "REASONING_START", "messageId": "m1"}
SPAN_END = {"type": "REASONING_END", "messageId": "m1"}
THOUGHT = {"type": "REASONING_MESSAGE_START", "messageId": "m1", "role": "reasoning"}
THOUGHT_END = {"type": "REASONING_MESSAGE_END", "messageId": "m1"}

ACTIVITY = {"type": "ACTIVITY_SNAPSHOT", "messageId": "m1", "activityType": "plan", "content": {}}
PATCH = {"type": "ACTIVITY_DELTA", "messageId": "m1", "activityType": "plan", "patch": []}
SEALED = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "m1", "encryptedValue": "x"}
HELD = {
    "id": "m1",
    "role": "assistant",
    "subagentRunId": "s1",
    "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}],
}


def tagged(event: Json, owner: str | None) -> Json:
    return {**event, "subagentRunId": owner}


def whole(*body: Json) -> list[Json]:
    return [STARTED, *body, FINISHED]


# One stream that breaks the rule, and one as near to it as can be that does not.
FATAL: list[tuple[str, list[Json], list[Json]]] = [
    ("FRAME_UNREADABLE", whole({"no": "type"}), whole()),
    ("FRAME_UNREADABLE", whole({"type": 5}), whole({"type": "NOVEL"})),
    ("FIRST_EVENT", [*TEXT, STARTED, FINISHED], [STARTED, *TEXT, FINISHED]),
    ("FIRST_EVENT", [FINISHED], [FAILED]),
    ("EVENT_AFTER_CLOSE", [*whole(), STEP], whole(STEP, STEP_END)),
    ("SECOND_TERMINAL", [*whole(), FINISHED], whole()),
    ("SECOND_TERMINAL", [STARTED, FAILED, FINISHED], [STARTED, FINISHED, FAILED]),
    ("SECOND_TERMINAL", [STARTED, FAILED, FAILED], [STARTED, FAILED]),
    ("RUN_ID_MISMATCH", [STARTED, {**FINISHED, "runId": "r2"}], whole()),
    ("RUN_ID_MISMATCH", [{**STARTED, "runId": "r2"}, {**FINISHED, "runId": "r2"}], whole()),
    ("THREAD_ID_MISMATCH", [STARTED, {**FINISHED, "threadId": "t2"}], whole()),
    ("THREAD_ID_MISMATCH", [{**STARTED, "threadId": "t2"}, {**FINISHED, "threadId": "t2"}], whole()),
    ("OPEN_AT_FINISH", whole(TEXT[0]), whole(TEXT[0], TEXT[2])),
    ("OPEN_AT_FINISH", whole(call("c1")[0]), [STARTED, call("c1")[0], FAILED]),
    ("OPEN_AT_FINISH", whole(SPAN), whole(SPAN, SPAN_END)),
    ("OPEN_AT_FINISH", whole(THOUGHT), whole(THOUGHT, THOUGHT_END)),
    ("OPEN_AT_FINISH", whole(STEP), whole(STEP, STEP_END)),
    ("OPEN_AT_FINISH", whole(SUB), whole(SUB, SUB_END)),
    ("UNBALANCED", whole(TEXT[0], *TEXT), whole(*TEXT, *TEXT)),
    ("UNBALANCED", whole(TEXT[1]), whole(*TEXT)),
    ("UNBALANCED", whole(TEXT[2]), whole(TEXT[0], TEXT[2])),
    ("UNBALANCED", whole(call("c1")[1]), whole(*call("c1"))),
    ("UNBALANCED", whole(call("c1")[0], *call("c1")), whole(*call("c1"), *call("c1"))),
    ("UNBALANCED", whole(SPAN, SPAN, SPAN_END), whole(SPAN, THOUGHT, THOUGHT_END, SPAN_END)),
    ("UNBALANCED", whole(SPAN, THOUGHT_END, SPAN_END), whole(SPAN, SPAN_END)),
    ("STEP_UNBALANCED", whole(STEP, STEP, STEP_END), whole(STEP, tagged(STEP, "s1"), STEP_END, tagged(STEP_END, "s1"))),
    ("STEP_UNBALANCED", whole(STEP_END), whole(STEP, STEP_END, STEP, STEP_END)),
    ("STEP_UNBALANCED", whole(STEP, tagged(STEP_END, "s1"), STEP_END), whole(STEP, STEP_END)),
    ("MALFORMED", whole({**TEXT[0], "messageId": 5}), whole(*TEXT)),
    ("MALFORMED", [{"type": "RUN_STARTED", "threadId": "t1"}, FINISHED], whole()),
    ("MALFORMED", [STARTED, {"type": "RUN_FINISHED"}], whole()),
    ("MALFORMED", [STARTED, finished("success")], [STARTED, finished({"type": "success"})]),
    ("MALFORMED", [STARTED, finished([])], [STARTED, finished({"type": "odd"})]),
    ("MALFORMED", [STARTED, finished({"type": "interrupt", "interrupts": "i"})], [STARTED, interrupted(ask())]),
    ("MALFORMED", [STARTED, interrupted({"id": "i1"})], [STARTED, interrupted(ask())]),
    ("MALFORMED", [STARTED, interrupted(ask(), "i2")], [STARTED, interrupted(ask())]),
    ("MALFORMED", [STARTED, finished(usage=[{"inputTokens": -1}])], [STARTED, finished(usage=[{"inputTokens": 0}])]),
    ("MALFORMED", [STARTED, finished(usage=["5"])], [STARTED, finished(usage=[])]),
    ("MALFORMED", whole({"type": "STATE_DELTA", "delta": [5]}), whole({"type": "STATE_DELTA", "delta": [{}]})),
    ("MALFORMED", whole({**STEP, "timestamp": 1.5}, STEP_END), whole({**STEP, "timestamp": 1.0}, STEP_END)),
    ("MALFORMED", whole({"type": "MESSAGES_SNAPSHOT", "messages": [5]}), whole({"type": "RAW", "event": None})),
    ("MALFORMED", whole({**THOUGHT, "role": "assistant"}, THOUGHT_END), whole(THOUGHT, THOUGHT_END)),
    ("NULL_FIELD", whole({**TEXT[0], "name": None}, TEXT[2]), whole({**TEXT[0], "rawEvent": None}, TEXT[2])),
    ("NULL_FIELD", whole(tagged(STEP, None), STEP_END), whole({**STEP, "metadata": {"a": None}}, STEP_END)),
    ("EMPTY_INTERRUPT", [STARTED, interrupted()], [STARTED, interrupted(ask())]),
    ("EMPTY_INTERRUPT", [STARTED, finished({"type": "interrupt"})], [STARTED, interrupted(ask())]),
    (
        "OUTCOME_CONTRADICTION",
        [STARTED, finished({"type": "success", "interrupts": [ask()]})],
        [STARTED, finished({"type": "success", "interrupts": []})],
    ),
    ("OUTCOME_CONTRADICTION", [STARTED, finished({"type": "cancelled", "interrupts": [ask()]})], whole()),
    ("SUBAGENT_LIFECYCLE", whole(SUB, SUB_END, SUB, SUB_END), whole(SUB, SUB_END)),
    ("SUBAGENT_LIFECYCLE", whole(SUB_END), whole(*(tagged(each, "s1") for each in TEXT))),
    (
        "SUBAGENT_LIFECYCLE",
        whole({**SUB, "parentSubagentRunId": "s0"}, SUB_END),
        whole(tagged(SUB, "s0"), tagged(SUB_END, "s0"), {**SUB, "parentSubagentRunId": "s0"}, SUB_END),
    ),
    ("ATTRIBUTION_MISMATCH", whole(TEXT[0], tagged(TEXT[1], "s1"), TEXT[2]), whole(tagged(TEXT[0], "s1"), *TEXT[1:])),
    (
        "ATTRIBUTION_MISMATCH",
        whole(tagged(TEXT[0], "s1"), TEXT[2], tagged(TEXT[0], "s2"), TEXT[2]),
        whole(tagged(TEXT[0], "s1"), TEXT[2], TEXT[0], TEXT[2]),
    ),
    (
        "ATTRIBUTION_MISMATCH",
        whole(*TEXT, {**tagged(call("c1")[0], "s1"), "parentMessageId": "m1"}, call("c1")[1]),
        whole(*TEXT, {**call("c1")[0], "parentMessageId": "m1"}, call("c1")[1]),
    ),
    (
        "ATTRIBUTION_MISMATCH",
        whole(
            {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m1", "role": "assistant", "subagentRunId": "s1"}]},
            *(tagged(each, "s2") for each in TEXT),
        ),
        whole({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m1", "role": "assistant"}]}, *TEXT),
    ),
    (
        "ATTRIBUTION_MISMATCH",
        whole(tagged(ACTIVITY, "s1"), tagged(PATCH, "s2")),
        whole(tagged(ACTIVITY, "s1"), tagged({**ACTIVITY, "replace": False}, "s2"), tagged(PATCH, "s1"), PATCH),
    ),
    (
        "ATTRIBUTION_MISMATCH",
        whole(*(tagged(each, "s1") for each in call("m1")), *TEXT, tagged(SEALED, "s2")),
        whole(*(tagged(each, "s1") for each in call("m1")), *TEXT, tagged(SEALED, "s1"), SEALED),
    ),
    (
        "ATTRIBUTION_MISMATCH",
        whole(tagged(THOUGHT, "s1"), THOUGHT_END, tagged({**SEALED, "subtype": "message"}, "s2")),
        whole(tagged(THOUGHT, "s1"), THOUGHT_END, tagged({**SEALED, "subtype": "message"}, "s1")),
    ),
    (
        "ATTRIBUTION_MISMATCH",
        whole({"type": "MESSAGES_SNAPSHOT", "messages": [HELD]}, *(tagged(each, "s2") for each in call("c1"))),
        whole({"type": "MESSAGES_SNAPSHOT", "messages": [HELD]}, *(tagged(each, "s1") for each in call("c1"))),
    ),
    (
        "ATTRIBUTION_MISMATCH",
        [{**STARTED, "input": {"messages": [HELD]}}, *(tagged(each, "s2") for each in call("c1")), FINISHED],
        [{**STARTED, "input": {"messages": [HELD, 5]}}, *(tagged(each, "s1") for each in call("c1")), FINISHED],
    ),
]


@pytest.mark.parametrize(("name", "broken", "_kept"), FATAL)
def test_a_stream_that_breaks_a_rule_is_rejected_or_failed(name: str, broken: list[Json], _kept: list[Json]) -> None:
    last = runs(broken)[-1]
    assert name in fatal(last)
    is_failed = any(event.get("type") == "RUN_ERROR" for event in broken)
    assert last.ending is (Ending.ERROR if is_failed else Ending.REJECTED)
    assert last.cause is (StopCause.SELF_REPORTED_FAILURE if is_failed else StopCause.STREAM_REJECTED)


@pytest.mark.parametrize(("name", "_broken", "kept"), FATAL)
def test_a_stream_that_comes_near_is_not(name: str, _broken: list[Json], kept: list[Json]) -> None:
    for seen in runs(kept):
        assert not fatal(seen), name


def test_every_fatal_rule_has_a_stream_that_breaks_it() -> None:
    assert {card.name for card in CARDS if card.is_fatal} - {"NESTED_RUN"} == {name for name, _, _ in FATAL}


def test_a_rule_is_named_once_a_run_however_often_it_is_broken() -> None:
    seen = run(whole(TEXT[1], TEXT[1], {**TEXT[1], "messageId": "m2"}))
    assert [(each.name, each.ids) for each in seen.findings] == [("UNBALANCED", ("m1", "m2"))]
