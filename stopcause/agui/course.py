"""What one run did so far: counts, calls, results, questions, progress, and what was wrong. No content of any event.

`Course.take` is the hot path: a look at the event's fields, and a handler where its type has one. How a course ends is
in `closing`, what its stream allows at all in `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from stopcause.agui import interrupts, items, shapes
from stopcause.agui.chunks import FORMS, Chunks
from stopcause.agui.findings import MOST_IDS
from stopcause.agui.ids import key_of, name_of
from stopcause.agui.items import ACTIVITY, CALL, MESSAGE, MOST, REASONING, SPAN, Items
from stopcause.agui.modes import Declared, mode_of
from stopcause.agui.shapes import EVENTS, SUSPENDED, Shape, faults, is_fit, shortened
from stopcause.agui.times import read_timestamp
from stopcause.agui.values import NOTHING, Input, Interrupt, Json, Result, Usage
from stopcause.agui.words import Ending, Mode
from stopcause.receipts.vocabulary import StopCause

Event = Mapping[str, Json]
UNRECOGNISED = "unrecognised"
_NUMBERS = frozenset({int, float})
# What cannot be said once an event that opened or closed something was not seen.
_NEEDS_SIGHT = frozenset(
    {"UNBALANCED", "OPEN_AT_FINISH", "STEP_UNBALANCED", "SUBAGENT_LIFECYCLE", "ATTRIBUTION_MISMATCH"}
    | {"PENDING_LIST_MISMATCH", "PENDING_LIST_ABSENT", "SUSPENDED_UNKNOWN_INTERRUPT"}
)
_MOST_REPEATS = 16  # of one result
_OWNED_BY = {"reasoning": REASONING, "activity": ACTIVITY}  # messages of a snapshot, by role


class Moment(NamedTuple):
    """When an event was: as a clock saw it come, else as it says itself. Read only where somebody asks."""

    at: datetime | None = None
    stamp: Json = None

    @property
    def time(self) -> datetime | None:
        """The time in UTC."""
        return self.at if self.at is not None else read_timestamp(self.stamp)


class End(NamedTuple):
    """How the stream says that the run ended."""

    ending: Ending
    cause: StopCause
    at: datetime | None = None
    reason: str | None = None
    error_code: str | None = None
    interrupts: tuple[Interrupt, ...] = ()
    receipt: Mapping[str, Any] = NOTHING
    usage: Usage = Usage()
    is_late: bool = False
    idle_s: float | None = None


Handler = Callable[["Course", Event], None]


def _opens(family: items.Family) -> Handler:
    return lambda it, event: it.items.open(family, event[family.field], event.get("subagentRunId"))


def _goes_on(family: items.Family) -> Handler:
    return lambda it, event: it.items.goes_on(family, event[family.field], event.get("subagentRunId"))


def _closes(family: items.Family) -> Handler:
    return lambda it, event: it.items.close(family, event[family.field], event.get("subagentRunId"))


class Course:
    """One run of a stream, from its first event on.

    Attributes:
        given: The input that asked for it, where that is known.
        chosen: The contract that it is read by, in place of the one that it shows.
        tools: Names of the client's own tools.
        is_begun: Its RUN_STARTED, or a RUN_ERROR in its place, was seen.
        is_due: There is something about it that was not told yet.
        is_told: It was told before.
        calls: Tool calls that began in it: id -> tool, or None where it has no fit name.
        named: The same for those that a snapshot holds: history, mostly.
        frontend: Those of `calls` that are of the client's own tools, with the tool as it was called.
        asks: What CUSTOM events ask for, each once.
        suspended: What subagents say that they wait for: interrupts, by the invocation.
    """

    def __init__(
        self, thread_id: str, run_id: str, given: Input | None, tools: frozenset[str], chosen: Mode | None = None
    ) -> None:
        self.thread_id, self.run_id, self.given, self.tools = thread_id, run_id, given, tools
        self.chosen = chosen
        self.declared = Declared()
        self.has_outcome = False
        self.is_begun = False
        self.is_due = False
        self.is_told = False
        self.end: End | None = None
        self.began = Moment()
        self._last_at: datetime | None = None
        self._last_stamp: Json = None
        self.progress = Moment()
        self.made_progress = False
        self.has_output = False
        self.found: dict[str, dict[str, None]] = {}
        self.counts: dict[str, int] = {}
        self.calls: dict[str, str | None] = {}
        self.named: dict[str, str | None] = {}
        self.frontend: dict[str, str] = {}
        self.results: dict[str, list[Result]] = {}
        self.asks: dict[str, interrupts.Ask] = {}
        self.suspended: dict[str, tuple[str, ...]] = {}
        self.items = Items(self.blame)
        self.chunks = Chunks(self.blame)
        self._is_blind = False

    def blame(self, name: str, *ids: str) -> None:
        """Something was found. Each finding once, with the ids that it is about."""
        if name == "TOO_MANY":
            self.blind()
        if self._is_blind and name in _NEEDS_SIGHT:
            return
        known = self.found.setdefault(name, {})
        for each in ids:
            if len(known) < MOST_IDS:
                known[key_of(each)] = None

    def blind(self) -> None:
        """From here on nobody knows what is open: an event that may have opened or closed something was not seen."""
        self._is_blind = True

    def saw(self, kind: str, event: Event, at: datetime | None) -> None:
        """Counts an event."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        stamp = event.get("timestamp")
        if at is not None or type(stamp) in _NUMBERS:
            self._last_at, self._last_stamp = at, stamp

    def is_sound(self, event: Event, shape: Shape, place: str) -> bool:
        """Whether an event can be taken at its word. A null where nothing had to be is read as nothing."""
        if is_fit(event, shape):
            return True
        wrong = list(faults(event, shape, place))
        for fault in wrong:
            self.blame(fault.finding, fault.place)
        return all(fault.is_null for fault in wrong)

    def take(self, kind: str, event: Event) -> None:
        """One event inside the run."""
        shape = EVENTS[kind]
        if not self.is_sound(event, shape, kind):
            return
        event = shortened(event, shape)
        if self.chunks.lanes:
            self.make(self.chunks.before(kind, event))
        handler = self._HANDLERS.get(kind)
        if handler is not None:
            handler(self, event)

    def make(self, events: list[dict[str, Any]]) -> None:
        """Events that chunks stand for."""
        for event in events:
            self._HANDLERS[event["type"]](self, event)

    def close_all(self) -> None:
        """What RUN_FINISHED closes, and what it has to find closed."""
        self.make(self.chunks.finish())
        self.items.finish()

    @property
    def mode(self) -> Mode:
        """The contract that it is read by, as far as it shows."""
        return self.chosen or mode_of(self.declared, has_outcome=self.has_outcome, has_custom=bool(self.asks))

    @property
    def last(self) -> Moment:
        """When the last event was of which that is known."""
        return Moment(self._last_at, self._last_stamp)

    def _progresses(self, _event: Event | None = None) -> None:
        self.made_progress, self.progress = True, self.last

    # Messages and reasoning ----------------------------------------------------------------------------------------

    def _text(self, event: Event) -> None:
        self.items.goes_on(MESSAGE, event["messageId"], event.get("subagentRunId"))
        if event["delta"]:
            self.has_output = True

    def _reasoning_starts(self, event: Event) -> None:
        if self.mode is Mode.SPEC and event.get("role") != "reasoning":
            self.blame("MALFORMED", "REASONING_MESSAGE_START.role")
        self.items.open(REASONING, event["messageId"], event.get("subagentRunId"))

    def _encrypted(self, event: Event) -> None:
        families = (CALL,) if event["subtype"] == "tool-call" else (MESSAGE, REASONING)
        self.items.agree(event["entityId"], event.get("subagentRunId"), *families)

    def _chunk(self, event: Event) -> None:
        self.make(self.chunks.take(event["type"], event))
        if event["type"] == "TEXT_MESSAGE_CHUNK" and event.get("delta"):
            self.has_output = True

    # Calls ---------------------------------------------------------------------------------------------------------

    def _call_starts(self, event: Event) -> None:
        name, call = event["toolCallName"], event["toolCallId"]
        self.items.open(CALL, call, event.get("subagentRunId"), event.get("parentMessageId"))
        if call in self.calls or not self._has_room(self.calls):
            return
        self.calls[call] = name_of(name)
        if name in self.tools:
            self.frontend[call] = name

    def _result(self, event: Event) -> None:
        self._progresses()
        call, message = event["toolCallId"], event["messageId"]
        self.items.belongs(MESSAGE, message, event.get("subagentRunId"))
        if call in self.results or self._has_room(self.results):
            told = [each for each in self.results.get(call, ()) if each.is_event and each.message_id != message]
            self.results[call] = [*told[:_MOST_REPEATS], Result(call, message)]

    def _result_in_snapshot(self, message: Event) -> None:
        """A tool message counts where nothing else says that its call came back: snapshots repeat what there is."""
        said = message.get("toolCallId") if message["role"] == "tool" else None
        if not isinstance(said, str) or (self.given is not None and said in self.given.answered):
            return
        call = key_of(said)
        if call not in self.results and self._has_room(self.results):
            self.results[call] = [Result(call, message["id"], is_event=False)]
            self._progresses()

    # Snapshots -----------------------------------------------------------------------------------------------------

    def _messages(self, event: Event) -> None:
        for message in event["messages"]:
            if isinstance(message, dict):
                if self._is_sound_message(message):
                    self._restate(shortened(message, shapes.MESSAGE), is_final=True)
                    self._result_in_snapshot(shortened(message, shapes.MESSAGE))
            else:
                self.blame("MALFORMED", "MESSAGES_SNAPSHOT.messages")
        last = event["messages"][-1] if event["messages"] else None
        if isinstance(last, dict) and last.get("role") == "assistant" and last.get("content"):
            self.has_output = True

    def _is_sound_message(self, message: Event) -> bool:
        """By its role; of one that nobody knows only what every message has is asked."""
        role = message.get("role")
        shape = shapes.MESSAGES.get(role, shapes.MESSAGE) if isinstance(role, str) else shapes.MESSAGE
        if not self.is_sound(message, shape, "message"):
            return False
        calls = message.get("toolCalls") if role == "assistant" else None
        return all(self._is_sound_call(each) for each in calls or ())

    def _is_sound_call(self, call: Event) -> bool:
        fits = self.is_sound(call, shapes.CALL, "toolCall")
        return fits and self.is_sound(call["function"], shapes.FUNCTION, "toolCall.function")

    def restate_all(self, echo: Json) -> None:
        """The input as RUN_STARTED echoes it: history, which says whose a message is where nothing else does."""
        messages = echo.get("messages") if isinstance(echo, dict) else None
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict) and is_fit(message, shapes.MESSAGE):
                self._restate(shortened(message, shapes.MESSAGE), is_final=False)

    def _restate(self, message: Event, *, is_final: bool) -> None:
        """A message that is there as a whole. Whose it is, and so its calls, it says itself."""
        owner = message.get("subagentRunId")
        self.items.belongs(_OWNED_BY.get(message["role"], MESSAGE), message["id"], owner, is_final=is_final)
        calls = message.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                name = key_of(call["id"])
                self.items.belongs(CALL, name, owner, is_final=is_final)
                self._name(name, call.get("function"))

    def _name(self, call: str, function: Json) -> None:
        name = function.get("name") if isinstance(function, dict) else None
        if call in self.named or self._has_room(self.named):
            self.named[call] = name_of(name) if isinstance(name, str) else None

    def _activity(self, event: Event) -> None:
        keeps = event.get("replace") is False  # then the activity that is there stays, and whose it was
        self.has_output = True
        self._progresses()
        self.items.belongs(ACTIVITY, event["messageId"], event.get("subagentRunId"), is_final=not keeps)

    def _activity_changes(self, event: Event) -> None:
        self._progresses()
        self.items.agree(event["messageId"], event.get("subagentRunId"), ACTIVITY)

    # Subagents, and questions before there were outcomes -----------------------------------------------------------

    def _subagent_ends(self, event: Event) -> None:
        name, outcome = event["subagentRunId"], event.get("outcome")
        waits = isinstance(outcome, dict) and outcome.get("type") == "suspended"
        self.items.subagent_ends(name, "suspended" if waits else "finished")
        if isinstance(outcome, dict):
            self._subagent_says(name, outcome, waits=waits)

    def _subagent_says(self, name: str, outcome: Event, *, waits: bool) -> None:
        sound = self.is_sound(outcome, SUSPENDED, "SUBAGENT_FINISHED.outcome")
        asked = (outcome.get("interruptIds") if sound else None) or ()
        if asked and not waits:
            self.blame("OUTCOME_CONTRADICTION", name)
        if waits and len(self.suspended) < interrupts.MOST:
            room = interrupts.MOST - sum(map(len, self.suspended.values()))
            self.suspended[name] = tuple(map(key_of, asked[:room]))

    def _custom(self, event: Event) -> None:
        if event["name"] in interrupts.ASKING:
            self.ask(interrupts.read_custom(event, self.run_id, len(self.asks) + 1))

    def ask(self, asked: interrupts.Ask) -> None:
        """A question outside of an outcome. The same one may come several times: as an event, and beside the end."""
        if len(self.asks) >= interrupts.MOST:
            self.blame("TOO_MANY")
        else:
            self.asks.setdefault(asked.interrupt.id, asked)

    def _has_room(self, kept: Mapping[str, object]) -> bool:
        if len(kept) < MOST:
            return True
        self.blame("TOO_MANY")
        return False

    # By type. An event whose type is not here is only counted.
    _HANDLERS: ClassVar[Mapping[str, Handler]] = {
        "TEXT_MESSAGE_START": _opens(MESSAGE),
        "TEXT_MESSAGE_CONTENT": _text,
        "TEXT_MESSAGE_END": _closes(MESSAGE),
        "TOOL_CALL_START": _call_starts,
        "TOOL_CALL_ARGS": _goes_on(CALL),
        "TOOL_CALL_END": _closes(CALL),
        "TOOL_CALL_RESULT": _result,
        "REASONING_START": _opens(SPAN),
        "REASONING_END": _closes(SPAN),
        "REASONING_MESSAGE_START": _reasoning_starts,
        "REASONING_MESSAGE_CONTENT": _goes_on(REASONING),
        "REASONING_MESSAGE_END": _closes(REASONING),
        "REASONING_ENCRYPTED_VALUE": _encrypted,
        "STEP_STARTED": lambda it, event: it.items.step_starts(event["stepName"], event.get("subagentRunId")),
        "STEP_FINISHED": lambda it, event: it.items.step_ends(event["stepName"], event.get("subagentRunId")),
        "SUBAGENT_STARTED": lambda it, event: it.items.subagent_starts(
            event["subagentRunId"], event.get("parentSubagentRunId")
        ),
        "SUBAGENT_FINISHED": _subagent_ends,
        "SUBAGENT_ERROR": lambda it, event: it.items.subagent_ends(event["subagentRunId"], "failed"),
        "MESSAGES_SNAPSHOT": _messages,
        "ACTIVITY_SNAPSHOT": _activity,
        "ACTIVITY_DELTA": _activity_changes,
        "STATE_SNAPSHOT": _progresses,
        "STATE_DELTA": _progresses,
        "CUSTOM": _custom,
        **dict.fromkeys(FORMS, _chunk),
    }
