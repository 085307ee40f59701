"""Agents for the laws of the audit: one that does what `producer.receive` tells it, and two that do not.

Each is a thread's agent from its first run on. It keeps what it asked, and answers an input by events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

from hypothesis import strategies as st

from stopcause.agui.producer import Received, Refusal, receive
from stopcause.agui.words import Mode
from tests.agui.asking import APPROVE

Json = dict[str, Any]
NEVER, SOON = None, "2026-11-30T12:02:30Z"  # between the third and the fourth input


class Turn(NamedTuple):
    """What one input says, and what the agent asks beside it: how many things, and what kind of thing."""

    answers: list[Json]
    asks: list[Json]
    shows_calls: bool  # whether the messages have the gated calls


_IDS = st.sampled_from([f"i-{number}" for number in range(1, 6)] + ["nope"])
_PAYLOADS: st.SearchStrategy[Any] = st.sampled_from(
    [{"approved": True}, {"approved": False}, {"approved": None}, True, False, None, 0, "", {"editedArgs": {}}]
)
_ENTRIES = st.fixed_dictionaries(
    {"interruptId": _IDS, "status": st.sampled_from(["resolved", "resolved", "cancelled", "done"])},
    optional={"payload": _PAYLOADS},
)
_ASKS = st.fixed_dictionaries(
    {"reason": st.sampled_from(["tool_call", "confirmation", "input_required"])},
    optional={"responseSchema": st.just(APPROVE), "expiresAt": st.just(SOON)},
)
TURNS = st.lists(
    st.builds(Turn, st.lists(_ENTRIES, max_size=4), st.lists(_ASKS, max_size=2), st.booleans()), max_size=8
)


class Agent:
    """It does what it is told: nothing without a yes, and it asks again for all that stays open."""

    def __init__(self, mode: Mode, on_uncovered: Literal["ask_again", "refuse"] = "ask_again") -> None:
        self.mode = mode
        self.on_uncovered = on_uncovered
        self.open: dict[str, Json] = {}
        self.taken: dict[str, str] = {}
        self._asked = 0

    def run(self, given: Json, asks: Iterable[Json], now: datetime) -> list[Json]:
        """The events that answer an input."""
        return [self._event(each, given, now) for each in self._events(given, asks, now)]

    def _events(self, given: Json, asks: Iterable[Json], now: datetime) -> Iterator[Json]:
        yield {"type": "RUN_STARTED"}
        received = receive(
            self.open.values(), given, mode=self.mode, now=now, taken=self.taken, on_uncovered=self.on_uncovered
        )
        refusal = self._refusal(received)
        yield from [*self._act(received), *self._finish(asks)] if refusal is None else [refusal.event()]

    def _refusal(self, received: Received) -> Refusal | None:
        return received.error

    def _act(self, received: Received) -> Iterator[Json]:
        for answer in received.answers.values():
            if received.may_act(answer.id) and answer.id in self.open:
                yield result_of(self.open[answer.id])
            self.open.pop(answer.id, None)
            self.taken[answer.id] = answer.key

    def _finish(self, asks: Iterable[Json]) -> Iterator[Json]:
        """New questions beside those that are open; a success where there are none."""
        for each in asks:
            self._asked += 1
            name, call = f"i-{self._asked}", f"tc-{self._asked}"
            self.open[name] = {"id": name, "toolCallId": call, **each}
            yield {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "send"}
            yield {"type": "TOOL_CALL_END", "toolCallId": call}
        asked = [*self.open.values()]
        outcome = {"type": "interrupt", "interrupts": asked} if asked else {"type": "success"}
        yield {"type": "RUN_FINISHED", "outcome": outcome}

    def _event(self, event: Json, given: Json, now: datetime) -> Json:
        ids = {"threadId": given["threadId"], "runId": given["runId"]} if event["type"].startswith("RUN_") else {}
        says = self.mode is Mode.SPEC and event["type"] == "RUN_STARTED"
        version = {"protocolVersion": "1.0"} if says else {}
        return {**event, **ids, **version, "timestamp": int(now.timestamp() * 1000)}


class Hasty(Agent):
    """It takes any input for leave to do all that it had asked for."""

    def _refusal(self, _received: Received) -> None:
        return None

    def _act(self, _received: Received) -> Iterator[Json]:
        yield from map(result_of, self.open.values())
        self.open.clear()


class Forgetful(Hasty):
    """It drops what has no answer, and what has one."""

    def _act(self, _received: Received) -> Iterator[Json]:
        self.open.clear()
        return iter(())


class Stubborn(Agent):
    """It takes no answer at all."""

    def _refusal(self, received: Received) -> Refusal | None:
        return Refusal("INVALID_PAYLOAD") if received.answers else received.error


def result_of(asked: Json) -> Json:
    """That its call came back."""
    call = asked["toolCallId"]
    return {"type": "TOOL_CALL_RESULT", "messageId": f"m-{call}", "toolCallId": call, "content": "ok"}


MAKERS: tuple[Callable[[Mode], Agent], ...] = (Agent, lambda mode: Agent(mode, "refuse"))
