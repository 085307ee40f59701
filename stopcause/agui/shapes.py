"""Which fields an event has to have, and of what type each described field is: tables, and the one loop over them.

Source: the JSON schema of the specification 1.0 (basic/processing: a described field with a value that the schema does
not allow is fatal; what is not described is passed over). A word of a closed list is one of it (`words`). The types of
events, outcomes and roles of whole messages are open lists: one that is not known is unrecognised, not malformed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stopcause.agui.ids import LONGEST, key_of
from stopcause.agui.values import Json

Kinds = frozenset[type]
TEXT: Kinds = frozenset({str})
LIST: Kinds = frozenset({list})
OBJECT: Kinds = frozenset({dict})
WHOLE: Kinds = frozenset({int})
YES_NO: Kinds = frozenset({bool})
CONTENT: Kinds = frozenset({str, list})
FILLED: Kinds = frozenset({str, int, float, bool, list, dict})  # anything but null
ANYTHING: Kinds = FILLED | {type(None)}


class Shape(NamedTuple):
    """What must be there, of which types each field is where it is there, and of which the entries of its lists are.

    `old_nulls` are optional fields that SDKs before 1.0 wrote as null; the reference client reads them as left out.
    `ids` are the fields that name something that a run has. `words` are closed lists.
    """

    required: frozenset[str]
    kinds: Mapping[str, Kinds]
    entries: Mapping[str, Kinds]
    old_nulls: frozenset[str]
    ids: tuple[str, ...]
    words: Mapping[str, frozenset[str]]


class Fault(NamedTuple):
    """A field that is wrong: the finding that this is, and where it stands."""

    finding: str
    place: str

    @property
    def is_null(self) -> bool:
        """Whether it can be read as absent."""
        return self.finding != "MALFORMED"


Fields = Mapping[str, Kinds]
Words = Mapping[str, frozenset[str]]
_ENTRIES: Fields = {
    "delta": OBJECT,
    "patch": OBJECT,
    "pendingToolCallIds": TEXT,
    "interruptIds": TEXT,
    "content": OBJECT,
    "toolCalls": OBJECT,
}
_IDS = frozenset(
    {"id", "messageId", "toolCallId", "stepName", "subagentRunId", "entityId", "parentMessageId", "parentSubagentRunId"}
)
_NONE: Fields = {}
_ANY_WORD: Words = {}


def _shape(
    required: Fields, optional: Fields = _NONE, *, old_nulls: tuple[str, ...] = (), words: Words = _ANY_WORD
) -> Shape:
    kinds = {**required, **optional}
    entries = {name: _ENTRIES[name] for name, kind in kinds.items() if list in kind and name in _ENTRIES}
    ids = tuple(name for name in kinds if name in _IDS)
    return Shape(frozenset(required), kinds, entries, frozenset(old_nulls), ids, words)


# `subagentRunId` on an event that cannot have one is passed over, but for null, which the texts forbid everywhere.
_ANY_EVENT: Fields = {
    "timestamp": WHOLE,
    "rawEvent": FILLED,
    "metadata": OBJECT,
    "subagentRunId": TEXT,
}


def _event(
    required: Fields = _NONE, optional: Fields = _NONE, *, old_nulls: tuple[str, ...] = (), words: Words = _ANY_WORD
) -> Shape:
    return _shape(required, {**_ANY_EVENT, **optional}, old_nulls=("rawEvent", *old_nulls), words=words)


_MESSAGE = {"messageId": TEXT}
_PIECE = {"messageId": TEXT, "delta": TEXT}
_CALL = {"toolCallId": TEXT}
_RUN = {"threadId": TEXT, "runId": TEXT}
_SUBAGENT = {"subagentRunId": TEXT}
_STREAMED: Words = {"role": frozenset({"developer", "system", "assistant", "user"})}  # a tool's has an event of its own

EVENTS: Mapping[str, Shape] = {
    "RUN_STARTED": _event(_RUN, {"protocolVersion": TEXT, "parentRunId": TEXT, "input": OBJECT}),
    "RUN_FINISHED": _event(_RUN, {"result": FILLED, "outcome": OBJECT, "usage": LIST}, old_nulls=("result", "outcome")),
    "RUN_ERROR": _event({"message": TEXT}, {"code": TEXT, "usage": LIST}),
    "STEP_STARTED": _event({"stepName": TEXT}),
    "STEP_FINISHED": _event({"stepName": TEXT}),
    "TEXT_MESSAGE_START": _event(_MESSAGE, {"role": TEXT, "name": TEXT}, words=_STREAMED),
    "TEXT_MESSAGE_CONTENT": _event(_PIECE),
    "TEXT_MESSAGE_END": _event(_MESSAGE),
    "TEXT_MESSAGE_CHUNK": _event(
        optional={"messageId": TEXT, "role": TEXT, "delta": TEXT, "name": TEXT}, words=_STREAMED
    ),
    "TOOL_CALL_START": _event(
        {**_CALL, "toolCallName": TEXT}, {"parentMessageId": TEXT}, old_nulls=("parentMessageId",)
    ),
    "TOOL_CALL_ARGS": _event({"toolCallId": TEXT, "delta": TEXT}),
    "TOOL_CALL_END": _event(_CALL),
    "TOOL_CALL_CHUNK": _event(
        optional={**_CALL, "toolCallName": TEXT, "parentMessageId": TEXT, "delta": TEXT}, old_nulls=("parentMessageId",)
    ),
    "TOOL_CALL_RESULT": _event(
        {"messageId": TEXT, "toolCallId": TEXT, "content": CONTENT},
        {"role": TEXT},
        words={"role": frozenset({"tool"})},
    ),
    "STATE_SNAPSHOT": _event({"snapshot": ANYTHING}),
    "STATE_DELTA": _event({"delta": LIST}),
    "MESSAGES_SNAPSHOT": _event({"messages": LIST}),
    "ACTIVITY_SNAPSHOT": _event({**_MESSAGE, "activityType": TEXT, "content": OBJECT}, {"replace": YES_NO}),
    "ACTIVITY_DELTA": _event({**_MESSAGE, "activityType": TEXT, "patch": LIST}),
    "RAW": _event({"event": ANYTHING}, {"source": TEXT}),
    "CUSTOM": _event({"name": TEXT, "value": ANYTHING}),
    "REASONING_START": _event(_MESSAGE),
    # Before 1.0 it was called the assistant's; since then `course` asks for the other word.
    "REASONING_MESSAGE_START": _event(_MESSAGE, {"role": TEXT}, words={"role": frozenset({"reasoning", "assistant"})}),
    "REASONING_MESSAGE_CONTENT": _event(_PIECE),
    "REASONING_MESSAGE_END": _event(_MESSAGE),
    "REASONING_MESSAGE_CHUNK": _event(optional=_PIECE),
    "REASONING_END": _event(_MESSAGE),
    "REASONING_ENCRYPTED_VALUE": _event(
        {"subtype": TEXT, "entityId": TEXT, "encryptedValue": TEXT},
        words={"subtype": frozenset({"tool-call", "message"})},
    ),
    "SUBAGENT_STARTED": _event(
        {**_SUBAGENT, "name": TEXT},
        {"description": TEXT, "parentSubagentRunId": TEXT, "parentToolCallId": TEXT, "parentMessageId": TEXT},
    ),
    "SUBAGENT_FINISHED": _event(_SUBAGENT, {"result": FILLED, "outcome": OBJECT}, old_nulls=("result",)),
    "SUBAGENT_ERROR": _event({**_SUBAGENT, "message": TEXT}, {"code": TEXT}),
}

INTERRUPT = _shape(
    {"id": TEXT, "reason": TEXT},
    {
        "message": TEXT,
        "toolCallId": TEXT,
        "responseSchema": OBJECT,
        "expiresAt": TEXT,
        "metadata": OBJECT,
        "subagentRunId": TEXT,
    },
)
OUTCOMES: Mapping[str, Shape] = {
    "success": _shape({}, {"pendingToolCallIds": LIST}),
    "interrupt": _shape({}, {"interrupts": LIST}),  # that it has some is a rule of its own
    "cancelled": _shape({}),
}
SUSPENDED = _shape({}, {"interruptIds": LIST})
USAGE = _shape(
    {},
    {
        "provider": TEXT,
        "model": TEXT,
        "inputTokens": WHOLE,
        "outputTokens": WHOLE,
        "totalTokens": WHOLE,
        "reasoningTokens": WHOLE,
        "cachedInputTokens": WHOLE,
        "cacheWriteInputTokens": WHOLE,
    },
)
MESSAGE = _shape({"id": TEXT, "role": TEXT}, {"subagentRunId": TEXT})  # of a role that nobody knows


def _message(required: Fields, optional: Fields = _NONE) -> Shape:
    more = {"subagentRunId": TEXT, "metadata": OBJECT}
    return _shape({"id": TEXT, "role": TEXT, **required}, {**more, **optional})


_NAMED = {"name": TEXT, "encryptedValue": TEXT}
MESSAGES: Mapping[str, Shape] = {  # by role
    "developer": _message({"content": TEXT}, _NAMED),
    "system": _message({"content": TEXT}, _NAMED),
    "assistant": _message({}, {"content": TEXT, "toolCalls": LIST, **_NAMED}),
    "user": _message({"content": CONTENT}, _NAMED),
    "tool": _message({"content": CONTENT, "toolCallId": TEXT}, {"error": TEXT, "encryptedValue": TEXT}),
    "activity": _message({"activityType": TEXT, "content": OBJECT}),
    "reasoning": _message({"content": TEXT}, {"encryptedValue": TEXT}),
}
CALL = _shape(
    {"id": TEXT, "type": TEXT, "function": OBJECT},
    {"encryptedValue": TEXT, "metadata": OBJECT},
    words={"type": frozenset({"function"})},
)
FUNCTION = _shape({"name": TEXT, "arguments": TEXT})


def is_fit(value: Mapping[str, Json], shape: Shape) -> bool:
    """Whether nothing is wrong with it: the way that almost every event takes."""
    kinds = shape.kinds
    for name, field in value.items():
        if name in kinds and type(field) not in kinds[name]:
            return False
    if not shape.required <= value.keys():
        return False
    if shape.words and not all(name not in value or value[name] in words for name, words in shape.words.items()):
        return False
    return not shape.entries or all(_has_only(value.get(name), kinds) for name, kinds in shape.entries.items())


def faults(value: Mapping[str, Json], shape: Shape, place: str) -> Iterator[Fault]:
    """What is wrong with it. `place` is what stands before the name of the field."""
    for name in sorted(shape.required - value.keys()):
        yield Fault("MALFORMED", f"{place}.{name}")
    for name, kinds in shape.kinds.items():
        if name not in value:
            continue
        if not _is_of(value[name], kinds):
            yield Fault(_finding(value[name], name, shape), f"{place}.{name}")
        elif not _has_only(value[name], shape.entries.get(name, ANYTHING)) or _is_odd(value[name], name, shape):
            yield Fault("MALFORMED", f"{place}.{name}")


def _finding(field: Json, name: str, shape: Shape) -> str:
    if field is not None or name in shape.required:
        return "MALFORMED"
    return "OLD_NULL" if name in shape.old_nulls else "NULL_FIELD"


def _is_of(field: Json, kinds: Kinds) -> bool:
    return type(field) in kinds or (kinds is WHOLE and isinstance(field, float) and field.is_integer())


def _is_odd(field: Json, name: str, shape: Shape) -> bool:
    return name in shape.words and field not in shape.words[name]


def _has_only(entries: Json, kinds: Kinds) -> bool:
    """Whether a list has entries of these types only. What is no list is not for here."""
    return not isinstance(entries, list) or all(type(each) in kinds for each in entries)


def shortened(value: Mapping[str, Json], shape: Shape) -> Mapping[str, Json]:
    """The same with ids that can be kept. Its fields are of their types."""
    for name in shape.ids:
        said = value.get(name)
        if said is not None and len(said) > LONGEST:
            return {**value, **{each: key_of(value[each]) for each in shape.ids if value.get(each) is not None}}
    return value
