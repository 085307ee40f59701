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
    WARN = "WARN", "probably wrong: no text insists, or nobody can be sure"
    NOTE = "NOTE", "worth knowing"


class Section(Word):
    """Where a rule stands: a page of the specification 1.0 by its path, the contract before it, or nowhere."""

    LIFECYCLE = "events/lifecycle", "how runs begin and end"
    TOOL_CALLS = "events/tool-calls", "calls, their results, and the client's own tools"
    SUBAGENTS = "events/subagents", "work inside of a run that has a name of its own"
    PROCESSING = "basic/processing", "what a reader has to make of what it gets"
    RUN_INPUT = "basic/run-input", "what a run is asked for with"
    TRANSPORTS = "basic/transports", "requests, refusals, and streams that break off"
    HTTP_SSE = "basic/transports/http-sse", "events as bytes"
    VERSIONING = "basic/versioning", "which contract a peer keeps"
    CAPABILITIES = "basic/capabilities", "what an agent declares"
    STREAMING = "basic/patterns/streaming", "messages and calls in pieces"
    INTERRUPTS = "basic/patterns/interrupt-resume", "questions, answers, and what may not be passed over"
    SCHEMA = "schema", "the fields of each object"
    BEFORE = "concepts/interrupts", "questions and answers, as the contract before 1.0 has them"
    OURS = "stopcause", "no text says so, and an operator would want to know"


class Effect(Word):
    """What a finding does to a verdict."""

    NONE = "none", "none: the verdict stands"
    REJECTED = "rejected", "the run is UNCERTAIN (stream_rejected); FAILED where it reports a failure too"
    FAILED = "failed", "the run is FAILED"
    CUT_OFF = "cut_off", "the run is UNCERTAIN (stream_truncated); STUCK where it had fallen silent"
    UNKNOWN = "unknown", "the run is UNCERTAIN (outcome_type_unknown)"
    TWICE = "twice", "the run is UNCERTAIN where its two ends differ"
    WAITS = "waits", "the run is WAITING or WAITING_UNROUTED, whatever its outcome says"
    BOUNDED = "bounded", "the run is BOUNDED_STOP; STUCK where a loop guard stopped it"
    RECEIPTS = "receipts", "receipts decide: without one the run is FALSE_COMPLETE"
    UNROUTED = "unrouted", "the run and its thread are WAITING_UNROUTED, unless the policy has what is missing"
    STAYS_OPEN = "stays_open", "the thread goes on waiting"
    UNCERTAIN = "uncertain", "the thread is UNCERTAIN until it has asked and was answered again"
    STUCK = "stuck", "the thread is STUCK"


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
