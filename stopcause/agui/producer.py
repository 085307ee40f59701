"""The agent's side: what an input's answers mean for what it asked, and what it must not do (spec 1.0, Error Handling).

    received = receive(asked, payload, taken=kept)     # the interrupts that the agent knows to be open
    if received.error: yield received.error.event()    # RUN_ERROR: nothing may run
    if received.may_act("int-1"): ...                  # only on a yes, once
    if received.must_ask_again: ...                    # RUN_FINISHED with outcome interrupt, and these in it

A pure function of what the agent knows. One that keeps nothing between runs knows nothing open: then it has no duty.
Answers pass through to the agent and are not kept, shown or logged here.

Where the texts are silent, this holds: an answer that comes too late, or does not fit, fails the whole input, in either
contract, so that nothing runs on half of it. An approval needs a yes: false, null, 0, "" or nothing is none, and of
an object with `approved` only true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from stopcause.agui import guard_rules, interrupts, resumes
from stopcause.agui.findings import Finding, found
from stopcause.agui.given import Given, plain, read_given
from stopcause.agui.ids import key_of
from stopcause.agui.schema_budget import one_budget
from stopcause.agui.times import aware
from stopcause.agui.values import Entry, Interrupt, Json
from stopcause.agui.words import ANSWERS, CANCELLED, RESOLVED, Mode
from stopcause.receipts.vocabulary import ApprovalKind, Decision

_NEEDS_A_YES = frozenset({ApprovalKind.TOOL_CALL, ApprovalKind.CONFIRMATION})
_MESSAGES = {
    "INTERRUPT_RESUME_ERROR": "The answers cannot be read, or contradict each other.",
    "UNKNOWN_INTERRUPT_ID": "An answer names an interrupt that is not open.",
    "INTERRUPT_EXPIRED": "An interrupt has expired; it may only be cancelled.",
    "INVALID_PAYLOAD": "The payload of an answer is missing or does not fit.",
    "PARTIAL_RESUME": "An open interrupt has no answer.",
    "PENDING_INTERRUPTS": "Interrupts are open; the input has no answers.",
}


class _Failure(NamedTuple):
    """What a finding does to the input: the code of its RUN_ERROR, and whether 1.0 asks for one too."""

    finding: str
    code: str
    in_spec: bool


_FAILURES = (  # the first that was found is the error
    _Failure("INPUT_UNREADABLE", "INTERRUPT_RESUME_ERROR", in_spec=True),
    _Failure("RESUME_DUPLICATE", "INTERRUPT_RESUME_ERROR", in_spec=True),
    _Failure("ENTRY_MALFORMED", "INTERRUPT_RESUME_ERROR", in_spec=False),
    _Failure("ANSWER_CHANGED", "INTERRUPT_RESUME_ERROR", in_spec=False),
    _Failure("UNRECOGNISED_ENTRY", "UNKNOWN_INTERRUPT_ID", in_spec=False),
    _Failure("LATE_ANSWER", "INTERRUPT_EXPIRED", in_spec=True),
    _Failure("BAD_ANSWER", "INVALID_PAYLOAD", in_spec=True),
    _Failure("UNCOVERED", "PARTIAL_RESUME", in_spec=False),
    _Failure("SILENT_CONTINUE", "PENDING_INTERRUPTS", in_spec=False),
)


class Refusal(NamedTuple):
    """Why the input fails: a code that integrations use, and the interrupts that it is about."""

    code: str
    ids: tuple[str, ...] = ()

    def event(self) -> dict[str, str]:
        """As the event that says so."""
        return {"type": "RUN_ERROR", "message": _MESSAGES[self.code], "code": self.code}


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered to one interrupt.

    Attributes:
        decision: What it decides. Without an `approved` in it, it is only `answered`: its meaning is the agent's.
        is_repeat: The same answer was taken before: it must not act again.
        key: What to keep of an answer that was taken, and to give as `taken` from then on. No content is in it.
        payload: The answer itself; None also where there is none (`has_payload`).
    """

    id: str
    decision: Decision
    is_repeat: bool
    key: str
    has_payload: bool
    payload: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class Received:
    """What an input says to what the agent asked.

    Attributes:
        answers: By interrupt, those that answer something.
        uncovered: What is open and has no answer: it stays open. An omission is no giving up.
        unrecognised: Ids of answers to something that was not asked.
        error: Why the run has to fail before anything runs; None where it may go on.
        findings: All that was found, each with whose fault it is.
    """

    answers: Mapping[str, Answer]
    uncovered: tuple[str, ...]
    unrecognised: tuple[str, ...]
    error: Refusal | None
    findings: tuple[Finding, ...]

    def may_act(self, interrupt_id: str) -> bool:
        """Whether what the interrupt guards may be done now: it was allowed, for the first time, and nothing failed."""
        answer = self.answers.get(key_of(interrupt_id))
        is_allowed = answer is not None and not answer.is_repeat and answer.decision in resumes.ALLOWS
        return is_allowed and self.error is None

    @property
    def must_ask_again(self) -> tuple[str, ...]:
        """The interrupts that the run must end with, beside new ones: all that stay open. Empty after an error."""
        return self.uncovered if self.error is None else ()

    @property
    def may_succeed(self) -> bool:
        """Whether the run may end as a success."""
        return self.error is None and not self.uncovered

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What to tell in a log, where the run goes on."""
        return self.findings if self.error is None else ()


def receive(
    asked: Iterable[Json],
    input: Json,  # noqa: A002 - what AG-UI calls it
    *,
    mode: Mode = Mode.SPEC,
    now: datetime | None = None,
    taken: Mapping[str, str] | None = None,
    on_uncovered: Literal["ask_again", "refuse"] = "ask_again",
) -> Received:
    """Holds an input's answers against what is open. Never raises, whatever the input holds.

    Args:
        asked: The interrupts that the agent knows to be open: as it emitted them, or `values.Interrupt`.
        input: The RunAgentInput: JSON, or a model of the SDK.
        mode: By which contract. Before 1.0 an incomplete or unknown answer fails the run.
        now: By when something has expired; the clock's, where it is left out.
        taken: Keys of the answers that were acted on before, by interrupt (`Answer.key`). Forget a key when the same
            id is asked again: the next answer is a new one, even if it says the same.
        on_uncovered: What 1.0 leaves to the agent: run what is covered and ask again, or refuse.
    """
    given = read_given(input)
    if given is None:
        return Received({}, (), (), Refusal("INTERRUPT_RESUME_ERROR"), (found("INPUT_UNREADABLE", mode=mode),))
    reception = _Reception(_open(asked), given, mode, aware(now), dict(taken or {}))
    with one_budget():
        return reception.received(refuses_uncovered=on_uncovered == "refuse")


def keys_of(resume: Iterable[Json]) -> dict[str, str]:
    """Of answers that were acted on, what `taken` has to hold: by interrupt, and without content."""
    given = read_given({"threadId": "-", "runId": "-", "resume": list(resume)})
    return {entry.id: _key(entry) for entry in (given.input.resume if given else None) or ()}


class _Reception(NamedTuple):
    """The answers of one input beside what is open."""

    asked: Mapping[str, Interrupt]
    given: Given
    mode: Mode
    now: datetime
    taken: Mapping[str, str]

    def received(self, *, refuses_uncovered: bool) -> Received:
        entries = self._entries()
        answers = {entry.id: self._answer(entry) for entry in entries if self._is_recognised(entry)}
        uncovered = tuple(each for each in self.asked if each not in answers)
        unrecognised = tuple(entry.id for entry in entries if not self._is_recognised(entry))
        findings = (*self.given.input.findings, *self._findings(entries, unrecognised, uncovered))
        error = self._error(findings, refuses_uncovered=refuses_uncovered)
        return Received(answers, uncovered, unrecognised, error, findings)

    def _said(self) -> tuple[Entry, ...]:
        """What is an answer by its shape. In the channel before `resume`, one without an id answers everything."""
        known = self.given.input
        if known.legacy_answers and not known.resume and self.mode is Mode.LEGACY_CUSTOM:
            said = ((name, each) for each in known.legacy_answers for name in ([each.id] if each.id else self.asked))
            return tuple(each._replace(id=name) for name, each in said)
        return tuple(each for each in known.resume or () if each.status in ANSWERS)

    def _entries(self) -> tuple[Entry, ...]:
        """One for each interrupt: the first."""
        return tuple({entry.id: entry for entry in reversed(self._said())}.values())[::-1]

    def _is_recognised(self, entry: Entry) -> bool:
        return entry.id in self.asked or self._is_repeat(entry)

    def _is_repeat(self, entry: Entry) -> bool:
        return self.taken.get(entry.id) == _key(entry)

    def _answer(self, entry: Entry) -> Answer:
        payload = self._payloads().get(entry.digest)
        decision = _decision(self.asked.get(entry.id), entry, payload)
        return Answer(entry.id, decision, self._is_repeat(entry), _key(entry), entry.has_payload, payload)

    def _payloads(self) -> Mapping[str, Json]:
        return self.given.payloads if self.given.input.resume else self.given.old_payloads

    def _findings(
        self, entries: tuple[Entry, ...], unrecognised: tuple[str, ...], uncovered: tuple[str, ...]
    ) -> Iterator[Finding]:
        changed = tuple(each for each in unrecognised if each in self.taken)
        open_now = [entry for entry in entries if entry.id in self.asked and not self._is_repeat(entry)]
        ids = {
            "RESUME_DUPLICATE": self._conflicts(),
            "ANSWER_CHANGED": changed,
            "UNRECOGNISED_ENTRY": tuple(each for each in unrecognised if each not in self.taken),
            "REPLAY": tuple(entry.id for entry in entries if self._is_repeat(entry)),
            "LATE_ANSWER": tuple(entry.id for entry in open_now if self._is_late(entry)),
            "BAD_ANSWER": tuple(entry.id for entry in open_now if self._is_bad(entry)),
            "CANCELLED_PAYLOAD": tuple(each.id for each in open_now if each.status == CANCELLED and each.has_payload),
            "UNCOVERED" if entries else "SILENT_CONTINUE": uncovered,
        }
        return (found(name, *each, mode=self.mode) for name, each in ids.items() if each)

    def _conflicts(self) -> tuple[str, ...]:
        """Interrupts with two answers that differ; the same one twice does no harm."""
        keys: dict[str, set[str]] = {}
        for entry in self._said():
            keys.setdefault(entry.id, set()).add(_key(entry))
        return tuple(each for each, different in keys.items() if len(different) > 1)

    def _is_late(self, entry: Entry) -> bool:
        return entry.status == RESOLVED and resumes.is_expired(self.asked[entry.id], self.now)

    def _is_bad(self, entry: Entry) -> bool:
        if entry.status == CANCELLED:
            return False
        interrupt, payloads = self.asked[entry.id], self._payloads()
        is_open_form = interrupt.schema is None and interrupt.kind in _NEEDS_A_YES
        is_no_word = not entry.has_payload or _is_unclear(payloads.get(entry.digest))
        faults = guard_rules.payload_faults(interrupt, entry, payloads)
        return (is_open_form and is_no_word) or any(each != "SCHEMA_UNREADABLE" for each in faults)

    def _error(self, findings: tuple[Finding, ...], *, refuses_uncovered: bool) -> Refusal | None:
        by_name = {each.name: each for each in reversed(findings)}
        for name, code, in_spec in _FAILURES:
            is_choice = refuses_uncovered and name in ("UNCOVERED", "SILENT_CONTINUE")
            if name in by_name and (in_spec or is_choice or self.mode is not Mode.SPEC):
                return Refusal(code, by_name[name].ids)
        return None


def _key(entry: Entry) -> str:
    return f"{entry.status}:{entry.digest}"


def _decision(interrupt: Interrupt | None, entry: Entry, payload: Json) -> Decision:
    kind = ApprovalKind.EXTERNAL if interrupt is None else interrupt.kind
    decision = resumes.decision_of(entry, kind)
    is_no = decision in (Decision.ANSWERED, Decision.EDITED) and (not payload or _is_unclear(payload))
    return Decision.DENIED if is_no and kind in _NEEDS_A_YES else decision


def _is_unclear(payload: Json) -> bool:
    """Whether its `approved` is neither yes nor no: null, "false", 0."""
    return isinstance(payload, dict) and "approved" in payload and not isinstance(payload["approved"], bool)


def _open(asked: Iterable[Json]) -> dict[str, Interrupt]:
    """By id; of two with one id the first: one answer is for both."""
    read = (each if isinstance(each, Interrupt) else _interrupt(plain(each)) for each in asked)
    open_now: dict[str, Interrupt] = {}
    for interrupt in read:
        if interrupt is not None:
            open_now.setdefault(interrupt.id, interrupt)
    return open_now


def _interrupt(value: Json) -> Interrupt | None:
    """As the agent emitted it; None where it is none, and then nobody can answer it."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        return None
    asks = interrupts.read_interrupts([value], "", lambda *_: None)
    return asks[0].interrupt
