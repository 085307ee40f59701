"""A run's notes as records of the wire format. Called behind, on the writer's thread.

Here: what is noted becomes a dict with times and ids. Not here: when a record is due (`run`), and what becomes of a
value that the wire does not take (`mending`).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stopcause import __version__
from stopcause.receipts import causes, ids
from stopcause.receipts.configuration import MOST_LABELS
from stopcause.receipts.identifiers import display_name
from stopcause.receipts.vocabulary import WAITING, Boundary, FinishSource, Kind, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopcause.receipts.causes import Said
    from stopcause.receipts.configuration import Configuration
    from stopcause.receipts.faults import Fault
    from stopcause.receipts.run import Run

Draft = dict[str, Any]

_CLOCK_JUMP_NS = 5_000_000_000  # the plan's clock skew: below it, clocks only disagree
_SECOND = 1_000_000_000
_INTERNAL = ("at_ns", "at_once", "tool")  # of a noted wait: not as they are on the wire
_PLACES = ("/", "~", "./", "../", "file:")
_LIMIT = ("name", "kind", "limit", "unit", "scope")
_CONDITION = ("name", "kind", "fired", "limit", "observed")
_PLAIN = (
    "agent_version", "thread_id", "parent_run_id", "resumes_run_id", "contract", "subject", "provider",
)  # fmt: skip
_CONFIGURED = ("service", "environment", "loop_policy")
_USAGE = ("input_tokens", "output_tokens", "output_cap", "cost_usd")
_COUNTS = (
    "steps",
    "model_calls",
    "tool_calls",
    "pending_tool_calls",
    "unsafe_steps",
    "forced_wrapup",
    "output_shape",
    "closed_by",
)


def started(run: Run, process: Draft) -> Draft:
    """The start record."""
    draft = _head(run, Kind.STARTED, Boundary.CALL, run.started_ns)
    _static(draft, run)
    draft["lease_s"] = run.config.lease_s
    if not run.is_durable:  # else this process's end is not its end
        draft["process"] = process
    return draft


def progressed(run: Run, at_ns: int, sign: str, steps: int | None) -> Draft:
    """That it is alive, and perhaps got somewhere; `steps` as they were then."""
    draft = _head(run, Kind.PROGRESS, Boundary.CALLBACK, at_ns)
    draft["sign"] = sign
    _put(draft, "steps", steps)
    return draft


def executed(run: Run, waiting: str, approval_id: str, at_ns: int) -> Draft:
    """That the gated call of another run has run, in this one."""
    return _about_wait(run, waiting, at_ns, {"approval_id": approval_id, "executed": True})


def decided(run: Run, approval_id: str, decision: str, at_ns: int) -> Draft:
    """What was decided on the wait of another run, as the resuming one brings it."""
    moment = time_of(at_ns)
    told = {"approval_id": approval_id, "state": "decided", "decision": decision, "decided_at": moment}
    return _about_wait(run, run.resumes_run_id, at_ns, told)


def withdrawn(run: Run, waiting: str, approval_id: str, at_ns: int) -> Draft:
    """That nobody can answer the wait of another run any more, because this one goes on in its place."""
    return _about_wait(run, waiting, at_ns, {"approval_id": approval_id, "state": "withdrawn"})


def asked(run: Run, noted: dict[str, Any]) -> Draft:
    """That it waits, and has not stopped."""
    draft = _head(run, Kind.APPROVAL, Boundary.CALL, noted["at_ns"])
    draft["approval"] = _wait(run, noted)
    return draft


def changed(run: Run, approval_id: str, facts: Draft, at_ns: int) -> Draft:
    """What became of such a wait."""
    draft = _head(run, Kind.APPROVAL, Boundary.CALL, at_ns)
    told = {**facts, "decided_at": time_of(facts["decided_at"])} if "decided_at" in facts else facts
    draft["approval"] = {"approval_id": approval_id, **told}
    return draft


def _about_wait(run: Run, waiting: str | None, at_ns: int, approval: Draft) -> Draft:
    draft = _head(run, Kind.APPROVAL, Boundary.CALL, at_ns)
    draft["run_id"] = waiting
    draft["attempt"] = run.resumes_attempt if waiting == run.resumes_run_id else 1
    draft.pop("seq", None)  # as above
    draft["approval"] = approval
    return draft


def outcome(run: Run, fields: Draft, at_ns: int, issuer: str | None = None) -> Draft:
    """What this process saw at the destination: the run's own claim, or a validator's word."""
    draft = _head(run, Kind.OUTCOME, Boundary.CALL, at_ns)
    said = {"type": "run"} if issuer is None else {"type": "validator", "id": issuer}
    draft["outcome"] = {"observed_at": draft["at"], "issuer": said, **fields}
    return draft


def stopped(run: Run) -> Draft:
    """The stop receipt."""
    said = run.final
    draft = _head(run, Kind.STOPPED, said.boundary, max(run.stopped_ns, run.started_ns))
    _static(draft, run)
    if run.started_ns:  # not known where another process began it, and only its end is seen here
        draft["started_at"] = time_of(run.started_ns)
        draft["duration_s"] = round(_took_ns(run) / _SECOND, 6)
    _cause(draft, run, said)
    _told(draft, run)
    _counted(draft, run)
    _ending(draft, run, said)
    if approvals := _approvals(run, said):
        draft["approvals"] = approvals
    if abs((run.stopped_ns - run.started_ns) - _took_ns(run)) > _CLOCK_JUMP_NS:
        draft.setdefault("findings", []).append({"code": "clock_jump"})
    return draft


def _took_ns(run: Run) -> int:
    """By the monotonic clock; two processes have no such clock together."""
    return max(run.stopped_ns - run.started_ns, 0) if run.is_durable else run.stopped_mono - run.started_mono


def broken(run: Run) -> Draft:
    """What is left where the receipt could not be made: that the run is over, and that we do not know why."""
    draft = _head(run, Kind.STOPPED, Boundary.CALL, max(run.stopped_ns, run.started_ns))
    draft["stop_cause"] = StopCause.UNKNOWN
    draft["findings"] = [{"code": "receipt_incomplete"}]
    return draft


def _head(run: Run, kind: Kind, boundary: Boundary, at_ns: int) -> Draft:
    draft = {
        "schema": "stopcause/1",
        "kind": kind,
        "record_id": ids.new_id(time.time_ns()),
        "run_id": run.run_id,
        "attempt": run.attempt,
        "at": time_of(at_ns),
        "seq": run.seq,
        "boundary": boundary,
        "adapter": run.adapter,
        "adapter_version": __version__,
    }
    if not run.is_ours or run.is_durable:
        del draft["seq"]  # in the order of another writer, which we do not know
    _put(draft, "framework", run.framework)
    _put(draft, "framework_version", run.framework_version)
    if run.traced is not None:
        draft["trace_id"], draft["span_id"], draft["sampled"] = run.traced
    return draft


def _static(draft: Draft, run: Run) -> None:
    """What the start says and the receipt says again, because it stands alone."""
    config = run.config
    _copy(draft, run, _PLAIN)
    for name, text in (("agent", run.agent), ("model", _model(run.model))):
        _named(draft, name, text)
    for name in _CONFIGURED:
        _put(draft, name, getattr(config, name))
    if run.labels is not None and not isinstance(run.labels, dict):
        run.find("refused_value", "labels")
        run.labels = None
    if (config.labels or config.label_keys) and (labels := _labels(run, config)):
        draft["labels"] = labels
    if run.limits:
        draft["limits"] = [_filled(_LIMIT, each) for each in run.limits]
    if run.answers:
        draft["answers"] = [approval_id for approval_id, _ in run.answers]
    if run.findings:
        draft["findings"] = [_filled(("code", "where"), each) for each in run.findings]


def _copy(draft: Draft, run: Run, names: tuple[str, ...]) -> None:
    """The attributes that were set; the others are the class's defaults, which are absent."""
    held = run.__dict__
    for name in names:
        if (value := held.get(name)) is not None:
            draft[name] = value


def _named(draft: Draft, name: str, text: object) -> None:
    """A display name, with spaces turned to `_`; what cannot be one is left to `mending`, which finds it."""
    if text is not None:
        draft[name] = (display_name(text) or "") if isinstance(text, str) else text


def _model(name: object) -> object:
    """One that is loaded from a place of this machine's is called by the last part: folders have people's names."""
    is_place = isinstance(name, str) and name.startswith(_PLACES)
    return str(name).rstrip("/").rpartition("/")[2] if is_place else name


def _labels(run: Run, config: Configuration) -> dict[str, object]:
    """The configured ones, and of the run's own those whose keys are allowed."""
    given: Mapping[str, object] = run.labels or {}
    allowed = {key: given[key] for key in config.label_keys if key in given}
    told = {key: str(value) if isinstance(value, int) else value for key, value in allowed.items()}
    return dict([*config.labels.items(), *told.items()][:MOST_LABELS])


def _cause(draft: Draft, run: Run, said: Said) -> None:
    draft["stop_cause"] = said.cause
    _put(draft, "reason_code", said.reason)
    if others := causes.later(run.said, said):
        draft["subsequent_causes"] = list(others)
    if said.fault is not None:
        draft["error"] = _fault(said.fault)


def _fault(fault: Fault) -> Draft:
    draft: Draft = {}
    for name, value in (
        ("type", fault.type),
        ("chain", list(fault.chain)),
        ("code", fault.code),
        ("status", fault.status),
    ):
        _put(draft, name, value)
    _named(draft, "tool", fault.tool)
    return draft


def _told(draft: Draft, run: Run) -> None:
    if run.conditions:
        draft["conditions"] = [_filled(_CONDITION, each) for each in run.conditions]
    if run.finish is not None:
        draft["finish_reason"] = _without_nulls(
            {"raw": run.finish_raw, "normalized": run.finish, "source": run.finish_source or FinishSource.PROVIDER}
        )


def _counted(draft: Draft, run: Run) -> None:
    _copy(draft, run, _COUNTS)
    if run.steps is not None:
        draft["step_unit"] = run.step_unit
    for name, terminal, recovered in (
        ("tool_errors", run.tool_errors_terminal, run.tool_errors_recovered),
        ("model_errors", run.model_errors_terminal, run.model_errors_recovered),
    ):
        if terminal or recovered:
            draft[name] = {"terminal": terminal, "recovered": recovered}
    usage: Draft = {}
    _copy(usage, run, _USAGE)
    if usage:
        draft["usage"] = usage
    if run.children_open > 0 or run.children_failed or run.children_waiting:
        open_ = max(run.children_open, 0)
        draft["children"] = {"open": open_, "failed": run.children_failed, "waiting": run.children_waiting}


def _ending(draft: Draft, run: Run, said: Said) -> None:
    """Progress, and an abort that was asked for or seen."""
    progress: Draft = {}
    _put(progress, "made", run.made_progress)
    if run.progress_ns:
        progress["last_at"] = time_of(min(run.progress_ns, max(run.stopped_ns, run.started_ns)))
    _put(progress, "in_flight_tools", run.in_flight_tools or None)
    if progress:
        draft["progress"] = progress
    abort: Draft = {}
    if run.abort_requested_ns:
        abort["requested_at"] = time_of(run.abort_requested_ns)
    if said.aborted:
        abort["observed_at"] = draft["at"]
    if abort:
        draft["abort"] = abort


def _approvals(run: Run, said: Said) -> list[Draft]:
    """What it waits for; and of a run that went on, what it brought: in one that stops again it would be a wait."""
    waits = [_wait(run, wait) for wait in run.waits]
    if said.cause in WAITING:
        return waits
    return waits + [_answered(run, *answer) for answer in run.answers if answer[1] is not None]


def _answered(run: Run, approval_id: str, decision: str | None) -> Draft:
    draft: Draft = {"approval_id": approval_id, "state": "decided", "decision": decision}
    if approval_id in run.ran:
        draft["executed"] = True
    return draft


def _wait(run: Run, noted: dict[str, Any]) -> Draft:
    """One entry of `approvals`, with what the configured route gives where the host said nothing itself."""
    draft = _without_nulls({name: value for name, value in noted.items() if name not in _INTERNAL})
    if "decided_at" in draft:
        draft["decided_at"] = time_of(draft["decided_at"])
    at = noted["at_ns"]
    draft["requested_at"] = time_of(at)
    _named(draft, "tool", noted["tool"])
    route = run.config.route_of(run.agent, noted["kind"], noted["tool"])
    if route is not None:
        _default(draft, "owner", route.owner)
        _default(draft, "deadline", route.due_s and time_of(at + int(route.due_s * _SECOND)))
        _default(draft, "expires_at", route.expires_s and time_of(at + int(route.expires_s * _SECOND)))
    for name in ("deadline", "expires_at"):
        if isinstance(draft.get(name), datetime):
            draft[name] = draft[name].isoformat()
    draft.setdefault("state", "routed" if "owner" in draft else "requested")
    return draft


def time_of(ns: int) -> str:
    """A moment in nanoseconds as RFC 3339 in UTC."""
    seconds, rest = divmod(ns, _SECOND)
    return f"{_second(seconds)}.{rest // 1000:06d}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _put(draft: Draft, name: str, value: object) -> None:
    if value is not None:
        draft[name] = value


def _default(draft: Draft, name: str, value: object) -> None:
    if value and name not in draft:
        draft[name] = value


def _filled(names: tuple[str, ...], values: tuple[Any, ...]) -> Draft:
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _without_nulls(draft: Draft) -> Draft:
    return {name: value for name, value in draft.items() if value is not None}
