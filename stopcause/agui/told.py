"""Runs and links as records of the wire format: drafts, which whoever keeps them checks and writes.

    begun_records   run.started
    progress_record run.progress
    ended_records   run.stopped, and what became of the approvals of the run that it takes up

A decision is told once its run got past the question, never when it is only sent: no record takes one back. Ids go
through `ids.safe`, codes are words; a time that no run can have is moved to the next that it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from stopcause import __version__
from stopcause.agui.findings import Finding
from stopcause.agui.ids import name_of, resume_token, safe, safe_or_none, word_or_none
from stopcause.agui.values import NOTHING, Begun, Input, Interrupt, Link, RunSeen
from stopcause.agui.words import Ending, Level
from stopcause.receipts.identifiers import display_name, is_personal
from stopcause.receipts.pseudonyms import pseudonym
from stopcause.receipts.vocabulary import ApprovalState, Boundary, Kind, OutputShape, Sign

Draft = dict[str, Any]

ADAPTER = "stopcause.agui"
FRAMEWORK = "ag-ui"
_MOST_FINDINGS = 32
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
# Every other stream has one; no operator needs it. NO_VERSION is told: it says by which contract the others weigh.
_UNTOLD = frozenset({"INPUT_NO_VERSION", "UNRECOGNISED", "NO_DEADLINE", "NO_BOUNDARY_SNAPSHOT", "REASON_FORM"})


class Source(NamedTuple):
    """What the host says of the agent behind the stream, as `receipts.configuration` has it.

    Attributes:
        route_of: (agent, kind, tool) -> a route with `owner`, `due_s` and `expires_s`, or None.
        now: The caller's clock, for a time that the stream does not tell; the machine's, where there is none.
    """

    agent: str | None = None
    service: str | None = None
    environment: str | None = None
    labels: Mapping[str, str] = NOTHING
    lease_s: float | None = None
    process: Mapping[str, Any] | None = None
    route_of: Callable[[object, object, object], Any] | None = None
    now: datetime | None = None

    def clock(self) -> datetime:
        """What time it is."""
        return self.now or datetime.now(UTC)


def begun_records(run: Begun, link: Link, source: Source) -> list[Draft]:
    """That a run began, and what its answers take up; nothing of one that is restated."""
    if _is_restated(run, link):
        return []
    version = run.input.protocol_version if run.input is not None else None
    draft = _head(Kind.STARTED, run.run_id, run.at or source.clock(), version) | {"seq": 0}
    draft |= _static(run.thread_id, run.input, link, source)
    _put(draft, lease_s=source.lease_s, process=dict(source.process) if source.process else None)
    return [draft]


def progress_record(run: Begun, sign: Sign, at: datetime) -> Draft:
    """That a run is alive, and perhaps got somewhere."""
    return _head(Kind.PROGRESS, run.run_id, at, None) | {"sign": sign}


def ended_records(run: RunSeen, link: Link, source: Source) -> list[Draft]:
    """The receipt, the last sign of life of a run that did not get to its end, and what became of what it took up."""
    if _is_restated(run, link) and not _is_news(run):
        return []
    at = _end_of(run, source)
    return [*_last_sign(run, link, at), _receipt(run, link, source, at), *_taken_up(run, link, at)]


def _is_restated(run: Begun | RunSeen, link: Link) -> bool:
    """Whether it was told before, and nobody asked for it again: history that a later stream begins with."""
    return run.input is None and any(each.name == "RUN_TOLD_AGAIN" for each in link.findings)


def _is_news(run: RunSeen) -> bool:
    """Whether it is another end than the one that was told."""
    return run.is_late or run.is_more or run.ending is Ending.REJECTED


def _end_of(run: RunSeen, source: Source) -> datetime:
    """After its start, whatever the clocks say."""
    at = run.ended_at or run.last_event_at or source.clock()
    return max(at, run.began_at + _TICK) if run.began_at is not None else at


def _last_sign(run: RunSeen, link: Link, at: datetime) -> Iterator[Draft]:
    """So that a stream which fell silent long before it was closed is told from one that was cut off.

    And that a run which failed had got past the question before, which a result of the gated call shows.
    """
    if run.ending is Ending.TRUNCATED and run.idle_s is not None and run.last_event_at is not None:
        yield _sign(run, Sign.OUTPUT, min(run.last_event_at, at))
    if run.ending is Ending.ERROR and link.answers and run.results:
        yield _sign(run, Sign.TOOL_RESULT, min(run.progress_at or at, at))


def _sign(run: RunSeen, sign: Sign, at: datetime) -> Draft:
    return _head(Kind.PROGRESS, run.run_id, at, run.protocol_version) | {"sign": sign, "seq": 1}


# The receipt ----------------------------------------------------------------------------------------------------------


def _receipt(run: RunSeen, link: Link, source: Source, at: datetime) -> Draft:
    draft = {**run.receipt, "seq": 3 if run.is_late else 2}
    draft |= _head(Kind.STOPPED, run.run_id, at, run.protocol_version)
    draft |= _static(run.thread_id, run.input, link, source)
    draft["stop_cause"] = run.cause
    _put(
        draft,
        reason_code=word_or_none(run.reason),
        started_at=_time(run.began_at),
        duration_s=_seconds(run),
        model=_name_told(run.usage.model),
        provider=word_or_none(run.usage.provider),
        steps=run.steps,
        step_unit="step" if run.steps is not None else None,
        tool_calls=_tool_calls(run),
        pending_tool_calls=len(run.pending) if run.ending is not Ending.REFUSED else None,
        usage=_filled({"input_tokens": run.usage.input_tokens, "output_tokens": run.usage.output_tokens}),
        error=_filled({"code": word_or_none(run.error_code), "status": run.http_status if _is_refused(run) else None}),
        progress=_progress(run),
        children=_children(run, link),
        output_shape=OutputShape.TEXT if run.has_output else None,
        approvals=[*_asked(run, link, source, at), *_bypassed(link)] or None,
        findings=_findings((*run.findings, *link.findings), draft.get("findings")),
    )
    return draft


def _tool_calls(run: RunSeen) -> int | None:
    """Calls that began or came back in it; none are known of a stream that was not seen whole and shows none."""
    called = {*run.calls, *(each.tool_call_id for each in run.results)}
    is_whole = run.ending not in (Ending.REFUSED, Ending.TRUNCATED, Ending.REJECTED)
    return len(called) if called or is_whole else None


def _is_refused(run: RunSeen) -> bool:
    return run.ending is Ending.REFUSED


def _seconds(run: RunSeen) -> float | None:
    if run.began_at is None or run.ended_at is None or run.ended_at < run.began_at:
        return None
    return (run.ended_at - run.began_at).total_seconds()


def _progress(run: RunSeen) -> Draft | None:
    """What the stream shows of it; that it shows nothing is only told where something was watched."""
    if _is_refused(run):
        return None
    return _filled({"made": run.made_progress, "last_at": _time(run.progress_at)})


def _children(run: RunSeen, link: Link) -> Draft | None:
    """Subagents. One that is suspended waits by the interrupts of its run, where there are any."""
    waiting = 0 if link.asked else run.subagents.suspended
    counts = {"open": run.subagents.open, "failed": run.subagents.failed, "waiting": waiting}
    return counts if any(counts.values()) else None


def _findings(found: tuple[Finding, ...], before: object) -> list[Draft] | None:
    """What an operator may need of it, beside what the producer's own receipt found."""
    own = [
        _filled({"code": each.code, "where": each.ids[0] if each.ids else None}) or {}
        for each in dict.fromkeys(found)
        if each.level is not Level.NOTE or each.name not in _UNTOLD
    ]
    return [*(before if isinstance(before, list) else ()), *own][:_MOST_FINDINGS] or None


# Approvals ------------------------------------------------------------------------------------------------------------


def _asked(run: RunSeen, link: Link, source: Source, at: datetime) -> Iterator[Draft]:
    """What the run asks for, with what the producer's own receipt says of the same."""
    said = {each["approval_id"]: each for each in run.receipt.get("approvals", ())}
    for each in link.asked:
        yield said.get(safe(each.id), {}) | _approval(run, each, source, at)


def _approval(run: RunSeen, asked: Interrupt, source: Source, at: datetime) -> Draft:
    """An interrupt as an approval; owner and times of the host's route where the producer says none."""
    route = source.route_of(source.agent, asked.kind, asked.tool) if source.route_of is not None else None
    owner = asked.owner or (route.owner if route else None)
    draft: Draft = {
        "approval_id": safe(asked.id),
        "state": ApprovalState.ROUTED if owner else ApprovalState.REQUESTED,
        "kind": asked.kind,
        "requested_at": _time(at),
        "resume_token": resume_token(run.thread_id, run.run_id, asked.id),
    }
    _put(
        draft,
        raised_by=safe_or_none(asked.raised_by),
        tool=_name_told(asked.tool),
        tool_call_id=safe_or_none(asked.tool_call_id),
        owner=safe_or_none(owner),
        deadline=_time(asked.due) or _after(at, asked.due_in_s or (route.due_s if route else None)),
        expires_at=_time(asked.expires_at) or _after(at, route.expires_s if route else None),
        schema_digest=safe_or_none(asked.schema_digest),
    )
    return draft


def _bypassed(link: Link) -> Iterator[Draft]:
    """Gated calls that it ran without leave: its own receipt is voided by them, too."""
    own = {each.id for each in link.asked}
    for _, interrupt_id in link.bypassed:
        if interrupt_id not in own:
            yield {"approval_id": safe(interrupt_id), "executed": True}


def _taken_up(run: RunSeen, link: Link, at: datetime) -> Iterator[Draft]:
    """What became of approvals of earlier runs: decided, executed, or both; or that no answer resumes them."""
    told: dict[tuple[str, str], Draft] = {}
    for each in link.decided:
        news = told.setdefault((each.run_id, each.interrupt_id), {"approval_id": safe(each.interrupt_id)})
        news |= {"state": ApprovalState.DECIDED, "decision": each.decision, "decided_at": _time(at)}
        _put(news, payload_hmac=pseudonym(each.digest) if each.digest else None, payload_valid=each.is_fit)
    for key in (*link.executed, *link.bypassed):
        told.setdefault(key, {"approval_id": safe(key[1])})["executed"] = True
    for key in link.lost:
        told.setdefault(key, {"approval_id": safe(key[1])})["resumable"] = False
    for number, ((run_id, _), news) in enumerate(told.items(), 1):
        yield _head(Kind.APPROVAL, run_id, at + number * _TICK, run.protocol_version) | {"approval": news}


# Parts ----------------------------------------------------------------------------------------------------------------


def _head(kind: Kind, run_id: str, at: datetime, version: str | None) -> Draft:
    draft: Draft = {
        "schema": "stopcause/1",
        "kind": kind,
        "run_id": safe(run_id),
        "at": _time(at),
        "boundary": Boundary.EVENT_STREAM,
        "adapter": ADAPTER,
        "adapter_version": __version__,
        "framework": FRAMEWORK,
    }
    return _put(draft, framework_version=word_or_none(version))


def _static(thread_id: str, given: Input | None, link: Link, source: Source) -> Draft:
    """What the start says, and the receipt says again."""
    resumed = link.resumes_run_id
    return _put(
        {"thread_id": safe(thread_id)},
        agent=_name(source.agent),
        service=_name(source.service),
        environment=safe_or_none(source.environment),
        labels=dict(source.labels) or None,
        parent_run_id=safe_or_none(given.parent_run_id if given is not None else None),
        resumes_run_id=safe_or_none(resumed),
        # Without a list, all that the run asked counts as taken up.
        answers=[safe(each) for each in link.answers] if resumed else None,
    )


def _put(draft: Draft, **fields: object) -> Draft:
    draft |= {name: value for name, value in fields.items() if value is not None}
    return draft


def _filled(draft: Draft) -> Draft | None:
    return {name: value for name, value in draft.items() if value is not None} or None


def _name(text: str | None) -> str | None:
    """A name of the host's."""
    return display_name(text) if text else None


def _name_told(text: str | None) -> str | None:
    """A name of the stream's, where it names nobody."""
    name = name_of(text)
    return None if name is None or is_personal(name) else name


def _time(moment: datetime | None) -> str | None:
    """In UTC, and in a year that a run can have: what never expires does so in 2999."""
    if moment is None:
        return None
    return min(max(moment.astimezone(UTC), _EARLIEST), _LATEST).isoformat().replace("+00:00", "Z")


def _after(moment: datetime, seconds: float | None) -> str | None:
    return _time(min(moment, _LATEST) + timedelta(seconds=min(seconds, 1e9))) if seconds is not None else None
