"""For the lifecycle's tests: small streams, and what a watch says of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from stopcause.agui.frames import Event
from stopcause.agui.lifecycle import Watch
from stopcause.agui.values import Begun, Input, RunSeen

Json = Any
GIVEN = Input("t1", "r1")
STARTED: Json = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"}
OLD_STARTED: Json = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"}
FINISHED: Json = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}
FAILED: Json = {"type": "RUN_ERROR", "message": "no"}
TEXT: Json = [
    {"type": "TEXT_MESSAGE_START", "messageId": "m1"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "a"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
]


def call(name: str, tool: str = "send") -> list[Json]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": name, "toolCallName": tool},
        {"type": "TOOL_CALL_END", "toolCallId": name},
    ]


def result(name: str, message: str = "res") -> Json:
    return {"type": "TOOL_CALL_RESULT", "toolCallId": name, "messageId": message, "content": "done"}


def finished(outcome: Json = None, **more: Json) -> Json:
    return {**FINISHED, **({"outcome": outcome} if outcome is not None else {}), **more}


def interrupted(*asked: Json) -> Json:
    return finished({"type": "interrupt", "interrupts": list(asked)})


def ask(name: str = "i1", reason: str = "tool_call", **more: Json) -> Json:
    return {"id": name, "reason": reason, **more}


def custom(value: Json, *, name: str = "on_interrupt", **more: Json) -> Json:
    return {"type": "CUSTOM", "name": name, "value": value, **more}


def said(
    events: Iterable[Event], given: Input | None = GIVEN, *, at: datetime | None = None, **watch: Json
) -> list[Begun | RunSeen]:
    """Everything that is said of a stream, to its end."""
    left = watch.pop("left_by_reader", False)
    it = Watch(given, **watch)
    told = [each for event in events for each in it.take(event)]
    return [*told, *it.close(at, left_by_reader=left)]


def runs(events: Iterable[Event], given: Input | None = GIVEN, **watch: Json) -> list[RunSeen]:
    return [each for each in said(events, given, **watch) if isinstance(each, RunSeen)]


def run(events: Iterable[Event], given: Input | None = GIVEN, **watch: Json) -> RunSeen:
    """The only one that is said."""
    (only,) = runs(events, given, **watch)
    return only


def names(seen: RunSeen) -> set[str]:
    return {each.name for each in seen.findings}


def about(seen: RunSeen, name: str) -> tuple[str, ...]:
    """What a finding is about."""
    return next(each.ids for each in seen.findings if each.name == name)


def fatal(seen: RunSeen) -> set[str]:
    return {each.name for each in seen.findings if each.fatal}
