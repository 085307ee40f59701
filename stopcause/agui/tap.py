"""One place where AG-UI passes: what it knows of the threads there, and the records that it leaves. No HTTP here."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stopcause.agui import told
from stopcause.agui.guard_state import GuardState, StateError
from stopcause.agui.ids import safe
from stopcause.agui.integration import integration
from stopcause.agui.ledger import Ledger
from stopcause.agui.scene import NO_REQUEST, Request
from stopcause.agui.tap_faults import failed, once
from stopcause.agui.tap_passage import Passage
from stopcause.agui.turns import FREES_ITS_ID
from stopcause.agui.values import UNNAMED, Begun, Link, RunSeen, Thread
from stopcause.agui.words import Ending
from stopcause.receipts import capture, process
from stopcause.receipts.faults import fault_of, provider_cause
from stopcause.receipts.vocabulary import Boundary, Kind, Sign, StopCause

if TYPE_CHECKING:
    from stopcause.agui.guard import ResumeGuard

_MOST_TRIES = 10_000  # runs that are known to have been refused, or to have broken off
_NEEDS_A_FILE = "stopcause: answers to what this process never asked; AguiMiddleware(threads=FILE) remembers"
_FILE_FAILS = "stopcause: what AG-UI threads wait for is in memory only: their file fails (%s)"


class Tap:
    """One place where AG-UI passes: a middleware, or a transport.

    Args:
        agent: What the agent is called.
        guard: The consumer's. What it knows of a thread is what is known here.
        threads: A file that keeps what threads wait for; without it, or a guard, this process's memory does.
        integration: What stands between the agent and AG-UI: a package, or `package@version`.
        is_home: Whether the runs live in this process: then its end is theirs.
    """

    def __init__(
        self,
        agent: str | None = None,
        *,
        guard: ResumeGuard | None = None,
        threads: str | Path | None = None,
        integration: str | None = None,
        is_home: bool = False,
    ) -> None:
        self.agent, self.guard, self.threads, self.is_home = agent, guard, threads, is_home
        self.integration = integration
        self._ledger = Ledger()
        self._state = None if threads is None else GuardState(Path(threads))
        self._tries: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()  # of all this: a transport is used from many threads

    def __reduce__(self) -> tuple[Callable[[], Tap], tuple[()]]:
        """A copy has eyes of its own: it knows nothing of what this one saw."""
        seen = functools.partial(Tap, self.agent, guard=self.guard, threads=self.threads)
        return functools.partial(seen, integration=self.integration, is_home=self.is_home), ()

    @functools.cached_property
    def _framework(self) -> dict[str, Any]:
        """Looked up at the first run: by then the integration is loaded."""
        return integration(self.integration, is_here=self.is_home)

    def passage(self) -> Passage | None:
        """One request and its response; None where nobody asks to know of it."""
        try:
            tells = not capture.is_off("agui")
            return Passage(self, tells=tells) if tells or self.guard is not None else None
        except Exception as error:  # noqa: BLE001 - a fault of ours
            failed("passage", error)
            return None

    def begun(self, run: Begun, request: Request = NO_REQUEST, *, tells: bool) -> None:
        """A run was seen to begin."""
        link = self._link_of(run, request)
        has_answers = run.input is not None and bool(run.input.resume)
        if has_answers and not link.answers and self.is_home and self._state is None:
            once("threads", _NEEDS_A_FILE)
        if tells:
            self._tell(run, told.begun_records(run, link, self._source()))

    def went_on(self, run: Begun, sign: Sign, at: datetime) -> None:
        """A run gave a sign of life."""
        self._tell(run, [told.progress_record(run, sign, at)])

    def ended(
        self, run: RunSeen, request: Request = NO_REQUEST, *, tells: bool, error: Exception | None = None
    ) -> None:
        """A run was seen to end, perhaps for the second time; `error` is what broke its stream off, here."""
        link = self._link_of(run, request)
        if tells:
            drafts = told.ended_records(run, link, self._source())
            if error is not None and run.ending is Ending.TRUNCATED:
                drafts = [draft | _raised(error) if draft["kind"] == Kind.STOPPED else draft for draft in drafts]
            self._tell(run, drafts, is_receipt=True)
        if run.ending in FREES_ITS_ID:
            self._count_try(run)

    def _link_of(self, run: Begun | RunSeen, request: Request) -> Link:
        """How a run hangs in its thread, by whoever knows the thread best: the guard, the file, or this process."""
        with self._lock:
            if self.guard is not None:
                before = self.guard.thread(run.thread_id)
                self.guard.saw(run)
                self._ledger.threads[run.thread_id] = before
            elif self._state is not None:
                return self._kept(run, request, self._state)
            return self._step(run, request)

    def _step(self, run: Begun | RunSeen, request: Request) -> Link:
        return self._ledger.begun(run, request) if isinstance(run, Begun) else self._ledger.ended(run, request)

    def _kept(self, run: Begun | RunSeen, request: Request, state: GuardState) -> Link:
        """A step of the thread that the file knows; of the one in memory, where the file fails."""
        links: list[Link] = []

        def change(thread: Thread) -> Thread:
            self._ledger.threads[run.thread_id] = thread
            links.append(self._step(run, request))
            return self._ledger.threads[run.thread_id]

        try:
            state.change(run.thread_id, change)
        except StateError as error:
            once(error.word, _FILE_FAILS, error.word)
        return links[0] if links else self._step(run, request)

    def _count_try(self, run: RunSeen) -> None:
        """Clients send what was refused, or broke off, again under the same id: the next one is another attempt."""
        with self._lock:
            key = run.thread_id, safe(run.run_id)
            self._tries[key] = self._tries.pop(key, 0) + 1
            if len(self._tries) > _MOST_TRIES:
                del self._tries[next(iter(self._tries))]

    def _tell(self, run: Begun | RunSeen, drafts: list[told.Draft], *, is_receipt: bool = False) -> None:
        if run.run_id == UNNAMED:  # nobody could find it, and all such would be one
            return
        for draft in drafts:
            draft.update(self._framework)
            if tries := self._tries.get((run.thread_id, draft["run_id"])):
                draft["attempt"] = tries + 1
        capture.tell(drafts, is_receipt=is_receipt)

    def _source(self) -> told.Source:
        """What holds for records that are made now."""
        now = capture.configured_now()
        return told.Source(
            agent=self.agent, service=now.service, environment=now.environment, labels=now.labels, lease_s=now.lease_s,
            process=process.identity() if self.is_home else None, route_of=now.route_of,
        )  # fmt: skip


def _raised(error: Exception) -> told.Draft:
    """What an error says of an end, by its types."""
    fault = fault_of(error)
    cause = provider_cause(error) or StopCause.HOST_ERROR
    named = {"type": fault.type, "chain": list(fault.chain)} if fault.type else {}
    return {"stop_cause": cause, "boundary": Boundary.EXCEPTION, "error": named}
