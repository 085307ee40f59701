"""The seven records of the wire format `stopcause/1`, as frozen values.

No field can hold prose: strings are identifiers or words of a closed list. These models are what a writer may write
(unknown keys are refused); `codec` reads more tolerantly and ends up with the same values.
Times are aware datetimes in UTC. Absent and null are the same.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from stopcause.receipts import identifiers, vocabulary

SCHEMA = "stopcause/1"
MAX_INTEGER = 2**53 - 1  # the largest that every JSON reader keeps exact

TIME_PATTERN = (  # no \d: to some engines that is any digit of Unicode
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
_TIME = re.compile(TIME_PATTERN[1:-1])
_CALENDAR = range(1970, 3000)  # years in UTC; adding a lease or a threshold never leaves the calendar

# Names as POSIX numbers them everywhere; others come as numbers.
SIGNALS = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGABRT": 6,
    "SIGKILL": 9,
    "SIGSEGV": 11,
    "SIGALRM": 14,
    "SIGTERM": 15,
}


def parse_time(value: object) -> datetime:
    """An RFC 3339 time with an offset, in UTC.

    Raises:
        ValueError: A time without offset, a bare number, a day that does not exist, or a year that no run can have.
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return _in_calendar(value)
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        raise ValueError("is no RFC 3339 time with an offset")
    return _moment(value)


def _in_calendar(moment: datetime) -> datetime:
    """The moment in UTC. Its year counts there: what is read has to be readable once it is written in UTC."""
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is no time that exists") from None
    if moment.year not in _CALENDAR:
        raise ValueError("is no time that a run can have")
    return moment


class _TimeSchema:
    """A time on the wire is a string with our pattern: pydantic-core checks that in half the time of `parse_time`."""

    @staticmethod
    def __get_pydantic_core_schema__(_source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.no_info_after_validator_function(_moment, core_schema.str_schema(pattern=TIME_PATTERN))
        either = core_schema.json_or_python_schema(text, core_schema.no_info_plain_validator_function(parse_time))
        return core_schema.custom_error_schema(
            either,
            custom_error_type="no_time",
            custom_error_message="is no time",
            serialization=core_schema.simple_ser_schema("datetime"),
        )


def _moment(text: str) -> datetime:
    return _in_calendar(datetime.fromisoformat(text))


def _no_integer(value: object) -> object:
    """Refuses an integer that was too large for one: as a float it would be rounded without a word."""
    if isinstance(value, int):
        raise PydanticCustomError("integer_too_large", "is too large")
    return value


def _signal(value: object) -> object:
    return SIGNALS.get(value, value) if isinstance(value, str) else value


Identifier = Annotated[str, StringConstraints(pattern=identifiers.IDENTIFIER_PATTERN)]
DisplayName = Annotated[str, StringConstraints(pattern=identifiers.DISPLAY_NAME_PATTERN)]
RecordId = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"),
    AfterValidator(str.lower),
]
TraceId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
SpanId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Time = Annotated[
    datetime,
    _TimeSchema,
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": TIME_PATTERN}),
]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Number = Annotated[float, Field(ge=0)]
Code = Annotated[int, Field(ge=-1024, le=1024)]
Signal = Annotated[
    int,
    BeforeValidator(_signal),
    Field(ge=-1024, le=1024),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": -1024, "maximum": 1024}, {"enum": sorted(SIGNALS)}]}),
]
Scalar = (
    bool
    | Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
    | Annotated[float, BeforeValidator(_no_integer)]
    | Identifier
)
EvidenceValue = Scalar | Annotated[tuple[Scalar, ...], Field(max_length=16)]


# Dataclasses rather than BaseModel: the same validation, and a field is read in 7 ns instead of 40. The classifier
# reads about a hundred of them a run.
_CONFIG = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def _value(cls: type[_T]) -> type[_T]:
    made: Any = dataclass(cls, config=_CONFIG, frozen=True, kw_only=True)
    value: type[_T] = made
    return value


class Value:
    """The base of every value here; frozen, and it knows all its keys."""


@_value
class Finding(Value):
    """Something that the writer itself noticed: a code and a place."""

    code: Identifier
    where: Identifier | None = None


@_value
class Limit(Value):
    """A bound that was set before the run."""

    name: Identifier
    kind: vocabulary.LimitKind
    limit: Number | None = None
    unit: Identifier | None = None
    scope: vocabulary.Scope | None = None


@_value
class Process(Value):
    """Which process runs it, so that its death can be proved. `started` counts clock ticks since boot."""

    boot_id: Identifier | None = None
    pid: Count | None = None
    started: Number | None = None


@_value
class Condition(Value):
    """A stop condition as it was evaluated at the boundary."""

    name: Identifier
    kind: vocabulary.LimitKind
    fired: bool | None = None
    limit: Number | None = None
    observed: Number | None = None


@_value
class FinishReason(Value):
    """The last finish reason: the source's own word, and ours."""

    raw: Identifier | None = None
    normalized: vocabulary.Finish | None = None
    source: vocabulary.FinishSource | None = None


@_value
class ErrorCounts(Value):
    """Errors that ended the run, and errors that a later step recovered."""

    terminal: Count = 0
    recovered: Count = 0


@_value
class Progress(Value):
    """What is known of progress when it stopped."""

    made: bool | None = None
    last_at: Time | None = None
    in_flight_tools: Count | None = None


@_value
class Abort(Value):
    """An abort that was asked for, and whether the loop obeyed."""

    requested_at: Time | None = None
    observed_at: Time | None = None
    actor: Identifier | None = None


@_value
class Approval(Value):
    """Something that only the outside can give. `deadline` is soft and ours, `expires_at` hard and the producer's."""

    approval_id: Identifier
    state: vocabulary.ApprovalState | None = None
    kind: vocabulary.ApprovalKind | None = None
    raised_by: Identifier | None = None
    tool: DisplayName | None = None
    tool_call_id: Identifier | None = None
    requested_at: Time | None = None
    owner: Identifier | None = None
    deadline: Time | None = None
    expires_at: Time | None = None
    resume_token: Identifier | None = None
    delivered_at: Time | None = None
    resumable: bool | None = None
    decision: vocabulary.Decision | None = None
    decided_at: Time | None = None
    actor: Identifier | None = None
    payload_valid: bool | None = None
    schema_digest: Identifier | None = None
    payload_hmac: Identifier | None = None
    executed: bool | None = None


@_value
class Issuer(Value):
    """Who vouches for an outcome."""

    type: vocabulary.IssuerType
    id: Identifier | None = None


@_value
class Outcome(Value):
    """What somebody saw at the destination."""

    outcome_id: Identifier
    contract: Identifier | None = None
    check: Identifier | None = None
    strength: vocabulary.Strength | None = None
    polarity: vocabulary.Polarity | None = None
    issuer: Issuer | None = None
    subject: Identifier | None = None
    observed_at: Time | None = None
    pre_state: vocabulary.PreState | None = None
    effect_key: Identifier | None = None
    evidence: dict[Identifier, EvidenceValue] | None = None


@_value
class Children(Value):
    """How many child runs were open, failed or waiting."""

    open: Count = 0
    failed: Count = 0
    waiting: Count = 0


@_value
class PlanItems(Value):
    """The agent's own checklist."""

    done: Count = 0
    open: Count = 0


@_value
class RunError(Value):
    """An error by its type names; never its text."""

    type: Identifier | None = None
    chain: tuple[Identifier, ...] | None = None
    code: Identifier | None = None
    status: Code | None = None
    tool: DisplayName | None = None


@_value
class Usage(Value):
    """What it used; `cost_usd` in US dollars."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    output_cap: Count | None = None
    cost_usd: Number | None = None


@_value
class _Record(Value):
    schema: Literal["stopcause/1"]
    record_id: RecordId | None = None
    attempt: Annotated[int, Field(ge=1, le=MAX_INTEGER)] = 1
    at: Time
    seq: Count | None = None
    boundary: vocabulary.Boundary | None = None
    adapter: Identifier | None = None
    adapter_version: Identifier | None = None
    framework: Identifier | None = None
    framework_version: Identifier | None = None
    trace_id: TraceId | None = None
    span_id: SpanId | None = None
    sampled: bool | None = None
    dropped: Count | None = None
    findings: tuple[Finding, ...] | None = None
    extra: dict[Identifier, Scalar] | None = None


@_value
class _RunRecord(_Record):
    run_id: Identifier


@_value
class _RunFields(_RunRecord):
    agent: DisplayName | None = None
    agent_version: Identifier | None = None
    service: DisplayName | None = None
    environment: Identifier | None = None
    model: DisplayName | None = None
    provider: Identifier | None = None
    labels: Annotated[dict[Identifier, Identifier], Field(max_length=8)] | None = None
    thread_id: Identifier | None = None
    parent_run_id: Identifier | None = None
    resumes_run_id: Identifier | None = None
    answers: tuple[Identifier, ...] | None = None
    limits: tuple[Limit, ...] | None = None
    loop_policy: Identifier | None = None
    contract: Identifier | None = None
    subject: Identifier | None = None


@_value
class RunStarted(_RunFields):
    """A run begins. `lease_s`: for how many seconds each record of it keeps it alive."""

    kind: Literal[vocabulary.Kind.STARTED] = vocabulary.Kind.STARTED
    lease_s: Number | None = None
    process: Process | None = None


@_value
class RunProgress(_RunRecord):
    """A run is alive. At most one in ten seconds; every one renews the lease."""

    kind: Literal[vocabulary.Kind.PROGRESS] = vocabulary.Kind.PROGRESS
    sign: vocabulary.Sign | None = None
    steps: Count | None = None


@_value
class RunStopped(_RunFields):
    """The stop receipt. It repeats what the start said, because a receipt stands alone."""

    kind: Literal[vocabulary.Kind.STOPPED] = vocabulary.Kind.STOPPED
    stop_cause: vocabulary.StopCause
    started_at: Time | None = None
    duration_s: Number | None = None
    reason_code: Identifier | None = None
    subsequent_causes: tuple[vocabulary.StopCause, ...] | None = None
    conditions: tuple[Condition, ...] | None = None
    finish_reason: FinishReason | None = None
    steps: Count | None = None
    step_unit: Identifier | None = None
    model_calls: Count | None = None
    tool_calls: Count | None = None
    pending_tool_calls: Count | None = None
    tool_errors: ErrorCounts | None = None
    model_errors: ErrorCounts | None = None
    unsafe_steps: Count | None = None
    progress: Progress | None = None
    abort: Abort | None = None
    approvals: tuple[Approval, ...] | None = None
    outcomes: tuple[Outcome, ...] | None = None
    children: Children | None = None
    plan_items: PlanItems | None = None
    error: RunError | None = None
    forced_wrapup: bool | None = None
    output_shape: vocabulary.OutputShape | None = None
    usage: Usage | None = None
    effects_after_stop: Count | None = None
    closed_by: Identifier | None = None


@_value
class ApprovalUpdated(_RunRecord):
    """Something new about an approval."""

    kind: Literal[vocabulary.Kind.APPROVAL] = vocabulary.Kind.APPROVAL
    approval: Approval


@_value
class OutcomeRecorded(_RunRecord):
    """The outcome receipt."""

    kind: Literal[vocabulary.Kind.OUTCOME] = vocabulary.Kind.OUTCOME
    outcome: Outcome


@_value
class RunDied(_RunRecord):
    """Proof of death from the platform."""

    kind: Literal[vocabulary.Kind.DIED] = vocabulary.Kind.DIED
    reason: vocabulary.DeathReason | None = None
    exit_code: Code | None = None
    signal: Signal | None = None


@_value
class TriageUpdated(_Record):
    """What somebody said about a group of verdicts."""

    kind: Literal[vocabulary.Kind.TRIAGE] = vocabulary.Kind.TRIAGE
    group: Identifier
    action: vocabulary.TriageAction | None = None
    until: Time | None = None
    until_count: Count | None = None
    in_version: Identifier | None = None
    owner: Identifier | None = None
    actor: Identifier | None = None
    reason_code: Identifier | None = None
    ticket: Identifier | None = None


@_value
class UnknownRecord(_Record):
    """A kind that this version does not know: kept, shown by `doctor`, not judged. The rest of it is in `extra`."""

    kind: Identifier
    run_id: Identifier | None = None


RunRecord = RunStarted | RunProgress | RunStopped | ApprovalUpdated | OutcomeRecorded | RunDied
Record = RunRecord | TriageUpdated
MODELS: dict[str, type[Record]] = {
    vocabulary.Kind.STARTED: RunStarted,
    vocabulary.Kind.PROGRESS: RunProgress,
    vocabulary.Kind.STOPPED: RunStopped,
    vocabulary.Kind.APPROVAL: ApprovalUpdated,
    vocabulary.Kind.OUTCOME: OutcomeRecorded,
    vocabulary.Kind.DIED: RunDied,
    vocabulary.Kind.TRIAGE: TriageUpdated,
}
