"""Whatever comes by, a tap neither raises nor gives up: it goes on, and every run that begins has one end."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui import tap, tap_faults
from stopcause.receipts.model import RunStarted
from stopcause.receipts.testing import recorded
from tests.agui.tapped import SSE, finished, input_of, said, sse, started
from tests.support.laws import tried_on

Json = Any

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_TYPES = (
    "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_START", "CUSTOM", "RAW",
    "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "STATE_DELTA",
    "TOOL_CALL_RESULT", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "OF_TOMORROW",
)  # fmt: skip
_FIELDS = (
    "threadId", "runId", "messageId", "toolCallId", "toolCallName", "outcome", "code", "name", "value", "messages",
    "delta", "timestamp", "metadata", "subagentRunId", "stepName", "protocolVersion", "usage", "role",
)  # fmt: skip
_events = st.builds(
    lambda kind, fields: {**fields, "type": kind},
    st.sampled_from(_TYPES) | _json,
    st.dictionaries(st.sampled_from(_FIELDS), st.sampled_from(["t1", "r1", "m1", "on_interrupt"]) | _json, max_size=5),
)
_good = st.sampled_from([started(), *said(), finished(), started("r2"), finished("r2")])
_frames = st.lists(_events | _good | _json, max_size=12).map(sse)
_bodies = st.lists(_frames | st.binary(max_size=30), max_size=4).map(b"".join)
_inputs = st.builds(
    lambda fields: {**input_of(), **fields},
    st.dictionaries(st.sampled_from(["resume", "messages", "tools", "forwardedProps", "threadId", "runId"]), _json),
)


@tried_on(200)
@given(_bodies, st.integers(1, 100), _inputs | _json, st.booleans(), st.sampled_from([200, 200, 200, 409]))
def test_nothing_makes_a_tap_give_up(body: bytes, size: int, given_: Json, left: bool, status: int) -> None:
    tap_faults._said.clear()
    with recorded() as receipts:
        passage = tap.Tap("clerk").passage()
        assert passage is not None
        passage.asked(json.dumps(given_).encode())
        passage.answered(status, SSE, "")
        for at in range(0, len(body), size):
            passage.passed(body[at : at + size])
        passage.ended(left_by_reader=left)
        begun = {each.run_id for each in receipts.records if isinstance(each, RunStarted)}
        assert begun <= {each.run_id for each in receipts.receipts}
    assert not [what for what in tap_faults._said if isinstance(what, type)]  # the errors of ours
