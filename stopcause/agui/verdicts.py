"""What a thread waits for, or how it ended: the thread verdict. Derived from its runs, never stored.

The first that matches: (a) STUCK, where three runs end alike, or all that is open has expired; (b) UNCERTAIN, where a
gated call ran without leave or twice; (c) WAITING or WAITING_UNROUTED, by what is open; (d) the latest run's verdict.
Runs are judged by the classifier, from the records that `told` makes of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count, takewhile
from typing import NamedTuple
from uuid import UUID

from stopcause.agui.findings import Finding, found
from stopcause.agui.ids import resume_token, safe
from stopcause.agui.told import Draft
from stopcause.agui.turns import LOOP, asks
from stopcause.agui.values import Link, Raised, RunSeen, Thread
from stopcause.agui.words import UNANSWERED, State
from stopcause.classifier import engine, fold
from stopcause.classifier.approvals import KEEPS_WAITING, Status, Wait
from stopcause.classifier.policy import Policy
from stopcause.classifier.verdict import Missing, Verdict, VerdictName
from stopcause.receipts import mending, model
from stopcause.receipts.vocabulary import Kind

_LINKS = ("resumes_run_id", "answers")
# What a wait lacks, as a finding. Without a deadline it is NO_DEADLINE already, where it was asked.
_LACKS = {
    "UNROUTED": frozenset({Missing.OWNER, Missing.RESUME_TOKEN, Missing.RESUMABLE_TARGET}),
    "OVERDUE": frozenset({Missing.OVERDUE}),
}


class OpenWait(NamedTuple):
    """An interrupt that its thread still waits for. Ids are safe to show, times UTC."""

    interrupt_id: str
    run_id: str
    kind: str
    state: str
    tool: str | None
    owner: str | None
    deadline: datetime | None
    expires_at: datetime | None
    requested_at: datetime | None
    missing: tuple[Missing, ...]
    resume_token: str | None


class ThreadVerdict(NamedTuple):
    """What an operator should believe of a thread. `run_id` is its latest run's; `verdict` is None while that runs."""

    thread_id: str
    verdict: VerdictName | None
    reason: str
    open: tuple[OpenWait, ...]
    run_id: str | None
    findings: tuple[Finding, ...]


class Told(NamedTuple):
    """A run as it ended, how it hangs in its thread, and the records that were made of it."""

    run: RunSeen
    link: Link
    drafts: Sequence[Draft]


class Judged(NamedTuple):
    """A run with the verdict on it; None where it has no id, so that no record could be made."""

    run: RunSeen
    link: Link
    verdict: Verdict | None


def judge_thread(
    thread: Thread, told: Sequence[Told], policy: Policy, now: datetime
) -> tuple[list[Judged], ThreadVerdict]:
    """The verdicts on a thread's runs, and on the thread.

    Args:
        thread: As the ledger has it after the last of them.
        told: Its runs in the order of their ends. One that is told again replaces what it was.
        policy: Routes and thresholds.
        now: As of when deadlines and expiries are looked at.
    """
    last = _last_ends(told)
    asked = last | {each.run.run_id: each for each in reversed(told) if asks(each.run)}
    runs = fold.group(_records(told, last))
    resumers = engine.resumers_by_run(runs.values())
    judged = []
    for name, each in ((safe(run_id), each) for run_id, each in last.items()):
        run = runs.get(name)
        verdict = engine.judge_run(run, policy, now, resumers.get(name, ())) if run is not None else None
        judged.append(Judged(each.run, each.link, verdict))
    asking = runs if all(asked[name] is each for name, each in last.items()) else fold.group(_records(told, asked))
    waits = {name: fold.facts_of(run, run.latest, policy, now).waits for name, run in asking.items()}
    judged = _with_earlier(judged, told) if len(last) < len(told) else judged
    return judged, _Seen(thread, waits, judged).verdict()


def _with_earlier(judged: Sequence[Judged], told: Sequence[Told]) -> list[Judged]:
    """What was found when a run was told before stays found: a stream that broke off, whoever tried again."""
    found: dict[str, dict[Finding, None]] = defaultdict(dict)
    for each in told:
        found[each.run.run_id] |= dict.fromkeys((*each.run.findings, *each.link.findings))
    return [each._replace(link=each.link._replace(findings=_beside(each.run, found))) for each in judged]


def _beside(run: RunSeen, found: Mapping[str, Mapping[Finding, None]]) -> tuple[Finding, ...]:
    return tuple(each for each in found[run.run_id] if each not in run.findings)


def _last_ends(told: Sequence[Told]) -> dict[str, Told]:
    """By run, how it ended last; where it was only restated there are no records, and it ended as before."""
    last: dict[str, Told] = {}
    for each in told:
        if each.drafts or each.run.run_id not in last:
            last[each.run.run_id] = each
    return last


# The records ----------------------------------------------------------------------------------------------------------


def _records(told: Sequence[Told], standing: Mapping[str, Told]) -> Iterator[model.Record]:
    """The records to judge by. Of several receipts of a run one stands: the last, or for what it asked the first.

    A late error leaves the earlier one beside it: that the run had got past what it took up, only that says. And an id
    that was asked for twice has two ends.
    """
    numbers = count(1)
    for each in told:
        last = standing[each.run.run_id]
        stands = last is each or last.run.is_late or _is_reused(last)
        for draft in each.drafts:
            if stands or draft["kind"] != Kind.STOPPED:
                record = _record(_as_it_turned_out(draft, each), next(numbers))
                if record is not None:
                    yield record


def _is_reused(told: Told) -> bool:
    return any(each.name == "RUN_ID_REUSED" for each in told.link.findings)


def _as_it_turned_out(draft: Draft, told: Told) -> Draft:
    """With what the run took up in the end. One that only asks again answered nothing: it takes up nothing here."""
    if "resumes_run_id" not in draft:
        return draft
    if not _brought_answers(told):
        return _without_link(draft)
    return draft | {"answers": [safe(each) for each in told.link.answers]}


def _brought_answers(told: Told) -> bool:
    given = told.run.input
    if given is None:
        return not asks(told.run)
    return bool(given.resume or told.link.decided or given.legacy_answers)


def _without_link(draft: Draft) -> Draft:
    return {name: value for name, value in draft.items() if name not in _LINKS}


def _record(draft: Draft, number: int) -> model.Record | None:
    """As it would be stored: what the wire does not take is mended. Nobody keeps it, so any id will do."""
    kept = mending.kept_of(draft | {"record_id": str(UUID(int=number))})
    return None if kept is None or isinstance(kept.record, model.UnknownRecord) else kept.record


# The thread -----------------------------------------------------------------------------------------------------------


class _Seen:
    """A thread with what the classifier says of its runs."""

    def __init__(self, thread: Thread, waits: Mapping[str, tuple[Wait, ...]], judged: Sequence[Judged]) -> None:
        self._thread, self._judged = thread, judged
        self._waits = {(name, wait.approval_id): wait for name, of_run in waits.items() for wait in of_run}
        self._open = [each for each in thread.raised if each.state in UNANSWERED]
        self._statuses = [self._status(each) for each in self._open]

    def verdict(self) -> ThreadVerdict:
        steps: tuple[Callable[[], tuple[VerdictName | None, str] | None], ...] = (
            self._stuck, self._uncertain, self._waiting,
        )  # fmt: skip
        found = next((result for step in steps if (result := step()) is not None), None)
        name, reason = found or self._latest()
        latest = self._judged[-1].run.run_id if self._judged else None
        return ThreadVerdict(
            thread_id=safe(self._thread.id),
            verdict=name,
            reason=reason,
            open=tuple(self._open_wait(each) for each in self._open),
            run_id=None if latest is None else safe(latest),
            findings=tuple(dict.fromkeys((*self._of_runs(), *self._of_waits()))),
        )

    def _of_runs(self) -> Iterator[Finding]:
        return (finding for each in self._judged for finding in each.link.findings)

    def _of_waits(self) -> Iterator[Finding]:
        """Nobody can answer, or nobody did in time (R90, R92). Ours: no text names owners and due times."""
        lacking = [(each.interrupt.id, self._missing(each)) for each in self._waiting_still()]
        for name, missing in _LACKS.items():
            ids = [interrupt_id for interrupt_id, lacks in lacking if not missing.isdisjoint(lacks)]
            if ids:
                yield found(name, *ids)

    def _waiting_still(self) -> list[Raised]:
        """What is open. One whose expiry was planned for is over, and waits no more."""
        return [each for each, status in zip(self._open, self._statuses, strict=True) if status in KEEPS_WAITING]

    def _wait(self, raised: Raised) -> Wait | None:
        return self._waits.get((safe(raised.run_id), safe(raised.interrupt.id)))

    def _status(self, raised: Raised) -> Status:
        wait = self._wait(raised)
        return Status.OPEN if wait is None else wait.status

    def _stuck(self) -> tuple[VerdictName, str] | None:
        """(a) It goes round, or nobody may answer any more."""
        if self._thread.open() and self._thread.same_set >= LOOP:
            return VerdictName.STUCK, "loop_guard"
        if self._open and self._thread.refusals[0] >= LOOP:
            return VerdictName.STUCK, "retry_storm"
        is_over = bool(self._open) and all(status is Status.OVER for status in self._statuses)
        return (VerdictName.STUCK, "approval_expired") if is_over else None

    def _uncertain(self) -> tuple[VerdictName, str] | None:
        """(b) A gated call ran without leave, or twice, and nothing was asked and answered since."""
        counts = Counter(each.tool_call_id for each in self._thread.results if each.is_event)
        for each in self._still_matter():
            if each.state is State.BYPASSED:
                return VerdictName.UNCERTAIN, "approval_bypassed"
            if each.state is not State.MOVED and counts[each.interrupt.tool_call_id or ""] > 1:
                return VerdictName.UNCERTAIN, "duplicate_effect"
        return None

    def _still_matter(self) -> Iterator[Raised]:
        """What the last run asked whose questions were answered, and what was asked since; the newest first."""
        raised = self._thread.raised
        answered = next((each.run_id for each in reversed(raised) if each.state is State.CLOSED), None)
        newest_first = iter(reversed(raised))
        for each in newest_first:
            yield each
            if each.run_id == answered:
                yield from takewhile(lambda other: other.run_id == answered, newest_first)
                return

    def _waiting(self) -> tuple[VerdictName, str] | None:
        """(c) What is open, and what it lacks."""
        waits = self._waiting_still()
        if not waits:
            return None
        lacking = {name for each in waits for name in self._missing(each)}
        missing = next((name for name in Missing if name in lacking), None)
        if missing is not None:
            return VerdictName.WAITING_UNROUTED, missing
        return VerdictName.WAITING, waits[0].interrupt.kind

    def _latest(self) -> tuple[VerdictName | None, str]:
        """(d) How its latest run ended."""
        verdict = self._judged[-1].verdict if self._judged else None
        return (verdict.verdict, verdict.reason) if verdict is not None else (None, engine.RUNNING)

    def _missing(self, raised: Raised) -> tuple[Missing, ...]:
        """What the classifier finds missing; nothing resumes what nobody asks for any more.

        A record cannot take its token back, and says instead that nothing is there to be resumed: it is the same.
        """
        wait = self._wait(raised)
        known = {*(wait.missing if wait is not None else (Missing.OWNER, Missing.DEADLINE))}
        if raised.state is State.LOST:
            known = known - {Missing.RESUMABLE_TARGET} | {Missing.RESUME_TOKEN}
        return tuple(name for name in Missing if name in known)

    def _open_wait(self, raised: Raised) -> OpenWait:
        wait, asked = self._wait(raised), raised.interrupt
        token = resume_token(self._thread.id, raised.run_id, asked.id)
        return OpenWait(
            interrupt_id=safe(asked.id),
            run_id=safe(raised.run_id),
            kind=asked.kind,
            state=raised.state,
            tool=wait.tool if wait is not None else None,
            owner=wait.owner if wait is not None else asked.owner,
            deadline=wait.deadline if wait is not None else asked.due,
            expires_at=wait.expires_at if wait is not None else asked.expires_at,
            requested_at=wait.requested_at if wait is not None else None,
            missing=self._missing(raised),
            resume_token=None if raised.state is State.LOST else token,
        )
