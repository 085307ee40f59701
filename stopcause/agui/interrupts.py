"""What a run asks for: an interrupt of an outcome, or a CUSTOM event from before there were any -> Interrupt.

Of an interrupt stay its ids, its kind, its times, who owns it, and what its answer has to look like (`responseSchema`
without what people read in it). Its message, its arguments and its metadata do not. Nothing here judges an id against
another run: that is the ledger's.

Sources: spec 1.0, basic/patterns/interrupt-resume; the contract before it for the words of `reason` and for CUSTOM.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from stopcause.agui import ids, times
from stopcause.agui.items import Blame
from stopcause.agui.parsing import read_json
from stopcause.agui.shapes import INTERRUPT, faults, is_fit
from stopcause.agui.values import Interrupt, Json
from stopcause.agui.words import Channel
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import ApprovalKind, StopCause

MOST = 1000  # of one run
APPROVAL_REQUEST = "function_approval_request"  # as older versions of Microsoft's agent framework ask
ASKING = frozenset({"on_interrupt", APPROVAL_REQUEST})  # names of CUSTOM events that are questions

_KINDS: Mapping[str, ApprovalKind] = {
    "tool_call": ApprovalKind.TOOL_CALL,
    "confirmation": ApprovalKind.CONFIRMATION,
    "input_required": ApprovalKind.INPUT_REQUIRED,
    APPROVAL_REQUEST: ApprovalKind.TOOL_CALL,
}
_REASONS: Mapping[str, tuple[str, ...]] = {  # those that have a meaning, and what each goes with
    "tool_call": ("toolCallId",),
    "input_required": ("responseSchema",),
    "confirmation": (),
}
# The first of these that a run asks for says what it waits for.
_CAUSES: Sequence[tuple[StopCause, frozenset[ApprovalKind]]] = (
    (StopCause.APPROVAL_PENDING, frozenset({ApprovalKind.TOOL_CALL, ApprovalKind.CONFIRMATION})),
    (StopCause.INPUT_PENDING, frozenset({ApprovalKind.INPUT_REQUIRED})),
)
_CALL_IDS = ("toolCallId", "tool_call_id")
_CALL_OBJECTS = ("function_call", "functionCall")
_LONGEST_TEXT = 1 << 20  # of a CUSTOM value that is JSON in a string
_LONGEST_DUE = 64
_NEVER = (None, None, None)


class Ask(NamedTuple):
    """An interrupt as it was read, and what waits for the run's end: a due time that may count from it."""

    interrupt: Interrupt
    due: str | None = None

    def settled(self, ended_at: datetime | None, calls: Mapping[str, str | None]) -> Interrupt:
        """The interrupt, once the end and the calls of its run are known."""
        it = self.interrupt
        due_in_s = times.read_duration_s(self.due)
        due = times.read_time(self.due) if due_in_s is None else None
        if due_in_s is not None and ended_at is not None:
            due = ended_at + timedelta(seconds=due_in_s)
        return it._replace(due=due, due_in_s=due_in_s, tool=calls.get(it.tool_call_id or ""))


def cause_of(interrupts: Sequence[Interrupt]) -> StopCause:
    """What a run waits for that asks for all of these. Where nothing is known of any: for something outside."""
    kinds = {each.kind for each in interrupts}
    return next((cause for cause, those in _CAUSES if kinds & those), StopCause.EXTERNAL_PENDING)


def read_interrupts(values: Sequence[Json], run_id: str, blame: Blame) -> tuple[Ask, ...]:
    """The interrupts of an outcome. One that is no object asks for nothing that anybody could answer."""
    if len(values) > MOST:
        blame("TOO_MANY")
    asks: list[Ask] = []
    for number, value in enumerate(values[:MOST], 1):
        if not isinstance(value, dict):
            blame("MALFORMED", "RUN_FINISHED.outcome.interrupts")
            continue
        if not is_fit(value, INTERRUPT):
            for fault in faults(value, INTERRUPT, "interrupt"):
                blame(fault.finding, fault.place)
        asks.append(_read(value, Channel.OUTCOME, f"{run_id}:{number}"))
        if not _is_in_form(value):
            blame("REASON_FORM", asks[-1].interrupt.id)
    return tuple(asks)


def _is_in_form(value: Mapping[str, Json]) -> bool:
    """A reason of the contract before 1.0 has the field that goes with it; another has a namespace, and not `core`."""
    reason = value.get("reason")
    if not isinstance(reason, str) or reason in _REASONS:
        return not isinstance(reason, str) or all(value.get(name) is not None for name in _REASONS[reason])
    namespace, colon, name = reason.partition(":")
    return bool(namespace and colon and name) and namespace != "core"


def read_custom(event: Mapping[str, Json], run_id: str, number: int) -> Ask:
    """A CUSTOM event that asks. Its value may be an object, a list of them, JSON in a string, or anything."""
    raw = event.get("rawEvent")
    raw = raw if isinstance(raw, dict) else {}
    value = _object_in(event.get("value")) or _object_in(raw.get("value")) or {}
    given = {"subagentRunId": event.get("subagentRunId"), **value}
    if event.get("name") == APPROVAL_REQUEST:
        given["reason"] = APPROVAL_REQUEST
    if isinstance(raw.get("id"), str):
        given["id"] = raw["id"]
    return _read(given, Channel.CUSTOM, f"{run_id}:{number}")


def read_pending(value: Mapping[str, Json], run_id: str, number: int) -> Ask:
    """What stood in a field `interrupt` of RUN_FINISHED itself before there were outcomes."""
    given = {**(_object_in(value.get("value")) or {}), **value}
    return _read(given, Channel.CUSTOM, f"{run_id}:{number}")


def _read(value: Mapping[str, Json], channel: Channel, instead: str) -> Ask:
    """One interrupt. `instead`: its id where it has none and names no call."""
    call_id = _call_id(value)
    said = value.get("id")
    name = said if isinstance(said, str) and said else call_id or instead
    expiry = value.get("expiresAt")
    expires_at = times.read_time(expiry)
    ours = _ours(value)
    schema, digest = _schema(value.get("responseSchema"))
    raised_by = value.get("subagentRunId")
    interrupt = Interrupt(
        id=ids.key_of(name),
        kind=_kind(value, call_id),
        channel=channel,
        tool_call_id=call_id,
        raised_by=ids.key_of(raised_by) if isinstance(raised_by, str) and raised_by else None,
        expires_at=expires_at,
        is_expiry_unreadable=expiry is not None and expires_at is None,
        owner=_owner(ours.get("owner")),
        schema=schema,
        schema_digest=digest,
    )
    due = ours.get("due")
    return Ask(interrupt, due if isinstance(due, str) and len(due) <= _LONGEST_DUE else None)


def _kind(value: Mapping[str, Json], call_id: str | None) -> ApprovalKind:
    """By its reason. An unknown one is another system's business, and no fault (the contract before 1.0, reasons)."""
    reason = value.get("reason")
    if isinstance(reason, str) and reason:
        return _KINDS.get(reason, ApprovalKind.EXTERNAL)
    asks_for_call = call_id is not None or "action_requests" in value  # the second is LangChain's
    return ApprovalKind.TOOL_CALL if asks_for_call else ApprovalKind.EXTERNAL


def _call_id(value: Mapping[str, Json]) -> str | None:
    found = [value.get(name) for name in _CALL_IDS]
    found += [inner.get("call_id") for name in _CALL_OBJECTS if isinstance(inner := value.get(name), dict)]
    return next((ids.key_of(each) for each in found if isinstance(each, str) and each), None)


def _owner(value: Json) -> str | None:
    return ids.safe(value) if isinstance(value, str) and is_identifier(value) else None


def _ours(value: Mapping[str, Json]) -> Mapping[str, Json]:
    """`metadata.stopcause`: who answers, and until when."""
    metadata = value.get("metadata")
    ours = metadata.get("stopcause") if isinstance(metadata, dict) else None
    return ours if isinstance(ours, dict) else {}


def _object_in(value: Json) -> dict[str, Json] | None:
    """The object that a value is, holds as the first of a list, or spells out as JSON."""
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT:
        try:
            value = read_json(value.encode("utf-8", "surrogatepass"))
        except ValueError:
            return None
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, dict) else None


# What is wrong with them ---------------------------------------------------------------------------------------------


def findings_about(interrupts: Sequence[Interrupt], seen: frozenset[str] | None) -> Iterator[tuple[str, list[str]]]:
    """What is to be said about the interrupts of a run. `seen`: the calls that somebody saw; None where unknown."""
    counted = Counter(each.id for each in interrupts)
    yield "DUP_INTERRUPT_ID", [name for name, count in counted.items() if count > 1]
    yield "NO_DEADLINE", [each.id for each in interrupts if (each.expires_at, each.due, each.due_in_s) == _NEVER]
    yield "EXPIRY_UNREADABLE", [each.id for each in interrupts if each.is_expiry_unreadable]
    if seen is not None:
        calls = [each.tool_call_id for each in interrupts if each.tool_call_id is not None]
        yield "DANGLING_TOOLCALL", [call for call in calls if call not in seen]


# The schema of an answer ---------------------------------------------------------------------------------------------

_LARGEST_SCHEMA = 65_536  # characters of JSON
_DEEPEST = 64
_FOR_PEOPLE = frozenset({"title", "description", "default", "examples", "$comment"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_VERBATIM = frozenset({"enum", "const", "required", "type", "dependentRequired"})  # values and names, no schemas


def _schema(value: Json) -> tuple[Json, str | None]:
    """A `responseSchema` without what people read in it, and the digest of the whole."""
    if not isinstance(value, dict):
        return None, None
    try:
        whole = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        return None, None
    digest = f"sha256:{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()}"
    try:
        plain = _plain(value, 0)
    except RecursionError:
        return None, digest
    return (plain if len(json.dumps(plain, ensure_ascii=False)) <= _LARGEST_SCHEMA else None), digest


def _plain(schema: Json, depth: int) -> Json:
    """A schema, or a list of them. A property that is called "title" is no title: names stay, and are looked under."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(schema, list):
        return [_plain(each, depth + 1) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _keyword(name, value, depth + 1) for name, value in schema.items() if name not in _FOR_PEOPLE}


def _keyword(name: str, value: Json, depth: int) -> Json:
    if name in _VERBATIM:
        return value
    if name in _NAMED and isinstance(value, dict):
        return {each: _plain(inner, depth + 1) for each, inner in value.items()}
    return _plain(value, depth)
