"""A client that does what the protocol asks: messages and state accumulate. It writes down what it sends and sees."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx

from stopcause.agui.tap_asgi import App
from stopcause.pipeline import agui
from tests.agui.tapped import input_of, served
from tests.frameworks.ag_ui_langgraph.service import MARK

Json = Any
GIVES_UP = object()  # in place of an answer
YES: Json = {"approved": True, "note": MARK}
NO: Json = {"approved": False, "note": MARK}


class Client:
    """One thread with an agent.

    Attributes:
        exchanges: Its recording, as `agui audit` reads one.
        asked: The ids of what the last run that asked asks.
    """

    def __init__(self, url: str, transport: httpx.BaseTransport) -> None:
        self._http = httpx.Client(base_url=url, transport=transport, timeout=30)
        self._given: dict[str, Json] = {"messages": [{"id": "u-1", "role": "user", "content": f"{MARK} in a prompt"}]}
        self.exchanges: list[dict[str, Json]] = []
        self.asked: list[str] = []

    def send(self, run_id: str, **more: Json) -> list[dict[str, Json]]:
        """One run; its events, as far as they came."""
        given = input_of(run_id, **{**self._given, **more})
        sent_at = datetime.now(UTC).isoformat()
        status, events = self._ask(given)
        self.exchanges.append({"input": given, "events": events, "sent_at": sent_at, "http_status": status})
        for event in events:
            self._given["messages"] = event.get("messages", self._given["messages"])
            self._given["state"] = event.get("snapshot", self._given.get("state", {}))
        self.asked = asked_in(events) or self.asked
        return events

    def answer(self, run_id: str, *answers: Json) -> list[dict[str, Json]]:
        """One run that answers what was asked, in order."""
        return self.send(run_id, resume=[_entry(*pair) for pair in zip(self.asked, answers, strict=False)])

    def answer_as_before(self, run_id: str, *answers: Json) -> list[dict[str, Json]]:
        """The same by the channel from before there was `resume`: one as it is, several by their ids."""
        by_id = dict(zip(self.asked, answers, strict=False))
        return self.send(run_id, forwardedProps={"command": {"resume": by_id if len(answers) > 1 else answers[0]}})

    def moved_to(self, other: Client) -> Client:
        """The client that goes on there, with all that has accumulated."""
        other._given, other.exchanges, other.asked = self._given, self.exchanges, self.asked
        return other

    def audited(self) -> agui.Audit:
        """What the audit says of its recording."""
        recording = io.BytesIO(json.dumps(self.exchanges).encode())
        return agui.audit_stream(recording, "recording", None, datetime.now(UTC))

    def close(self) -> None:
        """Lets go of the connection."""
        self._http.close()

    def _ask(self, given: Json) -> tuple[int, list[Json]]:
        events: list[Json] = []
        with self._http.stream("POST", "/", json=given) as reply:
            with contextlib.suppress(httpx.RemoteProtocolError):  # older adapters break off when their graph fails
                lines = (line for line in reply.iter_lines() if line.startswith("data: "))
                events.extend(json.loads(line.removeprefix("data: ")) for line in lines)
            return reply.status_code, events


def asked_in(events: list[Mapping[str, Json]]) -> list[str]:
    """What a run asks, by its outcome, else by the events from before there were outcomes."""
    outcome = (events[-1].get("outcome") if events else None) or {}
    told = [each["id"] for each in outcome.get("interrupts", ())]
    raw = [each.get("rawEvent", {}) for each in events if each.get("name") == "on_interrupt"]
    return told or [each["id"] for each in raw if "id" in each]


def _entry(interrupt_id: str, answer: Json) -> dict[str, Json]:
    if answer is GIVES_UP:
        return {"interruptId": interrupt_id, "status": "cancelled"}
    return {"interruptId": interrupt_id, "status": "resolved", "payload": answer}


@contextlib.contextmanager
def serving(app: App, transport: httpx.BaseTransport | None = None) -> Iterator[Client]:
    """The agent's server, and a client of it."""
    with served(app) as url:
        client = Client(url, transport or httpx.HTTPTransport())
        try:
            yield client
        finally:
            client.close()
