"""AG-UI files: every exchange through reader, lifecycle and ledger, and a verdict on each run and thread.

Nothing is kept and nothing is sent. A file is a history of its own: the ids of two recordings often are the same.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypedDict, Unpack

from stopcause.agui import reader, told, verdicts
from stopcause.agui.findings import Finding
from stopcause.agui.given import read_given
from stopcause.agui.ledger import Ledger
from stopcause.agui.lifecycle import Watch
from stopcause.agui.reader import Exchange
from stopcause.agui.scene import NO_REQUEST, Request
from stopcause.agui.values import Begun, RunSeen
from stopcause.agui.verdicts import Judged, ThreadVerdict, Told
from stopcause.agui.words import Mode
from stopcause.classifier.policy import DEFAULT_POLICY, Policy
from stopcause.errors import InputError
from stopcause.receipts.vocabulary import ApprovalKind

_TICK = timedelta(microseconds=1)
_SPAN = timedelta(seconds=1)  # room for so many ticks before now
Seen = Callable[[Begun | RunSeen], None]


class How(TypedDict, total=False):
    """How a history is looked at, where not as usual.

    Attributes:
        also: Who else is to see what the streams say, as it is seen.
        mode: By which contract all of it is read, in place of what each stream declares.
        sent_at: When inputs count as sent where neither they nor their streams tell.
    """

    also: Seen | None
    mode: Mode | None
    sent_at: datetime | None


class Audit(NamedTuple):
    """What a history says: its runs in the order of their ends, its threads in the order of their beginnings.

    `broken_lines`: the numbers of lines that begin an exchange and cannot be read.
    """

    runs: tuple[Judged, ...]
    threads: tuple[ThreadVerdict, ...]
    events: int
    broken_lines: tuple[int, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of all runs and threads."""
        of_runs = (each for run in self.runs for each in (*run.run.findings, *run.link.findings))
        return (*of_runs, *(each for thread in self.threads for each in thread.findings))


def audit_file(path: Path, policy: Policy | None, now: datetime, **how: Unpack[How]) -> Audit:
    """A file of AG-UI; as `audit`.

    Raises:
        InputError: It cannot be read at all; names it.
    """
    with _opened(path) as file:
        return audit_stream(file, str(path), policy, now, **how)


def audit_stream(stream: BinaryIO, name: str, policy: Policy | None, now: datetime, **how: Unpack[How]) -> Audit:
    """The same for what is open already; `name` is what messages call it."""
    with _named(name):
        return audit(reader.read_exchanges(stream), policy, now, **how)


def audit(exchanges: Iterable[Exchange], policy: Policy | None, now: datetime, **how: Unpack[How]) -> Audit:
    """A history: what its streams say, what each run meant for its thread, and a verdict on all of them.

    Args:
        exchanges: Inputs with the streams that answered them, in the order in which they were sent.
        policy: Routes, and thresholds; the built-in ones without it.
        now: As of when waits and deadlines are looked at. Times that the streams do not tell are just before it.
        how: What is not as usual.
    """
    return _Auditor(policy or DEFAULT_POLICY, now, how).audit(exchanges)


class _Auditor:
    def __init__(self, policy: Policy, now: datetime, how: How) -> None:
        self._policy, self._now = policy, now
        self._also, self._mode, self._sent_if_unsaid = how.get("also"), how.get("mode"), how.get("sent_at")
        self._ledger = Ledger(most=sys.maxsize)  # each is judged at the end
        self._told: dict[str, list[Told]] = {}
        self._drafts: dict[tuple[str, str], list[told.Draft]] = {}
        self._events = self._ticks = 0
        self._sent_at: datetime | None = None
        self._request = NO_REQUEST
        self._broken_lines: list[int] = []

    def audit(self, exchanges: Iterable[Exchange]) -> Audit:
        for exchange in exchanges:
            self._watch(exchange)
        judged: list[Judged] = []
        threads: list[ThreadVerdict] = []
        for thread_id, runs in self._told.items():
            of_thread, thread = verdicts.judge_thread(self._ledger.threads[thread_id], runs, self._policy, self._now)
            judged.extend(of_thread)
            threads.append(thread)
        return Audit(tuple(judged), tuple(threads), self._events, tuple(self._broken_lines))

    def _watch(self, exchange: Exchange) -> None:
        if exchange.broken_line is not None:
            self._broken_lines.append(exchange.broken_line)
        asked = read_given(exchange.input) if exchange.input is not None else None
        self._sent_at = exchange.sent_at
        self._request = Request(
            payloads=asked.payloads if asked is not None else None,
            capabilities=exchange.capabilities,
            is_unreadable=exchange.input is not None and asked is None,
        )
        given = asked.input if asked is not None else None
        watch = Watch(given, http_status=exchange.http_status, waits=waiting_tools(self._policy), mode=self._mode)
        for event in exchange.events:
            self._events += 1
            self._see(watch.take(event))
        self._see(watch.close())

    def _see(self, happened: Iterable[Begun | RunSeen]) -> None:
        for each in happened:
            if self._also is not None:
                self._also(each)
            if isinstance(each, Begun):
                link = self._ledger.begun(each._replace(at=self._sent(each, each.at)), self._request)
                self._drafts[each.thread_id, each.run_id] = told.begun_records(each, link, self._source())
            else:
                self._end(each)

    def _end(self, run: RunSeen) -> None:
        link = self._ledger.ended(run._replace(began_at=self._sent(run, run.began_at)), self._request)
        drafts = self._drafts.pop((run.thread_id, run.run_id), [])
        drafts += told.ended_records(run, link, self._source())
        self._told.setdefault(run.thread_id, []).append(Told(run, link, drafts))

    def _sent(self, run: Begun | RunSeen, began_at: datetime | None) -> datetime | None:
        """When its input was sent, by which its answers are judged: in time, or late. None: nobody knows."""
        if run.input is None:
            return began_at
        return self._sent_at or began_at or self._sent_if_unsaid

    def _source(self) -> told.Source:
        """With a clock for streams that tell no time: when their input was sent, or now; a little later each time."""
        self._ticks += 1
        return told.Source(now=(self._sent_at or self._now - _SPAN) + self._ticks * _TICK)


def waiting_tools(policy: Policy) -> Callable[[str], bool]:
    """Which of the client's own tools a policy calls a wait: those that a route for input names."""
    patterns = [
        route.match.tool
        for route in policy.routes
        if route.match.tool is not None and route.match.kind == ApprovalKind.INPUT_REQUIRED
    ]
    return lambda tool: any(fnmatchcase(tool, pattern) for pattern in patterns)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give a stream or a recording that is there") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check what it is and who may read it") from None


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """The reader does not know what its file is called."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
