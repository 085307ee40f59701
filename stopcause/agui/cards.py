"""The rules of AG-UI that a third party can check, in order: a card each.

The table is the one home of their names. `level` is that of the specification 1.0, `before` that of the contract
before it, where it differs. What looks for them is elsewhere: a stream's own rules are seen while it is read (`frames`,
`lifecycle`, `course`, `closing`, `interrupts`, `promises`), those of an input's shape in `inputs`; what both mean for
their thread in `audit`, and what a thread lacks in `verdicts`; what may not be sent in `guard_rules`, and what an agent
must not take in `producer`.
"""

from __future__ import annotations

from typing import NamedTuple

from stopcause.agui.words import Effect, Level, Mode, Section, Side

P, C, A = Side.PRODUCER, Side.CONSUMER, Side.AUDITOR
MUST, SHOULD, WARN, NOTE = Level.MUST, Level.SHOULD, Level.WARN, Level.NOTE


class Card(NamedTuple):
    """One row of the table.

    Attributes:
        rule: Its number. Several findings may be of one rule.
        section: Of the specification 1.0, of the contract before it, or of nobody: then the rule is ours.
        effect: What it does to a verdict.
    """

    rule: str
    name: str
    side: Side
    level: Level
    section: Section
    effect: Effect
    meaning: str
    before: Level | None = None

    @property
    def is_fatal(self) -> bool:
        """Whether it makes a stream one that a reader may not believe."""
        return self.effect is Effect.REJECTED

    @property
    def failing(self) -> str:
        """The case in which it is found."""
        return f"rule-{self.slug}-failing"

    @property
    def passing(self) -> str:
        """The case beside it, in which it is not."""
        return f"rule-{self.slug}-passing"

    @property
    def slug(self) -> str:
        """Its name as file names have it."""
        return self.name.lower().replace("_", "-")

    def level_in(self, mode: Mode) -> Level:
        """How much it weighs for a run that is read by this contract."""
        return self.level if mode is Mode.SPEC or self.before is None else self.before


_LC, _TC, _SA, _RI = Section.LIFECYCLE, Section.TOOL_CALLS, Section.SUBAGENTS, Section.RUN_INPUT
_TR, _SSE, _PR, _VE = Section.TRANSPORTS, Section.HTTP_SSE, Section.PROCESSING, Section.VERSIONING
_ST, _IR, _CA, _SC = Section.STREAMING, Section.INTERRUPTS, Section.CAPABILITIES, Section.SCHEMA
_DOC, _OURS = Section.BEFORE, Section.OURS

_NONE, _REJECTED, _FAILED, _CUT = Effect.NONE, Effect.REJECTED, Effect.FAILED, Effect.CUT_OFF
_UNKNOWN, _WAITS, _BOUNDED, _RECEIPTS = Effect.UNKNOWN, Effect.WAITS, Effect.BOUNDED, Effect.RECEIPTS
_OPEN, _UNROUTED, _UNCERTAIN, _STUCK = Effect.STAYS_OPEN, Effect.UNROUTED, Effect.UNCERTAIN, Effect.STUCK
_TWICE = Effect.TWICE

CARDS = (
    # The stream
    Card("R0", "FRAME_UNREADABLE", P, MUST, _SSE, _REJECTED, "a frame is no JSON object with a type"),
    Card("R0", "FRAME_TOO_LARGE", A, NOTE, _OURS, _NONE,
         "a frame is larger, or nested deeper, than this reader keeps; passed over"),
    Card("R0", "INPUT_TOO_LARGE", A, NOTE, _OURS, _NONE, "an input has more answers, tools or messages than are kept"),
    Card("R0", "TOO_MANY", A, NOTE, _OURS, _NONE,
         "more of something than this reader keeps of a run; the rest is not looked at"),
    Card("R1", "FIRST_EVENT", P, MUST, _LC, _REJECTED, "the first event is neither RUN_STARTED nor RUN_ERROR"),
    Card("R2", "NESTED_RUN", P, MUST, _LC, _REJECTED, "a run starts while another is active"),
    Card("R3", "EVENT_AFTER_CLOSE", P, MUST, _LC, _REJECTED, "an event of a run that is over"),
    Card("R3", "SECOND_TERMINAL", P, MUST, _LC, _REJECTED, "a run ends twice, other than by a late RUN_ERROR"),
    Card("R4", "LATE_ERROR", P, NOTE, _LC, _FAILED, "a RUN_ERROR after RUN_FINISHED: the run failed"),
    Card("R5", "TRUNCATED", P, MUST, _TR, _CUT, "the stream ended without RUN_FINISHED or RUN_ERROR"),
    Card("R6", "RUN_ID_MISMATCH", P, MUST, _RI, _REJECTED,
         "RUN_FINISHED names another run, or the run is not the input's"),
    Card("R6", "THREAD_ID_MISMATCH", P, MUST, _RI, _REJECTED, "the stream's thread is not the input's"),
    Card("R7", "OPEN_AT_FINISH", P, MUST, _LC, _REJECTED, "something was still open at RUN_FINISHED"),
    Card("R8", "UNBALANCED", P, MUST, _ST, _REJECTED, "a message, call or reasoning is opened twice, or not open"),
    Card("R9", "STEP_UNBALANCED", P, MUST, _LC, _REJECTED, "a step starts twice, or ends without a start"),
    Card("R10", "MALFORMED", P, MUST, _PR, _REJECTED, "a known field has a value that the schema does not allow"),
    Card("R11", "NULL_FIELD", P, MUST, _SC, _REJECTED, "an optional field is null and not left out", before=NOTE),
    Card("R11", "OLD_NULL", P, NOTE, _SC, _NONE,
         "an optional field is null, as SDKs before 1.0 wrote it: read as left out"),
    Card("R12", "UNRECOGNISED", P, NOTE, _PR, _NONE, "events of a type that is not known; passed over"),
    Card("R13", "UNKNOWN_OUTCOME", P, MUST, _LC, _UNKNOWN, "an outcome that 1.0 does not know"),
    Card("R14", "NO_VERSION", P, NOTE, _VE, _NONE, "RUN_STARTED declares no protocolVersion"),
    Card("R14", "VERSION_UNREADABLE", P, WARN, _VE, _NONE, "a protocolVersion that is none, or newer; read as 1.0"),
    Card("R14", "INPUT_NO_VERSION", C, NOTE, _VE, _NONE,
         "an input declares no protocolVersion, to an agent that speaks 1.0"),
    Card("R15", "RUN_ID_REUSED", C, MUST, _TR, _TWICE, "an input asks for a run under the id of one that had ended"),
    Card("R16", "INPUT_REFUSED", A, NOTE, _TR, _FAILED, "the request was refused over HTTP; no run began"),
    Card("R17", "RUN_TOLD_AGAIN", A, NOTE, _LC, _NONE,
         "a run that had ended is seen again under its id; it counts once"),
    Card("R19", "USAGE_INCONSISTENT", P, NOTE, _LC, _NONE, "counts of tokens that do not add up"),
    # How a run ends
    Card("R20", "INTERRUPT_AS_SUCCESS", P, MUST, _IR, _WAITS, "a run that asks is reported as a success"),
    Card("R20", "LEGACY_INTERRUPT", P, NOTE, _IR, _WAITS, "it asks by CUSTOM events beside an ordinary finish"),
    Card("R21", "EMPTY_INTERRUPT", P, MUST, _IR, _REJECTED, "outcome interrupt without an interrupt"),
    Card("R22", "DUP_INTERRUPT_ID", P, MUST, _IR, _NONE,
         "two interrupts of a run have one id: one answer would cover two"),
    Card("R23", "OUTCOME_CONTRADICTION", P, MUST, _SC, _REJECTED, "success or cancelled that carries interrupts"),
    Card("R24", "DANGLING_TOOLCALL", P, WARN, _IR, _NONE, "an interrupt names a call that nobody saw"),
    Card("R25", "STOP_AS_SUCCESS", P, MUST, _LC, _BOUNDED,
         "a run that was stopped on purpose, as its receipt says, is closed as a success", before=NOTE),
    Card("R25", "STOP_AS_ERROR", P, NOTE, _LC, _BOUNDED, "a run that was stopped on purpose is closed by RUN_ERROR"),
    Card("R26", "CANCELLED_WITH_RESULT", P, SHOULD, _LC, _NONE, "a cancelled run that carries a result"),
    Card("R30", "FABRICATED_RESULT", P, MUST, _TC, _NONE,
         "a call to the client's own tool was answered by the agent", before=WARN),
    Card("R31", "FRONTEND_AS_INTERRUPT", P, MUST, _TC, _NONE,
         "a call to the client's own tool is asked for as an interrupt", before=WARN),
    Card("R32", "PENDING_LIST_MISMATCH", P, MUST, _TC, _NONE,
         "pendingToolCallIds does not name the calls left unanswered"),
    Card("R32", "PENDING_LIST_ABSENT", P, SHOULD, _TC, _NONE,
         "calls are left unanswered, and no pendingToolCallIds says so", before=NOTE),
    Card("R34", "UNANSWERED_CALL", C, WARN, _TC, _NONE,
         "a call that was left to the client has no result in the next input"),
    # Subagents
    Card("R40", "SUBAGENT_LIFECYCLE", P, MUST, _SA, _REJECTED, "subagents announced twice, or ended unannounced"),
    Card("R44", "SUSPENDED_UNKNOWN_INTERRUPT", P, WARN, _SA, _NONE,
         "a suspended subagent waits for what the run does not ask"),
    Card("R45", "SUBAGENT_FAILED_HANDLED", A, NOTE, _SA, _NONE, "a subagent failed, and the run went on to a success"),
    Card("R46", "ATTRIBUTION_MISMATCH", P, MUST, _SA, _REJECTED,
         "an item goes on under another subagent than it began"),
    # The answers, as they are sent
    Card("R50", "RESUME_WRONG_THREAD", C, MUST, _IR, _NONE, "an answer names an interrupt of another thread"),
    Card("R51", "RESUME_UNKNOWN_ID", C, MUST, _IR, _NONE, "an answer names an interrupt that nobody raised"),
    Card("R51", "RESUME_STALE_ID", C, MUST, _IR, _NONE,
         "an answer names an interrupt that its thread no longer asks for"),
    Card("R52", "UNCOVERED", C, MUST, _IR, _OPEN, "an open interrupt has no answer"),
    Card("R53", "SILENT_CONTINUE", C, MUST, _IR, _OPEN, "a run starts past open interrupts without any answer"),
    Card("R54", "EXPIRED_ANSWER", C, MUST, _IR, _NONE,
         "an interrupt that has expired is resolved; it may only be cancelled"),
    Card("R54", "EXPIRY_UNREADABLE", P, NOTE, _IR, _NONE, "an expiresAt that is no time: it does not expire"),
    Card("R54", "EXPIRY_NOT_JUDGED", A, NOTE, _OURS, _NONE,
         "an answer to what may have expired, and nobody says when it was sent"),
    Card("R55", "ENTRY_MALFORMED", C, MUST, _SC, _NONE, "an answer has not the shape of one"),
    Card("R56", "RESUME_DUPLICATE", C, MUST, _IR, _NONE, "an interrupt has two answers in one list"),
    Card("R57", "CANCELLED_PAYLOAD", C, NOTE, _DOC, _NONE, "an answer that gives up carries a payload"),
    Card("R58", "RESUME_NOTHING_OPEN", C, MUST, _IR, _NONE, "answers, and nothing is open"),
    Card("R59", "PAYLOAD_SCHEMA_MISMATCH", C, SHOULD, _DOC, _NONE, "the payload does not fit responseSchema"),
    Card("R59", "SCHEMA_UNREADABLE", P, WARN, _DOC, _NONE,
         "a responseSchema, or a pattern in it, that cannot be used: nothing is held against it"),
    Card("R59", "PAYLOAD_TOO_LARGE", C, SHOULD, _OURS, _NONE, "a payload too large to be held against responseSchema"),
    Card("R60", "HISTORY_LOST", C, WARN, _IR, _NONE, "an answer to a gated call, and the messages lack that call"),
    Card("R61", "RESERVED_KEY", C, MUST, _SC, _NONE, "an answer's metadata uses the key `ag-ui`"),
    Card("R62", "EDITS_NOT_OFFERED", C, MUST, _DOC, _NONE, "editedArgs, and the schema does not offer edits"),
    Card("R63", "ANSWER_CHANGED", C, MUST, _DOC, _NONE,
         "an interrupt that was answered is answered again in another way"),
    Card("R63", "REPLAY", C, NOTE, _DOC, _NONE, "the same answers once more; they must not act again"),
    Card("R64", "ANSWER_FATE_UNKNOWN", A, WARN, _OURS, _NONE,
         "an answer was sent, and its stream broke off or was rejected"),
    Card("R64", "ANSWER_UNDER_WAY", A, NOTE, _OURS, _NONE, "an answer was sent, and its run has not ended"),
    Card("R65", "GUARD_STATE_UNREADABLE", C, MUST, _OURS, _NONE,
         "what the guard knew cannot be read: nothing can be checked"),
    Card("R65", "INPUT_UNREADABLE", C, MUST, _RI, _NONE, "this is no RunAgentInput: it needs threadId and runId"),
    Card("R65", "INPUT_UNSEEN", A, NOTE, _OURS, _NONE,
         "nobody wrote down what was sent to a thread that asks: its answers are not judged"),
    Card("R66", "TWO_CHANNELS", C, WARN, _OURS, _NONE,
         "answers in `resume` and in the channel before it at once; `resume` counts"),
    # The answers, once they were received
    Card("R70", "UNRECOGNISED_ENTRY", P, NOTE, _IR, _NONE, "an answer to something that was not asked: passed over"),
    Card("R70", "UNRECOGNISED_ENTRY_FAILED_RUN", P, SHOULD, _IR, _FAILED,
         "an answer to something that was not asked failed the run", before=NOTE),
    Card("R71", "ACTION_WITHOUT_ANSWER", P, MUST, _IR, _UNCERTAIN, "the gated call ran, and no answer allowed it"),
    Card("R73", "SUCCESS_OVER_OPEN_INTERRUPT", P, MUST, _IR, _OPEN,
         "a success while an interrupt stands open of which the agent could tell"),
    Card("R73", "SUCCESS_OVER_UNSEEN_INTERRUPT", P, NOTE, _IR, _OPEN,
         "a success while an interrupt stands open of which the agent need not know"),
    Card("R74", "UNCOVERED_MISHANDLED", P, MUST, _IR, _OPEN,
         "open interrupts without an answer: neither refused nor, as 1.0 allows, asked for again; in 1.0 where the "
         "agent could tell"),
    Card("R75", "RESULT_AFTER_CANCEL", P, WARN, _DOC, _RECEIPTS, "an answer gave up, and its call has a result"),
    Card("R76", "ACTION_ON_UNRECOGNISED_ANSWER", P, MUST, _IR, _UNCERTAIN,
         "the gated call ran on an answer to something else"),
    Card("R77", "DUPLICATE_EFFECT", P, MUST, _DOC, _UNCERTAIN, "a gated call ran twice"),
    Card("R78", "NO_BOUNDARY_SNAPSHOT", P, NOTE, _DOC, _NONE,
         "a run asks, and did not send state and messages before", before=MUST),
    Card("R79", "CALL_REOPENED", P, NOTE, _DOC, _NONE, "a gated call is begun anew by the run that takes it up"),
    Card("R79", "REOPEN_MISMATCH", P, MUST, _TC, _NONE, "a gated call is begun anew as another tool's"),
    Card("R80", "APPROVED_NOT_EXECUTED", A, WARN, _OURS, _RECEIPTS,
         "an answer allowed a call, the run is a success, and the call has no result"),
    Card("R81", "RESUME_FAILED_STILL_OPEN", A, NOTE, _OURS, _OPEN,
         "the answer failed before the gated call: it is open again"),
    Card("R81", "ANSWER_CONSUMED_THEN_FAILED", A, WARN, _OURS, _FAILED,
         "the gated call ran, then the run failed: look first"),
    Card("R82", "REINTERRUPT_LOOP", A, WARN, _OURS, _STUCK,
         "three runs end with the same open set, or the same refusal"),
    Card("R83", "INTERRUPT_ID_DRIFT", P, WARN, _OURS, _NONE, "the same call is asked for again under another id"),
    Card("R84", "LEGACY_COUNT_MISMATCH", P, WARN, _OURS, _NONE, "CUSTOM events and outcome do not ask for the same"),
    Card("R85", "BAD_ANSWER", P, NOTE, _DOC, _NONE, "an answer whose payload is missing or does not fit", before=MUST),
    Card("R85", "BAD_ANSWER_SWALLOWED", P, NOTE, _DOC, _NONE,
         "a payload that is missing or does not fit, and no RUN_ERROR", before=MUST),
    Card("R86", "LATE_ANSWER", P, NOTE, _DOC, _NONE, "an answer to something that has expired", before=MUST),
    Card("R86", "LATE_ANSWER_TAKEN", P, NOTE, _DOC, _NONE,
         "an answer to something that had expired was taken", before=MUST),
    Card("R87", "EXPIRED_CANCEL_REJECTED", P, MUST, _IR, _OPEN,
         "what has expired was given up, and that was refused: there is no other way past it"),
    Card("R88", "VALID_RESUME_REFUSED", P, MUST, _IR, _OPEN, "answers to all that is open, and fit, were refused"),
    Card("R89", "REASON_FORM", P, NOTE, _DOC, _NONE,
         "a reason that is neither one of the three nor namespaced, or lacks the field that goes with it"),
    # What it waits for, and ours
    Card("R90", "UNROUTED", A, WARN, _OURS, _UNROUTED, "an interrupt without an owner, or that nobody can resume"),
    Card("R91", "NO_DEADLINE", A, NOTE, _OURS, _UNROUTED, "an interrupt without expiresAt or due"),
    Card("R92", "OVERDUE", A, WARN, _OURS, _UNROUTED, "an interrupt is past its due time, and nobody has answered"),
    Card("R93", "FRONTEND_PENDING", A, NOTE, _TC, _NONE, "calls to the client's own tools are left to the client"),
    Card("R94", "CAPABILITY_MISMATCH", P, WARN, _CA, _NONE, "what the agent declares is not what it does"),
    Card("R95", "RECEIPT_DISAGREES", P, WARN, _OURS, _NONE,
         "the producer's own receipt says another cause than its stream"),
    Card("R95", "RECEIPT_UNREADABLE", P, NOTE, _OURS, _NONE,
         "metadata.stopcause is no part of a receipt; passed over"),
    Card("R96", "LOST_INTERRUPT", P, WARN, _OURS, _OPEN, "never answered, and no longer asked for"),
    Card("R97", "THREAD_TOO_LONG", A, NOTE, _OURS, _NONE,
         "more open interrupts than this reader keeps; the oldest are forgotten"),
)  # fmt: skip

BY_NAME = {card.name: card for card in CARDS}

# Rules for which no finding stands, and where they are kept instead.
ELSEWHERE = {
    "R18": "a run that failed and a stream that is rejected have stop causes of their own",
    "R27": "what a cancelled run leaves open is OPEN_AT_FINISH",
    "R28": "a cancelled run is BOUNDED_STOP",
    "R29": "on the wire an ending that a client made up looks like any other",
    "R33": "the calls that are pending are counted from the stream, whatever it lists",
    "R35": "a run that ends by RUN_ERROR is FAILED",
    "R36": "a success without an outcome receipt is FALSE_COMPLETE",
    "R41": "is SUBAGENT_LIFECYCLE",
    "R42": "is OPEN_AT_FINISH",
    "R43": "is MALFORMED and OUTCOME_CONTRADICTION",
    "R72": "an omission that is taken for giving up is UNCOVERED_MISHANDLED",
}
