"""Runs made by hand, for what holds of threads whatever the stream was; and what is told of exchanges.

Short names: they are written in long rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from stopcause.agui.inputs import read_input
from stopcause.agui.ledger import Ledger
from stopcause.agui.lifecycle import Watch
from stopcause.agui.told import Draft, Source, begun_records, ended_records
from stopcause.agui.values import Begun, Entry, Input, Interrupt, Link, Result, RunSeen
from stopcause.agui.verdicts import Told
from stopcause.agui.words import Ending, Mode
from stopcause.receipts.vocabulary import ApprovalKind, StopCause

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
THREAD = "t1"
_CAUSES = {
    Ending.SUCCESS: StopCause.NATURAL,
    Ending.INTERRUPT: StopCause.APPROVAL_PENDING,
    Ending.CANCELLED: StopCause.CALLER_ABORT,
    Ending.ERROR: StopCause.SELF_REPORTED_FAILURE,
    Ending.TRUNCATED: StopCause.STREAM_TRUNCATED,
    Ending.REFUSED: StopCause.INPUT_REJECTED,
    Ending.REJECTED: StopCause.STREAM_REJECTED,
    Ending.UNKNOWN_OUTCOME: StopCause.UNKNOWN,
}


def asked(interrupt_id: str, call: str | None = None, **more: Any) -> Interrupt:  # noqa: ANN401 - any of its fields
    """An interrupt on a tool call."""
    return Interrupt(interrupt_id, ApprovalKind.TOOL_CALL, tool_call_id=call, **more)


def yes(interrupt_id: str, digest: str = "d-yes") -> Entry:
    """An answer that approves."""
    return Entry(interrupt_id, "resolved", digest, has_payload=True, approved=True)


def gives_up(interrupt_id: str) -> Entry:
    """An answer that gives up."""
    return Entry(interrupt_id, "cancelled", "d-absent")


def run(
    run_id: str,
    ending: Ending = Ending.SUCCESS,
    *answers: Entry,
    asks: tuple[Interrupt, ...] = (),
    results: tuple[str | Result, ...] = (),
    thread: str = THREAD,
    knows_input: bool = True,
    **more: Any,  # noqa: ANN401 - any other field of a run
) -> RunSeen:
    """A run that ended; numbered ids begin a minute after each other."""
    began = NOON + timedelta(minutes=int("".join(filter(str.isdigit, run_id)) or 0))
    given = Input(thread, run_id, resume=answers or None)
    return RunSeen(
        thread_id=thread,
        run_id=run_id,
        mode=Mode.SPEC,
        ending=Ending.INTERRUPT if asks and ending is Ending.SUCCESS else ending,
        cause=more.pop("cause", _CAUSES[Ending.INTERRUPT if asks and ending is Ending.SUCCESS else ending]),
        input=more.pop("input", given) if knows_input else None,
        interrupts=asks,
        results=tuple(each if isinstance(each, Result) else Result(each, f"m-{run_id}-{each}") for each in results),
        began_at=more.pop("began_at", began),
        ended_at=more.pop("ended_at", began + timedelta(seconds=10)),
        **more,
    )


def after(*runs: RunSeen) -> tuple[Ledger, list[Link]]:
    """A ledger that saw them, and their links."""
    ledger = Ledger()
    return ledger, [ledger.ended(each) for each in runs]


def states(ledger: Ledger, thread: str = THREAD) -> dict[tuple[str, str], str]:
    """Where each interrupt stands: (run, interrupt) -> state."""
    return {(each.run_id, each.interrupt.id): str(each.state) for each in ledger.threads[thread].raised}


def seen_in(exchange: Mapping[str, Any], waits: Callable[[str], bool] = lambda _: False) -> Iterator[Begun | RunSeen]:
    """What a watch says of an exchange, to its end."""
    watch = Watch(read_input(exchange.get("input")), http_status=exchange.get("http_status"), waits=waits)
    for event in exchange["events"]:
        yield from watch.take(event)
    yield from watch.close()


def drafts_of(exchanges: list[Mapping[str, Any]], source: Source) -> Iterator[Draft]:
    """What a tap tells of a history."""
    ledger = Ledger()
    for seen in (each for exchange in exchanges for each in seen_in(exchange)):
        if isinstance(seen, Begun):
            yield from begun_records(seen, ledger.begun(seen), source)
        else:
            yield from ended_records(seen, ledger.ended(seen), source)


def told_of(runs: Iterable[RunSeen]) -> tuple[Ledger, list[Told]]:
    """A ledger that saw them, and them with their records."""
    ledger, told = Ledger(), []
    for each in runs:
        begins = Begun(each.thread_id, each.run_id, each.mode, each.input, each.began_at)
        drafts = begun_records(begins, ledger.begun(begins), Source())
        link = ledger.ended(each)
        told.append(Told(each, link, [*drafts, *ended_records(each, link, Source())]))
    return ledger, told
