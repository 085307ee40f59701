"""RunAgentInput -> Input: its ids, answers, tools and calls. Nothing of what people or models wrote is kept.

Keys are read as the specification writes them, and as the Python SDK before 1.0 did (`thread_id`). Null is absent. What
has not the shape that it should have is a finding, and is otherwise passed over.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from stopcause.agui.findings import Finding, found
from stopcause.agui.ids import key_of, name_of, whole, word_or_none
from stopcause.agui.parsing import read_json
from stopcause.agui.values import Entry, Input, Json
from stopcause.agui.words import ANSWERS, RESOLVED

_T = TypeVar("_T")

MOST = 10_000  # answers, tools, messages, calls and results of an input; more are passed over, of messages the oldest
_NO_STATUS = "unreadable"
_RESERVED = "ag-ui"
_OF_LANGGRAPH = re.compile("[0-9a-f]{32}")  # an interrupt's id there
_NO_JSON = "\x00"  # in place of the JSON of what has none; no JSON begins so
_BEFORE_1_0 = {
    "threadId": "thread_id",
    "runId": "run_id",
    "parentRunId": "parent_run_id",
    "protocolVersion": "protocol_version",
    "forwardedProps": "forwarded_props",
    "interruptId": "interrupt_id",
    "toolCalls": "tool_calls",
    "toolCallId": "tool_call_id",
}


def read_input(value: Json) -> Input | None:
    """What is known of an input, or None where it is none: no object, or without `threadId` or `runId`."""
    thread_id, run_id = _text(value, "threadId"), _text(value, "runId")
    if thread_id is None or run_id is None:
        return None
    findings: list[Finding] = []
    messages = _messages(value, findings)
    answered = frozenset(_capped(_results(messages), "results", findings))
    calls = dict(_capped(_calls(messages), "calls", findings))
    return Input(
        thread_id=thread_id,
        run_id=run_id,
        parent_run_id=_text(value, "parentRunId"),
        protocol_version=word_or_none(_get(value, "protocolVersion")),
        resume=_resume(_get(value, "resume"), findings),
        legacy_answers=_legacy_answers(value, findings),
        tools=frozenset(filter(None, map(_own_tool, _capped(_list(value, "tools"), "tools", findings)))),
        calls={call: tool for call, tool in calls.items() if call not in answered},
        answered=answered,
        has_messages=isinstance(_get(value, "messages"), list),
        findings=tuple(findings),
    )


def digest_of(payload: Json, *, is_absent: bool) -> str:
    """32 hex digits of a payload's canonical JSON. One that is absent has another than null, false, "" or 0.

    Canonical is sorted by key, without spaces, and numbers are what they count: 1.0 is 1, and -0 is 0.
    """
    text = "" if is_absent else _canonical(payload)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _canonical(payload: Json) -> str:
    """By way of text, so that one reader of numbers decides, and nesting costs no stack of ours."""
    try:
        plain = json.loads(json.dumps(payload), parse_float=_number)
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):  # a host may give what is no JSON: it cannot be sent either
        return _NO_JSON


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


# Answers -------------------------------------------------------------------------------------------------------------


def _resume(value: Json, findings: list[Finding]) -> tuple[Entry, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        findings.append(found("ENTRY_MALFORMED", "resume"))
        return None
    entries = (_entry(each, f"resume.{at}", findings) for at, each in enumerate(_capped(value, "resume", findings)))
    return tuple(entry for entry in entries if entry is not None)


def _entry(value: Json, place: str, findings: list[Finding]) -> Entry | None:
    """An answer; None where it names nothing."""
    interrupt_id = _id(value, "interruptId")
    if interrupt_id is None:
        findings.append(found("ENTRY_MALFORMED", place))
        return None
    status, metadata = value.get("status"), value.get("metadata", {})
    if not isinstance(status, str) or status not in ANSWERS or not isinstance(metadata, dict):
        findings.append(found("ENTRY_MALFORMED", interrupt_id))
    if isinstance(metadata, dict) and _RESERVED in metadata:
        findings.append(found("RESERVED_KEY", interrupt_id))
    return read_answer(interrupt_id, word_or_none(status) or _NO_STATUS, value)


def read_answer(interrupt_id: str, status: str, holder: Mapping[str, Json]) -> Entry:
    """What is known of an answer; `holder` has its payload, or none."""
    payload, has_payload = holder.get("payload"), "payload" in holder
    fields = payload if isinstance(payload, dict) else {}
    return Entry(
        id=interrupt_id,
        status=status,
        digest=digest_of(payload, is_absent=not has_payload),
        has_payload=has_payload,
        approved=_flag(fields.get("approved", fields.get("accepted"))),  # the second is what one integration asks for
        bare=_flag(payload),
        is_edited=fields.get("editedArgs") is not None,
    )


def _legacy_answers(value: Json, findings: list[Finding]) -> tuple[Entry, ...]:
    answers = _capped(legacy_payloads(value).items(), "resume", findings)
    return tuple(read_answer(name, RESOLVED, {"payload": payload}) for name, payload in answers)


def legacy_payloads(value: Json) -> Mapping[str, Json]:
    """The answers themselves of the channel before `resume`: any JSON, or a text of it. One for everything has no id.

    LangGraph takes an object whose keys are all ids of its own as one answer for each.
    """
    answer = _get(_get(_get(value, "forwardedProps"), "command"), "resume")
    if isinstance(answer, str):
        with contextlib.suppress(ValueError):  # a text that is no JSON is the answer itself
            answer = read_json(answer.encode("utf-8", "backslashreplace"))
    if answer is None:
        return {}
    return answer if _is_map(answer) else {"": answer}


def _is_map(answer: Json) -> bool:
    """A host's own object may have keys that are no text."""
    names = answer if isinstance(answer, dict) else ()
    return bool(names) and all(isinstance(name, str) and _OF_LANGGRAPH.fullmatch(name) for name in names)


# Tools, calls and results --------------------------------------------------------------------------------------------


def _messages(value: Json, findings: list[Finding]) -> list[Json]:
    """The last ones, in their order."""
    return _capped(reversed(_list(value, "messages")), "messages", findings)[::-1]


def _calls(messages: list[Json]) -> Iterator[tuple[str, str | None]]:
    for message in messages:
        for call in _list(message, "toolCalls"):
            if (call_id := _id(call, "id")) is not None:
                yield call_id, _tool(_get(call, "function"))


def _results(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        call_id = _id(message, "toolCallId")
        if call_id is not None and _get(message, "role") == "tool":
            yield call_id


def _own_tool(value: Json) -> str | None:
    """As it is called: it is only held against calls."""
    return _id(value, "name")


def _tool(value: Json) -> str | None:
    return name_of(_text(value, "name"))


# Values of any shape -------------------------------------------------------------------------------------------------


def _get(value: Json, name: str) -> Json:
    """A field of what may be an object; None where it is absent or null, or there is no object."""
    if not isinstance(value, dict):
        return None
    found_there = value.get(name)
    return value.get(_BEFORE_1_0.get(name, name)) if found_there is None else found_there


def _text(value: Json, name: str) -> str | None:
    text = _get(value, name)
    return whole(text) if isinstance(text, str) and text else None


def _id(value: Json, name: str) -> str | None:
    """As streams have it kept, where it is held against theirs."""
    text = _text(value, name)
    return None if text is None else key_of(text)


def _list(value: Json, name: str) -> list[Json]:
    items = _get(value, name)
    return items if isinstance(items, list) else []


def _flag(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _capped(items: Iterable[_T], name: str, findings: list[Finding]) -> list[_T]:
    """As many as are kept; that there are more is found."""
    kept = list(islice(items, MOST + 1))
    if len(kept) > MOST:
        findings.append(found("INPUT_TOO_LARGE", name))
    return kept[:MOST]
