"""How a run's ending becomes a stop cause: tables. And what a producer's own receipt may say beside it.

A code of RUN_ERROR is an open word (spec 1.0, events/lifecycle): those below are what integrations were seen to send.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from stopcause.agui.ids import word_or_none
from stopcause.agui.values import Json
from stopcause.agui.words import Ending
from stopcause.receipts import codec, model
from stopcause.receipts.vocabulary import ABORTED, BOUNDED, FAILED, FINISHED, NO_PROGRESS, WAITING, StopCause

# That of its first versions for what was given up is one of them: a run that fails by it.
_AS_AGENT_FRAMEWORK_SAYS = (
    "CANCELLED", "INVALID", "INVALID_RESPONSE", "MISSING_INTERRUPT", "NOT_FOUND", "REQUIRED",
)  # fmt: skip

_CODES: Mapping[StopCause, tuple[str, ...]] = {
    # The answers, or the input, were refused. Somebody else may be running the thread.
    StopCause.INPUT_REJECTED: (
        "PARTIAL_RESUME",
        "PENDING_INTERRUPTS",
        "UNKNOWN_INTERRUPT",
        "UNKNOWN_INTERRUPT_ID",
        "INTERRUPT_RESUME_ERROR",
        "INTERRUPT_EXPIRED",
        "INVALID_PAYLOAD",
        "INTERRUPT_SESSION_REQUIRED",
        "INTERRUPT_SESSION_CAPABILITY_ERROR",
        "INTERRUPT_RECONCILIATION_ERROR",
        "FRONTEND_TOOL_RESULT_CONFLICT",
        "PENDING_TOOL_CALLS",
        "NO_TOOL_RESULTS",
        *(f"{what}_RESUME_{how}" for what in ("APPROVAL", "WORKFLOW") for how in _AS_AGENT_FRAMEWORK_SAYS),
        "AGUI_CREWAI_NO_PENDING_FEEDBACK",
        "AGUI_CREWAI_RESUME_UNSUPPORTED",
        "THREAD_BUSY",
        "AGUI_CREWAI_CONVERSATION_THREAD_BUSY",
    ),
    StopCause.TIME_LIMIT: (
        "EXECUTION_TIMEOUT",
        "ERR_TIMEOUT",
        "AGUI_CREWAI_FLOW_TIMEOUT",
        "AGUI_CREWAI_UPSTREAM_TIMEOUT",
    ),
    # `abort` is what the reference client makes of a request that its caller aborted.
    StopCause.CALLER_ABORT: ("ABORTED", "ABORT", "AGUI_CREWAI_KICKOFF_CANCELLED"),
}
CAUSE_OF_CODE: Mapping[str, StopCause] = {code: cause for cause, codes in _CODES.items() for code in codes}

# What a producer's receipt may say beside what its stream says. What it may not, is a disagreement.
_MAY_SAY: Mapping[Ending, frozenset[StopCause]] = {
    Ending.SUCCESS: FINISHED | BOUNDED | ABORTED | NO_PROGRESS | FAILED,
    Ending.INTERRUPT: WAITING,
    Ending.CANCELLED: ABORTED | BOUNDED | NO_PROGRESS | FAILED,
}
_IDENTITY = frozenset({"schema", "kind", "record_id", "run_id", "attempt", "at", "seq", "thread_id", "extra"})
_FIELDS = frozenset(each.name for each in dataclasses.fields(model.RunStopped)) - _IDENTITY
_HEAD = {"schema": model.SCHEMA, "kind": "run.stopped", "run_id": "run", "at": "2000-01-01T00:00:00Z"}


def cause_of_code(code: str | None) -> StopCause:
    """Why a run failed that ended with this code."""
    return CAUSE_OF_CODE.get((code or "").upper(), StopCause.SELF_REPORTED_FAILURE)


def cause_beside(ending: Ending, cause: StopCause, claimed: StopCause | None) -> tuple[Ending, StopCause, str | None]:
    """What holds where the stream says one thing and the producer's receipt may say more.

    A receipt that waits makes a run wait which its stream calls a success: a question is never passed over.

    Returns:
        The ending, the cause, and the finding that this is.
    """
    if claimed is None or claimed is cause:
        return ending, cause, None
    if ending is Ending.SUCCESS and claimed in WAITING:
        return Ending.INTERRUPT, claimed, "INTERRUPT_AS_SUCCESS"
    if ending not in _MAY_SAY:
        return ending, cause, None
    if claimed in _MAY_SAY[ending]:
        return ending, claimed, None
    return ending, cause, "RECEIPT_DISAGREES"


# The producer's receipt ----------------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """What `RUN_FINISHED.metadata.stopcause` says: fields of `run.stopped`, each of them valid, none of it content."""

    fields: Mapping[str, Any]
    cause: StopCause | None
    is_whole: bool  # nothing of it had to be left out


NO_CLAIM = Claim({}, None, is_whole=True)


def read_claim(metadata: Json) -> Claim:
    """The producer's own receipt: a record, or some fields of one. What is no valid field is left out."""
    if not isinstance(metadata, dict) or "stopcause" not in metadata:
        return NO_CLAIM
    given = metadata["stopcause"]
    if not isinstance(given, dict) or given.get("kind", _HEAD["kind"]) != _HEAD["kind"]:
        return Claim({}, None, is_whole=False)
    named = {name: value for name, value in given.items() if name in _FIELDS and value is not None}
    fields = _valid(named)
    if fields is not None:
        return Claim(fields, _cause(fields), is_whole=True)
    kept: dict[str, Any] = {}
    for name, value in named.items():
        kept |= _valid({name: value}) or {}
    return Claim(kept, _cause(kept), is_whole=False)


def _valid(fields: Mapping[str, Json]) -> dict[str, Any] | None:
    """These fields as the wire format has them, or None where one of them is none."""
    read = codec.read_value({"stop_cause": StopCause.UNKNOWN, **fields, **_HEAD})
    if not isinstance(read, model.RunStopped):
        return None
    written: dict[str, Any] = json.loads(codec.write_line(read))
    return {name: value for name, value in written.items() if name in fields}


def _cause(fields: Mapping[str, Any]) -> StopCause | None:
    said = word_or_none(fields.get("stop_cause"))
    return StopCause(said) if said is not None else None
