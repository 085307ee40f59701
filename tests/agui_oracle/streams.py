"""Streams for the oracle: valid ones, made here or recorded, and mutations of them. All of it follows from a seed.

A made stream is blocks that lie between each other: a message, a call, a subagent with blocks of its own. A block is
parts, and a part is events that stay together: chunks are one message only as long as nothing comes between.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from random import Random
from typing import Any, NamedTuple

from stopcause.pipeline import agui_cases
from stopcause.resources import data_folder

Event = dict[str, Any]
Part = list[Event]
Block = list[Part]


class Stream(NamedTuple):
    """The events that answered an input."""

    thread_id: str
    run_id: str
    events: list[Any]


# Valid ones -----------------------------------------------------------------------------------------------------------


def some(rnd: Random) -> Stream:
    """A stream to begin with: mostly one that nobody recorded."""
    return made(rnd) if rnd.random() < 0.7 else rnd.choice(recorded())


@cache
def recorded() -> tuple[Stream, ...]:
    """Those of our cases: real streams of integrations, and histories. Not all keep the rules; most do."""
    cases = agui_cases.load_thread_cases([data_folder("fixtures") / "agui"])
    exchanges = (exchange for case in cases for exchange in case.exchanges if len(str(case.exchanges)) < _LARGEST)
    found = (_recorded(each) for each in exchanges if isinstance(each, dict))
    return tuple(each for each in found if each is not None)


_LARGEST = 200_000  # characters of a case


def _recorded(exchange: Event) -> Stream | None:
    given, events = exchange.get("input"), exchange.get("events")
    if not isinstance(given, dict) or not isinstance(events, list) or not events:
        return None
    thread_id, run_id = given.get("threadId"), given.get("runId")
    if not isinstance(thread_id, str) or not isinstance(run_id, str):
        return None
    return Stream(thread_id, run_id, events) if all(isinstance(each, dict) for each in events) else None


def made(rnd: Random) -> Stream:
    """One that keeps the rules: a run, or replayed ones before it: the last is the one that was asked for."""
    earlier = rnd.choice((0, 0, 0, 1, 2))
    ids = [f"r{number}" for number in range(earlier + 1)]
    return Stream("t1", ids[-1], [event for run_id in ids for event in _run(rnd, run_id)])


def _run(rnd: Random, run_id: str) -> Iterator[Event]:
    names = _Names(run_id)
    ids = {"threadId": "t1", "runId": run_id}
    yield {"type": "RUN_STARTED", **ids, **rnd.choice(({"protocolVersion": "1.0"}, {}))}
    if rnd.random() < 0.05:
        yield {"type": "RUN_ERROR", "message": "failed"}
        return
    blocks = [rnd.choice(_KINDS)(rnd, names, None) for _ in range(rnd.randrange(6))]
    body = [event for part in _between(rnd, blocks) for event in part]
    yield from body
    yield from _end(rnd, ids, body)


def _end(rnd: Random, ids: Event, body: Iterable[Event]) -> Iterator[Event]:
    finish: Event = {"type": "RUN_FINISHED", **ids}
    waits = [each["outcome"] for each in body if each.get("outcome", {}).get("type") == "suspended"]
    word = "interrupt" if waits else rnd.choice(("success", "none", "interrupt", "cancelled", "error"))
    if word == "error":
        yield {"type": "RUN_ERROR", "message": "failed", **rnd.choice(({}, {"code": "ABORTED"}))}
        return
    if word != "none":
        finish["outcome"] = {"type": word}
    if word == "interrupt":
        asked = {name for each in waits for name in each.get("interruptIds", ())} or {"i1", "i2"}
        finish["outcome"]["interrupts"] = [{"id": name, "reason": "confirmation"} for name in sorted(asked)]
    if rnd.random() < 0.2:
        finish["usage"] = [{"model": "m", "inputTokens": 3, "outputTokens": 2, "totalTokens": 5}]
    yield finish
    if rnd.random() < 0.1:
        yield {"type": "RUN_ERROR", "message": "late"}


def _between(rnd: Random, blocks: list[Block]) -> Iterator[Part]:
    """The parts of blocks, each block's in its order."""
    left = [[*each] for each in blocks if each]
    while left:
        block = rnd.choice(left)
        yield block.pop(0)
        left = [each for each in left if each]


class _Names:
    """Ids of a run, each once."""

    def __init__(self, run_id: str) -> None:
        self._run_id, self._count = run_id, 0

    def __call__(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._run_id}-{self._count}"


_Kind = Callable[[Random, _Names, str | None], Block]


def _tagged(owner: str | None, *events: Event) -> Block:
    """Each event a part; of the subagent that it belongs to, where there is one."""
    return [[event if owner is None else {**event, "subagentRunId": owner}] for event in events]


def _message(rnd: Random, names: _Names, owner: str | None) -> Block:
    it = {"messageId": names("m")}
    pieces = [{"type": "TEXT_MESSAGE_CONTENT", **it, "delta": "a"} for _ in range(rnd.randrange(3))]
    start = {"type": "TEXT_MESSAGE_START", **it, **rnd.choice(({"role": "assistant"}, {}, {"role": "user"}))}
    return _tagged(owner, start, *pieces, {"type": "TEXT_MESSAGE_END", **it})


def _call(rnd: Random, names: _Names, owner: str | None) -> Block:
    it = {"toolCallId": names("c")}
    result = {"type": "TOOL_CALL_RESULT", **it, "messageId": names("m"), "content": "ok"}
    events = (
        {"type": "TOOL_CALL_START", **it, "toolCallName": "send"},
        {"type": "TOOL_CALL_ARGS", **it, "delta": "{}"},
        {"type": "TOOL_CALL_END", **it},
        *((result,) if rnd.random() < 0.6 else ()),
    )
    return _tagged(owner, *events)


def _reasoning(rnd: Random, names: _Names, owner: str | None) -> Block:
    span, it = {"messageId": names("s")}, {"messageId": names("r")}
    pieces = [{"type": "REASONING_MESSAGE_CONTENT", **it, "delta": "a"} for _ in range(rnd.randrange(3))]
    start = {"type": "REASONING_MESSAGE_START", **it, "role": "reasoning"}
    inner = (start, *pieces, {"type": "REASONING_MESSAGE_END", **it})
    return _tagged(owner, {"type": "REASONING_START", **span}, *inner, {"type": "REASONING_END", **span})


def _step(_rnd: Random, names: _Names, owner: str | None) -> Block:
    it = {"stepName": names("step")}
    return _tagged(owner, {"type": "STEP_STARTED", **it}, {"type": "STEP_FINISHED", **it})


def _chunks(rnd: Random, names: _Names, owner: str | None) -> Block:
    """A message or a call in chunks, of which the first names it. Nothing comes between them."""
    message = {"type": "TEXT_MESSAGE_CHUNK", "messageId": names("m"), "role": "assistant", "delta": "a"}
    call = {"type": "TOOL_CALL_CHUNK", "toolCallId": names("c"), "toolCallName": "send", "delta": "{}"}
    thought = {"type": "REASONING_MESSAGE_CHUNK", "messageId": names("r"), "delta": "a"}
    first = rnd.choice((message, call, thought))
    more = {"type": first["type"], "delta": "b"}
    return [[event for part in _tagged(owner, first, *[more] * rnd.randrange(3)) for event in part]]


def _subagent(rnd: Random, names: _Names, owner: str | None) -> Block:
    it = {"subagentRunId": names("sub")}
    blocks = [rnd.choice(_SIMPLE)(rnd, names, it["subagentRunId"]) for _ in range(rnd.randrange(3))]
    outcome = rnd.choice((None, None, {"type": "success"}, {"type": "suspended", "interruptIds": ["i1"]}))
    finished = {"type": "SUBAGENT_FINISHED", **it, **({"outcome": outcome} if outcome else {})}
    failed = {"type": "SUBAGENT_ERROR", **it, "message": "failed"}
    start = {"type": "SUBAGENT_STARTED", **it, "name": "finder", **({"parentSubagentRunId": owner} if owner else {})}
    return [[start], *_between(rnd, blocks), [rnd.choice((finished, finished, failed))]]


def _single(rnd: Random, names: _Names, owner: str | None) -> Block:
    """Events that stand by themselves."""
    message = {"id": names("m"), "role": "assistant", "content": "a"}
    return _tagged(
        owner,
        rnd.choice(
            (
                {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}},
                {"type": "STATE_DELTA", "delta": []},
                {"type": "MESSAGES_SNAPSHOT", "messages": [message]},
                {"type": "ACTIVITY_SNAPSHOT", "messageId": names("a"), "activityType": "plan", "content": {}},
                {"type": "CUSTOM", "name": "note", "value": None},
                {"type": "RAW", "event": {}, "source": "provider"},
                {"type": "NOVEL", "what": names("n")},
            )
        ),
    )


_SIMPLE: tuple[_Kind, ...] = (_message, _message, _call, _call, _reasoning, _step, _chunks, _single)
_KINDS: tuple[_Kind, ...] = (*_SIMPLE, _subagent)


# Mutations ------------------------------------------------------------------------------------------------------------

_ODD: tuple[Any, ...] = (None, 5, True, 1.5, "", "odd", [], {}, [5], {"a": 5})


def mutated(rnd: Random, stream: Stream) -> Stream:
    """The stream with one to three things changed."""
    events = copy.deepcopy(stream.events)
    for _ in range(rnd.choice((1, 1, 2, 3))):
        if events:
            rnd.choice(_MUTATIONS)(rnd, events)
    return stream._replace(events=events)


def _drop(rnd: Random, events: list[Event]) -> None:
    del events[rnd.randrange(len(events))]


def _repeat(rnd: Random, events: list[Event]) -> None:
    place = rnd.randrange(len(events))
    events.insert(rnd.randint(place, len(events)), copy.deepcopy(events[place]))


def _move(rnd: Random, events: list[Event]) -> None:
    event = events.pop(rnd.randrange(len(events)))
    events.insert(rnd.randint(0, len(events)), event)


def _swap(rnd: Random, events: list[Event]) -> None:
    place = rnd.randrange(len(events))
    events[place - 1], events[place] = events[place], events[place - 1]


def _cut(rnd: Random, events: list[Event]) -> None:
    del events[rnd.randrange(len(events)) :]


def _graft(rnd: Random, events: list[Event]) -> None:
    """An event of another stream."""
    events.insert(rnd.randint(0, len(events)), copy.deepcopy(rnd.choice(some(rnd).events)))


def _lose_field(rnd: Random, events: list[Event]) -> None:
    holder = rnd.choice([*_objects(rnd.choice(events))])
    if holder:
        del holder[rnd.choice([*holder])]


def _change_field(rnd: Random, events: list[Event]) -> None:
    holder = rnd.choice([*_objects(rnd.choice(events))])
    if holder:
        holder[rnd.choice([*holder])] = copy.deepcopy(rnd.choice(_ODD))


def _add_field(rnd: Random, events: list[Event]) -> None:
    """A field that other events have, with something that it holds there, or something odd."""
    donor = rnd.choice(some(rnd).events)
    name = rnd.choice([*donor])
    if name != "type":
        rnd.choice(events)[name] = copy.deepcopy(rnd.choice((donor[name], rnd.choice(_ODD))))


def _swap_ids(rnd: Random, events: list[Event]) -> None:
    one, other = rnd.choice(events), rnd.choice(events)
    shared = sorted(name for name in one.keys() & other.keys() if name.endswith("Id"))
    if shared:
        name = rnd.choice(shared)
        one[name], other[name] = other[name], one[name]


def _objects(value: Any) -> Iterator[Event]:  # noqa: ANN401 - JSON
    """An event, and the objects in it. What no reader looks into stays as it is."""
    if isinstance(value, dict):
        yield value
        for name, inner in value.items():
            yield from _objects(inner) if name not in _UNREAD else ()
    elif isinstance(value, list):
        yield from (found for inner in value for found in _objects(inner))


_UNREAD = frozenset({"rawEvent", "event", "snapshot", "value", "content", "delta", "patch", "responseSchema", "result"})

_MUTATIONS: tuple[Callable[[Random, list[Event]], None], ...] = (
    *(_drop, _repeat, _move, _swap, _cut, _graft),
    *(_lose_field, _change_field, _change_field, _add_field, _swap_ids),
)
