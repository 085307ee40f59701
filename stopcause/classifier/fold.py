"""From records to facts: what is known of one attempt of a run, with its routes applied and its terminals ranked.

`group` sorts records into runs; `facts_of` says what one attempt adds up to. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from stopcause.classifier import approvals, evidence, terminals
from stopcause.classifier.policy import AgentEntry, Contract, Policy, Subject
from stopcause.classifier.verdict import Finding
from stopcause.receipts import model, vocabulary
from stopcause.receipts.vocabulary import LimitKind, Polarity, StopCause

CAUSE_OF_KIND = {
    LimitKind.STEPS: StopCause.STEP_LIMIT,
    LimitKind.TOKENS: StopCause.TOKEN_BUDGET,
    LimitKind.COST: StopCause.COST_BUDGET,
    LimitKind.TIME: StopCause.TIME_LIMIT,
    LimitKind.OUTPUT: StopCause.OUTPUT_CAP,
    LimitKind.CONTEXT: StopCause.CONTEXT_LIMIT,
}
_LINKING = model.RunStarted | model.RunStopped


class Run(NamedTuple):
    """All that was recorded of one run, without repeats, by attempt and in order."""

    run_id: str
    attempts: Mapping[int, tuple[model.RunRecord, ...]]

    @property
    def latest(self) -> int:
        """The newest attempt; one that only outcomes or decisions speak of is none."""
        if len(self.attempts) == 1:
            return next(iter(self.attempts))
        lived = [number for number, records in self.attempts.items() if any(map(_is_own, records))]
        return max(lived or self.attempts)

    @property
    def resumes_run_id(self) -> str | None:
        """The run that this one takes up."""
        records = (record for records in self.attempts.values() for record in records)
        links = (record.resumes_run_id for record in records if isinstance(record, _LINKING))
        return next((link for link in links if link), None)


class Facts(NamedTuple):
    """One attempt, as the contradictions and rules read it. Times are UTC, `None` means not known."""

    run_id: str
    attempt: int
    policy: Policy
    now: datetime
    start: model.RunStarted | None
    stop: model.RunStopped | None  # the terminal that stands, where it is a receipt
    died: model.RunDied | None  # the terminal that stands, where it is a death
    disputed: bool  # two terminals of one rank disagree
    cause: StopCause | None
    entry: AgentEntry
    contract_name: str | None
    contract: Contract | None
    started_at: datetime | None
    lease_ends: datetime | None
    last_at: datetime
    waits: tuple[approvals.Wait, ...]
    progress_at: datetime | None  # the last useful sign
    progress_known: bool
    effects: Mapping[str, frozenset[str]]  # subject -> effect keys that were confirmed
    proof: evidence.Proof
    resolved_by: str | None
    late_signs: bool  # useful signs after the stop
    step_limits: tuple[float, ...]  # those that `steps` can be held against
    findings: tuple[Finding, ...]
    record_ids: tuple[str, ...]

    @property
    def identity(self) -> _LINKING | None:
        """The record that says who it is: the receipt, which stands alone, else the start."""
        return self.stop or self.start

    @property
    def aborted(self) -> bool:
        """Whether an abort was observed; one that nothing more is said of counts as observed."""
        return self.stop is not None and terminals.is_observed_abort(self.stop)


def group(records: Iterable[model.Record | model.UnknownRecord]) -> dict[str, Run]:
    """Sort records into runs: repeats dropped, attempts apart, each in its own order. Triage and unknown kinds go.

    Order inside an attempt is by `seq` where every record has one, else by `at`; ties by `record_id`; never by arrival.
    """
    times: dict[str | None, datetime] = {}
    more_times: set[tuple[str | None, datetime]] = set()  # ids that came with a second time
    runs: dict[str, dict[int, list[model.RunRecord]]] = {}
    for record in records:
        if isinstance(record, _OF_NO_RUN):
            continue
        known = times.get(record.record_id)
        if known is None:
            times[record.record_id] = record.at
        elif known == record.at or (record.record_id, record.at) in more_times:
            continue
        else:
            more_times.add((record.record_id, record.at))
        attempts = runs.get(record.run_id)
        if attempts is None:
            attempts = runs[record.run_id] = {}
        attempts.setdefault(record.attempt, []).append(record)
    return {
        run_id: Run(run_id, {number: _ordered(items) for number, items in attempts.items()})
        for run_id, attempts in runs.items()
    }


_OF_NO_RUN = (model.TriageUpdated, model.UnknownRecord)


def _ordered(records: list[model.RunRecord]) -> tuple[model.RunRecord, ...]:
    if len(records) > 1:
        records.sort(key=_by_seq if all(map(_has_seq, records)) else _by_time)
    return tuple(records)


def _has_seq(record: model.RunRecord) -> bool:
    """Outcomes have no place of their own in an attempt: one without `seq` does not change how it is ordered."""
    return record.seq is not None or isinstance(record, model.OutcomeRecorded)


def _by_seq(record: model.RunRecord) -> tuple[int, str]:
    return record.seq or 0, record.record_id or ""


def _by_time(record: model.RunRecord) -> tuple[datetime, str]:
    return record.at, record.record_id or ""


def _is_own(record: model.RunRecord) -> bool:
    return not isinstance(record, model.OutcomeRecorded | model.ApprovalUpdated)


def facts_of(run: Run, attempt: int, policy: Policy, now: datetime, resumers: Sequence[Run] = ()) -> Facts:
    """What one attempt adds up to. `resumers` are the runs that take this one up."""
    records = run.attempts[attempt]
    own = _Own(records)
    terminal = terminals.choose(own.terminals)
    stop = terminal.record if isinstance(terminal.record, model.RunStopped) else None
    died = terminal.record if isinstance(terminal.record, model.RunDied) else None
    limits = _step_limits(stop, own.start) if stop else ()
    cause = StopCause.PROCESS_LOST if died else _cause(stop, limits)
    subject = _subject(own.start, stop)
    entry = policy.agent(subject)
    contract_name = entry.contract or _declared(own.start, stop, "contract")
    contract = policy.contract(contract_name)
    started_at = _started_at(own.start, stop, records)
    looks = _looks(run) if own.has_outcomes or len(run.attempts) > 1 else ()
    resumptions = _resumptions(resumers) if resumers else ()
    proof, effects = evidence.NO_PROOF, _NO_EFFECTS
    if looks:
        target = _declared(own.start, stop, "subject")
        since = evidence.freshness_start(_first_start(run, started_at), policy.defaults.clock_skew)
        proof = evidence.prove(looks, evidence.Expected(contract, contract_name, target, since))
        effects = _effects(looks, target)
    waits: tuple[approvals.Wait, ...] = ()
    children_waiting = stop is not None and stop.children is not None and stop.children.waiting > 0
    if own.has_approvals or children_waiting or cause in vocabulary.WAITING:
        situation = approvals.Situation(
            cause=cause,
            stopped_at=stop.at if stop else None,
            aborted=stop is not None and terminals.is_observed_abort(stop),
            children_waiting=children_waiting,
            subject=subject,
            resumptions=resumptions,
            proven_calls=_proven_calls(looks),
            policy=policy,
            now=now,
        )
        waits = approvals.waits_of(_said(run, attempt), situation)
    return Facts(
        run_id=run.run_id,
        attempt=attempt,
        policy=policy,
        now=now,
        start=own.start,
        stop=stop,
        died=died,
        disputed=terminal.disputed,
        cause=cause,
        entry=entry,
        contract_name=contract_name,
        contract=contract,
        started_at=started_at,
        lease_ends=_lease_end(own),
        last_at=own.last_at,
        waits=waits,
        progress_at=_progress_at(own.useful, stop),
        progress_known=bool(own.useful) or (stop is not None and _says_progress(stop.progress)),
        effects=effects,
        proof=proof,
        resolved_by=resumptions[0].run_id if resumptions else None,
        late_signs=_has_late_signs(own.useful, stop, policy.defaults.clock_skew),
        step_limits=limits,
        findings=_findings(own, terminal, now, policy.defaults.clock_skew) + proof.findings,
        record_ids=_record_ids(run, attempt),
    )


_NO_EFFECTS: Mapping[str, frozenset[str]] = {}


class _Own:
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


def _subject(start: model.RunStarted | None, stop: model.RunStopped | None) -> Subject:
    """Who it is: as the receipt says, which stands alone, else as the start said."""
    if stop is None or start is None:
        only = stop or start
        return _subject_of(only) if only else Subject()
    said, first = _subject_of(stop), _subject_of(start)
    return said if None not in said[:7] else Subject(*(mine or other for mine, other in zip(said, first, strict=True)))


def _subject_of(record: _LINKING) -> Subject:
    return Subject(
        record.agent,
        record.agent_version,
        record.environment,
        record.framework,
        record.model,
        record.provider,
        record.service,
    )


def _declared(start: model.RunStarted | None, stop: model.RunStopped | None, field: str) -> str | None:
    """What was declared before the run stands over what the receipt says of it."""
    declared = getattr(start, field) if start else None
    return declared or (getattr(stop, field) if stop else None)


def _started_at(
    start: model.RunStarted | None, stop: model.RunStopped | None, records: Sequence[model.RunRecord]
) -> datetime | None:
    if start:
        return start.at
    if stop is None:
        return records[0].at
    if stop.started_at:
        return stop.started_at
    return stop.at - timedelta(seconds=min(stop.duration_s, 1e9)) if stop.duration_s is not None else None


def _first_start(run: Run, started_at: datetime | None) -> datetime | None:
    """When the run began: its first attempt's start, since outcomes are looked at across attempts."""
    starts = [r.at for records in run.attempts.values() for r in records if isinstance(r, model.RunStarted)]
    return min((*starts, started_at) if started_at else starts, default=None)


def _cause(stop: model.RunStopped | None, step_limits: tuple[float, ...]) -> StopCause | None:
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
    fired = (CAUSE_OF_KIND.get(each.kind) for each in stop.conditions or () if each.fired)
    return next((cause for cause in fired if cause), None)


def _step_limits(stop: model.RunStopped, start: model.RunStarted | None) -> tuple[float, ...]:
    """The step limits that the run's own count can be held against: same unit, not over a thread; 0 is no limit."""
    limits = stop.limits or (start.limits if start else None)
    if not limits and not stop.conditions:
        return ()
    from_limits = [
        each.limit
        for each in limits or ()
        if each.kind is LimitKind.STEPS and each.unit == stop.step_unit and each.scope is not vocabulary.Scope.THREAD
    ]
    from_conditions = [each.limit for each in stop.conditions or () if each.kind is LimitKind.STEPS]
    return tuple([limit for limit in from_limits + from_conditions if limit])


def _said(run: Run, attempt: int) -> list[approvals.Said]:
    """What was said about this attempt's approvals; a decision may bear another attempt's number."""
    own = [said for record in run.attempts[attempt] for said in _said_by(record)]
    if len(run.attempts) == 1:
        return own
    names = {said.approval.approval_id for said in own}
    foreign = [
        said
        for number, records in run.attempts.items()
        if number != attempt
        for record in records
        if isinstance(record, model.ApprovalUpdated)
        for said in _said_by(record)
        if said.approval.approval_id in names
    ]
    return own + sorted(foreign, key=lambda said: said.at)


def _said_by(record: model.RunRecord) -> list[approvals.Said]:
    if isinstance(record, model.ApprovalUpdated):
        return [approvals.Said(record.at, record.approval)]
    if isinstance(record, model.RunStopped):
        return [approvals.Said(record.at, each) for each in record.approvals or ()]
    return []


def _looks(run: Run) -> Sequence[evidence.Look]:
    """The outcomes of every attempt. Those inside a receipt were reported by the agent's own process."""
    looks: list[evidence.Look] = []
    for records in run.attempts.values():
        for record in records:
            name = record.record_id or ""
            if isinstance(record, model.OutcomeRecorded):
                in_process = record.boundary is vocabulary.Boundary.CALL
                looks.append(evidence.Look(record.at, name, record.outcome, in_process))
            elif isinstance(record, model.RunStopped) and record.outcomes:
                looks += [evidence.Look(record.at, name, each, in_process=True) for each in record.outcomes]
    return looks


def _proven_calls(looks: Sequence[evidence.Look]) -> frozenset[str]:
    confirmed = (look.outcome for look in looks if look.outcome.polarity is Polarity.CONFIRMED)
    return frozenset(each.effect_key for each in confirmed if each.effect_key)


def _effects(looks: Sequence[evidence.Look], target: str | None) -> Mapping[str, frozenset[str]]:
    effects: dict[str, frozenset[str]] = {}
    for look in looks:
        subject = look.outcome.subject or target
        if subject and look.outcome.effect_key and look.outcome.polarity is Polarity.CONFIRMED:
            effects[subject] = effects.get(subject, frozenset()) | {look.outcome.effect_key}
    return effects


def _resumptions(resumers: Sequence[Run]) -> tuple[approvals.Resumption, ...]:
    found = [_resumption(run, number) for run in resumers for number in run.attempts]
    return tuple(each for each in found if each is not None)


def _resumption(run: Run, attempt: int) -> approvals.Resumption | None:
    """A resuming attempt, unless it failed before it got to the gated action."""
    own = _Own(run.attempts[attempt])
    links = [record for record in own.records if isinstance(record, _LINKING)]
    if not any(link.resumes_run_id for link in links):
        return None
    terminal = terminals.choose(own.terminals).record
    failed = isinstance(terminal, model.RunDied) or (
        isinstance(terminal, model.RunStopped) and terminal.stop_cause in vocabulary.FAILED
    )
    if failed and not _got_past(own):
        return None
    answers = next((link.answers for link in links if link.answers is not None), None)
    return approvals.Resumption(run.run_id, None if answers is None else frozenset(answers))


def _got_past(own: _Own) -> bool:
    executed = any(said.approval.executed for record in own.records for said in _said_by(record))
    results = any(isinstance(r, model.RunProgress) and r.sign is vocabulary.Sign.TOOL_RESULT for r in own.records)
    return executed or results


def _lease_end(own: _Own) -> datetime | None:
    """Any record but a death renews the lease."""
    if own.start is None or own.start.lease_s is None or own.renewed_at is None:
        return None
    return own.renewed_at + timedelta(seconds=min(own.start.lease_s, 1e9))


def _says_progress(progress: model.Progress | None) -> bool:
    return progress is not None and (progress.made is not None or progress.in_flight_tools is not None)


def _progress_at(useful: Sequence[datetime], stop: model.RunStopped | None) -> datetime | None:
    """When the last useful thing happened; a tool in flight, or progress without a time, counts as at the stop."""
    if stop is None or (stop.progress is None and not useful):
        return max(useful, default=None)
    signs = [at for at in useful if at <= stop.at]
    progress = stop.progress
    if progress is not None:
        if progress.in_flight_tools or (progress.made and progress.last_at is None):
            return stop.at
        if progress.made is not False and progress.last_at:
            signs.append(progress.last_at)
    return max(signs, default=None)


def _has_late_signs(useful: Sequence[datetime], stop: model.RunStopped | None, skew: timedelta) -> bool:
    return bool(useful) and stop is not None and any(at > stop.at + skew for at in useful)


def _findings(own: _Own, terminal: terminals.Terminal, now: datetime, skew: timedelta) -> tuple[Finding, ...]:
    findings = [Finding("terminal_outranked", cause) for cause in terminal.outranked]
    if own.last_at > now + skew:
        findings.append(Finding("clock_ahead", "at"))
    for record in own.records if own.noted else ():
        findings += [Finding(each.code, each.where) for each in record.findings or ()]
        if record.dropped:
            findings.append(Finding("records_dropped", record.adapter))
    return tuple(findings)


def _record_ids(run: Run, attempt: int) -> tuple[str, ...]:
    """The attempt's records, and the outcomes and decisions of the others."""
    if len(run.attempts) == 1:
        return tuple([record.record_id or "" for record in run.attempts[attempt]])
    return tuple(
        record.record_id or ""
        for number, records in run.attempts.items()
        for record in records
        if number == attempt or not _is_own(record)
    )
