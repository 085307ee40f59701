"""The closed lists of the wire format, each word with one line of meaning. Verdicts are in `classifier.verdict`.

A word that a list does not have is read as `unknown` where the list has it; elsewhere its line is an error.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """A string of a closed list that knows its meaning."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        """A member from its string and its meaning."""
        word = str.__new__(cls, value)
        word._value_ = value
        word.meaning = meaning
        return word

    # Enum hashes in Python; a word equals its string, so the string's own hash is right and five times as fast.
    __hash__ = str.__hash__


class Kind(Word):
    """What a record says. Nothing is updated in place: a later fact is a new record."""

    STARTED = "run.started", "a run begins; says its limits, contract and lease"
    PROGRESS = "run.progress", "a run is alive, and perhaps got somewhere"
    STOPPED = "run.stopped", "the stop receipt: why control flow ended, at the boundary where it did"
    APPROVAL = "approval.updated", "something about a thing that only the outside can give"
    OUTCOME = "outcome.recorded", "the outcome receipt: what somebody saw at the destination"
    DIED = "run.died", "the platform says that the process is gone"
    TRIAGE = "triage.updated", "what people said about a group; never changes a verdict"


class StopCause(Word):
    """Why control flow ended."""

    NATURAL = "natural", "the model asked for nothing more"
    EXPLICIT_DONE = "explicit_done", "a tool that means done was called"
    STEP_LIMIT = "step_limit", "the step, turn or recursion limit fired"
    TOKEN_BUDGET = "token_budget", "the token budget fired"
    COST_BUDGET = "cost_budget", "the cost budget fired"
    TIME_LIMIT = "time_limit", "a deadline or an idle timer fired"
    OUTPUT_CAP = "output_cap", "the model's output limit cut it off"
    CONTEXT_LIMIT = "context_limit", "the context window was full"
    SERVER_TOOL_LIMIT = "server_tool_limit", "the provider's own tool loop was paused and not continued"
    GUARDRAIL = "guardrail", "a guardrail of the operator's tripped"
    APPROVAL_DENIED = "approval_denied", "a person or policy said no, and that ended the run"
    APPROVAL_EXPIRED = "approval_expired", "an approval expired, was handled as such, and that ended the run"
    USER_ABORT = "user_abort", "the user stopped it"
    CALLER_ABORT = "caller_abort", "the calling program cancelled it"
    PLATFORM_ABORT = "platform_abort", "the platform stopped it on purpose"
    LOOP_GUARD = "loop_guard", "a detector saw the run repeat itself"
    RETRY_STORM = "retry_storm", "retries went on without getting anywhere"
    APPROVAL_PENDING = "approval_pending", "it waits for a yes or no"
    INPUT_PENDING = "input_pending", "it waits for an answer"
    EXTERNAL_PENDING = "external_pending", "it waits for a result from another system"
    TOOL_FAILURE = "tool_failure", "a tool failed and nothing recovered it"
    MODEL_FAILURE = "model_failure", "the model or its provider failed"
    CONTENT_FILTER = "content_filter", "the provider's filter cut the answer"
    REFUSAL = "refusal", "the model declined"
    MALFORMED_CALL = "malformed_call", "the model's tool call could not be read"
    QUOTA = "quota", "a quota or rate limit ended it"
    HOST_ERROR = "host_error", "the program around the agent raised"
    SELF_REPORTED_FAILURE = "self_reported_failure", "the agent itself says that it failed"
    PROCESS_LOST = "process_lost", "the process is gone"
    INPUT_REJECTED = "input_rejected", "the input was refused before any step"
    STREAM_TRUNCATED = "stream_truncated", "the stream ended without its last event"
    STREAM_REJECTED = "stream_rejected", "the stream broke its protocol"
    UNKNOWN = "unknown", "no cause was recorded"


FINISHED = frozenset({StopCause.NATURAL, StopCause.EXPLICIT_DONE})
BOUNDED = frozenset(
    {
        StopCause.STEP_LIMIT,
        StopCause.TOKEN_BUDGET,
        StopCause.COST_BUDGET,
        StopCause.TIME_LIMIT,
        StopCause.OUTPUT_CAP,
        StopCause.CONTEXT_LIMIT,
        StopCause.SERVER_TOOL_LIMIT,
        StopCause.GUARDRAIL,
        StopCause.APPROVAL_DENIED,
        StopCause.APPROVAL_EXPIRED,
    }
)
ABORTED = frozenset({StopCause.USER_ABORT, StopCause.CALLER_ABORT, StopCause.PLATFORM_ABORT})
NO_PROGRESS = frozenset({StopCause.LOOP_GUARD, StopCause.RETRY_STORM})
WAITING = frozenset({StopCause.APPROVAL_PENDING, StopCause.INPUT_PENDING, StopCause.EXTERNAL_PENDING})
FAILED = frozenset(
    {
        StopCause.TOOL_FAILURE,
        StopCause.MODEL_FAILURE,
        StopCause.CONTENT_FILTER,
        StopCause.REFUSAL,
        StopCause.MALFORMED_CALL,
        StopCause.QUOTA,
        StopCause.HOST_ERROR,
        StopCause.SELF_REPORTED_FAILURE,
        StopCause.PROCESS_LOST,
        StopCause.INPUT_REJECTED,
    }
)
NOT_KNOWN = frozenset({StopCause.STREAM_TRUNCATED, StopCause.STREAM_REJECTED, StopCause.UNKNOWN})


class Boundary(Word):
    """Where a fact was seen."""

    CALL = "call", "the call that runs the agent, wrapped"
    CALLBACK = "callback", "a callback of the framework"
    EXCEPTION = "exception", "an exception that left the agent"
    EVENT_STREAM = "event_stream", "a stream of events"
    SPAN = "span", "a telemetry span"
    PLATFORM = "platform", "the platform around the process"
    OPERATOR = "operator", "a person or their tool"
    SWEEPER = "sweeper", "a job that closes what looks abandoned"


class LimitKind(Word):
    """What a limit or a stop condition counts."""

    STEPS = "steps", "steps, turns or rounds"
    TOKENS = "tokens", "tokens"
    COST = "cost", "money"
    TIME = "time", "seconds"
    OUTPUT = "output", "tokens of one answer"
    CONTEXT = "context", "tokens in the window"
    TOOL_CALL = "tool_call", "a call of a named tool"
    CUSTOM = "custom", "the application's own condition"


class Scope(Word):
    """What a limit is counted over."""

    ATTEMPT = "attempt", "one execution"
    RUN = "run", "all attempts of a run"
    THREAD = "thread", "all runs that continue each other"


class Sign(Word):
    """What was seen of a run that goes on; the first three are progress, the others are only life."""

    TOOL_RESULT = "tool_result", "a tool returned"
    STATE_CHANGE = "state_change", "durable state changed"
    ARTIFACT = "artifact", "something was made"
    OUTPUT = "output", "bytes came"
    HEARTBEAT = "heartbeat", "the process lives"


USEFUL_SIGNS = frozenset({Sign.TOOL_RESULT, Sign.STATE_CHANGE, Sign.ARTIFACT})


class Finish(Word):
    """A model's finish reason, normalized."""

    STOP = "stop", "nothing more to say"
    TOOL_CALLS = "tool_calls", "asked for tools"
    LENGTH = "length", "cut off by the output limit"
    CONTENT_FILTER = "content_filter", "cut off by a filter"
    REFUSAL = "refusal", "declined"
    ERROR = "error", "failed"
    INTERRUPTED = "interrupted", "the stream ended early"
    PAUSE = "pause", "paused by the provider, to be continued"
    OTHER = "other", "a reason that says nothing"
    UNKNOWN = "unknown", "no reason came"


class FinishSource(Word):
    """Who said the finish reason."""

    PROVIDER = "provider", "the model's provider"
    GATEWAY = "gateway", "a gateway between"
    CLIENT = "client", "the client library"
    DERIVED = "derived", "worked out from other facts"


class ApprovalState(Word):
    """How far an approval got."""

    REQUESTED = "requested", "asked for"
    ROUTED = "routed", "somebody owns it"
    DELIVERED = "delivered", "somebody was shown it"
    UNDELIVERED = "undelivered", "nobody could be shown it"
    DECIDED = "decided", "there is a decision"
    EXPIRED = "expired", "it ran out, and that was handled"
    WITHDRAWN = "withdrawn", "it is no longer asked for"


class ApprovalKind(Word):
    """What is waited for."""

    TOOL_CALL = "tool_call", "a yes to a tool call"
    INPUT_REQUIRED = "input_required", "an answer"
    CONFIRMATION = "confirmation", "a confirmation"
    EXTERNAL = "external", "another system's result"
    SIGN_IN = "sign_in", "a sign-in"


class Decision(Word):
    """What was decided."""

    APPROVED = "approved", "yes"
    DENIED = "denied", "no"
    EDITED = "edited", "yes, with changes"
    ANSWERED = "answered", "an answer was given"
    CANCELLED = "cancelled", "given up"


class Strength(Word):
    """How much an outcome receipt proves; the order here is the order of strength."""

    ACCEPTED = "accepted", "the destination took it"
    DELIVERED = "delivered", "it arrived"
    READ_BACK = "read_back", "it was read back from the destination"
    HUMAN = "human", "a person looked"


class Polarity(Word):
    """What an outcome receipt says."""

    CONFIRMED = "confirmed", "it is there"
    REFUTED = "refuted", "it is not there"
    UNKNOWN = "unknown", "could not be told"


class IssuerType(Word):
    """Who vouches."""

    DESTINATION = "destination", "the system that the work was for"
    VALIDATOR = "validator", "a deterministic check"
    HUMAN = "human", "a person"
    RUN = "run", "the run itself: a claim"


class PreState(Word):
    """What was at the destination before the run."""

    ABSENT = "absent", "nothing"
    DIFFERENT = "different", "something else"
    SAME = "same", "already what the run was to make, so it proves nothing"
    UNKNOWN = "unknown", "nobody looked"


class OutputShape(Word):
    """What came out, by shape only."""

    NONE = "none", "nothing"
    TEXT = "text", "text"
    STRUCTURED = "structured", "data"
    TOOL_MARKUP = "tool_markup", "a tool call written as text"


class DeathReason(Word):
    """How the process went."""

    OOM_KILLED = "oom_killed", "out of memory"
    EVICTED = "evicted", "evicted by the platform"
    CRASHED = "crashed", "ended with an error"
    KILLED = "killed", "killed"
    LOST = "lost", "gone, nobody knows how"


class TriageAction(Word):
    """What people said about a group."""

    ACKNOWLEDGED = "acknowledged", "seen"
    SNOOZED = "snoozed", "hidden for a time or a count"
    RESOLVED = "resolved", "mended in a version"
    ASSIGNED = "assigned", "has an owner"
    REOPENED = "reopened", "back in the inbox"
