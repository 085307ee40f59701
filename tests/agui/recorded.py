"""For tests of integrations: a client that does what the protocol asks, and writes down what it sends and sees.

What it wrote down is audited as `agui audit` does it. Not here: what an integration's agent is, and what is expected.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx

from stopcause.agui.tap_asgi import App
from stopcause.pipeline import agui
from tests.agui.tapped import input_of, served

Json = Any
GIVES_UP = object()  # in place of an answer
_RESTATED = frozenset({"RAW", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"})
_OF_THE_MOMENT = frozenset({"timestamp", "rawEvent", "raw_event"})
_IDS = frozenset({"id", "threadId", "runId", "messageId", "parentMessageId", "toolCallId", "entityId"})


class Client:
    """One thread with an agent.

    Attributes:
        exchanges: Its recording, as `agui audit` reads one.
        asked: The ids of what the last run that asked asks.
    """

    def __init__(self, url: str, prompt: str, transport: httpx.BaseTransport | None = None, **always: Json) -> None:
        self._http = httpx.Client(base_url=url, transport=transport or httpx.HTTPTransport(), timeout=30)
        self._always = always  # in each of its inputs
        self._talk = Conversation([{"id": "u-1", "role": "user", "content": prompt}])
        self.exchanges: list[dict[str, Json]] = []
        self.asked: list[str] = []

    @property
    def messages(self) -> list[dict[str, Json]]:
        """As they have accumulated."""
        return self._talk.messages

    def send(self, run_id: str, **more: Json) -> list[dict[str, Json]]:
        """One run; its events, as far as they came."""
        given = input_of(run_id, **{"messages": self._talk.messages, "state": self._talk.state, **self._always, **more})
        sent_at = datetime.now(UTC).isoformat()
        status, events = self._ask(given)
        self.exchanges.append(
            json.loads(json.dumps({"input": given, "events": events, "sent_at": sent_at, "http_status": status}))
        )
        self._talk.hear(events)
        self.asked = asked_in(events) or self.asked
        return events

    def answer(self, run_id: str, *answers: Json, **more: Json) -> list[dict[str, Json]]:
        """One run that answers what was asked, in order."""
        return self.send(run_id, resume=[entry(*pair) for pair in zip(self.asked, answers, strict=False)], **more)

    def answer_as_before(self, run_id: str, *answers: Json) -> list[dict[str, Json]]:
        """The same by the channel from before there was `resume`: one as it is, several by their ids."""
        by_id = dict(zip(self.asked, answers, strict=False))
        return self.send(run_id, forwardedProps={"command": {"resume": by_id if len(answers) > 1 else answers[0]}})

    def moved_to(self, other: Client) -> Client:
        """The client that goes on there, with all that has accumulated."""
        other._talk, other.exchanges, other.asked = self._talk, self.exchanges, self.asked
        return other

    def audited(self) -> agui.Audit:
        """What the audit says of its recording."""
        recording = io.BytesIO(json.dumps(self.exchanges).encode())
        return agui.audit_stream(recording, "recording", None, datetime.now(UTC))

    def close(self) -> None:
        """Lets go of the connection."""
        self._http.close()

    def _ask(self, given: Json) -> tuple[int, list[dict[str, Json]]]:
        events: list[dict[str, Json]] = []
        with self._http.stream("POST", "/", json=given, headers={"accept": "text/event-stream"}) as reply:
            with contextlib.suppress(httpx.RemoteProtocolError):  # some break off where they fail
                lines = (line for line in reply.iter_lines() if line.startswith("data: "))
                events.extend(json.loads(line.removeprefix("data: ")) for line in lines)
            return reply.status_code, events


class Conversation:
    """Messages and state as they accumulate: a snapshot says all of it anew."""

    def __init__(self, messages: list[dict[str, Json]]) -> None:
        self.messages = messages
        self.state: Json = {}

    def hear(self, events: Iterable[Mapping[str, Json]]) -> None:
        """Takes in a run's events."""
        for event in events:
            kind = event["type"]
            if kind == "MESSAGES_SNAPSHOT":
                self.messages = list(event["messages"])
            elif kind == "STATE_SNAPSHOT":
                self.state = event["snapshot"]
            elif kind == "TOOL_CALL_START":
                self._called(event)
            elif kind == "TOOL_CALL_ARGS":
                self._call(event["toolCallId"])["function"]["arguments"] += event["delta"]
            elif kind == "TEXT_MESSAGE_CONTENT":
                message = self._message(event["messageId"])
                message["content"] = (message.get("content") or "") + event["delta"]
            elif kind == "TOOL_CALL_RESULT":
                told = {"id": event["messageId"], "toolCallId": event["toolCallId"], "content": event["content"]}
                self.messages.append({"role": "tool", **told})

    def _message(self, message_id: str) -> dict[str, Json]:
        known = next((each for each in self.messages if each["id"] == message_id), None)
        if known is None:
            self.messages.append(known := {"id": message_id, "role": "assistant"})
        return known

    def _called(self, event: Mapping[str, Json]) -> None:
        if self._call(event["toolCallId"])["id"] == event["toolCallId"]:
            return  # begun anew
        call = {"id": event["toolCallId"], "type": "function"}
        call["function"] = {"name": event["toolCallName"], "arguments": ""}
        message = self._message(event.get("parentMessageId") or event["toolCallId"])
        message.setdefault("toolCalls", []).append(call)

    def _call(self, call_id: str) -> dict[str, Json]:
        calls = (call for message in self.messages for call in message.get("toolCalls") or ())
        nobody_s = {"id": None, "function": {"arguments": ""}}
        return next((call for call in calls if call["id"] == call_id), nobody_s)


def asked_in(events: Sequence[Mapping[str, Json]]) -> list[str]:
    """What a run asks, by its outcome, else by the events from before there were outcomes."""
    outcome = (events[-1].get("outcome") if events else None) or {}
    told = [each["id"] for each in outcome.get("interrupts", ())]
    raw = [each.get("rawEvent", {}) for each in events if each.get("name") == "on_interrupt"]
    return told or [each["id"] for each in raw if "id" in each]


def entry(interrupt_id: str, answer: Json) -> dict[str, Json]:
    """An answer, as `resume` has them."""
    if answer is GIVES_UP:
        return {"interruptId": interrupt_id, "status": "cancelled"}
    return {"interruptId": interrupt_id, "status": "resolved", "payload": answer}


@contextlib.contextmanager
def talking(app: App, prompt: str, transport: httpx.BaseTransport | None = None, **always: Json) -> Iterator[Client]:
    """An agent's server, and a client of it that asks for something."""
    with served(app) as url:
        client = Client(url, prompt, transport, **always)
        try:
            yield client
        finally:
            client.close()


def verdicts(audit: agui.Audit) -> dict[str, tuple[str | None, str]]:
    """On each run."""
    return {each.run.run_id: (each.verdict.verdict, each.verdict.reason) for each in audit.runs if each.verdict}


def plain(events: Iterable[Mapping[str, Json]]) -> list[Json]:
    """A stream to be compared: ids by the order in which they come, without times, and without what restates."""
    numbers: dict[str, int] = {}

    def of(name: str, value: Json) -> Json:
        if isinstance(value, dict):
            return {key: of(key, each) for key, each in value.items() if key not in _OF_THE_MOMENT}
        if isinstance(value, list):
            return [of(name, each) for each in value]
        return numbers.setdefault(value, len(numbers)) if name in _IDS and isinstance(value, str) else value

    return [of("", dict(each)) for each in events if each["type"] not in _RESTATED]
