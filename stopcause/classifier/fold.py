"""From records to facts: what is known of one attempt of a run, with its routes applied and its terminals ranked.

`group` sorts records into runs; `facts_of` says what one attempt adds up to. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from stopcause.classifier import approvals, evidence, terminals
from stopcause.classifier.attempt import (
    LINKING,
    AttemptRecords,
    cause_of,
    claimed_conditions,
    declared,
    findings_of,
    has_late_signs,
    lease_end,
    progress_at,
    says_progress,
    started_at,
    step_limits_of,
    subject_of,
)
from stopcause.classifier.policy import AgentEntry, Contract, Policy, Subject
from stopcause.classifier.verdict import Finding
from stopcause.receipts import model, vocabulary
from stopcause.receipts.vocabulary import StopCause


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
        links = (record.resumes_run_id for record in records if isinstance(record, LINKING))
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
    subject: Subject
    thread_id: str | None
    entry: AgentEntry
    contract_name: str | None
    contract: Contract | None
    started_at: datetime | None
    lease_ends: datetime | None  # only of an open run
    last_at: datetime
    waits: tuple[approvals.Wait, ...]
    progress_at: datetime | None  # the last useful sign
    progress_known: bool
    effects: Mapping[str, frozenset[str]]  # subject -> effect keys that were confirmed
    proof: evidence.Proof
    resolved_by: str | None
    late_signs: bool  # useful signs after the stop
    step_limits: tuple[float, ...]  # those that `steps` can be held against
    claimed: tuple[model.Condition, ...]  # the conditions of the kind that the cause claims
    findings: tuple[Finding, ...]
    record_ids: tuple[str, ...]

    @property
    def identity(self) -> LINKING | None:
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
    own = AttemptRecords(run.attempts[attempt])
    terminal = terminals.choose(own.terminals)
    start, stop, died = own.start, terminal.stop, terminal.died
    limits = step_limits_of(stop, start) if stop else ()
    cause = StopCause.PROCESS_LOST if died else cause_of(stop, limits)
    subject = subject_of(start, stop)
    entry = policy.agent(subject)
    contract_name = entry.contract or declared(start, stop, "contract")
    began = started_at(start, stop, own.records)
    looks = _looks(run) if own.has_outcomes or len(run.attempts) > 1 else ()
    contract = policy.contract(contract_name)
    skew = policy.defaults.clock_skew
    proof, effects = evidence.NO_PROOF, _NO_EFFECTS
    if looks:
        target = declared(start, stop, "subject")
        since = evidence.freshness_start(_first_start(run, began), skew)
        proof = evidence.prove(looks, evidence.Expected(contract, contract_name, target, since))
        effects = evidence.effects(looks, target)
    resumptions = _resumptions(resumers) if resumers else ()
    waits: tuple[approvals.Wait, ...] = ()
    if own.has_approvals or cause in vocabulary.WAITING or approvals.children_wait(stop):
        keys = evidence.effect_keys(looks)
        situation = approvals.Situation(stop, cause, subject, resumptions, keys, policy, now)
        waits = approvals.waits_of(_said(run, attempt), situation)
    return Facts(
        run_id=run.run_id,
        attempt=attempt,
        policy=policy,
        now=now,
        start=start,
        stop=stop,
        died=died,
        disputed=terminal.disputed,
        cause=cause,
        subject=subject,
        thread_id=declared(start, stop, "thread_id"),
        entry=entry,
        contract_name=contract_name,
        contract=contract,
        started_at=began,
        lease_ends=None if own.terminals else lease_end(own),
        last_at=own.last_at,
        waits=waits,
        progress_at=progress_at(own.useful, stop),
        progress_known=bool(own.useful) or (stop is not None and says_progress(stop.progress)),
        effects=effects,
        proof=proof,
        resolved_by=resumptions[0].run_id if resumptions else None,
        late_signs=has_late_signs(own.useful, stop, skew),
        step_limits=limits,
        claimed=claimed_conditions(stop, cause),
        findings=findings_of(own, terminal, now, skew) + proof.findings,
        record_ids=_record_ids(run, attempt),
    )


_NO_EFFECTS: Mapping[str, frozenset[str]] = {}


def _first_start(run: Run, started_at: datetime | None) -> datetime | None:
    """When the run began: its first attempt's start, since outcomes are looked at across attempts."""
    starts = [r.at for records in run.attempts.values() for r in records if isinstance(r, model.RunStarted)]
    return min((*starts, started_at) if started_at else starts, default=None)


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


def _resumptions(resumers: Sequence[Run]) -> tuple[approvals.Resumption, ...]:
    found = [_resumption(run, number) for run in resumers for number in run.attempts]
    return tuple(each for each in found if each is not None)


def _resumption(run: Run, attempt: int) -> approvals.Resumption | None:
    """A resuming attempt, unless it failed before it got to the gated action."""
    own = AttemptRecords(run.attempts[attempt])
    links = [record for record in own.records if isinstance(record, LINKING)]
    if not any(link.resumes_run_id for link in links):
        return None
    terminal = terminals.choose(own.terminals)
    failed = terminal.died or (terminal.stop and terminal.stop.stop_cause in vocabulary.FAILED)
    if failed and not _got_past(own):
        return None
    answers = next((link.answers for link in links if link.answers is not None), None)
    return approvals.Resumption(run.run_id, None if answers is None else frozenset(answers))


def _got_past(own: AttemptRecords) -> bool:
    executed = any(said.approval.executed for record in own.records for said in _said_by(record))
    results = any(isinstance(r, model.RunProgress) and r.sign is vocabulary.Sign.TOOL_RESULT for r in own.records)
    return executed or results


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
