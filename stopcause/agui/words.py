"""The closed lists of this room, each word with one line of meaning."""

from __future__ import annotations

from stopcause.receipts.vocabulary import Word


class Mode(Word):
    """By which contract a run is read: what its stream declares, else what it uses."""

    SPEC = "spec-1.0", "RUN_STARTED declares a protocolVersion; the specification 1.0 holds"
    LEGACY_OUTCOME = "legacy-outcome", "no version, interrupts are outcomes; the contract before 1.0 holds"
    LEGACY_CUSTOM = "legacy-custom", "no version, interrupts are CUSTOM events beside an ordinary finish"


class Ending(Word):
    """How a run's stream ended, as the stream says it."""

    SUCCESS = "success", "RUN_FINISHED with outcome success, or with none"
    INTERRUPT = "interrupt", "RUN_FINISHED with outcome interrupt, or with CUSTOM interrupts before 1.0"
    CANCELLED = "cancelled", "RUN_FINISHED with outcome cancelled"
    ERROR = "run_error", "RUN_ERROR, also one that came after RUN_FINISHED"
    TRUNCATED = "truncated", "the stream ended without RUN_FINISHED or RUN_ERROR"
    REFUSED = "refused", "the request was refused over HTTP: there was no stream"
    REJECTED = "rejected", "the stream broke a rule that a reader may not pass over"
    UNKNOWN_OUTCOME = "unknown_outcome", "RUN_FINISHED with an outcome that 1.0 does not know"


class Side(Word):
    """Who has to see to it."""

    PRODUCER = "producer", "the agent, or the integration in front of it"
    CONSUMER = "consumer", "the application that sends inputs and reads streams"
    AUDITOR = "auditor", "nobody broke a rule: something that an operator should know"


class Level(Word):
    """How much it weighs, in the mode in which the run is read."""

    MUST = "MUST", "a rule of the contract was broken, or something was done that nobody allowed"
    SHOULD = "SHOULD", "the contract asks for something else, and does not insist"
    WARN = "WARN", "probably wrong, and no rule says so"
    NOTE = "NOTE", "worth knowing"


class State(Word):
    """Where an interrupt stands in its thread."""

    OPEN = "open", "asked, and not answered"
    SENT = "sent", "an answer is under way: its run has not ended"
    CLOSED = "closed", "an answer was taken: the run that brought it got past the question"
    UNKNOWN = "unknown", "an answer was sent, and the stream broke off: nobody knows whether it was taken"
    LOST = "lost", "never answered, and a later run of the thread no longer asks for it"
    MOVED = "moved", "a later run asks for the same again, and it counts there"
    BYPASSED = "bypassed", "the gated action ran, and nobody had allowed it"


UNANSWERED = frozenset({State.OPEN, State.LOST})
UNDER_WAY = frozenset({State.SENT, State.UNKNOWN})
UNSETTLED = UNANSWERED | UNDER_WAY

RESOLVED, CANCELLED = "resolved", "cancelled"
ANSWERS = frozenset({RESOLVED, CANCELLED})  # what an answer may have as its status


class Channel(Word):
    """By what an interrupt was told."""

    OUTCOME = "outcome", "the interrupts of RUN_FINISHED"
    CUSTOM = "custom", "a CUSTOM event, as before 1.0"
    TOOL = "tool", "a call to a tool of the client's own, which the policy calls a wait"
