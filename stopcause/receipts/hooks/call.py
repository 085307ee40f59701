"""One invocation that a hook watches: its run, its place in the context, and its end, of which the first word counts.

What an item, a result or an exception means is the framework's hook's to say, in a class made from this one. How such
an invocation is put around a framework's own function is in `wrapping`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self

from stopcause.receipts.causes import Rank
from stopcause.receipts.run import current
from stopcause.receipts.vocabulary import Boundary, StopCause

if TYPE_CHECKING:
    from contextvars import Token

    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

Foreign = Any  # an object of the framework, of any version: checked when it is read


class Call:
    """One invocation. As a context manager, its run is current while the framework's own code works.

    The methods are called inside a guard: they may fail.
    """

    reason: str | None = None  # a code beside the cause of an exception
    tool: str | None = None  # the tool that raised it; one that the agent has

    def __init__(self, hook: Hook, run: Run) -> None:
        self.hook = hook
        self.run = run
        self.is_over = True  # until it has begun
        self._token: Token[Run | None] | None = None

    def __enter__(self) -> Self:
        self._token = current.set(self.run)
        self.run.is_driven = True
        return self

    def __exit__(self, *_: object) -> None:
        self.run.is_driven = self.is_over  # then it is the host's block, if it is open at all
        if self._token is not None:
            with contextlib.suppress(ValueError):  # a generator may be finalised in another context
                current.reset(self._token)

    def begin(self) -> Self:
        """From here on it will have an end."""
        self.run.start()
        self.is_over = False
        return self

    def __del__(self) -> None:
        if not self.is_over:
            with self.hook.ending("dropped", self.run):
                self.run.closed_by = "garbage_collection"
                self.left()

    # What the framework's hook says -----------------------------------------------------------------------------------

    def item(self, item: Foreign) -> None:
        """An item of its stream, before its reader has it."""

    def read_result(self, result: Foreign) -> None:
        """What the result says of why it stopped."""

    def cause(self, error: BaseException) -> StopCause | None:  # noqa: ARG002 - for classes made from this one
        """What an exception that leaves it means; None: the common map is asked."""
        return None

    def cut_off(self) -> None:
        """It ends before its work is done: an exception leaves it, or its reader did."""

    # How it ends ------------------------------------------------------------------------------------------------------

    def returned(self, result: Foreign) -> None:
        """The result. Where it cannot be read, nobody knows why it came; that is no natural end."""
        try:
            if self.hook.is_tested and not self.is_over:
                self.read_result(result)
        except Exception:
            self.run.say(StopCause.UNKNOWN, Rank.SIGNAL, Boundary.CALLBACK, reason="result_unreadable")
            raise  # to the guard around, which counts it
        finally:
            self.came_back(result)

    def came_back(self, result: object) -> None:
        """It is over. Of a stream this is the last item, before its reader sees it, who may well leave then."""
        if self.is_first_end():
            self.run.in_flight_tools = 0
            self.run.end(result=result)

    def ended(self) -> None:
        """Its stream is over, and there was no result in it that we could see."""
        if self.is_first_end():
            self.run.say(StopCause.UNKNOWN, Rank.SIGNAL, Boundary.EVENT_STREAM, reason="no_result")
            self.run.end(boundary=Boundary.EVENT_STREAM)

    def failed(self, error: BaseException) -> None:
        """An exception leaves it."""
        cause = None if self.is_over else self.cause(error)
        if self.is_first_end():
            self.cut_off()
            self.run.end(error, boundary=Boundary.EXCEPTION, cause=cause, reason=self.reason, tool=self.tool)

    def left(self) -> None:
        """Its reader went away."""
        if self.is_first_end():
            self.cut_off()
            self.run.end(GeneratorExit(), boundary=Boundary.EVENT_STREAM)

    def is_first_end(self) -> bool:
        """Whether it is over only now."""
        is_first, self.is_over = not self.is_over, True
        return is_first
