"""From records to facts: what is known of one attempt of a run, with its routes applied and its terminals ranked.

`group` sorts records into runs; `facts_of` says what one attempt adds up to. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from stopcause.classifier import approvals, evidence, terminals
from stopcause.classifier.attempt import (
    LINKING,
    AttemptRecords,
    bounds_of,
    cause_of,
    claimed_conditions,
    declared,
    findings_of,
    has_late_signs,
    is_unbounded,
    lease_end,
    progress_at,
    says_progress,
    silence,
    started_at,
    step_limits_of,
    subject_of,
)
from stopcause.classifier.policy import AgentEntry, Contract, Policy, Subject
from stopcause.classifier.verdict import Finding
from stopcause.receipts import model, vocabulary
from stopcause.receipts.vocabulary import Boundary, StopCause

_IN_PROCESS = frozenset({Boundary.CALL, Boundary.CALLBACK, Boundary.EXCEPTION})
_ASKED = frozenset({None, vocabulary.ApprovalState.REQUESTED, vocabulary.ApprovalState.ROUTED})


class Run(NamedTuple):
    """All that was recorded of one run, without repeats, by attempt (in order of its number) and in order."""

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
        """The run that this one takes up (the first, where its attempts name several)."""
        return next(iter(self.links()), None)

    def links(self) -> Iterator[str]:
        """Every run that its records say it takes up."""
        yield from _links(self.records())

    def records(self) -> Iterator[model.RunRecord]:
        """All records of all attempts."""
        for records in self.attempts.values():
            yield from records


def _links(records: Iterable[model.RunRecord]) -> Iterator[str]:
    for record in records:
        if isinstance(record, LINKING) and record.resumes_run_id:
            yield record.resumes_run_id


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
    told: model.RunStopped | None  # the best receipt, whether it stands or not
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
    silence: timedelta | None  # before the end of a stream
    effects: Mapping[str, frozenset[str]]  # subject -> effect keys that were confirmed
    proof: evidence.Proof
    late_signs: bool  # useful signs after the stop
    step_limits: tuple[float, ...]  # those that `steps` can be held against
    bounds: tuple[model.Limit | model.Condition, ...]  # of the whole run: steps, tokens, cost, time
    claimed: tuple[model.Condition, ...]  # the conditions of the kind that the cause claims
    findings: tuple[Finding, ...]
    record_ids: tuple[str, ...]

    @property
    def identity(self) -> LINKING | None:
        """The record that says who it is: the receipt, which stands alone, else the start."""
        return self.told or self.start


def group(records: Iterable[model.Record | model.UnknownRecord]) -> dict[str, Run]:
    """Sort records into runs: repeats dropped, attempts apart, each in its own order. Triage and unknown kinds go.

    Order inside an attempt is by `seq` where every record has one, else by `at`; ties by `record_id`; never by arrival.
    """
    sorted_out: dict[str, dict[int, list[model.RunRecord]]] = {}
    for record in records:
        if isinstance(record, _OF_NO_RUN):
            continue
        attempts = sorted_out.get(record.run_id)
        if attempts is None:
            attempts = sorted_out[record.run_id] = {}
        attempts.setdefault(record.attempt, []).append(record)
    return {
        run_id: Run(run_id, {number: _ordered(attempts[number]) for number in sorted(attempts)})
        for run_id, attempts in sorted_out.items()
    }


_OF_NO_RUN = (model.TriageUpdated, model.UnknownRecord)


def _ordered(records: list[model.RunRecord]) -> tuple[model.RunRecord, ...]:
    if len(records) > 1:
        records = _without_repeats(records)
        records.sort(key=_by_seq if all(map(_has_seq, records)) else _by_time)
    return tuple(terminals.without_superseded(records))


def _without_repeats(records: list[model.RunRecord]) -> list[model.RunRecord]:
    """One of each (`record_id`, `at`); a record without an id is no repeat of anything."""
    ids = {record.record_id for record in records}
    if len(ids) == len(records):
        return records
    unique = {(record.record_id or number, record.at): record for number, record in enumerate(records)}
    return list(unique.values())


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
    """What one attempt adds up to. `resumers` are the runs that take this one up, in any order."""
    own = AttemptRecords(run.attempts[attempt])
    terminal = terminals.choose(own.terminals)
    start, stop, told = own.start, terminal.stop, terminal.told
    limits = step_limits_of(stop, start) if stop else ()
    cause = StopCause.PROCESS_LOST if terminal.died else cause_of(stop, limits)
    subject = subject_of(start, told)
    entry = policy.agent(subject)
    contract_name = entry.contract or declared(start, told, "contract")
    began = started_at(start, told, own.records)
    looks = _looks(run) if own.has_outcomes or len(run.attempts) > 1 else ()
    waits: tuple[approvals.Wait, ...] = ()
    if own.has_approvals or cause in vocabulary.WAITING or approvals.waiting_children(stop):
        resumptions = _resumptions(run, attempt, resumers)
        keys = evidence.effect_keys(looks)
        situation = approvals.Situation(stop, cause, subject, resumptions, keys, policy, now)
        waits = approvals.waits_of(_said(run, attempt), situation)
    skew = policy.defaults.clock_skew
    bounds = bounds_of(told, start)
    contract = policy.contract(contract_name)
    proof = evidence.NO_PROOF
    if looks:
        since = evidence.freshness_start(_first_start(run, began), skew)
        target = declared(start, told, "subject")
        proof = evidence.prove(looks, evidence.Expected(contract, contract_name, target, since))
    return Facts(
        run_id=run.run_id,
        attempt=attempt,
        policy=policy,
        now=now,
        start=start,
        stop=stop,
        died=terminal.died,
        disputed=terminal.disputed,
        told=told,
        cause=cause,
        subject=subject,
        thread_id=declared(start, told, "thread_id"),
        entry=entry,
        contract_name=contract_name,
        contract=contract,
        started_at=began,
        lease_ends=None if own.terminals else lease_end(own, now + skew),
        last_at=own.last_at,
        waits=waits,
        progress_at=progress_at(own.useful, stop, skew),
        progress_known=bool(own.useful) or (stop is not None and says_progress(stop.progress)),
        silence=silence(own, stop) if cause is StopCause.STREAM_TRUNCATED else None,
        effects=evidence.effects(looks) if looks else _NO_EFFECTS,
        proof=proof,
        late_signs=has_late_signs(own.useful, stop, skew),
        step_limits=limits,
        bounds=bounds,
        claimed=claimed_conditions(stop, cause),
        findings=findings_of(own, terminal, now, skew) + _unbounded(start, told, cause, bounds) + proof.findings,
        record_ids=_record_ids(run, attempt),
    )


def _unbounded(
    start: model.RunStarted | None,
    told: model.RunStopped | None,
    cause: StopCause | None,
    bounds: Sequence[model.Limit | model.Condition],
) -> tuple[Finding, ...]:
    """A run that said who it is, and nothing of what would have ended it."""
    said_who = start is not None or told is not None
    return (_UNBOUNDED,) if said_who and is_unbounded(cause, bounds) else ()


_UNBOUNDED = Finding("unbounded")
_NO_EFFECTS: Mapping[str, frozenset[str]] = {}


# Outcomes, of all attempts --------------------------------------------------------------------------------------------


def _looks(run: Run) -> Sequence[evidence.Look]:
    """The outcomes of every attempt. Those inside a receipt were reported by the agent's own process."""
    looks: list[evidence.Look] = []
    targets = {number: _target(records) for number, records in run.attempts.items()}
    of_the_run = next((target for target in targets.values() if target), None)
    for number, records in run.attempts.items():
        target = targets[number] or of_the_run
        for record in records:
            if isinstance(record, model.OutcomeRecorded):
                in_process = record.boundary in _IN_PROCESS
                looks.append(_look(record, record.outcome, target, in_process=in_process))
            elif isinstance(record, model.RunStopped) and record.outcomes:
                looks += [_look(record, outcome, target, in_process=True) for outcome in record.outcomes]
    return looks


def _look(record: model.RunRecord, outcome: model.Outcome, target: str | None, *, in_process: bool) -> evidence.Look:
    return evidence.Look(record.at, record.record_id or "", outcome, in_process, outcome.subject or target)


def _target(records: Sequence[model.RunRecord]) -> str | None:
    return next((record.subject for record in records if isinstance(record, LINKING) and record.subject), None)


def _first_start(run: Run, began: datetime | None) -> datetime | None:
    """When the run began: its first attempt's start, since outcomes are looked at across attempts."""
    starts = [began] if began else []
    for record in run.records():
        if isinstance(record, model.RunStarted):
            starts.append(record.at)
        elif isinstance(record, model.RunStopped) and record.started_at:
            starts.append(record.started_at)
    return min(starts, default=None)


# Approvals, and the runs that take this one up ------------------------------------------------------------------------


def _said(run: Run, attempt: int) -> list[approvals.Said]:
    """What was said about this attempt's approvals.

    A decision may bear another attempt's number; what was said before this attempt asked is about another question.
    """
    own = [said for record in run.attempts[attempt] for said in _said_by(record)]
    if len(run.attempts) == 1:
        return own
    asked: dict[str, datetime] = {}
    for said in own:
        asked.setdefault(said.approval.approval_id, said.at)
    others = [
        said
        for record in run.records()
        if isinstance(record, model.ApprovalUpdated) and record.attempt != attempt
        for said in _said_by(record)
        if (since := asked.get(said.approval.approval_id)) is not None and said.at >= since
    ]
    return sorted(own + others, key=_by_said) if others else own


def _by_said(said: approvals.Said) -> tuple[datetime, int, str]:
    return said.at, said.attempt, said.record_id


def _said_by(record: model.RunRecord) -> list[approvals.Said]:
    told: Sequence[model.Approval] = ()
    if isinstance(record, model.ApprovalUpdated):
        told = (record.approval,)
    elif isinstance(record, model.RunStopped):
        told = record.approvals or ()
    return [approvals.Said(record.at, record.attempt, record.record_id or "", approval) for approval in told]


def _resumptions(run: Run, attempt: int, resumers: Sequence[Run]) -> tuple[approvals.Resumption, ...]:
    """The resuming attempts that got to the gated action, the earliest first.

    What this attempt itself takes up came before it, so it cannot be what answers it: neither the run itself, nor one
    that names this one back.
    """
    before = {run.run_id, *_links(run.attempts[attempt])}
    later = [other for other in resumers if other.run_id not in before]
    found = [(records[0].at, other.run_id, records) for other in later for records in other.attempts.values()]
    found.sort(key=lambda each: each[:2])
    resumed = (_resumption(run.run_id, resumer, records) for _, resumer, records in found)
    return tuple(each for each in resumed if each is not None)


def _resumption(run_id: str, resumer: str, records: Sequence[model.RunRecord]) -> approvals.Resumption | None:
    """A resuming attempt, unless it failed before it got to the gated action.

    What it asks again, because the rest was not answered, waits there and no more here: there is one wait.
    """
    links = [record for record in records if isinstance(record, LINKING) and record.resumes_run_id == run_id]
    if not links:
        return None
    own = AttemptRecords(records)
    terminal = terminals.choose(own.terminals)
    failed = terminal.died or (terminal.stop and terminal.stop.stop_cause in vocabulary.FAILED)
    if failed and not _got_past(own):
        return None
    # The receipt stands alone: what it says that it took up counts before what the start had meant to.
    answers = next((link.answers for link in reversed(links) if link.answers is not None), None)
    return approvals.Resumption(resumer, None if answers is None else frozenset(answers) | _waits_of(terminal.stop))


def _waits_of(stop: model.RunStopped | None) -> frozenset[str]:
    """What a run that stopped to wait asked, by id."""
    if stop is None or stop.stop_cause not in vocabulary.WAITING:
        return frozenset()
    return frozenset(each.approval_id for each in stop.approvals or () if each.state in _ASKED and not each.decision)


def _got_past(own: AttemptRecords) -> bool:
    executed = any(said.approval.executed for record in own.records for said in _said_by(record))
    results = any(isinstance(r, model.RunProgress) and r.sign is vocabulary.Sign.TOOL_RESULT for r in own.records)
    return executed or results or any(map(_had_ended, own.terminals))


def _had_ended(record: model.RunStopped | model.RunDied) -> bool:
    """An event stream said that the run had ended in another way, before its error came late."""
    if isinstance(record, model.RunDied) or record.boundary is not Boundary.EVENT_STREAM:
        return False
    return record.stop_cause not in vocabulary.FAILED | vocabulary.NOT_KNOWN


def _record_ids(run: Run, attempt: int) -> tuple[str, ...]:
    """The attempt's records, and the outcomes and decisions of the others."""
    if len(run.attempts) == 1:
        return tuple([record.record_id or "" for record in run.attempts[attempt]])
    return tuple(r.record_id or "" for r in run.records() if r.attempt == attempt or not _is_own(r))
