"""What one attempt's own records say, each question one function. Other attempts and other runs are for `fold`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from stopcause.classifier import terminals
from stopcause.classifier.policy import Subject
from stopcause.classifier.verdict import Finding
from stopcause.receipts import model, vocabulary
from stopcause.receipts.vocabulary import LimitKind, StopCause

LINKING = model.RunStarted | model.RunStopped
_LONGEST_S = 1e9  # about 31 years; more would leave the calendar

_CAUSE_OF_KIND = {
    LimitKind.STEPS: StopCause.STEP_LIMIT,
    LimitKind.TOKENS: StopCause.TOKEN_BUDGET,
    LimitKind.COST: StopCause.COST_BUDGET,
    LimitKind.TIME: StopCause.TIME_LIMIT,
    LimitKind.OUTPUT: StopCause.OUTPUT_CAP,
    LimitKind.CONTEXT: StopCause.CONTEXT_LIMIT,
}
_BOUNDING = frozenset({LimitKind.STEPS, LimitKind.TOKENS, LimitKind.COST, LimitKind.TIME})
_KIND_OF_CAUSE = {cause: kind for kind, cause in _CAUSE_OF_KIND.items()}


class AttemptRecords:
    """One pass over the records of an attempt, each sorted to where it is needed."""

    def __init__(self, records: Sequence[model.RunRecord]) -> None:
        self.records = records
        self.start: model.RunStarted | None = None
        self.terminals: list[model.RunStopped | model.RunDied] = []
        self.useful: list[datetime] = []
        self.has_approvals = self.has_outcomes = self.noted = False
        self.last_at = records[0].at
        self.renewed_at: datetime | None = None
        for record in records:
            at = record.at
            self.last_at = max(self.last_at, at)
            if record.findings or record.dropped:
                self.noted = True
            if type(record) is not model.RunDied and (self.renewed_at is None or at > self.renewed_at):
                self.renewed_at = at
            self._take(record)

    def _take(self, record: model.RunRecord) -> None:
        if isinstance(record, model.RunStopped):
            self.terminals.append(record)
            self.has_approvals |= bool(record.approvals)
            self.has_outcomes |= bool(record.outcomes)
        elif isinstance(record, model.RunStarted):
            self.start = self.start or record
        elif isinstance(record, model.OutcomeRecorded):
            self.has_outcomes = True
        elif isinstance(record, model.RunProgress):
            if record.sign in vocabulary.USEFUL_SIGNS:
                self.useful.append(record.at)
        elif isinstance(record, model.ApprovalUpdated):
            self.has_approvals = True
        else:
            self.terminals.append(record)


def subject_of(start: model.RunStarted | None, stop: model.RunStopped | None) -> Subject:
    """Who it is: as the receipt says, which stands alone, else as the start said."""
    said, first = stop or start, start or stop
    if said is None or first is None:
        return Subject()
    return Subject(
        said.agent or first.agent,
        said.agent_version or first.agent_version,
        said.environment or first.environment,
        said.framework or first.framework,
        said.model or first.model,
        said.provider or first.provider,
        said.service or first.service,
    )


def declared(start: model.RunStarted | None, stop: model.RunStopped | None, field: str) -> str | None:
    """What was declared before the run stands over what the receipt says of it."""
    declared = getattr(start, field) if start else None
    return declared or (getattr(stop, field) if stop else None)


def started_at(
    start: model.RunStarted | None, stop: model.RunStopped | None, records: Sequence[model.RunRecord]
) -> datetime | None:
    """When the attempt began, as far as anything says."""
    if start:
        return start.at
    if stop is None:
        return records[0].at
    if stop.started_at:
        return stop.started_at
    return stop.at - timedelta(seconds=min(stop.duration_s, _LONGEST_S)) if stop.duration_s is not None else None


def cause_of(stop: model.RunStopped | None, step_limits: tuple[float, ...]) -> StopCause | None:
    """The cause that the receipt names, unless its own facts say that a bound was behind a natural finish."""
    if stop is None:
        return None
    cause = stop.stop_cause
    if cause not in vocabulary.FINISHED:
        return cause
    if stop.forced_wrapup:
        return _fired_bound(stop) or cause
    if cause is StopCause.NATURAL and stop.pending_tool_calls and stop.steps in step_limits:
        return StopCause.STEP_LIMIT
    return cause


def _fired_bound(stop: model.RunStopped) -> StopCause | None:
    fired = (_CAUSE_OF_KIND.get(each.kind) for each in stop.conditions or () if each.fired)
    return next((cause for cause in fired if cause), None)


def step_limits_of(stop: model.RunStopped, start: model.RunStarted | None) -> tuple[float, ...]:
    """The step limits that the run's own count can be held against: same unit, not over a thread; 0 is no limit."""
    found: list[float] = []
    for limit in (*(stop.limits or ()), *((start and start.limits) or ())):
        comparable = limit.unit == stop.step_unit and limit.scope is not vocabulary.Scope.THREAD
        if limit.kind is LimitKind.STEPS and limit.limit and comparable:
            found.append(limit.limit)
    found += [each.limit for each in stop.conditions or () if each.kind is LimitKind.STEPS and each.limit]
    return tuple(found)


def bounds_of(
    stop: model.RunStopped | None, start: model.RunStarted | None
) -> tuple[model.Limit | model.Condition, ...]:
    """What bounds the run as a whole: limits and conditions on steps, tokens, cost or time; 0 is no limit."""
    said: tuple[model.Limit | model.Condition, ...] = (
        *((stop and stop.conditions) or ()),
        *((stop and stop.limits) or ()),
        *((start and start.limits) or ()),
    )
    return tuple([each for each in said if each.kind in _BOUNDING and each.limit != 0]) if said else ()


def is_unbounded(cause: StopCause | None, bounds: Sequence[model.Limit | model.Condition]) -> bool:
    """Whether nothing that is recorded would have ended the run. A bound that fired was there, declared or not."""
    fired = _KIND_OF_CAUSE.get(cause) if cause else None
    return not bounds and fired not in _BOUNDING


def claimed_conditions(stop: model.RunStopped | None, cause: StopCause | None) -> tuple[model.Condition, ...]:
    """The conditions of the kind that the cause claims."""
    if stop is None or not stop.conditions or cause is None:
        return ()
    kind = _KIND_OF_CAUSE.get(cause)
    return tuple([each for each in stop.conditions if each.kind is kind]) if kind else ()


def lease_end(own: AttemptRecords, latest: datetime) -> datetime | None:
    """Any record but a death renews the lease. By a clock that is ahead of `latest` there is no saying until when."""
    if own.start is None or own.start.lease_s is None or own.renewed_at is None or own.renewed_at > latest:
        return None
    return own.renewed_at + timedelta(seconds=min(own.start.lease_s, _LONGEST_S))


def says_progress(progress: model.Progress | None) -> bool:
    """Whether the receipt says anything of progress, in either direction."""
    return progress is not None and (progress.made, progress.last_at, progress.in_flight_tools) != (None, None, None)


def progress_at(useful: Sequence[datetime], stop: model.RunStopped | None, skew: timedelta) -> datetime | None:
    """When the last useful thing happened; a tool in flight, or progress without a time, counts as at the stop."""
    if stop is None or (stop.progress is None and not useful):
        return max(useful, default=None)
    signs = [at for at in useful if at <= stop.at + skew]
    progress = stop.progress
    if progress is not None:
        if progress.in_flight_tools or (progress.made and progress.last_at is None):
            return stop.at
        if progress.made is not False and progress.last_at:
            signs.append(progress.last_at)
    return max(signs, default=None)


def silence(own: AttemptRecords, stop: model.RunStopped | None) -> timedelta | None:
    """For how long a stream had given no sign when it ended; None where no sign is known, or it is no stream's end.

    A sign is a record, and what the receipt says of progress: bytes count here, since silence is what is asked for. So
    it is only known of a run that was seen to give some: a start, or the last tool's result, says nothing of bytes.
    """
    if stop is None or stop.boundary is not vocabulary.Boundary.EVENT_STREAM:
        return None
    if not any(isinstance(each, model.RunProgress) for each in own.records):
        return None
    signs = [each.at for each in own.records if isinstance(each, _SIGNS) and each.at <= stop.at]
    if stop.progress is not None and stop.progress.last_at is not None:
        signs.append(min(stop.progress.last_at, stop.at))
    return stop.at - max(signs, default=stop.at)


_SIGNS = model.RunStarted | model.RunProgress


def has_late_signs(useful: Sequence[datetime], stop: model.RunStopped | None, skew: timedelta) -> bool:
    """Whether something useful happened after the stop."""
    return bool(useful) and stop is not None and any(at > stop.at + skew for at in useful)


def findings_of(
    own: AttemptRecords, terminal: terminals.Terminal, now: datetime, skew: timedelta
) -> tuple[Finding, ...]:
    """What the records themselves give to say: outranked terminals, a clock ahead of ours, writers' own findings."""
    findings = [Finding("terminal_outranked", cause) for cause in terminal.outranked]
    findings += [Finding("terminal_disputed", told) for told in terminal.disputing]
    if own.last_at > now + skew:
        findings.append(Finding("clock_ahead", "at"))
    for record in own.records if own.noted else ():
        findings += [Finding(each.code, each.where) for each in record.findings or ()]
        if record.dropped:
            findings.append(Finding("records_dropped", record.adapter))
    return tuple(findings)
