"""What the end of a run says beside what its stream showed."""

from typing import Any

import pytest

from stopcause.agui.words import Ending
from tests.agui.watched import GIVEN, STARTED, ask, call, fatal, finished, interrupted, names, result, run

Json = Any
WITH_TOOLS = GIVEN._replace(tools=frozenset({"pick"}))
SUB = {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "helper"}
WAITS = {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1", "outcome": {"type": "suspended", "interruptIds": ["i1"]}}


def pending(*calls: str) -> Json:
    return finished({"type": "success", "pendingToolCallIds": list(calls)})


PICK, SEND = call("p1", "pick"), call("c1", "send")
BROKEN: list[tuple[str, list[Json], list[Json]]] = [
    ("FABRICATED_RESULT", [*PICK, result("p1"), finished()], [*SEND, result("c1"), finished()]),
    ("FRONTEND_AS_INTERRUPT", [*PICK, interrupted(ask(toolCallId="p1"))], [*SEND, interrupted(ask(toolCallId="c1"))]),
    ("PENDING_LIST_MISMATCH", [*PICK, *SEND, pending("p1")], [*PICK, *SEND, result("c1"), pending("p1")]),
    ("PENDING_LIST_MISMATCH", [*PICK, *SEND, pending("c1", "p1")], [*PICK, *SEND, pending("p1", "c1")]),
    ("PENDING_LIST_MISMATCH", [*PICK, pending("p1", "p2")], [*PICK, pending()]),
    ("CANCELLED_WITH_RESULT", [finished({"type": "cancelled"}, result=1)], [finished({"type": "cancelled"})]),
    ("SUSPENDED_UNKNOWN_INTERRUPT", [SUB, WAITS, interrupted(ask("i2"))], [SUB, WAITS, interrupted(ask("i1"))]),
]


@pytest.mark.parametrize(("name", "broken", "kept"), BROKEN)
def test_an_end_that_does_not_fit_its_stream_is_named_and_the_stream_is_believed(
    name: str, broken: list[Json], kept: list[Json]
) -> None:
    seen = run([STARTED, *broken], WITH_TOOLS)
    assert name in names(seen)
    assert not fatal(seen)
    assert seen.ending is not Ending.REJECTED
    assert name not in names(run([STARTED, *kept], WITH_TOOLS))


def test_where_nobody_knows_the_clients_tools_nobody_says_whose_a_call_was() -> None:
    assert "FABRICATED_RESULT" not in names(run([STARTED, *PICK, result("p1"), finished()]))
