"""One run of an agent: how it begins and how it ends. What is noted in between is in `notes` and `waits`.

Two entries go to the writer's queue, at the start and at the end; everything that takes time is done behind. Nothing
here raises into the host or blocks.
"""

from __future__ import annotations

import contextlib
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from opentelemetry import trace

from stopcause.receipts import ids
from stopcause.receipts.attributes import Attribute
from stopcause.receipts.causes import BY_FINISH, Rank, Said, final
from stopcause.receipts.faults import is_time_out
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.notes import harmless
from stopcause.receipts.replayed import inner_id
from stopcause.receipts.vocabulary import FAILED, WAITING, Boundary, StopCause
from stopcause.receipts.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Token
    from types import TracebackType

    from stopcause.receipts.configuration import Configuration
    from stopcause.receipts.replayed import Replayed
    from stopcause.receipts.writer import Writer

current: ContextVar[Run | None] = ContextVar("stopcause_run", default=None)

_IDS = frozenset({"thread_id", "parent_run_id"})
_FACTS = frozenset(
    {
        "attempt", "thread_id", "parent_run_id", "agent_version", "model", "provider", "labels", "contract", "subject",
        "step_unit",
    }
)  # fmt: skip


class Run(Waits):
    """One run. `capture.run` makes it, a hook through `capture.begin`.

    Used as a sync or async context manager, it starts and stops with the block.
    """

    _run_id: str | None = None
    _adopted: bool = False
    _is_adopting: bool = False
    _own_bounds: tuple[tuple[tuple[Any, ...], ...], ...] = ((), ())  # the host's own limits and conditions
    _goes_on: bool = False
    _parent: Run | None = None
    _waiting: frozenset[str | None] = frozenset()  # children that stopped to wait, and were not resumed here
    _token: Token[Run | None] | None = None
    _span: trace.Span | None = None
    _inner_id: str | None = None
    _inner_runs: int = 0

    def __init__(
        self, writer: Writer | Replayed | None, config: Configuration, agent: str | None = None, attempt: int = 1
    ) -> None:
        self.writer = writer
        self.config = config
        self.agent = agent
        self.attempt = attempt
        self.epoch = writer.epoch if writer else 0

    @property
    def run_id(self) -> str:
        """Its id, a UUID in order of time unless the host gave one. Made when it is first asked for."""
        made = self._run_id
        if made is None:
            # One atomic step: the host's thread and the writer's may both ask first.
            made = self.__dict__.setdefault("_run_id", self._inner_id or ids.new_id(self.started_ns or time.time_ns()))
        return made

    def as_of(self, held: dict[str, Any]) -> Run:
        """This run as it was when its attributes were copied, with the next place in its order. For the writer."""
        self.seq += 1
        held |= {"_run_id": self.run_id, "seq": self.seq}
        seen = Run.__new__(Run)
        seen.__dict__ = held
        return seen

    def identify(self, run_id: object) -> bool:
        """Takes the host's or the framework's own id of it, before `start`. False where it has one, or that is none."""
        if self._run_id is not None or self.is_started or not isinstance(run_id, str) or not run_id:
            return False
        self._run_id = run_id
        return True

    # Its life ---------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """It begins. Once; what the start record says is taken from it as it is then."""
        if not self.is_started:
            self.is_started = True
            try:
                self._begin()
            except Exception:  # noqa: BLE001 - a tracer of anybody's, or a fault of ours
                self.find("receipt_incomplete", "start")
        return self

    def _begin(self) -> None:
        self.started_ns = time.time_ns() if self.replayed is None else self.replayed.now_ns()
        self.started_mono = time.monotonic_ns()
        try:
            span = trace.get_current_span()
            if span is not trace.INVALID_SPAN:
                self._span = span
            if self._parent is not None:
                self._parent.children_open += 1
        finally:
            if self.writer is not None:
                self.epoch = self.writer.epoch  # it may have been made before a fork
                self.writer.started(self)

    def go_on_here(self, started_ns: int) -> Self:
        """A durable run that another process has begun, and has recorded that: it ends in this one, perhaps.

        Args:
            started_ns: When it began, as its engine says.
        """
        self.is_durable, self.is_started, self.started_ns = True, True, started_ns
        if self.writer is not None:
            self.writer.follows(self)
        return self

    def close(self) -> None:
        """It is over. Once; what was said until here decides. A run that a fork copied is the parent's to close."""
        if self.is_closed or not self.is_started:
            return
        self.is_closed = True
        try:
            self._end()
        except Exception:  # noqa: BLE001 - a fault of ours
            self.find("receipt_incomplete", "close")

    def _end(self) -> None:
        self.stopped_ns = time.time_ns()
        self.stopped_mono = time.monotonic_ns()
        try:
            if self._parent is not None:
                self._tell_parent(self._parent)
            if self._span is not None:
                self._mark(self._span)
        finally:
            if self.writer is not None and self.is_ours:
                self.writer.stopped(self)

    @harmless
    def end(
        self,
        error: BaseException | None = None,
        *,
        boundary: Boundary = Boundary.CALL,
        cause: StopCause | None = None,
        reason: str | None = None,
        tool: str | None = None,
        result: Any = None,  # noqa: ANN401 - the framework's own; only a validator of the host's ever sees it
    ) -> None:
        """A layer's end: it came back, or an exception left it. Closes the run unless the host's block holds it.

        Only the first counts: a stream that is over may still be closed, or collected.

        Args:
            error: What left the loop.
            boundary: Where that was seen.
            cause: What the hook's map makes of the exception; None asks the common one.
            reason: A code beside it.
            tool: The tool that failed; one that the agent has.
            result: What the loop returned; kept only where a validator wants it.
        """
        if self._adopted and not self._is_adopting:
            return
        try:
            if result is not None:
                self.keep(result)
            if error is None and self.is_untested:
                self.say(StopCause.UNKNOWN, Rank.RETURNED, boundary, reason="untested_version")
            elif error is None:
                self.say(StopCause.NATURAL, Rank.RETURNED, boundary)
            else:
                self.raised(error, boundary=boundary, cause=cause, reason=reason, tool=tool)
        finally:  # whatever went wrong with the words: it is over
            if self._is_adopting:  # the host's block goes on: as long as its process lives, it is not stuck
                self._is_adopting, self.is_driven = False, True
            else:
                self.close()

    def __enter__(self) -> Self:
        if self.is_closed and self.writer is not None:
            self.writer.say("run_reused", None)  # a receipt is written once: this block leaves none
        if self._token is None:
            self._token = current.set(self)
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not self._goes_on:
            try:
                if error is None:
                    self._came_back()
                else:
                    self._left_block(error)
            except Exception:  # noqa: BLE001 - a fault of ours
                self.find("receipt_incomplete", "block")
            self.close()
        self._goes_on = False
        self.leave()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        """There is one of each: a state that is copied with its run in it goes on with the same."""
        return self

    def leave(self) -> None:
        """Gives the context back. A generator that is finalised elsewhere cannot; its context is gone with it."""
        token, self._token = self._token, None
        if token is not None:
            with contextlib.suppress(ValueError):
                current.reset(token)

    def _came_back(self) -> None:
        if self._is_adopting:  # a stream that goes on without its reader, say
            self._is_adopting = False
            self.children_open += 1
            self.find("still_running", self.adapter)
        self.say(StopCause.NATURAL, Rank.RETURNED, Boundary.CALL)

    def _left_block(self, error: BaseException) -> None:
        """An exception that left the host's block. What a hook made of the same one stands, but for a time limit.

        Only out here can a cancellation be told from a timer.
        """
        if is_time_out(error):
            self.said = tuple(each for each in self.said if not (each.rank is Rank.RAISED and each.aborted))
        if not any(each.rank is Rank.RAISED for each in self.said):
            self.raised(error)

    def child(self, agent: str | None = None, **facts: Any) -> Run:  # noqa: ANN401 - of any type, checked behind
        """A run that this one starts. Use it as a context manager.

        Args:
            agent: What it is called.
            facts: As `stopcause.run` takes them; of others the name is found.
        """
        made = Run(self.writer, self.config, agent)
        made.be_child_of(self)
        made.told(facts)
        return made

    @harmless
    def told(self, facts: Mapping[str, Any]) -> None:
        """What the host says of it before it starts: the parameters of `stopcause.run` by their names."""
        given = {name: value for name, value in facts.items() if value is not None}
        if "run_id" in given and not self.identify(ids.id_text(given.pop("run_id"))):
            self.find("refused_value", "run_id")
        resumes, answers = given.pop("resumes", None), given.pop("answers", ())
        if resumes is not None or answers:
            self.resumed(resumes, answers)
        for name, value in given.items():
            kept = ids.id_text(value) if name in _IDS else value
            if name in _FACTS and kept is not None:
                self.__dict__[name] = kept
            else:
                self.find("refused_value", name)

    # For capture ------------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Leaving the block does not end it: something that the block returned will, or a framework's run in it."""
        self._goes_on = True
        self._adopted = self._is_adopting = False

    def keep(self, result: object) -> None:
        """What came back, where a validator wants it."""
        if self.config.validators:
            self.result = result

    def adopt(self) -> bool:
        """Whether a framework's run may be this run: the first that begins while the host's block is open."""
        if self._adopted or self.is_closed or not self.is_started or self._token is None:
            return False
        self._adopted = self._is_adopting = True
        self._own_bounds = self.limits, self.conditions
        return True

    def went_on(self) -> None:
        """The host began another framework run: what left the first one did not end this run.

        A framework's own run stays what it said: one inside of it takes nothing back.
        """
        if not self._adopted or self._is_adopting:
            return
        kept = tuple(each for each in self.said if each.rank in (Rank.HOST, Rank.RETURNED))
        if len(kept) < len(self.said) or self.forced_wrapup or self.finish in BY_FINISH:
            self.said = kept
            self._forget_last_turn()
            self.find("went_on", None)

    def _forget_last_turn(self) -> None:
        """How the first one's last turn was is not how this run ends; nor are its bounds those of a host's block."""
        self.finish = self.finish_raw = self.forced_wrapup = self.output_shape = self.pending_tool_calls = None
        self.limits, self.conditions = self._own_bounds

    def be_child_of(self, parent: Run) -> None:
        """Another run starts it: it names that one, shares its thread, and tells it how it ended."""
        self._parent = parent
        self.parent_run_id = parent.run_id
        self.thread_id = self.thread_id or parent.thread_id
        if parent.replayed is not None:
            parent._inner_runs += 1
            self._inner_id = inner_id(parent.run_id, parent.attempt, parent._inner_runs)
            self.writer = self.replayed = parent.replayed
            self.is_durable = True

    def _tell_parent(self, parent: Run) -> None:
        self._parent = None  # a chain of runs that start runs would hold all of them
        parent.children_open -= 1
        cause, itself, resumed = self.final.cause, frozenset({self.run_id}), frozenset({self.resumes_run_id})
        if cause in FAILED:
            parent.children_failed += 1
        else:  # what waits after it is its own
            parent._waiting -= resumed
        if cause in WAITING:
            parent._waiting |= itself

    def _mark(self, span: trace.Span) -> None:
        """Cause, steps and reason on the span that was open when it began; never its status.

        What the record would refuse is not told here either: nobody comes after us to mend it.
        """
        with contextlib.suppress(Exception):
            if span.is_recording():
                said = self.final
                span.set_attribute(str(Attribute.CAUSE), str(said.cause))
                if isinstance(said.reason, str) and is_identifier(said.reason):
                    span.set_attribute(str(Attribute.STOP_REASON), said.reason)
                if type(self.steps) is int and self.steps >= 0:
                    span.set_attribute(str(Attribute.STEPS), self.steps)

    @property
    def is_ours(self) -> bool:
        """Whether this process began it. What a fork copied is the parent's, which goes on with it."""
        return self.writer is None or self.epoch == self.writer.epoch

    @property
    def children_waiting(self) -> int:
        """How many of the runs that it started have stopped to wait."""
        return len(self._waiting)

    # For records ------------------------------------------------------------------------------------------------------

    @property
    def final(self) -> Said:
        """The word on why it stopped that counts, of all that were said until now."""
        return final(self.said, self.finish, is_forced=self.forced_wrapup is True)

    @property
    def traced(self) -> tuple[str, str, bool] | None:
        """Where it is in its trace: the trace's id, the span's, and whether it is sampled."""
        with contextlib.suppress(Exception):  # a tracer of anybody's
            context = self._span.get_span_context() if self._span is not None else None
            if context is not None and context.is_valid:
                return f"{context.trace_id:032x}", f"{context.span_id:016x}", bool(context.trace_flags & 1)
        return None
