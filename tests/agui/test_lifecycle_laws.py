"""What holds of every stream, whoever sends it, and of every one that keeps the rules. And that no content stays."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.lifecycle import Watch
from stopcause.agui.shapes import EVENTS
from stopcause.agui.values import Begun, Input, RunSeen
from stopcause.agui.words import Ending
from tests.agui.watched import FINISHED, GIVEN, STARTED, ask, custom, fatal, finished, names, result, run, runs, said
from tests.support.laws import tried_on

Json = Any
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["a", "b", "t1", "r1", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "type", "id"]), inner, max_size=3)
    ),
    max_leaves=5,
)
IDS = st.sampled_from(["a", "b", "t1", "r1", "x" * 600, "half \ud800"])
OUTCOMES = st.sampled_from(
    [
        {"type": "success"},
        {"type": "success", "interrupts": [ask()]},
        {"type": "interrupt", "interrupts": [ask(), ask()]},
        {"type": "interrupt", "interrupts": [5, {}, {"id": None, "reason": []}]},
        {"type": "cancelled"},
        {"type": "suspended", "interruptIds": ["i1"]},
        {"type": ["odd"]},
        {},
    ]
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "messageId": IDS,
        "toolCallId": IDS,
        "toolCallName": IDS,
        "stepName": IDS,
        "subagentRunId": IDS,
        "parentMessageId": IDS,
        "delta": st.sampled_from(["", "a"]) | VALUES,
        "threadId": IDS,
        "runId": IDS,
        "name": st.sampled_from(["on_interrupt", "function_approval_request", "n"]),
        "value": VALUES | st.just('{"id": 5}'),
        "content": VALUES,
        "messages": st.lists(VALUES | st.fixed_dictionaries({"id": IDS, "role": IDS, "toolCalls": VALUES}), max_size=2),
        "outcome": OUTCOMES | VALUES,
        "interrupt": VALUES,
        "metadata": VALUES | st.fixed_dictionaries({"stopcause": VALUES}),
        "usage": VALUES,
        "message": VALUES,
        "code": VALUES,
        "timestamp": VALUES | st.integers(-(2**70), 2**70),
        "protocolVersion": VALUES | st.sampled_from(["1.0", "9.9"]),
        "input": VALUES | st.just({"threadId": "t1", "runId": "a", "messages": [5, {"id": "a", "role": "tool"}]}),
        "rawEvent": VALUES,
    },
)
KINDS = st.sampled_from([*EVENTS, "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "NOVEL"])
EVENT = st.builds(lambda kind, fields: {"type": kind, **fields}, KINDS, FIELDS) | VALUES
STREAM = st.lists(EVENT, max_size=20)


@given(STREAM, st.sampled_from([None, GIVEN]))
@tried_on(600)
def test_nothing_that_can_be_sent_raises_and_every_run_that_begins_is_told(
    stream: list[Json], asked: Input | None
) -> None:
    told = said(stream, asked)
    begun = [each.run_id for each in told if isinstance(each, Begun)]
    over = [each.run_id for each in told if isinstance(each, RunSeen)]
    assert set(begun) <= set(over)
    assert len(over) >= len(begun)


@given(STREAM)
@tried_on(300)
def test_what_is_fatal_is_never_told_as_anything_but_rejected_or_failed(stream: list[Json]) -> None:
    for seen in runs(stream):
        if fatal(seen):
            assert seen.ending in (Ending.REJECTED, Ending.ERROR)
        assert len(names(seen)) == len(seen.findings)


@given(STREAM)
@tried_on(300)
def test_only_a_finish_makes_a_success(stream: list[Json]) -> None:
    kinds = [event.get("type") for event in stream if isinstance(event, dict)]
    if "RUN_FINISHED" not in kinds:
        assert not any(seen.ending is Ending.SUCCESS for seen in runs(stream))


# Streams that keep the rules ------------------------------------------------------------------------------------------


def _spelled(kind: str, name: str, deltas: Sequence[str]) -> list[Json]:
    """One streamed item, event by event."""
    head, field, content = {
        "TEXT_MESSAGE": ({}, "messageId", "CONTENT"),
        "TOOL_CALL": ({"toolCallName": "send"}, "toolCallId", "ARGS"),
        "REASONING_MESSAGE": ({"role": "reasoning"}, "messageId", "CONTENT"),
    }[kind]
    body = [{"type": f"{kind}_{content}", field: name, "delta": delta} for delta in deltas]
    return [{"type": f"{kind}_START", field: name, **head}, *body, {"type": f"{kind}_END", field: name}]


def _chunked(kind: str, name: str, deltas: Sequence[str]) -> list[Json]:
    """The same in chunks: the first says what it is, the others go on."""
    field = "toolCallId" if kind == "TOOL_CALL" else "messageId"
    head = {field: name, **({"toolCallName": "send"} if kind == "TOOL_CALL" else {})}
    first = {"delta": deltas[0]} if deltas else {}
    rest = [{"type": f"{kind}_CHUNK", "delta": delta} for delta in deltas[1:]]
    return [{"type": f"{kind}_CHUNK", **head, **first}, *rest]


STREAMED = st.tuples(
    st.sampled_from(["TEXT_MESSAGE", "TOOL_CALL", "REASONING_MESSAGE"]),
    st.lists(st.sampled_from(["", "a"]), max_size=3),
)


def _block(number: int, shape: tuple[str, list[str]], owner: str | None) -> list[Json]:
    """A thing that a run does, from its beginning to its end, and of whom."""
    kind, deltas = shape
    name = f"x{number}"
    events = {
        "STEP": [{"type": "STEP_STARTED", "stepName": name}, {"type": "STEP_FINISHED", "stepName": name}],
        "SPAN": [{"type": "REASONING_START", "messageId": name}, {"type": "REASONING_END", "messageId": name}],
        "RESULT": [*_spelled("TOOL_CALL", name, deltas), result(name, f"r{number}")],
        "STATE": [{"type": "STATE_SNAPSHOT", "snapshot": None}, {"type": "STATE_DELTA", "delta": []}],
    }.get(kind) or _spelled(kind, name, deltas)
    if owner is None:
        return events
    sub = f"s{number}"
    tagged = [{**event, "subagentRunId": sub} for event in events]
    started = {"type": "SUBAGENT_STARTED", "subagentRunId": sub, "name": owner}
    return [started, *tagged, {"type": "SUBAGENT_FINISHED", "subagentRunId": sub}]


@st.composite
def kept(draw: st.DrawFn) -> list[Json]:
    """Blocks of a run, interleaved in any way: items are independent of each other."""
    kinds = st.sampled_from(["TEXT_MESSAGE", "TOOL_CALL", "REASONING_MESSAGE", "STEP", "SPAN", "RESULT", "STATE"])
    shapes = st.tuples(kinds, st.lists(st.sampled_from(["", "a"]), max_size=2))
    drawn = draw(st.lists(st.tuples(shapes, st.sampled_from([None, None, "helper"])), max_size=6))
    left = [_block(number, shape, owner) for number, (shape, owner) in enumerate(drawn)]
    stream = []
    while left:
        block = draw(st.sampled_from(left))
        stream.append(block.pop(0))
        left = [each for each in left if each]
    return [STARTED, *stream, _finished(stream)]


def _finished(stream: list[Json]) -> Json:
    """It lists the calls that nobody answered."""
    answered = {each["toolCallId"] for each in stream if each["type"] == "TOOL_CALL_RESULT"}
    calls = [each["toolCallId"] for each in stream if each["type"] == "TOOL_CALL_START"]
    pending = [each for each in calls if each not in answered]
    return finished({"type": "success", "pendingToolCallIds": pending}) if pending else FINISHED


@given(kept())
@tried_on(300)
def test_a_stream_that_keeps_the_rules_is_a_success_without_a_finding(stream: list[Json]) -> None:
    seen = run(stream)
    assert (seen.ending, seen.findings) == (Ending.SUCCESS, ())


@given(kept(), st.data())
@tried_on(200)
def test_what_is_not_known_changes_nothing_but_the_count(stream: list[Json], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(stream)))
    more = [*stream[:place], {"type": "NOVEL", "content": "x"}, *stream[place:]]
    seen = run(more)
    if place < len(stream):
        assert seen.counts["unrecognised"] == 1
    assert seen._replace(counts={}, findings=()) == run(stream)._replace(counts={})


@given(kept(), st.data())
@tried_on(200)
def test_a_stream_that_is_cut_off_is_truncated(stream: list[Json], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(stream) - 1))
    seen = run(stream[:place])
    assert (seen.ending, names(seen)) == (Ending.TRUNCATED, {"TRUNCATED"})


@given(st.lists(STREAMED, max_size=6))
@tried_on(300)
def test_chunks_say_what_their_events_would_say(items: list[tuple[str, list[str]]]) -> None:
    spelled = [event for number, item in enumerate(items) for event in _spelled(item[0], f"x{number}", item[1])]
    chunked = [event for number, item in enumerate(items) for event in _chunked(item[0], f"x{number}", item[1])]
    one, other = (run([STARTED, *body, FINISHED]) for body in (spelled, chunked))
    assert one._replace(counts={}) == other._replace(counts={})


# No content -----------------------------------------------------------------------------------------------------------

MARK = "CANARY-4711"
PROSE = f"a sentence, with {MARK} in it"


def _marked(event: Json) -> Json:
    """An event with a marked sentence in every field that is not said to be something else."""
    return {**dict.fromkeys(("message", "title", "description", "content", "result", "novel"), PROSE), **event}


def test_nothing_that_people_or_models_wrote_is_kept() -> None:
    asked = ask("i1", PROSE, message=PROSE, metadata={"a": PROSE, "stopcause": {"owner": PROSE, "due": PROSE}})
    asked["responseSchema"] = {"title": PROSE, "properties": {"a": {"description": PROSE}}}
    body = [
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "name": PROSE},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": PROSE},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "metadata": {"a": PROSE}, "rawEvent": PROSE},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "name": PROSE, "delta": PROSE},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": PROSE},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": PROSE},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {**result("c"), "content": PROSE},
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": PROSE}},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "tool", "toolCallId": "c", "content": PROSE}]},
        {"type": "RAW", "event": PROSE, "source": PROSE},
        custom({"message": PROSE, "reason": PROSE, "args": PROSE}),
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": PROSE, "description": PROSE},
        {"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": PROSE, "code": PROSE},
    ]
    ours = {"stopcause": {"stop_cause": PROSE, "agent": PROSE, "error": {"type": PROSE}, "novel": PROSE}}
    end = finished(
        {"type": "interrupt", "interrupts": [asked]}, metadata=ours, usage=[{"model": PROSE, "provider": PROSE}]
    )
    first = {**STARTED, "protocolVersion": PROSE, "input": {"threadId": "t1", "runId": "r1", "messages": [PROSE]}}
    told = said([_marked(each) for each in (first, *body, end, {"type": "RUN_ERROR", "code": PROSE})])
    assert len(told) == 3
    assert MARK not in repr(told)


def test_a_word_that_is_prose_leaves_no_trace_in_what_was_found() -> None:
    broken = [
        {"type": PROSE},
        {"type": "TEXT_MESSAGE_END", "messageId": PROSE},
        {"type": "STEP_FINISHED", "stepName": PROSE},
    ]
    seen = run([STARTED, *broken, finished({"type": PROSE})])
    assert MARK not in repr(seen.findings)
    assert MARK not in repr(seen.counts)


def test_a_run_keeps_little_of_a_stream_without_end() -> None:
    watch = Watch(GIVEN)
    watch.take(STARTED)
    for number in range(30_000):
        for event in _spelled("TOOL_CALL", f"c{number}", ()):
            watch.take(event)
        watch.take({"type": "TEXT_MESSAGE_START", "messageId": f"m{number}"})
        watch.take({"type": "TEXT_MESSAGE_END", "messageId": f"m{number}"})
    (seen,) = watch.take(FINISHED)
    assert isinstance(seen, RunSeen)
    assert len(seen.calls) == 10_000
    assert names(seen) == {"TOO_MANY"}


def test_ids_that_are_too_long_to_keep_are_hashes_and_still_say_the_same() -> None:
    name = "x" * 100_000
    body = [
        {"type": "SUBAGENT_STARTED", "subagentRunId": name, "name": name},
        *({**event, "subagentRunId": name} for event in _spelled("TOOL_CALL", name, ["a"])),
        *_chunked("TEXT_MESSAGE", name, ["a", "b"]),
        custom({"id": name, "toolCallId": name, "reason": name, "expiresAt": name}),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": name, "outcome": {"type": "suspended", "interruptIds": [name]}},
        {"type": name},
    ]
    seen = run([STARTED, *body, result(name, name), finished(usage=[{"model": name}])])
    assert not fatal(seen)
    assert seen.pending == ()
    assert seen.interrupts[0].tool_call_id == seen.results[0].tool_call_id == next(iter(seen.calls))
    assert len(repr(seen)) < 10_000
