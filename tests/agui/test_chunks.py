"""The chunked form: what it stands for, in whose lane, and where it breaks a rule."""

from typing import Any

import pytest

from tests.agui.watched import FINISHED, STARTED, TEXT, call, fatal, run

Json = Any


def text(name: str | None = None, **more: Json) -> Json:
    return {"type": "TEXT_MESSAGE_CHUNK", **({"messageId": name} if name else {}), **more}


def tool(name: str | None = None, **more: Json) -> Json:
    return {"type": "TOOL_CALL_CHUNK", **({"toolCallId": name} if name else {}), **more}


def thought(name: str | None = None, **more: Json) -> Json:
    return {"type": "REASONING_MESSAGE_CHUNK", **({"messageId": name} if name else {}), **more}


STEP = [{"type": "STEP_STARTED", "stepName": "s"}, {"type": "STEP_FINISHED", "stepName": "s"}]


@pytest.mark.parametrize(
    "body",
    [
        [text("m1", delta="a"), text(delta="b"), text("m1", delta="c")],
        [text("m1"), text("m2"), text(delta="a")],
        [text("m1", role="user"), text(role="user")],
        [text("m1"), text(role="assistant")],
        [tool("c1", toolCallName="t", delta="{"), tool(delta="}"), tool("c1", toolCallName="t")],
        [tool("c1", toolCallName="t"), *TEXT],
        [thought("m1", delta="a"), thought(delta="b")],
        [text("m1"), tool("c1", toolCallName="t"), thought("m1")],
        [text("m1"), {"type": "RAW", "event": 1}, text(delta="a")],
        [text("m1", subagentRunId="s1"), *STEP, text(delta="a")],
        [text("m1", subagentRunId="s1"), text("m2"), text(delta="of m2"), text(delta="of m1", subagentRunId="s1")],
        [text("m1", subagentRunId="s1"), text("m2", subagentRunId="s2"), text("m1", delta="a")],
    ],
)
def test_a_chunked_stream_that_holds_the_rules(body: list[Json]) -> None:
    assert fatal(run([STARTED, *body, FINISHED])) == set()


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ([text(delta="a")], "UNBALANCED"),
        ([tool("c1")], "UNBALANCED"),
        ([tool(toolCallName="t")], "UNBALANCED"),
        ([thought(delta="a")], "UNBALANCED"),
        ([text("m1"), *STEP, text(delta="a")], "UNBALANCED"),
        ([text("m1"), {**TEXT[1]}], "UNBALANCED"),
        ([text("m1"), TEXT[2]], "UNBALANCED"),
        ([TEXT[0], text("m1"), TEXT[2]], "UNBALANCED"),
        ([text("m1"), {"type": "MESSAGES_SNAPSHOT", "messages": []}, text(delta="a")], "UNBALANCED"),
        ([text("m1"), text(role="user")], "MALFORMED"),
        ([text("m1"), {**text(), "name": "other"}], "MALFORMED"),
        ([tool("c1", toolCallName="t"), tool(toolCallName="u")], "MALFORMED"),
        ([text("m1", delta=None)], "NULL_FIELD"),
        ([text("m1", subagentRunId="s1"), text("m1", subagentRunId="s2")], "ATTRIBUTION_MISMATCH"),
        ([text("m1", subagentRunId="s1"), text("m2", subagentRunId="s2"), text(delta="whose?")], "UNBALANCED"),
        ([text("m1", subagentRunId="s1"), {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "n"},
          {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1"}, text(delta="too late")], "UNBALANCED"),
    ],
)  # fmt: skip
def test_a_chunked_stream_that_breaks_one(body: list[Json], name: str) -> None:
    assert name in fatal(run([STARTED, *body, FINISHED]))


def test_what_chunks_say_is_what_their_events_would_say() -> None:
    chunked = run([STARTED, text("m1", delta="a"), tool("c1", toolCallName="send"), FINISHED])
    spelled = run([STARTED, *TEXT, *call("c1"), FINISHED])
    assert chunked._replace(counts={}) == spelled._replace(counts={})


def test_more_lanes_than_can_be_watched_are_said_and_not_judged() -> None:
    seen = run(
        [STARTED, *(text("m", subagentRunId=f"s{each}") | {"messageId": f"m{each}"} for each in range(1001)), FINISHED]
    )
    assert (fatal(seen), [each.name for each in seen.findings]) == (set(), ["TOO_MANY"])
