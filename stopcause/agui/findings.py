"""What can be found in a stream, an input or a thread: each with its rule, whose fault it is, and how much it weighs.

The table is the one home of names. `level` is that of the specification 1.0, `before` that of the contract before it,
where it differs. What is fatal makes the stream one that a reader may not believe.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stopcause.agui.ids import safe
from stopcause.agui.words import Level, Mode, Side

P, C, A = Side.PRODUCER, Side.CONSUMER, Side.AUDITOR
MUST, SHOULD, WARN, NOTE = Level.MUST, Level.SHOULD, Level.WARN, Level.NOTE
MOST_IDS = 16  # of one finding


class Finding(NamedTuple):
    """Something found. `ids` are safe to show: interrupts, calls, runs, or the name of a field."""

    rule: str
    name: str
    side: Side
    level: Level
    fatal: bool
    ids: tuple[str, ...]

    @property
    def code(self) -> str:
        """As a finding of a record."""
        return self.name.lower()


class Card(NamedTuple):
    """One row of the table."""

    rule: str
    name: str
    side: Side
    level: Level
    meaning: str
    fatal: bool = False
    before: Level | None = None


CARDS = (
    # The stream
    Card("R0", "FRAME_UNREADABLE", P, MUST, "a frame is no JSON object with a type", fatal=True),
    Card("R0", "FRAME_TOO_LARGE", A, NOTE, "a frame is larger, or nested deeper, than this reader keeps; passed over"),
    Card("R0", "INPUT_TOO_LARGE", A, NOTE, "an input has more answers, tools or messages than are kept"),
    Card("R0", "TOO_MANY", A, NOTE, "more of something than this reader keeps of a run; the rest is not looked at"),
    Card("R1", "FIRST_EVENT", P, MUST, "the first event is neither RUN_STARTED nor RUN_ERROR", fatal=True),
    Card("R2", "NESTED_RUN", P, MUST, "a run starts while another is active", fatal=True),
    Card("R3", "EVENT_AFTER_CLOSE", P, MUST, "an event of a run that is over", fatal=True),
    Card("R3", "SECOND_TERMINAL", P, MUST, "a run ends twice, other than by a late RUN_ERROR", fatal=True),
    Card("R4", "LATE_ERROR", P, NOTE, "a RUN_ERROR after RUN_FINISHED: the run failed"),
    Card("R5", "TRUNCATED", P, MUST, "the stream ended without RUN_FINISHED or RUN_ERROR"),
    Card("R6", "RUN_ID_MISMATCH", P, MUST, "RUN_FINISHED names another run, or the run is not the input's", fatal=True),
    Card("R6", "THREAD_ID_MISMATCH", P, MUST, "the stream's thread is not the input's", fatal=True),
    Card("R7", "OPEN_AT_FINISH", P, MUST, "something was still open at RUN_FINISHED", fatal=True),
    Card("R8", "UNBALANCED", P, MUST, "a message, call or reasoning is opened twice, or not open", fatal=True),
    Card("R9", "STEP_UNBALANCED", P, MUST, "a step starts twice, or ends without a start", fatal=True),
    Card("R10", "MALFORMED", P, MUST, "a known field has a value that the schema does not allow", fatal=True),
    Card("R11", "NULL_FIELD", P, MUST, "an optional field is null and not left out", fatal=True, before=NOTE),
    Card("R11", "OLD_NULL", P, NOTE, "an optional field is null, as SDKs before 1.0 wrote it: read as left out"),
    Card("R12", "UNRECOGNISED", P, NOTE, "events of a type that is not known; passed over"),
    Card("R13", "UNKNOWN_OUTCOME", P, MUST, "an outcome that 1.0 does not know"),
    Card("R14", "NO_VERSION", P, NOTE, "RUN_STARTED declares no protocolVersion"),
    Card("R14", "VERSION_UNREADABLE", P, WARN, "a protocolVersion that is none, or newer; read as 1.0"),
    Card("R15", "RUN_TOLD_AGAIN", A, NOTE, "a run that had ended is seen again under its id; it counts once"),
    Card("R16", "INPUT_REFUSED", A, NOTE, "the request was refused over HTTP; no run began"),
    Card("R20", "INTERRUPT_AS_SUCCESS", P, MUST, "a run that asks is reported as a success"),
    Card("R20", "LEGACY_INTERRUPT", P, NOTE, "it asks by CUSTOM events beside an ordinary finish"),
    Card("R21", "EMPTY_INTERRUPT", P, MUST, "outcome interrupt without an interrupt", fatal=True),
    Card("R22", "DUP_INTERRUPT_ID", P, MUST, "two interrupts of a run have one id: one answer would cover two"),
    Card("R23", "OUTCOME_CONTRADICTION", P, MUST, "success or cancelled that carries interrupts", fatal=True),
    Card("R24", "DANGLING_TOOLCALL", P, WARN, "an interrupt names a call that nobody saw"),
    Card("R26", "CANCELLED_WITH_RESULT", P, SHOULD, "a cancelled run that carries a result"),
    Card("R30", "FABRICATED_RESULT", P, MUST, "a call to the client's own tool was answered by the agent", before=WARN),
    Card("R31", "FRONTEND_AS_INTERRUPT", P, MUST, "a call to the client's own tool is asked for as an interrupt",
         before=WARN),
    Card("R32", "PENDING_LIST_MISMATCH", P, MUST, "pendingToolCallIds does not name the calls left unanswered"),
    Card("R40", "SUBAGENT_LIFECYCLE", P, MUST, "subagents announced twice, or ended unannounced", fatal=True),
    Card("R44", "SUSPENDED_UNKNOWN_INTERRUPT", P, WARN, "a suspended subagent waits for what the run does not ask"),
    Card("R46", "ATTRIBUTION_MISMATCH", P, MUST, "an item goes on under another subagent than it began", fatal=True),
    Card("R84", "LEGACY_COUNT_MISMATCH", P, WARN, "CUSTOM events and outcome do not ask for the same"),
    Card("R93", "FRONTEND_PENDING", A, NOTE, "calls to the client's own tools are left to the client"),
    Card("R95", "RECEIPT_DISAGREES", P, WARN, "the producer's own receipt says another cause than its stream"),
    Card("R95", "RECEIPT_UNREADABLE", P, NOTE, "metadata.stopcause is no part of a receipt; passed over"),
    # The answers, before they are sent
    Card("R50", "RESUME_WRONG_THREAD", C, MUST, "an answer names an interrupt of another thread"),
    Card("R51", "RESUME_UNKNOWN_ID", C, MUST, "an answer names an interrupt that nobody raised"),
    Card("R51", "RESUME_STALE_ID", C, MUST, "an answer names an interrupt of an earlier run than the last that asked"),
    Card("R52", "UNCOVERED", C, MUST, "an open interrupt has no answer"),
    Card("R53", "SILENT_CONTINUE", C, MUST, "a run starts past open interrupts without any answer"),
    Card("R54", "EXPIRED_ANSWER", C, MUST, "an interrupt that has expired is resolved; it may only be cancelled"),
    Card("R54", "EXPIRY_UNREADABLE", P, NOTE, "an expiresAt that is no time: it does not expire"),
    Card("R55", "ENTRY_MALFORMED", C, MUST, "an answer has not the shape of one"),
    Card("R56", "RESUME_DUPLICATE", C, MUST, "an interrupt has two answers in one list"),
    Card("R57", "CANCELLED_PAYLOAD", C, NOTE, "an answer that gives up carries a payload"),
    Card("R58", "RESUME_NOTHING_OPEN", C, MUST, "answers, and nothing is open"),
    Card("R59", "PAYLOAD_SCHEMA_MISMATCH", C, SHOULD, "the payload does not fit responseSchema"),
    Card("R59", "SCHEMA_UNREADABLE", P, WARN,
         "a responseSchema, or a pattern in it, that cannot be used: nothing is held against it"),
    Card("R59", "PAYLOAD_TOO_LARGE", C, SHOULD, "a payload too large to be held against responseSchema"),
    Card("R61", "RESERVED_KEY", C, MUST, "an answer's metadata uses the key `ag-ui`"),
    Card("R62", "EDITS_NOT_OFFERED", C, MUST, "editedArgs, and the schema does not offer edits"),
    Card("R63", "ANSWER_CHANGED", C, MUST, "an interrupt that was answered is answered again in another way"),
    Card("R63", "REPLAY", C, NOTE, "the same answers once more; they must not act again"),
    Card("R64", "ANSWER_FATE_UNKNOWN", A, WARN, "an answer was sent and its stream broke off"),
    Card("R64", "ANSWER_UNDER_WAY", A, NOTE, "an answer was sent, and its run has not ended"),
    Card("R65", "GUARD_STATE_UNREADABLE", C, MUST, "what the guard knew cannot be read: nothing can be checked"),
    Card("R65", "INPUT_UNREADABLE", C, MUST, "this is no RunAgentInput: it needs threadId and runId"),
    # The answers, once they were received
    Card("R70", "UNRECOGNISED_ENTRY", P, NOTE, "an answer to something that was not asked: passed over"),
    Card("R70", "UNRECOGNISED_ENTRY_FAILED_RUN", P, SHOULD, "an answer to something that was not asked failed the run",
         before=NOTE),
    Card("R71", "ACTION_WITHOUT_ANSWER", P, MUST, "the gated call ran, and no answer allowed it"),
    Card("R73", "SUCCESS_OVER_OPEN_INTERRUPT", P, NOTE, "a success while an interrupt stands open"),
    Card("R74", "UNCOVERED_MISHANDLED", P, MUST, "open interrupts without an answer, and neither refusal nor repeat"),
    Card("R75", "RESULT_AFTER_CANCEL", P, WARN, "an answer gave up, and its call has a result"),
    Card("R76", "ACTION_ON_UNRECOGNISED_ANSWER", P, MUST, "the gated call ran on an answer to something else"),
    Card("R77", "DUPLICATE_EFFECT", P, MUST, "a gated call ran twice"),
    Card("R81", "RESUME_FAILED_STILL_OPEN", A, NOTE, "the answer failed before the gated call: it is open again"),
    Card("R81", "ANSWER_CONSUMED_THEN_FAILED", A, WARN, "the gated call ran, then the run failed: look first"),
    Card("R82", "REINTERRUPT_LOOP", A, WARN, "three runs end with the same open set, or the same refusal"),
    Card("R83", "INTERRUPT_ID_DRIFT", P, WARN, "the same call is asked for again under another id"),
    Card("R85", "BAD_ANSWER", P, NOTE, "an answer whose payload is missing or does not fit", before=MUST),
    Card("R86", "LATE_ANSWER", P, NOTE, "an answer to something that has expired", before=MUST),
    Card("R91", "NO_DEADLINE", A, NOTE, "an interrupt without expiresAt or due"),
    Card("R96", "LOST_INTERRUPT", P, WARN, "never answered, and no longer asked for"),
    Card("R97", "THREAD_TOO_LONG", A, NOTE, "more open interrupts than this reader keeps; the oldest are forgotten"),
)  # fmt: skip

BY_NAME = {card.name: card for card in CARDS}


def found(name: str, *ids: str, mode: Mode = Mode.SPEC) -> Finding:
    """A finding of the table, about these ids, as it weighs in this mode."""
    card = BY_NAME[name]
    level = card.level if mode is Mode.SPEC or card.before is None else card.before
    fatal = card.fatal and level is card.level
    return Finding(card.rule, card.name, card.side, level, fatal, tuple(safe(each) for each in ids[:MOST_IDS]))


def names(findings: Iterable[Finding]) -> frozenset[str]:
    """Which ones there are."""
    return frozenset(each.name for each in findings)
