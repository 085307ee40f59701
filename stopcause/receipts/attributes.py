"""What a record is called as an OpenTelemetry event, and the flat attributes that stand beside its line.

Dashboards and alerts rest on these names. Own ones are under `stopcause.`; what OpenTelemetry has a name for keeps
that. Events of verdicts (`stopcause.telemetry.names`) take from here what means the same there. Values are identifiers,
words of a closed list, numbers or type names: what the record holds, and never more. Of waits only the number is here;
who answers them, and the tokens that resume them, are in the line alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Self

from stopcause.receipts import model
from stopcause.receipts.identifiers import is_personal
from stopcause.receipts.vocabulary import Word

if TYPE_CHECKING:
    from stopcause.receipts.codec import AnyRecord

Value = str | bool | int | float | tuple[str, ...]

SCOPE: Final = "stopcause"
_OPERATION: Final = "invoke_agent"
_PLAIN = (str, int, float, bool)
_TYPE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*([.:/][A-Za-z_][A-Za-z0-9_]*)*")


class Attribute(Word):
    """An attribute: its name, what it says, and the place in the record that holds it, where one does."""

    place: str

    def __new__(cls, value: str, meaning: str = "", place: str = "") -> Self:
        """A member from its name, its meaning and its place."""
        word = str.__new__(cls, value)
        word._value_ = value
        word.meaning, word.place = meaning, place
        return word

    # Of every record.
    EVENT = "stopcause.event", "the event's name again, for back ends that drop the field"
    UID = "log.record.uid", "the record's id: the same record sent twice has the same", "record_id"
    RECORD = "stopcause.record", "the record itself, the line that a spool would hold"
    RUN_ID = "stopcause.run.id", "the run", "run_id"
    RUN_ATTEMPT = "stopcause.run.attempt", "which execution of the run, from 1", "attempt"

    # Of the stop receipt.
    CAUSE = "stopcause.stop.cause", "why control flow ended", "stop_cause"
    STOP_REASON = "stopcause.stop.reason", "a code beside the cause", "reason_code"
    LATER = "stopcause.stop.later", "causes that were named after the first", "subsequent_causes"
    FIRED = "stopcause.stop.fired", "names of the stop conditions that fired"
    BOUNDARY = "stopcause.stop.boundary", "where it was seen", "boundary"
    FINISH = "stopcause.stop.finish", "the model's last finish reason, normalized", "finish_reason.normalized"
    FORCED = "stopcause.stop.forced_wrapup", "whether a last turn was forced by a bound", "forced_wrapup"
    STEPS = "stopcause.step.count", "steps that were taken", "steps"
    STEP_UNIT = "stopcause.step.unit", "what a step is", "step_unit"
    MODEL_CALLS = "stopcause.model.calls", "model calls that were made", "model_calls"
    TOOL_CALLS = "stopcause.tool.calls", "tool calls that were made", "tool_calls"
    PENDING = "stopcause.tool.pending", "tool calls that nobody answered", "pending_tool_calls"
    WAITS = "stopcause.wait.count", "what it waits for: how many approvals"
    DURATION = "stopcause.run.duration", "seconds, by the source's own clock", "duration_s"
    PARENT = "stopcause.run.parent", "the run that started it", "parent_run_id"
    RESUMES = "stopcause.run.resumes", "the run that it resumes", "resumes_run_id"
    RUN_SERVICE = "stopcause.run.service", "the service that ran the agent", "service"
    CONTRACT = "stopcause.contract", "what has to be true when it is done", "contract"
    LOOP_POLICY = "stopcause.loop_policy", "the application's policy for its loop", "loop_policy"
    COST = "stopcause.cost.usd", "what it cost, in US dollars", "usage.cost_usd"
    DROPPED = "stopcause.dropped", "records that this process lost just before", "dropped"
    FOUND = "stopcause.receipt.findings", "codes of what the writer itself noticed"
    ADAPTER = "stopcause.adapter.name", "the hook that made it", "adapter"
    ADAPTER_VERSION = "stopcause.adapter.version", "its version", "adapter_version"
    FRAMEWORK = "stopcause.framework.name", "the framework that ran the agent", "framework"
    FRAMEWORK_VERSION = "stopcause.framework.version", "its version", "framework_version"
    AGENT = "gen_ai.agent.name", "the agent", "agent"
    AGENT_VERSION = "gen_ai.agent.version", "its version", "agent_version"
    CONVERSATION = "gen_ai.conversation.id", "the thread, where the application has one", "thread_id"
    OPERATION = "gen_ai.operation.name", f"always {_OPERATION}"
    MODEL = "gen_ai.request.model", "the model", "model"
    PROVIDER = "gen_ai.provider.name", "the model's provider", "provider"
    INPUT_TOKENS = "gen_ai.usage.input_tokens", "tokens that went in", "usage.input_tokens"
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens", "tokens that came out", "usage.output_tokens"
    ERROR_TYPE = "error.type", "the type of the error that ended the run, where it is a type's name"
    ENVIRONMENT = "deployment.environment.name", "where it ran", "environment"


def _places(*names: Attribute) -> tuple[tuple[str, str, str], ...]:
    """Name, field and field inside it ('' for none) of those that stand in the record. Worked out once."""
    parts = ((str(name), *name.place.partition(".")) for name in names if name.place)
    return tuple((name, field, inner) for name, field, _, inner in parts)


_OF_ALL: Final = _places(Attribute.UID, Attribute.RUN_ID, Attribute.RUN_ATTEMPT)
_OF_RECEIPT: Final = _places(*Attribute)


def event_name(record: AnyRecord) -> str:
    """The kind of the record under our own name, as `stopcause.run.stopped`."""
    return f"{SCOPE}.{record.kind}"


def body(record: AnyRecord) -> str:
    """A few words for people who page through events."""
    if isinstance(record, model.RunStopped):
        return f"{record.stop_cause}: {record.agent or 'an agent without a name'}"
    return str(record.kind)


def attributes_of(record: AnyRecord, line: bytes) -> dict[str, Value]:
    """The attributes of a record whose line is `line`.

    Flat facts are for the receipt: they are what is searched and counted, and a receipt stands alone. Every other
    record says which run it belongs to, and is there to be read back.
    """
    made: dict[str, Value] = {Attribute.EVENT.value: event_name(record), Attribute.RECORD.value: line.decode()}
    if isinstance(record, model.RunStopped):
        made |= _held(record, _OF_RECEIPT)
        made |= {str(name): value for name, value in _worked_out(record).items() if value}
    else:
        made |= _held(record, _OF_ALL)
    return made


def _held(record: AnyRecord, places: tuple[tuple[str, str, str], ...]) -> dict[str, Value]:
    """What stands in the record as it is; words of closed lists as the strings that they are."""
    held, made = record.__dict__, {}
    for name, field, inner in places:
        value = held.get(field)
        if inner and value is not None:
            value = getattr(value, inner)
        if value is not None:
            made[name] = value if type(value) in _PLAIN else _plain(value)
    return made


def _worked_out(record: model.RunStopped) -> dict[Attribute, Value | None]:
    return {
        Attribute.FIRED: tuple(each.name for each in record.conditions or () if each.fired),
        Attribute.WAITS: len(record.approvals or ()),
        Attribute.FOUND: tuple(dict.fromkeys(each.code for each in record.findings or ())),
        Attribute.OPERATION: _OPERATION,
        Attribute.ERROR_TYPE: error_type(record),
    }


def error_type(record: model.RunStopped) -> str | None:
    """The type of the error, where it looks like one: a back end makes a facet of it."""
    kind = record.error.type if record.error else None
    return kind if kind and _TYPE_NAME.fullmatch(kind) and not is_personal(kind) else None


def _plain(value: Any) -> Value:  # noqa: ANN401 - a word, or several
    return tuple(map(str, value)) if isinstance(value, tuple) else str(value)
