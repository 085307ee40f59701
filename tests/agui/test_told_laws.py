"""Whatever a stream and its input say, what is told of it are records, and there is a verdict on its thread."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.ledger import Ledger
from stopcause.agui.told import Source, begun_records, ended_records
from stopcause.agui.values import Begun
from stopcause.agui.verdicts import Told, judge_thread
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.receipts import codec
from tests.agui.seen import NOON, seen_in
from tests.support.laws import tried_on

IDS = st.sampled_from(["a", "b", "tc-1", "tc-2"]) | st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TIMES = st.sampled_from(["2026-11-30T13:00:00Z", "30m", "0001-01-01", "9999-12-31T23:59:59+14:00", "soon"]) | JSON
INTERRUPTS = st.fixed_dictionaries(
    {"id": IDS, "reason": st.sampled_from(["tool_call", "confirmation", "input_required", "x:y"])},
    optional={
        "toolCallId": IDS,
        "expiresAt": TIMES,
        "responseSchema": JSON,
        "metadata": st.fixed_dictionaries({"stopcause": st.fixed_dictionaries({"owner": JSON, "due": TIMES}) | JSON}),
        "subagentRunId": IDS,
    },
)
OUTCOMES = (
    st.just({"type": "success"})
    | st.just({"type": "cancelled"})
    | st.fixed_dictionaries({"type": st.just("interrupt"), "interrupts": st.lists(INTERRUPTS, max_size=3)})
    | JSON
)
RECEIPTS = st.dictionaries(
    st.sampled_from(["stop_cause", "limits", "steps", "findings", "approvals", "error", "attempt", "kind", "at"]), JSON
)
EVENTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "RUN_STARTED",
                "RUN_FINISHED",
                "RUN_ERROR",
                "TOOL_CALL_START",
                "TOOL_CALL_RESULT",
                "CUSTOM",
                "STEP_STARTED",
            ]
        )
    },
    optional={
        "threadId": st.just("t1"),
        "runId": st.sampled_from(["r1", "r2"]),
        "protocolVersion": st.just("1.0") | JSON,
        "outcome": OUTCOMES,
        "code": IDS,
        "message": st.just("failed"),
        "toolCallId": IDS,
        "toolCallName": IDS,
        "messageId": IDS,
        "content": st.just("ok"),
        "name": st.just("on_interrupt"),
        "value": INTERRUPTS,
        "stepName": IDS,
        "timestamp": st.integers(-1, 2**60) | JSON,
        "usage": JSON,
        "metadata": st.fixed_dictionaries({"stopcause": RECEIPTS}) | JSON,
    },
)
ENTRIES = st.fixed_dictionaries(
    {"interruptId": IDS, "status": st.sampled_from(["resolved", "cancelled"])}, optional={"payload": JSON}
)
INPUTS = st.fixed_dictionaries(
    {"threadId": st.just("t1"), "runId": st.sampled_from(["r1", "r2"]), "messages": st.just([])},
    optional={"resume": st.lists(ENTRIES, max_size=3) | JSON, "parentRunId": IDS, "protocolVersion": JSON},
)


@given(st.lists(st.tuples(INPUTS, st.lists(EVENTS, max_size=6)), min_size=1, max_size=3))
@tried_on(300)
def test_any_history_gives_records_and_verdicts(exchanges: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
    ledger, told = Ledger(), dict[str, list[Told]]()
    for value, events in exchanges:
        for seen in seen_in({"input": value, "events": events}):
            if isinstance(seen, Begun):
                drafts = begun_records(seen, ledger.begun(seen), Source(now=NOON))
            else:
                link = ledger.ended(seen)
                drafts = ended_records(seen, link, Source(now=NOON))
                told.setdefault(seen.thread_id, []).append(Told(seen, link, drafts))
            for draft in drafts:
                record = codec.read_value(draft)
                assert not isinstance(record, codec.LineError), f"{record}: {draft}"

    for thread_id, runs in told.items():
        judged, thread = judge_thread(ledger.threads[thread_id], runs, DEFAULT_POLICY, NOON)

        assert {each.run.run_id for each in judged} == {each.run.run_id for each in runs}
        assert {wait.state for wait in thread.open} <= {"open", "lost"}
