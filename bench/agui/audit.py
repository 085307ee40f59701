"""Auditing AG-UI files: bytes to verdicts and findings, beside `json.loads` of the same lines.

    chat        runs of 100 events, in 50 threads: what is read, told, judged and held against the rules
    one thread  1,000 runs of one thread, each asked and answered in turn: the history that the rules look back at
    left open   the same, and nobody ever answers

Run by `python -m bench.agui.audit`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from bench.agui.streams import prose
from bench.run import Figure, best
from stopcause.pipeline import agui

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
CHATS = 300
RUNS = 1_000  # of the one thread

Exchange = dict[str, Any]


def chats(number: int) -> Iterator[Exchange]:
    """Runs that answer, as files of them are."""
    for run in range(number):
        events = list(prose(run))
        ids = {name: events[0][name] for name in ("threadId", "runId")}
        yield {"input": {**ids, "protocolVersion": "1.0", "messages": []}, "events": events}


def one_thread(number: int, *, answered: bool) -> Iterator[Exchange]:
    """A thread whose every run asks whether a call may be made; each but the first answers the one before."""
    for run in range(number):
        ids = {"threadId": "t1", "runId": f"run-{run}"}
        given: dict[str, Any] = {**ids, "protocolVersion": "1.0", "messages": []}
        events: list[dict[str, Any]] = [{"type": "RUN_STARTED", **ids, "protocolVersion": "1.0"}]
        if run and answered:
            answer = {"interruptId": f"int-{run - 1}", "status": "resolved", "payload": {"approved": True}}
            given["resume"] = [answer]
            came = {"messageId": f"m-{run}", "toolCallId": f"call-{run - 1}", "content": "done"}
            events.append({"type": "TOOL_CALL_RESULT", **came})
        events += asks(run)
        yield {"input": given, "events": [*events, finished(run, ids)]}


def asks(run: int) -> list[dict[str, Any]]:
    """A call that is proposed."""
    call = {"toolCallId": f"call-{run}"}
    return [
        {"type": "TOOL_CALL_START", **call, "toolCallName": "pay"},
        {"type": "TOOL_CALL_ARGS", **call, "delta": '{"amount": 1}'},
        {"type": "TOOL_CALL_END", **call},
    ]


def finished(run: int, ids: dict[str, str]) -> dict[str, Any]:
    """The question whether it may be made."""
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
    asked = {"id": f"int-{run}", "reason": "tool_call", "toolCallId": f"call-{run}", "responseSchema": schema}
    return {"type": "RUN_FINISHED", **ids, "outcome": {"type": "interrupt", "interrupts": [asked]}}


def figures(what: str, exchanges: list[Exchange]) -> Iterator[Figure]:
    """A file, audited and only parsed: by event, and as a whole."""
    lines = [json.dumps(each, separators=(",", ":")).encode() for each in exchanges]
    file = b"\n".join(lines)
    works: tuple[Callable[[], object], ...] = (
        lambda: agui.audit_stream(io.BytesIO(file), what, None, NOW),
        lambda: [json.loads(line) for line in lines],
    )
    events = sum(len(each["events"]) for each in exchanges)
    audited, floor = best(works, events)
    yield Figure(what, "event", audited, "json.loads", floor)
    if what != "chat":
        yield Figure(what, "thread", audited * events, "json.loads", floor * events)


def main() -> None:
    """Prints the table."""
    for figure in figures("chat", list(chats(CHATS))):
        print(figure)
    for figure in figures("one thread", list(one_thread(RUNS, answered=True))):
        print(figure)
    for figure in figures("left open", list(one_thread(RUNS, answered=False))):
        print(figure)


if __name__ == "__main__":
    main()
